"""What patchq costs on many hosts; `scripts/bench fleet` and `scripts/bench slope` start this.

`fleet`: a real sshd, in a network namespace that has only lo, is 50 hosts: each of
127.0.1.1 and on has a home and a virtual environment of its own (one sshd and one user
for all; ``SetEnv HOME`` by address). patchq and its peers change the same four files of
70 KB on each. `slope`: 1,000 hosts of `tests.fleet_lab`. CPU is the controller's alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

import asyncssh  # noqa: E402
import fleet_peers  # noqa: E402
from fleet_peers import Peers, Place  # noqa: E402
from measured import Cost, measure  # noqa: E402

from tests import fleet_lab, ssh_lab  # noqa: E402

PATCHQ = str(Path(sys.executable).parent / "patchq")
QUEUE = ROOT / "queues" / "kimi-k2.5-eagle3"
RELEASE = "0.16.0"
SERIES = QUEUE / RELEASE
SSHD_PORT = 2222
SIZES = (10, 50)
PYTHON = "~/venv/bin/python"


@dataclass
class Template:
    """The tree that every host begins with, and the files that a push gives it."""

    base: Path
    site: Path = field(init=False)
    patched: dict[str, bytes] = field(init=False)

    def __post_init__(self) -> None:
        self.site, done = self.base / "template", self.base / "patched"
        if not self.site.exists():
            self._make(done)
        self.patched = {name: (done / name).read_bytes() for name in self._names()}

    @property
    def environ(self) -> dict[str, str]:
        """What patchq needs to know the release and its verdicts."""
        return {"PATCHQ_CACHE": str(self.base / "cache"), "PATCHQ_QUEUES": ""}

    @property
    def patch(self) -> Path:
        """The whole series as one file for patch(1)."""
        path = self.base / "p.patch"
        path.write_bytes(b"".join(one.read_bytes() for one in sorted(SERIES.glob("*.patch"))))
        return path

    def is_patched(self, tree: Path) -> bool:
        """Return whether a host has the series' files, byte for byte."""
        return all((tree / name).read_bytes() == data for name, data in self.patched.items())

    def _make(self, done: Path) -> None:
        """Keep of the release the series' files and the dist-info."""
        info = f"vllm-{RELEASE}.dist-info"
        whole, environ = self.base / "whole", {**os.environ, **self.environ}
        run = {"check": True, "env": environ, "stdout": subprocess.DEVNULL}
        subprocess.run([PATCHQ, "fetch", f"vllm=={RELEASE}", "--into", whole], **run)
        shutil.copytree(whole / info, self.site / info)
        for name in self._names():
            (self.site / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(whole / name, self.site / name)
        shutil.copytree(self.site, done)
        argv = [PATCHQ, "push", "-a", "-q", "--target", done, "--queue", QUEUE]
        subprocess.run(argv, **run)
        shutil.rmtree(whole)

    @staticmethod
    def _names() -> list[str]:
        """Return the files that the series changes, or reads to judge."""
        lock = json.loads((SERIES / "series.lock").read_text())
        names = set()
        for one in lock["patches"]:
            names |= {path for path, *_ in one["changes"]} | one["reads"].keys()
        return sorted(names)


def fleet() -> None:
    """Race the peers on a real sshd; needs root, for the namespace and a user to log in as."""
    if os.geteuid():
        sys.exit("bench fleet: it needs root: sudo scripts/bench fleet")
    fleet_peers.install()
    with ssh_lab.folder() as base:
        Template(base)
        inside = ["sh", "-c", 'ip link set lo up && exec "$@"', "sh", sys.executable, __file__]
        subprocess.run(["unshare", "--net", *inside, str(base)], check=True)


def _race(base: Path) -> None:
    """Measure inside the namespace; the template is in `base`."""
    template = Template(base)
    with _hosts(base, max(SIZES)) as (home, user, places):
        environ = {**os.environ, **home.environ, **template.environ}
        environ["ANSIBLE_LOCALHOST_WARNING"] = "0"
        pushes, looks = {}, {}
        for count in SIZES:
            peers = Peers(
                base,
                fleet_peers.install(),
                places[:count],
                user,
                SSHD_PORT,
                home.config,
                home.key_file,
                base / "host_key.pub",
                template.patch,
            )
            pushes[count] = _pushes(peers, template, environ)
            looks[count] = _looks(peers, environ)
    _slope(pushes, "patchq push -a")
    _slope(looks, LOOK)


def _pushes(peers: Peers, template: Template, environ: Mapping[str, str]) -> dict[str, Cost]:
    contestants = {
        "patchq push -a": patchq("push", "-a", count=len(peers.places)),
        "asyncssh, `true` only": peers.bare(),
        "scp + ssh patch, 16 at a time": peers.loop(),
        "pyinfra put + shell": peers.pyinfra(),
        "ansible.posix.patch, forks=50": peers.ansible(),
        "the same, pipelining": peers.ansible(pipelining=True),
    }
    wrong: dict[str, int] = {}

    def check(name: str, cost: Cost) -> None:
        good = sum(template.is_patched(place.tree) for place in peers.places)
        wrong[name] = wrong.get(name, 0) + len(peers.places) - good
        if name == "asyncssh, `true` only":
            wrong[name] = cost.code
        if wrong[name]:
            print(f"{name}: exit {cost.code}\n{cost.output[-2000:]}", file=sys.stderr)

    medians = _medians(contestants, environ, lambda: _reset(peers, template), check)
    _table(f"{len(peers.places)} hosts: the same four files changed", medians, wrong)
    return medians


LOOK = "patchq audit"


def _looks(peers: Peers, environ: Mapping[str, str]) -> dict[str, Cost]:
    count = len(peers.places)
    contestants = {
        LOOK: patchq("audit", count=count),
        "asyncssh, `true` only": peers.bare(),
        "ansible -m command -a true, forks=50": peers.ansible_true(),
    }
    failed: dict[str, int] = {}

    def check(name: str, cost: Cost) -> None:
        failed[name] = failed.get(name, 0) + (cost.code not in (0, 5))
        if failed[name]:
            print(f"{name}: exit {cost.code}\n{cost.output[-2000:]}", file=sys.stderr)

    medians = _medians(contestants, environ, lambda: None, check)
    _table(f"{count} hosts: what is on them", medians, failed)
    return medians


def patchq(*words: str, count: int = 0, hosts: str = "", python: str = PYTHON) -> list[str]:
    """Return the command for the first `count` hosts, or those named."""
    argv = [PATCHQ, *words, "-H", hosts or f"h[0001-{count:04}]", "--queue", str(QUEUE)]
    return [*argv, "--python", python] if python else argv


def _reset(peers: Peers, template: Template) -> None:
    for place in peers.places:
        _plant(template, place, peers.user)
    os.sync()


def _plant(template: Template, place: Place, user: str) -> None:
    shutil.rmtree(place.home, ignore_errors=True)
    fleet_lab.plant(template.site, place.home, linked=False)
    subprocess.run(["chown", "-R", f"{user}:", place.home], check=True)


@contextlib.contextmanager
def _hosts(base: Path, count: int) -> Iterator[tuple[ssh_lab.Home, str, list[Place]]]:
    """Keep the sshd; `count` addresses of it, each with a home of its own."""
    home, places = ssh_lab.Home(base / "client"), []
    for number in range(1, count + 1):
        at = base / "hosts" / f"h{number:04}"
        tree = at / "venv" / "lib" / f"python{fleet_lab.version()}" / "site-packages"
        places.append(Place(at.name, f"127.0.1.{number}", at, tree))
    options = (
        f"ListenAddress 0.0.0.0:{SSHD_PORT}\nMaxStartups 1000\nSubsystem sftp internal-sftp\n"
    )
    for place in places:
        options += f"Match LocalAddress {place.address}\nSetEnv HOME={place.home}\n"
    with ssh_lab.sshd(base, home.public, shell="sh", options=options) as server:
        asyncssh.import_public_key(server.host_key).write_public_key(str(base / "host_key.pub"))
        lines = [f"[{p.address}]:{SSHD_PORT} {server.host_key}\n" for p in places]
        home.known_hosts.write_text("".join(lines))
        entries = [f"Host {p.name}\n    HostName {p.address}\n" for p in places]
        entries.append(
            f"Host h* 127.*\n    Port {SSHD_PORT}\n    User {server.user}\n"
            f"    IdentityFile {home.key_file}\n    UserKnownHostsFile {home.known_hosts}\n"
        )
        home.config.write_text("".join(entries))
        yield home, server.user, places


def slope() -> None:
    """Measure how the cost grows with the number of hosts, on 1,000 of the lab."""
    with ssh_lab.folder() as base:
        template = Template(base)
        with fleet_lab.fleet(1000, template.site) as lab:
            environ = {**os.environ, **lab.home.environ, **template.environ}
            print("\n### Hosts in one process (asyncssh servers, the agent in threads)\n")
            print("| what | hosts | wall s | ms of wall a host | ms of CPU a host | peak MB |")
            print("|---|---|---|---|---|---|")
            first = 1
            for count in (10, 50, 200, 740):
                named = f"h[{first:04}-{first + count - 1:04}]"
                _line("push -a", named, count, environ)
                first += count
            for count in (10, 100, 1000):
                _line("audit", f"h[0001-{count:04}]", count, environ)
            trees = [host.tree for host in lab.hosts.values()]
            print(f"\n{sum(map(template.is_patched, trees))} of 1,000 trees are patched")


def _line(verb: str, named: str, count: int, environ: Mapping[str, str]) -> None:
    cost = measure(patchq(*verb.split(), hosts=named, python=""), environ)
    if cost.code not in (0, 5):
        print(f"{verb}: exit {cost.code}\n{cost.output[-2000:]}", file=sys.stderr)
    print(
        f"| patchq {verb} | {count} | {cost.wall:.2f} | {1000 * cost.wall / count:.1f} "
        f"| {1000 * cost.cpu / count:.1f} | {cost.rss:.0f} |",
        flush=True,
    )


def _medians(
    contestants: Mapping[str, list[str]],
    environ: Mapping[str, str],
    before: Callable[[], None],
    check: Callable[[str, Cost], None],
    rounds: int = int(os.environ.get("BENCH_ROUNDS", "3")),
) -> dict[str, Cost]:
    costs: dict[str, list[Cost]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, argv in contestants.items():
            before()
            time.sleep(0.5)
            costs[name].append(measure(argv, environ))
            check(name, costs[name][-1])
    return {
        name: Cost(
            *(statistics.median(getattr(c, key) for c in some) for key in ("wall", "cpu", "rss")),
            some[-1].code,
            "",
        )
        for name, some in costs.items()
    }


def _table(title: str, medians: Mapping[str, Cost], errors: Mapping[str, int]) -> None:
    first = next(iter(medians.values()))
    print(f"\n### {title} (load {os.getloadavg()[0]:.1f})\n")
    print("| what | wall s | x | controller CPU s | x | errors |\n|---|---|---|---|---|---|")
    for name, cost in medians.items():
        print(
            f"| {name} | {cost.wall:.2f} | {cost.wall / first.wall:.1f} "
            f"| {cost.cpu:.2f} | {cost.cpu / first.cpu:.1f} | {errors[name]} |"
        )
    sys.stdout.flush()


def _slope(found: Mapping[int, Mapping[str, Cost]], name: str) -> None:
    few, many = min(found), max(found)
    more = (found[many][name].cpu - found[few][name].cpu) / (many - few)
    print(f"\n{name}: {1000 * more:.1f} ms of controller CPU for each further host")


if __name__ == "__main__":
    _race(Path(sys.argv[1]))
