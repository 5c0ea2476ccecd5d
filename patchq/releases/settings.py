"""Where wheels come from: pip's own settings, read as pip reads them.

Options are those of ``[global]`` and ``[install]``. Lowest first: the machine's files, the
user's, the environment's, the file that ``PIP_CONFIG_FILE`` names (then the user's
are not read; the null device: none is), ``PIP_*`` variables. uv's variables
(``UV_DEFAULT_INDEX``, ``UV_INDEX`` ...) count where pip's are not set. Keyrings are not asked.
"""

from __future__ import annotations

import configparser
import importlib.util
import os
import re
import stat
import sys
import sysconfig
import urllib.request
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from patchq.errors import UsageError

# How pip's `_internal/models/index.py` spells the index it asks where none is set.
_DEFAULT = re.compile(r'^PyPI = PackageIndex\(\s*"([^"]+)"', re.MULTILINE)
_DEFAULT_AT = "_internal/models/index.py"
# Characters that a person could have written, into a file and into a line of it.
_LIMIT, _LINE = 1 << 20, 8192


class SettingsError(UsageError):
    """A configuration file of pip's cannot be read."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Indexes in order, and how to talk to them; times in seconds."""

    indexes: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    cert: str | None = None
    client_cert: str | None = None
    trusted_hosts: tuple[str, ...] = ()
    proxies: Mapping[str, str] = field(default_factory=dict)
    netrc: str | None = None
    timeout: float = 15.0
    retries: int = 5


def load(environ: Mapping[str, str] | None = None, *, prefix: Path | None = None) -> Settings:
    """Return the settings that pip would have; `prefix` is its environment.

    Raises: `SettingsError` for a file that is not pip's format.
    """
    environ = os.environ if environ is None else environ
    prefix = prefix or Path(environ.get("VIRTUAL_ENV") or sys.prefix)
    options: dict[str, str] = {}
    for path in _files(environ, prefix):
        options.update(_read(path))
    for name, value in environ.items():
        if name.startswith("PIP_") and value:
            options[name[4:].lower().replace("_", "-")] = value
    none = _true(options.get("no-index", ""))
    indexes = () if none else (*_index(environ, options), *_extra(environ, options))
    links = options.get("find-links", "").split() or environ.get("UV_FIND_LINKS", "").split(",")
    return Settings(
        indexes=tuple(dict.fromkeys(indexes)),
        find_links=tuple(link for link in links if link),
        cert=_cert(environ, options),
        client_cert=options.get("client-cert"),
        trusted_hosts=tuple(options.get("trusted-host", "").split()),
        proxies=_proxies(environ, options),
        netrc=_netrc(environ),
        timeout=_number(options, "timeout", options.get("default-timeout", "15")),
        retries=int(_number(options, "retries", "5")),
    )


def _files(environ: Mapping[str, str], prefix: Path) -> Iterator[Path]:
    """Yield pip's configuration files, lowest first (pip, `Configuration.iter_config_files`)."""
    named = environ.get("PIP_CONFIG_FILE")
    if named == os.devnull:
        return
    home = Path(environ.get("HOME") or "~").expanduser()
    for folder in (environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(os.pathsep):
        yield Path(folder) / "pip" / "pip.conf"
    yield Path("/etc/pip.conf")
    if not (named and Path(named).exists()):
        yield home / ".pip" / "pip.conf"
        yield Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "pip" / "pip.conf"
    yield prefix / "pip.conf"
    if named:
        yield Path(named)


def _read(path: Path) -> dict[str, str]:
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(_text(path), str(path))
    except (FileNotFoundError, NotADirectoryError, PermissionError, IsADirectoryError):
        return {}  # pip passes over it, too
    except (configparser.Error, ValueError, OSError) as error:
        raise SettingsError(
            f"{path} cannot be read",
            why=str(error).replace("\n", " "),
            mend=f"edit {path}, or set PIP_CONFIG_FILE=/dev/null",
        ) from error
    options: dict[str, str] = {}
    for section in ("global", "install"):
        if parser.has_section(section):
            items = parser.items(section)
            options |= {name.lower().replace("_", "-"): value for name, value in items if value}
    return options


def _text(path: Path) -> str:
    """Return a configuration file; configparser takes for ever to read a line of a megabyte."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with open(handle, encoding="utf-8") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise ValueError("it is no regular file")
        text = file.read(_LIMIT + 1)
    if len(text) > _LIMIT or any(len(line) > _LINE for line in text.split("\n")):
        raise ValueError(f"it has more than {_LIMIT} characters, or {_LINE} in a line")
    return text


def _index(environ: Mapping[str, str], options: Mapping[str, str]) -> Iterator[str]:
    uv = environ.get("UV_DEFAULT_INDEX") or environ.get("UV_INDEX_URL")
    if uv and not environ.get("PIP_INDEX_URL"):
        yield _unnamed(uv)
    elif "index-url" in options:
        yield options["index-url"]
    else:
        yield from _default()


def _default() -> Iterator[str]:
    """Yield the index that pip asks where none is set, as pip's own text has it.

    From the pip beside patchq, else the one that Python's ensurepip brings; nothing
    where there is neither.
    """
    text = ""
    found = importlib.util.find_spec("pip")
    if found is not None and found.submodule_search_locations:
        text = (Path(found.submodule_search_locations[0]) / _DEFAULT_AT).read_text()
    else:
        # Debian and Fedora keep ensurepip's wheels in a folder of their own.
        bundled = Path(sysconfig.get_path("stdlib")) / "ensurepip" / "_bundled"
        folders = (sysconfig.get_config_var("WHEEL_PKG_DIR"), bundled)
        wheels = [path for each in folders if each for path in Path(each).glob("pip-*.whl")]
        for wheel in wheels[:1]:
            with zipfile.ZipFile(wheel) as archive:
                text = archive.read(f"pip/{_DEFAULT_AT}").decode()
    for base in _DEFAULT.findall(text):
        yield f"{base.rstrip('/')}/simple"


def _extra(environ: Mapping[str, str], options: Mapping[str, str]) -> list[str]:
    extra = options.get("extra-index-url", "").split()
    uv = [*environ.get("UV_INDEX", "").split(), *environ.get("UV_EXTRA_INDEX_URL", "").split()]
    return extra if environ.get("PIP_EXTRA_INDEX_URL") else [*extra, *map(_unnamed, uv)]


def _unnamed(index: str) -> str:
    """Return the URL of uv's ``name=URL``."""
    name, equals, url = index.partition("=")
    return url if equals and "/" not in name else index


def _cert(environ: Mapping[str, str], options: Mapping[str, str]) -> str | None:
    if "cert" in options:
        return options["cert"]
    names = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
    return next((environ[name] for name in names if environ.get(name)), None)


def _proxies(environ: Mapping[str, str], options: Mapping[str, str]) -> dict[str, str]:
    """Return scheme -> proxy, and "no" -> the hosts that are asked directly."""
    proxies = {
        name.lower().removesuffix("_proxy"): value
        for name, value in sorted(environ.items(), key=lambda item: item[0].islower())
        if name.lower() in ("http_proxy", "https_proxy", "all_proxy", "no_proxy") and value
    }
    if "proxy" in options:
        proxies |= {"http": options["proxy"], "https": options["proxy"]}
    return proxies


def proxy(settings: Settings, scheme: str, host: str) -> str | None:
    """Return the proxy through which `host` is asked, None for no proxy."""
    # urllib's stub asks for a wider mapping than it reads.
    if urllib.request.proxy_bypass_environment(host, dict(settings.proxies)):  # type: ignore[attr-defined,unused-ignore]
        return None
    return settings.proxies.get(scheme) or settings.proxies.get("all")


def _netrc(environ: Mapping[str, str]) -> str | None:
    if environ.get("NETRC"):
        return environ["NETRC"]
    path = Path(environ.get("HOME") or "~").expanduser() / ".netrc"
    return str(path) if path.is_file() else None


def _number(options: Mapping[str, str], name: str, default: str) -> float:
    text = options.get(name, default)
    try:
        number = float(text)
        if not 0 <= number < 1e6:  # nor is NaN
            raise ValueError
        return number
    except ValueError as error:
        raise SettingsError(
            f"pip's setting {name!r} is {text!r}",
            why="expected a number, 0 or more",
            mend="pip config debug",
        ) from error


def _true(text: str) -> bool:
    return text.lower() in ("1", "y", "yes", "t", "true", "on")
