"""What a tree must be like after a kill, before recovery and after it."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

from patchq.agent import state
from tests.agent.agent_lab import record_row, snapshot
from tests.torture.kill_lab import LISTED, Lab, Verb

RECORD = "demo-1.0.dist-info/RECORD"
# Imports what there is, as a program would, and says what each module and its bytecode hold.
_IMPORT = """
import importlib, json, os, sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
found = {}
for folder, _, files in os.walk(os.path.join(sys.argv[1], "demo")):
    for name in files:
        if name.endswith(".py"):
            path = os.path.relpath(os.path.join(folder, name), sys.argv[1])
            module = importlib.import_module(path[:-3].replace("/", "."))
            assert module.VALUE == module.LAST
            found[path] = module.VALUE
print(json.dumps(found))
"""


def contents(site: Path) -> dict[str, Any]:
    """Return kind, mode, owner and bytes of all but patchq's state and unlisted bytecode."""
    found = {}
    for folder, names, files in os.walk(site):
        names[:] = [name for name in names if name != ".patchq"]
        for name in [*names, *files]:
            path = Path(folder, name)
            if name == "__pycache__" or (name.endswith(".pyc") and path.stem not in LISTED):
                continue
            info = path.lstat()
            data: Any = None
            if path.is_symlink():
                data = os.readlink(path)
            elif path.is_file():
                data = path.read_bytes()
            mode = stat.filemode(info.st_mode)
            found[str(path.relative_to(site))] = (mode, info.st_uid, info.st_gid, data)
    return found


def everything(site: Path) -> dict[str, Any]:
    """Return the whole tree with inodes and times: to see that nothing at all was done."""
    found = {}
    for folder, names, files in os.walk(site):
        for name in [*names, *files]:
            path = Path(folder, name)
            info = path.lstat()
            text = path.read_bytes() if path.is_file() else None
            seen = (info.st_ino, info.st_mode, info.st_nlink, info.st_mtime_ns, text)
            # Taking the lock writes into its file and empties it again.
            found[str(path.relative_to(site))] = text if name == "lock" else seen
    return found


def fingerprint(site: Path) -> str:
    """Return a digest of a tree in which one run of a verb equals another.

    Names, kinds, modes, which names are one inode, and the bytes of all that has no time,
    no id and no process number in it.
    """
    first: dict[int, str] = {}
    rows = []
    for path in sorted(site.rglob("*")):
        name, info = str(path.relative_to(site)), path.lstat()
        same = first.setdefault(info.st_ino, name)
        text: Any = os.readlink(path) if path.is_symlink() else None
        if stat.S_ISREG(info.st_mode):
            data = path.read_bytes()
            own = ".patchq/" in same and not data.startswith((b"VALUE", b"demo/", b"#!", b"one"))
            text = (len(data) if path.name != "lock" else bool(data)) if own else data
        rows.append((name, stat.filemode(info.st_mode), same, text))
    return hashlib.sha256(repr(rows).encode()).hexdigest()


def rows(site: Path) -> dict[str, list[str]]:
    """Return RECORD: digest and size of each path."""
    with (site / RECORD).open(newline="") as file:
        return {row[0]: row[1:] for row in csv.reader(file)}


class Case:
    """One run of a verb on the site, which is put back first.

    `copied`: the site was copied since, and its inodes are others.
    """

    def __init__(self, lab: Lab, verb: Verb) -> None:
        self.lab, self.verb, self.site = lab, verb, lab.site
        lab.put(verb.before)
        self.copied = self.decided = self.pending = False
        self.was = snapshot(self.site)
        self.bytecode = {
            name: (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino)
            for name in LISTED
            if (path := self.site / f"demo/__pycache__/{name}.pyc").exists()
        }
        self.state = state.load(str(lab.home))
        self.ledger = self._receipts()
        kept = (self.state or {"originals": {}})["originals"]
        self.inodes = {
            path: (lab.home / "originals" / entry["name"]).lstat().st_ino
            for path, entry in kept.items()
            if entry["name"]
        }
        self.old, self.new = contents(verb.before), contents(verb.after)

    def whole(self) -> None:
        """Assert that each file is whole, and that RECORD lists it: at any moment at all.

        What is decided at this moment is what recovery must come to.
        """
        self.decided = (self.lab.home / "journal.go").exists()
        self.pending = self.decided or (self.lab.home / "journal").exists()
        now = contents(self.site)
        for path, found in now.items():
            if path != RECORD:
                assert found in (self.old.get(path), self.new.get(path)), path
        for path in self.old.keys() & self.new.keys():
            assert path in now, path
        listed = rows(self.site)
        files = {path for path, found in now.items() if found[3] is not None}
        assert files <= listed.keys()

    def settled(self) -> bool:
        """Assert that all is old, or all is new, and that everything agrees; return which."""
        now = contents(self.site)
        new = now != self.old
        assert now == (self.new if new else self.old)
        assert new == self.decided or not self.pending
        self._record()
        self._state(new)
        self._bytecode(new)
        if not new:
            assert _plain_inodes(snapshot(self.site), self.copied) == _plain_inodes(
                self.was, self.copied
            )
        elif self.verb.name == "pop" and not self.copied:
            inodes = {path: (self.site / path).lstat().st_ino for path in self.inodes}
            assert inodes == self.inodes
        return new

    def idle(self) -> None:
        """Assert that recovering once more does nothing."""
        before = everything(self.site)
        assert self.lab.recovered() == {"ok": {"outcome": "nothing", "paths": []}}
        assert everything(self.site) == before

    def _record(self) -> None:
        for path, (digest, size) in rows(self.site).items():
            full = self.site / path
            assert full.exists() or path.endswith(".pyc"), path  # kept with the originals
            if digest and full.exists():
                row = ",".join([path, digest, size])
                assert record_row(path, full.read_bytes()) == row

    def _state(self, new: bool) -> None:
        home, receipts = self.lab.home, self._receipts()
        assert len(receipts) == len(self.ledger) + new
        assert state.receipts(str(home))[1] is None
        found = state.load(str(home))
        if not new:
            assert found == self.state
        else:
            assert receipts[-1]["changes"]
            wanted = state.load(str(self.verb.after / ".patchq/demo"))
            assert _plain(found) == _plain(wanted)
        if found is not None:
            written = hashlib.sha256((self.site / RECORD).read_bytes()).hexdigest()
            assert found["dist_info"]["record"] == written
            texts = state.patches(str(home))
            assert set(texts) == {patch["sha256"] for patch in found["stack"]}
        kept = [*found["originals"].values(), *found["bytecode"].values()] if found else []
        names = {entry["name"] for entry in kept if entry["name"]}
        names |= {found["dist_info"]["original"]} if found else set()
        have = {str(path.relative_to(home)) for path in home.rglob("*")}
        own = {"state.json", "patches.json", "originals"} if found else set()
        wanted_names = own | {f"originals/{name}" for name in names}
        assert have - {"lock", "ledger.jsonl"} == wanted_names
        assert not (home / "lock").exists() or (home / "lock").read_bytes() == b""

    def _bytecode(self, new: bool) -> None:
        if not new:
            for name, was in self.bytecode.items():
                path = self.site / f"demo/__pycache__/{name}.pyc"
                now = path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino
                assert now[: 2 if self.copied else 3] == was[: 2 if self.copied else 3]
        done = subprocess.run(
            [sys.executable, "-ISc", _IMPORT, str(self.site)],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        texts = {path: (self.site / path).read_text() for path in json.loads(done.stdout)}
        assert json.loads(done.stdout) == {path: int(text[8]) for path, text in texts.items()}

    def _receipts(self) -> list[dict[str, Any]]:
        return state.receipts(str(self.lab.home))[0]


def _plain_inodes(tree: dict[str, Any], copied: bool) -> dict[str, Any]:
    """Return a snapshot without inodes, where a copy is compared."""
    if not copied:
        return tree
    return {
        path: (*found[:3], found[3][:2] if isinstance(found[3], tuple) else found[3])
        for path, found in tree.items()
    }


def _plain(found: dict[str, Any] | None) -> Any:
    """Return a state without what differs from one run to the next."""
    if found is None:
        return None
    kept = {
        path: {key: entry[key] for key in ("kind", "sha256", "mode", "executable", "name")}
        for path, entry in found["originals"].items()
    }
    stack = [{**patch, "receipt": ""} for patch in found["stack"]]
    keep = ("generation", "bytecode", "folders", "dist_info")
    return {**{key: found[key] for key in keep}, "originals": kept, "stack": stack}
