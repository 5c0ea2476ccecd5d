"""From a host's name to the connections that reach it: each hop with all its settings."""

from __future__ import annotations

import os
import pwd
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from patchq.errors import UsageError
from patchq.transport import hosts, sshconfig, unheeded
from patchq.transport.hosts import Host
from patchq.transport.sshconfig import Config, Facts

_PORT = 22
_JUMPS = 8
_FAMILIES = {"inet": socket.AF_INET, "inet6": socket.AF_INET6}
_KEY_NAMES = ("id_ed25519", "id_ecdsa", "id_ecdsa_sk", "id_ed25519_sk", "id_rsa")


@dataclass(frozen=True, slots=True)
class Hop:
    """One connection: where to, as whom, with which keys, and whose key to expect.

    `label` is the name by which known_hosts has it, None for `name` and `port`.
    `identities` are files of private keys; `chosen` where ssh_config names them.
    `agent` is the socket of the SSH agent, None for none. `accept_new`: ssh_config takes
    the key of a new host, which is written to `records` (None: nowhere), `hashed` or
    not. `unheeded` and `suspects` are options that are not honoured (`unheeded.of`).
    """

    alias: str
    name: str
    port: int
    user: str
    label: str | None
    known_hosts: tuple[Path, ...]
    identities: tuple[Path, ...]
    chosen: bool
    only_chosen: bool
    agent: str | None
    proxy_command: str | None
    connect_timeout: float | None
    certificates: tuple[Path, ...] = ()
    family: int = 0
    bind_address: str | None = None
    accept_new: bool = False
    records: Path | None = None
    hashed: bool = False
    unheeded: tuple[str, ...] = ()
    suspects: tuple[str, ...] = ()

    @property
    def known_as(self) -> str:
        """The name to look for in known_hosts, as `ssh-keygen -F` takes it."""
        if self.label is not None:
            return self.label
        return self.name if self.port == _PORT else f"[{self.name}]:{self.port}"

    @property
    def ssh(self) -> str:
        """The command by which a user reaches the same host."""
        port = "" if self.port == _PORT else f" -p {self.port}"
        return f"ssh{port} {self.user}@{self.name}"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the user's account says: read once per run."""

    config: Config
    home: Path
    user: str
    agent: str | None
    environ: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, environ: Mapping[str, str], config: Path | None = None) -> Surroundings:
        """Return what `environ` and the files in its home say; `config` as ``ssh -F``."""
        home = Path(environ.get("HOME") or os.path.expanduser("~"))
        if config is None:
            found = sshconfig.read(home / ".ssh" / "config")
        else:
            found = sshconfig.read(config, None)
        agent = environ.get("SSH_AUTH_SOCK") or None
        return cls(found, home, _account(environ), agent, environ)


class BadRoute(UsageError):
    """ssh_config says nothing usable of how to reach a host."""


def resolve(host: Host, around: Surroundings) -> tuple[Hop, ...]:
    """Return the hops to `host`, jumps first, the host itself last.

    Raises:
        BadRoute: jumps that lead in a circle, or a value that is none.
        HostError: ssh_config asks for a check that cannot be made.
    """
    return _route(host, around, ())


def _account(environ: Mapping[str, str]) -> str:
    """Return who this is, as ssh(1) takes it: the account's name, whatever the variables say."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        # A container may run under a number that no account has.
        return environ.get("USER", str(os.getuid()))


def _route(host: Host, around: Surroundings, through: tuple[str, ...]) -> tuple[Hop, ...]:
    if len(through) > _JUMPS:
        raise BadRoute(
            f"the jumps to {through[0]} lead in a circle",
            why=" -> ".join(through),
            mend=f"ssh -G {through[0]}",
        )
    options = around.config.options(Facts(host.name, host.user, around.user))
    hop = _hop(host, options, around)
    jumps = ",".join(options.get("proxyjump", ("none",)))
    if jumps.lower() == "none" or hop.proxy_command:
        return (hop,)
    # As in ssh(1), only the first jump may have jumps of its own.
    first, *rest = [hosts.parse(jump.strip()) for jump in jumps.split(",")]
    if first.name == host.name:
        return (hop,)
    before = _route(first, around, (*through, host.name))
    for jump in rest:
        found = around.config.options(Facts(jump.name, jump.user, around.user))
        before += (_hop(jump, {**found, "proxycommand": ("none",)}, around),)
    return (*before, hop)


def _hop(host: Host, options: Mapping[str, tuple[str, ...]], around: Surroundings) -> Hop:
    def value(key: str) -> str | None:
        return options.get(key, (None,))[0]

    user = host.user or value("user") or around.user
    port = host.port or _number(host, "Port", value("port") or str(_PORT))
    name = (value("hostname") or host.name).replace("%h", host.name).replace("%%", "%")
    tokens = {"%": "%", "h": name, "n": host.name, "p": str(port), "r": user}
    tokens.update(u=around.user, d=str(around.home), k=value("hostkeyalias") or host.name)

    def paths(key: str, default: tuple[str, ...]) -> tuple[Path, ...]:
        texts = [text for text in options.get(key, default) if text.lower() != "none"]
        return tuple(Path(_expanded(text, tokens, around)) for text in texts)

    proxy = value("proxycommand")
    timeout = value("connecttimeout")
    own = paths("userknownhostsfile", ("~/.ssh/known_hosts", "~/.ssh/known_hosts2"))
    noted, suspects = unheeded.of(around.config, Facts(host.name, host.user, around.user))
    return Hop(
        alias=host.name,
        name=name,
        port=port,
        user=user,
        label=value("hostkeyalias"),
        known_hosts=own + paths("globalknownhostsfile", ("/etc/ssh/ssh_known_hosts",)),
        identities=paths("identityfile", tuple(f"~/.ssh/{name}" for name in _KEY_NAMES)),
        chosen="identityfile" in options,
        only_chosen=value("identitiesonly") == "yes",
        agent=_agent(value("identityagent"), tokens, around),
        proxy_command=_tokens(proxy, tokens) if proxy and proxy.lower() != "none" else None,
        connect_timeout=_number(host, "ConnectTimeout", timeout) if timeout else None,
        certificates=paths("certificatefile", ()),
        family=_FAMILIES.get(value("addressfamily") or "any", 0),
        bind_address=value("bindaddress"),
        accept_new=value("stricthostkeychecking") in ("accept-new", "no", "off"),
        records=own[0] if own else None,
        hashed=value("hashknownhosts") == "yes",
        unheeded=noted,
        suspects=suspects,
    )


def _number(host: Host, key: str, text: str) -> int:
    if re.fullmatch("[0-9]{1,5}", text) and 0 < int(text) < 65536:
        return int(text)
    raise BadRoute(
        f"ssh_config gives {host.name} the {key} {text!r}",
        why="a number is needed",
        mend=f"ssh -G {host.name}",
    )


def _agent(text: str | None, tokens: Mapping[str, str], around: Surroundings) -> str | None:
    if text is None or text == "SSH_AUTH_SOCK":
        return around.agent
    if text.lower() == "none":
        return None
    if text.startswith("$") and not text.startswith("${"):
        return around.environ.get(text[1:])
    return _expanded(text, tokens, around)


def _expanded(text: str, tokens: Mapping[str, str], around: Surroundings) -> str:
    text = re.sub(r"\$\{([^}]+)\}", lambda found: around.environ.get(found[1], found[0]), text)
    if text == "~" or text.startswith("~/"):
        text = f"{around.home}{text[1:]}"
    return _tokens(text, tokens)


def _tokens(text: str, tokens: Mapping[str, str]) -> str:
    return re.sub("%(.)", lambda found: tokens.get(found[1], found[0]), text)
