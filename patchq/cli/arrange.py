"""The verbs about queues themselves."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from patchq.cli import places, run
from patchq.errors import UsageError
from patchq.queue import store
from patchq.report import Report


@click.command(short_help="List the queues in sight and their releases")
@run.json_option
def queues(as_json: bool) -> int:
    """List the queues in sight: the nearest queues/ upwards, PATCHQ_QUEUES, the shipped ones."""
    folders = store.search(Path.cwd(), os.environ)
    found = store.queues(Path.cwd(), os.environ)
    lines, entries = [], []
    for queue in found:
        lines.append(f"{queue.name}  {queue.distribution} {', '.join(queue.releases)}")
        lines.append(f"    {queue.summary}")
        lines.append(f"    {queue.folder}")
        entries.append(
            {
                "name": queue.name,
                "distribution": queue.distribution,
                "releases": list(queue.releases),
                "summary": queue.summary,
                "folder": str(queue.folder),
            }
        )
    notes = () if found else tuple(f"No queue in {folder}" for folder in folders)
    document = {"verb": "queues", "queues": entries, "searched": [str(f) for f in folders]}
    return run.show(Report(tuple(lines), notes, document), as_json)


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
