"""One word for each host, one number for the shell."""

import pytest

from patchq.errors import ConflictError, ExitCode, HostError, PatchqError, UsageError
from patchq.outcome import NotDone, Outcome, Stopped, Word, exit_code, word_for, word_of
from patchq.report import Report
from patchq.transport.channel import AgentError
from patchq.transport.endings import LinkLost, NoHostAgent, UnknownOutcome


def made(kind, *first):
    return kind(*first, "what", why="why", mend="mend")


@pytest.mark.parametrize(
    ("report", "word"),
    [
        (Report(), Word.DONE),
        (Report(exit_code=ExitCode.FINDING), Word.DONE),
        (Report(exit_code=ExitCode.NOTHING_TO_DO), Word.NOTHING),
        (Report(exit_code=ExitCode.CONFLICT), Word.CONFLICT),
        (Report(document={"conflicts": [{}]}, exit_code=ExitCode.FAILED), Word.REFUSED),
        (Report(document={"patches": []}, exit_code=ExitCode.FAILED), Word.DONE),
        (Report(document={"taken_off": True}, exit_code=ExitCode.FAILED), Word.TAKEN_BACK),
        (Report(document={"taken_off": False}, exit_code=ExitCode.FAILED), Word.FAILED),
    ],
)
def test_an_answer_has_one_word(report, word):
    assert word_of(report) is word


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (made(UnknownOutcome), Word.UNKNOWN),
        (made(LinkLost), Word.FAILED),
        (made(Stopped), Word.FAILED),
        (made(NotDone), Word.FAILED),
        (made(NoHostAgent), Word.UNREACHABLE),
        (made(HostError), Word.UNREACHABLE),
        (made(ConflictError), Word.CONFLICT),
        (made(AgentError, "changed"), Word.CONFLICT),
        (made(AgentError, "no-space"), Word.FAILED),
        (made(AgentError, "bug"), Word.FAILED),
        (made(AgentError, "locked"), Word.REFUSED),
        (made(PatchqError), Word.REFUSED),
        (made(UsageError), Word.REFUSED),
    ],
)
def test_an_error_has_one_word(error, word):
    assert word_for(error) is word


def outcome(word, code=None):
    return Outcome("h", word, None if code is None else Report(exit_code=code))


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ([], 0),
        ([outcome(Word.DONE, ExitCode.DONE), outcome(Word.NOTHING, ExitCode.NOTHING_TO_DO)], 0),
        ([outcome(Word.NOTHING, ExitCode.NOTHING_TO_DO)], 0),
        ([outcome(Word.DONE, ExitCode.FINDING), outcome(Word.DONE, ExitCode.DONE)], 5),
        ([outcome(Word.DONE, ExitCode.FAILED), outcome(Word.DONE, ExitCode.FINDING)], 1),
        ([outcome(Word.REFUSED), outcome(Word.DONE, ExitCode.FINDING)], 1),
        ([outcome(Word.CONFLICT), outcome(Word.REFUSED)], 3),
        ([outcome(Word.UNREACHABLE), outcome(Word.CONFLICT)], 4),
        ([outcome(Word.FAILED)], 4),
        ([outcome(Word.UNKNOWN), outcome(Word.DONE, ExitCode.DONE)], 4),
    ],
)
def test_the_shell_is_told_the_worst(outcomes, code):
    assert exit_code(outcomes) == code
