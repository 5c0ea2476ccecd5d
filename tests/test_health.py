"""The user's command: what it is told, how it is waited for, what it leaves behind."""

import os
import threading
import time

import pytest

from patchq import health
from patchq.health import Check

PATH = {"PATH": os.environ["PATH"]}


def ask(command, wait=0.0, *, limit=20.0, stopped=lambda: False, **environ):
    return health.ask(Check(command, {**PATH, **environ}, wait), stopped, limit=limit)


def test_a_command_that_succeeds_says_yes():
    assert ask("true") == health.Answer(True, 1)


def test_a_command_that_fails_is_told_with_what_it_printed():
    found = ask("echo out; echo err >&2; exit 3")

    assert found == health.Answer(False, 1, "exit status 3", ("out", "err"))


def test_its_environment_is_the_given_one():
    found = ask(
        'test "$PATCHQ_HOST/$PATCHQ_ADDRESS/$HOME" = "gpu1/10.0.0.1/"',
        PATCHQ_HOST="gpu1",
        PATCHQ_ADDRESS="10.0.0.1",
    )

    assert found.good


def test_it_is_tried_again_until_it_succeeds(tmp_path, monkeypatch):
    monkeypatch.setattr(health, "PAUSE", 0.01)

    found = ask(f"echo >> {tmp_path}/n; test $(wc -l < {tmp_path}/n) -ge 4", wait=60)

    assert (found.good, found.tries) == (True, 4)


def test_without_a_wait_it_is_tried_once(tmp_path):
    assert ask(f"echo >> {tmp_path}/n; false").tries == 1
    assert (tmp_path / "n").read_text() == "\n"


def test_when_the_time_is_up_the_last_answer_counts(monkeypatch):
    monkeypatch.setattr(health, "PAUSE", 0.01)

    found = ask("echo still loading; false", wait=0.3)

    assert not found.good
    assert found.tries > 1
    assert found.printed == ("still loading",)


def test_a_try_that_does_not_end_is_ended_with_all_that_it_started(tmp_path):
    found = ask(f"sleep 600 & echo $! > {tmp_path}/pid; wait", limit=0.3)

    assert found == health.Answer(False, 1, "no answer within 0.3 s")
    gone(int((tmp_path / "pid").read_text()))


def test_a_command_that_waits_itself_has_all_the_time():
    assert ask("sleep 0.6", wait=60, limit=0.1) == health.Answer(True, 1)
    assert ask("sleep 600", wait=0.5, limit=0.1).ended == "no answer within 0.5 s"


def test_what_is_left_in_the_background_is_not_waited_for(tmp_path):
    found = ask(f"sleep 600 & echo $! > {tmp_path}/pid")

    assert found.good
    gone(int((tmp_path / "pid").read_text()))


def test_a_daemon_that_keeps_the_pipe_is_not_waited_for(tmp_path):
    found = ask(f"setsid sh -c 'echo $$ > {tmp_path}/pid; exec sleep 600' & sleep 0.5")

    assert found.good
    os.kill(int((tmp_path / "pid").read_text()), 9)


def test_of_much_that_is_printed_the_end_is_told():
    found = ask("yes | head -c 30000000; echo; echo the end; false")

    assert found.printed[-1] == "the end"
    assert len(found.printed) < 11


def test_one_that_prints_for_ever_is_late():
    assert ask("yes", limit=0.3).ended == "no answer within 0.3 s"


def test_one_that_is_killed_says_by_what():
    assert ask("kill -9 $$").ended == "ended by signal 9"


def test_it_reads_nothing_of_the_terminal():
    assert ask("cat").good


@pytest.mark.parametrize("command", ["sleep 600", "sleep 0.1; false"])
def test_a_run_that_is_stopped_does_not_wait_for_an_answer(command):
    stopped = threading.Event()
    threading.Timer(0.3, stopped.set).start()

    found = ask(command, wait=600, stopped=stopped.is_set, limit=600)

    assert found.good is None


def test_bytes_that_are_no_text_are_told():
    assert ask(r"printf 'a\377b'; false").printed == ("a�b",)


def gone(pid: int) -> None:
    """Wait until a process has ended; who adopts it may take a moment to reap it."""
    for _ in range(200):
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    return
        except (FileNotFoundError, ProcessLookupError):
            return
        time.sleep(0.02)
    raise AssertionError(f"{pid} still runs")
