"""Write docs/patchq.1, the manual page, from the table of verbs and the exit codes.

Run it as ``.venv/bin/python scripts/manpage.py``; tests/test_manpage.py says when. The words
are those of the help and of `scripts/reference.py`.
"""

from __future__ import annotations

import inspect
import re
import runpy
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from patchq import __version__
from patchq.cli import main
from patchq.errors import ExitCode

PAGE = Path(__file__).parents[1] / "docs" / "patchq.1"
reference: dict[str, Any] = runpy.run_path(str(Path(__file__).with_name("reference.py")))

DESCRIPTION = """\
patchq keeps an ordered queue of patches for a Python package that is already installed, one
series per release, and pushes and pops it on the environments that need it: this machine's, or
a fleet's over SSH. Its verbs, options and files are those of quilt(1). All files of a push
change in one transaction, and not before the result is known to parse, to import, and to do what
the patch is for.

The environment that a verb means is the active one ($VIRTUAL_ENV, else python3 on PATH);
--python, --target, --tree and -H name another. The queue is the only one in sight that fits it,
or --queue. A verb may be shortened where the prefix is unique; one that quilt knows means what it
means there.
"""
FILES = {
    "queues/NAME/queue.toml": "A queue: its distribution, summary, owner. Queues are looked for "
    "in the nearest queues/ upwards, in PATCHQ_QUEUES, and among the ready-made ones.",
    "queues/NAME/RELEASE/series": "The patches for a release, in order, one a line, as quilt has "
    "them; beside it are the patches, and series.lock with the hashes of every step.",
    "queues/NAME/post/PATCH.pyi": "The sketch of a patch: what must be true afterwards.",
    "SITE-PACKAGES/.patchq/": "What is on in an environment, the originals, and the receipts.",
    "hosts.toml": "The inventory: the nearest one upwards, PATCHQ_HOSTS, and "
    "~/.config/patchq/hosts.toml.",
}
EXAMPLES = [
    (
        "Make a patch of an installed package:",
        ["init my-fixes --distribution idna", "new 10-fix.patch", "edit idna/core.py", "refresh"],
    ),
    ("Push the whole series, here and on hosts:", ["push -a", "push -a -H 'gpu[01-64]'"]),
    ("Say how each host stands:", ["audit -H 'gpu[01-64]'"]),
]
# What the help sets apart as code; it is bold in a manual page.
_BOLD = re.compile(r"`([^`\n]+)`")


def page() -> str:
    """Return docs/patchq.1."""
    table = main.cli
    assert isinstance(table, main.Verbs)
    parts = [
        f'.TH PATCHQ 1 "" "patchq {__version__}" "User Commands"',
        ".SH NAME\npatchq \\- " + _text("patch queues for installed Python packages"),
        ".SH SYNOPSIS\n.B patchq\n.I VERB\n[\\fIoptions\\fR] [\\fIarguments\\fR]",
        ".SH DESCRIPTION",
        *_paragraphs(DESCRIPTION),
    ]
    with click.Context(table, info_name="patchq", terminal_width=80) as ctx:
        parts += [".SH OPTIONS OF MOST VERBS", *_options(_bare(table), ctx, set())]
        shared = {parameter.name for parameter in _bare(table).params}
        for title, verbs in main.VERBS.items():
            parts.append(f".SH {_text(title.upper())}")
            for verb in verbs:
                parts += _verb(table, ctx, verb, shared)
    parts += [".SH EXIT STATUS", *_list((str(c.value), reference["CODES"][c]) for c in ExitCode)]
    parts += [".SH ENVIRONMENT", *_list(reference["VARIABLES"].items())]
    parts += [".SH FILES", *_list(FILES.items()), ".SH EXAMPLES", *_examples()]
    parts.append(".SH SEE ALSO\n.BR quilt (1),\n.BR git (1),\n.BR patch (1),\n.BR ssh_config (5)")
    return "\n".join(parts) + "\n"


def _bare(table: main.Verbs) -> click.Command:
    bare: click.Command = reference["_bare"](table)
    return bare


def _verb(
    table: main.Verbs, ctx: click.Context, verb: str, shared: set[str | None]
) -> Iterator[str]:
    command = table.get_command(ctx, verb)
    assert command is not None
    names = {parameter.name for parameter in command.params}
    with click.Context(command, parent=ctx, info_name=verb) as mine:
        words = " ".join(command.collect_usage_pieces(mine))
    yield f".SS {_text(verb)}"
    yield f".B patchq {_text(verb)}\n{_text(words)}"
    yield from _paragraphs(inspect.cleandoc(command.help or ""))
    yield from _options(command, ctx, shared if shared <= names else set())


def _options(
    command: click.Command, parent: click.Context, left_out: set[str | None]
) -> Iterator[str]:
    with click.Context(command, parent=parent, info_name=command.name) as ctx:
        for option in command.params:
            if isinstance(option, click.Option) and option.name not in left_out:
                record = option.get_help_record(ctx)
                yield from _list([record] if record else [])


def _list(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    for name, text in rows:
        yield f".TP\n.B {_text(name)}\n{_text(text)}"


def _paragraphs(text: str) -> Iterator[str]:
    """Yield paragraphs of a help text; what follows click's mark for it stays as it is."""
    for block in text.strip("\n").split("\n\n"):
        if block.startswith("\b\n"):
            lines = [_text(line) or "\\&" for line in block[2:].split("\n")]
            yield "\n".join([".PP", ".nf", *lines, ".fi"])
        else:
            yield ".PP\n" + _text(block)


def _examples() -> Iterator[str]:
    for title, lines in EXAMPLES:
        yield ".PP\n" + _text(title)
        yield "\n".join([".nf", *("    " + _text(f"patchq {line}") for line in lines), ".fi"])


def _text(text: str) -> str:
    """Return a text as roff has it: nothing in it is a request or an escape."""
    text = (
        text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("~", "\\(ti")
    )
    text = text.replace("^", "\\(ha")
    text = _BOLD.sub(r"\\fB\1\\fR", text).replace("`", "\\(ga")
    return "\n".join("\\&" + line if line.startswith(".") else line for line in text.split("\n"))


if __name__ == "__main__":
    PAGE.write_text(page())
