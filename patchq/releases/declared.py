"""What a build of a source distribution installs, as values.

Packages are those of setuptools; where one lies elsewhere than its name says, nothing is said.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


class UndeclaredError(Exception):
    """Only a build can tell what is installed; the text says why."""


@dataclass(frozen=True, slots=True)
class Find:
    """Packages that are looked for: setuptools' find_packages and find_namespace_packages."""

    where: str = ""
    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()
    namespaces: bool = False


@dataclass(frozen=True, slots=True)
class Declared:
    """What a build installs: `root` is the folder that the packages are in."""

    packages: tuple[str, ...] | Find
    modules: tuple[str, ...]
    root: str
    include_data: bool
    data: Mapping[str, tuple[str, ...]]
    exclude_data: Mapping[str, tuple[str, ...]]


def of(said: Mapping[str, object], implied: bool) -> Declared:
    """Return what was said as one value; `implied`: data is included unless told.

    Raises:
        UndeclaredError: packages do not lie as their names say.
        TypeError: a value is of another kind than setuptools takes.
    """
    packages = said.get("packages", ())
    placed = said.get("package_dir") or {}
    if not isinstance(placed, dict):
        raise TypeError(placed)
    folders = {str(key): folder(value) for key, value in placed.items()}
    root = folders.pop("", "")
    moved = [name for name, at in folders.items() if at != join(root, name.replace(".", "/"))]
    if moved:
        raise UndeclaredError(f"package_dir puts {moved[0]} elsewhere")
    if isinstance(packages, Find):
        if "package_dir" not in said and said.get("fill"):
            root = packages.where
        if packages.where != root:
            raise UndeclaredError(
                f"packages are looked for in {packages.where or '.'}, not in {root or '.'}"
            )
    else:
        packages = texts(packages)
    include = said.get("include_package_data")
    return Declared(
        packages,
        texts(said.get("py_modules") or ()),
        root,
        implied if include is None else bool(include),
        _patterns(said.get("package_data")),
        _patterns(said.get("exclude_package_data")),
    )


def find(values: Mapping[str, object], namespaces: bool) -> Find:
    """Return the finder that these arguments make; raise where it cannot be told."""
    where = values.get("where") or "."
    if isinstance(where, list):
        if len(where) != 1:
            raise UndeclaredError("packages are looked for in more than one folder")
        where = where[0]
    unknown = values.keys() - {"where", "include", "exclude", "namespaces"}
    if unknown:
        raise ValueError(unknown)
    include = texts(values.get("include") or ("*",))
    return Find(folder(where), include, texts(values.get("exclude") or ()), namespaces)


def _patterns(value: object) -> dict[str, tuple[str, ...]]:
    """Return the patterns of each package; "" has those of all (setup.cfg and toml: "*")."""
    if not value:
        return {}
    if not isinstance(value, dict):
        raise TypeError(value)
    return {"" if key == "*" else str(key): texts(some) for key, some in value.items()}


def texts(value: object) -> tuple[str, ...]:
    """Return a list of texts; raise TypeError for anything else."""
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
        raise TypeError(value)
    return tuple(value)


def folder(value: object) -> str:
    """Return a folder of the distribution, "" for its top one."""
    if not isinstance(value, str):
        raise TypeError(value)
    text = value.removeprefix("./").rstrip("/")
    if text.startswith("/") or ".." in text.split("/"):
        raise UndeclaredError(f"it takes packages from {text}")
    return "" if text == "." else text


def join(folder: str, name: str) -> str:
    """Return a path in a folder, which may be the top one."""
    return f"{folder}/{name}" if folder else name
