"""The hosts of `fleet_lab`, all in this one process: SSH by asyncssh, the agent in threads.

Nothing of patchq's client side is here, so that its CPU can be told from the hosts'.
A session reads what patchq sends (first line, loader, modules, frames), runs neither
loader nor modules, writes the real marker, and has `patchq.agent.serve` answer. The
host's environment is shown as `SITE`, wherever its tree lies.

Started by `fleet_lab.fleet`: one line of JSON on stdin says which hosts, each further
one changes faults or asks for the counters; the answers are lines on stdout. The end
of stdin is the end of all.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import re
import resource
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace

import asyncssh

from patchq.agent import protocol, recover, serve, transact  # noqa: F401  (loaded before the clock)
from patchq.agent.facts import RefusalError

SITE = "/srv/site"
_FIRST_LINE = re.compile(rb"exit 99 # patchq1 (\S+) (\d+)\n")
_BODY = re.compile(rb"= b\.read\((\d+)\)")
_FULL = RefusalError("no-space", "a file could not be written", "No space left (errno 28)", "df")


@dataclass
class Fault:
    """What goes wrong on a host; the default is that nothing does.

    `noise` is printed before the marker, `stderr` beside it. `status`: the command ends
    with it and no agent speaks. `hang`: for ever, at ``connect``, ``login``, ``sync`` or an
    operation. `slow`: seconds before each answer. `received`, `sent`: the link is cut
    after so many bytes of the agent's stdin or stdout. `before`, `after`, `answered`: cut
    around an operation: not done, done and not answered, answered. `refused`: no key is
    accepted. `dropped`: connections cut before authentication; `drop`: with what
    probability each later one is. `full`: no commit finds room. `times`: connections that
    all this is for, 0 for every one.
    """

    noise: str = ""
    stderr: str = ""
    status: int | None = None
    hang: str = ""
    slow: float = 0
    received: int | None = None
    sent: int | None = None
    before: str = ""
    after: str = ""
    answered: str = ""
    refused: bool = False
    dropped: int = 0
    drop: float = 0
    full: bool = False
    times: int = 0


@dataclass
class Counters:
    """What came to a host: connections, sessions, and commits that were done."""

    connections: int = 0
    sessions: int = 0
    commits: int = 0


@dataclass
class Host:
    """One address; `home` is its user's, `tree` its site-packages."""

    name: str
    address: str
    home: str
    tree: str
    fault: Fault = field(default_factory=Fault)
    counters: Counters = field(default_factory=Counters)


class Cut(Exception):
    """The link was cut here, on purpose."""


class Fleet:
    """All hosts, and what their sessions share."""

    def __init__(self, hosts: list[Host], shell: bool) -> None:
        self.hosts = {host.address: host for host in hosts}
        self.named = {host.name: host for host in hosts}
        self.shell = shell
        self.pool = ThreadPoolExecutor(8)
        self.chance = random.Random(1)
        self.children: list[asyncio.subprocess.Process] = []
        self.open = self.peak = 0

    async def listen(self, key: str, authorized: str, port: int) -> asyncssh.SSHAcceptor:
        """Listen on every address."""
        self.authorized = asyncssh.import_authorized_keys(authorized)
        return await asyncssh.listen(
            list(self.hosts),
            port,
            server_host_keys=[key],
            server_factory=lambda: Door(self),
            process_factory=self.run,
            encoding=None,
            login_timeout=0,
            backlog=500,
        )

    def host(self, conn: asyncssh.SSHServerConnection) -> Host:
        """Return the host that a connection is to."""
        return self.hosts[conn.get_extra_info("sockname")[0]]

    async def run(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        """Serve one session."""
        conn = process.get_extra_info("connection")
        host = self.host(conn)
        host.counters.sessions += 1
        fault = conn.get_extra_info("fault")
        with contextlib.suppress(OSError, asyncssh.Error, asyncio.IncompleteReadError):
            if process.command == "true":
                process.exit(0)
            elif self.shell:
                await self._shell(process, host)
            else:
                try:
                    process.exit(await Agent(self, host, fault, process).serve())
                except Cut:
                    conn.abort()

    async def _shell(self, process: asyncssh.SSHServerProcess[bytes], host: Host) -> None:
        child = await asyncio.create_subprocess_exec(
            "/bin/sh",
            "-c",
            process.command or "",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={"HOME": host.home, "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
            cwd=host.home,
        )
        self.children.append(child)
        await process.redirect(stdin=child.stdin, stdout=child.stdout, stderr=child.stderr)
        process.exit(await child.wait())

    def take(self, order: dict[str, object]) -> dict[str, object]:
        """Do what a line on stdin says and return the answer."""
        for name, fault in order.get("faults", {}).items():
            self.named[name].fault = Fault(**fault)
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return {
            "counters": {name: asdict(host.counters) for name, host in self.named.items()},
            "cpu": usage.ru_utime + usage.ru_stime,
            "open": self.open,
            "peak": self.peak,
        }


class Door(asyncssh.SSHServer):
    """What happens to a connection before there is a session."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.fault = Fault()
        self.conn: asyncssh.SSHServerConnection

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        """Count it; cut it or leave it alone where the host's fault says so."""
        fleet, host = self.fleet, self.fleet.host(conn)
        self.conn = conn
        fleet.open += 1
        fleet.peak = max(fleet.peak, fleet.open)
        host.counters.connections += 1
        fault = self.fault = host.fault
        conn.set_extra_info(fault=fault)
        if fault.times:
            host.fault = replace(fault, times=fault.times - 1) if fault.times > 1 else Fault()
        if fault.hang == "connect":
            conn._transport.pause_reading()  # asyncssh has no public way to be deaf
        if fault.dropped or fleet.chance.random() < fault.drop:
            host.fault.dropped = max(0, fault.dropped - 1)
            conn.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Count it."""
        self.fleet.open -= 1

    async def begin_auth(self, username: str) -> bool:
        """Ask for the client's key; the host's fault may say that none is good, or hang."""
        if self.fault.hang == "login":
            await asyncio.Event().wait()
        if not self.fault.refused:
            self.conn.set_authorized_keys(self.fleet.authorized)
        return True

    def public_key_auth_supported(self) -> bool:
        """Look at keys in any case."""
        return True


class Agent:
    """One session's agent: stdin, stdout and the faults between them."""

    def __init__(
        self,
        fleet: Fleet,
        host: Host,
        fault: Fault,
        process: asyncssh.SSHServerProcess[bytes],
    ) -> None:
        self.fleet, self.host, self.fault, self.process = fleet, host, fault, process
        self.received = self.sent = 0

    async def serve(self) -> int:
        """Serve to the end of stdin and return the exit status."""
        fault, process = self.fault, self.process
        process.stderr.write(fault.stderr.encode())
        if fault.status is not None:
            await self._send(fault.noise.encode())
            return fault.status
        line = await process.stdin.readuntil(b"\n")
        self._count(line)
        found = _FIRST_LINE.fullmatch(line)
        assert found, f"not what patchq sends: {line!r}"
        loader = await self._read(int(found[2]))
        body = _BODY.search(loader)
        assert body, f"not patchq's loader: {loader!r}"
        await self._read(int(body[1]))
        await self._maybe_hang("sync")
        await self._send(fault.noise.encode() + protocol.marker(found[1]))
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                head, tail = protocol.lengths(await self._read(protocol.HEADER.size))
                await self._answer(await self._read(head), await self._read(tail))
        return 0

    async def _answer(self, head: bytes, tail: bytes) -> None:
        message, blobs = protocol.unpack(head, tail)
        op, fault = str(message["op"]), self.fault
        await self._maybe_hang(op)
        await asyncio.sleep(fault.slow)
        if fault.before == op:
            raise Cut
        loop = asyncio.get_running_loop()
        frame = await loop.run_in_executor(self.fleet.pool, self._respond, message, blobs)
        if fault.after == op:
            raise Cut
        await self._send(frame)
        if fault.answered == op:
            raise Cut

    def _respond(self, message: dict[str, object], blobs: dict[str, bytes]) -> bytes:
        host = self.host
        if message.get("target") in (None, SITE):
            message["target"] = host.tree
        if message["op"] == "commit" and self.fault.full:
            return protocol.pack({"error": _FULL.to_json()})
        answer, contents = serve.respond(message, blobs)
        if message["op"] == "commit" and "ok" in answer:
            host.counters.commits += 1
        answer = json.loads(json.dumps(answer).replace(host.tree, SITE))
        if "ok" in answer and "host" in answer["ok"]:
            answer["ok"]["host"]["name"] = host.name
        return protocol.pack(answer, contents)

    async def _maybe_hang(self, phase: str) -> None:
        if self.fault.hang == phase:
            await asyncio.Event().wait()

    async def _read(self, size: int) -> bytes:
        most = self.fault.received
        if most is not None and self.received + size > most:
            await self.process.stdin.readexactly(most - self.received)
            raise Cut
        data: bytes = await self.process.stdin.readexactly(size)
        self._count(data)
        return data

    def _count(self, data: bytes) -> None:
        self.received += len(data)

    async def _send(self, data: bytes) -> None:
        most = self.fault.sent
        short = most is not None and self.sent + len(data) > most
        self.process.stdout.write(data[: most - self.sent] if short and most is not None else data)
        self.sent += len(data)
        await self.process.stdout.drain()
        if short:
            raise Cut


async def main() -> None:
    """Serve until stdin ends."""
    loop = asyncio.get_running_loop()
    orders = asyncio.StreamReader(limit=1 << 26)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    first = json.loads(await orders.readline())
    fleet = Fleet([Host(**host) for host in first["hosts"]], first["shell"])
    fleet.take(first)
    listener = await fleet.listen(first["key"], first["authorized"], first["port"])
    started = {"ready": time.process_time()}
    print(json.dumps(started), flush=True)
    while line := await orders.readline():
        print(json.dumps(fleet.take(json.loads(line))), flush=True)
    listener.close()
    for child in fleet.children:
        with contextlib.suppress(ProcessLookupError):
            child.kill()
    os._exit(0)  # sessions that hang on purpose are not waited for


if __name__ == "__main__":
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    asyncio.run(main())
