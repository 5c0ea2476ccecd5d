"""A plain tree: quilt's verbs and words on files that nobody released."""

import json
import os
import subprocess
import sys

import pytest

from patchq.errors import ExitCode

pytestmark = pytest.mark.slow

OLD = "1\n2\n3\n4\n5\n6\n7\n8\n9\n"
FIFTH = """\
--- a/f
+++ b/f
@@ -2,7 +2,7 @@
 2
 3
 4
-5
+five
 6
 7
 8
"""


class Tree:
    """A folder with a file `f`, and patchq run in it."""

    def __init__(self, folder):
        self.folder = folder
        self.environ = {
            name: value for name, value in os.environ.items() if not name.startswith("QUILT_")
        }
        self.environ["PATCHQ_CACHE"] = str(folder.parent / "cache")
        (folder / "patches").mkdir(parents=True)
        self.write("f", OLD)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def read(self, name):
        return (self.folder / name).read_text()

    def series(self, *names, **patches):
        self.write("patches/series", "".join(f"{name}\n" for name in names))
        for name, text in patches.items():
            self.write(f"patches/{name}", text)

    def run(self, verb, *args, at=".", stdin=""):
        return subprocess.run(
            [sys.executable, "-m", "patchq", verb, "--tree", ".", *args],
            cwd=self.folder / at,
            env=self.environ,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )

    def says(self, verb, *args, code=ExitCode.DONE, at="."):
        """Run a verb that succeeds; return what it prints, stderr last."""
        done = self.run(verb, *args, at=at)
        assert done.returncode == code, (args, done)
        return done.stdout + done.stderr


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path / "work")


def test_a_script_is_told_quilts_words_and_codes(tree):
    assert tree.says("top", code=1) == "No series file found\n"
    assert tree.says("new", "a.patch") == "Patch a.patch is now on top\n"
    assert tree.says("pop") == (
        "Patch a.patch appears to be empty, removing\n\nNo patches applied\n"
    )
    assert tree.says("pop", code=2) == "No patch removed\n"
    assert tree.says("refresh", "a", code=1) == "No patches applied\n"
    assert tree.says("new", "b.patch") == "Patch b.patch is now on top\n"
    assert tree.says("refresh", "a", code=1) == "Patch a.patch is not applied\n"
    assert tree.says("delete", "zz", code=1) == "Patch zz is not in series\n"
    document = json.loads(tree.run("delete", "zz", "--json").stdout)
    assert document["error"]["mend"] == "patchq series --tree ."


def test_a_series_that_was_reordered_is_refused_until_all_is_off(tree):
    tree.series("a", "b", "c")
    assert tree.says("push", "-q", "2") == (
        "Applying patch a\nPatch a does not exist; applied empty patch\n"
        "Applying patch b\nPatch b does not exist; applied empty patch\nNow at patch b\n"
    )

    tree.series("c", "a", "b")
    word = (
        "The series file no longer matches the applied patches. "
        "Please run 'patchq pop --tree . -a'.\n"
    )

    assert tree.says("series", code=1) == word
    assert tree.says("push", code=1) == word
    assert tree.says("pop", "-qa").endswith("No patches applied\n")
    assert tree.says("series") == "c\na\nb\n"


def test_push_stops_at_the_patch_that_does_not_fit(tree):
    tree.series("one", "two", one=FIFTH, two=FIFTH.replace("five", "V"))

    done = tree.run("push", "-a")

    assert done.stdout == (
        "Applying patch one\npatching file f\n\nApplying patch two\npatching file f\n"
        "Hunk #1 FAILED at 2.\n1 out of 1 hunk FAILED -- rejects in file f\n"
        "Patch two does not apply (enforce with -f)\n"
    )
    assert (done.returncode, done.stderr) == (ExitCode.FAILED, "")
    assert tree.says("applied") == "one\n"
    assert "five" in tree.read("f")
    assert not (tree.folder / "f.rej").exists()


def test_what_is_forced_on_must_be_refreshed(tree):
    two = FIFTH + "@@ -9 +9 @@\n-9\n+nine\n"
    tree.series("one", one=two)
    tree.write("f", OLD.replace("5", "V"))

    assert tree.says("push", "-qf", code=1) == (
        "Applying patch one\n1 out of 2 hunks FAILED -- saving rejects to file f.rej\n"
        "Applied patch one (forced; needs refresh)\n"
    )
    assert tree.read("f.rej") == FIFTH.replace("a/", "").replace("b/", "")
    assert tree.read("f") == OLD.replace("5", "V").replace("9", "nine")
    assert tree.says("push", code=1) == "The topmost patch one needs to be refreshed first.\n"
    assert tree.says("pop", code=1) == "Patch one needs to be refreshed first.\n"

    tree.write("f", OLD.replace("5", "five").replace("9", "nine"))
    assert tree.says("refresh") == "Refreshed patch one\n"
    assert "-V\n+five\n" in tree.read("patches/one")
    assert tree.says("pop", "-q") == "Removing patch one\nNo patches applied\n"
    assert tree.read("f") == OLD.replace("5", "V")


def test_fuzz_is_for_the_asking(tree):
    tree.series("one", one=FIFTH)
    tree.write("f", OLD.replace("2", "two"))

    refused = tree.run("push")
    forced = tree.run("push", "--fuzz", "1")

    assert refused.returncode == ExitCode.FAILED
    assert refused.stderr == (
        "Hint: `patchq push --tree . --fuzz 1' would apply it; look at where it goes.\n"
    )
    assert forced.stdout == (
        "Applying patch one\npatching file f\nHunk #1 succeeded at 2 with fuzz 1.\n\n"
        "Now at patch one\n"
    )
    assert tree.says("pop", "-q").startswith("Removing")
    assert tree.read("f") == OLD.replace("2", "two")


def test_a_patch_that_is_in_already_can_be_reverse_applied(tree):
    tree.series("one", one=FIFTH)
    tree.write("f", OLD.replace("5", "five"))

    said = tree.says("push", "-q", code=1)

    assert said == "Applying patch one\n1 out of 1 hunk FAILED\nPatch one can be reverse-applied\n"


def test_an_edit_stays_where_a_patch_would_go_over_it(tree):
    tree.series("one", "two", one=FIFTH, two=FIFTH.replace("five", "V").replace("-5", "-five"))
    tree.says("push")
    tree.write("f", tree.read("f") + "mine\n")

    pushed = tree.says("push", "-q", code=1)
    popped = tree.run("pop")

    assert "File f has edits that are not in one yet: `patchq refresh --tree . one'" in pushed
    assert popped.stderr == (
        "Patch one does not remove cleanly (refresh it or enforce with -f)\n"
        "Hint: `patchq diff --tree . -z' will show the pending changes.\n"
    )
    assert tree.read("f").endswith("mine\n")
    assert tree.says("pop", "-qf") == "Removing patch one\nNo patches applied\n"
    assert tree.read("f") == OLD


def test_pop_goes_down_to_the_patch_with_edits(tree):
    tree.series("one", one=FIFTH)
    tree.says("push")
    tree.says("new", "two")
    tree.says("add", "g")
    tree.write("g", "g\n")
    tree.says("refresh")
    tree.write("f", tree.read("f") + "mine\n")

    done = tree.run("pop", "-qa")

    assert done.returncode == ExitCode.FAILED
    assert done.stdout == "Removing patch two\n"
    assert "Patch one does not remove cleanly" in done.stderr
    assert tree.says("applied") == "one\n"


def test_push_and_pop_refresh_on_the_way(tree):
    tree.series("one", one=FIFTH)
    tree.says("push")
    tree.write("f", tree.read("f") + "mine\n")

    assert tree.says("pop", "-fa", "--refresh", code=1) == (
        "Options -f and --refresh are mutually exclusive\n"
    )
    assert tree.says("pop", "-qa", "--refresh") == (
        "Refreshed patch one\nRemoving patch one\nNo patches applied\n"
    )
    assert "+mine" in tree.read("patches/one")
    assert tree.says("push", "-a", "--refresh") == (
        "Applying patch one\npatching file f\nPatch one is unchanged\n\nNow at patch one\n"
    )


def test_a_reversed_patch_is_a_forward_one_once_it_is_refreshed(tree):
    tree.series("one -p0 -R # why", one=FIFTH.replace("a/", "").replace("b/", ""))
    tree.write("f", OLD.replace("5", "five"))
    tree.says("push")

    tree.write("f", tree.read("f") + "mine\n")
    tree.says("refresh")

    assert tree.read("patches/series") == "one -p0 # why\n"
    assert "-five\n+5\n" in tree.read("patches/one")
    tree.says("pop")
    tree.says("push")
    assert tree.read("f") == OLD + "mine\n"


def test_a_patch_names_the_file_that_is_there(tree):
    names = FIFTH.replace("a/f", "f").replace("b/f", "g")
    tree.series("one -p0", one=names)

    assert tree.says("push", "-q") == "Applying patch one\nNow at patch one\n"
    assert "five" in tree.read("f")
    assert not (tree.folder / "g").exists()


def test_a_snapshot_is_compared_across_pops(tree):
    tree.series("one", one=FIFTH)
    assert tree.says("diff", "--snapshot", code=1) == "No snapshot to diff against\n"
    tree.says("push")
    assert tree.says("snapshot") == ""

    tree.says("pop")

    assert "-five\n+5\n" in tree.says("push") + tree.says("pop") + tree.says(
        "diff", "--snapshot", "-p", "ab"
    )
    assert tree.says("snapshot", "-d") == ""
    assert tree.says("diff", "--snapshot", code=1) == "No snapshot to diff against\n"


def test_grep_leaves_out_patches_and_records(tree):
    tree.series("one", one=FIFTH)
    tree.says("push")
    tree.write("deep/g h", "five\n")

    assert tree.says("grep", "-n", "five") == "deep/g h:1:five\nf:5:five\n"
    assert tree.says("grep", "six", code=1) == ""


def test_where_the_patches_are_is_remembered(tree):
    tree.environ |= {"QUILT_PATCHES": "my/changes", "QUILT_SERIES": "a list"}
    (tree.folder / "patches").rmdir()
    tree.says("new", "one")
    del tree.environ["QUILT_PATCHES"], tree.environ["QUILT_SERIES"]

    assert tree.read("my/changes/a list") == "one\n"
    assert tree.says("new", "two", at="my") == "Patch two is now on top\n"
    assert tree.says("series", "-v") == "+ one\n= two\n"


def test_a_patch_that_is_a_link_stays_one(tree):
    tree.series("one", one=FIFTH)
    (tree.folder / "patches/one").rename(tree.folder / "elsewhere")
    (tree.folder / "patches/one").symlink_to("../elsewhere")
    tree.says("push")
    tree.write("f", tree.read("f") + "mine\n")

    tree.says("refresh", "--backup")

    assert (tree.folder / "patches/one").is_symlink()
    assert "+mine" in tree.read("elsewhere")
    assert tree.read("patches/one~") == FIFTH


def test_a_binary_file_is_never_written_into_a_patch(tree):
    tree.says("new", "one")
    tree.says("add", "b")
    (tree.folder / "b").write_bytes(b"\x00\x01")

    assert tree.says("refresh", code=1) == "Diff failed on file 'b', aborting\n"
    assert not (tree.folder / "patches/one").exists()


def test_an_editor_that_makes_no_file_adds_none(tree):
    tree.environ["EDITOR"] = "true"
    tree.says("new", "one")

    said = tree.says("edit", "none")

    assert said == "File none added to patch one\nFile none removed from patch one\n"
    assert tree.says("files") == ""


def test_context_diffs_stop_a_push_where_they_are(tree):
    context = "*** a/g\n--- b/g\n***************\n*** 0 ****\n--- 1 ----\n+ g\n"
    tree.series("one", "two", one=FIFTH, two=context)

    done = tree.run("push", "-qa")

    assert done.returncode == ExitCode.FAILED
    assert done.stdout == "Applying patch one\nNow at patch one\n"
    assert "this is a context diff" in done.stderr
