"""The verbs that only look."""

from __future__ import annotations

from typing import Any

import click

from patchq.cli.run import run, target_of, target_options
from patchq.conversation import names


@click.command(short_help="Say what is installed and which patches it has")
@click.option("-v", "verbose", is_flag=True, help="How each original is kept: inode or copy.")
@target_options
def status(verbose: bool, **values: Any) -> int:
    """Say what is installed where, which series fits, and what is applied.

    Processes that started before the last change are named. Exit code 5 where a
    touched file drifted, a transaction is interrupted, or processes of one server
    differ.
    """
    return run(target_of(values), lambda aim: names.status(aim, verbose), record=True)


@click.command(short_help="Name the patches of the series")
@click.option("-v", "marked", is_flag=True, help="Mark applied patches with +, the top with =.")
@target_options
def series(marked: bool, **values: Any) -> int:
    """Name the patches of the series that fits the environment."""
    return run(target_of(values), lambda aim: names.series(aim, marked))


@click.command(short_help="Name the applied patches")
@click.argument("patch", required=False)
@target_options
def applied(patch: str | None, **values: Any) -> int:
    """Name the applied patches, up to PATCH."""
    return run(target_of(values), lambda aim: names.applied(aim, patch), record=True)


@click.command(short_help="Name the patches that are not applied")
@click.argument("patch", required=False)
@target_options
def unapplied(patch: str | None, **values: Any) -> int:
    """Name the patches that are not applied, or all after PATCH."""
    return run(target_of(values), lambda aim: names.unapplied(aim, patch))


@click.command(short_help="Name the top patch")
@target_options
def top(**values: Any) -> int:
    """Name the top patch; exit code 2 where none is applied."""
    return run(target_of(values), names.top, record=True)


@click.command("next", short_help="Name the next patch to apply")
@click.argument("patch", required=False)
@target_options
def next_(patch: str | None, **values: Any) -> int:
    """Name the patch after the top, or after PATCH."""
    return run(target_of(values), lambda aim: names.next_(aim, patch))


@click.command(short_help="Name the patch below the top")
@click.argument("patch", required=False)
@target_options
def previous(patch: str | None, **values: Any) -> int:
    """Name the patch before the top, or before PATCH."""
    return run(target_of(values), lambda aim: names.previous(aim, patch), record=True)


@click.command(short_help="Show the environment's receipts")
@target_options
def log(**values: Any) -> int:
    """Show the environment's receipts, newest first: who did what, from where, when.

    Exit code 5 where the ledger is cut or edited: a line that does not follow the
    one before it, or patches that are on by a receipt that is not there.
    """
    from patchq.conversation import ledger

    return run(target_of(values), ledger.log, record=True)


@click.command(short_help="Judge the post-conditions on what is there")
@click.argument("patch", required=False)
@target_options
def check(patch: str | None, **values: Any) -> int:
    """Judge each patch's post-condition on the files as they are, applied or not.

    Exit code 0 where all that speak of this release hold, 1 where one fails.
    """
    from patchq.conversation import checking

    return run(target_of(values), lambda aim: checking.check(aim, patch))


@click.command(short_help="Show which patches touch the same lines")
@click.argument("patch", nargs=-1)
@target_options
def overlap(patch: tuple[str, ...], **values: Any) -> int:
    """Show the pairs of patches that touch the same file, or those that PATCH is in.

    Looked at are the applied patches and the series that fits of each queue in sight, or
    of --queue. Lines are those of the release's file. Patches of two queues come first:
    "apart" can be pushed on each other; "overlap" and "too close" can not. Those of one
    queue are in order. Exit code 2 where no two patches touch the same file.

    \b
    Examples:
      patchq overlap
      patchq overlap 20-kimi-k25-eagle3 --queue kimi-k2.5-eagle3
    """
    from patchq.conversation import overlap as overlapping

    return run(target_of(values), lambda aim: overlapping.overlap(aim, patch), record=True)


COMMANDS = {
    "status": status,
    "series": series,
    "applied": applied,
    "unapplied": unapplied,
    "top": top,
    "next": next_,
    "previous": previous,
    "overlap": overlap,
    "log": log,
    "check": check,
}
