"""The text of a wheel: the files that pip would install, each checked by RECORD.

The wheel is any seekable file; a `ranges.RemoteFile` is told what will be read, so
that it comes in few stretches. zipfile reads the directory (zip64, data
descriptors, and the local header's name is compared with the directory's).
Refused, because two readers could disagree on what is installed: names listed twice,
unsafe paths, a file where another needs a folder, encryption, other compressions than
stored and deflated, files that RECORD does not list or lists without a digest. What a
wheel may cost is in `bounds`.

What is text is decided by name and size alone (`is_text`), never by content, so
that the tree is the same however the wheel was read.
"""

from __future__ import annotations

import itertools
import stat
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

from packaging.utils import canonicalize_name, canonicalize_version

from patchq.agent import protocol
from patchq.errors import PatchqError
from patchq.releases import bounds, record
from patchq.releases.ranges import SMALL, TAIL, RemoteFile

# A change here changes the tree of every release, and so every lock.
_TEXT = """
py pyi pyx pxd pyw json jsonl txt toml yaml yml md rst cfg ini conf jinja jinja2 j2 tmpl template
sh bash c cc cpp cxx cu cuh h hh hpp hxx inc inl td ll ptx proto cmake js mjs ts css html htm xml
svg csv tsv sql typed in g lark patch diff gitkeep gitignore
"""
_SUFFIXES = frozenset(_TEXT.split())
# Bytes of a file that is taken for text.
LIMIT = 8 << 20
_PLAIN_LIMIT = 1 << 18
_UNSIGNED = ("RECORD", "RECORD.jws", "RECORD.p7s")


class WheelError(PatchqError):
    """A wheel is damaged, tampered with, or not what the specification says."""


@dataclass(frozen=True, slots=True)
class WheelText:
    """What was read of one wheel; `files` are (installed path, bytes, executable), sorted.

    `dist_info` maps names below ``dist_info_name`` to bytes, as the wheel has them.
    `directory` is the length of the archive's directory.
    """

    files: tuple[tuple[str, bytes, bool], ...]
    dist_info_name: str
    dist_info: dict[str, bytes]
    signature: dict[str, tuple[int, int]]
    directory: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Members:
    """The archive's directory, sorted out; `texts` maps installed paths to members."""

    texts: dict[str, zipfile.ZipInfo]
    names: tuple[str, ...]
    dist_info_name: str
    dist_info: dict[str, zipfile.ZipInfo]


def is_text(path: str, size: int) -> bool:
    """Return True for a file that is kept: by its suffix, or small and without one."""
    name = path.rpartition("/")[2]
    _, dot, suffix = name.rpartition(".")
    if dot:
        return suffix.lower() in _SUFFIXES and size <= LIMIT
    return size <= _PLAIN_LIMIT


def read(file: IO[bytes] | RemoteFile, filename: str, distribution: str) -> WheelText:
    """Return the text of a wheel of `distribution`.

    Raises: `WheelError`; and what a `RemoteFile` raises.
    """
    with _opened(file, filename) as archive:
        members = _members(archive, filename, distribution)
        if isinstance(file, RemoteFile):
            wanted = (*members.dist_info.values(), *members.texts.values())
            file.want(_stretches(archive, wanted))
        info = {name: bounds.content(archive, each) for name, each in members.dist_info.items()}
        try:
            rows = record.parse(info["RECORD"])
            reason = record.unlisted(members.names, rows)
            if reason is not None:
                raise record.RecordError(reason)
            for name, data in info.items():
                if name not in _UNSIGNED:
                    path = f"{members.dist_info_name}/{name}"
                    record.check(path, rows[path], data)
            files = []
            for path, member in sorted(members.texts.items()):
                data = bounds.content(archive, member)
                record.check(member.filename, rows[member.filename], data)
                files.append((path, data, _executable(member)))
        except record.RecordError as error:
            raise _refusal(filename, str(error)) from error
        missing = [path for path in rows if path not in archive.NameToInfo]
        said = f"RECORD lists {len(missing)} files that the wheel lacks (first: {missing[:1]})"
        return WheelText(
            tuple(files),
            members.dist_info_name,
            info,
            _signature(members),
            file.seek(0, 2) - archive.start_dir,
            (said,) if missing else (),
        )


def signature(
    file: IO[bytes] | RemoteFile, filename: str, distribution: str, directory: int
) -> dict[str, tuple[int, int]]:
    """Return path -> (CRC, size) of each text, from the directory alone.

    `directory` is about how long that is; a wrong guess costs a request.
    """
    with _opened(file, filename, directory + (directory >> 4)) as archive:
        return _signature(_members(archive, filename, distribution))


def _signature(members: _Members) -> dict[str, tuple[int, int]]:
    return {path: (each.CRC, each.file_size) for path, each in members.texts.items()}


@contextmanager
def _opened(
    file: IO[bytes] | RemoteFile, filename: str, tail: int = TAIL
) -> Iterator[zipfile.ZipFile]:
    try:
        if isinstance(file, RemoteFile):
            file.want([(0 if file.size <= SMALL else file.size - tail, file.size)])
        with zipfile.ZipFile(file) as archive:
            yield archive
    except bounds.DAMAGE as error:
        raise _refusal(filename, str(error) or type(error).__name__) from error


def _members(archive: zipfile.ZipFile, filename: str, distribution: str) -> _Members:
    # Not `is_dir`: it fails on an empty name.
    members = [each for each in archive.infolist() if not each.filename.endswith("/")]
    top, seen = _dist_info(members, filename, distribution), set[str]()
    texts: dict[str, zipfile.ZipInfo] = {}
    info: dict[str, zipfile.ZipInfo] = {}
    for each in members:
        reason = _reason(each, top) or ("it is there twice" if each.filename in seen else None)
        if reason is not None:
            raise _refusal(filename, f"member {each.orig_filename[:200]!r}: {reason}")
        seen.add(each.filename)
        path = _installed(each.filename, top.removesuffix(".dist-info") + ".data/")
        if each.filename.startswith(top + "/"):
            name = each.filename.removeprefix(top + "/")
            if each.file_size <= LIMIT:
                info[name] = each
            elif name == "RECORD":
                raise _refusal(filename, f"its RECORD would be more than {LIMIT} bytes")
        elif path is not None and path in texts:
            raise _refusal(filename, f"{path!r} would be installed twice")
        elif path is not None and is_text(path, each.file_size) and _owned(path):
            texts[path] = each
    if "RECORD" not in info:
        raise _refusal(filename, "it has no RECORD")
    bomb = bounds.bomb((*texts.values(), *info.values()))
    if bomb is not None:
        raise _refusal(filename, bomb)
    _refuse_nested(texts, filename)
    return _Members(texts, tuple(seen - {f"{top}/{n}" for n in _UNSIGNED}), top, info)


def _dist_info(members: Iterable[zipfile.ZipInfo], filename: str, distribution: str) -> str:
    """Return the name of the wheel's one dist-info, which the file's name agrees with."""
    tops = {each.filename.partition("/")[0] for each in members}
    found = [top for top in sorted(tops) if top.endswith(".dist-info")]
    version = canonicalize_version(filename.split("-")[1])
    names = [top.removesuffix(".dist-info").partition("-") for top in found]
    named = [(canonicalize_name(name), canonicalize_version(of)) for name, _, of in names]
    if named != [(distribution, version)]:
        raise _refusal(
            filename, f"expected one dist-info, of {distribution} {version}, found {found}"
        )
    return found[0]


def _reason(member: zipfile.ZipInfo, top: str) -> str | None:
    """Return why a member is refused, None if it is not."""
    if member.flag_bits & 1:
        return "it is encrypted"
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return f"compression {member.compress_type} is neither stored nor deflated"
    name = member.orig_filename.removeprefix(f"{top}/")
    excess = bounds.excess(member)
    if excess is not None:
        return excess
    # Vendored packages bring their dist-info along (setuptools does); it is no danger here.
    parts = [
        part.replace(".dist-info", "-info").replace(".egg-info", "-info")
        for part in name.split("/")
    ]
    return protocol.unsafe("/".join(parts))


def _installed(name: str, data: str) -> str | None:
    """Return where pip puts a member below site-packages, None if elsewhere."""
    if not name.startswith(data):
        return name
    scheme, _, path = name.removeprefix(data).partition("/")
    return path if scheme in ("purelib", "platlib") and path else None


def _owned(path: str) -> bool:
    return protocol.unsafe(path) is None


def _refuse_nested(texts: dict[str, zipfile.ZipInfo], filename: str) -> None:
    for path in texts:
        above = path.rpartition("/")[0]
        while above:
            if above in texts:
                raise _refusal(filename, f"{above!r} is a file, and {path!r} needs a folder there")
            above = above.rpartition("/")[0]


def _stretches(
    archive: zipfile.ZipFile, wanted: Iterable[zipfile.ZipInfo]
) -> Iterator[tuple[int, int]]:
    """Yield where the members lie: header, name, data and descriptor.

    A local header's extra field may differ in length from the directory's, so a
    member is read up to where the next one begins.
    """
    starts = sorted({each.header_offset for each in archive.infolist()} | {archive.start_dir})
    following = dict(itertools.pairwise(starts))
    for each in wanted:
        if each.header_offset not in following or each.header_offset < 0:
            raise zipfile.BadZipFile(f"{each.filename} is not before the directory")
        most = each.header_offset + 30 + (2 << 16) + each.compress_size + 24
        yield each.header_offset, min(following[each.header_offset], most)


def _executable(member: zipfile.ZipInfo) -> bool:
    """Return True if pip would make the file executable (pip, `zip_item_is_executable`)."""
    mode = member.external_attr >> 16
    return bool(mode and stat.S_ISREG(mode) and mode & 0o111)


def _refusal(filename: str, reason: str) -> WheelError:
    return WheelError(
        f"{filename} is refused",
        why=reason,
        mend="get the wheel from another index, or build it again",
    )
