"""The verbs about queues themselves."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from patchq.cli import places, run
from patchq.errors import UsageError
from patchq.queue import store
from patchq.report import Report

if TYPE_CHECKING:
    from patchq.releases import support


@click.command(short_help="List the queues in sight and their releases")
@click.option("-v", "verbose", is_flag=True, help="Which patch is for which release, and why.")
@run.json_option
def queues(verbose: bool, as_json: bool) -> int:
    """List the queues in sight: the nearest queues/ upwards, PATCHQ_QUEUES, the shipped ones.

    With -v: which releases have which patch, and of every other release that was
    fetched, whether upstream has what the patches are for.
    """
    folders = store.search(Path.cwd(), os.environ)
    found = store.queues(Path.cwd(), os.environ)
    lines, entries = [], []
    for queue in found:
        lines.append(f"{queue.name}  {queue.distribution} {', '.join(queue.releases)}")
        lines.append(f"    {queue.summary}")
        lines.append(f"    {queue.folder}")
        entry: dict[str, object] = {
            "name": queue.name,
            "distribution": queue.distribution,
            "releases": list(queue.releases),
            "summary": queue.summary,
            "folder": str(queue.folder),
        }
        if verbose:
            more = _support(queue, entry)
            lines += [f"    {line}" for line in more]
        entries.append(entry)
    notes = () if found else tuple(f"No queue in {folder}" for folder in folders)
    document = {"verb": "queues", "queues": entries, "searched": [str(f) for f in folders]}
    return run.show(Report(tuple(lines), notes, document), as_json)


def _support(queue: store.Queue, entry: dict[str, object]) -> list[str]:
    """Return which releases have which patch, and why not others; `entry` gets the same."""
    from patchq.releases import support

    patches = support.supported(queue)
    others = tuple(support.elsewhere(queue, places.cache()))
    entry["patches"] = [one.to_json() for one in patches]
    entry["elsewhere"] = [one.to_json() for one in others]
    lines = [f"{one.patch}: {_having(one, queue.releases)}" for one in patches]
    lines += [line for one in others for line in _elsewhere(one)]
    if not others:
        lines.append(
            f"other releases: fetch one to see, patchq fetch {queue.distribution}==VERSION"
        )
    return lines


def _having(one: support.Supported, releases: tuple[str, ...]) -> str:
    words = "every release" if one.releases == releases else ", ".join(one.releases)
    if one.needed:
        words += f"; for {one.needed} (queue.toml)"
    if one.missing:
        words += f"; not in the series of {', '.join(one.missing)}"
    return words


def _elsewhere(one: support.Elsewhere) -> list[str]:
    """Return why a release has no series: upstream has it, or nobody made one."""
    if one.needless:
        whole = "no series is needed, upstream has it"
    elif any(one.patches.values()):
        whole = "no series, and upstream has a part only"
    else:
        whole = "no series, and not upstream"
    said: dict[str, list[str]] = {}
    for patch, since in one.patches.items():
        said.setdefault(str(since) if since else "not upstream", []).append(patch)
    if len(said) == 1 and not one.needless:
        return [f"{one.release}: {whole}"]
    return [
        f"{one.release}: {whole}",
        *(f"    {', '.join(names)}: {word}" for word, names in said.items()),
    ]


@click.command(short_help="Judge a queue's series on its pristine releases")
@click.option("--queue", metavar="QUEUE", help="A queue's name or folder.")
@click.option("--release", metavar="RELEASE", help="Only this release's series.")
@click.option("--write", is_flag=True, help="Write series.lock anew.")
@run.json_option
def lint(queue: str | None, release: str | None, write: bool, as_json: bool) -> int:
    """Judge every patch of a queue on its pristine releases, and its sketches.

    A sketch must be able to fail: each of its claims is false below the patch
    and true above. With --write, series.lock gets the hashes of each step.

    \b
    Examples:
      patchq lint --queue queues/mine
      patchq lint --queue queues/mine --release 0.16.0 --write
    """
    from patchq import lint as linting

    found = places.queues(queue)
    if queue is None:  # the ready-made queues are linted when they are named
        found = tuple(one for one in found if not places.is_shipped(one))
    if len(found) != 1:
        raise UsageError(
            "lint needs one queue",
            why=f"in sight: {', '.join(one.name for one in found) or 'none'}",
            mend="patchq lint --queue NAME",
        )
    if release is not None and release not in found[0].releases:
        raise UsageError(
            f"queue {found[0].name} has no series for {release}",
            why=f"it has {', '.join(found[0].releases) or 'none'}",
            mend="patchq queues",
        )
    report = linting.lint(found[0], release, cache=places.cache(), write=write)
    return run.show(report, as_json)


COMMANDS: dict[str, Any] = {"queues": queues, "lint": lint}
