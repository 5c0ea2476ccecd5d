"""Login shells x rc noise x interpreters x clients: a real push or pop in each cell."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass
from pathlib import Path

from patchq.errors import PatchqError
from tests import shell_lab, world
from tests.shell_lab import Account, House

# What each user's start-up file prints, as a script of sh.
NOISE = {
    "quiet": None,
    "lines on stdout and stderr": 'echo Welcome to gpu1; echo "the * rules; don\'t"; uname >&2',
    "1 MB on stderr": "head -c 1000000 /dev/zero | tr '\\0' x >&2",
    "NULs, colours, no newline": "printf 'a\\000b\\033[31mred\\033[0m\\r\\377 no end'",
}
# How many users are served at once.
AT_ONCE = 6


@dataclass(frozen=True)
class Cell:
    """One conversation; `fault` is empty where it did what it should."""

    shell: str
    noise: str
    python: str
    client: str
    fault: str


@dataclass(frozen=True)
class _Place:
    """One environment of one user, and its files as they were and shall be."""

    account: Account
    label: str
    python: str
    packages: Path
    pristine: dict[str, tuple[bytes, int]]


def run(house: House, of: world.World) -> list[Cell]:
    """Push or pop in every cell: one client pushes what the other one pops."""
    pushed, cells = _pushed(of), []
    places = [place for one in house.accounts.values() for place in _places(house, one, of)]
    for number, (noise, script) in enumerate(NOISE.items()):
        _make_noise(house, script)
        clients = shell_lab.CLIENTS[:: 1 if number % 2 else -1]
        cells += asyncio.run(_phase(house, of, places, pushed, noise, clients))
    return cells


def table(cells: list[Cell]) -> str:
    """Return cells that passed, of all, by shell and interpreter, as Markdown."""
    pythons = list(dict.fromkeys(cell.python for cell in cells))
    lines = [f"| login shell | {' | '.join(pythons)} |", "|---" * (len(pythons) + 1) + "|"]
    for shell in dict.fromkeys(cell.shell for cell in cells):
        row = []
        for python in pythons:
            mine = [c for c in cells if (c.shell, c.python) == (shell, python)]
            row.append(f"{sum(not cell.fault for cell in mine)}/{len(mine)}")
        lines.append(f"| {shell} | {' | '.join(row)} |")
    return "\n".join(lines)


def _places(house: House, account: Account, of: world.World) -> list[_Place]:
    found = []
    for version, python in house.pythons.items():
        name = f"venv-{version}"
        packages = shell_lab.furnish(account, name, version, python, of.site)
        found.append((version, f"~/{name}/bin/python", packages))
    packages = shell_lab.furnish(account, shell_lab.ODD, version, python, of.site)
    found.append(("odd path", str(account.home / shell_lab.ODD / "bin/python"), packages))
    return [_Place(account, *one, shell_lab.tree(one[2])) for one in found]


def _pushed(of: world.World) -> dict[str, bytes]:
    """Return what a push on this machine makes of the world's files."""
    assert of.here("push", "-a").returncode == 0
    files = of.tree()
    assert of.here("pop", "-a").returncode == 0
    return files


def _make_noise(house: House, script: str | None) -> None:
    for account in house.accounts.values():
        if script is None:
            account.rc(None)
            continue
        path = house.base / "noise"
        path.write_text(script + "\n")
        account.rc(f"/bin/sh {path}\n")


async def _phase(house, of, places, pushed, noise, clients):
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(place):
        cells = []
        for client, verb in zip(clients, ("push", "pop"), strict=True):
            async with gate:
                fault = await _do(house, of, place, client, verb, pushed)
            cells.append(Cell(place.account.shell, noise, place.label, client, fault))
        return cells

    return list(itertools.chain.from_iterable(await asyncio.gather(*map(one, places))))


async def _do(house, of, place, client, verb, pushed):
    """Push or pop, look at every byte, and return what is wrong."""
    conversation = shell_lab.push(of) if verb == "push" else shell_lab.pop(of)
    try:
        report = await house.hold(client, place.account.alias, place.python, conversation)
    except PatchqError as error:
        return f"{verb}: {error}: {error.why}"
    if report.exit_code:
        return f"{verb}: {report.lines} {report.notes}"
    files = shell_lab.tree(place.packages)
    if verb == "pop":
        return "" if files == place.pristine else "pop left other files"
    return "" if {path: data for path, (data, _) in files.items()} == pushed else "other bytes"
