"""Where inventories are, and reading them: hosts.toml, and Ansible's by its own program."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from patchq.errors import UsageError
from patchq.inventory import ansible, gathered, hostset, table
from patchq.inventory.values import Inventories, Inventory, Origin
from patchq.queue import reading

NAME = "hosts.toml"
VARIABLE = "PATCHQ_HOSTS"
_PROGRAM = "ansible-inventory"
# A dynamic inventory may ask a cloud; in seconds.
_PATIENCE = 300
# What Ansible lists of 50,000 hosts with some variables has 30 MB.
_LARGEST = 256 << 20
_TOLD = 800
# Without these Ansible takes a file that it cannot read for an empty one.
_STRICT = {
    "ANSIBLE_INVENTORY_UNPARSED_FAILED": "true",
    "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "true",
    "ANSIBLE_NOCOLOR": "true",
}


def load(
    cwd: Path, environ: Mapping[str, str], config: Path, named: Sequence[str] = ()
) -> Inventories:
    """Return the inventories in sight, nearest first; those that are `named`, and no others.

    They are the nearest hosts.toml from `cwd` upwards, those of ``PATCHQ_HOSTS`` (separated as
    in ``PATH``), and the one in the user's folder `config`.

    Raises:
        UsageError: one cannot be read, or Ansible is needed and not there.
    """
    return Inventories(
        tuple(_read(path, environ) for path in _search(cwd, environ, config, named))
    )


def headings(text: str) -> dict[tuple[str, ...], int]:
    """Return the line at which each table of a TOML text begins.

    Example:
        >>> headings('[all]\\n\\n[groups."a.b"]\\n')
        {('all',): 1, ('groups', 'a.b'): 3}
    """
    found: dict[tuple[str, ...], int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not re.match(r"\s*\[[^[]", line):
            continue
        try:
            inner: object = tomllib.loads(line)
        except (ValueError, RecursionError):
            continue
        path = []
        while isinstance(inner, dict) and inner:
            key, inner = next(iter(inner.items()))
            path.append(key)
        found.setdefault(tuple(path), number)
    return found


def _search(
    cwd: Path, environ: Mapping[str, str], config: Path, named: Sequence[str]
) -> Iterator[Path]:
    if named:
        for name in named:
            yield _there(cwd / name, "--inventory names it")
        return
    first: dict[Path, None] = {}
    for at in (cwd, *cwd.parents):
        if _is_there(at / NAME):
            _check_owner(at / NAME)
            first[(at / NAME).resolve()] = None
            yield at / NAME
            break
    for name in environ.get(VARIABLE, "").split(os.pathsep):
        path = cwd / name
        if name and path.resolve() not in first:
            first[path.resolve()] = None
            yield _there(path, f"{VARIABLE} names it")
    if _is_there(config / NAME) and (config / NAME).resolve() not in first:
        yield config / NAME


def _is_there(path: Path) -> bool:
    """Return whether a file is there, as far as this user may see."""
    try:
        return path.is_file()
    except OSError:
        return False


def _there(path: Path, why: str) -> Path:
    if os.path.exists(path):
        return path
    near = hostset.nearest(path.name, _siblings(path))
    raise UsageError(
        f"there is no inventory {path}",
        why=why,
        mend=f"name {path.with_name(near)}"
        if near
        else "name a hosts.toml, or an Ansible inventory",
    )


def _siblings(path: Path) -> list[str]:
    try:
        return os.listdir(path.parent)
    except OSError:
        return []


def _check_owner(path: Path) -> None:
    """Refuse a file that was found and that another user can write: it names commands."""
    facts = path.stat()
    foreign = facts.st_uid not in (0, os.geteuid())
    if foreign or facts.st_mode & stat.S_IWOTH:
        whose = "another user owns it" if foreign else "anybody can write it"
        raise UsageError(
            f"{path} is not taken: {whose}",
            why="an inventory names commands that are run here",
            mend=f"{VARIABLE}={path} patchq VERB, if you trust it",
        )


def _read(path: Path, environ: Mapping[str, str]) -> Inventory:
    if path.suffix != ".toml":
        listed = _listed((path,), environ)
        return gathered.gather(table.Document(str(path)), listed)
    try:
        data = reading.read(path) or b""
    except UsageError as error:
        raise UsageError(error.what, why=error.why, mend=f"ls -l {path}") from error
    try:
        text = data.decode()
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # not TOML, not UTF-8, too deep
        raise UsageError(
            f"{path} cannot be read", why=str(error), mend=f"correct {path}"
        ) from error
    found = table.read(document, source=str(path), lines=headings(text))
    sources = tuple(
        _there(path.parent / name, f"'ansible' in {path} names it") for name in found.ansible
    )
    listed = _listed(sources, environ) if sources else ansible.Listed()
    return gathered.gather(found, listed)


def _listed(sources: Sequence[Path], environ: Mapping[str, str]) -> ansible.Listed:
    """Return what Ansible says of its inventories."""
    origin = Origin(", ".join(map(str, sources)))
    program = shutil.which(_PROGRAM, path=environ.get("PATH"))
    if program is None:
        raise UsageError(
            f"{origin} is an inventory of Ansible's, and Ansible is not here",
            why=f"{_PROGRAM} reads it, and is not on PATH",
            mend="pip install ansible-core, or write the hosts into a hosts.toml",
        )
    argv = [program, *(word for one in sources for word in ("-i", str(one))), "--list"]
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={**environ, **_STRICT},
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _unlisted(origin, sources, str(error)) from error
    if done.returncode or len(done.stdout) > _LARGEST:
        told = done.stderr.decode(errors="replace").strip()[-_TOLD:]
        raise _unlisted(origin, sources, told or f"{_PROGRAM} ended with {done.returncode}")
    try:
        document = json.loads(done.stdout)
    except (ValueError, RecursionError) as error:
        raise _unlisted(origin, sources, f"its answer is no JSON: {error}") from error
    return ansible.read(document, origin)


def _unlisted(origin: Origin, sources: Sequence[Path], why: str) -> UsageError:
    options = " ".join(f"-i {one}" for one in sources)
    return UsageError(
        f"Ansible cannot read {origin}", why=why, mend=f"{_PROGRAM} {options} --list"
    )
