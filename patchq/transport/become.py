"""Another user on the host, by sudo(8), with a password or without.

Without one it is ``sudo -n``, which never asks. With one, sudo asks on stderr by a
prompt that has the run's nonce; then the password goes over stdin, and nothing behind
it: after a wrong one sudo would take whatever follows for the next try. The interpreter
that sudo starts says that it is ready before it is sent anything; where it says so with
no prompt before, the password is never sent. A second prompt ends the conversation.

The password is in no command line, no error and no `repr`. Prompt and ready marker differ
from what the command line says of them, so that a shell that shows what it runs (``set -x``)
does not get it either.
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, field

from patchq.errors import HostError, UsageError

# What stands for a password in what a host printed.
_HIDDEN = b"***"
# A piece of a password that is shorter gives nothing away.
_PIECE = 4
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
# What sudo says under LC_ALL=C, and what to tell and to do then. The first that is found.
_REASONS = (
    (
        rb"you must have a tty|a terminal is required|no tty present",
        "sudo wants a terminal there, which a stream of bytes cannot have",
        "let an administrator add by visudo there: Defaults:USER !requiretty",
    ),
    (
        rb"a password is required|no password was provided",
        "sudo asks for a password there",
        "`-K` asks for it once, `--sudo-password-fd FD` reads it: patchq VERB -K",
    ),
    (
        rb"not in the sudoers|not allowed to|may not run sudo",
        "the user who logs in may not use sudo for it there",
        "see what is allowed: {see}",
    ),
    (
        rb"unknown user|invalid user",
        "the user to become is not there",
        "see who is there: {see}",
    ),
)


@dataclass(frozen=True, slots=True)
class Become:
    """Who the agent runs as: `user` by sudo, None for root; `password` where sudo asks.

    Raises:
        UsageError: `user` is no name, or the password has a line break.
    """

    user: str | None = None
    password: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.user is not None and not _NAME.fullmatch(self.user):
            raise UsageError(
                f"{self.user!r} does not name a user",
                why="letters, digits and _ . - are taken; it goes into a command line",
                mend="getent passwd",
            )
        if self.password is not None and set(self.password) & set("\r\n\0"):
            raise UsageError(
                "the password for sudo has a line break",
                why="sudo reads one line",
                mend="type it at the prompt of: patchq VERB -K",
            )

    @property
    def name(self) -> str:
        """Whom the agent runs as, for people."""
        return self.user or "root"

    def words(self, nonce: bytes) -> str:
        """Return what stands before an interpreter in the line for a login shell."""
        ask = "-n" if self.password is None else f"-k -S -p patchq%%{nonce.decode()}:"
        user = f" -u {self.user}" if self.user else ""
        return f"env LC_ALL=C sudo {ask}{user} -- "

    def hidden(self, data: bytes) -> bytes:
        """Return what a host printed without the password, as it is or as programs quote it."""
        if not self.password:
            return data
        for form in _forms(self.password):
            data = data.replace(form, _HIDDEN)
        # What was cut off, or did not come whole, may end in its beginning, begin with its end.
        whole = self.password.encode(errors="surrogateescape")
        for size in range(len(whole) - 1, _PIECE - 1, -1):
            if data.endswith(whole[:size]):
                data = data[:-size] + _HIDDEN
            if data.startswith(whole[-size:]):
                data = _HIDDEN + data[size:]
        for piece in _pieces(self.password):
            data = data.replace(piece, _HIDDEN)
        return data

    def untold(self, text: str) -> str:
        """Return a text of a host's without the password."""
        return self.hidden(text.encode(errors="surrogateescape")).decode(errors="replace")


class SudoRefused(HostError):
    """sudo did not start the agent on a host."""


class WrongPassword(SudoRefused):
    """sudo on a host did not take the password."""


class Door:
    """The way in through sudo with a password: what it says, what it is told.

    `open` once the interpreter under sudo is ready; `refused` after a wrong password.
    """

    def __init__(self, password: str, nonce: bytes) -> None:
        self.ready = ready(nonce)
        self.refused = False
        self.open = False
        self._answer = password.encode(errors="surrogateescape") + b"\n"
        self._prompt = b"patchq%" + nonce + b":"
        self._heard = b""
        self._prompts = 0

    @property
    def asked(self) -> bool:
        """True once sudo asked, or started an interpreter without."""
        return self.open or self._prompts > 0

    def hear(self, stderr: bytes) -> bytes:
        """Take what came on stderr; return what to send, maybe nothing."""
        if self.open or self.refused:
            return b""
        heard = self._heard + stderr
        found = heard.count(self._prompt)
        # The end is kept: a prompt may arrive in parts, and is counted once.
        self._heard = heard[heard.rfind(self._prompt) + len(self._prompt) :] if found else heard
        self._heard = self._heard[1 - len(self._prompt) :]
        self._prompts += found
        self.refused = self._prompts > 1
        return self._answer if found and self._prompts == 1 else b""


def ready(nonce: bytes) -> bytes:
    """Return what an interpreter under sudo says first."""
    return b"\n" + nonce[::-1] + b"\n"


def refusal(become: Become, where: str, login: str, stderr: bytes) -> HostError | None:
    """Return why sudo did not start the agent, None where it was something else.

    `where` reads on after "on"; `login` is a command that gives a shell there.
    """
    what = f"sudo does not let the agent run as {become.name} on {where}"
    for pattern, why, mend in _REASONS:
        if re.search(pattern, stderr):
            told = mend.format(see=f"{login} sudo -l")
            return SudoRefused(what, why=f"{why}: {_said(stderr)}", mend=told)
    return None


def wrong(become: Become, where: str) -> HostError:
    """Return the error for a password that sudo did not take."""
    return WrongPassword(
        f"the password for sudo is wrong on {where}",
        why=f"sudo asked a second time for {become.name}; it was sent once and nothing else",
        mend="run it again with the right one: patchq VERB -K",
    )


def absent(become: Become, where: str, login: str) -> HostError:
    """Return the error for a host without sudo."""
    return SudoRefused(
        f"there is no sudo on {where}",
        why=f"it is needed to become {become.name}",
        mend=f"log in as {become.name} instead, or install it: {login} command -v sudo",
    )


def _forms(password: str) -> list[bytes]:
    """Return the password in the ways that programs show it in, the longest first."""
    data = password.encode(errors="surrogateescape")
    quoted = [
        repr(password)[1:-1],
        ascii(password)[1:-1],
        repr(data)[2:-1],
        json.dumps(password)[1:-1],
        json.dumps(password, ensure_ascii=False)[1:-1],
        shlex.quote(password),
        data.decode(errors="backslashreplace"),
    ]
    forms = {data, *(text.encode(errors="surrogateescape") for text in quoted)} - {b""}
    return sorted(forms, key=len, reverse=True)


def _pieces(password: str) -> list[bytes]:
    """Return the parts of a password that no way of quoting changes, the longest first."""
    parts = re.split(r"[^A-Za-z0-9_@%+=:,./-]", password)
    return sorted((part.encode() for part in parts if len(part) >= _PIECE), key=len, reverse=True)


def _said(stderr: bytes) -> str:
    lines = [line for line in stderr.splitlines() if b"sudo:" in line or b"orry" in line]
    return repr(b" ".join(lines[-2:])[-300:].decode(errors="backslashreplace"))
