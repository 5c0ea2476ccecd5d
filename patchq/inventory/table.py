"""What `hosts.toml` says. Pure: a parsed document in, tables out. Version 1::

    ansible = ["inventory.ini"]         # Ansible inventories, from this file's folder

    [all]                               # of every host of this file
    user = "root"

    [groups.blackwell]                  # a set of hosts, and what is said of them
    hosts = ["gpu[01-08]", "@rack7", "!gpu03"]
    environment = "/opt/vllm"
    wanted = ["kimi-k2.5-eagle3"]

    [groups.replica1]
    hosts = ["gpu01", "gpu02"]
    together = true                     # all of them or none are changed: ranks of one model

    [hosts.gpu07]                       # or [hosts."gpu[10-19]"]
    address = "10.0.0.7"
    port = 2222

Settings: `address`, `user`, `port`; `command`, in the place of SSH; `python`, `environment`,
`target`, of which the nearest table that has any says all; `become`; `wanted`. A key that is
not in these lists is an error that names the nearest.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from patchq.errors import UsageError
from patchq.inventory.hostset import ALL, COMMAND, nearest
from patchq.inventory.values import Environment, Origin, Settings, Table

_TOP = ("ansible", ALL, "groups", "hosts")
_ENVIRONMENT = ("environment", "python", "target")
_SETTINGS = ("address", "user", "port", "command", *_ENVIRONMENT, "become", "wanted")
# A folder of packages as installers call them; any other environment is a virtual one.
_PACKAGES = re.compile(r".*/(site|dist)-packages/?")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_GROUP = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


@dataclass(frozen=True, slots=True)
class Document:
    """A hosts.toml: what it says of all, of groups (with their parts, if any) and of hosts.

    `together` are the groups that move together.
    """

    file: str
    ansible: tuple[str, ...] = ()
    defaults: Table | None = None
    groups: Mapping[str, tuple[Table, tuple[str, ...] | None]] = field(default_factory=dict)
    hosts: Mapping[str, Table] = field(default_factory=dict)
    together: frozenset[str] = frozenset()


def read(
    document: Mapping[str, object], *, source: str, lines: Mapping[tuple[str, ...], int]
) -> Document:
    """Return what a parsed hosts.toml says; `lines` has where each table begins.

    Raises:
        UsageError: a key that does not exist, or a value of the wrong kind.
    """
    top = Origin(source)
    _known(document, _TOP, top)
    tables = {key: _tables(document, key, top) for key in ("groups", "hosts")}
    groups = {}
    for name, body in tables["groups"].items():
        origin = Origin(source, lines.get(("groups", name)), f"groups.{name}")
        if name == ALL or not _GROUP.fullmatch(name):
            raise UsageError(
                f"{origin}: a group cannot be called {name!r}",
                why="letters, digits and inner _ . - make a name; 'all' is every host",
                mend="write [all]" if name == ALL else f"give it another name in {source}",
            )
        _known(body, ("hosts", "together", *_SETTINGS), origin)
        if not isinstance(body.get("together", False), bool):
            raise _kind("together", "true or false", origin)
        parts = _texts(body, "hosts", origin) if "hosts" in body else None
        for part in parts or ():
            _check_part(part, origin)
        groups[name] = (_table(body, origin, several=True), parts)
    hosts = {}
    for name, body in tables["hosts"].items():
        origin = Origin(source, lines.get(("hosts", name)), f"hosts.{name}")
        _known(body, _SETTINGS, origin)
        _check_host(name, origin)
        hosts[name] = _table(body, origin, several="[" in name)
    defaults = None
    if ALL in document:
        origin = Origin(source, lines.get((ALL,)), ALL)
        body = _body(document, ALL, origin)
        _known(body, _SETTINGS, origin)
        defaults = _table(body, origin, several=True)
    ansible = _texts(document, "ansible", top)
    together = frozenset(name for name, body in tables["groups"].items() if body.get("together"))
    return Document(source, ansible, defaults, groups, hosts, together)


def _table(body: Mapping[str, object], origin: Origin, *, several: bool) -> Table:
    """Return what one table says; `several`: it is about more hosts than one."""
    address = _text(body, "address", origin)
    if address is not None and (set(address) & set("@ ") or address.count(":") == 1):
        raise _kind("address", "a name or an address; user and port have keys", origin)
    if several and address is not None and "{name}" not in address:
        raise UsageError(
            f"{origin}: 'address' is the same for several hosts",
            why="each host has its own; a host's name is put in the place of {name}",
            mend='write address = "{name}.cluster.example"',
        )
    command = _text(body, "command", origin)
    if command is not None:
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise _kind("command", f"words as a shell splits them: {error}", origin) from error
        if not words:
            raise _kind("command", 'a command: "docker exec -i {name} sh -c"', origin)
    port = body.get("port")
    if port is not None and (type(port) is not int or not 0 < port < 65536):
        raise _kind("port", "a number from 1 to 65535", origin)
    become = body.get("become")
    if (
        become is not None
        and not isinstance(become, bool)
        and (not isinstance(become, str) or not become)
    ):
        raise _kind("become", 'true for root, false, or a user: "vllm"', origin)
    wanted = _texts(body, "wanted", origin) if "wanted" in body else None
    return Table(
        origin,
        Settings(
            address,
            _text(body, "user", origin),
            port if isinstance(port, int) else None,
            command,
            _environment(body, origin),
            become,
            wanted,
        ),
    )


def _environment(body: Mapping[str, object], origin: Origin) -> Environment | None:
    """Return which environment a table names, None where it names none."""
    environment, python, target = (_text(body, key, origin) for key in _ENVIRONMENT)
    if environment is not None:
        packages = _PACKAGES.fullmatch(environment) is not None
        other = "target" if target else "python" if python and not packages else ""
        if other:
            raise UsageError(
                f"{origin}: 'environment' and {other!r} do not go together",
                why="each of them names an environment",
                mend="leave one of them out",
            )
        if packages:
            target = environment
        else:
            if not environment.startswith(("/", "~/")):
                raise _kind("environment", "an absolute path, or one that starts with ~/", origin)
            python = f"{environment.rstrip('/')}/bin/python"
    if target is not None and not target.startswith("/"):
        raise _kind("environment" if environment else "target", "an absolute path", origin)
    return Environment(python, target) if python or target else None


def _check_part(part: str, origin: Origin) -> None:
    """Refuse a part of a group that is more than the name of a host."""
    bare = part.removeprefix("!")
    if bare.startswith(COMMAND) or set(bare.removeprefix("@")) & set("@:/"):
        raise UsageError(
            f"{origin}: {part!r} is more than the name of a host",
            why="its user, port and command have keys of their own",
            mend='write [hosts.NAME], and in it address, user, port or command = "..."',
        )


def _check_host(name: str, origin: Origin) -> None:
    if not _NAME.fullmatch(re.sub(r"\[[0-9,-]+]", "0", name)):
        raise UsageError(
            f"{origin}: {name!r} is not the name of a host",
            why="a name has letters, digits and _ . -, and may have ranges: gpu[01-64]",
            mend=f'write [hosts.NAME], and in it address = "{name}"',
        )


def _known(document: Mapping[str, object], keys: tuple[str, ...], origin: Origin) -> None:
    """Refuse a key that does not exist; the nearest that does is named."""
    for key in document:
        if key not in keys:
            near = nearest(key, keys)
            raise UsageError(
                f"{origin}: the key {key!r} does not exist",
                why=f"the keys are {', '.join(keys)}",
                mend=f"write {near!r}, or take the key out" if near else "take the key out",
            )


def _tables(
    document: Mapping[str, object], key: str, origin: Origin
) -> dict[str, Mapping[str, object]]:
    body = _body(document, key, origin) if key in document else {}
    return {name: _body(body, name, origin, f"{key}.{name}") for name in body}


def _body(
    document: Mapping[str, object], key: str, origin: Origin, shown: str = ""
) -> Mapping[str, object]:
    value = document[key]
    if isinstance(value, dict):
        return value
    raise _kind(shown or key, f"a table: [{shown or key}]", origin)


def _text(document: Mapping[str, object], key: str, origin: Origin) -> str | None:
    value = document.get(key)
    if value is None or (isinstance(value, str) and value and value.isprintable()):
        return value
    raise _kind(key, "text", origin)


def _texts(document: Mapping[str, object], key: str, origin: Origin) -> tuple[str, ...]:
    value = document.get(key, [])
    if isinstance(value, list):
        texts = tuple(one for one in value if isinstance(one, str) and one.isprintable())
        if len(texts) == len(value):
            return texts
    raise _kind(key, 'a list of texts: ["..."]', origin)


def _kind(key: str, kind: str, origin: Origin) -> UsageError:
    return UsageError(
        f"{origin}: {key!r} has a value of the wrong kind",
        why=f"it must be {kind}",
        mend=f"correct {key!r} in {origin}",
    )
