"""Links that are slow and well, and links that are dead, while a large request travels."""

import asyncio
import contextlib
import random
import socket
from dataclasses import replace

import pytest

from patchq.transport import endings, hosts, ssh
from patchq.transport.channel import SLOWEST
from patchq.transport.patience import Road
from tests import ssh_lab
from tests.transport import talk

# Without patience a link is given up after so many seconds; the bytes need more at this rate.
KEEPALIVE, KEPT, RATE = 0.3, 1, 160_000
TEXT = random.Random(7).randbytes(200_000)
_PART = 4096


@contextlib.asynccontextmanager
async def relay(server, rate, until=None):
    """Keep a port that hands on to a server at this rate: all, or the first bytes only."""
    tasks = []

    async def knock(reader, writer):
        tasks.append(asyncio.current_task())
        inner, outer = await asyncio.open_connection("127.0.0.1", server.port)
        both = (_hand_on(reader, outer, rate, until), _hand_on(inner, writer, 1 << 30))
        try:
            await asyncio.gather(*both)
        finally:
            for end in (writer, outer):
                end.transport.abort()
                with contextlib.suppress(OSError):
                    await end.wait_closed()

    listener = socket.create_server(("127.0.0.1", 0))
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _PART)
    async with await asyncio.start_server(knock, sock=listener, limit=_PART):
        yield replace(server, port=listener.getsockname()[1])
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _hand_on(reader, writer, rate, until=None):
    count = 0
    with contextlib.suppress(OSError):
        while data := await reader.read(_PART):
            count += len(data)
            await asyncio.sleep(len(data) / rate)
            writer.write(data)
            if until is not None and count > until:
                await asyncio.Event().wait()
    writer.close()


def settings_of(home):
    return replace(ssh.Settings.read(home.environ), keepalive=KEEPALIVE, kept=KEPT)


async def converse(settings, spec, conversation):
    return await ssh.converse(hosts.parse(spec), settings, conversation, writing=False)


@pytest.mark.slow
def test_slow_link_carries_a_large_request(home, host):
    async def carry():
        async with relay(host, RATE) as server:
            home.add("slow", server)
            return await converse(settings_of(home), "slow", talk.carry(host.home, TEXT))

    assert asyncio.run(carry()) == {}


@pytest.mark.slow
def test_slow_jump_carries_the_requests_of_all_behind_it(base, home, host):
    async def carry():
        with ssh_lab.embedded(base / "jump", home.public) as jump:
            async with relay(jump, RATE) as server:
                home.add("jump", server)
                for number in (1, 2, 3):
                    home.add(f"inner{number}", host, "ProxyJump jump", known=False)
                async with settings_of(home) as settings:
                    return await asyncio.gather(
                        converse(settings, "inner1", talk.carry(host.home, TEXT)),
                        converse(settings, "inner2", talk.contents(host.home, "none")),
                        converse(settings, "inner3", talk.carry(host.home, TEXT)),
                    )

    assert asyncio.run(carry()) == [{}, [None], {}]


@pytest.mark.slow
def test_link_that_dies_under_a_large_request_is_given_up(home, host):
    text = random.Random(8).randbytes(8_000_000)

    async def carry():
        async with relay(host, 1 << 30, until=400_000) as server:
            home.add("dead", server)
            # The bytes alone would be waited for for half an hour.
            async with asyncio.timeout(60):
                await converse(settings_of(home), "dead", talk.carry(host.home, text))

    with pytest.raises((endings.LinkLost, endings.NoHostAgent)) as caught:
        asyncio.run(carry())

    assert "connection was lost" in caught.value.why


def test_patience_is_for_the_bytes_on_their_way():
    road, one, other = Road(5, 3), object(), object()
    assert road.limit == 3

    road.sent(one, 10 * 5 * SLOWEST)
    assert road.limit == 13

    road.sent(other, 1)
    assert road.limit == 14

    road.answered(one)  # what the other waits for was behind it
    assert road.limit == 14

    road.answered(other)
    road.answered(other)
    assert road.limit == 3
