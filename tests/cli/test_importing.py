"""Patches from elsewhere, through the command: quilt's words, nothing half done."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from tests.queue.test_foreign import Repository
from tests.quilt_lab import Tree
from tests.world import FILES

pytestmark = pytest.mark.slow

DATA = b"--- a/demo/data.txt\n+++ b/demo/data.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n"


@pytest.fixture
def repository(tmp_path):
    """A repository in which the package lies in a folder, with a comment more in one file."""
    files = {f"python/{name}": text.encode() for name, text in FILES.items()}
    files["python/demo/shapes.py"] = b"# new upstream\n" + files["python/demo/shapes.py"]
    files["tests/test_demo.py"] = b"assert 1\n"
    return Repository(tmp_path / "repository", files)


def given(world, data, *args):
    """Run patchq on the world's site and queue, with something on stdin."""
    environ = {
        **os.environ,
        "PATCHQ_CACHE": str(world.root / "cache"),
        "PATCHQ_QUEUES": "",
        "HOME": str(world.root),
    }
    environ.pop("VIRTUAL_ENV", None)
    where = ["--target", str(world.site), "--queue", str(world.queue)]
    return subprocess.run(
        [sys.executable, "-m", "patchq", *map(str, args), *where],
        input=data,
        capture_output=True,
        cwd=world.root,
        env=environ,
    )


def square(repository):
    """Commit what a pull request might have; return its mails."""
    name = "python/demo/shapes.py"
    text = (repository.folder / name).read_bytes()
    better = text.replace(b"self.side**2", b"self.side * self.side")
    repository.commit("Multiply\n\nBecause.", {name: better, "tests/test_demo.py": b"assert 2\n"})
    repository.commit("Inches", {"python/demo/units.py": b"metre = 1\nfoot = 0.3\ninch = 0.02\n"})
    return repository.mails(2)


def test_a_pull_request_is_imported_pushed_and_popped(world, repository):
    before = world.tree()
    (world.root / "77.patch").write_bytes(square(repository))

    done = world.here("import", "77.patch")
    pushed = world.here("push", "2")
    after = world.tree()
    popped = world.here("pop", "-a")

    assert done.stdout == (
        "Importing patch 77.patch (stored as Multiply.patch)\n"
        "Importing patch 77.patch (stored as Inches.patch)\n"
    )
    assert done.stderr.splitlines()[:3] == [
        "-p2: b/python/demo/shapes.py is demo/shapes.py in demo 1.0",
        "Multiply.patch: left out, demo 1.0 does not have them: tests/test_demo.py",
        "demo/shapes.py: Hunk #1 succeeded at 14 (offset -1 lines).",
    ]
    assert (done.returncode, pushed.returncode, popped.returncode) == (0, 0, 0), pushed.stderr
    assert b"self.side * self.side" in after["demo/shapes.py"]
    assert world.tree() == before
    header = (world.series / "Multiply.patch").read_bytes().partition(b"diff --git")[0]
    assert header.endswith(b"\nSubject: Multiply\n\nBecause.\n\n")


def test_it_stands_above_the_top_patch_and_on_what_is_below(world):
    world.here("push")
    (world.root / "x.patch").write_bytes(
        b"--- a/demo/shapes.py\n+++ b/demo/shapes.py\n"
        b"@@ -1,3 +1,4 @@\n from math import pi\n+# x\n \n from .units import metre\n"
    )

    done = world.here("import", "x.patch")

    assert done.returncode == 0, done.stderr
    names = (world.series / "series").read_text().split()
    assert names == ["10-pi.patch", "x.patch", "20-foot.patch", "30-text.patch"]
    lock = json.loads((world.series / "series.lock").read_text())
    assert [one["name"] for one in lock["patches"]][:2] == names[:2]
    assert world.here("push", "x.patch").returncode == 0


def test_without_the_releases_text_the_environment_says_what_it_has(world, repository):
    mails = square(repository)
    for store in (world.root / "cache").iterdir():
        store.rename(world.root / f"kept-{store.name}")

    done = given(world, mails, "import", "-")

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        b"Importing patch - (stored as Multiply.patch)",
        b"Importing patch - (stored as Inches.patch)",
    ]
    assert b"left out, demo 1.0 does not have them: tests/test_demo.py" in done.stderr
    assert world.here("push", "2").returncode == 0


def test_a_dry_run_says_would_and_changes_nothing(world):
    (world.root / "x.patch").write_bytes(DATA)
    before = {path: path.read_bytes() for path in world.queue.rglob("*") if path.is_file()}

    done = world.here("import", "-n", "x.patch")

    assert done.stdout == "Would import patch x.patch (stored as x.patch)\n"
    assert {p: p.read_bytes() for p in world.queue.rglob("*") if p.is_file()} == before


def test_what_does_not_fit_changes_nothing_and_is_a_conflict(world):
    (world.root / "good.patch").write_bytes(DATA)
    (world.root / "bad.patch").write_bytes(
        DATA.replace(b"-two", b"-zwei").replace(b"+TWO", b"+ZWEI")
    )
    before = (world.series / "series").read_bytes()

    done = world.here("import", "good.patch", "bad.patch")
    document = world.json("import", "bad.patch")

    assert done.returncode == document["exit_code"] == 3
    assert done.stderr.startswith("patchq: Patch bad.patch does not apply to demo 1.0\n")
    assert "Hunk #1 FAILED at 1: line 2: expected 'zwei', found 'TWO'" in done.stderr
    assert (world.series / "series").read_bytes() == before
    assert not (world.series / "good.patch").exists()


def test_a_name_that_is_taken_is_replaced_only_with_f_and_a_header_that_is_chosen(world):
    (world.root / "10-pi.patch").write_bytes(b"Description: mine\n\n" + DATA)
    old = (world.series / "10-pi.patch").read_bytes()
    world.here("push")
    applied = world.here("import", "-f", "10-pi.patch")
    world.here("pop")

    refused = world.here("import", "10-pi.patch")
    differ = world.here("import", "-f", "10-pi.patch")
    kept = (world.series / "10-pi.patch").read_bytes()
    done = world.here("import", "-f", "-d", "a", "10-pi.patch")

    assert applied.stderr.startswith("patchq: Patch 10-pi.patch is applied\n")
    assert refused.stderr.startswith("patchq: Patch 10-pi.patch exists. Replace with -f.\n")
    assert differ.stderr.startswith("patchq: Patch headers differ:\n")
    assert "+Description: mine\n" in differ.stderr
    assert [one.returncode for one in (applied, refused, differ, done)] == [1, 1, 1, 0]
    assert kept == old
    assert "Replacing patch 10-pi.patch with new version\n" in done.stderr
    head = old.partition(b"--- a/")[0]
    assert (
        world.series / "10-pi.patch"
    ).read_bytes() == head + b"---\nDescription: mine\n\n" + DATA


def test_compiled_sources_are_a_loud_refusal_and_can_be_left_out(world, repository):
    repository.commit(
        "both", {"csrc/k.cu": b"int a;\n", "python/demo/data.txt": b"one\n2\nthree\n"}
    )
    (world.root / "both.patch").write_bytes(repository.mails(1))

    refused = world.here("import", "both.patch")
    done = world.here("import", "both.patch", "--leave-out", "csrc/*")

    assert refused.returncode == 1
    assert refused.stderr.startswith(
        "patchq: both.patch changes what a patch of demo 1.0 cannot\n"
    )
    assert "csrc/k.cu: it is compiled when the package is built" in refused.stderr
    assert "--leave-out csrc/k.cu" in refused.stderr
    assert done.returncode == 0, done.stderr
    assert "left out on demand: csrc/k.cu" in done.stderr


@pytest.mark.parametrize(
    ("applied", "args"),
    [
        (0, ("x.patch",)),
        (1, ("-p0", "x.patch")),
        (1, ("-p", "2", "-R", "x.patch")),
        (1, ("x.patch", "y.patch")),
        (2, ("-P", "other.patch", "x.patch")),
        (2, ("missing.patch",)),
    ],
)
def test_on_a_plain_tree_files_and_words_are_quilts(tmp_path, applied, args):
    quilts = Tree(tmp_path / "quilt" / "tree", {"f": b"1\n"})
    for name in ("x.patch", "y.patch"):
        quilts.write(name, b"why\n\n" + DATA)
    quilts.patch("a.patch", {"f": b"2\n"})
    quilts.patch("b.patch", {"g": b"3\n"})
    quilts.run("pop", "-a")
    mine = Tree(tmp_path / "ours" / "tree")
    shutil.copytree(quilts.folder, mine.folder, dirs_exist_ok=True)
    shutil.rmtree(mine.folder / ".pc")
    if applied:
        quilts.run("push", str(applied))
        ours(mine, "push", str(applied))

    theirs = quilts.run("import", *args, code="missing.patch" in args).decode()
    said = ours(mine, "import", *args)

    assert said.removeprefix("patchq: ").startswith(theirs.replace("patches/", ""))
    assert patches(mine) == patches(quilts)


def patches(tree):
    """Return the files of a tree's series."""
    return {path.name: path.read_bytes() for path in (tree.folder / "patches").iterdir()}


def ours(tree, *args, stdin=b""):
    """Run patchq in a plain tree; return both streams."""
    environ = {**os.environ, "PATCHQ_CACHE": str(tree.folder.parent / "cache")}
    environ.pop("VIRTUAL_ENV", None)
    done = subprocess.run(
        [sys.executable, "-m", "patchq", *args, "--tree", "."],
        cwd=tree.folder,
        env=environ,
        input=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    return done.stdout.decode()


def test_fold_puts_a_patch_on_what_is_there_and_into_the_top_patch(world):
    before = world.tree()
    world.here("push")

    done = given(world, DATA, "fold")
    folded = world.tree()
    refreshed = world.here("refresh")
    files = world.here("files")
    popped = world.here("pop")

    assert (done.returncode, done.stdout) == (0, b"patching file demo/data.txt\n"), done.stderr
    assert folded["demo/data.txt"] == b"one\nTWO\nthree\n"
    assert refreshed.returncode == 0, refreshed.stderr
    assert files.stdout.split() == ["demo/data.txt", "demo/shapes.py"]
    assert popped.returncode == 0, popped.stderr
    assert world.tree() == before
    assert b"+TWO\n" in (world.series / "10-pi.patch").read_bytes()


def test_fold_needs_a_patch_on_top_and_a_patch_that_fits(world):
    before = world.tree()
    nothing = given(world, DATA, "fold")
    world.here("push")
    pushed = world.tree()

    twice = given(world, DATA.replace(b" one", b" eins"), "fold")
    dry = given(world, DATA, "fold", "-n")

    assert nothing.stderr.startswith(b"patchq: No patches applied\n")
    assert (nothing.returncode, twice.returncode) == (1, 3)
    assert b" --fuzz 1 < PATCH   # and look at what it says" in twice.stderr
    assert dry.stdout == b"would change demo/data.txt\n"
    assert world.tree() == pushed != before


def test_fold_with_r_takes_it_out_again_and_fuzz_is_said(world):
    world.here("push")
    given(world, DATA.replace(b" one", b" eins"), "fold", "--fuzz", "1")
    folded = world.tree()["demo/data.txt"]

    again = given(world, DATA, "fold")
    back = given(world, DATA, "fold", "-R", "-q")

    assert folded == b"one\nTWO\nthree\n"
    assert again.returncode == 3
    assert again.stderr.startswith(b"patchq: Patch on stdin can be reverse-applied\n")
    assert (back.returncode, back.stdout) == (0, b"")
    assert world.tree()["demo/data.txt"] == b"one\ntwo\nthree\n"


def test_fold_with_f_takes_what_fits_and_shows_what_does_not(world):
    world.here("push")
    units = (
        b"--- a/demo/units.py\n+++ b/demo/units.py\n"
        b"@@ -1,2 +1,2 @@\n-mile = 1\n+m = 2\n foot = 0.3048\n"
    )

    done = given(world, DATA + units, "fold", "-f")

    assert done.returncode == 1
    assert done.stdout == b"patching file demo/data.txt\n"
    assert b"demo/units.py: Hunk #1 FAILED at 1" in done.stderr
    assert b"-mile = 1\n+m = 2\n" in done.stderr
    assert b"1 out of 1 hunk FAILED" in done.stderr
    assert world.tree()["demo/data.txt"] == b"one\nTWO\nthree\n"
    assert world.tree()["demo/units.py"] == FILES["demo/units.py"].encode()


def test_fold_takes_no_file_of_which_an_edit_belongs_to_a_patch_below(world):
    world.here("push", "2")
    world.here("new", "15-mine.patch")
    path = world.site / "demo" / "shapes.py"
    path.write_bytes(path.read_bytes() + b"# edited\n")
    patch = (
        b"--- a/demo/shapes.py\n+++ b/demo/shapes.py\n"
        b"@@ -1,2 +1,2 @@\n-from math import pi\n+from math import tau as pi\n \n"
    )

    done = given(world, patch, "fold")

    assert done.returncode == 1
    assert b"has edits that belong to 20-foot.patch" in done.stderr
    assert path.read_bytes().endswith(b"# edited\n")
