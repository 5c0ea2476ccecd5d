"""What `audit --verify` adds: every file of a distribution against what it should be.

The release store says what a file should be, RECORD only where it does not have the
release: who edits a file may edit RECORD, too. Files that the recorded stack changes are
compared with the queue's lock, or with the record where no lock is at hand.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from patchq.audit import bare
from patchq.audit.finding import Finding, Word, count, differs, some
from patchq.model import FileState, Sha256

Digests = Mapping[str, Sha256 | None]

STORE, RECORD = "release store", "RECORD"
# What an installer adds to a dist-info is no file of the release.
_INFO = ".dist-info/"


@dataclass(frozen=True, slots=True)
class Release:
    """A wheel's files by the release store: digests of all, and the paths of its texts."""

    name: str
    digests: Digests
    texts: frozenset[str]


@dataclass(frozen=True, slots=True)
class Seen:
    """What an environment has: digests by RECORD but for those that differ, and what is more.

    `blank` are files of which RECORD has no digest; `hashed` is the number of files that
    were read, `more` that of the files which differ and are not named here.
    """

    listed: Digests
    differs: Digests = field(default_factory=dict)
    added: Digests = field(default_factory=dict)
    hashed: int = 0
    blank: Digests = field(default_factory=dict)
    more: int = 0

    @property
    def found(self) -> dict[str, Sha256 | None]:
        """Path -> digest as it is there, None for a file that is listed and missing."""
        return {**self.listed, **self.blank, **self.differs, **self.added}


@dataclass(frozen=True, slots=True)
class Checked:
    """The outcome: against what, how many files, and path -> (expected, found)."""

    against: str
    release: str | None
    hashed: int
    edited: Mapping[str, tuple[Sha256 | None, Sha256 | None]]
    missing: Mapping[str, Sha256 | None]
    added: Mapping[str, Sha256 | None]
    unproven: tuple[str, ...] = ()
    more: int = 0

    @property
    def paths(self) -> tuple[str, ...]:
        """Every file that is not what it should be, or of which nobody knows."""
        return (*self.edited, *self.missing, *self.added, *self.unproven)

    def to_json(self) -> dict[str, object]:
        """Return what a row has of it."""
        return {
            "against": self.against,
            "against_release": self.release,
            "hashed": self.hashed,
            "edited": list(self.edited),
            "missing": list(self.missing),
            "added": list(self.added),
            "unproven": list(self.unproven),
            "more": self.more,
        }


def check(seen: Seen, stack: Mapping[str, FileState], releases: Iterable[Release]) -> Checked:
    """Compare with the release that comes nearest, of those that the store has."""
    each = [_against(seen, stack, one) for one in releases]
    return min(each, key=lambda one: len(one.paths)) if each else _against(seen, stack, None)


def _against(seen: Seen, stack: Mapping[str, FileState], release: Release | None) -> Checked:
    found = seen.found
    wanted = dict(seen.listed)
    if release is not None:
        wanted = {p: digest for p, digest in seen.listed.items() if _INFO in p}
        wanted |= {p: d for p, d in release.digests.items() if p in found or p in release.texts}
    wanted |= {path: state.sha256 for path, state in stack.items()}
    edited: dict[str, tuple[Sha256 | None, Sha256 | None]] = {}
    missing: dict[str, Sha256 | None] = {}
    added: dict[str, Sha256 | None] = {}
    unproven = tuple(sorted(seen.blank.keys() - wanted)) if release is None else ()
    for path in sorted(wanted.keys() | found.keys()):
        want, have = wanted.get(path), found.get(path)
        if path in unproven:
            continue
        if want == have:
            if path in seen.added and want is None:
                added[path] = have  # a link to nothing, or no file
        elif have is None:
            missing[path] = want
        elif want is None:
            added[path] = have
        else:
            edited[path] = want, have
    name = release.name if release else None
    against = STORE if release else RECORD
    return Checked(against, name, seen.hashed, edited, missing, added, unproven, seen.more)


def judged(finding: Finding, checked: Checked, recorded: bool) -> Finding:
    """Return the finding with what the check found; `recorded`: a stack is on record.

    What the finding names and explains already is left out.
    """
    explained = finding.word in (Word.UNRECORDED, Word.PARTIAL, Word.DRIFTED, Word.UNMANAGED)
    known = set(finding.paths) if explained else set()
    texts = [
        *(
            differs(p, FileState(want), FileState(have))
            for p, (want, have) in checked.edited.items()
            if p not in known
        ),
        *(f"{path} is missing" for path in checked.missing if path not in known),
        *(f"{path} was added" for path in checked.added if path not in known),
        *(f"RECORD has no digest of {path}" for path in checked.unproven if path not in known),
    ]
    if checked.more:
        texts.insert(0, f"{checked.more} more files are not as in RECORD, and were not named")
    if not texts:
        why = f"{finding.why}; verified against {_named(checked)}" if finding.why else ""
        return replace(finding, why=why) if not checked.paths else finding
    why = f"{some(texts)} (against {_named(checked)})"
    paths = tuple(dict.fromkeys((*finding.paths, *checked.paths)))
    if finding.word in (Word.INTERRUPTED, Word.ORPHANED, Word.DRIFTED, Word.UNMANAGED):
        return replace(finding, why=f"{finding.why}; also {why}", paths=paths)
    word = Word.DRIFTED if recorded else Word.UNMANAGED
    why = f"{why}; but for that it is {finding.word.value}: {finding.why}"
    mend = f"patchq diff -z {shlex.quote(checked.paths[0])}" if checked.paths else bare.REINSTALL
    return replace(finding, word=word, why=why, paths=paths, mend=mend)


def _named(checked: Checked) -> str:
    name = f" {checked.release}" if checked.release else ""
    return f"{checked.against}{name}, {count(checked.hashed, 'file', 'files')} hashed"
