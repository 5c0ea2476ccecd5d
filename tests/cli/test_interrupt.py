"""A ^C before anything was asked to change says that nothing was changed."""

import json
import os
import signal
import subprocess
import sys

import pytest

from patchq.errors import ExitCode

pytestmark = pytest.mark.slow


def heard() -> None:
    """Let a process hear ^C, which a job in the background of a shell may be told to ignore."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def stopped(world, *args: str) -> subprocess.CompletedProcess[str]:
    """Send ^C to a push whose agent never speaks, once it was started."""
    fifo = world.root / "started"
    os.mkfifo(fifo)
    silent = world.root / "silent"
    silent.write_text(f"#!/bin/sh\necho here > {fifo}\nexec sleep 60\n")
    silent.chmod(0o755)
    words = [word.replace("SILENT", str(silent)) for word in args]
    argv = [sys.executable, "-m", "patchq", "push", "-a", "--queue", world.queue, *words]
    pipe = subprocess.PIPE
    environ = {**os.environ, "PATCHQ_CACHE": str(world.root / "cache")}
    with subprocess.Popen(
        argv, stdout=pipe, stderr=pipe, text=True, env=environ, preexec_fn=heard
    ) as process:
        assert fifo.read_text() == "here\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    return subprocess.CompletedProcess(argv, process.returncode, out, err)


def test_an_early_interrupt_says_that_nothing_was_changed(world):
    done = stopped(world, "--python", "SILENT")

    assert done.returncode == ExitCode.INTERRUPTED
    assert "patchq: interrupted; nothing was changed" in done.stderr
    assert "^C came before anything was asked to change" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_early_interrupt_says_that_one_host_was_not_changed(world):
    done = stopped(world, "-H", "command:SILENT")

    assert done.returncode == ExitCode.INTERRUPTED
    assert "was not changed" in done.stderr


def test_an_early_interrupt_is_one_document_too(world):
    done = stopped(world, "--python", "SILENT", "--json")

    document = json.loads(done.stdout)
    assert document["exit_code"] == done.returncode == ExitCode.INTERRUPTED
    assert document["error"]["what"] == "interrupted; nothing was changed"
