"""What ``ansible-inventory --list`` says, as tables. Pure.

Its document has a key per group (``hosts``, ``children``) and ``_meta.hostvars``, in which
Ansible has merged the variables of groups already. Of the variables those are taken that
say how to reach a host (Ansible's documentation, "Connecting to hosts: behavioral inventory
parameters"); the connections are SSH, ``local``, docker, podman and kubectl. Templates
(``{{ }}``) are not filled in by ``--list``: a host with one where it matters cannot be used.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from patchq.errors import UsageError
from patchq.inventory.values import Environment, Origin, Settings, Table

_SSH = frozenset(
    {
        "ssh",
        "smart",
        "paramiko",
        "paramiko_ssh",
        "ansible.builtin.ssh",
        "ansible.builtin.paramiko_ssh",
        "ansible.netcommon.libssh",
    }
)
_LOCAL = frozenset({"local", "ansible.builtin.local"})
_DOCKER = frozenset({"docker", "community.docker.docker", "community.docker.docker_api"})
_PODMAN = frozenset({"podman", "containers.podman.podman"})
_KUBECTL = frozenset({"kubectl", "kubernetes.core.kubectl"})
# The first that is there counts; the others are spellings of old.
_ADDRESS = ("ansible_host", "ansible_ssh_host")
_USER = ("ansible_user", "ansible_ssh_user")
_PORT = ("ansible_port", "ansible_ssh_port")
# What says how to reach a host, and is not taken: ssh_config has the same.
_UNHEEDED = (
    "ansible_ssh_args",
    "ansible_ssh_common_args",
    "ansible_ssh_extra_args",
    "ansible_ssh_private_key_file",
    "ansible_private_key_file",
    "ansible_ssh_executable",
    "ansible_become_exe",
    "ansible_become_flags",
)
_YES = frozenset({"true", "yes", "on", "1", "y", "t"})
_NO = frozenset({"false", "no", "off", "0", "n", "f", ""})
_NAMED = 5

Vars = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Listed:
    """What Ansible lists: a table per host, a group's hosts, the groups inside it."""

    hosts: Mapping[str, Table] = field(default_factory=dict)
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    inside: Mapping[str, frozenset[str]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def read(document: object, origin: Origin) -> Listed:
    """Return what a parsed ``ansible-inventory --list`` says.

    Raises:
        UsageError: it has not the form of one.
    """
    try:
        assert isinstance(document, dict)
        found = {name: body for name, body in document.items() if name != "_meta"}
        variables = document.get("_meta", {}).get("hostvars", {})
        own = {name: tuple(map(str, body.get("hosts", ()))) for name, body in found.items()}
        inner = {name: tuple(map(str, body.get("children", ()))) for name, body in found.items()}
        names = dict.fromkeys((*(one for some in own.values() for one in some), *variables))
        tables = {name: _table(name, dict(variables.get(name, {})), origin) for name in names}
    except (AssertionError, AttributeError, TypeError, ValueError, RecursionError) as error:
        raise UsageError(
            f"ansible-inventory lists {origin} in a form that is not known",
            why=f"expected groups with hosts and children, and _meta.hostvars: {error}",
            mend="ansible-inventory --list   # with the same -i",
        ) from error
    inside = {name: _reached(name, inner) - {name} for name in found if name != "all"}
    groups = {
        name: tuple(dict.fromkeys(h for one in (name, *sorted(more)) for h in own.get(one, ())))
        for name, more in inside.items()
    }
    named = {name: hosts for name, hosts in groups.items() if hosts or name != "ungrouped"}
    return Listed(tables, named, inside, _notes(variables, origin))


def _reached(name: str, inner: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
    """Return a group and all that are in it; one that is met again is not gone into."""
    seen, todo = {name}, [name]
    while todo:
        for child in inner.get(todo.pop(), ()):
            if child not in seen:
                seen.add(child)
                todo.append(child)
    return frozenset(seen)


def _table(name: str, variables: Vars, origin: Origin) -> Table:
    """Return what Ansible's variables say of a host."""
    problems: dict[str, str] = {}

    def text(key: str, *names: str) -> str | None:
        found = next((one for one in names if variables.get(one) not in (None, "")), None)
        value = None if found is None else variables[found]
        if isinstance(value, str | int) and "{{" not in str(value):
            return str(value)
        if found is not None:
            problems[key] = f"Ansible's {found} is no plain text here: {str(value)[:80]!r}"
        return None

    address, user = text("address", *_ADDRESS), text("user", *_USER)
    port = text("port", *_PORT)
    if port is not None and not (port.isdecimal() and 0 < int(port[:6]) < 65536):
        problems["port"] = f"Ansible's port {port[:80]!r} is none"
        port = None
    python = text("environment", "ansible_python_interpreter")
    if python is not None and python.startswith("auto"):
        python = None
    connection = text("command", "ansible_connection") or "ssh"
    container = {"address": address, "user": user}
    pod = text("command", "ansible_kubectl_pod")
    space = text("command", "ansible_kubectl_namespace")
    inner = text("command", "ansible_kubectl_container")
    command = _command(name, connection, container, (pod, space, inner))
    if command is None and connection not in _SSH:
        problems["command"] = f"Ansible's connection {connection[:80]!r} cannot be used like this"
    settings = Settings(
        address,
        user,
        None if port is None else int(port),
        command,
        Environment(python) if python else None,
        _become(variables, text, problems),
    )
    return Table(Origin(origin.file, None, name), settings, problems)


def _command(
    name: str,
    connection: str,
    container: Mapping[str, str | None],
    kubectl: tuple[str | None, str | None, str | None],
) -> str | None:
    """Return the command in the place of SSH; None for SSH, and for what is not known."""
    where = container["address"] or name
    if any(str(word or "").startswith("-") for word in (where, *container.values(), *kubectl)):
        return None  # a program would take it for an option
    if connection in _LOCAL:
        return "sh -c"
    if connection in _DOCKER | _PODMAN:
        program = "docker" if connection in _DOCKER else "podman"
        user = ("-u", container["user"]) if container["user"] else ()
        return _joined(program, "exec", "-i", *user, where, "sh", "-c")
    if connection in _KUBECTL:
        pod, space, inner = kubectl
        before = ("-n", space) if space else ()
        after = ("-c", inner) if inner else ()
        return _joined("kubectl", *before, "exec", "-i", pod or where, *after, "--", "sh", "-c")
    return None


def _joined(*words: str | None) -> str:
    """Return words as one line."""
    return shlex.join(word for word in words if word is not None)


def _become(variables: Vars, text: Any, problems: dict[str, str]) -> bool | str | None:
    """Return as whom the agent is to run: False and True as Ansible's booleans are."""
    value = variables.get("ansible_become")
    if value is None:
        return None
    word = str(value).lower()
    if word not in _YES | _NO:
        problems["become"] = f"Ansible's ansible_become is {str(value)[:80]!r}, which is no answer"
        return None
    if word in _NO:
        return False
    method = text("become", "ansible_become_method") or "sudo"
    if method not in ("sudo", "ansible.builtin.sudo"):
        problems["become"] = f"Ansible's become method {method[:80]!r} is not known to patchq"
    user: str | None = text("become", "ansible_become_user")
    return True if user in (None, "root") else user


def _notes(variables: Mapping[str, Vars], origin: Origin) -> tuple[str, ...]:
    """Return what is said of how to reach hosts, and is not taken."""
    notes = []
    for key in _UNHEEDED:
        hosts = [name for name, each in variables.items() if each.get(key) not in (None, "")]
        if hosts:
            few = ", ".join(hosts[:_NAMED])
            few += f" and {len(hosts) - _NAMED} more" if len(hosts) > _NAMED else ""
            notes.append(
                f"{origin} sets {key} for {few}, which patchq does not take over; "
                "ssh_config can say it, or 'command' in hosts.toml"
            )
    return tuple(notes)
