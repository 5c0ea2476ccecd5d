"""What people use today to patch files on many hosts, set up for `bench_fleet`.

Each peer applies one patch to the same files of every host: ansible's posix.patch, a
loop of scp and ssh, pyinfra. They live in a virtual environment in the user's cache,
never among patchq's own requirements.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "patchq-bench"
PACKAGES = ("ansible", "pyinfra")
FORKS = 50
JOBS = 32

_BARE = """
import asyncio, asyncssh, sys
user, port, key, host_key, jobs, *addresses = sys.argv[1:]
key, host_key = asyncssh.read_private_key(key), asyncssh.read_public_key(host_key)
async def main():
    gate = asyncio.Semaphore(int(jobs))
    async def one(address):
        async with gate, asyncssh.connect(
            address, int(port), username=user, client_keys=[key], config=None, agent_path=None,
            known_hosts=([host_key], [], []), encryption_algs=["aes128-gcm@openssh.com"],
        ) as connection:
            await connection.run("true", check=True)
    await asyncio.gather(*map(one, addresses))
asyncio.run(main())
"""
_PYINFRA = """
from pyinfra import host
from pyinfra.operations import files, server
files.put(src={patch!r}, dest=host.data.home + "/p.patch")
server.shell(commands=["patch -p1 -s -d " + host.data.tree + " < " + host.data.home + "/p.patch"])
"""


@dataclass(frozen=True)
class Place:
    """A host as the peers reach it; `home` and `tree` are paths there."""

    name: str
    address: str
    home: Path
    tree: Path


def install() -> Path:
    """Return the folder of the peers' programs; install them where they are not yet."""
    programs = CACHE / "peers" / "bin"
    if not (programs / "pyinfra").exists() or not (programs / "ansible-playbook").exists():
        print(f"installing {' and '.join(PACKAGES)} into {programs.parent}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", programs.parent], check=True)
        argv = [programs / "pip", "install", "-q", "--disable-pip-version-check", *PACKAGES]
        subprocess.run(argv, check=True, timeout=600)
    return programs


@dataclass(frozen=True)
class Peers:
    """The peers' files for one set of hosts; each property is a command to run.

    `config` is an ssh_config with an entry for every place, `key` the client's, `host_key`
    the public one that all hosts show.
    """

    folder: Path
    programs: Path
    places: Sequence[Place]
    user: str
    port: int
    config: Path
    key: Path
    host_key: Path
    patch: Path

    def bare(self) -> list[str]:
        """Run ``true`` on every host by asyncssh and nothing else."""
        addresses = [place.address for place in self.places]
        argv = [sys.executable, "-c", _BARE, self.user, self.port, self.key, self.host_key]
        return [str(word) for word in (*argv, JOBS, *addresses)]

    def loop(self) -> list[str]:
        """Copy the patch and run patch(1), sixteen hosts at a time."""
        by = f"-F {self.config} -o BatchMode=yes -o KexAlgorithms=curve25519-sha256"
        names = self.folder / "names"
        names.write_text("".join(f"{p.name} {p.home} {p.tree}\n" for p in self.places))
        one = (
            f"scp -q {by} {self.patch} $0:$1/p.patch && "
            f'ssh {by} $0 "patch -p1 -s -d $2 < $1/p.patch"'
        )
        return ["xargs", "-a", str(names), "-P16", "-L1", "sh", "-c", one]

    def pyinfra(self) -> list[str]:
        """Put the patch and run patch(1), all hosts at once."""
        common = {"ssh_user": self.user, "ssh_port": self.port, "ssh_key": str(self.key)}
        common |= {"ssh_config_file": str(self.config)}
        common |= {"ssh_known_hosts_file": str(self.config.parent / "known_hosts")}
        hosts = [
            (p.name, {**common, "ssh_hostname": p.address, **self._paths(p)}) for p in self.places
        ]
        inventory, deploy = self.folder / "inventory.py", self.folder / "deploy.py"
        inventory.write_text(f"hosts = {hosts!r}\n")
        deploy.write_text(_PYINFRA.format(patch=str(self.patch)))
        argv = [self.programs / "pyinfra", "-y", "--parallel", FORKS, inventory, deploy]
        return [str(word) for word in argv]

    def ansible(self, *, pipelining: bool = False) -> list[str]:
        """Apply the patch by ansible.posix.patch."""
        task = {"ansible.posix.patch": {"src": str(self.patch), "basedir": "{{ tree }}"}}
        task["ansible.posix.patch"]["strip"] = 1
        play = {"hosts": "all", "gather_facts": False, "tasks": [task]}
        path = self.folder / "play.yml"
        path.write_text(json.dumps([play]))
        return self._ansible("ansible-playbook", str(path), pipelining=pipelining)

    def ansible_true(self) -> list[str]:
        """Run ``true`` on every host by ansible."""
        return self._ansible("ansible", "all", "-m", "command", "-a", "true")

    def _ansible(self, program: str, *words: str, pipelining: bool = False) -> list[str]:
        common = {
            "ansible_user": self.user,
            "ansible_port": self.port,
            "ansible_ssh_common_args": f"-F {self.config}",
            "ansible_python_interpreter": "/usr/bin/python3",
            "ansible_pipelining": pipelining,
        }
        hosts = {p.name: {"ansible_host": p.address, **self._paths(p)} for p in self.places}
        inventory = self.folder / "hosts.json"
        inventory.write_text(json.dumps({"all": {"vars": common, "hosts": hosts}}))
        return [str(self.programs / program), "-i", str(inventory), "-f", str(FORKS), *words]

    @staticmethod
    def _paths(place: Place) -> dict[str, str]:
        return {"home": shlex.quote(str(place.home)), "tree": shlex.quote(str(place.tree))}
