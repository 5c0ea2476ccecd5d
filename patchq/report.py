"""What happened, as a value: lines for a person, one document for a program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from patchq.errors import ExitCode

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of one verb on one target.

    `lines` are results (stdout), `notes` are for the person (stderr), `document`
    is what ``--json`` prints, additive within a schema number.
    """

    lines: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    document: Mapping[str, object] = field(default_factory=dict)
    exit_code: ExitCode = ExitCode.DONE

    def to_json(self) -> dict[str, object]:
        """Return the document with its schema number and exit code."""
        return {
            "schema": SCHEMA,
            **self.document,
            "notes": list(self.notes),
            "exit_code": int(self.exit_code),
        }
