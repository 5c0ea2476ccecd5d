"""The text of a source distribution, at the places where a build would put it.

Nothing of it is run. Two witnesses must agree: what its setup files declare, read as
literals (`setupfiles`), and the ``top_level.txt`` that setuptools wrote when it was made.
What cannot be told so is refused; what is told is the text as it is here, which a build
may still change.
"""

from __future__ import annotations

import email.parser
import gzip
import io
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import IO

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from patchq.agent import protocol
from patchq.errors import PatchqError
from patchq.releases import placing, record, setupfiles, wheel
from patchq.releases.declared import UndeclaredError
from patchq.releases.pages import Candidate

# Bytes that an archive may unpack to.
_TOTAL = 1 << 28
_DAMAGE = (tarfile.TarError, zlib.error, EOFError, OSError, ValueError, OverflowError)


class SdistError(PatchqError):
    """A source distribution is damaged, or only a build can tell what it installs."""


@dataclass(frozen=True, slots=True)
class SdistText:
    """What a build would install: (path, bytes, executable) of text, sorted; and dist-info.

    `dist_info` has the metadata and a RECORD of all files that would be installed.
    """

    files: tuple[tuple[str, bytes, bool], ...]
    dist_info: dict[str, bytes]


class _ExcessError(Exception):
    """An archive unpacks to more than it may."""


class _Bounded(io.RawIOBase):
    """A stream that gives no more bytes than it may."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._file = gzip.GzipFile(fileobj=file)
        self._left = _TOTAL

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(min(size, self._left + 1) if size >= 0 else self._left + 1)
        self._left -= len(data)
        if self._left < 0:
            raise _ExcessError
        return data


@dataclass(frozen=True, slots=True)
class _Member:
    data: bytes
    runs: bool


def read(file: IO[bytes], candidate: Candidate) -> SdistText:
    """Return the text of a source distribution.

    Raises: `SdistError`.
    """
    file.seek(0)
    links: list[str] = []
    try:
        members = dict(_members(file, links))
        found = _installed(members, links, candidate)
    except UndeclaredError as error:
        raise SdistError(
            f"{candidate.filename} is refused",
            why=f"only a build can tell what it installs: {error}",
            mend=f"pip wheel --no-deps {candidate.distribution}=={candidate.version}"
            "   # and: patchq fetch ./FILE.whl",
        ) from error
    except _ExcessError as error:
        raise _refusal(candidate, f"it unpacks to more than {_TOTAL} bytes") from error
    except _DAMAGE as error:
        raise _refusal(candidate, str(error) or type(error).__name__) from error
    text = [
        (path, one.data, one.runs)
        for path, one in sorted(found.items())
        if wheel.is_text(path, len(one.data))
    ]
    folder = f"{candidate.distribution.replace('-', '_')}-{candidate.version}.dist-info"
    rows = record.format(
        ((path, one.data) for path, one in sorted(found.items())), f"{folder}/RECORD"
    )
    info = {f"{folder}/METADATA": members["PKG-INFO"].data, f"{folder}/RECORD": rows}
    return SdistText(tuple(text), info)


def _members(file: IO[bytes], links: list[str]) -> Iterator[tuple[str, _Member]]:
    """Yield the regular files of the one top folder, by path; the names of links go to `links`.

    Raises: ValueError where a path is there twice, or leads elsewhere.
    """
    tops, seen = set[str](), set[str]()
    with tarfile.open(fileobj=_Bounded(file), mode="r|") as archive:
        for each in archive:
            name = each.name.removeprefix("./")
            top, _, path = name.partition("/")
            if each.isdir() or not path:
                continue
            tops.add(top)
            if len(tops) > 1 or path in seen or ".." in path.split("/") or name.startswith("/"):
                raise ValueError(f"member {each.name[:200]!r} is not where it must be")
            seen.add(path)
            if each.issparse():
                raise ValueError(f"member {each.name[:200]!r} has holes")
            content = archive.extractfile(each) if each.isreg() else None
            if content is None:
                links.append(path)
            else:
                yield path, _Member(content.read(), bool(each.mode & 0o100))


def _installed(
    members: Mapping[str, _Member], links: list[str], candidate: Candidate
) -> dict[str, _Member]:
    """Return installed path -> file."""
    _check_name(members, candidate)
    eggs = [name for name in members if name.endswith(".egg-info/top_level.txt")]
    if len(eggs) != 1:
        raise UndeclaredError("it was not made by setuptools (no one egg-info is in it)")
    egg = eggs[0].removesuffix("top_level.txt")
    said = setupfiles.declared(lambda name: members[name].data if name in members else None)
    witness, mine = set(_lines(members, eggs[0])), placing.top(said, members)
    if witness != mine:
        told = ", ".join(sorted(witness)), ", ".join(sorted(mine))
        raise UndeclaredError(f"it was made with {told[0] or 'nothing'}, and declares {told[1]}")
    modules, data = placing.placed(said, members, _lines(members, f"{egg}SOURCES.txt"))
    there = {path.partition("/")[0].removesuffix(".py") for path in modules}
    if not modules or mine - there:
        raise UndeclaredError(f"it has no module {', '.join(sorted(mine - there))}".rstrip())
    inside = [link for link in links if any(f"/{one}/" in f"/{link}" for one in mine)]
    if inside:
        raise UndeclaredError(f"{inside[0]} is a link")
    found = {path: _Member(members[name].data, False) for path, name in modules.items()}
    found |= {path: members[name] for path, name in data.items()}
    for path in found:
        reason = protocol.unsafe(path)
        if reason is not None:
            raise ValueError(f"its file {path!r} is refused: {reason}")
    return found


def _check_name(members: Mapping[str, _Member], candidate: Candidate) -> None:
    """Raise unless PKG-INFO says the name and version that the file's name does."""
    if "PKG-INFO" not in members:
        raise ValueError("it has no PKG-INFO")
    said = email.parser.BytesHeaderParser().parsebytes(members["PKG-INFO"].data)
    name, version = str(said["Name"]), str(said["Version"])
    try:
        same = Version(version) == candidate.version
    except InvalidVersion:
        same = False
    if not same or canonicalize_name(name) != candidate.distribution:
        raise ValueError(f"its PKG-INFO is of {name} {version}")


def _lines(members: Mapping[str, _Member], name: str) -> list[str]:
    text = members[name].data.decode(errors="surrogateescape") if name in members else ""
    return [line.strip() for line in text.split("\n") if line.strip()]


def _refusal(candidate: Candidate, reason: str) -> SdistError:
    return SdistError(
        f"{candidate.filename} is refused",
        why=reason,
        mend="get it from another index, or build a wheel of it",
    )
