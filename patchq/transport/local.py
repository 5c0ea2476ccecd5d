"""The agent as a child process, under an interpreter of this machine."""

from __future__ import annotations

import shlex
from typing import TypeVar

from patchq.transport import bootstrap, pipes
from patchq.transport.channel import DEADLINES, Conversation, Deadlines, Exchange
from patchq.transport.endings import Place

T = TypeVar("T")


def converse(
    python: str,
    conversation: Conversation[T],
    *,
    writing: bool = True,
    deadlines: Deadlines = DEADLINES,
) -> T:
    """Carry a conversation with an agent under `python`, a path or a name on PATH.

    `writing` is False where no request changes anything: fewer modules travel.

    Raises:
        NoInterpreter: `python` cannot be started.
        PatchqError: no agent answered, or what the conversation raised.
    """
    nonce = bootstrap.nonce()
    exchange = Exchange(conversation, nonce, bootstrap.payload(nonce, writing=writing))
    see = f"{shlex.quote(python)} -IS -c pass"
    place = Place("this machine", python, see, remote=False)
    argv = bootstrap.argv(python)
    return pipes.converse(argv, exchange, place, deadlines=deadlines, apart=True)
