"""Commit: many files change, all or none, whatever happens in between.

The order is that of docs/design (transaction, "minimal order"): lock · verify ·
fsync the originals · journal · RECORD's second name and added rows · stage ·
second names · GO · renames · bytecode · read back · second names become
originals · journal and GO go. An error before GO undoes; one after it takes GO
back, then undoes; one while clearing up is told as `pending`, never undone.
"""

from __future__ import annotations

import binascii
import contextlib
import os
from typing import Any, Dict, Mapping, Optional, Set

from patchq.agent import (
    changes,
    environment,
    facts,
    journal,
    lock,
    processes,
    receipt,
    recover,
    renames,
    scan,
    stage,
    state,
    verify,
)
from patchq.agent.changes import Changes
from patchq.agent.environment import Environment
from patchq.agent.facts import RefusalError
from patchq.agent.journal import Entry, Journal
from patchq.agent.renames import Ground


def commit(request: Mapping[str, Any], blobs: Mapping[str, bytes]) -> Dict[str, Any]:
    """Do what the request says, wholly or not at all; return receipt and what was kept."""
    here = environment.locate(request)
    if here.refusal is not None:
        raise here.refusal
    verify.form(request)
    who = str(request["receipt"].get("who") or environment.user())
    told = {"who": who, "host": os.uname().nodename, "pid": os.getpid(), "since": scan.now()}
    if facts.is_folder(here.home):
        verify.same_as_surveyed(here)
    with lock.Lock(here.home, told) as held:
        recover.clear_up(here)
        receipt.unsettled(request, state.ledger(here.home))
        verify.same_as_surveyed(here)
        verify.expected(here, request)
        verify.contents(here, request, blobs)
        found = verify.befores(here, request)
        verify.room(here, request, blobs)
        planned = changes.plan(here, request, found, blobs)
        verify.reachable(here.site, planned.entries, planned.modules)
        done = _Transaction(here, request, blobs, planned, told, held).run()
    return dict(done, running=processes.running(here, True) if request.get("running") else None)


# What an undo and the clearing up may meet: their failure is told, never hidden by another.
_FAILURES = (
    OSError,
    RefusalError,
    ArithmeticError,
    LookupError,
    MemoryError,
    TypeError,
    ValueError,
)


class _Transaction:
    """One commit from its plan to its receipt; the methods are the steps, in order."""

    def __init__(
        self,
        here: Environment,
        request: Mapping[str, Any],
        blobs: Mapping[str, bytes],
        planned: Changes,
        told: Mapping[str, Any],
        held: lock.Lock,
    ) -> None:
        assert here.installed is not None
        self.here, self.request, self.blobs, self.planned = here, request, blobs, planned
        self.ground, self.held = Ground(here.site, here.home), held
        self.told = dict(told, whence=request["receipt"].get("whence") or told["host"])
        self.ledger = state.ledger(here.home)
        self.kept: Dict[str, str] = {}
        self.linked: Set[str] = set()
        self.decided = False
        self.mtime = receipt.second(planned.entries, here, self.ledger)
        self.dist_info = os.path.join(here.site, here.installed.folder)
        self.handle = os.open(self.dist_info, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
        with facts.named(self.dist_info):
            info = os.fstat(self.handle)
        identity = {
            "name": here.installed.folder,
            "metadata": here.installed.metadata,
            "inode": [info.st_dev, info.st_ino],
        }
        self.journal = Journal(
            id=request.get("id") or binascii.hexlify(os.urandom(8)).decode(),
            verb=str(request["receipt"]["verb"]),
            since=told["since"],
            who=told["who"],
            generation=here.state["generation"] if here.state else 0,
            dist_info=identity,
            ledger=len(self.ledger),
            modules=tuple(planned.modules),
            drop=tuple(planned.drop),
            entries=tuple(planned.entries) + changes.own(here, planned),
        )

    def run(self) -> Dict[str, Any]:
        """Run all steps; undo on any failure before the end of the renames."""
        home, ground = self.here.home, self.ground
        with self:
            self.held.check()
            self._prepare()
            written = self._stage()
            self.held.check()
            verify.no_installer(self.handle, ground, self.journal, renamed=False)
            self.decided = True
            journal.go(home)
            renames.forward(ground, self.journal, linked=self.linked)
            verify.read_back(ground, self.journal)
            verify.no_installer(self.handle, ground, self.journal, renamed=True)
        pending = None
        try:
            renames.settle(ground, self.journal)
        except _FAILURES as error:
            pending = "done; clearing up is left to the next command (%s)" % error
        return {
            "receipt": written,
            "kept": self.kept,
            "pending": pending,
            "notes": self.planned.notes,
            "generation": self.planned.state["generation"] if self.planned.state else 0,
        }

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: Optional[BaseException], trace: object) -> None:
        """Undo what was done where a step failed, whatever the failure is."""
        with contextlib.suppress(OSError):  # it was only read, and there may be an undo to do
            os.close(self.handle)
        if error is not None:
            self._undo(error)

    def _prepare(self) -> None:
        """Make the originals durable, then the journal, then RECORD's added rows."""
        home = self.here.home
        for entry in self.journal.entries:
            if entry.old is not None and entry.before["kind"] == "file" and entry.role != "own":
                stage.sync(self.ground.live(entry))
        metadata = os.path.join(self.dist_info, "METADATA")
        if facts.exists(metadata) and not facts.is_link(metadata):
            stage.sync(metadata)  # recovery knows the distribution by it
        like = os.stat(home)
        lock.make_folder(home + "/originals", like)
        lock.make_folder(home + "/stage", like)
        if not self.ledger:
            stage.sync(self.here.site)
            stage.sync(os.path.dirname(home))
        journal.write(home, self.journal)
        for entry in self.journal.entries:
            if entry.role == "record" and self.planned.record_plus is not None:
                live, plus = self.ground.live(entry), self._name(renames.plus(entry))
                self.kept[entry.path] = stage.second_name(live, self._name(entry.old))
                verify.second_name(self._name(entry.old), entry)
                stage.write(plus, self.planned.record_plus, entry.before, like=live)
                # It keeps a name here: an undo puts these rows back before it moves a file.
                stage.second_name(plus, plus + ".live")
                stage.sync(home + "/stage")
                os.rename(plus + ".live", live)
                stage.sync(self.dist_info)

    def _stage(self) -> Dict[str, Any]:
        """Make every new file and second name, then state and receipt; barrier 1."""
        with stage.Unsynced() as unsynced:
            for entry in self.journal.entries:
                if entry.role != "own" and entry.new is not None:
                    self._stage_new(entry, unsynced)
        for entry in self.journal.entries:
            if entry.old is not None and self.ground.staged(entry.old) is None:
                self._second_name(entry)
        written = receipt.make(
            self.here, self.request, self.journal, self.planned, self.kept, self.mtime, self.ledger
        )
        own, next_state = {"receipt": state.dump(written)}, self.planned.state
        if next_state is not None:
            next_state["environment"] = written["environment"]
            for path, kept in next_state["originals"].items():
                kept.setdefault("kept", self.kept.get(path))
                if path in self.planned.pristine:
                    kept["mtime_ns"] = self.mtime * 10**9  # what it was written with
            for patch in next_state["stack"]:
                patch["receipt"] = patch.get("receipt") or written["id"]
            known = dict(state.patches(self.here.home), **self.blobs)
            texts = {name: known[name] for name in self.request.get("patches") or ()}
            own["state.json"] = state.dump(next_state)
            own["patches.json"] = state.pack_patches(texts)
        with stage.Unsynced() as unsynced:
            for name, data in own.items():
                self._own(name, data, unsynced)
        stage.sync(self.here.home + "/stage")
        return written

    def _stage_new(self, entry: Entry, unsynced: stage.Unsynced) -> None:
        name, live = self._name(entry.new), self.ground.live(entry)
        data = self.planned.contents.get(entry.path)
        if entry.role == "folder":
            stage.make_folder(name, entry.after, _existing(os.path.dirname(live)))
        elif data is None and entry.gives is not None:
            kept = stage.second_name(self.ground.kept(entry.gives), name)
            first = (self.here.state or {}).get("originals", {}).get(entry.path, {}).get("kept")
            self.kept[entry.path] = kept if first is None or kept == "copy" else first
        else:
            assert data is not None
            like = None if entry.before["kind"] == "absent" else live
            mtime = self.planned.mtimes.get(entry.path, self.mtime * 10**9)
            if entry.path in self.planned.copied:
                first = self.planned.copied[entry.path]
                self.kept[entry.path] = "pristine" if first is None else "copy"
                like = like if first is None else self.ground.kept(first)
            stage.write(
                name,
                data,
                entry.after,
                mtime=None if entry.role == "record" else mtime,
                like=like,
                folder=_existing(os.path.dirname(live)) if like is None else None,
                unsynced=unsynced,
            )

    def _second_name(self, entry: Entry) -> None:
        old, live = self._name(entry.old), self.ground.live(entry)
        pristine = self.planned.pristine.get(entry.path)
        if pristine is not None:
            mode = (
                self.planned.state["originals"][entry.path] if self.planned.state else entry.before
            )
            like = live if entry.before["kind"] != "absent" else None
            stage.write(old, pristine, mode, mtime=self.mtime * 10**9, like=like)
            self.kept[entry.path] = "pristine"
            return
        kept = stage.second_name(live, old)
        verify.second_name(old, entry)
        # An overlay gives a file that it copied up for this another number than its new name.
        if kept == "inode" and os.path.samestat(os.lstat(old), os.lstat(live)):
            self.linked.add(entry.path)
        if entry.keep is not None:
            self.kept[entry.path] = kept

    def _own(self, name: str, data: bytes, unsynced: stage.Unsynced) -> None:
        """Stage a file of the state, with owner, group and mode of its folder."""
        path = self._name(name)
        handle = lock.own_file(self.here.home, path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        with facts.opened(path, handle):
            journal.write_all(handle, data)
            unsynced.add(path, handle)

    def _undo(self, error: BaseException) -> None:
        home = self.here.home
        try:
            if self.decided:  # the mark goes first, without a look: then nothing goes forward
                journal.revoke(home)
            journal.remove(home + "/journal.new")
            if facts.exists(home + "/journal") and recover.lost(self.ground, self.journal):
                recover.set_aside(self.here, self.told, self.journal)
            else:
                renames.undo(self.ground, self.journal, renamed=self.decided)
        except _FAILURES as failure:
            raise RefusalError(
                "interrupted",
                "%s failed, and so did its undo" % self.journal.verb,
                "%s; then %s" % (_said(error), _said(failure)),
                "patchq recover",
            ) from error

    def _name(self, name: Optional[str]) -> str:
        assert name is not None
        return self.here.home + "/stage/" + name


def _said(error: BaseException) -> str:
    if isinstance(error, RefusalError):
        return "%s (%s)" % (error.what, error.why)
    return "%s: %s" % (type(error).__name__, error)


def _existing(folder: str) -> str:
    while not facts.is_folder(folder):
        folder = os.path.dirname(folder)
    return folder
