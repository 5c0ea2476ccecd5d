"""`pop --only`: one patch off from the middle, in one environment."""

from __future__ import annotations

from typing import Any

from patchq.cli.run import run
from patchq.cli.target import target_of
from patchq.conversation.commit import Ground
from patchq.conversation.goal import Upto
from patchq.errors import UsageError


def pop(name: str, goal: Upto, ground: Ground, quiet: bool, values: dict[str, Any]) -> int:
    """Take one patch off; those above it stay on.

    Raises:
        UsageError: another goal is named, too, or several hosts.
    """
    from patchq.editing import ordering

    target = target_of(values)
    given = goal.word or "-a" * goal.everything or "several hosts" * target.several
    if given:
        raise UsageError(
            f"--only {name} and {given} do not go together",
            why="--only takes one patch off in one environment, and the queue's order changes",
            mend=f"patchq pop --only {name}",
        )
    return run(target, lambda aim: ordering.pop_only(aim, ground, name), writing=True, quiet=quiet)
