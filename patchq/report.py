"""What happened, as a value: lines for a person, one document for a program."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from patchq.errors import ExitCode

SCHEMA = 1
_FILE = re.compile(r"patching file |Restoring |would change |would remove |Removing (?!patch )")


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of one verb on one target.

    `lines` are results (stdout), `notes` are for the person (stderr), and `warnings`
    are notes that come first; `document`
    is what ``--json`` prints, additive within a schema number.
    """

    lines: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    document: Mapping[str, object] = field(default_factory=dict)
    exit_code: ExitCode = ExitCode.DONE
    warnings: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return the document with its schema number and exit code."""
        return {
            "schema": SCHEMA,
            **self.document,
            "notes": [*self.warnings, *self.notes],
            "exit_code": int(self.exit_code),
        }


def brief(lines: Iterable[str]) -> tuple[str, ...]:
    """Return what ``-q`` leaves of a push or pop: patches, no files, no blank lines."""
    return tuple(line for line in lines if line and not _FILE.match(line))
