"""The options of a rollout, and of the gate that a push has to pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from patchq.errors import UsageError
from patchq.rollout import Share, share

F = TypeVar("F", bound=Callable[..., Any])
_OPTIONS = (
    click.option("--serial", metavar="N|N%", help="So many hosts at a time, wave after wave."),
    click.option(
        "--canary",
        metavar="N",
        type=click.IntRange(1),
        help="The first N hosts alone; if one fails, no other begins.",
    ),
    click.option(
        "--fail-limit",
        metavar="N|N%",
        help="Begin no further wave when more hosts than that have failed; 0 if not given.",
    ),
    click.option(
        "--together",
        metavar="@GROUP",
        multiple=True,
        help="These hosts move together, in one wave; none stays new where another fails.",
    ),
    click.option(
        "--health",
        metavar="COMMAND",
        help="Run it here for each host, by /bin/sh, with PATCHQ_HOST, PATCHQ_ADDRESS and"
        " PATCHQ_VERB; where it fails, the host is taken back.",
    ),
    click.option(
        "--health-wait",
        metavar="SECONDS",
        type=click.FloatRange(0, 86_400),
        help="So long it may take, and is tried again until it succeeds; once, and 60 seconds,"
        " if not given.",
    ),
)
check_import = click.option(
    "--check-import",
    "modules",
    is_flag=False,
    flag_value="",
    multiple=True,
    metavar="[MODULE]",
    help="Import MODULE in a fresh process there, else what queue.toml names or was touched;"
    " where that fails, the push comes off again.",
)
_NAMES = ("serial", "canary", "fail_limit", "together", "health", "health_wait")


def options(function: F) -> F:
    """Add the options of a rollout."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the command line says of a rollout; nothing of it for all hosts at once."""

    serial: Share | None
    canary: int
    fail_limit: Share | None
    together: tuple[str, ...]
    health: str | None
    wait: float
    dry_run: bool
    tried: bool
    adopt: bool

    @property
    def any(self) -> bool:
        """True where a rollout is asked for."""
        return bool(self.serial or self.canary or self.together or self.health)


def take(values: dict[str, Any], *, remote: bool) -> Wishes | None:
    """Take `options` out of a command's values; None for a verb that has none of them.

    Raises:
        UsageError: one of them is given that would do nothing, or that says nothing usable.
    """
    if "serial" not in values:
        return None
    serial, canary, limit, together, health, wait = (values.pop(name) for name in _NAMES)
    given = {"--health-wait": wait is not None, "--fail-limit": limit is not None}
    given |= {"--serial": serial, "--canary": canary, "--together": together, "--health": health}
    first = next((option for option, value in given.items() if value), None)
    if first is not None and not remote:
        raise UsageError(
            f"{first} is for hosts, and none is named",
            why="it says in which order hosts move, and which of them stay",
            mend="patchq VERB -H HOST, or here: patchq push && COMMAND || patchq undo",
        )
    params = click.get_current_context().params
    if first is not None and _counted(params):
        raise UsageError(
            f"{first} needs -a, or a patch by its name",
            why="a step or a number of them leads on where it was done already: typed again,"
            " the command would not do what is missing",
            mend=f"patchq {click.get_current_context().info_name} -a {first} ...",
        )
    if limit is not None and not (serial or canary):
        why = "without --serial or --canary there is one wave, and nothing to stop"
        raise _idle("--fail-limit", why)
    if wait is not None and not health:
        raise _idle("--health-wait", "there is no --health to be tried again")
    if health is not None and (not health.strip() or "\0" in health):
        raise _idle("--health", "its command is empty, or has a NUL byte")
    return Wishes(
        share(serial, "--serial", least=1) if serial is not None else None,
        canary or 0,
        share(limit, "--fail-limit") if limit is not None else None,
        together,
        health,
        wait or 0,
        *(bool(params.get(name)) for name in ("dry_run", "modules", "adopt")),
    )


def _counted(params: Mapping[str, Any]) -> bool:
    """Return whether a verb's goal is a number of steps."""
    if "upto" not in params or params["everything"]:
        return False
    upto = params["upto"]
    return upto is None or bool(upto.isdigit())


def modules(named: tuple[str, ...]) -> tuple[str, ...]:
    """Return the modules that ``--check-import`` names, none where it only stands there.

    Raises:
        UsageError: one is no module.
    """
    from patchq.conversation import trying

    wanted = tuple(module for module in named if module)
    unknown = [module for module in wanted if not trying.is_module(module)]
    if unknown:
        raise UsageError(
            f"{unknown[0]} is no module",
            why="a module has a dotted name, as in an import",
            mend="patchq push --check-import PACKAGE.MODULE",
        )
    return wanted


def _idle(option: str, why: str) -> UsageError:
    return UsageError(f"{option} has nothing to do", why=why, mend="patchq push --help")
