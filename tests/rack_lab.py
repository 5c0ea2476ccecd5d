"""A rack of hosts, each with a real sshd in network, mount and process namespaces of its own.

A host has a user with one of the login shells, and at one place, ``base/host/venv``, a real
virtual environment of one of this machine's Pythons, made by venv and pip or by uv. Most
users own theirs; of some hosts root does, who logs in or is reached by sudo. `hosts.toml`
names all of them. The links can be cut (`netns_lab`). No packet leaves the machine.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import asyncssh

from tests import netns_lab, rack_service, shell_lab, ssh_lab, world

MAKERS = ("pip", "uv")
# By their numbers; all others are reached as who owns the environment.
ROOT, SUDO = (9, 20), (5, 16, 27)
# What runs on a host after a login as who runs its server: a server anew.
SERVE = """\
#!/bin/sh
cd {run} || exit 1
if read pid < group; then kill -s KILL -- "-$pid"; fi 2> /dev/null
rm -f pids
setsid {environ}{command} "$1" {run}/pids $2 > log 2>&1 < /dev/null &
echo $! > group
"""


@dataclass
class Host(netns_lab.Node):
    """One host of a rack: `user` logs in, `owner` has the environment, `server` runs a server."""

    shell: str = "bash"
    version: str = ""
    maker: str = "pip"
    owner: str = "root"
    server: str = ""
    listens: int = 22
    key: asyncssh.SSHKey | None = None

    @property
    def environment(self) -> Path:
        """The virtual environment, as the host sees it."""
        return self.here / "venv"

    @property
    def inside(self) -> Path:
        """The environment's packages, as the host sees them."""
        return self.environment / f"lib/python{self.version}/site-packages"

    @property
    def interpreter(self) -> str:
        """The environment's Python, as the host sees it."""
        return str(self.environment / "bin/python")

    @property
    def packages(self) -> Path:
        """The environment's packages, from here."""
        return self.folder / self.inside.relative_to(self.here)

    def tree(self) -> dict[str, tuple[bytes, int, int]]:
        """Return bytes, mode and owner of the distribution's files, without bytecode."""
        return {
            str(path.relative_to(self.packages)): (path.read_bytes(), info.st_mode, info.st_uid)
            for path in sorted(self.packages.glob("demo*/**/*"))
            if path.is_file() and path.suffix != ".pyc" and (info := path.stat())
        }

    def text(self) -> dict[str, bytes]:
        """Return the bytes of the package's files."""
        return {path: one[0] for path, one in self.tree().items() if path.startswith("demo/")}

    def needs(self, *, there: bool) -> None:
        """Install what the queue's last patch needs, or take it away."""
        path = self.packages / rack_service.NEEDED
        path.unlink(missing_ok=True)
        if there:
            path.write_text("UNIT = 1\n")
            shutil.chown(path, self.owner)

    def model(self, *, there: bool) -> None:
        """Let a health command find a model on the host, or none."""
        (self.folder / "model").unlink(missing_ok=True)
        if there:
            (self.folder / "model").touch()

    def serves(self, command: str = "", environ: str = "") -> str:
        """Write the host's script that starts its server anew; its path there."""
        command = command or f"{self.environment}/bin/demo-serve"
        text = SERVE.format(run=self.here / "run", command=command, environ=environ)
        (self.folder / "serve").write_text(text)
        (self.folder / "serve").chmod(0o755)
        return f"{self.here}/serve"

    def pids(self) -> dict[str, int]:
        """Return the newest number of each process of the server's, as the host has them."""
        path = self.folder / "run/pids"
        lines = path.read_text().splitlines() if path.exists() else []
        return {name: int(pid) for name, pid in map(str.split, lines)}


@dataclass
class Rack:
    """Hosts by name, the client that reaches them, and the world that it has."""

    base: Path
    client: ssh_lab.Home
    name: str
    world: world.World
    pythons: dict[str, Path]
    stack: contextlib.ExitStack
    hosts: dict[str, Host] = field(default_factory=dict)

    @property
    def told(self) -> str:
        """What is there, in words: login shells, Pythons, and who made the environments."""
        hosts = self.hosts.values()
        words = {key: sorted({getattr(one, key) for one in hosts}) for key in ("shell", "maker")}
        versions = [*dict.fromkeys(one.version for one in hosts)]
        return f"{len(hosts)} hosts; {words['shell']}; {words['maker']}; Python {versions}"

    def write(self, *, slow: tuple[str, ...] = (), more: str = "") -> None:
        """Write hosts.toml; the interpreters of `slow` hosts are what `waits` made of them."""
        lines = ["[all]", f'environment = "{self.base}/host/venv"', 'wanted = ["q"]', more]
        for one in self.hosts.values():
            lines += [f"[hosts.{one.name}]", f'address = "{one.address}"', f'user = "{one.user}"']
            lines += [f"port = {one.listens}"] if one.listens != 22 else []
            lines += ["become = true"] if one.user != one.owner == "root" else []
            lines += [f'python = "{one.here}/python"'] if one.name in slow else []
        (self.base / "hosts.toml").write_text("\n".join(lines) + "\n")

    def argv(self, verb: str, *args: str | Path) -> list[str]:
        """Return the command of a verb, in the controller's namespace."""
        space = [ssh_lab.tool("nsenter"), f"--net=/run/netns/{self.name}"]
        queue = ["--queue", str(self.world.queue)]
        return [*space, sys.executable, "-m", "patchq", verb, *map(str, args), *queue]

    def start(self, verb: str, *args: str | Path, **options: object) -> subprocess.Popen[str]:
        """Start a verb in the folder of hosts.toml."""
        environ = {**self.client.environ, "PATCHQ_QUEUES": ""}
        environ |= {"PATCHQ_CACHE": str(self.world.root / "cache")}
        pipe = subprocess.PIPE
        return subprocess.Popen(
            self.argv(verb, *args),
            stdout=pipe,
            stderr=pipe,
            text=True,
            cwd=self.base,
            env={**environ, "PATH": f"{options.pop('path', '')}:{ssh_lab.PATH}:/usr/sbin"},
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def run(
        self, verb: str, *args: str | Path, **options: object
    ) -> subprocess.CompletedProcess[str]:
        """Run a verb to its end."""
        with self.start(verb, *args, **options) as process:
            out, err = process.communicate(timeout=600)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def crash(self, host: Host) -> None:
        """Let a host lose its power: it says nothing to anybody, and nothing goes on there."""
        host.cut()
        os.kill(host.sshd, signal.SIGKILL)

    def boot(self, host: Host) -> None:
        """Let a host have its power again."""
        self.stack.enter_context(_serving(self, host))
        host.heal()

    def ssh(self, user: str = "") -> str:
        """Return how a command of the shell begins that logs in by ssh(1), as this user."""
        config = self.base / "operators_config"
        options = ["-F", str(config), "-o", "BatchMode=yes", *(["-l", user] if user else [])]
        return shlex.join([ssh_lab.tool("ssh"), *options])

    def login(self, host: Host, line: str, user: str = "") -> str:
        """Run a line in a login to a host, and return what it printed."""
        space = [ssh_lab.tool("nsenter"), f"--net=/run/netns/{self.name}"]
        argv = [*space, *shlex.split(self.ssh(user)), host.name, line]
        done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)
        return done.stdout


@contextlib.contextmanager
def rack(
    count: int, of: world.World, *, versions: int = 0, users: tuple[str, ...] = ()
) -> Iterator[Rack]:
    """Keep a rack; `versions`: so many of the newest Pythons, 0 for all of this machine's.

    `users`: shells of more users of the machine, which all hosts know: `Host.server` is the
    first of them, and has a place to write in.
    """
    with contextlib.ExitStack() as stack:
        base = stack.enter_context(ssh_lab.folder())
        pythons = dict([*shell_lab.interpreters().items()][-versions:])
        client, name = ssh_lab.Home(base / "client"), f"pq{secrets.token_hex(3)}"
        made = Rack(base, client, name, of, pythons, stack)
        (base / "host").mkdir()
        images = _images(base, of, pythons)
        more = [
            stack.enter_context(ssh_lab.account(base / f"user{number}", shell))[0]
            for number, shell in enumerate(users)
        ]
        stack.enter_context(netns_lab.bridge(made.name))
        kinds = [(version, maker) for maker in MAKERS for version in pythons]
        for number in range(1, count + 1):
            shell = shell_lab.SHELLS[number % len(shell_lab.SHELLS)]
            kind = kinds[number % len(kinds)]
            host = stack.enter_context(_host(made, number, shell, kind, more))
            shutil.copytree(images[kind], host.folder / "venv", symlinks=True)
            shell_lab.own(host.folder / "venv", host.owner)
            host.needs(there=True)
            made.boot(host)
        _know(made)
        made.write()
        yield made


def _images(base: Path, of: world.World, pythons: dict[str, Path]) -> dict[tuple[str, str], Path]:
    """Make an environment of each kind, with the world's wheel, where hosts will have it."""
    (wheel,) = of.root.glob("*.whl")
    here, uv = base / "host/venv", str(Path(sys.executable).with_name("uv"))
    quiet = ["-q", "--offline", "--cache-dir", str(base / "uv-cache")]
    found = {}
    for version, python in pythons.items():
        subprocess.run([python, "-m", "venv", here], check=True)
        pip = [here / "bin/python", "-m", "pip", "install", "-q", "--no-index", "--no-deps"]
        subprocess.run([*pip, "--disable-pip-version-check", wheel], check=True)
        found[version, "pip"] = here.rename(base / f"pip-{version}")
        subprocess.run([uv, "venv", *quiet, "-p", python, here], check=True)
        install = [uv, "pip", "install", *quiet, "--no-index", "--no-deps"]
        subprocess.run([*install, "--python", here / "bin/python", wheel], check=True)
        found[version, "uv"] = here.rename(base / f"uv-{version}")
    return found


@contextlib.contextmanager
def _host(
    rack: Rack, number: int, shell: str, kind: tuple[str, str], more: list[str]
) -> Iterator[Host]:
    """Keep a host's user and its network; its sshd is not there yet."""
    name = f"gpu{number:02}"
    folder = rack.base / name
    folder.mkdir()
    address, port = f"10.77.1.{number + 10}", f"v{number}"
    with contextlib.ExitStack() as stack:
        user = "root"
        if number not in ROOT:
            user, _ = stack.enter_context(ssh_lab.account(folder / "home", shell))
        stack.enter_context(netns_lab.wired(rack.name, f"{rack.name}{name}", port, address))
        host = Host(name, address, user, folder, rack.base / "host", rack.name, port)
        host.shell, (host.version, host.maker) = shell if user != "root" else "root's", kind
        host.owner = "root" if number in SUDO else user
        host.listens = 2222 if number % 4 == 0 else 22
        host.server = more[0] if more else user
        (folder / "run").mkdir()
        shutil.chown(folder / "run", host.server)
        host.runs()
        host.serves()
        (folder / "trace").touch()
        shutil.chown(folder / "trace", user)
        rack.hosts[name] = host
        yield host


@contextlib.contextmanager
def _serving(rack: Rack, host: Host) -> Iterator[None]:
    """Keep the host's sshd, the first process of its namespace: all ends with it."""
    folder, here = shlex.quote(str(host.folder)), shlex.quote(str(host.here))
    host.key = host.key or asyncssh.generate_private_key("ssh-ed25519")
    (host.folder / "log").unlink(missing_ok=True)
    host.key.write_private_key(str(host.folder / "host_key"))
    (host.folder / "host_key").chmod(0o600)
    (host.folder / "authorized_keys").write_text(rack.client.public)
    (host.folder / "sshd_config").write_text(
        f"ListenAddress 0.0.0.0:{host.listens}\nHostKey {host.folder}/host_key\n"
        f"AuthorizedKeysFile {host.folder}/authorized_keys\nStrictModes no\nUsePAM no\n"
        "PermitRootLogin yes\nPidFile none\nPasswordAuthentication no\nUseDNS no\n"
    )
    (host.folder / "sudoers").write_text(f"{host.user} ALL=(ALL) NOPASSWD: ALL\n")
    (host.folder / "sudoers").chmod(0o440)
    lines = ["set -e", f"mount --rbind {folder} {here}"]
    if host.user != host.owner:
        lines.append(f"mount --bind {folder}/sudoers /etc/sudoers")
    unshare = [ssh_lab.tool("unshare"), "--pid", "--fork", "--kill-child", "--mount-proc"]
    around = [ssh_lab.tool("nsenter"), f"--net=/run/netns/{rack.name}{host.name}"]
    around += [*shell_lab.opened(host.folder, rack.pythons), ssh_lab.tool("sh"), "-c"]
    around += ["; ".join([*lines, 'exec "$@"']), "sh", *unshare]
    with ssh_lab.daemon(host.folder, around=around) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        first = host.sshd = int(children.read_text())
        try:
            yield
        finally:
            with contextlib.suppress(ProcessLookupError):  # it has lost its power
                os.kill(first, signal.SIGKILL)


def _know(rack: Rack) -> None:
    """Write what the client knows: its keys for patchq, and all names for the operator's ssh."""
    known, config = [], []
    for host in rack.hosts.values():
        assert host.key is not None
        public = host.key.export_public_key().decode().strip()
        place = host.address if host.listens == 22 else f"[{host.address}]:{host.listens}"
        known.append(f"{place} {public}\n")
        config.append(f"Host {host.name}\n  HostName {host.address}\n  User {host.user}\n")
        config.append(f"  Port {host.listens}\n")
    ours = f"  IdentityFile {rack.client.key_file}\n"
    ours += f"  UserKnownHostsFile {rack.client.known_hosts}\n"
    rack.client.known_hosts.write_text("".join(known))
    rack.client.config.write_text(f"Host *\n{ours}")
    (rack.base / "operators_config").write_text("".join(config) + f"Host *\n{ours}")
