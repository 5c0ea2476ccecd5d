import os
import re
import shlex
import signal
import sys
from dataclasses import replace

import pytest

from patchq.errors import ExitCode, UsageError
from patchq.transport import command, endings
from patchq.transport.channel import Deadlines, Request
from tests import ssh_lab
from tests.transport import talk

HASTY = Deadlines(sync=0.5, request=0.5, end=0.2)
SH = [ssh_lab.tool("sh"), "-c"]


@pytest.fixture(scope="module")
def host():
    """An embedded host with a zsh, and a client that knows it."""
    with ssh_lab.folder() as base:
        home = ssh_lab.Home(base / "client")
        (base / "remote").mkdir()
        with ssh_lab.embedded(base / "remote", home.public, shell="zsh") as server:
            home.add("gpu1", server)
            yield home, server


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["fish", "bash"])
def test_shell_that_reads_what_was_sent_is_told(shell):
    # As where a start-up file says `exec fish`: the command is never run.
    argv = [*SH, f"exec {ssh_lab.tool(shell)}"]

    with pytest.raises(endings.NoHostAgent, match="no agent answered") as caught:
        command.converse(argv, None, talk.read("/tmp"), deadlines=replace(HASTY, end=10))

    assert "puts another shell in the place of the command" in caught.value.why


def test_ssh_itself_is_such_a_command(host):
    home, server = host
    (server.home / "tuple[int, ...].py").write_bytes(b"x: tuple[int, ...]\n")

    found = command.converse(
        home.ssh_argv("gpu1"), None, talk.contents(server.home, "tuple[int, ...].py")
    )

    assert found == [b"x: tuple[int, ...]\n"]
    assert "tuple" not in server.commands[-1]


def test_program_that_takes_no_shell_line_ends_in_sh_c(tmp_path):
    argv = ["env", "-i", "PATH=/usr/bin:/bin", "sh", "-c"]

    assert command.converse(argv, None, talk.contents(tmp_path, "none")) == [None]


def test_interpreter_that_is_not_there_is_an_error_of_the_host():
    with pytest.raises(endings.NoHostAgent, match="no interpreter '/no/python'") as caught:
        command.converse(SH, "/no/python", talk.read("/tmp"))

    assert caught.value.exit_code == ExitCode.HOST_FAILED


def test_host_without_python_is_an_error_of_the_host(tmp_path):
    argv = ["env", "-i", f"PATH={tmp_path}", *SH]

    with pytest.raises(endings.NoHostAgent, match="no interpreter 'python3'"):
        command.converse(argv, None, talk.read("/tmp"))


def test_command_that_cannot_be_started_is_named():
    with pytest.raises(UsageError, match="'nosuchssh' cannot be started"):
        command.converse(["nosuchssh", "gpu1"], None, talk.read("/tmp"))


def test_empty_command_is_a_usage_error():
    with pytest.raises(UsageError, match="is empty"):
        command.converse([], None, talk.read("/tmp"))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("exit 0", "status 0"),
        ("exit 3", "status 3"),
        pytest.param("cat >/dev/null", "nothing of an agent came", marks=pytest.mark.slow),
        ("read x; exec sh -c", "status [12]"),
        ("echo hello world; exit 1", "instead of an agent's words came 'hello world'"),
        ("echo broken >&2; exit 255", "on stderr stood 'broken'"),
        ("exec sh -s", "puts another shell in the place"),
        ("exec bash --norc -s", "puts another shell in the place"),
    ],
)
def test_command_that_reaches_no_agent_is_told(line, why):
    with pytest.raises(endings.NoHostAgent, match="no agent answered") as caught:
        command.converse([*SH, f"{line} #"], None, talk.read("/tmp"), deadlines=HASTY)

    assert re.search(why, caught.value.why), caught.value.why


def test_outcome_is_unknown_when_the_link_dies_within_a_change(tmp_path):
    pid = tmp_path / "pid"
    argv = ["sh", "-c", f'echo $$ > {shlex.quote(str(pid))}; exec sh -c "$0"']

    def write():
        yield from talk.read("/tmp")
        os.kill(int(pid.read_text()), signal.SIGKILL)
        yield Request({"op": "commit"})

    with pytest.raises(endings.UnknownOutcome, match="outcome is not known") as caught:
        command.converse(argv, sys.executable, write())

    assert caught.value.exit_code == ExitCode.HOST_FAILED
