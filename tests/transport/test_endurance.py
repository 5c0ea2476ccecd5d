"""Real children that a ^C, or a controller that went silent, must not spoil."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from patchq.agent import protocol
from patchq.errors import PatchqError
from patchq.transport import bootstrap, command, endings
from tests import ssh_lab
from tests.transport import talk

SH = [ssh_lab.tool("sh"), "-c"]
# Ends itself the way a terminal's ^C does for a whole group, but for one who asked not to.
CODE = """
import os, signal, sys
from patchq.transport import command
from tests.transport import talk
signal.signal(signal.SIGINT, lambda *_: print("asked to stop", flush=True))
def change():
    yield from talk.read("/tmp")
    os.killpg(0, signal.SIGINT)
    return (yield from talk.contents("/tmp", "none"))
print(command.converse(sys.argv[1:], None, change()), flush=True)
"""


@pytest.mark.slow
def test_command_outlives_an_interrupt_at_the_terminal():
    done = subprocess.run(
        [sys.executable, "-c", CODE, *SH],
        capture_output=True,
        text=True,
        process_group=0,
        cwd=Path(__file__).parents[2],
    )

    assert done.stdout.splitlines() == ["asked to stop", "[None]"], done.stderr


def test_who_started_it_may_end_it():
    children = []

    def look():
        yield from talk.read("/tmp")
        children[0].terminate()
        yield from talk.read("/tmp")

    with pytest.raises(endings.LinkLost):
        command.converse(SH, None, look(), started=children.append)

    assert children[0].returncode == -signal.SIGTERM


def test_conversation_that_fails_leaves_no_child():
    children = []

    def look():
        yield from talk.read("/tmp")
        raise PatchqError("no", why="so", mend="go")

    with pytest.raises(PatchqError, match="no"):
        command.converse(SH, None, look(), started=children.append)

    assert children[0].returncode is not None


@pytest.mark.slow
def test_agent_whose_answer_nobody_takes_leaves_by_itself(tmp_path):
    (tmp_path / "big.py").write_bytes(os.urandom(1 << 20))
    payload = bootstrap.payload(b"abc", writing=False)
    first, rest = payload.split(b"\n", 1)
    size = int(first.split()[-1])
    loader = rest[:size].replace(
        b"serve.main(b, sys.stdout.buffer, n, equal",
        b"serve.main(b, sys.stdout.buffer, n, 1, equal",
    )
    assert len(loader) == size + 3
    message = {"op": "read", "distribution": "demo", "target": str(tmp_path), "originals": []}
    frame = protocol.pack({**message, "paths": ["big.py"]})
    process = subprocess.Popen(
        bootstrap.argv(sys.executable),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        line = b"exit 99 # patchq1 abc %d\n" % len(loader)
        process.stdin.write(line + loader + rest[size:] + frame)
        process.stdin.flush()

        assert process.wait(30) == 75
        assert b"no answer taken" in process.stderr.read()
