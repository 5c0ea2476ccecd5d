"""Where agents ran under an interpreter equal to this one, remembered from run to run.

A guess that saves time, never more: an agent that gets bytecode of another interpreter
runs none of it and leaves with a status of its own, and is started again from source.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from patchq import cachefile
from patchq.transport import bootstrap, modules
from patchq.transport.become import Become

# How many places are remembered: those that were met last.
_MOST = 10_000


@dataclass(frozen=True, slots=True)
class Opening:
    """What goes before the first request: `payload`, or what `source` returns if that was wrong.

    `source` is None where `payload` is for any interpreter. `met` takes what the agent says
    of its own: whether it is equal to this one.
    """

    payload: bytes
    source: Callable[[], bytes] | None
    met: Callable[[bool], None]


class Acquaintance:
    """What is known of the interpreters of hosts; `folder` keeps it, and the agent's forms."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self._path = folder / f"equal-{modules.MAGIC.hex()}.json" if folder else None
        self._before = self._read()
        self._now = dict(self._before)

    def opening(
        self,
        nonce: bytes,
        where: str,
        become: Become | None = None,
        *,
        writing: bool,
        packed: bool = False,
    ) -> Opening:
        """Return how to begin with an agent.

        `where` is its interpreter, as it is named; `become` the user that it runs as, who
        may have another of that name. `writing` and `packed`: see `bootstrap.payload`.
        """
        where += f" {become.name}" if become else ""
        once = become is not None and become.password is not None  # it is not sent twice
        form = functools.partial(
            bootstrap.payload, nonce, writing=writing, packed=packed, folder=self.folder
        )
        compiled = where in self._now and not once
        met = functools.partial(self._met, where)
        return Opening(form(compiled=compiled), form if compiled else None, met)

    def _met(self, where: str, equal: bool) -> None:
        self._now.pop(where, None)
        if equal and self.folder is not None:
            self._now[where] = None

    def keep(self) -> None:
        """Write what is new."""
        if self._path is not None and self._now.keys() != self._before.keys():
            cachefile.keep(self._path, json.dumps([*self._now][-_MOST:]).encode())

    def _read(self) -> dict[str, None]:
        try:
            found = json.loads(self._path.read_bytes()) if self._path else []
        except (OSError, ValueError):
            return {}
        names = found if isinstance(found, list) else []
        return {name: None for name in names if isinstance(name, str)}


STRANGER = Acquaintance()
