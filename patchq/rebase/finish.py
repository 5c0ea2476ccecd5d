"""The end of a rebase: the new series, checked, locked, and put into the queue at once."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from patchq.engine.apply import File
from patchq.engine.verdict import Verdict
from patchq.model import FileState, Patch, sha256
from patchq.queue import lock as locks
from patchq.queue import patchfile, verdicts, writing
from patchq.queue import series as series_file
from patchq.queue import store as queues
from patchq.rebase import carry, progress
from patchq.rebase.step import Step, Word
from patchq.rebase.tree import Tree
from patchq.releases.store import Store

_FIELD = b"Applied-Upstream:"


@dataclass(frozen=True, slots=True)
class Series:
    """The series of the new release: its patches, their verdicts, and the old `series` file."""

    release: str
    patches: tuple[Patch, ...]
    verdicts: Mapping[str, Verdict]
    lines: bytes


def put(queue: queues.Queue, old: str, new: Series, store: Store, cache: Path) -> Path:
    """Put the new release's folder into the queue, as one change; return where it is.

    One that is there is replaced. The sketches that the old release has for itself come along.
    """
    heal(queue, new.release)
    tree = Tree(store, new.release)
    pinned = _lock(queue, new, tree, cache)
    place = queue.folder / new.release
    fresh, gone = _beside(place, "new"), _beside(place, "old")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    for patch in new.patches:
        (fresh / patch.name).parent.mkdir(parents=True, exist_ok=True)
        writing.write(fresh / patch.name, patch.text)
        own = next(
            (
                found
                for release in (new.release, old)
                if (found := queue.folder / release / f"{patch.stem}.pyi").is_file()
            ),
            None,
        )
        if own is not None:
            writing.write(fresh / own.name, own.read_bytes())
    writing.write(fresh / "series", new.lines)
    writing.write(fresh / "series.lock", pinned)
    if place.exists():
        shutil.rmtree(gone, ignore_errors=True)
        os.rename(place, gone)
    os.rename(fresh, place)
    progress.sync(queue.folder)  # before the rebase is forgotten
    shutil.rmtree(gone, ignore_errors=True)
    return place


def heal(queue: queues.Queue, release: str) -> None:
    """Put a series back that a killed rebase had taken away and not yet replaced."""
    place = queue.folder / release
    gone = _beside(place, "old")
    if gone.is_dir() and not place.exists():
        os.rename(gone, place)


def _beside(place: Path, word: str) -> Path:
    return place.with_name(f".{place.name}.{word}")


def _lock(queue: queues.Queue, new: Series, tree: Tree, cache: Path) -> bytes:
    """Return the lock of a series that gives what was judged, and keep the verdicts."""
    base: dict[str, File | None] = {}

    def pristine(path: str) -> File | None:
        if path not in base:
            base[path] = tree.file(path)
        return base[path]

    reads, found = {}, {}
    lookup = Tree(tree.store, new.release)
    for patch in new.patches:
        verdict = new.verdicts.get(patch.name) or _judge(patch, lookup)
        reads[patch.name] = {
            path: FileState.of(lookup.read(path)).sha256 for path in verdict.reads
        }
        found[patch.name] = verdict
        lookup.put(patch)
    pinned = locks.make(
        queue.distribution,
        new.release,
        tree.store.tree(new.release),
        new.patches,
        read=pristine,
        reads=reads,
    )
    kept = verdicts.VerdictCache(cache / "verdicts")
    for one in pinned.patches:
        verdict = found[one.name]
        kept.put(verdicts.of(one, new.release), {"holds": verdict.holds, **verdict.to_json()})
    return locks.format(pinned)


def _judge(patch: Patch, tree: Tree) -> Verdict:
    """Judge a patch on a tree that has those below it."""
    parsed = carry.intent(patch)
    return tree.judge(tree.put_aside(patch), parsed, patch.diffs)


def lines(old: bytes, steps: Sequence[Step], options: Mapping[str, str]) -> bytes:
    """Return the new `series`: the old one's lines, without what is left out."""
    parsed = series_file.parse(old)
    left = {step.name for step in steps if not step.word.carried}
    out = list(parsed.lines)
    for entry in parsed.entries:
        raw = out[entry.line - 1]
        if entry.name in left:
            out[entry.line - 1] = b""
        elif options.get(entry.name, "") != entry.options:
            end = b"\n" if raw.endswith(b"\n") else b""
            words = [
                entry.name,
                options.get(entry.name, ""),
                f"# {entry.comment}" * bool(entry.comment),
            ]
            out[entry.line - 1] = " ".join(filter(None, words)).encode() + end
    return b"".join(out)


def mark(queue: queues.Queue, old: str, steps: Sequence[Step]) -> Iterator[str]:
    """Fill in DEP-3's Applied-Upstream where upstream has a patch; yield what was written.

    The header's other lines stay as they are; a field that is there is left alone.
    """
    changed: dict[str, bytes] = {}
    for step in steps:
        if step.word is not Word.UPSTREAM or not step.since:
            continue
        path = queue.folder / old / step.name
        text = patchfile.read(path, step.name)
        new = _marked(text, f"{queue.distribution} {step.since}", step.name)
        if new != text:
            writing.write(path, new)
            changed[step.name] = new
            yield f"{path}: Applied-Upstream: {queue.distribution} {step.since}"
    pinned = queues.lock(queue, old) if changed else None
    if pinned is not None:
        patches = tuple(
            replace(one, patch=sha256(changed[one.name])) if one.name in changed else one
            for one in pinned.patches
        )
        writing.write(
            queue.folder / old / "series.lock", locks.format(replace(pinned, patches=patches))
        )


def _marked(text: bytes, value: str, name: str) -> bytes:
    """Return a patch's text with the field behind the last of its header's first paragraph."""
    from patchq.engine import diff

    header, _ = diff.parse(text, name=name)
    if re.search(rb"^Applied-Upstream:", header, re.MULTILINE | re.IGNORECASE):
        return text
    end = re.search(rb"^(?:---)?[ \t]*\r?$", header, re.MULTILINE)
    at = end.start() if end else len(header)
    head = text[:at]
    newline = b"" if not head or head.endswith(b"\n") else b"\n"
    return head + newline + _FIELD + b" " + value.encode() + b"\n" + text[at:]
