"""diff, show, annotate, patches, files and graph: quilt's answers, and what only patchq knows."""

import json
import os
import pty
import re
import subprocess
import sys

import pytest

from patchq.errors import ExitCode
from tests import quilt_lab

pytestmark = pytest.mark.slow

TEN = "".join(f"{number}\n" for number in range(10)).encode()
# A series for the real quilt: what each patch makes of which files.
SERIES = {
    "a.patch": {"d/f": TEN.replace(b"2\n", b"two\n"), "g": TEN.replace(b"5\n", b"")},
    "b.patch": {"d/f": TEN.replace(b"2\n", b"two\n").replace(b"8\n", b"8\neight\n")},
    "sub/c.patch": {
        "d/f": TEN.replace(b"2\n", b"zwei\n").replace(b"8\n", b"8\neight\n"),
        "new one": b"1\n2\n",
        "old": None,
    },
    "d.patch": {"h": b"no newline", "g": b""},
}


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    """One tree under quilt, and one with the same files and patches under patchq."""
    first = {"d/f": TEN, "g": TEN, "h": b"1\n", "old": b"x\n", "same": b"s\n"}
    folder = tmp_path_factory.mktemp("trees")
    quilt = quilt_lab.Tree(folder / "quilt" / "top", first)
    for name, changes in SERIES.items():
        quilt.patch(name, changes, "--no-timestamps")
    mine = quilt_lab.Tree(folder / "mine" / "top", first)
    for name in [*SERIES, "series"]:
        mine.write(f"patches/{name}", (quilt.folder / "patches" / name).read_bytes())
    assert patchq(mine, "push", "-a").returncode == 0
    return quilt, mine


def patchq(tree, verb, *args):
    """Run a verb on a plain tree, in it."""
    return subprocess.run(
        [sys.executable, "-m", "patchq", verb, "--tree", ".", *args],
        cwd=tree.folder,
        env={**quilt_lab.ENVIRONMENT, "PATCHQ_CACHE": str(tree.folder.parent / "cache")},
        capture_output=True,
    )


ASKED = [
    "diff --no-timestamps",
    "diff --no-timestamps -P a.patch",
    "diff --no-timestamps -P b",
    "diff --no-timestamps -P sub/c.patch -p0",
    "diff --no-timestamps -P a.patch -p ab -U1 --no-index",
    "diff --no-timestamps -P a.patch d/f -R",
    "diff --no-timestamps -P a.patch ./d/f",
    "diff --no-timestamps --combine - -pab",
    "diff --no-timestamps --combine b.patch -P sub/c.patch -pab --sort",
    "diff --no-timestamps --combine a.patch d/f g -u",
    "diff --no-timestamps -z",
    "diff --no-timestamps -z -P a.patch",
    "files",
    "files -v",
    "files -a",
    "files -al",
    "files -avl",
    "files -v sub/c.patch",
    "files --combine b.patch sub/c.patch",
    "files --combine - b.patch -vl",
    "patches d/f",
    "patches -v d/f g",
    "patches 'new one'",
    "patches nothing",
    "annotate d/f",
    "annotate -P a.patch d/f",
    "annotate -P b.patch d/f",
    "annotate 'new one'",
    "annotate same",
    "graph",
    "graph --all",
    "graph a.patch",
    "graph --all --edge-labels=files",
    "graph --lines b.patch",
]


@pytest.mark.parametrize("asked", ASKED)
def test_on_a_tree_the_answer_is_quilts(trees, asked):
    quilt, mine = trees
    verb, *args = [word.strip("'") for word in re.findall(r"'[^']*'|\S+", asked)]

    told = quilt.run(verb, *args)
    done = patchq(mine, verb, *args)

    # quilt 0.66 wrote names with blanks as they are; since 0.68 it quotes them.
    answer = re.sub(rb'^(---|\+\+\+) "(.*)"$', rb"\1 \2", done.stdout, flags=re.MULTILINE)
    assert (answer + done.stderr, done.returncode) == (told, 0)


def test_files_are_marked_by_what_their_patch_does(trees):
    """quilt looks at the files as they are now: to it a.patch removes g, which d.patch empties."""
    quilt, mine = trees

    done = patchq(mine, "files", "-av")

    assert done.stdout.decode().splitlines() == [
        *("a.patch", "  d/f", "  g"),
        *("b.patch", "  d/f"),
        *("sub/c.patch", "  d/f", "+ new one", "- old"),
        *("d.patch", "- g", "  h"),
    ]
    assert quilt.run("files", "-av") == done.stdout.replace(b"  g\n", b"- g\n")


def test_on_a_tree_edits_before_a_refresh_are_shown_as_quilt_shows_them(trees, tmp_path):
    quilt, mine = trees
    edited = SERIES["d.patch"]["h"] + b"\nmore\n"
    for tree in (quilt, mine):
        tree.write("h", edited)
        tree.write("d/f", SERIES["sub/c.patch"]["d/f"] + b"end\n")
    try:
        for asked in (
            ("diff", "-z", "--no-timestamps", "-pab", "h"),
            ("diff", "-z", "--no-timestamps", "-pab", "-P", "sub/c.patch", "d/f"),
            ("diff", "--no-timestamps", "-P", "sub/c.patch", "d/f"),
            ("annotate", "d/f"),
        ):
            assert patchq(mine, *asked).stdout == quilt.run(*asked), asked
        assert b"+end\n" in patchq(mine, "diff", "-z").stdout
        assert b"d/f has edits that are in no patch yet" in patchq(mine, "annotate", "d/f").stderr
    finally:
        for tree in (quilt, mine):
            tree.write("h", SERIES["d.patch"]["h"])
            tree.write("d/f", SERIES["sub/c.patch"]["d/f"])


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (("diff", "-P", "nope"), "Patch nope is not in series"),
        (("diff", "--combine", "b.patch", "-P", "a"), "not applied before patch a.patch"),
        (("diff", "-p2"), "Cannot diff patches with -p2, please specify -p0, -p1, or -pab"),
        (("diff", "-z", "--combine", "-"), "cannot be combined."),
        (("files", "nope"), "Patch nope is not in series"),
        (("files", "--combine", "sub/c.patch", "a.patch"), "not applied before patch a.patch"),
        (("annotate", "-P", "nope", "d/f"), "Patch nope is not in series"),
        (("graph", "nope"), "Patch nope is not in series"),
    ],
)
def test_what_quilt_refuses_is_refused_in_its_words(trees, asked, words):
    quilt, mine = trees

    done = patchq(mine, *asked)

    assert words.encode() in done.stderr
    assert words.encode() in quilt.run(*asked, code=1)
    assert done.returncode in (ExitCode.FAILED, ExitCode.USAGE)


@pytest.mark.parametrize("verb", ["diff", "files", "graph", "show", "annotate"])
def test_without_a_patch_it_says_so(world, verb):
    done = world.here(verb, *(["demo/units.py"] if verb == "annotate" else []))

    assert (done.returncode, done.stdout, done.stderr) == (1, "", "No patches applied\n")


def test_a_binary_file_ends_a_diff_in_quilts_form(world):
    world.here("push", "-a")
    (world.site / "demo" / "data.txt").write_bytes(b"\0\1")

    quilts = world.here("diff", "-pab")
    gits = world.here("diff")

    assert quilts.stdout == "Binary files a/demo/data.txt and b/demo/data.txt differ\n"
    assert quilts.stderr == "Diff failed on file 'demo/data.txt', aborting\n"
    assert (quilts.returncode, gits.returncode) == (ExitCode.FAILED, 0)
    assert gits.stdout == quilts.stdout


def test_a_diff_in_gits_form_is_what_git_applies(world):
    world.here("push", "-a")
    before = world.tree()

    back = world.here("diff", "--combine", "-", "-R").stdout
    subprocess.run(["git", "apply"], input=back, text=True, cwd=world.site, check=True)
    world.here("pop", "-a", "-f")

    assert "more.py" in back
    assert not (world.site / "demo" / "more.py").exists()
    assert b"pi" in before["demo/shapes.py"]
    assert b"pi" not in (world.site / "demo" / "shapes.py").read_bytes()


def test_a_file_that_is_in_no_named_patch_is_an_error(world):
    world.here("push", "-a")

    done = world.here("diff", "demo/shapes.py")

    assert done.returncode == ExitCode.FAILED
    assert "File demo/shapes.py is not in patch 30-text.patch" in done.stderr


def test_a_patch_that_is_not_applied_is_named_whole(world):
    world.here("push", "1")

    done = world.here("diff", "--combine", "-", "-P", "20-foot")

    assert done.returncode == ExitCode.FAILED
    assert "Patch 20-foot.patch is not applied\n" in done.stderr


def test_a_stat_counts_lines(world):
    world.here("push", "-a")

    done = world.here("diff", "--stat", "--combine", "-")
    rows = world.json("diff", "--stat", "--combine", "-")["stat"]

    assert done.stdout == (
        " demo/shapes.py | 8 +++++---\n"
        " demo/more.py   | 4 ++++\n"
        " demo/data.txt  | 1 +\n"
        " 3 files changed, 10 insertions(+), 3 deletions(-)\n"
    )
    assert rows == [["demo/shapes.py", 5, 3], ["demo/more.py", 4, 0], ["demo/data.txt", 1, 0]]


def test_colours_are_gits(world):
    world.here("push", "1")

    plain = world.here("diff").stdout
    coloured = world.here("diff", "--color", "demo/shapes.py").stdout

    assert "\x1b[32m+from math import pi\x1b[m\n" in coloured
    assert "\x1b[31m-        return 3 * self" in coloured
    assert re.sub(r"\x1b\[\d*m", "", coloured) == plain
    assert "\x1b" not in world.here("diff", "--color=auto").stdout


def test_colours_of_patches_are_quilts(world):
    world.here("push", "2")

    done = world.here("patches", "--color", "-v", "demo/shapes.py", "demo/data.txt")

    assert done.stdout == (
        "\x1b[32m+ 10-pi.patch\x1b[m\n\x1b[33m= 20-foot.patch\x1b[m\n  30-text.patch\n"
    )


def test_annotate_puts_a_patch_on_in_thought(world):
    before = world.tree()

    done = world.here("annotate", "-P", "20-foot", "demo/shapes.py")

    assert done.stdout.startswith(
        "1\tfrom math import pi\n1\t\n2\tfrom .units import foot, metre\n"
    )
    assert done.stdout.endswith("\n\n1\t10-pi.patch\n2\t20-foot.patch\n")
    assert world.tree() == before


def test_annotate_of_a_patch_that_would_not_fit(world):
    (world.site / "demo" / "data.txt").write_text("zero\n")

    done = world.here("annotate", "-P", "30-text", "demo/data.txt")

    assert done.returncode == ExitCode.CONFLICT
    assert "Patch 30-text.patch does not apply on what is there" in done.stderr


def test_annotate_of_no_file(world):
    world.here("push", "-a")

    done = world.here("annotate", "demo/nowhere.py")

    assert done.returncode == ExitCode.FAILED
    assert "demo/nowhere.py is no file of" in done.stderr
    assert f"patchq files --target {world.site} --queue {world.queue} -a" in done.stderr


def test_show_is_the_patch_as_the_queue_has_it(world):
    world.here("push", "1")
    text = (world.series / "20-foot.patch").read_text()

    shown = world.here("show", "20-foot").stdout
    top = world.here("show")

    assert shown.endswith("\n\n" + text[text.index("diff --git") :])
    assert shown.startswith(
        "patch 20-foot.patch\n"
        "Queue:   q, series 1.0: 2 of 3\n"
        "Applied: no\n"
        "Sketch:  post/20-foot.pyi\n\n"
        "    Description: Squares in feet\n\n"
        "    # in demo/shapes.py\n"
    )
    assert "Applied: yes, on top\n" in top.stdout
    subprocess.run(["git", "apply", "--stat"], input=shown, text=True, cwd=world.site, check=True)


def test_show_tells_a_patch_that_was_changed_after_its_push(world):
    world.here("push", "-a")
    path = world.series / "10-pi.patch"
    path.write_text("Author: me\n" + path.read_text())

    shown = world.here("show", "10-pi").stdout
    document = world.json("show", "10-pi")
    world.queue.rename(world.root / "elsewhere")
    kept = world.run("show", "10-pi", "--target", world.site).stdout

    assert "Applied: yes; the queue's text was changed since\n" in shown
    assert "    Author: me\n" in shown
    assert (document["applied"], document["top"], document["changed_since"]) == (True, False, True)
    assert "which is not in sight" in kept
    assert "Author" not in kept


def test_show_of_a_patch_that_was_only_begun(tmp_path):
    tree = quilt_lab.Tree(tmp_path / "top", {"f": b"1\n"})
    assert patchq(tree, "new", "a.patch").returncode == 0

    done = patchq(tree, "show")

    assert done.stdout.decode() == (
        f"patch a.patch\nQueue:   {tree.folder}/patches: 1 of 1\nApplied: yes, on top\n"
    )


def test_graph_draws_a_tree(world):
    world.here("push", "-a")

    drawn = world.here("graph", "--all", "--draw", "--edge-labels=files")
    edges = world.json("graph", "--all")["edges"]

    assert drawn.stdout == "30-text.patch\n20-foot.patch\n`-- 10-pi.patch  (demo/shapes.py)\n"
    assert edges == [
        {"patch": "20-foot.patch", "needs": "10-pi.patch", "files": ["demo/shapes.py"]}
    ]


def test_graph_of_a_patch_that_is_not_applied(world):
    done = world.here("graph", "--lines", "20-foot")

    assert done.stdout.splitlines()[1:3] == [
        '\tn0 [label="10-pi.patch"];',
        '\tn1 [style=bold,label="20-foot.patch"];',
    ]


def test_files_of_a_patch_that_is_not_applied_are_marked(world):
    assert world.here("files", "-v", "20-foot").stdout == "+ demo/more.py\n  demo/shapes.py\n"
    (world.series / "series.lock").unlink()
    assert world.here("files", "-v", "20-foot").stdout == "+ demo/more.py\n  demo/shapes.py\n"
    assert world.here("patches", "demo/more.py").stdout == "20-foot.patch\n"


def _on_a_terminal(world, *args, **environ):
    """Run a verb on a terminal and return what it writes there."""
    master, slave = pty.openpty()
    environ = {
        **os.environ,
        "PATCHQ_CACHE": str(world.root / "cache"),
        "TERM": "xterm",
        "COLUMNS": "80",
        **environ,
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "patchq", *args, "--target", world.site, "--queue", world.queue],
        stdin=slave,
        stdout=slave,
        stderr=subprocess.PIPE,
        env=environ,
        cwd=world.root,
    )
    os.close(slave)
    out = b""
    while True:
        try:
            part = os.read(master, 1 << 16)
        except OSError:
            break
        if not part:
            break
        out += part
    os.close(master)
    assert process.wait(timeout=60) == 0, process.stderr.read()
    process.stderr.close()
    return out.decode().replace("\r\n", "\n")


def test_a_terminal_gets_the_pager_and_colours(world):
    world.here("push", "1")
    mine = {"PATCHQ_PAGER": "sed 's/^/> /'", "PAGER": "false"}

    paged = _on_a_terminal(world, "diff", **mine)
    bare = _on_a_terminal(world, "diff", "--color=never", PAGER="cat")
    users = _on_a_terminal(world, "diff", PAGER="head -1", NO_COLOR="1")
    missing = _on_a_terminal(world, "diff", "--color=never", PAGER="no-such-pager")
    document = _on_a_terminal(world, "diff", "--json", **mine)

    assert "> \x1b[32m+from math import pi\x1b[m\n" in paged
    assert bare == world.here("diff").stdout
    assert users == "diff --git a/demo/shapes.py b/demo/shapes.py\n"
    assert missing.endswith(bare)
    assert json.loads(document)["verb"] == "diff"


def test_a_terminal_is_not_driven_by_what_a_file_holds(world):
    path = world.site / "demo" / "data.txt"
    world.here("push", "-a")
    path.write_text(path.read_text() + "\x1b]0;mine\x07\n")

    shown = _on_a_terminal(world, "diff", PATCHQ_PAGER="cat")

    assert "\\x1b]0;mine\\x07" in shown
    assert "\x1b]0;mine" in world.here("diff").stdout
