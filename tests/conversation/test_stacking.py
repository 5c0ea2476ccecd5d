"""Two queues on one file: stacked where their lines are apart, refused where they meet."""

import json
import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from patchq.conversation import differing, move, names, overlap, touching, undo
from patchq.conversation.diffform import Form
from patchq.engine import diff
from patchq.errors import ExitCode, PatchqError
from patchq.queue import lock as locks
from patchq.queue import patchfile
from tests.conversation.conftest import Talk
from tests.world import World

pytestmark = pytest.mark.slow

SQUARE = """\
Description: Squares without powers

--- a/demo/shapes.py
+++ b/demo/shapes.py
@@ -14,4 +14,4 @@
         self.side = side
 
     def area(self):
-        return self.side**2 * metre
+        return self.side * self.side * metre
"""
NAME = """\
Description: Squares have a name

--- a/demo/shapes.py
+++ b/demo/shapes.py
@@ -12,6 +12,7 @@
 class Square:
     def __init__(self, side):
         self.side = side
+        self.name = "square"
 
     def area(self):
         return self.side * self.side * metre
"""
TOP = """\
Description: A docstring

--- a/demo/shapes.py
+++ b/demo/shapes.py
@@ -1,3 +1,5 @@
+\"\"\"Shapes.\"\"\"
+
 from .units import metre
 
 
"""


def queue_of(world: World, name: str, patches: dict[str, str], sketches=None) -> World:
    """Write another queue beside the world's, with a lock; return the world as it sees it."""

    class Other(World):
        @property
        def queue(self) -> Path:
            return self.root / "queues" / name

    other = Other(world.root)
    other.write(patches, sketches or {})
    done = world.run("lint", "--queue", other.queue, "--write")
    assert (other.series / "series.lock").is_file(), done.stdout + done.stderr
    return other


@pytest.fixture
def other(talk, world):
    """A talk about queue `r`, whose two patches change the class below `q`'s first patch."""
    made = queue_of(world, "r", {"05-square.patch": SQUARE, "06-name.patch": NAME})
    return replace(talk, queue=made.queue)


def text(talk: Talk) -> str:
    return (talk.site / "demo" / "shapes.py").read_text()


def test_a_queue_is_put_on_another_ones_patches_and_says_so(talk, other):
    other.push()

    report = talk.push("1")

    assert report.exit_code == ExitCode.DONE
    assert report.notes[:2] == (
        "10-pi.patch is stacked on 05-square.patch of queue r in demo/shapes.py (7 lines apart)",
        "10-pi.patch is stacked on 06-name.patch of queue r in demo/shapes.py (5 lines apart)",
    )
    assert report.document["stacked"][0] == {
        "patch": "10-pi.patch",
        "path": "demo/shapes.py",
        "on": {"queue": "r", "patch": "05-square.patch"},
        "gap": 7,
        "moved": [0, 0],
    }
    assert "return pi * self.radius**2" in text(talk)
    assert 'self.name = "square"' in text(talk)
    assert talk.asked == ["survey", "survey", "read", "commit"]


def test_lines_that_have_moved_are_found_by_what_lies_above_them(talk, other):
    talk.push("1")

    report = other.push()

    assert report.notes == (
        "05-square.patch is stacked on 10-pi.patch of queue q in demo/shapes.py"
        " (7 lines apart), moved by +2 lines",
        "06-name.patch is stacked on 10-pi.patch of queue q in demo/shapes.py"
        " (5 lines apart), moved by +2 lines",
    )


def test_either_order_gives_the_same_bytes_and_pop_gives_all_of_them_back(talk, other, world):
    results = []
    for order in ((talk, other, other), (other, other, talk)):
        trees = [world.tree()]
        for one in order:
            assert one.push("1").exit_code == ExitCode.DONE
            trees.append(world.tree())
        results.append(trees[-1])
        for one in reversed(order):
            assert world.tree() == trees.pop()
            assert one.pop("1").exit_code == ExitCode.DONE
        assert world.tree() == trees.pop()

    assert results[0] == results[1]


def test_a_dry_run_says_what_it_would_stack_on_and_changes_nothing(talk, other, world):
    other.push()
    before = world.tree()

    talk.dry_run = True
    report = talk.push("1")

    assert "10-pi.patch is stacked on 05-square.patch of queue r" in report.notes[0]
    assert "commit" not in talk.asked
    assert world.tree() == before


def test_lines_that_meet_are_a_conflict_that_says_whose_they_are(talk, other, world):
    other.push()
    before = world.tree()

    report = talk.push()

    assert report.exit_code == ExitCode.CONFLICT
    assert [(c["kind"], c["patch"], c["other"]) for c in report.document["conflicts"]] == [
        ("another queue's patch", "20-foot.patch", "r"),
        ("another queue's patch", "20-foot.patch", "r"),
    ]
    first, second = report.document["conflicts"]
    assert first["message"] == (
        "demo/shapes.py: 20-foot.patch changes lines that 05-square.patch of queue r below it"
        " changes, too"
    )
    assert (
        "in the release's file: 20-foot.patch line 17, 05-square.patch line 17"
        in (first["detail"])
    )
    assert "too close to 06-name.patch of queue r" in second["message"]
    assert "  mend: patchq pop -a --queue r" in "\n".join(report.notes)
    assert world.tree() == before


def test_a_patch_below_another_queues_comes_off_after_it(talk, other, world):
    before = world.tree()
    talk.push("1")
    other.push("1")
    both = world.tree()

    refused = talk.pop()
    kept = world.tree()
    other.pop()
    done = talk.pop()

    assert refused.exit_code == ExitCode.CONFLICT
    (conflict,) = refused.document["conflicts"]
    assert "05-square.patch of queue r above 10-pi.patch" in conflict["message"]
    assert "mend: patchq pop -a --queue r" in "\n".join(refused.notes)
    assert kept == both
    assert done.exit_code == ExitCode.DONE
    assert world.tree() == before


def test_queues_that_take_turns_come_off_in_turns(talk, other, world):
    trees = [world.tree()]
    for one in (other, talk, other):
        assert one.push("1").exit_code == ExitCode.DONE
        trees.append(world.tree())

    refused = [other.pop().exit_code, talk.pop().exit_code]
    for one in (other, talk, other):
        assert world.tree() == trees.pop()
        assert one.pop("1").exit_code == ExitCode.DONE

    assert refused == [ExitCode.CONFLICT] * 2
    assert world.tree() == trees.pop()


def test_what_nobody_recorded_stays_drift(talk, other, world):
    other.push()
    path = talk.site / "demo" / "shapes.py"
    path.write_text(path.read_text().replace("3 *", "3.1 *"))
    before = world.tree()

    report = talk.push("1")

    (conflict,) = report.document["conflicts"]
    assert conflict["kind"] == "drift"
    assert "its lines overlap the patch's" in conflict["detail"]
    assert "self.name" not in conflict["detail"].replace(' self.name = "square"', "")
    assert world.tree() == before


def test_drift_beside_a_shared_file_does_not_blame_the_other_queue(talk, other):
    other.push()
    (talk.site / "demo" / "more.py").write_text("mine = 1\n")

    report = talk.push("2")

    assert {(c["kind"], c["path"]) for c in report.document["conflicts"]} == {
        ("another queue's patch", "demo/shapes.py"),
        ("drift", "demo/more.py"),
    }


def test_the_verbs_that_look_know_both_queues(talk, other, world):
    other.push()
    talk.push("1")

    status = talk.hold(names.status(talk.aim))
    mine = talk.hold(differing.diff(talk.aim, differing.Ask("10-pi"), Form()))
    its = other.hold(differing.diff(other.aim, differing.Ask("05-square"), Form()))
    tops = [one.hold(names.top(one.aim)).lines for one in (talk, other)]
    files = talk.hold(touching.files(talk.aim, touching.Ask()))

    assert status.exit_code == ExitCode.DONE
    assert "also applied: 06-name.patch of queue r" in status.lines
    assert "+from math import pi" in mine.lines
    assert not any("name" in line for line in mine.lines)
    assert "+        return self.side * self.side * metre" in its.lines
    assert not any("pi" in line for line in its.lines)
    assert tops == [("10-pi.patch",), ("06-name.patch",)]
    assert files.lines == ("demo/shapes.py",)


def test_goto_and_undo_go_up_and_down_on_another_queue(talk, other, world):
    talk.push("1")
    before = world.tree()
    other.push()
    after = world.tree()

    down = other.hold(move.goto(other.aim, other.ground, "05-square"))
    up = other.hold(move.goto(other.aim, other.ground, "06-name"))
    assert world.tree() == after
    other.pop()
    undone = other.hold(undo.undo(other.aim, other.ground))
    assert world.tree() == after
    taken = other.hold(undo.undo(other.aim, other.ground))

    assert down.document["top"] == "05-square.patch"
    assert "moved by +2 lines" in up.notes[0]
    assert len(undone.document["stacked"]) == 2
    assert taken.document["top"] is None
    assert world.tree() == before


def test_the_series_of_a_queue_is_chosen_by_what_lies_below_the_stack(talk, other):
    other.push()

    status = talk.hold(names.status(talk.aim))

    assert status.document["chosen"] == "content"
    assert status.document["drifted"] == []


def test_what_is_stacked_is_judged_where_it_is_and_only_once(talk, other, world):
    other.push()
    talk.push("1")
    talk.pop()
    verdicts = len(list((talk.cache / "verdicts").glob("*.json")))

    talk.push("1")

    assert len(list((talk.cache / "verdicts").glob("*.json"))) == verdicts


def test_a_patch_that_is_wrong_on_another_queues_is_not_put_there(talk, world):
    """The lines are apart, and yet the name is gone that the upper patch uses."""
    lower = queue_of(
        world,
        "lower",
        {
            "01-one.patch": "--- a/demo/units.py\n+++ b/demo/units.py\n"
            "@@ -1,2 +1,2 @@\n metre = 1\n-foot = 0.3048\n+feet = 0.3048\n",
            "02-two.patch": TOP,
        },
    )
    upper = queue_of(
        world,
        "upper",
        {
            "01-use.patch": "--- a/demo/shapes.py\n+++ b/demo/shapes.py\n@@ -14,4 +14,6 @@\n"
            "         self.side = side\n \n     def area(self):\n"
            "-        return self.side**2 * metre\n+        from .units import foot\n+\n"
            "+        return self.side**2 * metre / foot\n"
        },
    )
    replace(talk, queue=lower.queue).push()
    before = world.tree()

    report = replace(talk, queue=upper.queue).push()

    assert report.document["conflicts"][0]["kind"] == "judgement"
    assert "foot" in report.document["conflicts"][0]["message"]
    assert world.tree() == before


def test_a_pop_rebuilds_what_patches_of_other_files_lead_to(talk, world):
    """The file between is made by a patch that also changes a file of the patch below."""
    units, data = "demo/units.py", "demo/data.txt"
    made = queue_of(
        world,
        "chain",
        {
            "1.patch": f"--- a/{data}\n+++ b/{data}\n@@ -1,3 +1,4 @@\n+zero\n one\n two\n three\n",
            "2.patch": f"--- a/{data}\n+++ b/{data}\n@@ -1,4 +1,5 @@\n zero\n+half\n one\n two\n"
            f" three\n--- a/{units}\n+++ b/{units}\n@@ -1,2 +1,3 @@\n metre = 1\n+yard = 0.9144\n"
            " foot = 0.3048\n",
            "3.patch": f"--- a/{units}\n+++ b/{units}\n@@ -1,3 +1,4 @@\n+mile = 1609.344\n"
            " metre = 1\n yard = 0.9144\n foot = 0.3048\n",
        },
    )
    chain = replace(talk, queue=made.queue)
    chain.push("2")
    below = world.tree()
    chain.push("1")

    report = chain.pop("1")

    assert report.exit_code == ExitCode.DONE
    assert world.tree() == below


def both(talk: Talk, other: Talk) -> Talk:
    """Return a talk that has both queues in sight and names none."""

    class Both(Talk):
        @property
        def aim(self):
            mine, its = talk.aim, other.aim
            return replace(mine, queues=(*mine.queues, *its.queues), name=None)

    return Both(talk.site, talk.queue, talk.cache)


def test_overlap_shows_the_pairs_before_any_push_those_between_queues_first(talk, other):
    two = both(talk, other)

    report = two.hold(overlap.overlap(two.aim, ()))

    assert report.exit_code == ExitCode.DONE
    assert report.lines == (
        "demo/shapes.py: 10-pi.patch (q) line 9 and 05-square.patch (r) line 17: apart (7 lines)",
        "demo/shapes.py: 20-foot.patch (q) line 17 and 05-square.patch (r) line 17: overlap",
        "demo/shapes.py: 10-pi.patch (q) line 9 and 06-name.patch (r) after line 14:"
        " apart (5 lines)",
        "demo/shapes.py: 20-foot.patch (q) line 17 and 06-name.patch (r) after line 14:"
        " too close (2 lines, within the context)",
        "demo/shapes.py: 10-pi.patch (q) before line 1 and 20-foot.patch (q) line 1:"
        " overlap, in order",
        "demo/shapes.py: 05-square.patch (r) line 17 and 06-name.patch (r) after line 14:"
        " too close (2 lines, within the context), in order",
        "4 pairs between queues, 2 can not be stacked",
    )
    assert two.asked == ["survey"]


def test_overlap_says_the_same_of_what_is_applied(talk, other):
    two = both(talk, other)
    wanted = {str(line) for line in two.hold(overlap.overlap(two.aim, ())).lines}
    other.push()
    talk.push("1")

    report = two.hold(overlap.overlap(two.aim, ()))

    swapped = [p for p in report.document["pairs"] if p["between"]]
    assert len(report.lines) == len(wanted)
    assert [(p["word"], p["gap"]) for p in swapped] == [
        ("apart", 7),
        ("apart", 5),
        ("overlap", 0),
        ("too close", 2),
    ]
    assert [one["applied"] for one in swapped[0]["patches"]] == [True, True]
    assert [one["applied"] for one in swapped[2]["patches"]] == [True, False]


def test_overlap_of_one_queue_is_with_the_stack_and_of_named_patches_theirs_only(talk, other):
    other.push("1")

    report = talk.hold(overlap.overlap(talk.aim, ("20-foot",)))

    assert [line.split(": ")[1:] for line in report.lines[:-1]] == [
        ["05-square.patch (r) line 17 and 20-foot.patch (q) line 17", "overlap"],
        ["10-pi.patch (q) before line 1 and 20-foot.patch (q) line 1", "overlap, in order"],
    ]
    with pytest.raises(PatchqError, match="Patch nonesuch is not in sight"):
        talk.hold(overlap.overlap(talk.aim, ("nonesuch",)))


def test_overlap_has_nothing_to_say_where_no_two_patches_share_a_file(talk, world):
    made = queue_of(
        world, "single", {"30-text.patch": (world.series / "30-text.patch").read_text()}
    )
    single = replace(talk, queue=made.queue)

    report = single.hold(overlap.overlap(single.aim, ()))

    assert report.exit_code == ExitCode.NOTHING_TO_DO
    assert report.notes == ("No two patches touch the same file",)


BASE = b"".join(
    b"%s\n" % word for word in (b"a b c a b { } a c b a { a b } c a b c b" * 2).split()
)
EDIT = st.tuples(
    st.integers(0, 38), st.integers(0, 2), st.lists(st.sampled_from(["a", "new"]), max_size=3)
)


def edited(base: bytes, edit: tuple[int, int, list[str]]) -> bytes:
    start, count, new = edit
    lines = base.splitlines(keepends=True)
    lines[start : start + count] = [f"{word}\n".encode() for word in new]
    return b"".join(lines)


def write_queue(folder: Path, texts: list[bytes]) -> None:
    """Write a queue whose patches lead from each text of demo/data.txt to the next."""
    series = folder / "1.0"
    series.mkdir(parents=True)
    (folder / "queue.toml").write_text('distribution = "demo"\nsummary = "x"\n')
    patches = []
    for number, (before, after) in enumerate(pairwise(texts)):
        data = diff.unified(before, after, "demo/data.txt")
        if data:
            (series / f"{number}.patch").write_bytes(data)
            patches.append(patchfile.load(series / f"{number}.patch"))
    (series / "series").write_text("".join(f"{one.name}\n" for one in patches))
    files = {"demo/data.txt": (texts[0], False)}
    lock = locks.make("demo", "1.0", "0" * 40, patches, read=files.get)
    (series / "series.lock").write_bytes(locks.format(lock))


@given(st.tuples(EDIT, EDIT), st.tuples(EDIT, EDIT))
@settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_two_queues_give_the_same_bytes_in_either_order_or_are_refused(
    pattern, tmp_path_factory, first, second
):
    root = tmp_path_factory.mktemp("pair")
    talks, sites = {}, []
    for name, (one, two) in (("p", first), ("q", second)):
        middle = edited(BASE, one)
        write_queue(root / name, [BASE, middle, edited(middle, two)])
    for order in ("pq", "qp"):
        site = root / order
        shutil.copytree(pattern.site, site)
        (site / "demo" / "data.txt").write_bytes(BASE)
        talks = {name: Talk(site, root / name, root / "cache") for name in "pq"}
        before = (site / "demo" / "data.txt").read_bytes()
        codes = []
        for name in order:
            under = (site / "demo" / "data.txt").read_bytes()
            report = talks[name].push()
            codes.append(report.exit_code)
            if report.exit_code == ExitCode.CONFLICT:
                assert (site / "demo" / "data.txt").read_bytes() == under
                assert {c["kind"] for c in report.document["conflicts"]} == {
                    "another queue's patch"
                }
        sites.append((codes[1] == ExitCode.CONFLICT, (site / "demo" / "data.txt").read_bytes()))
        for name in reversed(order):
            talks[name].pop()
        assert (site / "demo" / "data.txt").read_bytes() == before
        assert not (site / ".patchq" / "demo" / "state.json").exists()
    shutil.rmtree(root)

    assert sites[0][0] == sites[1][0]
    assert sites[0] == sites[1] or sites[0][0]


def test_the_state_says_what_the_bytes_are(talk, other, world):
    other.push()
    talk.push("1")

    state = json.loads((talk.site / ".patchq" / "demo" / "state.json").read_text())

    chain = [
        (before, after)
        for patch in state["stack"]
        for path, before, after in patch["changes"]
        if path == "demo/shapes.py"
    ]
    assert [after for _, after in chain[:-1]] == [before for before, _ in chain[1:]]
