"""One real sshd with a user for each login shell, and rc files of every temper.

Each user has a virtual environment for each Python of this machine. The sshd has a mount
namespace of its own, in which any user may enter the interpreters, wherever they are.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pwd
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import asyncssh

from patchq.conversation import commit, move
from patchq.conversation.goal import Upto
from patchq.conversation.view import Aim
from patchq.queue import store
from patchq.report import Report
from patchq.transport import command, hosts, ssh
from patchq.transport.channel import DEADLINES, Conversation, Deadlines
from tests import ssh_lab, world
from tests.agent import agent_lab

T = TypeVar("T")

SHELLS = ("sh", "bash", "zsh", "fish", "tcsh", "dash", "rbash")
CLIENTS = ("patchq's SSH", "command:ssh")
# The file that a shell reads when sshd starts it for a command. sh and dash read none; sshd
# itself has sh run the other one.
RC = {
    "sh": ".ssh/rc",
    "bash": ".bashrc",
    "zsh": ".zshenv",
    "fish": ".config/fish/config.fish",
    "tcsh": ".tcshrc",
    "dash": ".ssh/rc",
    "rbash": ".bashrc",
}
# A folder's name that no shell leaves alone.
ODD = "odd 'ven\"v! $HOME; `id` %s \\ é日 (x)&*~#"


@dataclass
class Account:
    """A user of the host; `alias` names it for the client."""

    alias: str
    shell: str
    name: str
    home: Path

    def rc(self, text: str | None) -> None:
        """Write the user's start-up file, or take it away."""
        path = self.home / RC[self.shell]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        if text is not None:
            path.write_text(text)

    def left(self, seconds: float = 10) -> dict[int, str]:
        """Return the processes of the user's that do not end by themselves."""
        until = time.monotonic() + seconds
        while (found := ssh_lab.processes(self.name)) and time.monotonic() < until:
            time.sleep(0.02)
        return found


@dataclass
class House:
    """The host: its users by alias, what the client has, and the interpreters by version."""

    base: Path
    client: ssh_lab.Home
    server: ssh_lab.Server
    accounts: dict[str, Account]
    pythons: dict[str, Path]

    async def hold(
        self,
        client: str,
        alias: str,
        python: str | None,
        conversation: Conversation[T],
        deadlines: Deadlines = DEADLINES,
    ) -> T:
        """Hold a conversation with a user's agent, by one of `CLIENTS`."""
        if client == "command:ssh":
            # Half of what ssh(1) takes is its own first choice of a key exchange (sntrup761).
            ssh_name, *rest = self.client.ssh_argv(alias)
            argv = [ssh_name, "-o", "KexAlgorithms=curve25519-sha256", *rest]
            return await asyncio.to_thread(
                command.converse, argv, python, conversation, deadlines=deadlines
            )
        host = hosts.parse(alias, python=python)
        async with replace(
            ssh.Settings.read(self.client.environ), deadlines=deadlines
        ) as settings:
            return await ssh.converse(host, settings, conversation)


def interpreters() -> dict[str, Path]:
    """Return every Python from 3.8 on that this machine has: version and real path."""
    show = (
        "import os, sys; print('%d.%d' % sys.version_info[:2], os.path.realpath(sys.executable))"
    )
    found = {}
    for python in agent_lab.interpreters():
        done = subprocess.run([python, "-ISc", show], capture_output=True, text=True, check=True)
        version, path = done.stdout.rstrip("\n").split(" ", 1)
        found[version] = Path(path)
    return dict(sorted(found.items(), key=lambda item: [*map(int, item[0].split("."))]))


@contextlib.contextmanager
def house(
    shells: Mapping[str, str] | None = None,
    options: Callable[[House], str] = lambda house: "",
) -> Iterator[House]:
    """Keep a host with users: their aliases, and the login shell of each.

    `options` returns more of sshd's configuration.
    """
    pythons = interpreters()
    with contextlib.ExitStack() as stack:
        base = stack.enter_context(ssh_lab.folder())
        client = ssh_lab.Home(base / "client")
        key = asyncssh.generate_private_key("ssh-ed25519")
        key.write_private_key(str(base / "host_key"))
        (base / "host_key").chmod(0o600)
        port = ssh_lab.free_port()
        (base / "homes").mkdir()
        accounts = {}
        for alias, shell in (shells or {one: one for one in SHELLS}).items():
            kept = ssh_lab.account(base / "homes" / alias, shell)
            accounts[alias] = Account(alias, shell, *stack.enter_context(kept))
        public = key.export_public_key().decode().strip()
        server = ssh_lab.Server(port, "", public, base)
        found = House(base, client, server, accounts, pythons)
        (base / "authorized_keys").write_text(client.public)
        (base / "sshd_config").write_text(
            f"ListenAddress 127.0.0.1:{port}\nHostKey {base}/host_key\n"
            f"AuthorizedKeysFile {base}/authorized_keys\n"
            "StrictModes no\nUsePAM no\nPasswordAuthentication no\nPidFile none\n"
            f"MaxStartups 1000\nPermitUserRC yes\n{options(found)}\n"
        )
        stack.enter_context(ssh_lab.daemon(base, around=opened(base, pythons)))
        for one in accounts.values():
            here = ssh_lab.Server(port, one.name, public, one.home)
            client.add(one.alias, here, known=False)
        client.trust(server)
        yield found


def opened(base: Path, pythons: dict[str, Path]) -> list[str]:
    """Return a command that starts another where every user may enter the interpreters.

    A folder on the way that is closed to others is covered by an empty one, in which only
    the interpreters are.
    """
    hidden = base / "pythons"
    prefixes = {path.parent.parent for path in pythons.values()}
    closed = {p: top for p in prefixes if (top := _closed(p)) is not None}
    lines = ["set -e"]
    for number, prefix in enumerate(closed):
        place = shlex.quote(f"{hidden}/{number}")
        lines += [f"mkdir -p {place}", f"mount --bind {shlex.quote(str(prefix))} {place}"]
    for top in dict.fromkeys(closed.values()):
        lines.append(f"mount -t tmpfs -o mode=755 none {shlex.quote(str(top))}")
    for number, prefix in enumerate(closed):
        place = shlex.quote(str(prefix))
        lines += [f"mkdir -p {place}", f"mount --bind {shlex.quote(f'{hidden}/{number}')} {place}"]
    lines.append('exec "$@"')
    unshare = [ssh_lab.tool("unshare"), "--mount", "--propagation", "private"]
    return [*unshare, ssh_lab.tool("sh"), "-c", "; ".join(lines), "sh"]


def _closed(path: Path) -> Path | None:
    """Return the first folder on the way to a path that others may not enter."""
    for folder in reversed([path, *path.parents]):
        if not folder.stat().st_mode & 0o001:
            return folder
    return None


def furnish(account: Account, name: str, version: str, python: Path, site: Path) -> Path:
    """Make a virtual environment as venv makes it, with the packages of `site`; its folder."""
    folder = account.home / name
    packages = folder / "lib" / f"python{version}" / "site-packages"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(python)
    (folder / "pyvenv.cfg").write_text(
        f"home = {python.parent}\ninclude-system-site-packages = false\nversion = {version}\n"
    )
    shutil.copytree(site, packages)
    own(folder, account.name)
    return packages


def own(folder: Path, user: str) -> None:
    """Give a folder and all in it to a user."""
    entry = pwd.getpwnam(user)
    for path in [folder, *folder.rglob("*")]:
        os.chown(path, entry.pw_uid, entry.pw_gid, follow_symlinks=False)


def tree(packages: Path) -> dict[str, tuple[bytes, int]]:
    """Return bytes and mode of all files but patchq's state."""
    return {
        str(path.relative_to(packages)): (path.read_bytes(), path.stat().st_mode & 0o7777)
        for path in sorted(packages.rglob("*"))
        if path.is_file() and ".patchq" not in path.parts
    }


def push(of: world.World, target: Path | None = None) -> Conversation[Report]:
    """Push the world's whole queue, to a --target folder or the interpreter's environment."""
    return move.push(_aim(of, target), commit.Ground("lab", "lab"), Upto(None, True))


def pop(of: world.World, target: Path | None = None) -> Conversation[Report]:
    """Pop all."""
    return move.pop(_aim(of, target), commit.Ground("lab", "lab"), Upto(None, True))


def _aim(of: world.World, target: Path | None) -> Aim:
    queue = store.open(of.queue)
    return Aim(
        (queue,),
        lambda: of.root / "cache",
        name=queue.name,
        target=str(target) if target else None,
        explicit=True,
        remote=True,
    )
