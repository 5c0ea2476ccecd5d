"""The agent as it is shipped: sent over stdin into interpreters of every version."""

import os
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path

import agent_lab
import pytest
from agent_lab import AgentError, Controller, Process, snapshot

from patchq import agent
from patchq.agent import protocol

PYTHONS = agent_lab.interpreters()


def test_the_running_python_is_among_those_that_are_tried():
    assert any(os.path.samefile(python, sys.executable) for python in PYTHONS)


@pytest.mark.slow
@pytest.mark.parametrize("python", PYTHONS, ids=lambda path: path.strip("/").replace("/", "-"))
def test_a_push_and_a_pop_in_one_conversation_each(site, python):
    before = snapshot(site)

    with Process(python) as process:
        controller = Controller(site, process.ask)
        controller.push({"demo/a.py": b"x = 2\n", "demo/n/m.py": b"m = 1\n", "demo/b.py": None})
    with Process(python) as process:
        assert Controller(site, process.ask).pop()["pending"] is None

    assert snapshot(site) == before
    assert process.stderr == b""
    assert process.process.returncode == 0


def test_reading_modules_alone_answer_a_survey_and_refuse_to_write(site):
    controller = Controller(site)
    survey = protocol.pack(controller.message("survey", paths=["demo/a.py"]))
    recover = protocol.pack(controller.message("recover"))

    out = answers(agent_lab.payload(agent.READING) + survey + recover)

    assert out[0]["ok"]["files"]["demo/a.py"]["kind"] == "file"
    assert out[1]["error"]["word"] == "read-only-agent"


def answers(data):
    done = subprocess.run(
        [sys.executable, "-ISc", agent_lab.BOOT], input=data, capture_output=True
    )
    found, rest = [], done.stdout.partition(protocol.marker(b"n0nce"))[2]
    while rest:
        head, tail = protocol.lengths(rest[:8])
        found.append(protocol.unpack(rest[8 : 8 + head], rest[8 + head : 8 + head + tail])[0])
        rest = rest[8 + head + tail :]
    return found


def test_the_modules_are_all_shipped_and_in_the_order_of_their_imports():
    files = {path.stem for path in agent_lab.SOURCES.glob("*.py")} - {"__init__"}

    assert set(agent.WRITING) == files
    assert set(agent.READING) < set(agent.WRITING)


def test_nothing_heavy_is_imported(site):
    loader = agent_lab.payload()
    probe = b"sys.stderr.write(' '.join(sorted(sys.modules)))"
    code = f"{agent_lab.BOOT};{probe.decode()}"
    message = protocol.pack(Controller(site).message("survey", paths=["demo/a.py"]))

    done = subprocess.run(
        [sys.executable, "-ISc", code], input=loader + message, capture_output=True
    )

    heavy = {
        "subprocess",
        "tempfile",
        "pathlib",
        "dataclasses",
        "csv",
        "email",
        "shutil",
        "ctypes",
    }
    heavy |= {"importlib.metadata", "inspect", "socket", "logging", "site"}
    assert not heavy & set(done.stderr.decode().split())


def test_a_stray_print_does_not_reach_the_controller(site):
    noisy = b"import os, sys; print('noise'); os.write(1, b'more noise')\n"
    serve = (agent_lab.SOURCES / "serve.py").read_bytes()
    modules = [(name, (agent_lab.SOURCES / f"{name}.py").read_bytes()) for name in agent.READING]
    loud = serve.replace(
        b"deadline)\n    while True:", b"deadline)\n    " + noisy + b"    while True:"
    )
    assert loud != serve
    loader = agent_lab.LOADER.replace("DEADLINE", "60").encode()
    data = b"exit 99 # patchq1 n0nce %d\n" % len(loader) + loader + b"%d\n" % len(modules)
    for name, source in modules:
        text = loud if name == "serve" else source
        data += b"%s %d\n" % (name.encode(), len(text)) + text
    data += protocol.pack(Controller(site).message("survey", paths=[]))

    assert answers(data)[0]["ok"]["installed"]["name"] == "demo"


def test_a_request_that_fails_leaves_the_conversation_alive(site):
    with Process() as process:
        for broken in (
            {"op": "nonsense"},
            {"op": "survey"},
            {"op": "commit", "distribution": "d"},
        ):
            with pytest.raises(AgentError):
                process.ask(broken)
        assert Controller(site, process.ask).survey()["installed"]["version"] == "1.0"


@pytest.mark.slow
def test_an_agent_that_hears_nothing_leaves_by_itself():
    process = subprocess.Popen(
        [sys.executable, "-ISc", agent_lab.BOOT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        process.stdin.write(agent_lab.payload(deadline=1))
        process.stdin.flush()

        assert process.wait(20) == 75
        assert b"no request in time" in process.stderr.read()


def paused(site):
    """Start a push that is stopped while it holds the lock; return it, stopped."""
    big = {"demo/a.py": b"x = 2\n", **{f"demo/n{i}.py": b"n = 1\n" * 99 for i in range(400)}}
    process = Process()
    process.__enter__()
    request, blobs = Controller(site).push_request(big)
    process.send.write(protocol.pack(request, blobs))
    process.send.flush()
    journal = site / ".patchq/demo/journal"
    while not journal.exists():
        assert process.process.poll() is None
    process.process.send_signal(signal.SIGSTOP)
    assert journal.exists()
    return process


@pytest.mark.slow
def test_of_two_commits_at_once_one_wins_and_the_other_is_told_who(site, controller):
    first = paused(site)
    try:
        busy = controller.survey()
        request, blobs = controller.push_request({"demo/b.py": b"y = 2\n"})
        with pytest.raises(AgentError) as caught:
            agent_lab.here(request, blobs)
    finally:
        first.process.send_signal(signal.SIGCONT)
    head, tail = protocol.lengths(first.receive.read(8))
    answer, _ = protocol.unpack(first.receive.read(head), first.receive.read(tail))
    first.__exit__()

    assert caught.value.word == "locked"
    assert f"tester on {os.uname().nodename} (process {first.process.pid})" in caught.value.why
    assert (busy["busy"]["who"], busy["interrupted"]) == ("tester", None)
    assert answer["ok"]["pending"] is None
    assert (site / "demo/b.py").read_bytes() == b"y = 1\n"


@pytest.mark.slow
def test_a_writer_that_is_killed_leaves_no_lock_and_is_recovered(site, controller):
    before = snapshot(site)
    first = paused(site)
    first.process.kill()
    first.__exit__()

    assert controller.survey()["interrupted"]["verb"] == "push"
    outcome = controller.recover()["outcome"]

    assert outcome == "undone"
    assert snapshot(site) == before


@pytest.mark.slow
def test_many_commits_at_once_leave_one_whole_winner(site):
    before = snapshot(site, inodes=False)
    told = []

    def run(number):
        text = b"x = %d\n" % number
        with Process() as process:
            controller = Controller(site, process.ask)
            try:
                controller.push({"demo/a.py": text, "demo/b.py": text})
                told.append(("won", text))
            except AgentError as error:
                told.append((error.word, text))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert {word for word, _ in told} <= {"won", "locked", "changed"}
    assert "won" in {word for word, _ in told}
    assert (site / "demo/a.py").read_bytes() == (site / "demo/b.py").read_bytes()
    Controller(site).pop()
    assert snapshot(site, inodes=False) == before


def test_a_lock_is_not_inherited_by_a_child(site, controller):
    from patchq.agent import lock

    controller.push({"demo/a.py": b"x = 2\n"})
    home = str(site / ".patchq/demo")
    with lock.Lock(home, {"who": "me"}):
        child = subprocess.Popen(
            [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, close_fds=False
        )
    with lock.Lock(home, {"who": "other"}):
        pass
    child.communicate(b"\n")


@pytest.mark.slow
def test_where_flock_is_not_to_be_had_a_linked_name_locks(site, controller, monkeypatch):
    import errno
    import fcntl

    from patchq.agent import lock

    def unsupported(*_):
        raise OSError(errno.ENOLCK, "no locks here")

    controller.push({"demo/a.py": b"x = 2\n"})
    home = str(site / ".patchq/demo")
    monkeypatch.setattr(fcntl, "flock", unsupported)

    with lock.Lock(home, {"who": "me", "host": "h", "pid": os.getpid(), "since": "now"}):
        with (
            pytest.raises(lock.RefusalError, match="another patchq"),
            lock.Lock(home, {"who": "x"}),
        ):
            pass
        held = Path(home, "lock.held")
        dead = held.read_bytes().replace(b'"pid":%d' % os.getpid(), b'"pid":4194304')
        held.unlink()
        held.write_bytes(dead)
        Path(home, "lock").write_bytes(dead)
        # Its holder is of this boot and namespace, and gone: it is taken over.
        with lock.Lock(home, {"who": "heir"}):
            pass
        held.write_bytes(dead.replace(b"pid:[", b"pid:[9"))
        # Another pid namespace: nobody can tell, so nobody breaks it.
        with pytest.raises(lock.RefusalError), lock.Lock(home, {"who": "x"}):
            pass


def test_bytes_that_are_no_frame_end_the_agent_without_a_change(site):
    data = agent_lab.payload() + b"\xff" * 64

    done = subprocess.run(
        [sys.executable, "-ISc", agent_lab.BOOT], input=data, capture_output=True
    )

    assert done.returncode != 0
    assert b"takes at most" in done.stderr
    assert not (site / ".patchq").exists()


def test_a_marker_comes_before_the_first_request():
    with Process() as process:
        ready, _, _ = select.select([process.receive], [], [], 0)
        assert not ready
