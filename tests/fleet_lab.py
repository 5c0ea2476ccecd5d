"""Many hosts for tests and benchmarks, on loopback, in one process of their own.

`fleet` keeps up to some thousand of them (`fleet_server`): each has an address, a tree of
its own that begins as the template, and faults that a test sets. The environment of
every host is `SITE`, and is what a request without a target means there, too. The
client is a `ssh_lab.Home`: ``patchq -H h0001`` in a process with its `environ`.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import asyncssh

from tests import ssh_lab
from tests.fleet_server import SITE, Counters, Fault

__all__ = ["SITE", "Counters", "Fault", "Lab", "Simulated", "fleet", "plant", "version"]

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Simulated:
    """A host: its name for ``-H``, its address, and the tree that it shows as `SITE`."""

    name: str
    address: str
    home: Path
    tree: Path

    def write(self, path: str, data: bytes) -> None:
        """Put a file into the tree; the other hosts' stay (hard links)."""
        (self.tree / path).unlink(missing_ok=True)
        (self.tree / path).write_bytes(data)


class Lab:
    """A fleet that runs: its hosts by name, its client, and what can be asked of it."""

    def __init__(self, base: Path, count: int, template: Path) -> None:
        self.base = base
        self.port = ssh_lab.free_port()
        self.home = ssh_lab.Home(base / "client")
        self.key = asyncssh.generate_private_key("ssh-ed25519")
        self.hosts: dict[str, Simulated] = {}
        copy = shutil.copytree(template, base / "template", symlinks=True)
        for number in range(1, count + 1):
            name, high, low = f"h{number:04}", *divmod(number - 1, 250)
            home = base / "hosts" / name
            tree = plant(copy, home)
            self.hosts[name] = Simulated(name, f"127.77.{high}.{low + 1}", home, tree)
        self._forged: set[str] = set()
        self._write_home()

    def forge(self, *names: str) -> None:
        """Let known_hosts have another key of these hosts than they show, and no others."""
        self._forged = set(names)
        self._write_home()

    def fault(self, *names: str, **what: object) -> None:
        """Set the faults of these hosts, as `Fault` has them; nothing given: none."""
        self._ask({"faults": {name: asdict(Fault(**what)) for name in names}})

    def counters(self) -> dict[str, Counters]:
        """Return what came to each host so far."""
        return {name: Counters(**found) for name, found in self._ask({})["counters"].items()}

    @property
    def cpu(self) -> float:
        """CPU seconds that all hosts have used so far."""
        return float(self._ask({})["cpu"])

    @property
    def peak(self) -> int:
        """The most connections that were open at once."""
        return int(self._ask({})["peak"])

    def _ask(self, order: dict[str, object]) -> dict[str, object]:
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the hosts' process has ended; its stderr says why"
        return json.loads(line)

    def _write_home(self) -> None:
        mine = self.key.export_public_key().decode().strip()
        other = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode().strip()
        known, config = [], []
        for host in self.hosts.values():
            key = other if host.name in self._forged else mine
            known.append(f"[{host.address}]:{self.port} {key}\n")
            config.append(f"Host {host.name}\n    HostName {host.address}\n")
        config.append(
            f"Host h*\n    Port {self.port}\n    User someone\n"
            f"    IdentityFile {self.home.key_file}\n"
            f"    UserKnownHostsFile {self.home.known_hosts}\n"
        )
        self.home.known_hosts.write_text("".join(known))
        self.home.config.write_text("".join(config))

    @contextlib.contextmanager
    def _running(self, faults: dict[str, Fault], shell: bool) -> Iterator[None]:
        key = self.base / "host_key"
        self.key.write_private_key(str(key))
        order = {
            "hosts": [
                {"name": h.name, "address": h.address, "home": str(h.home), "tree": str(h.tree)}
                for h in self.hosts.values()
            ],
            "faults": {name: asdict(fault) for name, fault in faults.items()},
            "key": str(key),
            "authorized": self.home.public,
            "port": self.port,
            "shell": shell,
        }
        argv = [sys.executable, "-m", "tests.fleet_server"]
        with subprocess.Popen(
            argv, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as self._process:
            try:
                self._ask(order)
                yield
            finally:
                self._process.stdin.close()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(10)
                self._process.kill()


@contextlib.contextmanager
def fleet(
    count: int, template: Path, *, faults: dict[str, Fault] | None = None, shell: bool = False
) -> Iterator[Lab]:
    """Keep `count` hosts, h0001 and on, whose trees begin as `template`.

    `shell`: each session is a real child, ``/bin/sh -c LINE``; of the faults only those of
    the connection count then, and the tree's real place is to be named as the target.
    """
    with ssh_lab.folder() as base:
        lab = Lab(base, count, template)
        with lab._running(faults or {}, shell):
            yield lab


def plant(
    template: Path, home: Path, python: str = "/usr/bin/python3", *, linked: bool = True
) -> Path:
    """Lay out ``~/venv`` in a host's home and return its site-packages, made as `template`.

    `linked`: files are hard links; who changes one without giving it a new inode changes all.
    """
    venv = home / "venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").symlink_to(python)
    (venv / "pyvenv.cfg").write_text(f"home = {os.path.dirname(python)}\n")
    tree = venv / "lib" / f"python{version(python)}" / "site-packages"
    if linked:
        _link(str(template), str(tree))
    else:
        shutil.copytree(template, tree, symlinks=True)
    return tree


@functools.cache
def version(python: str = "/usr/bin/python3") -> str:
    """Return the X.Y of an interpreter of this machine."""
    argv = [python, "-ISc", "import sys; print('%d.%d' % sys.version_info[:2])"]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()


def _link(source: str, target: str) -> None:
    os.makedirs(target)
    with os.scandir(source) as entries:
        for entry in entries:
            place = os.path.join(target, entry.name)
            if entry.is_dir(follow_symlinks=False):
                _link(entry.path, place)
            else:
                os.link(entry.path, place, follow_symlinks=False)
