"""How long each phase of a conversation may take."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deadlines:
    """How long each phase may take, in seconds.

    `connect` and `login` are a host's. `sync`: from the start of the command to the
    agent's first word. `request`: each request, to the last byte of its answer, and what
    its own bytes take (`channel.SLOWEST`). `end`: from the last word to the end of a child.
    """

    connect: float = 10
    login: float = 20
    sync: float = 15
    request: float = 300
    end: float = 3


DEADLINES = Deadlines()
