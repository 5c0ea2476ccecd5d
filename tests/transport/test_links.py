"""What the hosts of a run share: jump hosts, turns; and how a dead link ends."""

import asyncio
import contextlib
import os
import signal
from dataclasses import replace

import asyncssh
import pytest

from patchq.transport import connect, endings, hosts, links, ssh, unreached
from patchq.transport.channel import Deadlines, Request
from tests import ssh_lab
from tests.transport import talk


@pytest.fixture
def jump(base, home, host):
    """A jump host, and hosts inner1 to inner9 behind it, which are all one."""
    with ssh_lab.embedded(base / "jump", home.public) as server:
        home.add("jump", server)
        for number in range(1, 10):
            home.add(f"inner{number}", host, "ProxyJump jump", known=False)
        yield server


async def all_of(settings, specs, make):
    async with settings:
        return await asyncio.gather(
            *(ssh.converse(hosts.parse(spec), settings, make()) for spec in specs),
            return_exceptions=True,
        )


@pytest.mark.slow
def test_jump_host_is_logged_into_once(home, jump):
    settings = ssh.Settings.read(home.environ)
    specs = [f"inner{number}" for number in range(1, 10)]

    found = asyncio.run(all_of(settings, specs, lambda: talk.contents("/tmp", "none")))

    assert found == [[None]] * 9
    assert (jump.logins, len(jump.tunnels)) == (1, 9)


def test_lost_jump_is_opened_anew_for_the_next(home, jump):
    async def two():
        async with ssh.Settings.read(home.environ) as settings:
            first = await ssh.converse(
                hosts.parse("inner1"), settings, talk.contents("/tmp", "none")
            )
            jump.cut()
            await asyncio.sleep(0)
            second = await ssh.converse(
                hosts.parse("inner2"), settings, talk.contents("/tmp", "none")
            )
            return first, second

    assert asyncio.run(two()) == ([None], [None])
    assert jump.logins == 2


def test_jump_that_lets_nobody_in_is_asked_once_and_each_host_told(base, home, host):
    other = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode()
    with ssh_lab.embedded(base / "jump", other) as jump:
        home.add("jump", jump)
        for name in ("inner1", "inner2", "inner3"):
            home.add(name, host, "ProxyJump jump", known=False)
        settings = ssh.Settings.read(home.environ)

        found = asyncio.run(
            all_of(settings, ["inner1", "inner2", "inner3"], lambda: talk.read("/tmp"))
        )

    assert {type(error) for error in found} == {unreached.AuthenticationRefused}
    assert len({id(error) for error in found}) == 3
    assert jump.logins == 1


@pytest.mark.slow
def test_no_more_than_eight_log_in_at_once(home, host):
    settings = ssh.Settings.read(home.environ)

    found = asyncio.run(all_of(settings, ["gpu1"] * 20, lambda: talk.contents("/tmp", "none")))

    assert found == [[None]] * 20
    assert host.logins == 20
    assert host.most_at_once <= links.LOGINS


def test_conversation_runs_where_think_says(home, host):
    import threading
    from concurrent.futures import ThreadPoolExecutor

    where = set()

    def look():
        where.add(threading.current_thread())
        reply = yield from talk.contents("/tmp", "none")
        where.add(threading.current_thread())
        return reply

    async def reach():
        with ThreadPoolExecutor(1) as pool:

            async def think(step):
                return await asyncio.get_running_loop().run_in_executor(pool, step)

            settings = ssh.Settings.read(home.environ)
            return await ssh.converse(hosts.parse("gpu1"), settings, look(), think=think)

    assert asyncio.run(reach()) == [None]
    assert len(where) == 1
    assert threading.main_thread() not in where


class Relay:
    """A link that can be made a black hole: what is sent arrives nowhere, and nothing ends."""

    def __init__(self, server):
        self.server = server
        self.dark = False
        self.after = b""
        self.resets = 0

    @contextlib.asynccontextmanager
    async def kept(self):
        tasks = set()

        async def knock(reader, writer):
            tasks.add(asyncio.current_task())
            inner, outer = await asyncio.open_connection("127.0.0.1", self.server.port)
            both = (self.pump(reader, outer), self.pump(inner, writer))
            try:
                await asyncio.gather(*both, return_exceptions=True)
            finally:
                writer.transport.abort()
                outer.transport.abort()

        listener = await asyncio.start_server(knock, "127.0.0.1", 0)
        async with listener:
            yield replace(self.server, port=listener.sockets[0].getsockname()[1])
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.sleep(0)

    async def pump(self, reader, writer):
        try:
            while data := await reader.read(1 << 16):
                if not self.dark:
                    writer.write(data)
        except ConnectionResetError:
            self.resets += 1
            raise


@pytest.mark.slow
@pytest.mark.parametrize("op", ["read", "commit"])
def test_black_hole_is_given_up(home, host, op):
    relay = Relay(host)

    def conversation():
        yield from talk.read("/tmp")
        relay.dark = True
        yield Request({"op": op, "distribution": "demo"})

    async def reach():
        async with relay.kept() as server:
            home.add("hole", server)
            settings = replace(ssh.Settings.read(home.environ), keepalive=0.2, kept=2)
            with pytest.raises(endings.HostError) as caught:
                await ssh.converse(hosts.parse("hole"), settings, conversation())
            await asyncio.sleep(0.1)
            return caught.value

    error = asyncio.run(reach())

    assert "keepalive" in error.why
    assert isinstance(error, endings.UnknownOutcome if op == "commit" else endings.LinkLost)


@pytest.mark.slow
@pytest.mark.parametrize("writes", [True, False])
def test_link_that_is_left_within_a_change_is_reset(home, host, writes):
    relay = Relay(host)

    def conversation():
        yield from talk.read("/tmp")
        os.kill(host.children[-1], signal.SIGSTOP)
        yield Request({"op": "commit" if writes else "records"})

    async def reach():
        async with relay.kept() as server:
            home.add("relayed", server)
            deadlines = Deadlines(request=0.3, end=0.1)
            settings = replace(ssh.Settings.read(home.environ), deadlines=deadlines)
            with pytest.raises(endings.HostError):
                await ssh.converse(hosts.parse("relayed"), settings, conversation())
            await asyncio.sleep(0.1)
            return relay.resets

    assert asyncio.run(reach()) == int(writes)


@pytest.mark.slow
def test_link_behind_a_jump_is_left_without_harm_to_the_jump(home, host, jump):
    def stopped():
        yield from talk.read("/tmp")
        os.kill(host.children[-1], signal.SIGSTOP)
        yield Request({"op": "commit"})

    async def two():
        deadlines = Deadlines(request=0.3, end=0.1)
        settings = replace(ssh.Settings.read(home.environ), deadlines=deadlines)
        async with settings:
            with pytest.raises(endings.UnknownOutcome):
                await ssh.converse(hosts.parse("inner1"), settings, stopped())
            settings = replace(settings, deadlines=Deadlines())
            return await ssh.converse(
                hosts.parse("inner2"), settings, talk.contents("/tmp", "none")
            )

    assert asyncio.run(two()) == [None]
    assert jump.logins == 1


def test_run_tries_six_times():
    assert connect.TRIES == 6
