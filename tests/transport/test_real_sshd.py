"""A real sshd with real login shells: what the field does, and what it costs."""

import asyncio
import contextlib
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from patchq.transport import command, endings, hosts, ssh
from patchq.transport.channel import DEADLINES, Deadlines, Request
from tests import ssh_lab
from tests.transport import talk

pytestmark = pytest.mark.slow
TEXT = b"def apply(x: tuple[int, ...], *, y='$HOME `id` \"q\" !!') -> None: ...\n"


@pytest.fixture(params=["zsh", "fish", "tcsh", "bash"])
def real(request):
    """A real host that the client knows as gpu1; the client's home."""
    with ssh_lab.folder() as base:
        home = ssh_lab.Home(base / "client")
        with ssh_lab.sshd(base, home.public, shell=request.param) as server:
            home.add("gpu1", server)
            yield home, server


def reach(home, conversation, spec="gpu1", deadlines=DEADLINES):
    settings = replace(ssh.Settings.read(home.environ), deadlines=deadlines)
    return asyncio.run(ssh.converse(hosts.parse(spec), settings, conversation))


def test_text_that_broke_a_shell_arrives_untouched(real):
    home, server = real
    name = "tuple[int, ...] $(id) !1.py"
    (server.home / name).write_bytes(TEXT)

    assert reach(home, talk.contents(server.home, name)) == [TEXT]
    assert reach(home, talk.carry(server.home, TEXT)) == {}
    found = command.converse(home.ssh_argv("gpu1"), None, talk.contents(server.home, name))
    assert found == [TEXT]


def test_nothing_of_a_request_is_in_any_command_line(real):
    home, server = real
    secret = "tuple[int, ...]"

    def look():
        yield from talk.read(server.home, secret)
        return [line for pid in _all() if (line := _cmdline(pid))]

    lines = reach(home, look())

    assert any("sys.stdin.buffer" in line for line in lines)
    assert not [line for line in lines if secret in line]


def test_agent_is_gone_after_the_conversation(real):
    home, server = real

    def look():
        yield from talk.read(server.home)
        return _agents(server.user)

    during = reach(home, look())
    until = time.monotonic() + 5
    while during & _agents(server.user) and time.monotonic() < until:
        os.sched_yield()

    assert during
    assert not during & _agents(server.user)


@pytest.fixture
def sleeping():
    """A real host whose login sleeps for a day; the client's home, and the host."""
    with ssh_lab.folder() as base:
        home = ssh_lab.Home(base / "client")
        with ssh_lab.sshd(base, home.public, shell="bash") as server:
            (server.home / ".bashrc").write_text("sleep 86400\n")
            home.add("gpu1", server)
            yield home, server


HASTY = Deadlines(sync=2, end=0.5)
ROOT = pytest.mark.skipif(os.getuid() != 0, reason="only root can make users")


@ROOT
def test_what_a_silent_login_started_is_ended(sleeping):
    home, server = sleeping

    with pytest.raises(endings.NoHostAgent, match="no agent answered"):
        reach(home, talk.read("/tmp"), deadlines=HASTY)

    _until(lambda: not ssh_lab.processes(server.user))


@ROOT
def test_what_a_silent_login_started_is_ended_by_who_is_told_to_stop(sleeping):
    home, server = sleeping

    async def stopped():
        settings = ssh.Settings.read(home.environ)
        talking = asyncio.create_task(
            ssh.converse(hosts.parse("gpu1"), settings, talk.read("/tmp"))
        )
        while "sleep 86400" not in ssh_lab.processes(server.user).values():
            await asyncio.sleep(0.01)
        talking.cancel()
        await asyncio.gather(talking, return_exceptions=True)

    asyncio.run(stopped())

    _until(lambda: not ssh_lab.processes(server.user))


@ROOT
def test_nothing_is_ended_once_a_change_was_asked_for(sleeping):
    home, server = sleeping

    def change():
        yield Request({"op": "recover"})

    with pytest.raises(endings.NoHostAgent):
        reach(home, change(), deadlines=HASTY)

    _until(lambda: "sshd" not in " ".join(ssh_lab.processes(server.user).values()))
    assert "sleep 86400" in ssh_lab.processes(server.user).values()


def test_host_that_forces_a_command_is_told():
    with ssh_lab.folder() as base:
        home = ssh_lab.Home(base / "client")
        with ssh_lab.sshd(base, home.public, options="ForceCommand echo backups only") as server:
            home.add("gpu1", server)

            with pytest.raises(endings.NoHostAgent, match="no agent answered") as caught:
                reach(home, talk.read("/tmp"))

    assert "came 'backups only'" in caught.value.why


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a user that may not log in")
def test_account_that_may_not_log_in_is_told():
    with ssh_lab.folder() as base:
        home = ssh_lab.Home(base / "client")
        with ssh_lab.sshd(base, home.public, shell="nologin") as server:
            home.add("gpu1", server)

            with pytest.raises(endings.NoHostAgent) as caught:
                reach(home, talk.read("/tmp"))

    assert "This account is currently not available" in caught.value.why


def _until(true):
    end = time.monotonic() + 20
    while not true():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.02)


def _all():
    return [int(path.name) for path in Path("/proc").glob("[0-9]*")]


def _agents(user):
    """Return the process ids of this user's agents; other tests have their own."""
    return {
        pid
        for pid in _all()
        if "sys.stdin.buffer" in (_cmdline(pid) or "") and _owner(pid) == user
    }


def _owner(pid):
    with contextlib.suppress(FileNotFoundError, ProcessLookupError, KeyError):
        return Path(f"/proc/{pid}").owner()


def _cmdline(pid):
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").replace("\0", " ")
