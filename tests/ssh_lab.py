"""Hosts for tests, on loopback: an embedded server, and a real sshd.

Both take the same client: a `Home` with keys, known_hosts and ssh_config of its own,
whose `environ` serves patchq and ssh(1) alike. Whatever is started here is stopped by
its id, and every tree is removed. A missing tool is a failure, not a skip.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import asyncssh

SHELLS = ("sh", "bash", "zsh", "fish", "tcsh", "dash")
# What a host has on its PATH: the distribution's tools, no shim of the test machine.
PATH = "/usr/local/bin:/usr/bin:/bin"


def tool(name: str) -> str:
    """Return the path of a program that the lab needs."""
    found = shutil.which(name, path=f"{PATH}:/usr/sbin:/sbin")
    assert found, f"{name} is not installed here, and this test needs the real one"
    return found


def free_port() -> int:
    """Return a port of loopback on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """Keep a folder that every user of this machine can enter."""
    path = Path(tempfile.mkdtemp(prefix="patchq-lab-"))
    path.chmod(0o755)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


class Home:
    """A client's home: one key, a known_hosts and an ssh_config that grow by `add`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ssh = path / ".ssh"
        self.ssh.mkdir(parents=True, mode=0o700)
        self.key = asyncssh.generate_private_key("ssh-ed25519", comment="lab")
        self.key_file = self.ssh / "id_ed25519"
        self.key.write_private_key(str(self.key_file))
        self.key_file.chmod(0o600)
        self.key.write_public_key(f"{self.key_file}.pub")
        self.known_hosts = self.ssh / "known_hosts"
        self.known_hosts.touch()
        self.config = self.ssh / "config"
        self.config.touch()

    @property
    def environ(self) -> dict[str, str]:
        """What a program of this client's sees of its surroundings."""
        return {"HOME": str(self.path), "PATH": PATH, "LANG": "C.UTF-8"}

    @property
    def public(self) -> str:
        """The line for a host's authorized_keys."""
        return self.key.export_public_key().decode()

    def add(self, alias: str, server: Server, *extra: str, known: bool = True) -> None:
        """Let `alias` name this server; `extra` are more lines of ssh_config."""
        lines = [
            f"Host {alias}",
            "HostName 127.0.0.1",
            f"Port {server.port}",
            f"User {server.user}",
            f"IdentityFile {self.key_file}",
            f"UserKnownHostsFile {self.known_hosts}",
            *extra,
        ]
        with self.config.open("a") as file:
            file.write("\n    ".join(lines) + "\n")
        if known:
            self.trust(server)

    def trust(self, server: Server, marker: str = "") -> None:
        """Write the server's key to known_hosts, behind `marker`."""
        with self.known_hosts.open("a") as file:
            file.write(f"{marker}[127.0.0.1]:{server.port} {server.host_key}\n")

    def ssh_argv(self, alias: str) -> list[str]:
        """Return ssh(1) to `alias` as a command, for `transport.command`."""
        return [tool("ssh"), "-F", str(self.config), "-o", "BatchMode=yes", alias]


@dataclass
class Server:
    """What a client needs to know of a host; `host_key` as authorized_keys has it."""

    port: int
    user: str
    host_key: str
    home: Path
    # Of an embedded host only: the lines that were run there, their process ids, the
    # terminal and the forwarded agent of each session, and where tunnels led.
    commands: list[str] = field(default_factory=list)
    children: list[int] = field(default_factory=list)
    sessions: list[tuple[str | None, str | None]] = field(default_factory=list)
    tunnels: list[tuple[str, int]] = field(default_factory=list)
    # From which addresses they connected.
    peers: list[str] = field(default_factory=list)
    # How many connected, and how many at most were there and not logged in yet at once.
    logins: int = 0
    most_at_once: int = 0
    # Cuts every connection at once, without a goodbye.
    cut: Callable[[], None] = lambda: None


@contextlib.contextmanager
def embedded(
    home: Path,
    authorized: str,
    *,
    shell: str = "sh",
    key: asyncssh.SSHKey | tuple[asyncssh.SSHKey, asyncssh.SSHCertificate] | None = None,
) -> Iterator[Server]:
    """Keep an asyncssh server whose commands run as ``SHELL -c COMMAND``, as sshd runs them.

    `home` is the remote user's, where rc files go; `key` the host's, with its certificate
    where it has one. The server may be a jump host, too. The server has a thread and a loop of
    its own, so that a test may drive asyncio, or wait for a child of its own.
    """
    key = key or asyncssh.generate_private_key("ssh-ed25519")
    public = key[0] if isinstance(key, tuple) else key
    server = Server(0, "someone", public.export_public_key().decode().strip(), home)
    program = tool(shell)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="embedded sshd")
    thread.start()

    def call(coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result(30)

    try:
        links = call(_listen(server, key, authorized, program))
        server.cut = lambda: call(_cut(links))
        try:
            yield server
        finally:
            call(_stop(links, server))
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _listen(server, key, authorized, program):
    async def run(process: asyncssh.SSHServerProcess) -> None:
        environ = {"HOME": str(server.home), "PATH": PATH, "SSH_CLIENT": "127.0.0.1 9 22"}
        environ |= {"SHELL": program, "USER": server.user, "LANG": "C.UTF-8"}
        child = await asyncio.create_subprocess_exec(
            program,
            "-c",
            process.command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environ,
            cwd=server.home,
            start_new_session=True,
        )
        server.commands.append(process.command)
        server.sessions.append((process.term_type, process.get_extra_info("agent_path")))
        server.children.append(child.pid)
        feeding = asyncio.create_task(_feed(process.stdin, child.stdin))
        await asyncio.gather(
            _copy(child.stdout, process.stdout), _copy(child.stderr, process.stderr)
        )
        status = await child.wait()
        feeding.cancel()
        child.stdin.close()
        if status < 0:
            process.exit_with_signal(signal.Signals(-status).name.removeprefix("SIG"))
        else:
            process.exit(status)

    links, knocking = [], set()

    class Door(asyncssh.SSHServer):
        def connection_made(self, conn):
            links.append(conn)
            knocking.add(self)
            server.peers.append(conn.get_extra_info("peername")[0])
            server.logins += 1
            server.most_at_once = max(server.most_at_once, len(knocking))

        def auth_completed(self):
            knocking.discard(self)

        def connection_lost(self, exc):
            knocking.discard(self)

        def connection_requested(self, dest_host, dest_port, orig_host, orig_port):
            server.tunnels.append((dest_host, dest_port))
            return True

    listener = await asyncssh.listen(
        "127.0.0.1",
        0,
        server_host_keys=[key],
        authorized_client_keys=asyncssh.import_authorized_keys(authorized),
        server_factory=Door,
        process_factory=run,
        encoding=None,
    )
    server.port = listener.get_port()
    links.append(listener)
    return links


async def _feed(source, sink) -> None:
    """Hand on what the client sends; its end, or the link's, ends the child's stdin."""
    with contextlib.suppress(OSError, asyncssh.Error):
        while data := await source.read(1 << 16):
            sink.write(data)
            await sink.drain()
    sink.close()


async def _copy(source, sink) -> None:
    while data := await source.read(1 << 16):
        with contextlib.suppress(OSError):
            sink.write(data)


async def _cut(links) -> None:
    for link in links:
        if isinstance(link, asyncssh.SSHServerConnection):
            link.abort()


async def _stop(links, server) -> None:
    for pid in server.children:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
    for link in links:
        link.close()
    for link in links:
        await link.wait_closed()
    # The commands have been ended, and every link: their tasks end by themselves.
    others = asyncio.all_tasks() - {asyncio.current_task()}
    await asyncio.wait_for(asyncio.gather(*others, return_exceptions=True), 10)


@contextlib.contextmanager
def sshd(
    base: Path,
    authorized: str,
    *,
    shell: str = "zsh",
    options: str = "",
    owner: tuple[str, Path] | None = None,
) -> Iterator[Server]:
    """Keep a real sshd; the user is a throwaway one with this login shell, or `owner`.

    Without root it is the current user with his own shell. `base` comes from `folder`.
    """
    with contextlib.ExitStack() as stack:
        user, home = owner or stack.enter_context(account(base / "home", shell))
        key = asyncssh.generate_private_key("ssh-ed25519")
        key.write_private_key(str(base / "host_key"))
        (base / "host_key").chmod(0o600)
        (base / "authorized_keys").write_text(authorized)
        port = free_port()
        (base / "sshd_config").write_text(
            f"ListenAddress 127.0.0.1:{port}\nHostKey {base}/host_key\n"
            f"AuthorizedKeysFile {base}/authorized_keys\nStrictModes no\nUsePAM no\n"
            f"PermitRootLogin yes\nPidFile none\nPasswordAuthentication no\n{options}\n"
        )
        stack.enter_context(daemon(base))
        yield Server(port, user, key.export_public_key().decode().strip(), home)


@contextlib.contextmanager
def account(home: Path, shell: str) -> Iterator[tuple[str, Path]]:
    """Keep a throwaway user with this login shell and home: his name and home.

    Without root it is the current user. What he leaves running is ended by its id.
    """
    if os.getuid() != 0:
        entry = pwd.getpwuid(os.getuid())
        yield entry.pw_name, Path(entry.pw_dir)
        return
    name = f"pq{secrets.token_hex(4)}"
    add = [tool("useradd"), "--no-log-init", "-M", "-N", "-p", "*"]
    subprocess.run([*add, "-d", home, "-s", tool(shell), name], check=True)
    try:
        home.mkdir()
        shutil.chown(home, name)
        yield name, home
    finally:
        end_processes(name)
        subprocess.run([tool("userdel"), "-f", name], check=True, capture_output=True)


def processes(user: str) -> dict[int, str]:
    """Return what runs as this user: process id and command line; zombies do not run."""
    uid, found = pwd.getpwnam(user).pw_uid, {}
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            line = (path / "cmdline").read_bytes() if path.stat().st_uid == uid else b""
            if line:
                found[int(path.name)] = line.replace(b"\0", b" ").decode(errors="replace").strip()
    return found


def end_processes(user: str) -> None:
    """End what the throwaway user left running, each by its id."""
    while found := processes(user):
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def daemon(base: Path, *, around: Sequence[str] = ()) -> Iterator[subprocess.Popen[bytes]]:
    """Keep sshd with ``base/sshd_config``; `around` is a command that becomes another, as env."""
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    # sshd starts itself anew after a change of folder: every path is absolute.
    log = base / "log"
    argv = [*around, tool("sshd"), "-D", "-f", str(base / "sshd_config"), "-E", str(log)]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL) as process:
        try:
            while not (log.exists() and "Server listening" in log.read_text()):
                assert process.poll() is None, f"sshd did not start: {log.read_text()}"
                time.sleep(0.01)
            yield process
        finally:
            process.terminate()
