"""An audit as metrics: Prometheus' text exposition format 0.0.4.

It is what node_exporter's textfile collector reads: UTF-8, the samples of a metric
together, no time on a sample. What a host says is in labels, escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from patchq import __version__
from patchq.audit.document import good
from patchq.audit.finding import Word
from patchq.cli.plain import plain

# Of a name that a host gives; none of the field is that long.
_LONGEST = 200
_DRIFT = (Word.DRIFTED.value, Word.UNMANAGED.value)

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Metric:
    """One metric; of two samples with the same labels the first counts."""

    name: str
    meaning: str
    samples: dict[str, int] = field(default_factory=dict)

    def add(self, value: int, **labels: str) -> None:
        pairs = ",".join(f'{name}="{escaped(text)}"' for name, text in labels.items())
        self.samples.setdefault(f"{{{pairs}}}" if pairs else "", value)

    def lines(self) -> Iterator[str]:
        if not self.samples:
            return
        yield f"# HELP {self.name} {self.meaning}"
        yield f"# TYPE {self.name} gauge"
        for labels, value in self.samples.items():
            yield f"{self.name}{labels} {value}"


def exposition(rows: Iterable[Row], made: datetime, code: int) -> str:
    """Return the rows of an audit as metrics; `made` is when it ended, `code` its exit code."""
    listed = list(rows)
    metrics = (*_of_the_run(made, code), *_of_hosts(listed), *_of_queues(listed))
    return "".join(f"{line}\n" for metric in metrics for line in metric.lines())


def escaped(text: str) -> str:
    r"""Return a label's value as the format has it between its quotes.

    Backslash, quote and newline are escaped; other controls are shown, and so are bytes
    that are no UTF-8.

    Example:
        >>> print(escaped('a"b\\c\nd\x1be'))
        a\"b\\c\nd\\x1be
    """
    shown = plain(text).encode(errors="backslashreplace").decode()
    return shown.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _of_the_run(made: datetime, code: int) -> tuple[_Metric, ...]:
    info = _Metric("patchq_audit_info", "Which patchq made the audit.")
    info.add(1, version=__version__)
    time = _Metric("patchq_audit_timestamp_seconds", "When the audit ended.")
    time.add(int(made.timestamp()))
    ended = _Metric("patchq_audit_exit_code", "0 all well, 4 a host was not asked, 5 a finding.")
    ended.add(code)
    return info, time, ended


def _of_hosts(rows: list[Row]) -> tuple[_Metric, ...]:
    up = _Metric("patchq_host_answered", "1 if the host could be asked, else 0.")
    version = _Metric("patchq_installed_info", "What is installed.")
    restart = _Metric("patchq_restart_needed", "Processes that run code from before a change.")
    mixed = _Metric("patchq_mixed_servers", "Servers whose processes differ in their code.")
    unseen = _Metric("patchq_processes_not_seen", "Processes that could not be looked into.")
    last = _Metric("patchq_last_receipt_timestamp_seconds", "The ledger's last receipt.")
    for row in rows:
        up.add(int("error" not in row), host=row["host"])
        if "error" in row:
            continue
        labels = {"host": row["host"], "distribution": _short(row["distribution"])}
        if row["version"] is not None:
            version.add(1, **labels, version=_short(row["version"]))
        live = row["running"]
        if live is not None:
            unseen.add(live["unreadable"] + live["unseen"], **labels)
            for metric, found in ((restart, live["restart"]), (mixed, live["mixed"])):
                if found or not live["hidden"]:  # what is not shown there is not none
                    metric.add(len(found), **labels)
        time = _seconds((row["receipt"] or {}).get("time"))
        if time is not None:
            last.add(time, **labels)
    return up, version, restart, mixed, unseen, last


def _of_queues(rows: list[Row]) -> tuple[_Metric, ...]:
    state = _Metric("patchq_host_state", "The audit's word for a queue on a host.")
    well = _Metric("patchq_host_good", "1 if the queue is as it should be, 0 for a finding.")
    on = _Metric("patchq_patches_applied", "Patches of the queue on the record.")
    all_ = _Metric("patchq_patches_in_series", "Patches of the series that fits.")
    behind = _Metric("patchq_commits_behind", "Commits of the queue that the host lacks.")
    drift = _Metric("patchq_drifted_files", "Files that somebody edited.")
    for row in rows:
        labels = {
            "host": row["host"],
            "distribution": _short(row.get("distribution") or ""),
            "queue": _short(row.get("queue") or ""),
        }
        state.add(1, **labels, word=row["word"])
        if "error" in row:
            continue
        well.add(int(good(row)), **labels)
        on.add(len(row["patches"]), **labels)
        if row["series"]:
            all_.add(len(row["series"]), **labels)
        current = row["word"] == Word.CURRENT.value
        if current or row["behind"] is not None:
            behind.add(0 if current else row["behind"], **labels)
        edited = len(row["paths"]) + int(row.get("more") or 0)
        drift.add(edited if row["word"] in _DRIFT else 0, **labels)
    return state, well, on, all_, behind, drift


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[:_LONGEST]}..."


def _seconds(time: object) -> int | None:
    """Return a receipt's time, None where a host gave something that is none."""
    try:
        found = datetime.fromisoformat(str(time))
        return int(found.timestamp()) if found.tzinfo else None
    except (ValueError, OverflowError):
        return None
