"""Write docs/reference.md from the table of verbs and the exit codes.

Run it as ``.venv/bin/python scripts/reference.py``; tests/test_reference.py says when.
"""

from __future__ import annotations

from pathlib import Path

import click

from patchq.cli import main, run
from patchq.errors import ExitCode

PAGE = Path(__file__).parents[1] / "docs" / "reference.md"
WIDTH = 96
# Every name of the enumeration, in words; a missing one is an error here.
CODES = {
    ExitCode.DONE: "Done.",
    ExitCode.FAILED: "Failed; nothing was changed unless the message says otherwise. "
    "Also a `check` or `lint` that found something, and quilt's own 1 (`applied` with no patch).",
    ExitCode.NOTHING_TO_DO: "Nothing to do: all is pushed, nothing to pop, no top, no receipt, "
    "no journal, no sketch that speaks of this release.",
    ExitCode.CONFLICT: "A patch does not fit (drift, partial, wrong release, order, upstream, "
    "judgement); nothing was changed.",
    ExitCode.HOST_FAILED: "A host could not be reached, or what became of it is not known.",
    ExitCode.FINDING: "`status` found drift, an interrupted transaction or lost patches; `audit` "
    "found what should not be; `log` found a ledger that was cut or edited.",
    ExitCode.USAGE: "The command line, or a file of yours, names something that is not there.",
    ExitCode.BUG: "A bug in patchq; the message names the report file.",
    ExitCode.INTERRUPTED: "Stopped by ^C. A transaction is whole or undone: `patchq status`.",
}
VARIABLES = {
    "PATCHQ_CACHE": "Folder of pristine releases and verdicts; else `patchq` in the user's "
    "cache folder (`~/.cache`, `XDG_CACHE_HOME`).",
    "PATCHQ_STATE": "Folder of rebases in progress and remembered resolutions; else `patchq` in "
    "the user's state folder (`~/.local/state`, `XDG_STATE_HOME`).",
    "PATCHQ_QUEUES": "Folders that hold queues, separated as in `PATH`; they are asked after the "
    "nearest `queues/` upwards, and before the ready-made ones.",
    "PATCHQ_HOSTS": "Files that say which hosts there are (`hosts.toml`), separated as in `PATH`; "
    "asked after the nearest `hosts.toml` upwards, and before `~/.config/patchq/hosts.toml`.",
    "VIRTUAL_ENV": "The active environment; without it `python3` on `PATH`.",
    "SSH_AUTH_SOCK": "The SSH agent whose keys are offered.",
    "PIP_*, UV_*, *_PROXY, NETRC": "Where `fetch` reads from; as pip and uv have them.",
}
INTRO = """\
# Reference

Made by `scripts/reference.py` from the program's own help; edit that. A prefix of a verb will do
where it is unique (`patchq pu`, `patchq un`); one that quilt knows means what it means there.
"""


def page() -> str:
    """Return docs/reference.md."""
    table = main.cli
    assert isinstance(table, main.Verbs)
    with click.Context(table, info_name="patchq", terminal_width=WIDTH) as ctx:
        parts = [INTRO, _contents(), *_shared(table, ctx)]
        for title, verbs in main.VERBS.items():
            parts.append(f"## {title}\n")
            parts += [_verb(table, ctx, verb) for verb in verbs]
    return "\n".join([*parts, _codes(), _variables()])


def _contents() -> str:
    rows = ["| | |", "|---|---|"]
    for title, verbs in main.VERBS.items():
        names = " · ".join(f"[{verb}](#{verb})" for verb in verbs)
        rows.append(f"| {title} | {names} |")
    return "\n".join(rows) + "\n"


def _shared(table: main.Verbs, ctx: click.Context) -> list[str]:
    """Return the options that every verb has which looks at an environment."""

    command = _bare(table)
    names = _names(command)
    lines = _options(command, ctx, names | {"help"})
    having = [verb for verb in main.HOME if names <= _names(_command(table, ctx, verb))]
    rest = [f"`{verb}`" for verb in main.HOME if verb not in having]
    return [
        "## Options of most verbs\n",
        f"All verbs but {', '.join(rest[:-1])} and {rest[-1]} have them.\n",
        f"```\n{lines}```\n",
    ]


def _bare(table: main.Verbs) -> click.Command:
    """Return a command that has no options of its own."""

    @run.target_options
    def none() -> None:
        """Nothing."""

    return click.command("verb", context_settings=table.context_settings)(none)


def _names(command: click.Command) -> set[str]:
    return {parameter.name or "" for parameter in command.params}


def _command(table: main.Verbs, ctx: click.Context, verb: str) -> click.Command:
    command = table.get_command(ctx, verb)
    assert command is not None
    return command


def _verb(table: main.Verbs, ctx: click.Context, verb: str) -> str:
    command = _command(table, ctx, verb)
    names, common = _names(command), _names(_bare(table))
    own = (names - common if common <= names else names) - {"help"}
    with click.Context(command, parent=ctx, info_name=verb) as mine:
        usage = command.get_usage(mine).removeprefix("Usage: ")
        formatter = mine.make_formatter()
        command.format_help_text(mine, formatter)
        text = "\n".join(line[2:] for line in formatter.getvalue().strip("\n").split("\n"))
    shown = f"{usage}\n\n{text}\n"
    options = _options(command, ctx, own)
    if options:
        shown += f"\n{options}"
    return f"### {verb}\n\n```\n{shown}```\n"


def _options(command: click.Command, parent: click.Context, names: set[str]) -> str:
    """Return the help of those options of a command that are in `names`."""
    with click.Context(command, parent=parent, info_name=command.name) as ctx:
        rows = [
            row
            for option in command.get_params(ctx)
            if isinstance(option, click.Option)
            if option.name in names and (row := option.get_help_record(ctx)) is not None
        ]
        formatter = ctx.make_formatter()
        if rows:
            formatter.write_dl(rows)
        return formatter.getvalue()


def _codes() -> str:
    rows = ["## Exit codes", "", "| | |", "|---|---|"]
    rows += [f"| {code.value} | {CODES[code]} |" for code in ExitCode]
    return "\n".join(rows) + "\n"


def _variables() -> str:
    rows = ["## Environment variables", "", "| | |", "|---|---|"]
    rows += [f"| `{name}` | {text} |" for name, text in VARIABLES.items()]
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
