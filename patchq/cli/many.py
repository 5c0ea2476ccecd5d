"""Many hosts on a screen: progress, a line for each, a table, what is equal only once."""

from __future__ import annotations

import contextlib
import json
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import click

from patchq.cli.plain import plain
from patchq.conversation.restart import RESTART
from patchq.errors import ExitCode
from patchq.inventory.hostset import COMMAND, collapse
from patchq.outcome import Outcome, Run, Word, exit_code
from patchq.report import SCHEMA
from patchq.transport.channel import AgentError

HEADINGS = ("HOST", "OUTCOME", "DETAIL")
# What is told in full below the table.
_WRONG = (Word.CONFLICT, Word.REFUSED, Word.TAKEN_BACK, Word.FAILED)
# A command line as a host's name may be long; a detail longer than this has its rest below.
_NAME_ROOM, _DETAIL_ROOM = 40, 100


@contextlib.contextmanager
def progress(total: int, *, changes: bool, quiet: bool) -> Iterator[Callable[[Outcome], None]]:
    """Give what is to be called as each host ends: a bar on a terminal.

    Elsewhere it is a line for each host that a verb `changes`.
    """
    terminal = sys.stderr.isatty()
    if quiet or not (terminal or changes):
        yield lambda outcome: None
        return
    if not terminal:
        yield _tell_line
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    words: Counter[str] = Counter()
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("hosts  {task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)

        def ended(outcome: Outcome) -> None:
            words[outcome.word.value] += 1
            told = ", ".join(f"{count} {word}" for word, count in words.items())
            bar.update(task, advance=1, description=told)

        yield ended


def show(run: Run, verb: str, *, changes: bool, as_json: bool, quiet: bool) -> int:
    """Print how every host ended: a table where the verb `changes` them, else their answers."""
    code = ExitCode.INTERRUPTED if run.interrupted else exit_code(run.outcomes)
    if as_json:
        click.echo(json.dumps(document(run, verb, code), indent=1))
        return code
    if changes:
        click.echo(plain(_ended(run.outcomes)))
        _tell_notes(run.outcomes)
    else:
        _answers(run.outcomes, quiet=quiet)
    tell(run)
    return code


def _ended(outcomes: Sequence[Outcome]) -> str:
    """Return a row for each host; its wave, where there are several."""
    rows = [(name(one.host), one.word.value, detail(one)) for one in outcomes]
    if len({one.wave for one in outcomes}) < 2:
        return table(HEADINGS, rows)
    waves = [(row[0], str(one.wave), *row[1:]) for row, one in zip(rows, outcomes, strict=True)]
    return table((HEADINGS[0], "WAVE", *HEADINGS[1:]), waves)


def _tell_notes(outcomes: Sequence[Outcome]) -> None:
    """Say on stderr what hosts noted that were changed: a line for equal ones, restarts last."""
    groups: dict[str, list[str]] = {}
    for one in outcomes:
        for note in one.report.notes if one.report and one.word is Word.DONE else ():
            groups.setdefault(note.replace("\n", " "), []).append(one.host)
    with contextlib.suppress(OSError):
        for note in sorted(groups, key=lambda text: text.startswith(RESTART)):
            click.echo(plain(f"{collapse(groups[note])}: {note}"), err=True)


def tell(run: Run) -> None:
    """Say on stderr what is to be noted, what went wrong, and how many hosts ended how."""
    with contextlib.suppress(OSError):  # stderr may have gone; the table has been told
        for note in (*run.notes, *_errors(run.outcomes), counts(run)):
            click.echo(plain(note), err=True)


def document(run: Run, verb: str, code: ExitCode) -> dict[str, Any]:
    """Return what ``--json`` prints for several hosts."""
    return {
        "schema": SCHEMA,
        "verb": verb,
        "hosts": [_entry(one) for one in run.outcomes],
        "counts": dict(Counter(one.word.value for one in run.outcomes)),
        "interrupted": run.interrupted,
        "notes": list(run.notes),
        "exit_code": int(code),
    }


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows under headings, in columns; the last one is not padded."""
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)][:-1]
    return "\n".join(
        "  ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[-1]])
        for row in (headings, *rows)
    )


def counts(run: Run) -> str:
    """Return how many hosts ended how, in a line."""
    found = Counter(one.word for one in run.outcomes)
    told = ", ".join(f"{found[word]} {word.value}" for word in Word if found[word])
    total = len(run.outcomes)
    return f"{total} host{'' if total == 1 else 's'}: {told}" + (
        "; stopped by ^C" if run.interrupted else ""
    )


def name(host: str) -> str:
    """Return a host's name as a table has room for it."""
    return host if len(host) <= _NAME_ROOM else host[: _NAME_ROOM - 3] + "..."


def detail(outcome: Outcome) -> str:
    """Return in a line what came of a host."""
    if outcome.error is not None:
        text = outcome.error.what
    elif outcome.report is not None and outcome.report.document.get("why"):
        text = str(outcome.report.document["why"])
    elif outcome.report is None:
        return ""
    elif conflicts := outcome.report.document.get("conflicts"):
        first = next(iter(conflicts))  # type: ignore[call-overload]
        text = f"{first['kind']}: {first['message']}"
        text += f" (and {len(conflicts) - 1} more)" if len(conflicts) > 1 else ""  # type: ignore[arg-type]
    else:
        lines = [line for line in (*outcome.report.lines, *outcome.report.notes) if line]
        text = next((x for x in lines if x.startswith(_TOPS)), lines[-1] if lines else "")
    text = text.split("\n")[0]
    return text if len(text) <= _DETAIL_ROOM else text[: _DETAIL_ROOM - 4] + " ..."


# The line of a push or pop that says where it ended.
_TOPS = ("Now at patch", "No patches applied", "Would be at patch", "Would leave no patches")


def _tell_line(outcome: Outcome) -> None:
    if outcome.word is not Word.NOT_BEGUN:  # of those the table tells
        click.echo(plain(_line(outcome)), err=True)


def _line(outcome: Outcome) -> str:
    return f"{name(outcome.host)}: {outcome.word.value}: {detail(outcome)}".removesuffix(": ")


def _entry(one: Outcome) -> dict[str, Any]:
    entry: dict[str, Any] = {"host": one.host, "outcome": one.word.value}
    if one.wave is not None:
        entry["wave"] = one.wave
    if one.report is not None:
        entry["report"] = one.report.to_json()
    if one.error is not None:
        entry["error"] = {
            "what": one.error.what,
            "why": one.error.why,
            "mend": one.error.mend,
            "exit_code": int(one.error.exit_code),
        }
    return entry


def _answers(outcomes: Sequence[Outcome], *, quiet: bool) -> None:
    """Print what hosts answered, equal answers once, under the hosts that gave them."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for one in outcomes:
        if one.report is not None:
            lines = (*one.report.lines, *one.report.notes)
            groups.setdefault(lines, []).append(one.host)
    for lines, hosts in groups.items():
        if not quiet:
            click.echo(plain(f"== {collapse(hosts)}"))
        for line in lines:
            click.echo(plain(line))


def _errors(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield what went wrong in full, equal texts once, with the hosts that they are about."""
    groups: dict[tuple[Word, str], list[Outcome]] = {}
    for one in outcomes:
        text = _told(one)
        if text:
            command = one.host.startswith(COMMAND)
            bare = "" if command else one.host.rpartition("@")[2].partition(":")[0]
            text = text.replace(one.host, "HOST").replace(bare or one.host, "HOST")
            groups.setdefault((one.word, text), []).append(one)
    for (word, text), alike in groups.items():
        hosts = collapse(one.host for one in alike)
        if len(alike) == 1:
            text = _told(alike[0])
        yield f"\n{hosts}: {word.value}\n{text.replace('-H HOST', f'-H {shlex.quote(hosts)}')}"


def mend(one: Outcome) -> str:
    """Return what to type, marked where it is the host that says so, and not patchq here."""
    assert one.error is not None
    said = isinstance(one.error, AgentError) and one.host
    return f"the host says: {one.error.mend}" if said else one.error.mend


def _told(one: Outcome) -> str:
    if one.error is not None:
        texts = (one.error.what, f"why: {one.error.why}", f"mend: {mend(one)}")
        # What a host says begins no line of its own: it could be taken for another host's.
        return "\n".join("  " + "\n       ".join(text.split("\n")) for text in texts)
    if one.word in _WRONG and one.report is not None:
        return "\n".join(f"  {line}" for note in one.report.notes for line in note.split("\n"))
    return ""
