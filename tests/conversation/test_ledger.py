"""What is the environment's needs no queue: undo, log and recover go by its receipts."""

import shutil
from dataclasses import replace

import pytest

from patchq.conversation import ledger, move, undo
from patchq.conversation.goal import Upto
from patchq.errors import ExitCode, PatchqError, UsageError
from patchq.queue import store
from tests.conversation.conftest import Talk
from tests.conversation.test_stacking import NAME, SQUARE, queue_of

pytestmark = pytest.mark.slow


@pytest.fixture
def other(talk, world):
    """A talk about a queue `a`, which comes before the world's own in the alphabet."""
    there = queue_of(world, "a", {"05-square.patch": SQUARE, "06-name.patch": NAME})
    return Talk(world.site, there.queue, talk.cache)


def aim_of(*talks: Talk):
    """Return the aim of a verb that names no queue, with these in sight."""
    queues = tuple(store.open(one.queue) for one in talks)
    return replace(talks[0].aim, queues=queues, name=None)


def undone(talk: Talk, aim):
    return talk.hold(undo.undo(aim, talk.ground))


def test_undo_takes_the_queue_of_the_last_receipt_whatever_the_alphabet_says(talk, other, world):
    other.push()
    before = world.tree()
    talk.push("1")
    aim = aim_of(other, talk)

    first = undone(talk, aim)
    assert world.tree() == before
    again = undone(talk, aim)

    assert (first.document["queue"], again.document["queue"]) == ("q", "q")
    assert again.document["top"] == "10-pi.patch"


def test_undo_of_a_push_needs_no_queue(talk, world):
    before = world.tree()
    talk.push()

    assert undone(talk, replace(talk.aim, queues=(), name=None)).exit_code == ExitCode.DONE
    assert world.tree() == before


@pytest.mark.parametrize("down_to", [None, "10-pi"])
@pytest.mark.parametrize("name", [None, "q"])
@pytest.mark.parametrize("renamed", [False, True])
def test_undo_of_a_pop_says_which_queue_has_the_texts(talk, world, down_to, name, renamed):
    talk.push()
    talk.pop(down_to)
    talk.queue = talk.queue.rename(talk.queue.with_name("new"))
    queues = (store.open(talk.queue),) if renamed else ()
    before = world.tree()

    with pytest.raises(PatchqError) as caught:
        undone(talk, replace(talk.aim, queues=queues, name=name))

    error = caught.value
    assert "needs queue q to be undone" in error.what
    assert "30-text.patch" in error.why
    assert "with their queue; no queue q is in sight" in error.why
    assert "patchq undo --queue /path/to/q" in error.mend
    assert world.tree() == before


def test_undo_with_nothing_done_has_nothing_to_do(talk, other):
    assert undone(talk, talk.aim).exit_code == ExitCode.NOTHING_TO_DO


def test_log_shows_the_receipts_of_all_queues_and_needs_none(talk, other):
    other.push()
    talk.push("1")
    talk.pop()
    other.pop()

    for aim in (aim_of(other, talk), replace(talk.aim, queues=(), name=None), talk.aim):
        report = talk.hold(ledger.log(aim))

        assert report.exit_code == ExitCode.DONE
        done = [(one["verb"], one["queue"]) for one in report.document["receipts"]]
        assert done == [("push", "a"), ("push", "q"), ("pop", "q"), ("pop", "a")]
        assert report.lines[1].startswith("    queue a, series 1.0")


def test_log_of_an_environment_without_receipts_and_queues_says_so(talk):
    report = talk.hold(ledger.log(replace(talk.aim, queues=(), name=None)))

    assert (report.exit_code, report.notes) == (ExitCode.NOTHING_TO_DO, ("No receipts",))


def test_log_of_a_queue_that_nobody_knows_is_usage(talk):
    with pytest.raises(UsageError, match="there is no queue else"):
        talk.hold(ledger.log(replace(talk.aim, queues=(), name="else")))


def test_a_verb_that_fits_several_queues_names_the_one_that_is_applied(talk, other):
    aim = aim_of(other, talk)

    with pytest.raises(UsageError) as none:
        talk.hold(move.push(aim, talk.ground, Upto(None, True)))
    talk.push("1")
    with pytest.raises(UsageError) as one:
        talk.hold(move.push(aim, talk.ground, Upto(None, True)))
    other.push("1")
    with pytest.raises(UsageError) as both:
        talk.hold(move.pop(aim, talk.ground, Upto(None, True)))

    assert none.value.mend == "patchq VERB --queue a, or: patchq VERB --queue q"
    assert one.value.mend == "patchq VERB --queue q"
    assert "patches of q are on here" in one.value.why
    assert both.value.mend == none.value.mend


def test_a_mend_for_drift_means_its_queue_where_several_are_applied(talk, other, world):
    other.push()
    talk.push("1")
    (world.site / "demo" / "shapes.py").write_text("mine = 1\n")

    report = talk.push("10-pi")

    assert any("mend: patchq refresh --queue q 10-pi.patch" in note for note in report.notes)


def test_the_receipt_of_a_recovery_names_who_asked_and_from_where(talk, world):
    talk.push()
    for path in (world.site / "demo", world.site / "demo-1.0.dist-info"):
        shutil.rmtree(path)

    talk.hold(undo.recover(talk.aim, talk.ground))
    (last,) = talk.hold(ledger.log(talk.aim)).document["receipts"][1:]

    assert (last["verb"], last["who"], last["whence"]) == ("recover", "somebody", "here")


def test_a_push_that_sets_a_record_aside_names_who_asked(talk, world):
    talk.push()
    for path in (world.site / "demo", world.site / "demo-1.0.dist-info"):
        shutil.rmtree(path)
    again = world.root / "again"
    world.run("fetch", "demo==1.0", "--into", again)
    for path in again.iterdir():
        shutil.move(path, world.site / path.name)

    talk.push()

    receipts = talk.hold(ledger.log(talk.aim)).document["receipts"]
    assert [(one["verb"], one["who"]) for one in receipts] == [
        ("push", "somebody"),
        ("recover", "somebody"),
        ("push", "somebody"),
    ]
