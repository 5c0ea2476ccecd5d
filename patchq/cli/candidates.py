"""What a value on the command line may be, for completion: from files here, and at once.

No host is asked, no agent runs, and no program; what can not be read offers nothing.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from patchq.cli import places
from patchq.errors import PatchqError

if TYPE_CHECKING:
    from patchq.queue.store import Queue

Values = Callable[[click.Context, str], Iterable[str]]


def queues(ctx: click.Context, incomplete: str) -> Iterable[str]:
    """Return the names of the queues in sight."""
    return [queue.name for queue in places.queues(None)]


def releases(ctx: click.Context, incomplete: str) -> Iterable[str]:
    """Return the releases that the queues in sight have series for."""
    return [name for queue in _queues(ctx.params) for name in queue.releases]


def patches(ctx: click.Context, incomplete: str) -> Iterable[str]:
    """Return the patches of the series in sight, in their order."""
    from patchq.queue import store

    found = []
    for queue in _queues(ctx.params):
        wanted = ctx.params.get("release")
        for release in [wanted] if wanted in queue.releases else queue.releases:
            if store.listing(queue, release).is_file():
                found += [entry.name for entry in store.series(queue, release).entries]
    return found


def patched(ctx: click.Context, incomplete: str) -> Iterable[str]:
    """Return the files of the top patch; where it is not here, of all patches in sight."""
    for state in _states(ctx.params):
        names = {queue.name for queue in _queues(ctx.params)}
        mine = [one for one in state["stack"] if one["queue"] in names]
        if mine:
            return [_named(ctx.params, path) for path, *_ in mine[-1]["changes"]]
    return _locked(ctx.params)


def installed(ctx: click.Context, incomplete: str) -> Iterable[str]:
    """Return the text files of the distributions that the queues in sight are for.

    A plain tree's are the shell's to complete (`Value`).
    """
    from patchq.editing import shelling

    found = []
    for queue in _queues(ctx.params):
        for site in _sites(ctx.params):
            for record in site.glob("*.dist-info/RECORD"):
                if _is_of(record.parent.name, queue.distribution):
                    with record.open(newline="", errors="surrogateescape") as file:
                        found += [row[0] for row in csv.reader(file) if row]
    return [path for path in found if shelling.is_text(path)] or _locked(ctx.params)


def hosts(ctx: click.Context, incomplete: str) -> Iterable[str]:
    """Return hosts and groups of the inventories in sight, after what a list has already.

    One that only Ansible's own program can read is not asked: it may take its time.
    """
    from patchq.inventory import files

    variable = os.environ.get(files.VARIABLE, "")
    named = [name for name in ctx.params.get("inventory") or () if name.endswith(".toml")]
    simple = [name for name in variable.split(os.pathsep) if name.endswith(".toml")]
    environ = {**os.environ, files.VARIABLE: os.pathsep.join(simple)}
    found = files.load(Path.cwd(), environ, places.config(), named)
    before, comma, last = incomplete.rpartition(",")
    begin = before + comma + "!" * last.startswith("!")
    groups = [f"@{name}" for name in (*found.groups, *["all"] * bool(found.hosts))]
    return [begin + name for name in (*found.hosts, *groups)]


def _queues(params: Mapping[str, Any]) -> tuple[Queue, ...]:
    """Return the queues that a verb may mean; the ready-made ones where there are no others."""
    tree, named = params.get("tree"), params.get("queue")
    if tree:
        return (places.tree_queue(places.tree(tree)),)
    found = places.queues(named)
    mine = tuple(queue for queue in found if not places.is_shipped(queue))
    return (mine or found) if named is None else found


def _sites(params: Mapping[str, Any]) -> list[Path]:
    """Return the environment's root, where it is here and can be told without asking."""
    if params.get("host"):
        return []
    for name in ("tree", "target"):
        if params.get(name):
            return [places.tree(params[name]) if name == "tree" else Path(params[name])]
    python = params.get("python") or str(Path(os.environ.get("VIRTUAL_ENV", ""), "bin/python"))
    return sorted(Path(python).absolute().parents[1].glob("lib/python3*/site-packages"))


def _states(params: Mapping[str, Any]) -> list[dict[str, Any]]:
    paths = [path for site in _sites(params) for path in site.glob(".patchq/*/state.json")]
    return [json.loads(path.read_bytes()) for path in sorted(paths)]


def _named(params: Mapping[str, Any], path: str) -> str:
    """Return a file of a plain tree as its path from the working folder; others as they are."""
    return os.path.relpath(places.tree(params["tree"]) / path) if params.get("tree") else path


def _locked(params: Mapping[str, Any]) -> list[str]:
    from patchq.queue import store

    found = []
    for queue in _queues(params):
        for release in queue.releases if not params.get("tree") else ():
            lock = store.lock(queue, release)
            for patch in lock.patches if lock else ():
                found += [change.path for change in patch.changes]
    return found


def _is_of(folder: str, distribution: str) -> bool:
    name = folder.split("-")[0].lower().replace("_", "-")
    return name == distribution.lower().replace("_", "-")


class Value(click.types.StringParamType):
    """A text of which some values are known."""

    def __init__(self, values: Values) -> None:
        self.values = values

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[click.shell_completion.CompletionItem]:
        """Return the values that begin as what is typed; none where a file can not be read."""
        item = click.shell_completion.CompletionItem
        if self.values is installed and ctx.params.get("tree"):
            return [item(incomplete, type="file")]
        try:
            found = dict.fromkeys(self.values(ctx, incomplete))
        except (PatchqError, OSError, ValueError, KeyError):
            return []
        return [item(name) for name in found if name.startswith(incomplete)]
