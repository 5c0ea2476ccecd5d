"""Real processes on a real virtual environment: servers as vLLM's are, and others.

`demo` is installed as pip does it, with a script in ``bin``. Its server starts an engine,
and that its workers, by multiprocessing; each writes its title over its arguments, and over
its environment, as setproctitle does.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import venv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from patchq.agent import protocol
from tests.agent import agent_lab

SERVER = b'''\
import ctypes
import multiprocessing
import os
import sys


def retitle(title):
    """Write a title over arguments and environment, where the kernel looks for them."""
    with open("/proc/self/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    start, end = int(fields[45]), int(fields[48])
    text = title.encode()
    ctypes.memmove(start, text.ljust(end - start, b"\\0"), end - start)
    ctypes.CDLL(None).prctl(15, text[:15], 0, 0, 0)


def worker(rank, told):
    retitle("VLLM::Worker_TP%d" % rank)
    told.put((rank, os.getpid()))
    multiprocessing.Event().wait()


def engine(method, told):
    retitle("VLLM::EngineCore")
    told.put((-1, os.getpid()))
    context = multiprocessing.get_context(method)
    for rank in range(2):
        context.Process(target=worker, args=(rank, told)).start()
    for child in multiprocessing.active_children():
        child.join()


def main(method):
    context = multiprocessing.get_context(method)
    told = context.Queue()
    core = context.Process(target=engine, args=(method, told))
    core.start()
    print(os.getpid(), *(pid for _, pid in sorted(told.get() for _ in range(3))), flush=True)
    core.join()
'''
SCRIPT = """\
#!%s
import sys
from demo.server import main
if __name__ == "__main__":
    main(sys.argv[1])
"""
WAIT = "import time, sys; print('up', flush=True); time.sleep(60)"


class Home:
    """A virtual environment with `demo` in it."""

    def __init__(self, root: Path, files: Mapping[str, bytes] = agent_lab.FILES) -> None:
        self.root = root
        venv.EnvBuilder(symlinks=True).create(root)
        self.python = root / "bin/python"
        self.site = root / f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
        agent_lab.make_site(self.site, {**files, "demo/server.py": SERVER})
        self.script = root / "bin/demo-serve"
        self.list("../../../bin/demo-serve", (SCRIPT % self.python).encode())
        self.script.chmod(0o755)

    def list(self, path: str, data: bytes) -> Path:
        """Put one more file there, and into RECORD."""
        (self.site / path).parent.mkdir(parents=True, exist_ok=True)
        (self.site / path).write_bytes(data)
        (record,) = self.site.glob("demo-*.dist-info/RECORD")
        row = agent_lab.record_row(path, data) + "\r\n"
        record.write_bytes(record.read_bytes() + row.encode())
        return self.site / path

    def library(self, path: str) -> Path:
        """Put a real shared library there: one of the interpreter's own modules."""
        own = next(Path(os.__file__).parent.glob("lib-dynload/_json.*.so"))
        return self.list(path, own.read_bytes())

    def running(self, **more: object) -> dict[str, object]:
        """Ask the agent in this process."""
        found = agent_lab.Controller(self.site).survey(want=["running"], **more)["running"]
        assert found is not None
        return found

    def found(self) -> dict[int, dict[str, object]]:
        """Return what is told of each process."""
        return {one["pid"]: one for one in self.running()["processes"]}


@contextmanager
def started(*argv: str | Path, **options: object) -> Iterator[subprocess.Popen[str]]:
    """Give a process that has said that it is up; end it, and all that it started."""
    process = subprocess.Popen(
        [*map(str, argv)], stdout=subprocess.PIPE, text=True, start_new_session=True, **options
    )
    assert process.stdout
    process.told = process.stdout.readline().split()
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()


@contextmanager
def server(home: Home, method: str = "spawn", **options: object) -> Iterator[list[int]]:
    """Give the numbers of a server, its engine and its two workers."""
    with started(home.script, method, **options) as process:
        yield [int(word) for word in process.told]


def asked(site: Path, prefix: Sequence[str]) -> dict[str, object]:
    """Return the survey of an agent that is started by a command, such as setpriv(1)."""
    message = {"op": "survey", "distribution": "demo", "target": str(site), "paths": []}
    frame = protocol.pack({**message, "want": ["running"]})
    done = subprocess.run(
        [*prefix, sys.executable, "-ISc", agent_lab.BOOT],
        input=agent_lab.payload() + frame,
        capture_output=True,
        check=True,
        timeout=60,
    )
    data = done.stdout[len(protocol.marker(b"n0nce")) :]
    head, tail = protocol.lengths(data[: protocol.HEADER.size])
    start = protocol.HEADER.size
    answer, _ = protocol.unpack(data[start : start + head], data[start + head :][:tail])
    found = agent_lab.checked(answer)
    assert isinstance(found, dict)
    return found
