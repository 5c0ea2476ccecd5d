"""Power that goes away: what a device has got, and the order in which it gets it.

A loop device's image is copied while its file system is mounted: the copy has what was
written to the device so far, and nothing of what only the page cache had. Mounted
elsewhere, it is what a machine finds after its power came back.

`faults` holds a trace of system calls against the rules of the transaction: what must be on
the disk before what may be done. It supposes less of a file system than ext4 gives: that
a file's bytes are kept by its fsync alone, and a name by the fsync of its folder alone.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.torture.kill_calls import Call

# commit=300: the file system's own clock, which saves what nobody fsynced, stands still.
OPTIONS = {
    "ordered": "commit=300",
    "writeback, without ext4's favours": "commit=300,data=writeback,noauto_da_alloc",
}
_NAMES = re.compile(r'"((?:[^"\\]|\\.)*)"')
_OPENED = re.compile(r"^\w+\(\d+<([^>]*)>")


def image(path: Path) -> Path:
    """Make a small, empty ext4 in a new file.

    Never in a file that was mounted before: its loop device may still be there, and be
    used again with what it had in mind.
    """
    with path.open("xb") as file:
        file.truncate(12 << 20)
    options = ["-q", "-F", "-b", "1024", "-J", "size=2", "-N", "1000", "-m", "0"]
    subprocess.run(["mkfs.ext4", *options, path], check=True, capture_output=True)
    return path


@contextlib.contextmanager
def mounted(path: Path, where: Path, options: str = "commit=300") -> Iterator[Path]:
    """Mount an image on a folder."""
    where.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-o", f"loop,{options}", path, where]
    subprocess.run(command, check=True, capture_output=True)
    try:
        lost = where / "lost+found"
        if lost.exists():
            lost.rmdir()
        yield where
    finally:
        subprocess.run(["umount", where], check=True, capture_output=True)


@dataclass
class Disk:
    """What a trace has made durable so far; paths are relative to the state's folder's site."""

    site: Path
    home: str
    unsynced: set[str] = field(default_factory=set)  # files whose bytes may be lost
    changed: dict[str, list[str]] = field(default_factory=dict)  # folder → names not yet kept
    synced: set[str] = field(default_factory=set)  # everything that was ever fsynced
    faults: list[str] = field(default_factory=list)

    def fault(self, what: str, call: Call) -> None:
        self.faults.append(f"{what}: {call.text}")

    def name(self, path: str) -> None:
        """Note that a name came or went."""
        self.changed.setdefault(os.path.dirname(path), []).append(path)

    def own(self, path: str) -> bool:
        return path.startswith(".patchq")

    def bytecode(self, path: str) -> bool:
        return path.endswith(".pyc") or "__pycache__" in path


def faults(calls: list[Call], site: Path, home: str = ".patchq/demo") -> list[str]:
    """Return where a trace did something before what it relies on was on the disk.

    A trace that begins with a journal there (recovery) relies on names that nobody may
    have fsynced: they are taken to be lost until the state's folder is fsynced.
    """
    disk = Disk(site, home)
    if any(os.path.lexists(site / home / name) for name in ("journal", "journal.go")):
        disk.changed[home] = [f"{home}/journal", f"{home}/journal.go"]
    originals = _replaced(calls, disk)
    for call in calls:
        if call.changing:
            _check(disk, call, originals)
    for folder in (home, f"{home}/originals"):
        names = {*disk.changed.get(folder, ())} - {
            f"{home}/{name}" for name in ("journal.new", "stage", "originals")
        }
        if names:
            disk.faults.append(f"at the end {names} in {folder} may be lost")
    return disk.faults


def _paths(disk: Disk, call: Call) -> list[str]:
    opened = _OPENED.match(call.text)
    found = [opened[1]] if opened else _NAMES.findall(call.text)
    prefix = f"{disk.site}/"
    return [
        "" if path == str(disk.site) else path.removeprefix(prefix)
        for path in found
        if path.startswith(prefix) or path == str(disk.site)
    ]


def _replaced(calls: list[Call], disk: Disk) -> set[str]:
    """Return the files of the package that a trace replaces or removes."""
    found = set()
    for call in calls:
        paths = _paths(disk, call) if call.changing else []
        if call.name in ("rename", "unlink") and paths and not disk.own(paths[-1]):
            found.add(paths[-1])
    return found


def _check(disk: Disk, call: Call, originals: set[str]) -> None:
    paths = _paths(disk, call)
    first, last = paths[0], paths[-1]
    journal, mark = f"{disk.home}/journal", f"{disk.home}/journal.go"
    stage, names = f"{disk.home}/stage", call.name
    if names in ("fsync", "fdatasync"):
        disk.synced.add(first)
        disk.unsynced.discard(first)
        disk.changed.pop(first, None)
        return
    live = not disk.own(last) and names in ("rename", "unlink", "rmdir", "mkdir")
    if live and {journal, mark} & {*disk.changed.get(disk.home, ())}:
        disk.fault("before journal and GO are on the disk", call)
    if live and not disk.bytecode(last) and disk.changed.get(stage) and names != "rmdir":
        made = [name for name in disk.changed[stage] if name.endswith((".old", ".new", ".plus"))]
        if made and not all(name == first for name in made):
            disk.fault(f"before second names and stages are on the disk ({made})", call)
    if names in ("rename", "link", "linkat") and first in disk.unsynced:
        disk.fault("gives a name to bytes that are not on the disk", call)
    if names in ("rename", "linkat", "link"):
        _named(disk, call, first, last, journal, originals)
    if names == "unlink" and last == journal:
        _all_kept(disk, call)
    if names == "unlink" and last == mark and disk.changed.get(f"{disk.home}/originals"):
        disk.fault("before the originals have their names on the disk", call)
    if names in ("rename", "link", "linkat", "unlink", "mkdir", "rmdir", "symlink"):
        moved = paths if names == "rename" else [last]
        for path in moved:
            # What is cleared away may come back: recovery knows it.
            if not (path.startswith(stage) and (names != "mkdir" and path != last)):
                disk.name(path)
            if names == "rename":
                disk.unsynced.discard(path)
        if names in ("unlink", "rmdir"):
            _forget(disk, last, stage)
    elif names.startswith("open"):
        if "O_CREAT" in call.text and "O_EXCL" in call.text:
            disk.name(first)
    else:
        disk.unsynced.add(first)


def _named(
    disk: Disk, call: Call, first: str, last: str, journal: str, originals: set[str]
) -> None:
    if last == journal:
        missing = {
            path
            for path in originals | _read_by_recovery(disk)
            if not disk.bytecode(path)
            and path not in disk.synced
            and (disk.site / path).is_file()
            and not (disk.site / path).is_symlink()
        }
        if missing:
            disk.fault(f"before the originals are on the disk ({sorted(missing)})", call)
    if last == f"{disk.home}/journal.go":
        lost = [path for path in disk.unsynced if path.startswith(f"{disk.home}/stage")]
        if lost or disk.changed.get(f"{disk.home}/stage"):
            disk.fault("GO before the stage is on the disk", call)
    if "/originals/" in last and journal in disk.changed.get(disk.home, ()):
        disk.fault("before it is on the disk that all is done", call)


def _read_by_recovery(disk: Disk) -> set[str]:
    return {str(path.relative_to(disk.site)) for path in disk.site.glob("*.dist-info/METADATA")}


def _all_kept(disk: Disk, call: Call) -> None:
    """The journal goes: all that it tells of must be there without it."""
    lost = [
        folder
        for folder, names in disk.changed.items()
        if not disk.own(folder) and not all(disk.bytecode(name) for name in names)
    ]
    if lost:
        disk.fault(f"before the names in {lost} are on the disk", call)
    unsynced = [path for path in disk.unsynced if path.endswith("ledger.jsonl")]
    if unsynced:
        disk.fault(f"before {unsynced} is on the disk", call)


def _forget(disk: Disk, path: str, stage: str) -> None:
    """A removed file has no bytes to lose; what is cleared from the stage is no loss either."""
    disk.unsynced.discard(path)
    disk.changed.pop(path, None)
    if path.startswith(stage):
        folder = os.path.dirname(path)
        kept = [name for name in disk.changed.get(folder, ()) if name != path]
        disk.changed[folder] = kept
        if not kept:
            disk.changed.pop(folder)
    if path == stage:
        disk.changed.pop(stage, None)
