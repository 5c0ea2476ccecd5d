"""The verbs that move along the stack."""

from __future__ import annotations

from typing import Any

import click

from patchq.cli import places
from patchq.cli.run import run, target_of, target_options
from patchq.conversation import commit, move
from patchq.conversation import undo as taking_back
from patchq.conversation.goal import Upto
from patchq.conversation.view import Aim
from patchq.queue.heads import Heads

dry_run = click.option("-n", "--dry-run", is_flag=True, help="Say what would be done.")
quiet = click.option("-q", "--quiet", is_flag=True, help="Name patches, not files.")
everything = click.option("-a", "--all", "everything", is_flag=True, help="All patches.")


def _ground(dry: bool, pushes: Aim | None = None) -> commit.Ground:
    """Return who asks; `pushes` is the aim of a verb that may push, and asks git early."""
    who, whence = places.operator()
    heads = pushes.shared.once("heads", lambda: Heads(pushes.queues)) if pushes else None
    return commit.Ground(who, whence, heads, dry)


@click.command(short_help="Apply the next patch, N of them, up to one, or all")
@click.argument("upto", required=False, metavar="[N|PATCH]")
@everything
@dry_run
@quiet
@target_options
def push(upto: str | None, everything: bool, dry_run: bool, quiet: bool, **values: Any) -> int:
    """Apply the next patch of the series, N of them, up to PATCH, or all with -a.

    The whole way is planned, applied and judged before anything is live; then
    all files change in one transaction.

    \b
    Examples:
      patchq push -a
      patchq push 20-kimi-k25-eagle3 -H root@gpu01 -n
    """
    goal = Upto(upto, everything)
    return run(
        target_of(values),
        lambda aim: move.push(aim, _ground(dry_run, aim), goal),
        writing=True,
        quiet=quiet,
    )


@click.command(short_help="Take off the top patch, N of them, down to one, or all")
@click.argument("upto", required=False, metavar="[N|PATCH]")
@everything
@dry_run
@quiet
@target_options
def pop(upto: str | None, everything: bool, dry_run: bool, quiet: bool, **values: Any) -> int:
    """Take off the top patch, N of them, all above PATCH, or all with -a.

    Files come back as they were: bytes, mode, owner, time, and the very inode
    where it could be kept.

    \b
    Examples:
      patchq pop
      patchq pop -a --python /opt/vllm/bin/python
    """
    goal = Upto(upto, everything)
    return run(
        target_of(values),
        lambda aim: move.pop(aim, _ground(dry_run), goal),
        record=True,
        writing=True,
        quiet=quiet,
    )


@click.command(short_help="Push or pop until a patch is on top")
@click.argument("patch")
@dry_run
@quiet
@target_options
def goto(patch: str, dry_run: bool, quiet: bool, **values: Any) -> int:
    """Push or pop until PATCH is on top.

    \b
    Example:
      patchq goto 20-kimi-k25-eagle3
    """
    return run(
        target_of(values),
        lambda aim: move.goto(aim, _ground(dry_run, aim), patch),
        writing=True,
        quiet=quiet,
    )


@click.command(short_help="Take back the environment's last transaction")
@dry_run
@quiet
@target_options
def undo(dry_run: bool, quiet: bool, **values: Any) -> int:
    """Take back the environment's last transaction; undo again to do it again.

    \b
    Example:
      patchq undo -n
    """
    return run(
        target_of(values),
        lambda aim: taking_back.undo(aim, _ground(dry_run, aim)),
        record=True,
        writing=True,
        quiet=quiet,
    )


@click.command(short_help="Finish or undo an interrupted transaction")
@click.option("--force-old", "force", flag_value="old", help="Write the bytes from before.")
@click.option("--force-new", "force", flag_value="new", help="Write the bytes from after.")
@target_options
def recover(force: str | None, **values: Any) -> int:
    """Finish or undo a transaction that was cut short.

    Before its commit point it is undone, after it finished. A file that is
    neither as before nor as after is left alone, unless forced.

    \b
    Example:
      patchq recover --python /opt/vllm/bin/python
    """
    return run(
        target_of(values),
        lambda aim: taking_back.recover(aim, _ground(False), force),
        record=True,
        writing=True,
    )


COMMANDS = {"push": push, "pop": pop, "goto": goto, "undo": undo, "recover": recover}
