"""How long one question may be searched (R13)."""

from __future__ import annotations


class TooLoose(Exception):
    """The pattern fits in so many ways that trying them all was given up (R13)."""


class Budget:
    """How many trials one question may take."""

    def __init__(self, limit: int) -> None:
        self.limit, self.spent = limit, 0

    def spend(self) -> None:
        """Count one trial. Raises: TooLoose."""
        self.spent += 1
        if self.spent > self.limit:
            raise TooLoose
