"""A verb that found a transaction cut short says what became of it, also where that was all."""

import pytest

from patchq.conversation import move, undo
from patchq.conversation.goal import Upto
from patchq.errors import ExitCode
from tests.conversation.test_audit import UNDECIDED, WITHIN, kill

FINISHED = (
    "The interrupted transaction was finished first. patchq status names who must be restarted."
)
UNDONE = "The interrupted transaction was undone first."


def test_a_push_that_finishes_one_has_nothing_else_to_do_and_says_so(talk):
    kill(talk, *WITHIN)

    report = talk.push()
    again = talk.push()

    assert report.exit_code is again.exit_code is ExitCode.NOTHING_TO_DO
    assert report.notes == (again.notes[0], FINISHED)
    assert report.document["recovered"] == "finished"
    assert "recovered" not in again.document
    assert "four" in (talk.site / "demo/data.txt").read_text()


@pytest.mark.parametrize(
    ("cut", "word", "note"), [(WITHIN, "finished", FINISHED), (UNDECIDED, "undone", UNDONE)]
)
def test_what_moves_after_that_says_it_too(talk, cut, word, note):
    kill(talk, *cut)

    report = talk.hold(move.goto(talk.aim, talk.ground, "10-pi.patch"))
    later = talk.hold(move.pop(talk.aim, talk.ground, Upto("1", False)))

    assert report.exit_code is ExitCode.DONE
    assert note in report.notes
    assert report.document["recovered"] == word
    assert "recovered" not in later.document


def test_an_undo_of_what_it_finished_says_so(talk):
    kill(talk, *WITHIN)

    report = talk.hold(undo.undo(talk.aim, talk.ground))

    assert FINISHED in report.notes
    assert report.exit_code is ExitCode.DONE
