"""The verbs that make patches and what belongs to them."""

from __future__ import annotations

from typing import Any

import click

from patchq.cli import places, run
from patchq.errors import UsageError


@click.command(short_help="Draft the post-condition that a patch implies")
@click.argument("patch")
@click.option("--queue", metavar="QUEUE", help="A queue's name or folder.")
@click.option(
    "--release", metavar="RELEASE", help="This release's patch; the newest if not given."
)
@click.option("--write", is_flag=True, help="Put it to post/PATCH.pyi instead of showing it.")
@click.option("--force", is_flag=True, help="With --write: replace one that is there.")
@run.json_option
def sketch(
    patch: str, queue: str | None, release: str | None, write: bool, force: bool, as_json: bool
) -> int:
    """Draft the post-condition that a patch implies: a sketch, to be edited.

    It asks for the imports, bases, members, parameters, elements and statements that the
    patch brings, with holes for local names: what is false below the patch and true above,
    and no more statements than guard every hunk. Exit code 1 where a hunk is not guarded;
    a comment says which.

    \b
    Examples:
      patchq sketch 10-fix --queue queues/mine
      patchq sketch 10-fix --release 0.16.0 --write
    """
    from patchq import drafting

    if force and not write:
        options = [f" --release {release}"] * bool(release) + [f" --queue {queue}"] * bool(queue)
        raise UsageError(
            "--force is of use with --write only",
            why="without --write nothing is replaced: the draft is shown",
            mend=f"patchq sketch {patch}{''.join(options)} --write --force",
        )
    report = drafting.drafted(
        places.one_queue(queue, "sketch"),
        patch,
        release,
        cache=places.cache(),
        write=write,
        force=force,
    )
    return run.show(report, as_json)


COMMANDS: dict[str, Any] = {"sketch": sketch}
