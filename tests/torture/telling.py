"""What an error says: what happened, why, and what to type, and no more than that."""

from __future__ import annotations

from typing import Protocol


class Told(Protocol):
    """An error of the agent's or of the controller's."""

    what: str
    why: str
    mend: str


def told(error: Told) -> None:
    """Check that an error has its three parts, and is no failure of patchq's own."""
    assert getattr(error, "word", "") != "bug", error.why
    assert error.what
    assert error.why
    assert error.mend
    assert "Traceback" not in error.why
