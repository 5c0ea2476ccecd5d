"""An audit's document, read back (docs/formats.md, "Audit rows").

Pure. It may come from a file that was cut, edited, or is another verb's answer: what is
compared later is checked here, and the rest is left alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from patchq.audit import serving
from patchq.audit.finding import Word
from patchq.audit.serving import Serving
from patchq.report import SCHEMA


class NotAnAudit(ValueError):
    """The text is no document of an audit; the message says what it is instead."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """The ledger's last receipt, as a row has it."""

    id: str
    time: str
    verb: str
    who: str
    whence: str

    def to_json(self) -> dict[str, object]:
        """Return it as a document has it."""
        return {name: getattr(self, name) for name in Receipt.__slots__}


@dataclass(frozen=True, slots=True)
class Row:
    """What an audit said of a queue on a host; of a host that was not to be asked no queue."""

    host: str
    word: str
    queue: str | None = None
    distribution: str | None = None
    version: str | None = None
    paths: tuple[str, ...] = ()
    patches: tuple[str, ...] = ()
    behind: int | None = None
    commit: str | None = None
    receipt: Receipt | None = None
    ledger_broken: str | None = None
    record_broken: str | None = None
    running: Serving | None = None

    @property
    def key(self) -> tuple[str | None, str | None]:
        """What is compared with each other on a host."""
        return self.distribution, self.queue


@dataclass(frozen=True, slots=True)
class Audit:
    """A document's rows; `time` is when it was made, None where it does not say."""

    rows: tuple[Row, ...]
    time: str | None = None
    interrupted: bool = False


def read(data: bytes) -> Audit:
    """Return the audit that a file has.

    Raises:
        NotAnAudit: it is something else, or of another schema.

    Example:
        >>> text = '{"schema": 1, "verb": "audit", "rows": [{"host": "a", "word": "absent"}]}'
        >>> read(text.encode()).rows[0].word
        'absent'
    """
    if not data.strip():
        raise NotAnAudit("it is empty; `> FILE` empties a file before patchq can read it")
    try:
        found = json.loads(data.decode())
    except RecursionError:
        raise NotAnAudit("it is nested beyond what a reader bears") from None
    except ValueError as error:
        raise NotAnAudit(f"it is not JSON: {error}") from None
    if not isinstance(found, dict) or "schema" not in found:
        raise NotAnAudit('it is not an answer of patchq: it has no "schema"')
    if found["schema"] != SCHEMA:
        raise NotAnAudit(f"its schema is {_short(found['schema'])}; this patchq reads {SCHEMA}")
    if "error" in found:
        raise NotAnAudit("it is the answer of a run that failed: it has an error, and no rows")
    if found.get("verb") != "audit":
        raise NotAnAudit(f"it is the answer of {_short(found.get('verb'))}, not of audit")
    if not isinstance(found.get("rows"), list):
        raise NotAnAudit('it has no list of "rows"')
    time = found.get("time")
    time = time if isinstance(time, str) else None
    return Audit(rows(found["rows"]), time, bool(found.get("interrupted")))


def rows(found: Iterable[object]) -> tuple[Row, ...]:
    """Return rows as they are compared.

    Raises:
        NotAnAudit: one of them has not the form of a row.
    """
    out = []
    for number, one in enumerate(found, 1):
        try:
            out.append(_row(one))
        except ValueError as error:
            raise NotAnAudit(f"row {number} {error}") from None
    return tuple(out)


def good(row: Mapping[str, Any]) -> bool:
    """Return whether an audit ends well with a row of its document."""
    if "error" in row:
        return False
    broken = row["ledger_broken"] or row["record_broken"]
    return Word(row["word"]).good(row["wanted"]) and not broken


def _row(found: object) -> Row:
    row = _mapping(found)
    behind, receipt, running = row.get("behind"), row.get("receipt"), row.get("running")
    if behind is not None and (not isinstance(behind, int) or isinstance(behind, bool)):
        raise ValueError(f'has {_short(behind)} for "behind", which should be a number')
    return Row(
        _text(row, "host"),
        _text(row, "word"),
        _said(row, "queue"),
        _said(row, "distribution"),
        _said(row, "version"),
        _texts(row, "paths"),
        _texts(row, "patches"),
        behind,
        _said(row, "commit"),
        None if receipt is None else _receipt(_mapping(receipt)),
        _said(row, "ledger_broken"),
        _said(row, "record_broken"),
        None if running is None else serving.read(_mapping(running)),
    )


def _receipt(found: Mapping[str, Any]) -> Receipt:
    return Receipt(*(_text(found, name) for name in Receipt.__slots__))


def _mapping(found: object) -> Mapping[str, Any]:
    if isinstance(found, dict):
        return found
    raise ValueError(f"has {_short(found)} where names and values should be")


def _text(found: Mapping[str, Any], name: str) -> str:
    value = found.get(name)
    if isinstance(value, str):
        return value
    raise ValueError(f'has {_short(value)} for "{name}", which should be text')


def _said(found: Mapping[str, Any], name: str) -> str | None:
    return None if found.get(name) is None else _text(found, name)


def _texts(found: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = found.get(name) or ()
    if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
        return tuple(value)
    raise ValueError(f'has {_short(value)} for "{name}", which should be texts')


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:36]} ..."
