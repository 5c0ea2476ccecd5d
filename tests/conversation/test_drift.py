"""A stack that drifted does not move; bytes that nobody recorded are told for what they are."""

import shutil
import subprocess

import pytest

from patchq.conversation import move, names
from patchq.errors import ExitCode
from tests.conversation.conftest import Talk
from tests.world import FILES, World

pytestmark = pytest.mark.slow

PRISTINE = FILES["demo/shapes.py"]


def drifted(report, *paths: str) -> str:
    """Check that a report is a refusal for drift of these files; return its notes."""
    assert report.exit_code == ExitCode.CONFLICT
    found = report.document["conflicts"]
    assert [(one["kind"], one["path"]) for one in found] == [("drift", path) for path in paths]
    return "\n".join(report.notes)


@pytest.mark.parametrize("word", [None, "1", "30-text", "0"])
@pytest.mark.parametrize("dry_run", [False, True])
def test_a_push_onto_a_whole_stack_that_drifted_says_so(talk, world, word, dry_run):
    talk.push()
    (world.site / "demo" / "shapes.py").write_text(PRISTINE)
    before = world.tree()

    talk.dry_run = dry_run
    notes = drifted(talk.push(word), "demo/shapes.py")

    assert "drift: demo/shapes.py was edited after 20-foot.patch was pushed" in notes
    assert "against what the record says:" in notes
    assert "-        return pi * self.radius**2 * metre" in notes
    assert "+        return 3 * self.radius**2 * metre" in notes
    assert "mend: patchq refresh 20-foot.patch   # keeps the edit there; patchq diff -z" in notes
    assert "Nothing was changed" in notes
    assert "commit" not in talk.asked
    assert world.tree() == before


@pytest.mark.parametrize("name", ["30-text", "20-foot"])
def test_a_goto_on_a_stack_that_drifted_says_so(talk, world, name):
    talk.push()
    (world.site / "demo" / "more.py").unlink()

    report = talk.hold(move.goto(talk.aim, talk.ground, name))

    assert "-UNIT = Circle(1)" in drifted(report, "demo/more.py")


def test_a_push_whose_patch_does_not_touch_what_drifted_is_refused_too(talk, world):
    talk.push("20-foot")
    (world.site / "demo" / "shapes.py").write_text(PRISTINE)
    before = world.tree()

    drifted(talk.push("1"), "demo/shapes.py")

    assert world.tree() == before


def test_drift_is_listed_beside_whatever_else_keeps_a_push_back(talk, world):
    talk.push("20-foot")
    (world.site / "demo" / "shapes.py").write_text(PRISTINE)
    (world.site / "demo" / "data.txt").write_text("mine\n")

    drifted(talk.push(), "demo/shapes.py", "demo/data.txt")


def test_a_pop_shows_the_edit_that_keeps_it_back(talk, world):
    talk.push()
    path = world.site / "demo" / "shapes.py"
    path.write_text(path.read_text() + "# by hand\n")

    assert "+# by hand" in drifted(talk.pop("1"), "demo/shapes.py")


def test_drift_stays_drift_where_the_record_cannot_show_it(talk, world):
    talk.push()
    (world.site / "demo" / "shapes.py").write_text(PRISTINE)
    shutil.rmtree(world.site / ".patchq" / "demo" / "originals")

    assert "no diff: " in drifted(talk.push(), "demo/shapes.py")


def test_a_mode_that_drifted_is_drift(talk, world):
    talk.push()
    (world.site / "demo" / "shapes.py").chmod(0o755)

    assert "its mode is not" in drifted(talk.push(), "demo/shapes.py")


@pytest.mark.parametrize(
    ("ask", "code"),
    [
        (lambda aim: names.applied(aim, None), ExitCode.DONE),
        (names.top, ExitCode.DONE),
        (lambda aim: names.series(aim, True), ExitCode.DONE),
        (lambda aim: names.unapplied(aim, None), ExitCode.FAILED),
        (lambda aim: names.next_(aim, None), ExitCode.NOTHING_TO_DO),
        (lambda aim: names.previous(aim, None), ExitCode.DONE),
    ],
)
def test_verbs_that_name_patches_note_drift_and_keep_their_exit_codes(talk, world, ask, code):
    talk.push()
    whole = talk.hold(ask(talk.aim))
    (world.site / "demo" / "shapes.py").write_text(PRISTINE)

    report = talk.hold(ask(talk.aim))

    assert (whole.exit_code, report.exit_code) == (code, code)
    assert report.lines == whole.lines
    assert report.notes == (
        *whole.notes,
        "drift: demo/shapes.py was edited; mend: patchq diff -z   # shows it",
    )


def unrecorded(talk: Talk, world: World, word: str | None = None) -> None:
    """Push, then lose the record, as a copy without `.patchq` does."""
    talk.push(word)
    shutil.rmtree(world.site / ".patchq")


def test_patches_that_came_without_a_record_are_there_up_to_the_last_one(talk, world):
    unrecorded(talk, world, "20-foot")
    before = world.tree()

    report = talk.push()

    assert [(c["kind"], c["path"]) for c in report.document["conflicts"]] == [
        ("already there", "demo/shapes.py"),
        ("already there", "demo/more.py"),
    ]
    assert "demo/shapes.py is as after 20-foot.patch already, and no receipt" in report.notes[0]
    mends = [line for note in report.notes for line in note.splitlines() if "mend: " in line]
    assert all("patchq push --adopt" in mend and "pop -a" not in mend for mend in mends)
    assert world.tree() == before


def test_a_part_of_the_files_without_a_record_is_partial(talk, world):
    unrecorded(talk, world, "20-foot")
    (world.site / "demo" / "more.py").unlink()

    (conflict,) = talk.push().document["conflicts"]

    assert (conflict["kind"], conflict["path"]) == ("partial", "demo/shapes.py")
    assert "demo/shapes.py has 20-foot.patch in it, other files do not" in conflict["message"]


def commit(world: World) -> None:
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@x", "-C", str(world.queue)]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "one"]):
        subprocess.run([*git, *words], check=True, capture_output=True)


def test_bytes_of_an_older_commit_of_the_queue_are_never_merged_upstream(talk, world):
    commit(world)
    unrecorded(talk, world, "10-pi")
    path = world.series / "10-pi.patch"
    path.write_text(
        path.read_text().replace("+from math import pi\n", "+from math import pi  # 2\n")
    )
    foot = world.series / "20-foot.patch"
    foot.write_text(
        foot.read_text().replace(" from math import pi\n", " from math import pi  # 2\n")
    )
    world.run("lint", "--queue", world.queue, "--write")
    commit(world)

    (conflict,) = talk.push().document["conflicts"]

    assert conflict["kind"] == "already there"
    assert "is as after 10-pi.patch of commit " in conflict["message"]
    assert "(1 commit of this queue ago)" in conflict["message"]


def test_bytes_of_a_queue_without_a_history_are_drift(talk, world):
    unrecorded(talk, world, "10-pi")
    path = world.site / "demo" / "shapes.py"
    path.write_text(path.read_text().replace("import pi\n", "import pi  # 2\n"))

    notes = drifted(talk.push("1"), "demo/shapes.py")

    assert "10-pi.pyi says of it holds; its lines overlap the patch's" in notes
