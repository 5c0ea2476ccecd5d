"""What a source distribution says that a build installs, read and never run.

setup.py is read as syntax: one call of setup() with literal values. setup.cfg and
pyproject.toml are read as setuptools reads them (its guides on packages and data files).
Whatever could make a build do something else, an unknown keyword, a command of its own,
a plugin, is a reason to say nothing: `UndeclaredError`.
"""

from __future__ import annotations

import ast
import configparser
import tomllib
from collections.abc import Callable, Iterable

from packaging.requirements import InvalidRequirement, Requirement

from patchq.engine import lines, nesting
from patchq.releases.declared import Declared, Find, UndeclaredError, find, of, texts

# Keywords of setup(), keys of [options] and of [tool.setuptools] that place no file.
_PLAIN = frozenset(
    """
    name version description long_description long_description_content_type author author_email
    maintainer maintainer_email url download_url project_urls license license_file license_files
    classifiers keywords platforms platform provides obsoletes requires install_requires
    extras_require python_requires entry_points scripts script_files data_files zip_safe
    test_suite test_loader tests_require dynamic dependency_links
    """.split()
)
_PLACES = (
    "packages py_modules package_dir include_package_data package_data exclude_package_data"
).split()
_FINDERS = {"find_packages": False, "find_namespace_packages": True}
# What a build may need without doing more than setuptools does.
_REQUIRED = {"setuptools", "wheel", "setuptools-scm", "pytest-runner"}
_BACKENDS = (None, "setuptools.build_meta", "setuptools.build_meta:__legacy__")
_SECTIONS = ("build", "build_py", "install", "install_lib", "global", "files", "backwards_compat")
_UNREAD = (
    SyntaxError,
    ValueError,
    TypeError,
    AttributeError,
    RecursionError,
    configparser.Error,
)


def declared(read: Callable[[str], bytes | None]) -> Declared:
    """Return what the files of a source distribution's top folder declare.

    Raises:
        UndeclaredError: they do not say it in a way that can be read.
    """
    said: dict[str, object] = {}
    by: dict[str, str] = {}
    implied = False
    for name, reader in (("setup.py", _call), ("setup.cfg", _cfg), ("pyproject.toml", _project)):
        text = read(name)
        if text is None:
            continue
        try:
            found = reader(text)
        except _UNREAD as error:
            raise UndeclaredError(f"its {name} cannot be read: {error!r:.120}") from error
        implied |= bool(found.pop("implied", False))
        for key, value in found.items():
            if key in said:
                raise UndeclaredError(f"both {by[key]} and {name} have {key}")
            said[key], by[key] = value, name
    if "packages" not in said and "py_modules" not in said:
        raise UndeclaredError("it names no packages: setuptools would look for them")
    try:
        return of(said, implied)
    except _UNREAD as error:
        raise UndeclaredError(f"what it declares cannot be read: {error!r:.120}") from error


def _call(text: bytes) -> dict[str, object]:
    """Return what setup.py's one call of setup() says of places."""
    trouble = nesting.trouble(lines.decode(text))
    if trouble is not None:
        raise UndeclaredError(f"its setup.py is {trouble}")
    calls = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and _name(node.func) == "setup"
    ]
    if len(calls) != 1 or calls[0].args:
        raise UndeclaredError(f"its setup.py calls setup() {len(calls)} times, or with a dict")
    found: dict[str, object] = {}
    for keyword in calls[0].keywords:
        if keyword.arg in _PLAIN:
            continue
        if keyword.arg is None:
            raise UndeclaredError("its setup.py calls setup(**...)")
        try:
            value = _value(keyword.value)
        except ValueError:
            raise UndeclaredError(f"its setup.py computes {keyword.arg}") from None
        if keyword.arg == "setup_requires":
            _refuse_plugins(texts([value] if isinstance(value, str) else value))
        elif keyword.arg in _PLACES:
            found[keyword.arg] = value
        elif value:
            raise UndeclaredError(f"its setup.py gives setup() {keyword.arg}")
    return found


def _name(node: ast.expr) -> str | None:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


def _value(node: ast.expr) -> object:
    """Return a literal, or the finder that a call names; raise ValueError for anything else."""
    if not isinstance(node, ast.Call):
        return ast.literal_eval(node)
    finder = _name(node.func)
    if finder not in _FINDERS or any(one.arg is None for one in node.keywords):
        raise ValueError(finder)
    names = ("where", "exclude", "include")
    values = dict(zip(names, map(ast.literal_eval, node.args), strict=False))
    values |= {str(one.arg): ast.literal_eval(one.value) for one in node.keywords}
    return find(values, _FINDERS[finder])


def _cfg(text: bytes) -> dict[str, object]:
    """Return what setup.cfg says of places."""
    parser = configparser.RawConfigParser()
    parser.read_string(text.decode())
    for section in _SECTIONS:
        if parser.has_section(section) and parser.options(section):
            raise UndeclaredError(f"its setup.cfg has [{section}]")
    found: dict[str, object] = {}
    options = parser["options"] if parser.has_section("options") else {}
    for key, value in options.items():
        key = key.replace("-", "_")
        if key == "setup_requires":
            _refuse_plugins(_listed(value))
        elif key == "package_dir":
            pairs = (one.partition("=") for one in _listed(value))
            found[key] = {name.strip(): at.strip() for name, _, at in pairs}
        elif key == "include_package_data":
            found[key] = parser.getboolean("options", key)
        elif key == "packages" and value.strip() in ("find:", "find_namespace:"):
            found[key] = _found_by(parser, value.strip() == "find_namespace:")
        elif key in _PLACES:
            found[key] = _listed(value)
        elif key not in _PLAIN:
            raise UndeclaredError(f"its setup.cfg has {key}")
    for key in ("package_data", "exclude_package_data"):
        if parser.has_section(f"options.{key}"):
            found[key] = {name: _listed(one) for name, one in parser.items(f"options.{key}")}
    return found


def _found_by(parser: configparser.RawConfigParser, namespaces: bool) -> Find:
    section = "options.packages.find"
    items = parser.items(section) if parser.has_section(section) else ()
    values = {key: _listed(value) for key, value in items}
    return find(values, namespaces)


def _listed(value: str) -> list[str]:
    parts = value.split("\n") if "\n" in value else value.split(",")
    return [part.strip() for part in parts if part.strip()]


def _project(text: bytes) -> dict[str, object]:
    """Return what pyproject.toml says of places; the backend must be setuptools."""
    data = tomllib.loads(text.decode())
    build, tool = data.get("build-system", {}), data.get("tool", {})
    if build.get("build-backend") not in _BACKENDS or "backend-path" in build:
        raise UndeclaredError(f"it is built by {build.get('build-backend') or 'its own code'}")
    _refuse_plugins(texts(build.get("requires", ())))
    for name in ("setuptools_scm", "setuptools-scm"):
        if any(key in tool.get(name, {}) for key in ("write_to", "version_file")):
            raise UndeclaredError("a build writes its version into a file (setuptools-scm)")
    own = tool.get("setuptools", {})
    found: dict[str, object] = {}
    for key, value in own.items():
        key = key.replace("-", "_")
        if key == "packages" and isinstance(value, dict):
            if value.keys() - {"find"}:
                raise UndeclaredError("its pyproject.toml has packages of another kind")
            values = value.get("find", {})
            found[key] = find(values, values.get("namespaces", True))
            found["fill"] = True
        elif key in _PLACES:
            found[key] = value
        elif key not in _PLAIN:
            raise UndeclaredError(f"its pyproject.toml has {key}")
    # setuptools: with a [project] or a table of its own, data is included unless told.
    return {**found, "implied": bool(own or "project" in data)}


def _refuse_plugins(requires: Iterable[str]) -> None:
    for one in requires:
        try:
            name = Requirement(one).name
        except InvalidRequirement:
            name = one
        if name.lower().replace("_", "-") not in _REQUIRED:
            raise UndeclaredError(f"its build needs {name}, which may change what is installed")
