"""Failures that a user can mend, and what the shell is told.

An error has three parts: *what* happened to which thing, *why* (expected and
found), *mend* (a command to type). Outcomes that answer the question, such as
a hunk that does not fit, are values and live in `patchq.model`.
"""

from __future__ import annotations

import enum


class ExitCode(enum.IntEnum):
    """What the shell is told; the one table of exit codes (docs/reference.md)."""

    DONE = 0
    FAILED = 1
    NOTHING_TO_DO = 2
    CONFLICT = 3
    HOST_FAILED = 4
    FINDING = 5
    USAGE = 64
    BUG = 70
    INTERRUPTED = 130


class PatchqError(Exception):
    """Something the user can mend: what happened, why, and what to type next."""

    exit_code = ExitCode.FAILED

    def __init__(self, what: str, *, why: str, mend: str) -> None:
        super().__init__(what)
        self.what, self.why, self.mend = what, why, mend


class QuiltError(PatchqError):
    """What quilt would not do, either, said in its words; nothing was changed.

    `brief` is set on a plain tree where a program reads along: it is told quilt's line alone.
    """

    brief = False


class UsageError(PatchqError):
    """The command line or a file of the user's names something that is not there."""

    exit_code = ExitCode.USAGE


class ConflictError(PatchqError):
    """A patch does not fit; nothing was changed."""

    exit_code = ExitCode.CONFLICT


class Interrupted(PatchqError):
    """The user stopped a run by ^C; the text says whether anything can have been changed."""

    exit_code = ExitCode.INTERRUPTED


class HostError(PatchqError):
    """A host could not be reached, or what became of it is not known."""

    exit_code = ExitCode.HOST_FAILED
