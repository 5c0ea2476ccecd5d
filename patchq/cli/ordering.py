"""The verbs that put patches into another order: float, sink."""

from __future__ import annotations

from typing import Any

import click

from patchq.cli.making import one
from patchq.cli.move import dry_run, ground
from patchq.cli.run import run
from patchq.cli.target import target_options


@click.command("float", short_help="Move a patch up, above those that are on")
@click.argument("patch", required=False)
@dry_run
@target_options
def float_(patch: str | None, dry_run: bool, **values: Any) -> int:
    """Move PATCH to the top of those that are on; one that is not on, to the end of the series.

    It must commute with each patch that it passes: no line of the two is the same or the next,
    the files end up the same, and each is good on what is below it then. Else nothing is
    done, exit code 3. No file of the environment changes.

    \b
    Examples:
      patchq float 10-pi
      patchq float -n 10-pi
    """
    from patchq.editing import ordering

    return run(
        one(values), lambda aim: ordering.float_(aim, ground(dry_run, aim), patch), writing=True
    )


@click.command(short_help="Move a patch down, below another or to the bottom")
@click.argument("patch", required=False)
@click.option("-t", "--to", "below", metavar="PATCH", help="Down to below this patch, no further.")
@dry_run
@target_options
def sink(patch: str | None, below: str | None, dry_run: bool, **values: Any) -> int:
    """Move the top patch, or PATCH, to the bottom of the series, or to just below another.

    One that is not on becomes the next to apply. It must commute with each patch that it
    passes, as with float; else nothing is done, exit code 3.

    \b
    Examples:
      patchq sink --to 20-foot 30-text
      patchq sink
    """
    from patchq.editing import ordering

    return run(
        one(values),
        lambda aim: ordering.sink(aim, ground(dry_run, aim), patch, below),
        writing=True,
    )


COMMANDS: dict[str, Any] = {"float": float_, "sink": sink}
