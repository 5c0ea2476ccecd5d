"""The verbs that go over hosts: which of them has what."""

from __future__ import annotations

import csv
import io
import json
import shlex
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import click

from patchq.cli import many, places, reporting, selecting
from patchq.cli.plain import line, plain, put
from patchq.cli.run import Target, outcomes, target_of, target_options
from patchq.errors import ExitCode, UsageError
from patchq.inventory.hostset import collapse
from patchq.outcome import Outcome, Run, Word
from patchq.report import SCHEMA

Rows = list[dict[str, Any]]
_COLUMNS = (
    "host queue distribution version release word why paths behind commit "
    "receipt time who whence site mend wanted"
).split()
# What a spreadsheet takes for the beginning of a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
# Colour repeats what the word says.
_COLOURS = {"current": "green", "upstream": "green", "missing": "yellow", "absent": "dim"}


@click.command(short_help="Say in a word how each environment stands")
@click.option("--verify", is_flag=True, help="Hash every text file of the distribution, too.")
@click.option("--csv", "as_csv", is_flag=True, help="Answer with comma-separated values.")
@click.option("--html", metavar="FILE", help="Write it as a page for a browser, too.")
@click.option(
    "--prometheus",
    is_flag=False,
    flag_value=reporting.STDOUT,
    metavar="[FILE]",
    help="Answer with metrics in Prometheus' text format, or write them to FILE, too.",
)
@click.option("--since", metavar="FILE", help="Say what changed since an earlier audit --json.")
@target_options
def audit(verify: bool, **values: Any) -> int:
    """Say in one word how each queue stands in each environment; nothing is written there.

    Words: current, behind, partial, missing, drifted, interrupted, orphaned,
    unrecorded, unmanaged, unknown, upstream, no series, absent, unreachable.
    Exit code 0 where all is as it should be, 5 where something is not, 4 where a
    host could not be asked; wanted is --queue, else what the inventory wants.
    With --verify every file is compared with the release store, or with RECORD
    where the release was not fetched.

    \b
    Examples:
      patchq audit -H 'gpu[01-64]' --queue kimi-k2.5-eagle3
      patchq audit --verify --csv -H 'gpu*' > audit.csv
      patchq audit -H all --html audit.html --json > today.json
      patchq audit -H all --since yesterday.json
      patchq audit -H all --prometheus /var/lib/node_exporter/patchq.prom
    """
    from patchq.conversation import audit as asking

    reports = reporting.Reports.take(values)
    target = _wanting(target_of(values))
    quiet = reports.form != reporting.TABLE
    done = outcomes(target, lambda aim: asking.audit(aim, verify), quiet=quiet, record=True)
    _only_usage(target, done)
    rows = [row for one in done.outcomes for row in _rows(target, one)]
    code = _exit_code(done)
    changed = reports.changed(rows)
    written = reports.write(rows, code, done.notes, whole=not done.interrupted)
    notes = [*done.notes, *written]
    if reports.form == "--json":
        document = _document(done, rows, notes, code)
        click.echo(json.dumps({**document, **reports.to_json(changed)}, indent=1))
        return code
    if reports.form == "--csv":
        click.echo(_csv(rows), nl=False)
    elif reports.form == "--prometheus":
        put(reporting.metrics(rows, code).removesuffix("\n"))
    elif changed is not None:
        put("\n".join(reports.lines(changed)))
    else:
        _show(rows, bool(target.hosts))
    _tell(notes, rows, rows if changed is None else _of(rows, changed.hosts))
    return code


def _document(done: Run, rows: Rows, notes: list[str], code: ExitCode) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "verb": "audit",
        "time": reporting.now().strftime("%Y-%m-%dT%H:%M:%SZ"),
        "rows": rows,
        "counts": _counts(rows),
        "interrupted": done.interrupted,
        "notes": notes,
        "exit_code": int(code),
    }


def _of(rows: Rows, hosts: frozenset[str]) -> Rows:
    return [row for row in rows if row["host"] in hosts]


def _wanting(target: Target) -> Target:
    """Return the target once the queues that its inventories want are all in sight."""
    if target.queue is None and target.meant.known:
        known = places.queues(None, needed=False)
        selecting.check_wanted(target.meant, [queue.name for queue in known])
    return target


def _only_usage(target: Target, done: Run) -> None:
    """Raise what is wrong with the command line, or with the environment here."""
    errors = [one.error for one in done.outcomes if one.error is not None]
    usage = len(errors) == len(done.outcomes) and all(isinstance(e, UsageError) for e in errors)
    if errors and (usage or not target.hosts):
        raise errors[0]


def _exit_code(done: Run) -> ExitCode:
    if done.interrupted:
        return ExitCode.INTERRUPTED
    if any(one.report is None for one in done.outcomes):
        return ExitCode.HOST_FAILED
    codes = {one.report.exit_code for one in done.outcomes if one.report is not None}
    return ExitCode.FINDING if ExitCode.FINDING in codes else ExitCode.DONE


def _rows(target: Target, one: Outcome) -> Rows:
    """Return the rows of one host; a host that could not be asked has one, too."""
    if one.report is None:
        assert one.error is not None
        word = "unreachable" if one.word is Word.UNREACHABLE else "failed"
        mend = many.mend(one)
        error = {"what": one.error.what, "why": one.error.why, "mend": mend}
        row = {"host": one.host, "word": word, "why": one.error.what, "mend": mend}
        return [{**row, "error": error}]
    found: Any = one.report.document["rows"]
    return [
        {"host": one.host, **row, "mend": row["mend"] and target.aimed(row["mend"], one.host)}
        for row in found
    ]


def _counts(rows: Iterable[dict[str, Any]]) -> dict[str, int]:
    return dict(Counter(row["word"] for row in rows).most_common())


def _csv(rows: Iterable[dict[str, Any]]) -> str:
    """Return the rows as a spreadsheet can be given them: no cell is a formula.

    Every cell is quoted, so that none of them ends at another separator than the comma.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerow(_COLUMNS)
    for row in rows:
        receipt = row.get("receipt") or {}
        cells = {
            **row,
            "paths": " ".join(row.get("paths") or ()),
            "receipt": receipt.get("id"),
            # As JSON spells it; empty for a host that was not to be asked.
            "wanted": json.dumps(row["wanted"]) if "wanted" in row else None,
            **{key: receipt.get(key) for key in ("time", "who", "whence")},
        }
        writer.writerow([_cell(cells.get(name)) for name in _COLUMNS])
    return text.getvalue()


def _cell(value: object) -> str:
    text = "" if value is None else str(value)
    formula = text.startswith(_FORMULA) or text.lstrip().startswith(_FORMULA)
    return f"'{line(text)}" if formula else line(text)


def _show(rows: Rows, remote: bool) -> None:
    """Print the table; on a terminal a word has a colour, too."""
    headings = ["HOST"] * remote + ["QUEUE", "VERSION", "WORD", "DETAIL"]
    cells = [
        [many.name(row["host"])] * remote
        + [row.get("queue") or "-", row.get("version") or "-", row["word"], row["why"]]
        for row in rows
    ]
    cells = [[line(cell) for cell in row] for row in cells]
    lines = many.table(headings, cells).split("\n")
    if not sys.stdout.isatty():
        click.echo("\n".join(one.rstrip() for one in lines))
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    console.print(Text(lines[0], style="bold"))
    columns = [*zip(headings, *cells, strict=True)][:-2]
    start = sum(max(len(cell) for cell in column) + 2 for column in columns)
    for shown, row in zip(lines[1:], rows, strict=True):
        text = Text(shown.rstrip())
        colour = _COLOURS.get(row["word"], "red")
        text.stylize(colour, start, start + len(row["word"]))
        console.print(text)


def _tell(notes: Sequence[str], rows: Rows, told: Rows) -> None:
    """Say on stderr what to type of those `told`, equal texts once, and count all words."""
    groups: dict[tuple[str, ...], Rows] = {}
    for row in told:
        error = row.get("error") or {}
        texts = [error.get("why"), row.get("mend")]
        same = [_nameless(str(text or ""), row["host"]) for text in texts]
        if any(same):
            groups.setdefault((row["word"], *same), []).append(row)
    for alike in groups.values():
        first = alike[0]
        hosts = collapse(dict.fromkeys(row["host"] for row in alike if row["host"]))
        lines = [f"{first['word']} on {hosts}" if hosts else first["word"]]
        if first.get("error"):
            lines.append("  why: " + "\n       ".join(first["error"]["why"].split("\n")))
        if first.get("mend"):
            mine, all_ = (f"-H {shlex.quote(one)}" for one in (first["host"], hosts))
            lines.append(f"  mend: {line(first['mend'].replace(mine, all_))}")
        click.echo(plain("\n".join(lines)), err=True)
    for note in (*_shared(rows), *notes):
        click.echo(plain(note), err=True)
    words = ", ".join(f"{number} {word}" for word, number in _counts(rows).items())
    click.echo(f"{len(rows)} {'row' if len(rows) == 1 else 'rows'}: {words}", err=True)


def _shared(rows: Rows) -> Iterator[str]:
    """Yield a line for each environment id that several hosts have."""
    hosts: dict[str, dict[str, None]] = {}
    for row in rows:
        if row.get("environment") and row["host"]:
            hosts.setdefault(row["environment"], {})[row["host"]] = None
    for some in hosts.values():
        if len(some) > 1:
            yield f"one environment id on {collapse(some)}: one tree, or copies of it"


def _nameless(text: str, host: str) -> str:
    """Return a text as it is for any host, so that equal ones are told once."""
    if host.startswith("command:"):
        bare = host.removeprefix("command:")
    else:
        bare = host.rpartition("@")[2].partition(":")[0]
    for name in filter(None, (host, bare)):
        text = text.replace(name, "HOST")
    return text


COMMANDS = {"audit": audit}
