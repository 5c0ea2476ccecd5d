"""A host as a user names it: ``[user@]name[:port]``, an alias of ssh_config, or ``ssh://``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from patchq.errors import UsageError
from patchq.transport.become import Become

_SPEC = re.compile(
    r"(?:(?P<user>[^@\s]+)@)?(?:\[(?P<quoted>[^][\s]+)]|(?P<name>[^][@\s:]+))(?::(?P<port>[0-9]{1,5}))?"
)
# An IPv6 address without brackets has no port after it.
_IPV6 = re.compile(r"(?:(?P<user>[^@\s]+)@)?(?P<name>[0-9A-Fa-f:.]+:[0-9A-Fa-f:.]*(?:%\w+)?)")
# What ssh(1) refuses in names, too: a ProxyCommand hands them to a shell.
_UNSAFE = frozenset("\0'`\"$\\;&<>|(){}")


@dataclass(frozen=True, slots=True)
class Host:
    """A host to reach; None is what ssh_config says, or the default.

    `python` is the interpreter there (`bootstrap.command`), `called` what the user calls it.
    """

    name: str
    user: str | None = None
    port: int | None = None
    python: str | None = None
    called: str | None = None

    def __str__(self) -> str:
        user = f"{self.user}@" if self.user else ""
        name = f"[{self.name}]" if ":" in self.name and self.port else self.name
        return f"{user}{name}" + (f":{self.port}" if self.port else "")


@dataclass(frozen=True, slots=True)
class Way:
    """How one host is reached where an inventory says so: `host` over SSH, or by `argv`.

    `python` is the interpreter there, `become` the user that the agent runs as.
    """

    host: Host
    argv: tuple[str, ...] | None = None
    python: str | None = None
    become: Become | None = None


def parse(spec: str, *, python: str | None = None) -> Host:
    """Return the host that `spec` names.

    Raises:
        UsageError: `spec` is not the name of a host.

    Example:
        >>> parse("root@gpu1:2222")
        Host(name='gpu1', user='root', port=2222, python=None, called=None)
    """
    text = spec.removeprefix("ssh://").removesuffix("/") if spec.startswith("ssh://") else spec
    found = _SPEC.fullmatch(text)
    if found is not None:
        name, port = found["quoted"] or found["name"], int(found["port"] or 0)
        good_port = found["port"] is None or 0 < port < 65536
        if good_port and not (text[0] == "-" or name[0] == "-" or _UNSAFE & set(text)):
            return Host(name, found["user"], port or None, python)
    elif (found := _IPV6.fullmatch(text)) is not None and text.count(":") > 1:
        return Host(found["name"], found["user"], None, python)
    raise UsageError(
        f"{spec!r} does not name a host",
        why="expected [user@]name[:port], or a name from ~/.ssh/config",
        mend="patchq VERB -H user@gpu1:22, an IPv6 address as [::1]:22",
    )
