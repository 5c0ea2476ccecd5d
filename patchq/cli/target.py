"""The environments that a command line means: the options that name them, and their values."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import click

from patchq.cli import places, reaching, rollout, selecting

F = TypeVar("F", bound=Callable[..., Any])

# The verbs that have the options of `target_options`, as a mend names them.
_VERBS = re.compile(
    r"\bpatchq (push|pop|goto|new|add|refresh|revert|restore|capture|undo|recover|import|fold|"
    r"status|series|diff|files|show|log|check|audit|VERB)\b"
    r"(?! (--python|--target|--inventory|-H))"
)


@dataclass(frozen=True, slots=True)
class Target:
    """The environments that the user named, how to reach them, and how to answer.

    `hosts` is empty for the environment here; `several` is true where the user named
    more than one host, or a pattern that might be more.
    """

    python: str | None
    target: str | None
    hosts: tuple[str, ...]
    several: bool
    queue: str | None
    as_json: bool
    reach: reaching.Reach
    tree: str | None = None
    meant: selecting.Selection = field(default_factory=selecting.Selection)
    wishes: rollout.Wishes | None = None

    def aimed(self, mend: str, host: str = "") -> str:
        """Return a command to type with this target's options, so that it means this target."""
        named = None if "--queue" in mend else self.queue
        options = {
            "--python": self.python,
            "--target": self.target,
            "--tree": self.tree,
            "-H": host,
            "--queue": named,
        }
        given = [("--inventory", file) for file in self.reach.inventory if host]
        given += [(name, value) for name, value in options.items() if value]
        words = [f" {name} {shlex.quote(value)}" for name, value in given]
        return _VERBS.sub(lambda found: found[0] + "".join(words), mend)


def target_options(function: F) -> F:
    """Add the options of every verb that looks at an environment."""
    for option in reversed(
        (
            click.option("--python", metavar="PATH", help="The environment's interpreter."),
            click.option(
                "--target", metavar="DIR", help="A folder made by pip --target or fetch --into."
            ),
            click.option(
                "-H",
                "--host",
                metavar="HOST",
                multiple=True,
                help="user@host[:port], names of ~/.ssh/config, lists and ranges "
                "(gpu[01-64],!gpu07), groups (@rack1, all) of an inventory, or "
                "'command:docker exec -i NAME sh -c'.",
            ),
            click.option(
                "--tree",
                metavar="DIR",
                help="A plain tree with quilt's folder of patches: in DIR, or above it.",
            ),
            *reaching.OPTIONS,
            click.option("--queue", metavar="QUEUE", help="A queue's name or folder."),
            json_option,
        )
    ):
        function = option(function)
    return function


json_option = click.option(
    "--json", "as_json", is_flag=True, help="Answer with one JSON document."
)


def target_of(values: dict[str, Any]) -> Target:
    """Take the options of `target_options` out of a command's values."""
    named = values.pop("host")
    python, target, queue, as_json, tree = (
        values.pop(name) for name in ("python", "target", "queue", "as_json", "tree")
    )
    reach = reaching.Reach.take(values, remote=bool(named))
    wishes = rollout.take(values, remote=bool(named))
    meant = selecting.select(named, reach.inventory)
    hosts, several = meant.hosts, meant.hosts != named[:1]
    places.alone(tree, {"--target": target, "-H": named, "--queue": queue})
    return Target(python, target, hosts, several, queue, as_json, reach, tree, meant, wishes)
