"""The agent behind any command that gives stdin and stdout.

The command gets one more argument, the constant line of `bootstrap`, which a
shell at the other end reads: ``ssh HOST`` (for those who need ControlMaster, FIDO
keys or GSSAPI) as it is; what runs a program and no shell ends in ``sh -c``, as in
``docker exec -i NAME sh -c``, ``kubectl exec -i POD -- sh -c``, ``srun sh -c``.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TypeVar

from patchq.errors import UsageError
from patchq.transport import bootstrap, pipes
from patchq.transport.channel import DEADLINES, Conversation, Deadlines, Exchange
from patchq.transport.endings import Place

T = TypeVar("T")


def converse(
    argv: Sequence[str],
    python: str | None,
    conversation: Conversation[T],
    *,
    writing: bool = True,
    deadlines: Deadlines = DEADLINES,
) -> T:
    """Carry a conversation with an agent at the other end of `argv`.

    `python` is the interpreter there, None for its ``python3`` (`bootstrap.command`).

    Raises:
        UsageError: `argv` is empty or cannot be started, or `python` names no interpreter.
        HostError: no agent answered there, or it was lost.
        PatchqError: what the conversation raised.
    """
    if not argv:
        raise UsageError(
            "the command that reaches the host is empty",
            why="it must give stdin and stdout of a shell there",
            mend="name one, such as: ssh HOST",
        )
    line, nonce = bootstrap.command(python), bootstrap.nonce()
    exchange = Exchange(
        conversation, nonce, bootstrap.payload(nonce, writing=writing, packed=True)
    )
    shown = shlex.join(argv)
    place = Place(
        f"the host behind {shown!r}",
        python or "python3",
        see=f"{shown} 'command -v python3'",
        remote=True,
        option=f" -H {shlex.quote(f'command:{shown}')}",
    )
    return pipes.converse([*argv, line], exchange, place, deadlines=deadlines)
