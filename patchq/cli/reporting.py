"""What an audit is told as: a table, values, metrics, a page, or what changed since."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from patchq.audit import changes, document
from patchq.cli import destination, since
from patchq.errors import UsageError

Rows = Sequence[dict[str, Any]]
STDOUT = "-"
TABLE = ""


@dataclass(frozen=True, slots=True)
class Reports:
    """What the user asked for, settled before any host is asked.

    `form` is the option that names the answer, "" for the table; `html` and `prometheus`
    are files to be written at the end.
    """

    form: str
    since: str | None
    earlier: document.Audit | None
    html: Path | None = None
    prometheus: Path | None = None

    @classmethod
    def take(cls, values: dict[str, Any]) -> Reports:
        """Take the options out of a command's values.

        Raises:
            UsageError: two answers are asked for, or a file cannot be read or written.
        """
        names = ("html", "prometheus", "since", "as_csv")
        html, metrics, file, as_csv = (values.pop(name) for name in names)
        out = metrics == STDOUT
        given = {
            "--csv": as_csv,
            "--prometheus": out,
            "--since": file,
            "--json": values["as_json"],
        }
        forms = [name for name, value in given.items() if value]
        if len(forms) > 1 and forms != ["--since", "--json"]:
            raise UsageError(
                f"{forms[0]} and {forms[1]} do not go together",
                why="there is one answer, in one form",
                mend="leave one of them out",
            )
        return cls(
            forms[-1] if forms else TABLE,
            file,
            since.read(file) if file else None,
            _place(html, "--html"),
            None if out else _place(metrics, "--prometheus"),
        )

    def changed(self, rows: Rows) -> changes.Changes | None:
        """Return what changed since the earlier audit, None where none was named."""
        if self.earlier is None:
            return None
        return changes.compare(self.earlier, document.Audit(document.rows(rows)))

    def lines(self, changed: changes.Changes) -> list[str]:
        """Return what changed as text."""
        return since.lines(changed, self.since or "")

    def to_json(self, changed: changes.Changes | None) -> dict[str, object]:
        """Return what the document has because of these options."""
        files = {"html": self.html, "prometheus": self.prometheus}
        found: dict[str, object] = {name: str(path) for name, path in files.items() if path}
        return found if changed is None else found | {"since": changed.to_json()}

    def write(self, rows: Rows, code: int, notes: Sequence[str], *, whole: bool) -> list[str]:
        """Write the files, and return what is to be said of them.

        `whole`: all hosts were asked. Half an audit would be read as all of it.
        """
        files = [path for path in (self.html, self.prometheus) if path is not None]
        if not whole:
            return [f"not written: {path}; the run was interrupted" for path in files]
        if self.html is not None:
            from patchq.cli.html import audit, page

            page.write(self.html, audit.page(rows, notes))
        if self.prometheus is not None:
            destination.write(self.prometheus, metrics(rows, code))
        return [f"written: {path}" for path in files]


def metrics(rows: Rows, code: int) -> str:
    """Return the rows as metrics of now."""
    from patchq.cli import prometheus

    return prometheus.exposition(rows, now(), code)


def now() -> datetime:
    """Return the time, in UTC: an audit is of when it ended."""
    return datetime.now(UTC)


def _place(file: str | None, option: str) -> Path | None:
    return None if file is None else destination.place(file, f"patchq audit {option} FILE")
