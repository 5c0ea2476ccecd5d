"""`lint` on a small queue: hunks that nothing guards, and what is not asked."""

import json

import pytest

from patchq.engine import diff, judge, sketch
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
        f"    mend: patchq sketch 10-pi --release 1.0 --queue {guarded.queue}, and take from it "
        f"into {guarded.queue}/post/10-pi.pyi what is missing",
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


def edited(world, old, new, name="10-pi.patch", path="demo/shapes.py", context=1):
    """Write a patch that makes `new` of `old` in a file of the world, as the only one."""
    below = worlds.FILES[path]
    assert old in below
    text = diff.unified(
        below.encode(), below.replace(old, new).encode(), path, context=context
    ).decode()
    world.write({name: text}, {})
    for path in (world.queue / "post").glob("*.pyi"):
        path.unlink()


SIDES = "        self.side = side\n"
NATURES = [
    ("three\n", "four\n", "demo/data.txt", "the file is not Python"),
    (SIDES, f"{SIDES}        # of its side\n", "demo/shapes.py", "it changes no code: comments"),
    ("metre = 1\nfoot = 0.3048\n", "foot = 0.3048\nmetre = 1\n", "demo/units.py", "it only moves"),
]


@pytest.mark.parametrize(("old", "new", "path", "why"), NATURES)
def test_a_patch_of_which_no_sketch_can_speak_needs_none(world, old, new, path, why):
    edited(world, old, new, path=path)

    done = lint(world)

    first, second = done.stdout.splitlines()[:2]
    assert first == "1.0 10-pi.patch: good, and needs no sketch"
    assert second.startswith(f"    no sketch can speak of it: {why}")
    assert (done.returncode, done.stderr) == (0, "")


def test_statements_that_move_from_hunk_to_hunk_need_no_sketch_either(world):
    below = worlds.FILES["demo/shapes.py"]
    square = below[below.index("\n\nclass Square") :]
    moved = below.replace(square, "").replace("\n\nclass Circle", f"{square}\n\nclass Circle")
    edited(world, below, moved)

    done = lint(world)

    assert "10-pi.patch: good, and needs no sketch\n" in done.stdout
    assert done.returncode == 0


def test_the_order_of_a_def_is_a_claim_where_each_line_alone_is_none(world):
    text = "def f(a):\n    a.lock()\n    a.read()\n"
    worlds_text = {"demo/units.py": f"{worlds.FILES['demo/units.py']}\n\n{text}"}
    below = worlds_text["demo/units.py"]
    above = below.replace("    a.lock()\n    a.read()\n", "    a.read()\n    a.lock()\n")
    said = sketch.load(
        b"# in demo/units.py\ndef f(a):\n    a.read()\n    a.lock()\n", name="post/10.pyi"
    )
    idle = sketch.load(b"# in demo/units.py\ndef f(a):\n    a.read()\n", name="post/10.pyi")

    found = [
        judge.lint(
            judge.judge(
                {"demo/units.py": below.encode()}, {"demo/units.py": above.encode()}, one,
                "1.0", lambda path: None,
            )
        )
        for one in (said, idle)
    ]  # fmt: skip

    assert found[0] == ()
    assert [one.kind for one in found[1]] == ["idle"]


def test_an_unreadable_sketch_is_its_patchs_fault_and_hides_no_other(guarded):
    (guarded.queue / "post" / "10-pi.pyi").write_text("# in demo.shapes\nx = 1\n")

    done = lint(guarded)
    document = json.loads(lint(guarded, "--json").stdout)

    assert done.stdout.splitlines()[:4] == [
        "1.0 10-pi.patch: 1 fault",
        "    post/10-pi.pyi:1: the sketch post/10-pi.pyi cannot be read, line 1: "
        "'# in demo.shapes' begins no section",
        "    mend: name the file, not the module: # in demo/shapes.py; then: "
        f"patchq lint --queue {guarded.queue} --release 1.0",
        "1.0 20-foot.patch: 1 fault",
    ]
    first, second = document["patches"]
    assert len(first["faults"]) == len(first["details"]) == 1
    assert first["details"][0]["path"] == "post/10-pi.pyi"
    assert first["details"][0]["line"] == 1
    assert first["details"][0]["mend"].startswith("name the file")
    assert second["details"][0]["path"] == "demo/more.py"
    assert "series.lock not written" in done.stdout
    assert done.returncode == 1


def test_an_unreadable_patch_is_its_own_fault_and_hides_no_other(guarded):
    (guarded.series / "20-foot.patch").write_text("--- a/demo/shapes.py\n+++ b/x\n@@ nonsense\n")

    done = lint(guarded, "--json")
    first, second = json.loads(done.stdout)["patches"]

    assert (first["faults"], first["claims"]) == ([], 2)
    assert "20-foot.patch" in second["faults"][0]
    assert second["details"][0]["mend"].endswith("--release 1.0")
    assert done.returncode == 1


def test_a_patch_without_a_sketch_is_told_how_to_get_one(guarded):
    (guarded.queue / "post" / "10-pi.pyi").unlink()

    done = lint(guarded)

    assert (
        f"    mend: patchq sketch 10-pi --release 1.0 --queue {guarded.queue} --write\n"
    ) in done.stdout


def test_a_sketch_without_a_patch_is_a_fault_that_names_the_nearest(guarded):
    post = guarded.queue / "post"
    (post / "10-pi.pyi").rename(post / "10-pie.pyi")
    (guarded.series / "20-fot.pyi").write_text("")

    done = lint(guarded)
    document = json.loads(lint(guarded, "--json").stdout)

    assert done.stderr.splitlines() == [
        "post/10-pie.pyi: it belongs to no patch of any series; there is a patch "
        f"10-pi; mend: mv {post}/10-pie.pyi {post}/10-pi.pyi",
        "1.0/20-fot.pyi: it belongs to no patch of the series for 1.0; there is a "
        f"patch 20-foot; mend: mv {guarded.series}/20-fot.pyi {guarded.series}/20-foot.pyi",
    ]
    assert [one["path"] for one in document["details"]] == ["post/10-pie.pyi", "1.0/20-fot.pyi"]
    assert done.returncode == 1


def test_givens_are_not_counted_as_claims(guarded):
    path = guarded.queue / "post" / "10-pi.pyi"
    path.write_text(path.read_text() + "\n\nclass Square: ...  # given\n")

    assert "1.0 10-pi.patch: good, 2 claims false below" in lint(guarded).stdout
