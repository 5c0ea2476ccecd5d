"""The verbs that arrange a series: rename, delete, fork."""

from __future__ import annotations

from typing import Any

import click

from patchq.cli.making import one
from patchq.cli.move import dry_run, ground
from patchq.cli.run import run, target_options


@click.command(short_help="Give a patch another name")
@click.argument("name")
@click.option("-P", "patch", metavar="PATCH", help="Not the top patch, but this.")
@dry_run
@target_options
def rename(name: str, patch: str | None, dry_run: bool, **values: Any) -> int:
    """Give the top patch another name, or PATCH: in the queue, and where it is applied.

    \b
    Example:
      patchq rename -P 15-mine.patch 15-count-in-inches.patch
    """
    from patchq.editing import arranging

    return run(
        one(values),
        lambda aim: arranging.rename(aim, ground(dry_run, aim), name, patch),
        writing=True,
    )


@click.command(short_help="Take a patch out of the series")
@click.argument("patch", required=False)
@click.option("-n", "--next", "following", is_flag=True, help="The patch after the top.")
@click.option("-r", "files", is_flag=True, help="Remove its file, too.")
@click.option("--backup", is_flag=True, help="Keep that file as PATCH~.")
@click.option("-f", "force", is_flag=True, help="Drop edits of its files, too.")
@click.option("--dry-run", "dry_run", is_flag=True, help="Say what would be done.")
@target_options
def delete(patch: str | None, dry_run: bool, **values: Any) -> int:
    """Take the top patch out of the series, or PATCH; where it is on top, it comes off first.

    Its file stays in the queue's folder, unless -r is given.

    \b
    Example:
      patchq delete -r --backup 15-mine.patch
    """
    from patchq.editing import arranging

    how = {name: values.pop(name) for name in ("following", "files", "backup", "force")}
    return run(
        one(values),
        lambda aim: arranging.delete(aim, ground(dry_run, aim), patch, **how),
        writing=True,
    )


@click.command(short_help="Go on with a copy of the top patch")
@click.argument("name", required=False)
@dry_run
@target_options
def fork(name: str | None, dry_run: bool, **values: Any) -> int:
    """Go on with a copy of the top patch; the old file stays for other series.

    Without NAME the copy is the next version: fix.patch, fix-2.patch, fix-3.patch.

    \b
    Example:
      patchq fork
    """
    from patchq.editing import arranging

    return run(
        one(values), lambda aim: arranging.fork(aim, ground(dry_run, aim), name), writing=True
    )


COMMANDS = {"rename": rename, "delete": delete, "fork": fork}
