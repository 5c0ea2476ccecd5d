import os
import re
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from patchq.errors import ExitCode
from patchq.transport import channel, endings, local
from patchq.transport.channel import Deadlines, Request
from tests.transport import talk

HASTY = Deadlines(sync=0.3, request=0.3, end=0.2)


def slowly(text: str, why: str):
    """Return parameters of a test that has to wait."""
    return pytest.param(text, why, marks=pytest.mark.slow)


def script(path: Path, text: str) -> str:
    """Return a program that stands where an interpreter should."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def children() -> set[int]:
    """Return the ids of this process's children."""
    tasks = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    return {int(pid) for task in tasks for pid in task.read_text().split()}


def test_agent_answers(tmp_path):
    data = os.urandom(3 << 20)
    (tmp_path / "big").write_bytes(data)

    assert local.converse(sys.executable, talk.contents(tmp_path, "big")) == [data]
    assert not children()


def test_request_larger_than_a_pipe_arrives(tmp_path):
    data = os.urandom(3 << 20)

    assert local.converse(sys.executable, talk.carry(tmp_path, data)) == {}


def test_refusal_reaches_the_verb():
    def ask():
        yield Request({"op": "dance"})

    with pytest.raises(channel.AgentError) as caught:
        local.converse(sys.executable, ask())

    assert caught.value.word == "unknown-op"
    assert not children()


def test_error_of_the_verb_ends_the_agent():
    def fail():
        yield from talk.read("/tmp")
        raise KeyError("mine")

    with pytest.raises(KeyError):
        local.converse(sys.executable, fail())

    assert not children()


def test_verb_that_asks_nothing_starts_nothing():
    def nothing():
        return 7
        yield

    assert local.converse("/no/such/python", nothing()) == 7


def test_interpreter_that_is_not_there_is_a_usage_error():
    with pytest.raises(endings.NoInterpreter, match="/no/such/python") as caught:
        local.converse("/no/such/python", talk.read("/tmp"))

    assert caught.value.exit_code == ExitCode.USAGE
    assert "No such file" in caught.value.why


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("echo hello; exit 3", r"status 3; instead of an agent's words came 'hello'"),
        ("echo gone >&2; exit 1", "on stderr stood 'gone'"),
        slowly("exec yes noise", "more than 1 MiB came.*'noise.nnoise"),
        slowly("cat > /dev/null", "status 0"),
        ("echo Unknown option: -I >&2; exit 2", "Python 3.8 or later is needed"),
        slowly("exec sleep 9", "nothing of an agent came within 0.3 s"),
        ("exit 99", "puts another shell in the place"),
        ("kill -9 $$", "signal 9 ended it"),
    ],
)
def test_program_that_is_no_python_is_told(tmp_path, text, why):
    python = script(tmp_path / "python", text)

    with pytest.raises(endings.NoAgent, match="no agent answered on this machine") as caught:
        local.converse(python, talk.read("/tmp"), deadlines=HASTY)

    assert caught.value.exit_code == ExitCode.FAILED
    assert re.search(why, caught.value.why), caught.value.why
    assert not children()


def test_stderr_is_read_all_the_time_and_its_end_kept(tmp_path):
    python = script(
        tmp_path / "python",
        f"head -c 3000000 /dev/zero | tr '\\0' x >&2\nexec {sys.executable} \"$@\"",
    )

    assert local.converse(python, talk.contents(tmp_path, "none")) == [None]


def test_what_the_interpreter_prints_first_is_noise(tmp_path):
    python = script(tmp_path / "python", f'echo "Welcome!"\nexec {sys.executable} "$@"')

    assert local.converse(python, talk.contents(tmp_path, "none")) == [None]


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(signal.SIGKILL, id="dies"),
        pytest.param(signal.SIGSTOP, id="hangs", marks=pytest.mark.slow),
    ],
)
def test_agent_that_is_lost_midway_is_told(end):
    def read():
        yield from talk.read("/tmp")
        (agent,) = children()
        os.kill(agent, end)
        yield from talk.read("/tmp")

    with pytest.raises(endings.AgentLost, match="had not been asked to change anything"):
        local.converse(sys.executable, read(), deadlines=Deadlines(request=0.3, end=0.2))

    assert not children()


def test_outcome_is_unknown_when_the_agent_dies_within_a_change():
    def write():
        yield from talk.read("/tmp")
        (agent,) = children()
        os.kill(agent, signal.SIGKILL)
        yield Request({"op": "commit"})

    with pytest.raises(endings.AgentLost, match="outcome is not known") as caught:
        local.converse(sys.executable, write())

    assert "patchq status" in caught.value.mend


def test_interrupt_at_the_terminal_does_not_reach_the_agent():
    def look():
        yield from talk.read("/tmp")
        (agent,) = children()
        return os.getpgid(agent)

    assert local.converse(sys.executable, look()) != os.getpgid(0)


def test_nothing_of_a_request_is_in_a_command_line(tmp_path):
    def look():
        yield from talk.read(tmp_path, "tuple[int, ...]")
        (agent,) = children()
        return Path(f"/proc/{agent}/cmdline").read_bytes()

    line = local.converse(sys.executable, look())

    assert b"tuple" not in line
    assert bytes(tmp_path) not in line


def test_local_road_loads_no_asyncio():
    code = (
        "from patchq.transport import command, local, hosts; import sys;"
        "print(sorted({'asyncio', 'asyncssh', 'ssl', 'socket', 'threading'} & set(sys.modules)))"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    # subprocess itself loads threading.
    assert done.stdout.strip() == "['threading']"


@pytest.mark.slow
def test_agent_runs_under_every_python_that_is_here(tmp_path):
    (tmp_path / "m.py").write_bytes(b"1\n")
    found = set()
    for minor in range(6, 16):
        for python in {*_pythons(f"python3.{minor}")}:
            found.add(minor)
            if minor < 8:
                with pytest.raises(endings.NoAgent) as caught:
                    local.converse(python, talk.read(tmp_path))
                assert f"Python 3.{minor}" in caught.value.why
            else:
                assert local.converse(python, talk.contents(tmp_path, "m.py")) == [b"1\n"]

    assert found


def _pythons(name: str) -> list[str]:
    """Return the interpreters of this name that start, on PATH or in a pyenv."""
    folders = [
        *os.environ["PATH"].split(":"),
        *map(str, Path.home().glob(".pyenv/versions/*/bin")),
    ]
    paths = [os.path.join(folder, name) for folder in folders if folder]
    real = {os.path.realpath(path) for path in paths if os.access(path, os.X_OK)}
    return [path for path in real if subprocess.run([path, "-c", ""]).returncode == 0]


@pytest.mark.slow
def test_deadline_of_a_request_starts_with_it(tmp_path):
    def slow():
        for _ in range(4):
            yield from talk.read(tmp_path)
            time.sleep(0.1)
        return "done"

    assert local.converse(sys.executable, slow(), deadlines=Deadlines(request=0.2)) == "done"
