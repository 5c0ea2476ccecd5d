"""The renames of a transaction, forward and back.

Both directions may be stopped anywhere and run again. Forward runs only after
the decision (``journal.go``), back only without it. `patchq.agent.transact` and
`patchq.agent.recover` use the same functions, so that what a crash test proves of
one holds for the other.
"""

from __future__ import annotations

import contextlib
import os
import stat
from typing import Collection, List, NamedTuple, Optional, Tuple

from patchq.agent import bytecode, facts, grafts, journal, lock, stage
from patchq.agent.facts import RefusalError
from patchq.agent.journal import Entry, Journal


class Ground(NamedTuple):
    """Where a transaction happens: site-packages and the state's folder."""

    site: str
    home: str

    @property
    def stage(self) -> Tuple[str, str]:
        """Site-packages, and the folder where new files wait."""
        return self.site, self.home + "/stage"

    def live(self, entry: Entry) -> str:
        """Return the absolute path of an entry."""
        return self.site + "/" + entry.path

    def staged(self, name: Optional[str]) -> Optional[str]:
        """Return the absolute path of a name in stage/, None for none and for one that is gone."""
        full = None if name is None else self.home + "/stage/" + name
        return full if full is not None and facts.exists(full) else None

    def kept(self, name: str) -> str:
        """Return the absolute path of a name in originals/."""
        return self.home + "/originals/" + name


def forward(
    ground: Ground, found: Journal, force: bool = False, linked: Collection[str] = ()
) -> None:
    """Do the renames that are not done, then bytecode, ledger and barrier 2.

    `linked`: paths whose second name is the very inode that must still be there. Another
    one with the same bytes is an installer's.
    """
    grafts.fill(*ground.stage, found.entries)
    taken = False
    for entry in found.entries:
        if not taken and entry.role == "file" and entry.after["kind"] == "absent":
            grafts.take(
                *ground.stage, found, grafts.is_removed, lambda one: _is_gone(ground, one, force)
            )
            taken = True
        if not grafts.is_removed(entry):
            _swap(ground, entry, force, entry.path in linked)
    receipt = ground.staged("receipt")
    if receipt is not None:
        journal.append(ground.home, found.ledger, facts.read(receipt))
    _sweep(ground, found)
    stage.sync_parents(map(ground.live, found.entries))


def settle(ground: Ground, found: Journal) -> None:
    """Turn second names into originals, drop the rest, the journal first and GO last."""
    journal.finish(ground.home)
    for entry in found.entries:
        old = ground.staged(entry.old)
        if old is not None and entry.keep is not None:
            os.rename(old, ground.kept(entry.keep))
        if entry.gives is not None:
            journal.remove(ground.kept(entry.gives))
    for name in found.drop:
        journal.remove(ground.kept(name))
    _sweep(ground, found)  # again: a process that read a module meanwhile may have written one
    if facts.is_folder(ground.home + "/originals"):
        stage.sync(ground.home + "/originals")
    clear_stage(ground)
    journal.revoke(ground.home)


def undo(ground: Ground, found: Journal, force: bool = False, renamed: bool = True) -> None:
    """Give every name back what it had, last first; the journal goes last.

    Where nothing was `renamed` yet, only RECORD can have other rows. It lists every file at any
    moment here, too: rows that were added it gets again first, and what it had last.

    Raises:
        RefusalError: somebody else's file is where one should go back; what was there
            before keeps its second name, and the journal stays.
    """
    widened = [entry for entry in found.entries if entry.plus is not None]
    for entry in widened:
        if ground.staged(plus(entry)) and _is_after(ground, entry, force):
            os.rename(str(ground.staged(plus(entry))), ground.live(entry))
    stuck = _give_back(ground, found, force) if renamed else []
    stuck += [entry.path for entry in widened if not _restore(ground, entry, force)]
    stage.sync_parents(map(ground.live, found.entries))
    if stuck:
        raise RefusalError(
            "interrupted",
            "the %s could not be undone whole: %s" % (found.verb, ", ".join(stuck)),
            "somebody else wrote there; what was there before is kept in %s/stage" % ground.home,
            "patchq recover",
        )
    clear_stage(ground)
    journal.remove(os.path.join(ground.home, "journal"))
    stage.sync(ground.home)


def _give_back(ground: Ground, found: Journal, force: bool) -> List[str]:
    """Give all names back but RECORD's; return those where somebody else wrote."""
    grafts.put_back(*ground.stage, found.entries)
    for entry in found.entries:
        if grafts.is_removed(entry):
            live = ground.live(entry)
            stage.make_folder(live, entry.before, os.path.dirname(live))
    grafts.take(*ground.stage, found, grafts.is_made, lambda one: _is_after(ground, one, force))
    mine = [e for e in reversed(found.entries) if e.role != "folder" and e.plus is None]
    stuck = [entry.path for entry in mine if not _restore(ground, entry, force)]
    back = {e.path for e in found.entries if e.role == "bytecode" and e.before["sha256"]}
    bytecode.sweep(ground.site, found.modules, back)
    for entry in reversed(found.entries):
        if grafts.is_made(entry) and ground.staged(entry.new) is None:
            grafts.remove(ground.live(entry))
    journal.cut(ground.home, found.ledger)
    return stuck


def plus(entry: Entry) -> str:
    """Return the name in stage/ of RECORD with added rows."""
    return str(entry.old) + ".plus"


def strangers(ground: Ground, found: Journal) -> List[str]:
    """Return the paths whose content is neither from before nor from after."""
    return [entry.path for entry in found.entries if not is_ours(ground, entry)]


def clear_stage(ground: Ground) -> None:
    """Remove what is left in stage/, and folders of the state that nothing needs."""
    folder = ground.home + "/stage"
    for name in journal.names(folder):
        full = os.path.join(folder, name)
        if stat.S_ISDIR(os.lstat(full).st_mode):
            grafts.clear(full)
        else:
            os.unlink(full)
    done = [folder]
    if not facts.exists(ground.home + "/state.json") and not journal.names(ground.kept("")):
        done.append(ground.home + "/originals")
    for folder in done:
        with contextlib.suppress(FileNotFoundError):
            os.rmdir(folder)


def _swap(ground: Ground, entry: Entry, force: bool, linked: bool) -> None:
    """Bring one entry to its after-state, if it is not there."""
    live, new = ground.live(entry), ground.staged(entry.new)
    if entry.after["kind"] == "absent":
        if facts.exists(live):
            _expect_before(ground, entry, force, linked)
            os.unlink(live)
    elif new is not None:
        if entry.role == "folder" and facts.is_folder(live):
            os.rmdir(new)
        elif _same(new, live):
            os.unlink(new)  # rename between two names of one inode does nothing (POSIX)
        else:
            _expect_before(ground, entry, force, linked)
            if entry.role == "bytecode":
                _make_parents(live)  # somebody removed __pycache__
            os.rename(new, live)


def _restore(ground: Ground, entry: Entry, force: bool) -> bool:
    """Bring one entry back to its before-state, if we took it from there.

    What somebody else put there meanwhile (an installer) stays, unless forced. Return
    False where that leaves `old` as the only copy of what we took away.
    """
    live, new, old = ground.live(entry), ground.staged(entry.new), ground.staged(entry.old)
    if old is not None:
        if _same(old, live) or journal.is_apart(entry, facts.look(old)[0]):
            os.unlink(old)  # rename between two names of one inode does nothing (POSIX)
        elif _is_after(ground, entry, force):
            if force:
                _make_parents(live)
            os.rename(old, live)
        elif new is not None or entry.role in ("own", "bytecode") or _is_before(live, entry):
            os.unlink(old)  # we put nothing there yet, or it is as it was
        else:
            return False
    elif (
        entry.before["kind"] == "absent"
        and new is None
        and facts.exists(live)
        and _is_after(ground, entry, force)
    ):
        os.unlink(live)
    if new is not None:
        os.unlink(new)
    return True


def _expect_before(ground: Ground, entry: Entry, force: bool, linked: bool) -> None:
    """Compare right before the swap: somebody else may have written meanwhile."""
    live, old = ground.live(entry), ground.staged(entry.old)
    if force or entry.role in ("own", "bytecode"):
        return
    if old is not None and _same(old, live):
        return
    there = facts.look(live)[0]
    if entry.plus and there.sha256 == entry.plus:
        return
    if not linked and journal.matches(there, entry.before):
        return
    raise RefusalError(
        "changed",
        "%s changed while patchq was at work" % entry.path,
        "it is neither what was surveyed nor what was to be put there",
        "run the command again",
    )


def is_ours(ground: Ground, entry: Entry) -> bool:
    """Return whether a path holds what was there before, or what was to be put there."""
    live = ground.live(entry)
    if entry.role in ("own", "bytecode", "folder"):
        return True
    old, new = ground.staged(entry.old), ground.staged(entry.new)
    if (old is not None and _same(old, live)) or (new is not None and _same(new, live)):
        return True
    if _is_given(ground, entry):
        return True
    there = facts.look(live)[0]
    return there.sha256 == (entry.plus or "") or journal.is_of(there, entry)


def _is_after(ground: Ground, entry: Entry, force: bool) -> bool:
    """Return whether what is at a path is ours to take back."""
    live = ground.live(entry)
    if force:
        return True
    if not facts.is_folder(os.path.dirname(live)):
        return False
    if entry.role in ("own", "bytecode") or _is_given(ground, entry):
        return True
    there = facts.look(live)[0]
    if entry.plus is not None and there.sha256 == entry.plus:
        return True
    if entry.before == entry.after:  # the same bytes in a file of their own, once it is there
        return entry.new is not None and ground.staged(entry.new) is None
    return journal.matches(there, entry.after) and not journal.matches(there, entry.before)


def _is_before(live: str, entry: Entry) -> bool:
    return journal.matches(facts.look(live)[0], entry.before)


def _is_given(ground: Ground, entry: Entry) -> bool:
    """Return whether the inode at a path is the original that was given back.

    Whatever its mode is now: a file of many names may have got another one elsewhere.
    """
    return entry.gives is not None and _same(ground.kept(entry.gives), ground.live(entry))


def _sweep(ground: Ground, found: Journal) -> None:
    """Remove compiled files of touched modules, but those just given back; then their folders."""
    given = {e.path for e in found.entries if e.role == "bytecode" and e.after["sha256"]}
    bytecode.sweep(ground.site, found.modules, given)
    for entry in reversed(found.entries):
        if grafts.is_removed(entry):
            grafts.remove(ground.live(entry))


def _is_gone(ground: Ground, entry: Entry, force: bool) -> bool:
    """Return whether an entry is a file that is to go, and is as it was."""
    return entry.after["kind"] == "absent" and (force or _is_before(ground.live(entry), entry))


def _same(one: str, other: str) -> bool:
    first, second = facts.status(one), facts.status(other)
    return first is not None and second is not None and os.path.samestat(first, second)


def _make_parents(live: str) -> None:
    """Make the folders again that a file needs that must go back, like the nearest one."""
    parent = os.path.dirname(live)
    if not facts.is_folder(parent):
        _make_parents(parent)
        lock.make_folder(parent, os.stat(os.path.dirname(parent)))
