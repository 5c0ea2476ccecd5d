"""One tree that two conversations of a run are about: whoever comes second sees the first."""

from __future__ import annotations

import os

import pytest

from patchq.agent import lock, serve, state
from patchq.conversation import move, same
from patchq.conversation.goal import Upto
from patchq.errors import ExitCode
from patchq.transport.channel import AgentError, Reply, Request


class Held:
    """One conversation of a run, driven request by request."""

    def __init__(self, talk, run, verb=move.push, upto=None):
        goal = Upto(upto, upto is None)
        self.conversation = same.once(verb(talk.aim, talk.ground, goal), run)
        self.report = None
        self.asked: Request = next(self.conversation)

    @property
    def op(self):
        return self.asked.message["op"]

    def answer(self):
        """Let the agent answer, and take the next request."""
        answer, blobs = serve.respond(dict(self.asked.message), dict(self.asked.blobs))
        try:
            if "error" in answer:
                error = answer["error"]
                told = {key: error[key] for key in ("why", "mend")}
                refused = AgentError(error["word"], error["what"], **told)
                self.asked = self.conversation.throw(refused)
            else:
                self.asked = self.conversation.send(Reply(answer, blobs))
        except StopIteration as stop:
            self.report = stop.value

    def until(self, op):
        """Go on to a request of this kind."""
        while self.op != op:
            self.answer()
        return self

    def end(self):
        """Go on to the report."""
        while self.report is None:
            self.answer()
        return self.report


def receipt(report):
    return report.document["receipt"]["id"]


def is_same(report, first):
    return (
        report.exit_code is ExitCode.NOTHING_TO_DO
        and report.document["same_as"] == receipt(first)
        and report.notes == ("same environment as another host of this run, which changes it",)
    )


def test_a_survey_that_shows_the_runs_own_change_ends_the_second(talk):
    run = same.Alone()
    first = Held(talk, run, upto="1").end()
    second = Held(talk, run, upto="1").end()

    assert is_same(second, first)
    assert [one["verb"] for one in ledger(talk)] == ["push"]


def test_a_survey_from_before_is_refused_at_the_commit_and_then_ends_it(talk):
    run = same.Alone()
    late = Held(talk, run).until("commit")
    first = Held(talk, run).end()

    assert is_same(late.end(), first)


def test_a_pop_of_all_leaves_its_mark_too(talk):
    talk.push()
    run = same.Alone()
    late = Held(talk, run, move.pop).until("commit")
    first = Held(talk, run, move.pop).end()

    assert is_same(late.end(), first)
    assert is_same(Held(talk, run, move.pop).end(), first)


def test_a_lock_that_the_first_still_holds_is_waited_for(talk):
    run = same.Alone()
    first, second = Held(talk, run).until("commit"), Held(talk, run).until("commit")
    home = f"{talk.site}/{state.home('demo')}"
    with lock.Lock(home, {"who": "me", "host": "here", "pid": os.getpid(), "since": "now"}):
        second.answer()
        assert second.op == "survey"
        second.answer()
        assert second.op == "commit"
    done = first.end()

    assert is_same(second.end(), done)


def test_a_transaction_of_the_run_that_is_at_work_ends_the_second_at_once(talk):
    run = same.Alone()
    first = Held(talk, run).until("commit")
    name = first.asked.message["id"]
    other = Held(talk, run)
    assert other.op == "survey"
    answer, blobs = serve.respond(dict(other.asked.message), {})
    answer["ok"]["busy"] = {"who": "me", "id": name}
    with pytest.raises(StopIteration) as stopped:
        other.conversation.send(Reply(answer, blobs))

    assert is_same(stopped.value.value, first.end())


def test_who_is_overtaken_by_somebody_else_is_told_as_ever(talk):
    run = same.Alone()
    Held(talk, run).until("commit")
    late = Held(talk, run).until("commit")
    talk.push("1")

    with pytest.raises(AgentError) as refused:
        late.end()
    assert refused.value.word == "changed"


def test_a_lock_of_somebody_else_is_an_error_in_the_end(talk):
    run = same.Alone()
    Held(talk, run).until("commit")
    late = Held(talk, run).until("commit")
    home = f"{talk.site}/{state.home('demo')}"
    told = {"who": "me", "host": "here", "pid": os.getpid(), "since": "now"}
    with lock.Lock(home, told), pytest.raises(AgentError) as refused:
        late.end()

    assert refused.value.word == "locked"


def test_a_conversation_alone_asks_what_it_would_ask_anyway(talk):
    held = Held(talk, None).until("commit")

    assert "last" not in held.asked.message.get("want", ())
    assert held.end().exit_code is ExitCode.DONE


def ledger(talk):
    lines = state.ledger(f"{talk.site}/{state.home('demo')}").split(b"\n")[:-1]
    return [state.receipt_of(line) for line in lines]
