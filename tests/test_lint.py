"""`lint` on a small queue: hunks that nothing guards, and what is not asked."""

import json

import pytest

from tests import world as worlds

pytestmark = pytest.mark.slow

GOOD = "good, 2 claims false below and true above, 2 of 2 hunks guarded"


@pytest.fixture
def guarded(world):
    """A world with the two patches that have a sketch."""
    world.write(
        {name: text for name, text in worlds.PATCHES.items() if name != "30-text.patch"}, {}
    )
    return world


def lint(world, *more):
    return world.run("lint", "--queue", world.queue, "--write", *more)


def test_a_queue_whose_hunks_are_all_guarded_is_good(guarded):
    done = lint(guarded)

    assert done.stdout.splitlines()[:2] == [
        f"1.0 10-pi.patch: {GOOD}",
        "1.0 20-foot.patch: 1 fault",
    ]
    # The sketch of the second patch does not speak of the file that it adds.
    assert "    demo/more.py:1: unguarded: hunk 1 can be taken back, and nothing fails; " in (
        done.stdout
    )
    assert done.returncode == 1


def test_a_hunk_is_listed_by_patch_file_line_and_heading(guarded):
    sketch = guarded.queue / "post" / "10-pi.pyi"
    sketch.write_text("# in demo/shapes.py\nfrom math import pi\n")
    more = guarded.queue / "post" / "20-foot.pyi"
    more.write_text(more.read_text() + "\n\n# in demo/more.py\nUNIT = ...\n")

    done = lint(guarded)
    document = json.loads(lint(guarded, "--json").stdout)

    assert done.stdout.splitlines() == [
        "1.0 10-pi.patch: 1 fault",
        "    demo/shapes.py:11: unguarded: hunk 2 (`class Circle:`) can be taken back, and "
        "nothing fails; the sketch asks for nothing that it brings",
        "1.0 20-foot.patch: good, 3 claims false below and true above, 3 of 3 hunks guarded",
        "1.0 series.lock written, in spite of the faults",
    ]
    first, second = document["patches"]
    assert [hunk["word"] for hunk in first["hunks"]] == ["guarded", "unguarded"]
    assert first["hunks"][0] == {
        "path": "demo/shapes.py",
        "hunk": 1,
        "line": 1,
        "heading": "",
        "word": "guarded",
        "by": "post/10-pi.pyi:2: `from math import pi`",
    }
    assert [hunk["by"] for hunk in second["hunks"]] == [
        "post/20-foot.pyi:2: `from demo.units import foot`",
        "post/20-foot.pyi:7: `return _ / foot` in Square.area",
        "post/20-foot.pyi:11: `UNIT = ...`",
    ]


def test_what_no_sketch_can_guard_is_a_note_and_no_fault(guarded):
    more = guarded.queue / "post" / "20-foot.pyi"
    more.write_text(more.read_text() + "\n\n# in demo/more.py\nUNIT = ...\n")
    text = worlds.PI + worlds.TEXT.split("\n\n", 1)[1]
    (guarded.series / "10-pi.patch").write_text(text)

    done = lint(guarded)

    assert done.stdout.splitlines()[:2] == [
        "1.0 10-pi.patch: good, 2 claims false below and true above, 2 of 3 hunks guarded",
        "    demo/data.txt:4: hunk 1 cannot be guarded: the file is not Python",
    ]
    assert done.returncode == 0


def test_a_line_for_other_releases_is_named_as_not_asked(guarded):
    sketch = guarded.queue / "post" / "10-pi.pyi"
    sketch.write_text(sketch.read_text() + "\n    # when >=2: a note\n    def round(self): ...\n")

    done = lint(guarded)

    assert "    not asked of 1.0: `def round(self): ...` in Circle (line 10, when >=2)\n" in (
        done.stdout
    )
