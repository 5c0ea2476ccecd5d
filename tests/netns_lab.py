"""Hosts behind links that can be cut: each has a network namespace, and its own files.

A bridge in the controller's namespace joins them. Every host sees its own folder as
``base/host``, with a tree of packages, ``site``, and an interpreter, ``python``, which a
test may replace by one that waits at a chosen system call. No packet leaves the machine.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import asyncssh

from tests import shell_lab, ssh_lab, world

PYTHON = "/usr/bin/python3"
_ESTABLISHED = "01"


@dataclass
class Node:
    """One host: its name for the client, its user, and sshd's process id.

    `folder` is where it is on this machine; `here` the same folder as the host sees it.
    """

    name: str
    address: str
    user: str
    folder: Path
    here: Path
    net: str
    port: str
    sshd: int = 0

    @property
    def inside(self) -> Path:
        """The host's packages, as the host sees them."""
        return self.here / "site"

    @property
    def interpreter(self) -> str:
        """The host's Python, as the host sees it."""
        return PYTHON

    @property
    def site(self) -> Path:
        """The host's packages, from here, whatever is mounted there."""
        return Path(f"/proc/{self.sshd}/root{self.inside}")

    @property
    def state(self) -> Path:
        """What patchq keeps beside the packages."""
        return self.site / ".patchq" / "demo"

    def cut(self) -> None:
        """Pull the plug: no packet passes, and nobody is told."""
        ip("-n", self.net, "link", "set", self.port, "down")

    def heal(self) -> None:
        """Put the plug back."""
        ip("-n", self.net, "link", "set", self.port, "up")

    def slow(self, rate: str) -> None:
        """Let what is sent to the host pass at this rate, such as 64kbit."""
        shape = ("tbf", "rate", rate, "burst", "16kb", "latency", "2s")
        tc = ssh_lab.tool("tc")
        subprocess.run(
            [tc, "-n", self.net, "qdisc", "replace", "dev", self.port, "root", *shape], check=True
        )

    def waits(self, path: str, call: str, when: str, seconds: int = 3) -> None:
        """Let the agent wait at a system call whose first path is this, below ``site``.

        `when` is "enter" or "exit": before or after the call does its work.
        """
        (self.folder / "trace").write_text("")
        inject = f"inject={call}:delay_{when}={seconds * 1_000_000}"
        argv = [ssh_lab.tool("strace"), "-f", "-qq", "-o", f"{self.here}/trace"]
        argv += ["-P", f"{self.inside}/{path}", "-e", f"trace={call}", "-e", inject]
        argv.append(self.interpreter)
        self.runs(shlex.join(argv))

    def runs(self, line: str = "") -> None:
        """Let the host's interpreter be this command, or itself again."""
        line = line or self.interpreter
        (self.folder / "python").write_text(f'#!/bin/sh\nexec {line} "$@"\n')
        (self.folder / "python").chmod(0o755)

    @property
    def waiting(self) -> bool:
        """True from when the agent is at that call."""
        return bool((self.folder / "trace").read_text())

    @property
    def received(self) -> int:
        """How many bytes have come to the host."""
        lines = Path(f"/proc/{self.sshd}/net/dev").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.split()[0] == "e0:")

    @property
    def agents(self) -> list[int]:
        """The process ids of the agents that run there."""
        found = ssh_lab.processes(self.user)
        return [pid for pid, line in found.items() if line.startswith(f"{self.interpreter} -ISc")]

    def stop(self, *, listener: bool) -> None:
        """Let sshd hang: the one that takes connections, or all that serve the user."""
        for pid in [self.sshd] if listener else ssh_lab.processes(self.user):
            os.kill(pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """Let all go on that was stopped."""
        for pid in [self.sshd, *ssh_lab.processes(self.user)]:
            os.kill(pid, signal.SIGCONT)


@dataclass
class Net:
    """The hosts, the client that reaches them, and the world that it has."""

    base: Path
    client: ssh_lab.Home
    nodes: dict[str, Node]
    world: world.World
    name: str

    @property
    def site(self) -> Path:
        """What to name with --target: each host has its own there."""
        return self.base / "host" / "site"

    def start(self, verb: str, *args: str, hosts: str = "") -> subprocess.Popen[str]:
        """Start a verb for these hosts, in the controller's namespace."""
        where = ["-H", hosts or ",".join(self.nodes), "--target", str(self.site)]
        where += ["--python", str(self.base / "host" / "python")]
        argv = [ssh_lab.tool("nsenter"), f"--net=/run/netns/{self.name}", sys.executable]
        environ = {**os.environ, **self.client.environ, "PATCHQ_QUEUES": ""}
        environ |= {"PATCHQ_CACHE": str(self.world.root / "cache")}
        environ.pop("SSH_AUTH_SOCK", None)
        return subprocess.Popen(
            [*argv, "-m", "patchq", verb, *args, *where, "--queue", str(self.world.queue)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.world.root,
            env=environ,
        )

    def run(self, verb: str, *args: str, hosts: str = "") -> subprocess.CompletedProcess[str]:
        """Run a verb for these hosts, to its end."""
        with self.start(verb, *args, hosts=hosts) as process:
            out, err = process.communicate()
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def linked(self, process: subprocess.Popen[str], node: Node) -> bool:
        """Return whether the client holds a connection to a host."""
        return linked(process, node)


def linked(process: subprocess.Popen[str], node: Node) -> bool:
    """Return whether a process is in a network that holds a connection to a host."""
    packed = socket.inet_aton(node.address)[::-1].hex().upper()
    rows = Path(f"/proc/{process.pid}/net/tcp").read_text().splitlines()[1:]
    fields = [row.split() for row in rows]
    return any(f[2].startswith(packed) and f[3] == _ESTABLISHED for f in fields)


def until(
    true: Callable[[], object], process: subprocess.Popen[str] | None = None, seconds: float = 120
) -> None:
    """Wait until something is true, or fail where the process ends before."""
    end = time.monotonic() + seconds
    while not true():
        assert process is None or process.poll() is None, process.communicate()
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.01)


@contextlib.contextmanager
def net(names: list[str], of: world.World, sizes: dict[str, str] | None = None) -> Iterator[Net]:
    """Keep hosts with these names; `sizes` of the file systems that are small, such as 1m."""
    with contextlib.ExitStack() as stack:
        base = stack.enter_context(ssh_lab.folder())
        client = ssh_lab.Home(base / "client")
        name = f"pq{secrets.token_hex(3)}"
        found = Net(base, client, {}, of, name)
        (base / "host").mkdir()
        stack.enter_context(bridge(name))
        for number, each in enumerate(names):
            size = (sizes or {}).get(each)
            found.nodes[each] = stack.enter_context(_node(found, each, number, size))
        yield found


@contextlib.contextmanager
def _node(net: Net, name: str, number: int, size: str | None) -> Iterator[Node]:
    folder, address = net.base / name, f"10.77.1.{number + 10}"
    folder.mkdir()
    with contextlib.ExitStack() as stack:
        user, _ = stack.enter_context(ssh_lab.account(folder / "home", "bash"))
        space, port = f"{net.name}{name}", f"v{number}"
        stack.enter_context(wired(net.name, space, port, address))
        node = Node(name, address, user, folder, net.base / "host", net.name, port)
        key = _furnish(net, node)
        around = _around(node, space, size)
        process = stack.enter_context(ssh_lab.daemon(folder, around=around))
        node.sshd = process.pid
        stack.callback(node.go_on)
        _know(net, node, key)
        yield node


def _furnish(net: Net, node: Node) -> asyncssh.SSHKey:
    """Give a host its packages, its interpreter, its key and sshd's configuration."""
    shutil.copytree(net.world.site, node.folder / "site")
    shell_lab.own(node.folder / "site", node.user)
    node.runs()
    (node.folder / "trace").write_text("")
    shutil.chown(node.folder / "trace", node.user)
    (node.folder / "authorized_keys").write_text(net.client.public)
    (node.folder / "sshd_config").write_text(
        f"ListenAddress 0.0.0.0:22\nHostKey {node.folder}/host_key\n"
        f"AuthorizedKeysFile {node.folder}/authorized_keys\nStrictModes no\nUsePAM no\n"
        "PidFile none\nPasswordAuthentication no\nUseDNS no\n"
    )
    key = asyncssh.generate_private_key("ssh-ed25519")
    key.write_private_key(str(node.folder / "host_key"))
    (node.folder / "host_key").chmod(0o600)
    return key


def _around(node: Node, space: str, size: str | None) -> list[str]:
    """Return what starts sshd in the host's namespaces, with its own folder as ``base/host``."""
    here, folder = shlex.quote(str(node.here)), shlex.quote(str(node.folder))
    lines = ["set -e"]
    if size is not None:
        lines += [
            f"mkdir {folder}/small",
            f"mount -t tmpfs -o size={size},mode=755 none {folder}/small",
            f"cp -a {folder}/site/. {folder}/small",
            f"chown --reference={folder}/site {folder}/small",
            f"mount --move {folder}/small {folder}/site",
        ]
    lines += [f"mount --rbind {folder} {here}", 'exec "$@"']
    argv = [ssh_lab.tool("nsenter"), f"--net=/run/netns/{space}", ssh_lab.tool("unshare")]
    argv += ["--mount", "--propagation", "private"]
    return [*argv, ssh_lab.tool("sh"), "-c", "; ".join(lines), "sh"]


def _know(net: Net, node: Node, key: asyncssh.SSHKey) -> None:
    public = key.export_public_key().decode().strip()
    with net.client.config.open("a") as file:
        file.write(
            f"Host {node.name}\n  HostName {node.address}\n  User {node.user}\n"
            f"  IdentityFile {net.client.key_file}\n"
        )
    with net.client.known_hosts.open("a") as file:
        file.write(f"{node.address} {public}\n")


@contextlib.contextmanager
def bridge(name: str) -> Iterator[None]:
    """Keep the controller's network namespace: a bridge that `wired` hosts are at."""
    with namespace(name):
        ip("-n", name, "link", "add", "br0", "type", "bridge")
        ip("-n", name, "addr", "add", "10.77.1.1/24", "dev", "br0")
        ip("-n", name, "link", "set", "br0", "up")
        yield


@contextlib.contextmanager
def wired(net: str, space: str, port: str, address: str) -> Iterator[None]:
    """Keep a host's network namespace `space`; `port` is its plug at the bridge of `net`."""
    with namespace(space):
        peer = ("peer", "name", "e0", "netns", space)
        ip("link", "add", port, "netns", net, "type", "veth", *peer)
        ip("-n", net, "link", "set", port, "master", "br0")
        ip("-n", net, "link", "set", port, "up")
        ip("-n", space, "addr", "add", f"{address}/24", "dev", "e0")
        ip("-n", space, "link", "set", "e0", "up")
        yield


@contextlib.contextmanager
def namespace(name: str) -> Iterator[None]:
    """Keep a network namespace whose loopback is up."""
    ip("netns", "add", name)
    try:
        ip("-n", name, "link", "set", "lo", "up")
        yield
    finally:
        ip("netns", "delete", name)


def ip(*args: str) -> None:
    """Run ip(8)."""
    subprocess.run([ssh_lab.tool("ip"), *args], check=True)
