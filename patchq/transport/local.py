"""The agent as a child process, under an interpreter of this machine."""

from __future__ import annotations

import os
import shlex
import shutil
from typing import TypeVar

from patchq.transport import bootstrap, pipes
from patchq.transport.acquaintance import STRANGER, Acquaintance
from patchq.transport.channel import DEADLINES, Conversation, Deadlines, Exchange
from patchq.transport.endings import Ending, Place, Tries

T = TypeVar("T")


def converse(
    python: str,
    conversation: Conversation[T],
    *,
    writing: bool = True,
    deadlines: Deadlines = DEADLINES,
    known: Acquaintance = STRANGER,
) -> T:
    """Carry a conversation with an agent under `python`, a path or a name on PATH.

    `writing` is False where no request changes anything: fewer modules travel. `known` is
    what is known of interpreters.

    Raises:
        NoInterpreter: `python` cannot be started.
        PatchqError: no agent answered, or what the conversation raised.
    """
    nonce = bootstrap.nonce()
    opening = known.opening(
        nonce, os.path.abspath(shutil.which(python) or python), writing=writing
    )
    exchange = Exchange(conversation, nonce, opening.payload, met=opening.met)
    see = f"{shlex.quote(python)} -IS -c pass"
    place = Place("this machine", python, see, remote=False)
    argv = bootstrap.argv(python)

    def hold(first: bytes) -> Ending | None:
        return pipes.hold(argv, exchange, first, place, deadlines=deadlines, apart=True)

    return pipes.converse(exchange, Tries(place, (), opening.source), hold)
