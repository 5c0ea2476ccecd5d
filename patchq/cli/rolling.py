"""A verb's run over the hosts of a target: in waves where it is a rollout, else all at once."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from patchq.cli import many, places
from patchq.cli.plain import plain
from patchq.errors import PatchqError, UsageError
from patchq.inventory.hostset import collapse
from patchq.rollout import Order, Share, Wave

if TYPE_CHECKING:  # of a run that names hosts only
    from patchq import fleet, health
    from patchq.cli.rollout import Wishes
    from patchq.cli.target import Target
    from patchq.conversation.view import Aim
    from patchq.outcome import Outcome, Run
    from patchq.report import Report
    from patchq.transport.channel import Conversation


def hold(
    target: Target,
    make: Callable[[Aim], Conversation[Report]],
    aim: Aim,
    *,
    writing: bool,
    silent: bool,
) -> Run:
    """Hold a verb's conversation with every host of a target."""
    from patchq import fleet
    from patchq.conversation import same

    reached = target.reach.options(target.python, target.meant, writing=writing)
    total = len(target.hosts)
    one = same.Alone() if writing and total > 1 else None

    def push(host: str) -> Conversation[Report]:
        return same.once(make(target.meant.aim(aim, host)), one)

    order, notes = _order(target)
    done = None
    try:
        with many.progress(total, changes=writing, quiet=silent) as tell:
            if order is None:
                done = fleet.hold(target.hosts, push, reached, tell)
            else:
                done = _rolled(target, order, push, aim, reached, tell, silent)
    except OSError:  # stderr has gone: the outcomes are still told
        if done is None:
            raise
    return replace(done, notes=(*notes, *done.notes))


def _rolled(
    target: Target,
    order: Order,
    push: Callable[[str], Conversation[Report]],
    aim: Aim,
    reached: fleet.Options,
    tell: Callable[[Outcome], None],
    silent: bool,
) -> Run:
    from patchq import waves
    from patchq.conversation import commit, undo
    from patchq.queue.heads import Heads

    def back(host: str, report: Report) -> Conversation[Report]:
        receipt: Any = report.document["receipt"]
        heads = aim.shared.once("heads", lambda: Heads(aim.queues))
        ground = commit.Ground(*places.operator(), heads)
        mine = replace(target.meant.aim(aim, host), name=str(report.document["queue"]))
        return undo.undo(mine, ground, receipt["id"])

    def begin(wave: Wave, number: int, count: int) -> None:
        if not silent and count > 1:
            hosts = collapse(wave.hosts)
            canary = ", the canary" * wave.canary
            _say(lambda: click.echo(plain(f"wave {number} of {count}{canary}: {hosts}"), err=True))

    checks = _checks(target, reached)
    part = waves.Part(push, back, checks.get, begin, lambda outcome: _say(lambda: tell(outcome)))
    return waves.hold(target.hosts, order, part, reached)


def _say(told: Callable[[], None]) -> None:
    with contextlib.suppress(OSError):  # who listens has gone; the outcomes are told at the end
        told()


def _order(target: Target) -> tuple[Order | None, tuple[str, ...]]:
    """Return how the target's hosts are to move, None for all at once, and what is to be said."""
    wishes = target.wishes
    if wishes is None:
        return None, ()
    sets = dict(_sets(target, wishes))
    if not wishes.any and not sets:
        return None, ()
    if wishes.adopt and (wishes.health or wishes.tried or sets):
        raise UsageError(
            "--adopt does not go with what takes hosts back",
            why="what is taken over comes back as the release has it, not as it was before",
            mend="patchq push --adopt -H HOST, then the rollout of the rest",
        )
    notes = tuple(
        f"{name} moves together, and not all of it is named: not {collapse(rest)}"
        for name, (_, rest) in sets.items()
        if rest
    )
    together = tuple(hosts for hosts, _ in sets.values())
    limit = wishes.fail_limit or Share(0)
    return Order(wishes.canary, wishes.serial, limit, together), notes


def _sets(
    target: Target, wishes: Wishes
) -> Iterator[tuple[str, tuple[frozenset[str], tuple[str, ...]]]]:
    """Yield what moves together: its name, its hosts of this run, and its other ones."""
    from patchq.inventory import hostset

    mine: dict[str, list[str]] = {}
    for host in target.hosts:
        mine.setdefault(hostset.forms(host)[-1], []).append(host)
    groups = target.meant.inventories.groups
    named: dict[str, tuple[str, ...]] = {
        f"@{name}": group.hosts for name, group in groups.items() if group.together
    }
    members = {name: group.hosts for name, group in groups.items()}
    for text in wishes.together:
        if text.startswith("@") and "," not in text:
            names = hostset.group_names(text, members or None)
            found = {f"@{name}": members[name] for name in names}
        else:
            found = {text: hostset.expand([text], target.hosts, members or None)}
        if not any(hostset.forms(host)[-1] in mine for some in found.values() for host in some):
            raise UsageError(
                f"--together {text}: none of its hosts is named",
                why="this run is about other hosts",
                mend=f"patchq VERB -H {text}, or leave it out",
            )
        named |= found
    for name, hosts in named.items():
        bare = dict.fromkeys(hostset.forms(host)[-1] for host in hosts)
        here = frozenset(host for one in bare for host in mine.get(one, ()))
        if here:
            yield name, (here, tuple(one for one in bare if one not in mine))


def _checks(target: Target, reached: fleet.Options) -> Mapping[str, health.Check]:
    """Return how each host is asked whether it is well, nothing where none is to be asked."""
    from patchq import health
    from patchq.transport.route import Surroundings

    wishes = target.wishes
    if wishes is None or wishes.health is None or wishes.dry_run:
        return {}
    verb = click.get_current_context().info_name or ""
    around = Surroundings.read(os.environ)
    found = {}
    for host in target.hosts:
        more = {"PATCHQ_HOST": host, "PATCHQ_ADDRESS": "", "PATCHQ_VERB": verb}
        with contextlib.suppress(PatchqError):  # then it will not be reached, either
            more["PATCHQ_ADDRESS"] = _address(target, reached, host, around)
        found[host] = health.Check(wishes.health, {**os.environ, **more}, wishes.wait)
    return found


def _address(target: Target, reached: fleet.Options, host: str, around: Any) -> str:
    """Return where a host is, as its connection has it; "" for a command that does not say."""
    from patchq.transport import route

    way = reached.way(host)
    if way.argv is None:
        return route.resolve(way.host, around)[-1].name
    known = target.meant.known.get(host)
    return (known.address or known.name) if known else ""
