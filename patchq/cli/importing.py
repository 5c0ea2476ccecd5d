"""The verbs that take patches from elsewhere: import, fold."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from patchq.cli import places
from patchq.cli.making import one
from patchq.cli.move import dry_run, ground
from patchq.cli.run import Target, run, target_options
from patchq.errors import PatchqError

strip_option = click.option(
    "-p", "strip", type=click.IntRange(0, 99), help="Folders to strip; found out if not given."
)
fuzz_option = click.option(
    "--fuzz",
    type=click.IntRange(0, 99),
    default=0,
    metavar="N",
    help="Lines of context at the ends of a hunk that need not fit; none.",
)
reverse_option = click.option("-R", "reverse", is_flag=True, help="Take it the other way round.")


@click.command("import", short_help="Bring patches from elsewhere into the series")
@click.argument("file", nargs=-1, metavar="FILE...")
@click.option("-P", "name", metavar="NAME", help="What a single patch is to be called.")
@strip_option
@reverse_option
@click.option("-f", "force", is_flag=True, help="Replace a patch of that name.")
@click.option(
    "-d",
    "keep",
    type=click.Choice(["o", "a", "n"]),
    help="With -f: the old header stays, all, or the new one.",
)
@fuzz_option
@click.option(
    "--leave-out",
    metavar="GLOB",
    multiple=True,
    help="Leave out files that would be missed: 'csrc/*'.",
)
@click.option("--git", "folder", metavar="DIR", help="The series as edited on export's branch.")
@click.option("--release", metavar="RELEASE", help="With --git: whose series; the newest's.")
@dry_run
@target_options
def import_(file: tuple[str, ...], dry_run: bool, **values: Any) -> int:
    """Bring patches from elsewhere into the series, above the top one; nothing is applied.

    FILE is a diff, a mailbox, what git format-patch, git show or git log -p wrote, or the
    .patch of a pull request; - is stdin. Each mail and each commit becomes a patch. Files
    that the release does not have are left out and named; what is compiled is refused.
    A hunk goes to its exact place, else to the only other one that fits. Exit code 3 where
    it fits nowhere, or in several places. patchq delete -r NAME takes a patch back.

    On a plain tree (--tree) the file is stored as it is.

    With --git the branch that patchq export --git made, and git edited, becomes the whole
    series: what was not edited stays byte for byte, and what is gone there goes.

    \b
    Examples:
      patchq import ~/Downloads/36361.patch
      git format-patch --stdout main..fix | patchq import -
      patchq import --git ../work --queue queues/mine
    """
    folder, release = values.pop("folder"), values.pop("release")
    if folder is not None or release is not None or not file:
        from patchq.cli import exchange

        return exchange.bring(folder, release, file, values, dry_run)
    from patchq.editing import importing
    from patchq.queue.refitting import Wish

    how = importing.How(
        Wish(
            values.pop("strip"),
            values.pop("fuzz"),
            values.pop("reverse"),
            values.pop("leave_out"),
        ),
        values.pop("name"),
        values.pop("force"),
        values.pop("keep") or "",
    )
    sources = [importing.Source(name, *_read(name)) for name in file]
    return run(
        one(values),
        lambda aim: importing.bring(aim, ground(dry_run, aim), sources, how),
        writing=True,
    )


@click.command(short_help="Put a patch from stdin on what is there, into the top patch")
@reverse_option
@click.option("-q", "quiet", is_flag=True, help="No lines but for what does not fit.")
@click.option("-f", "force", is_flag=True, help="Take the hunks that fit, and show the others.")
@strip_option
@fuzz_option
@click.option("--leave-out", metavar="GLOB", multiple=True, help="Leave out such files.")
@dry_run
@target_options
def fold(quiet: bool, force: bool, dry_run: bool, **values: Any) -> int:
    """Put a patch from stdin on the files as they are, and give them to the top patch.

    What is folded in is an edit: patchq refresh puts it into the patch, patchq revert
    takes it back. Where hunks go is decided as with patchq import. With -f, exit code 1
    where something did not fit.

    \b
    Example:
      patchq fold < fixup.patch && patchq refresh
    """
    from patchq.editing import folding
    from patchq.queue.refitting import Wish

    reverse, leave_out = values.pop("reverse"), values.pop("leave_out")
    wish = Wish(values.pop("strip"), values.pop("fuzz"), reverse, leave_out, "fold")
    target = one(values)
    how = folding.How(wish, force, quiet, _prefix(target))
    data = sys.stdin.buffer.read()
    return run(
        target,
        lambda aim: folding.fold(aim, ground(dry_run, aim), data, how),
        writing=True,
        quiet=quiet,
    )


def _prefix(target: Target) -> str:
    """Return where in a plain tree the names of a patch begin: at the folder that was named."""
    if target.tree is None:
        return ""
    folder = os.path.relpath(os.path.abspath(target.tree), places.tree(target.tree))
    return "" if folder == "." else f"{folder}/"


def _read(name: str) -> tuple[Path | None, bytes | None]:
    """Return where a file is, and its bytes; None for one that is not there."""
    if name == "-":
        return None, sys.stdin.buffer.read()
    path = Path(name)
    try:
        return path, path.read_bytes()
    except FileNotFoundError:
        return path, None
    except OSError as error:
        raise PatchqError(
            f"{name} can not be read",
            why=error.strerror or str(error),
            mend="name a file with a patch in it, or - for stdin",
        ) from error


COMMANDS = {"import": import_, "fold": fold}
