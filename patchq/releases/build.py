"""A build that no index keeps: an environment's own text, kept like a wheel's.

The wheel that was installed is gone; its dist-info says what it was called. Of that and
of RECORD only what came with the wheel is kept, not what the installer added. What is
believed is RECORD in the environment: whoever could write there could write both.
"""

from __future__ import annotations

import csv
import email.parser
import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from patchq.agent import protocol
from patchq.errors import PatchqError
from patchq.releases import names, pages, wheel
from patchq.releases.note import WheelNote
from patchq.releases.pages import Candidate
from patchq.releases.record import Row
from patchq.releases.store import Store

_FOLDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+!-]*\.dist-info")
# What pip and uv put into a dist-info beside the wheel's own files.
_ADDED = """
RECORD INSTALLER REQUESTED direct_url.json provenance_url.json uv_cache.json uv_build.json
""".split()


class BuildError(PatchqError):
    """What is installed cannot be kept as a release."""


def is_text(path: str, row: Row) -> bool:
    """Return whether RECORD's row is of a file that a release keeps: text, inside, no metadata."""
    return protocol.unsafe(path) is None and wheel.is_text(path, row.size or 0)


def candidate(name: str, version: str, info: Mapping[str, bytes]) -> Candidate:
    """Return the wheel that was installed, by what its dist-info says (PEP 427, PEP 491).

    Raises: `BuildError` where it does not say.
    """
    said = email.parser.BytesHeaderParser().parsebytes(info.get("WHEEL", b""))
    parts = [tag.strip().split("-") for tag in map(str, said.get_all("Tag", ()))]
    filename = ""
    if parts and all(len(tag) == 3 for tag in parts):
        tags = "-".join(".".join(dict.fromkeys(some)) for some in zip(*parts, strict=True))
        build = f"-{str(said['Build']).strip()}" if said["Build"] else ""
        filename = f"{names.canonical(name).replace('-', '_')}-{version}{build}-{tags}.whl"
    found = pages.candidate(filename, "")
    if found is not None:
        return found
    raise BuildError(
        f"nobody can tell which wheel of {name} {version} was installed",
        why="WHEEL in its dist-info names no tags" if not filename else f"{filename} is no wheel",
        mend="reinstall it with pip or uv",
    )


def add(
    root: Path,
    wheel_: Candidate,
    files: Sequence[tuple[str, bytes, bool]],
    info: Mapping[str, bytes],
    record: bytes,
    *,
    folder: str,
    origin: str,
) -> WheelNote:
    """Keep the text as a release; return what the store has of it.

    `folder` is the dist-info's name, `origin` says whose RECORD was believed. Where the
    wheel itself was fetched and has this text, that is returned.

    Raises: `BuildError` for a dist-info whose names lead elsewhere; what `Store.add` raises.
    """
    for name in info:
        reason = protocol.unsafe(name)
        if not _FOLDER.fullmatch(folder):
            reason = "its folder is no dist-info"
        if reason is not None:
            raise BuildError(
                f"{folder[:200]!r} cannot be kept",
                why=f"its file {name[:200]!r} is refused: {reason}",
                mend="look at that folder on the host",
            )
    kept = {f"{folder}/{name}": data for name, data in info.items() if name not in _ADDED}
    kept[f"{folder}/RECORD"] = _of_wheel(record, folder)
    note = WheelNote(wheel_.filename, wheel_.release, "", "host", origin=origin)
    return Store(wheel_.distribution, root).add(note, files, kept)


def _of_wheel(record: bytes, folder: str) -> bytes:
    """Return RECORD without what an installer added: its notes, bytecode, scripts."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    added = {f"{folder}/{name}" for name in _ADDED if name != "RECORD"}
    for row in csv.reader(io.StringIO(record.decode(errors="surrogateescape"), newline="")):
        if not row or row[0] in added or row[0].startswith("/") or ".." in row[0].split("/"):
            continue
        if not row[0].endswith((".pyc", ".pyo")):
            writer.writerow(row)
    return text.getvalue().encode(errors="surrogateescape")
