"""What `patchq forecast` shows: patches down, releases across, one word a cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from patchq.cli import destination, places, run
from patchq.errors import ExitCode, UsageError
from patchq.queue import store
from patchq.rebase import forecast as forecasts
from patchq.rebase import told
from patchq.rebase.beginning import Places
from patchq.rebase.forecast import Column
from patchq.releases import names, versions
from patchq.report import Report

# Cells of the table that no row has a step for.
_NONE = "-"


def forecast(
    *,
    distribution: str,
    specifier: str,
    queue: str | None,
    verbose: bool,
    html: str | None,
    as_json: bool,
) -> int:
    """Judge the series on each release, and show the table."""
    found = _queue(queue, distribution)
    path = _place(html, distribution, specifier)
    offered, notes = versions.offered(distribution, specifier)
    if not offered:
        raise UsageError(
            f"no release of {distribution} answers to {specifier!r}",
            why="; ".join(notes) or "the index has no such version with a wheel",
            mend=f"pip index versions {distribution}",
        )
    columns = tuple(forecasts.forecast(Places(found, places.cache(), places.state()), offered))
    report = _report(found, columns, notes, verbose=verbose)
    if path is not None:
        report = _written(path, found, specifier, columns, report)
    return run.show(report, as_json)


def _place(html: str | None, distribution: str, specifier: str) -> Path | None:
    """Return where the page goes, if one is wanted; refused before the work."""
    if html is None:
        return None
    return destination.place(html, f"patchq forecast {distribution} {specifier!r} --html FILE")


def _written(
    path: Path, queue: store.Queue, specifier: str, columns: Sequence[Column], report: Report
) -> Report:
    """Write the page, and return the report with its place."""
    from patchq.cli.html import forecast as pages
    from patchq.cli.html import page

    page.write(path, pages.page(queue.name, queue.distribution, specifier, columns, report.notes))
    notes = (*report.notes, f"written: {path}")
    return replace(report, notes=notes, document={**report.document, "html": str(path)})


def _queue(named: str | None, distribution: str) -> store.Queue:
    """Return the named queue, else the only one in sight for the distribution."""
    wanted = names.canonical(distribution)
    fitting = [one for one in places.queues(named) if names.canonical(one.distribution) == wanted]
    if len(fitting) == 1:
        return fitting[0]
    raise UsageError(
        f"forecast needs one queue for {distribution}",
        why=f"in sight: {', '.join(one.name for one in fitting) or 'none'}",
        mend=f"patchq forecast {distribution} SPEC --queue NAME",
    )


def _report(
    queue: store.Queue, columns: Sequence[Column], notes: Sequence[str], *, verbose: bool
) -> Report:
    lines = list(_table(columns))
    if verbose:
        for column in columns:
            for step in column.steps:
                lines += ["", f"{column.release} (from {column.source})", *told.lines(step)]
    failed = [f"{one.release}: {one.failed}" for one in columns if one.failed]
    document = {
        "verb": "forecast",
        "queue": queue.name,
        "distribution": queue.distribution,
        "releases": [column.to_json() for column in columns],
    }
    code = ExitCode.FAILED if failed else ExitCode.DONE
    return Report(tuple(lines), (*notes, *failed), document, code)


def _table(columns: Sequence[Column]) -> Iterator[str]:
    """Yield a line for each release, a column for each patch: releases are many."""
    patches = list(dict.fromkeys(step.name for one in columns for step in one.steps))
    rows = [["", *(name.removesuffix(".patch") for name in patches)]]
    for one in columns:
        words = {step.name: step.word.value + "*" * bool(step.flags) for step in one.steps}
        cells = [words.get(name, _NONE) for name in patches]
        rows.append([one.release, *(["failed"] if one.failed else cells)])
    widths = [max(len(row[at]) for row in rows if at < len(row)) for at in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(
            cell.ljust(width) for cell, width in zip(row, widths, strict=False)
        ).rstrip()
    if any(step.flags for one in columns for step in one.steps):
        yield "* to be reviewed: the merge had a choice"
