"""The agent behind any command that gives stdin and stdout.

The command gets one more argument, the constant line of `bootstrap`, which a
shell at the other end reads: ``ssh HOST`` (for those who need ControlMaster, FIDO
keys or GSSAPI) as it is; what runs a program and no shell ends in ``sh -c``, as in
``docker exec -i NAME sh -c``, ``kubectl exec -i POD -- sh -c``, ``srun sh -c``.

A ^C at the terminal does not end it: a change that was begun is answered first. Who
wants it to end gets the process by `started`.
"""

from __future__ import annotations

import contextlib
import shlex
import shutil
import subprocess
from collections.abc import Callable, Sequence
from typing import TypeVar

from patchq.errors import UsageError
from patchq.transport import bootstrap, endings, pipes, pythons
from patchq.transport.acquaintance import STRANGER, Acquaintance
from patchq.transport.become import Become
from patchq.transport.channel import DEADLINES, Conversation, Deadlines, Exchange
from patchq.transport.endings import Place

T = TypeVar("T")

# Runs a command that a ^C does not reach, and that may still ask for a passphrase.
_UNSTOPPED = ("/bin/sh", "-c", 'trap "" INT; exec "$@"', "sh")


def converse(
    argv: Sequence[str],
    python: str | None,
    conversation: Conversation[T],
    *,
    writing: bool = True,
    deadlines: Deadlines = DEADLINES,
    become: Become | None = None,
    started: Callable[[subprocess.Popen[bytes]], None] | None = None,
    called: str | None = None,
    known: Acquaintance = STRANGER,
) -> T:
    """Carry a conversation with an agent at the other end of `argv`.

    `python` is the interpreter there, None for its ``python3`` (`bootstrap.command`);
    `become` the user it runs as, `called` what the user calls that host; `started` is given
    each process that is started; `known` is what is known of interpreters.

    Raises:
        UsageError: `argv` is empty or cannot be started, or `python` names no interpreter.
        HostError: no agent answered there, or it was lost.
        PatchqError: what the conversation raised.
    """
    place = _place(argv, python, become, called)
    nonce = bootstrap.nonce()
    lines = [bootstrap.command(python, become, nonce, restricted=each) for each in (False, True)]
    where = f"{shlex.join(argv)} {place.python}"
    opening = known.opening(nonce, where, become, writing=writing, packed=True)
    exchange = Exchange(conversation, nonce, opening.payload, become, met=opening.met)
    tries = endings.Tries(place, lines, opening.source)

    def hold(first: bytes) -> endings.Ending | None:
        argv_ = [*_UNSTOPPED, *argv, tries.line]
        return pipes.hold(argv_, exchange, first, place, deadlines=deadlines, started=started)

    return pipes.converse(exchange, tries, hold, lambda: _pythons(argv, deadlines))


def _place(
    argv: Sequence[str], python: str | None, become: Become | None, called: str | None
) -> Place:
    """Return where a command leads, once it is known to be one."""
    if not argv:
        raise UsageError(
            "the command that reaches the host is empty",
            why="it must give stdin and stdout of a shell there",
            mend="name one, such as: ssh HOST",
        )
    if any("\0" in word for word in argv):
        raise UsageError(
            "the command that reaches the host has a NUL byte",
            why="no program can be given one",
            mend="patchq VERB -H 'command:ssh user@gpu1'",
        )
    shown = shlex.join(argv)
    place = Place(
        f"host {called}" if called else f"the host behind {shown!r}",
        python or "python3",
        see=f"{shown} 'command -v python3'",
        remote=True,
        option=f" -H {shlex.quote(called or f'command:{shown}')}",
        login=shown,
        become=become,
    )
    if shutil.which(argv[0]) is None:
        raise endings.absent(place, argv[0], b"there is no such program")
    return place


def _pythons(argv: Sequence[str], deadlines: Deadlines) -> tuple[str, ...]:
    """Return the interpreters that are there, as far as the host says."""
    nonce = bootstrap.nonce()
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(
            [*argv, pythons.line(nonce)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=deadlines.sync,
        )
        return pythons.listed(done.stdout, nonce)
    return ()
