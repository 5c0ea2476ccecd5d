"""Where a build puts the files of a source distribution, as setuptools' build_py does.

Modules of packages as their names say; data by package_data's patterns, and with
include_package_data every file of the manifest that lies in a package's folder.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator

from patchq.releases.declared import Declared, Find, UndeclaredError, join

# What setuptools installs beside the modules without being told (build_py, since 69.0).
_IMPLICIT = ("*.pyi", "py.typed")


def placed(
    declared: Declared, names: Iterable[str], sources: Iterable[str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return installed path -> file of the distribution: of modules, and of data.

    `names` are all files, `sources` those of the manifest (SOURCES.txt).

    Raises:
        UndeclaredError: a package that is declared is not there.
    """
    files = sorted(names)
    packages = tuple(_packages(declared, files))
    modules: dict[str, str] = {}
    for package in packages:
        folder = join(declared.root, package.replace(".", "/"))
        mine = [name for name in files if name.rpartition("/")[0] == folder]
        if not any(name.startswith(f"{folder}/") for name in files):
            raise UndeclaredError(f"its package {package} is not there")
        modules |= {_inside(name, declared): name for name in mine if name.endswith(".py")}
    for module in declared.modules:
        # setuptools passes over one that is not there.
        name = join(declared.root, module.replace(".", "/") + ".py")
        if name in files:
            modules[_inside(name, declared)] = name
    found = _data(declared, packages, files, sorted(sources))
    data = {_inside(name, declared): name for name in found}
    return modules, {path: name for path, name in data.items() if path not in modules}


def top(declared: Declared, names: Iterable[str]) -> set[str]:
    """Return the names that can be imported, as setuptools' top_level.txt has them."""
    packages = _packages(declared, sorted(names))
    return {one.partition(".")[0] for one in (*packages, *declared.modules)}


def _inside(name: str, declared: Declared) -> str:
    return name.removeprefix(f"{declared.root}/") if declared.root else name


def _packages(declared: Declared, files: list[str]) -> Iterator[str]:
    if not isinstance(declared.packages, Find):
        yield from declared.packages
        return
    finder = declared.packages
    folders = dict.fromkeys(_folders(files, finder.where))
    for folder in folders:
        above, _, name = folder.rpartition("/")
        looks = "." not in name and (
            finder.namespaces or join(finder.where, f"{folder}/__init__.py") in files
        )
        # One that is none hides all below it.
        folders[folder] = looks and (not above or folders[above])
        package = folder.replace("/", ".")
        if (
            folders[folder]
            and _fits(package, finder.include)
            and not _fits(package, finder.exclude)
        ):
            yield package


def _folders(files: list[str], where: str) -> Iterator[str]:
    """Yield the folders below `where`, each after the one that it is in."""
    start = f"{where}/" if where else ""
    for name in files:
        if name.startswith(start):
            parts = name.removeprefix(start).split("/")[:-1]
            yield from ("/".join(parts[:count]) for count in range(1, len(parts) + 1))


def _fits(package: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(package, pattern) for pattern in patterns)


def _data(
    declared: Declared, packages: Iterable[str], files: list[str], sources: list[str]
) -> Iterator[str]:
    """Yield the data files of all packages."""
    folders = {join(declared.root, one.replace(".", "/")): one for one in packages}
    included: dict[str, list[str]] = {one: [] for one in folders.values()}
    for name in sources if declared.include_data else ():
        owner = name.rpartition("/")[0]
        direct = owner in folders
        while owner and owner not in folders:
            owner = owner.rpartition("/")[0]
        if owner in folders and name in files and not (direct and name.endswith(".py")):
            included[folders[owner]].append(name)
    for folder, package in folders.items():
        wanted = (*_IMPLICIT, *declared.data.get("", ()), *declared.data.get(package, ()))
        refused = (*declared.exclude_data.get("", ()), *declared.exclude_data.get(package, ()))
        inside = [name for name in files if name.startswith(f"{folder}/")]
        parts = {name: name.removeprefix(f"{folder}/").split("/") for name in inside}
        named = [
            name for name in inside if any(_matches(one.split("/"), parts[name]) for one in wanted)
        ]
        for name in dict.fromkeys((*named, *included[package])):
            if not any(fnmatch.fnmatchcase(name, f"{folder}/{one}") for one in refused):
                yield name


def _matches(pattern: list[str], parts: list[str]) -> bool:
    """Return whether a path is what a recursive glob finds (setuptools.glob)."""
    if not pattern or not parts:
        return not pattern and not parts
    if pattern[0] == "**":
        return any(_matches(pattern[1:], parts[at:]) for at in range(len(parts)))
    return fnmatch.fnmatchcase(parts[0], pattern[0]) and _matches(pattern[1:], parts[1:])
