"""The verbs that move along the stack."""

from __future__ import annotations

from typing import Any

import click

from patchq.cli import paint, places, rollout
from patchq.cli.plain import plain as plain_text
from patchq.cli.plain import put
from patchq.cli.run import Target, run, target_of, target_options, told
from patchq.conversation import commit, move, plain, trying
from patchq.conversation import undo as taking_back
from patchq.conversation.goal import Upto
from patchq.conversation.view import Aim
from patchq.errors import QuiltError, UsageError
from patchq.queue.heads import Heads
from patchq.report import Report, brief
from patchq.transport.channel import Conversation

dry_run = click.option("-n", "--dry-run", is_flag=True, help="Say what would be done.")
quiet = click.option("-q", "--quiet", is_flag=True, help="Name patches, not files.")
verbose = click.option("-v", "--verbose", is_flag=True, expose_value=False, help="quilt's.")
renewing = click.option("--refresh", is_flag=True, help="Refresh each patch on the way.")
everything = click.option("-a", "--all", "everything", is_flag=True, help="All patches.")


def ground(dry: bool, pushes: Aim | None = None) -> commit.Ground:
    """Return who asks; `pushes` is the aim of a verb that may push, and asks git early."""
    who, whence = places.operator()
    heads = pushes.shared.once("heads", lambda: Heads(pushes.queues)) if pushes else None
    return commit.Ground(who, whence, heads, dry)


@click.command(short_help="Apply the next patch, N of them, up to one, or all")
@click.argument("upto", required=False, metavar="[N|PATCH]")
@everything
@click.option(
    "--adopt", is_flag=True, help="Take over files that hold the result, and that nobody recorded."
)
@rollout.check_import
@rollout.options
@click.option("-f", "force", is_flag=True, help="On a plain tree: put on what fits of it.")
@click.option(
    "--fuzz",
    metavar="N",
    type=click.IntRange(0),
    default=0,
    help="On a plain tree: so many lines of context need not fit.",
)
@click.option("--leave-rejects", "rejects", is_flag=True, help="On a plain tree: keep FILE.rej.")
@renewing
@verbose
@paint.option
@dry_run
@quiet
@target_options
def push(upto: str | None, everything: bool, dry_run: bool, quiet: bool, **values: Any) -> int:
    """Apply the next patch of the series, N of them, up to PATCH, or all with -a.

    The whole way is planned, applied and judged before anything is live; then
    all files change in one transaction.

    On a plain tree the patches below one that does not fit stay on. With -f the part of it
    that fits goes on, the rest is in FILE.rej, and refresh makes it a patch again.

    Many hosts move at once, or in waves (--canary, --serial): the next begins when all of the
    last are healthy. A host that fails --health or --check-import is taken back. After a
    failure or ^C the same command does what is missing.

    \b
    Examples:
      patchq push -a
      patchq push 20-kimi-k25-eagle3 -H root@gpu01 -n
      patchq push -a -H @blackwell --canary 1 --serial 25% --health './ask $PATCHQ_ADDRESS'
    """
    force, refresh = values.pop("force"), values.pop("refresh")
    adopt, modules = values.pop("adopt"), values.pop("modules")
    wanted = rollout.modules(modules)
    how = plain.How(force, values.pop("fuzz"), values.pop("rejects"), quiet)
    color = values.pop("color")
    goal = Upto(upto, everything)
    target = target_of(values)
    _exact(target, refresh or how != plain.How(quiet=quiet))
    _exclusive(target, force, refresh)

    def make(aim: Aim) -> Conversation[Report]:
        who = ground(dry_run, aim)
        if refresh:
            from patchq.editing import refreshed

            return refreshed.push(aim, who, goal, how)

        def push() -> Conversation[Report]:
            return move.push(aim, who, goal, how, adopt=adopt)

        return trying.tried(aim, who, push, wanted) if modules else push()

    printer = (lambda report: _painted(report, quiet)) if paint.wanted(color) else None
    return run(target, make, writing=True, quiet=quiet, printer=printer)


def _painted(report: Report, quiet: bool) -> int:
    """Show how a push went in quilt's colours."""
    lines = [plain_text(line) for line in (brief(report.lines) if quiet else report.lines)]
    if lines:
        put("\n".join(paint.moves(report, lines)))
    for note in report.notes:
        click.echo(plain_text(note), err=True)
    return report.exit_code


def _exact(target: Target, loose: bool) -> None:
    if loose and target.tree is None:
        raise UsageError(
            "-f, --fuzz, --leave-rejects and --refresh are for plain trees",
            why="what an installed package gets is exact, and judged as a whole",
            mend="patchq push",
        )


def _exclusive(target: Target, force: bool, refresh: bool) -> None:
    if force and refresh:
        error = QuiltError(
            "Options -f and --refresh are mutually exclusive",
            why="what was forced on is to be looked at before it is refreshed",
            mend="leave one of them out",
        )
        raise told(target, error)


@click.command(short_help="Take off the top patch, N of them, down to one, or all")
@click.argument("upto", required=False, metavar="[N|PATCH]")
@everything
@click.option("-f", "force", is_flag=True, help="Drop edits of their files, too.")
@click.option("-R", "verify", is_flag=True, help="quilt's; every file is compared always.")
@click.option("--only", metavar="PATCH", help="This one from the middle; those above stay on.")
@renewing
@verbose
@rollout.options
@dry_run
@quiet
@target_options
def pop(
    upto: str | None,
    everything: bool,
    force: bool,
    verify: bool,
    only: str | None,
    refresh: bool,
    dry_run: bool,
    quiet: bool,
    **values: Any,
) -> int:
    """Take off the top patch, N of them, all above PATCH, or all with -a.

    Files come back as they were: bytes, mode, owner, time, and the very inode
    where it could be kept. Edits that are in no patch are not overwritten without -f.

    \b
    Examples:
      patchq pop
      patchq pop -a --python /opt/vllm/bin/python
      patchq pop --only 20-foot
    """
    if only is not None:
        from patchq.cli import only as alone

        return alone.pop(only, Upto(upto, everything), ground(dry_run), quiet, values)
    goal = Upto(upto, everything)
    target = target_of(values)
    _exclusive(target, force, refresh)
    verb = move.pop
    if refresh:
        from patchq.editing import refreshed

        verb = refreshed.pop
    return run(
        target,
        lambda aim: verb(aim, ground(dry_run), goal, force),
        record=True,
        writing=True,
        quiet=quiet,
    )


@click.command(short_help="Push or pop until a patch is on top")
@click.argument("patch")
@rollout.options
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
        lambda aim: move.goto(aim, ground(dry_run, aim), patch),
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
        lambda aim: taking_back.undo(aim, ground(dry_run, aim)),
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
        lambda aim: taking_back.recover(aim, ground(False), force),
        record=True,
        writing=True,
    )


COMMANDS = {"push": push, "pop": pop, "goto": goto, "undo": undo, "recover": recover}
