"""What somebody edited by hand: put back (restore), or made a patch (capture)."""

from __future__ import annotations

from typing import Any

import click

from patchq.cli import many
from patchq.cli.move import dry_run, ground
from patchq.cli.paths import paths_of
from patchq.cli.run import Target, outcomes, run, target_of, target_options
from patchq.conversation.goal import Upto
from patchq.errors import ExitCode, PatchqError, UsageError
from patchq.outcome import Run


@click.command(short_help="Put edited files back as they should be")
@click.argument("file", nargs=-1)
@click.option("-a", "--all", "everything", is_flag=True, help="All files that were edited.")
@dry_run
@target_options
def restore(file: tuple[str, ...], everything: bool, dry_run: bool, **values: Any) -> int:
    """Put files back that somebody edited: with the applied patches, else as released.

    Files that somebody made beside the release's are removed only where they are named.

    \b
    Examples:
      patchq restore -n -a
      patchq restore vllm/config/speculative.py -H gpu07
    """
    from patchq.editing import restoring

    if bool(file) == everything:
        raise UsageError(
            "name the files, or say -a for all",
            why="what was edited may be all that there is of it",
            mend="patchq status   # names the files that were edited",
        )
    target = target_of(values)
    paths = paths_of(target, file)
    return run(
        target,
        lambda aim: restoring.restore(aim, ground(dry_run, aim), paths, everything),
        writing=True,
    )


@click.command(short_help="Make a patch of what was edited by hand")
@click.argument("name")
@dry_run
@target_options
def capture(name: str, dry_run: bool, **values: Any) -> int:
    """Make the patch NAME of what somebody edited by hand, above the patches that are on.

    Of several hosts that were edited alike it is one patch, and is on in all of them from
    then on. Hosts that were edited in different ways are named, and nothing is changed.

    \b
    Example:
      patchq capture 60-hotfix.patch -H 'gpu[01-04]'
    """
    from patchq.conversation import move
    from patchq.editing import capturing

    target = target_of(values)
    if not target.several:
        return run(
            target, lambda aim: capturing.capture(aim, ground(dry_run, aim), name), writing=True
        )
    found = outcomes(target, lambda aim: capturing.drifted(aim, ground(True, aim)))
    alike = _alike(found, name)
    first = only(target, alike[:1])
    code = run(first, lambda aim: capturing.capture(aim, ground(dry_run, aim), name), writing=True)
    if code or dry_run or len(alike) == 1:
        return code
    done = outcomes(
        only(target, alike[1:]),
        lambda aim: move.push(aim, ground(False, aim), Upto(name), adopt=True),
        writing=True,
    )
    return many.show(done, "capture", changes=True, as_json=target.as_json, quiet=False)


def _alike(found: Run, name: str) -> tuple[str, ...]:
    """Return the hosts that were edited, which must be all alike.

    Raises:
        PatchqError: a host failed, none was edited, or they were edited in different ways.
    """
    failed = next((one for one in found.outcomes if one.error is not None), None)
    if failed is not None and failed.error is not None:
        raise failed.error
    groups: dict[str, list[str]] = {}
    for one in found.outcomes:
        if one.report is not None and one.report.exit_code is ExitCode.DONE:
            groups.setdefault(str(one.report.document["effect"]), []).append(one.host)
    if not groups:
        error = PatchqError("Nothing was edited", why="on none of the hosts", mend="patchq audit")
        error.exit_code = ExitCode.NOTHING_TO_DO
        raise error
    if len(groups) > 1:
        raise PatchqError(
            f"the hosts were edited in {len(groups)} different ways",
            why="; ".join(f"one way on {', '.join(hosts)}" for hosts in groups.values()),
            mend=f"patchq capture {name} -H {','.join(next(iter(groups.values())))}",
        )
    return tuple(next(iter(groups.values())))


def only(target: Target, hosts: tuple[str, ...]) -> Target:
    """Return a target that means some of its hosts."""
    from dataclasses import replace

    return replace(target, hosts=hosts, several=len(hosts) > 1)


COMMANDS = {"restore": restore, "capture": capture}
