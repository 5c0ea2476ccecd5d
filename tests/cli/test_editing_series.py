"""A series as people keep it: comments, blank lines, options, no newline at its end.

Every verb that edits leaves all of it as it is but for the line that it is about.
"""

import shutil

import pytest

from patchq.queue import series
from tests import world as worlds
from tests.torture import editing_lab

pytestmark = pytest.mark.slow

BACKWARDS = """\
Description: Count to four

--- demo/data.txt
+++ demo/data.txt
@@ -1,4 +1,3 @@
 one
 two
 three
-four
"""
CAME = """\
Description: From elsewhere

--- a/demo/units.py
+++ b/demo/units.py
@@ -1,2 +1,3 @@
 metre = 1
 foot = 0.3048
+inch = 0.0254
"""
HEAD = b"# The series of demo.\n\n"
SERIES = (
    HEAD + b"10-pi.patch  -p1\t# pi: asked for by ops\n\n"
    b"#between\n20-foot.patch # feet\n \t\n30-text.patch -R -p0   #  the last"
)
OTHERS = [b"# The series of demo.", b"", b"", b"#between", b" \t"]


def told(entry):
    return entry.options, entry.comment


OLD = {one.name: told(one) for one in series.parse(SERIES).entries}
WRITTEN = ("", "the last")  # a patch that is written anew has the usual form
# What is done before, the verb, and what the series has then beside what it had; None: gone.
CASES = {
    "new": ("push 10-pi", "new 15-a.patch", {"15-a.patch": ("", "")}),
    "new, on top": ("push -a", "new 45-a.patch", {"45-a.patch": ("", "")}),
    "new, below": ("", "new 05-a.patch", {"05-a.patch": ("", "")}),
    "add": ("push -a", "add demo/units.py", {}),
    "refresh": ("push 10-pi|SHAPES", "refresh", {}),
    "refresh of -p0 -R": ("push -a|DATA", "refresh", {"30-text.patch": WRITTEN}),
    "refresh -p0": ("push -a|DATA", "refresh -p0", {"30-text.patch": ("-p0", "the last")}),
    "refresh -z": ("push -a|DATA", "refresh -z40-z.patch", {"40-z.patch": ("", "")}),
    "refresh -p0 -z": ("push -a|DATA", "refresh -p0 -z40-z.patch", {"40-z.patch": ("-p0", "")}),
    "rename": (
        "push -a",
        "rename 31-text.patch",
        {"30-text.patch": None, "31-text.patch": OLD["30-text.patch"]},
    ),
    "fork": (
        "push -a",
        "fork",
        {"30-text.patch": None, "30-text-2.patch": OLD["30-text.patch"]},
    ),
    "delete": ("push -a", "delete -r", {"30-text.patch": None}),
    "delete, from the middle": ("push 10-pi", "delete 20-foot.patch", {"20-foot.patch": None}),
    "sink": ("push -a", "sink 30-text", {}),
    "sink, not on": ("push 10-pi", "sink 30-text", {}),
    "float": ("push -a", "float 20-foot", {}),
    "pop --only": ("push -a", "pop --only 20-foot", {}),
    "capture": ("push 10-pi|UNITS", "capture 15-hot.patch", {"15-hot.patch": ("", "")}),
    "shell": ("push -a", "shell cp demo/units.py demo/o.py", {"30-text.patch": WRITTEN}),
    "import": ("push 20-foot", "import CAME", {"40-came.patch": ("", "")}),
    "header": ("push -a", "header -a", {}),
    "remove": ("push -a", "remove demo/data.txt", {"30-text.patch": WRITTEN}),
    "lines moved above": ("push 10-pi|UNDER", "refresh", {}),
}
EDITS = {
    "SHAPES": ("demo/shapes.py", "", "\n\n# End\n"),
    "UNDER": ("demo/shapes.py", "class Circle", "LIMIT = 7\n\n\nclass Circle"),
    "DATA": ("demo/data.txt", "", "five\n"),
    "UNITS": ("demo/units.py", "", "inch = 1\n"),
}


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A world whose series is written by hand."""
    world = worlds.World(tmp_path_factory.mktemp("kept"))
    archive = worlds.wheel(world.root, dict(worlds.FILES))
    world.run("fetch", archive, "--into", world.site)
    world.write({**worlds.PATCHES, "30-text.patch": BACKWARDS}, worlds.SKETCHES)
    (world.series / "series").write_bytes(SERIES)
    world.run("lint", "--queue", world.queue, "--write")
    assert (world.series / "series.lock").is_file()
    return world


def edit(world, word):
    path, old, new = EDITS[word]
    text = (world.site / path).read_text()
    (world.site / path).write_text(text.replace(old, new) if old else text + new)


@pytest.mark.parametrize("case", CASES)
def test_the_other_lines_of_a_series_stay_as_they_are(kept, tmp_path, case):
    before, command, more = CASES[case]
    shutil.copytree(kept.root, tmp_path / "w", symlinks=True)
    world = worlds.World(tmp_path / "w")
    for step in filter(None, before.split("|")):
        if step in EDITS:
            edit(world, step)
        else:
            assert world.here(*step.split()).returncode == 0
    act = editing_lab.Act(before, command, stdin=b"Bug: https://example.org/1\n")
    words = editing_lab.words(world, act)
    if "CAME" in command:
        (world.root / words[-1]).write_text(CAME)

    done = editing_lab.run(world, act)

    assert done.returncode == 0, done.stderr.decode()
    text = (world.series / "series").read_bytes()
    found = series.parse(text)
    rows = [row.removesuffix(b"\n") for row in text.split(b"\n")]
    named = {one.line for one in found.entries}
    others = [row for number, row in enumerate(rows, 1) if number not in named]
    assert others[: len(OTHERS)] == OTHERS
    assert not any(others[len(OTHERS) :])
    expected = {name: told for name, told in {**OLD, **more}.items() if told is not None}
    assert {one.name: told(one) for one in found.entries} == expected
    for name in OLD:  # a line that nothing was to be said of is the same, byte for byte
        if name not in more:
            line = next(row for row in SERIES.split(b"\n") if row.startswith(name.encode()))
            assert line in rows
    assert world.here("status").returncode == 0
    assert world.here("pop", "-a").returncode in (0, 2)
    if case != "remove":  # which leaves a patch without a diff
        pushed = world.here("push", "-a")
        assert pushed.returncode == 0, pushed.stderr
