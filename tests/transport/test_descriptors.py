"""Few open files: less is done at once, and nothing is taken for what it is not."""

import asyncio
import contextlib
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from patchq.errors import HostError
from patchq.transport import command, hosts, route, ssh
from patchq.transport.identities import Identities
from patchq.transport.notes import Notes
from tests import ssh_lab
from tests.transport import talk

ROOM = "from patchq.transport import descriptors; print(descriptors.room())"


@contextlib.contextmanager
def exhausted():
    """Let this process open no file more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(8)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(held) + 1, hard))
    try:
        # What is free below is taken, too.
        with contextlib.suppress(OSError):
            while True:
                held.append(os.open(os.devnull, os.O_RDONLY))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for number in held:
            os.close(number)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limit", "least", "most"),
    [("ulimit -n 24", 1, 1), ("ulimit -n 64", 1, 5), ("ulimit -Sn 64; ulimit -Hn 1024", 100, 128)],
)
def test_room_is_what_the_limit_allows(limit, least, most):
    script = f'{limit}; exec "$0" -c "$1"'
    done = subprocess.run(
        [ssh_lab.tool("sh"), "-c", script, sys.executable, ROOM],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )

    assert least <= int(done.stdout) <= most, done.stderr


def test_key_that_could_not_be_opened_is_tried_again(home, host):
    around = ssh.Settings.read(home.environ).around
    hop = route.resolve(hosts.parse("gpu1"), around)[-1]
    identities = Identities()

    async def offered():
        return [pair.public_data async for pair in identities.offers(hop, Notes())]

    async def both():
        await asyncio.sleep(0)
        with exhausted(), pytest.raises(OSError, match="Too many open files"):
            await offered()
        return await offered()

    assert asyncio.run(both()) == [home.key.public_data]
    assert identities.notes(hop) == ()


def test_command_that_could_not_be_started_is_told():
    command.converse(["/bin/sh", "-c"], None, talk.read("/tmp"))

    with exhausted(), pytest.raises(HostError, match="no agent was started") as caught:
        command.converse(["/bin/sh", "-c"], None, talk.read("/tmp"))

    assert "too many files are open" in caught.value.why
    assert caught.value.mend == "ulimit -n 4096"
