"""`series.lock`: the facts of one series on one release, which a push recomputes.

JSON, UTF-8, schema 1, one path a line, so that git's diffs and merges stay small::

    {
      "schema": 1,
      "distribution": "vllm",
      "release": "0.16.0",
      "tree": "<id of the release's text tree in the store>",
      "patches": [
        {
          "name": "10-a.patch", "options": "-p0 -R",
          "patch": "<sha256>", "sketch": "<sha256>" or null,
          "changes": [
            ["vllm/a.py", ["file", false, "<sha256>"], ["absent", false, null]]
          ],
          "reads": {
            "vllm/b.py": "<sha256>" or null
          }
        }
      ]
    }

Names that are not UTF-8 are written as ``\\udcXX`` escapes. It holds no verdicts:
whoever can edit it could vouch for anything. `parse` trusts nothing in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NoReturn

from patchq.engine import apply
from patchq.errors import ConflictError, PatchqError
from patchq.model import (
    FileState,
    Lock,
    LockedPatch,
    Patch,
    PathChange,
    Series,
    Sha256,
    safe_path,
    sha256,
)
from patchq.queue import series as series_file

SCHEMA = 1
_DIGEST = re.compile(r"[0-9a-f]{64}")


class LockError(PatchqError):
    """A series.lock that patchq cannot read."""


class UnfitPatchError(ConflictError):
    """A patch does not fit on the release with the patches below it."""


def make(
    distribution: str,
    release: str,
    tree: str,
    patches: Iterable[Patch],
    *,
    read: Callable[[str], apply.File | None],
    reads: Mapping[str, Mapping[str, Sha256 | None]] | None = None,
) -> Lock:
    """Return the lock of `patches`, applied one on the other to what `read` returns.

    `reads` has the untouched files that each patch's verdict consulted.

    Raises:
        UnfitPatchError: some patch does not fit; nothing was written anywhere.
    """
    files: dict[str, apply.File | None] = {}
    locked = []
    for patch in patches:
        result = apply.apply_patch(
            patch, lambda path: files[path] if path in files else read(path)
        )
        if isinstance(result, apply.PatchRejected):
            raise UnfitPatchError(
                f"{patch.name} does not fit on {distribution} {release}",
                why=result.message,
                mend=f"correct {patch.name}, or the order of the series",
            )
        files.update(result.after)
        locked.append(
            LockedPatch(
                patch.name,
                series_file.options(patch.strip, patch.reverse),
                sha256(patch.text),
                None if patch.sketch is None else sha256(patch.sketch),
                result.changes,
                dict((reads or {}).get(patch.name, {})),
            )
        )
    return Lock(distribution, release, tree, tuple(locked))


def stale(lock: Lock, series: Series) -> str | None:
    """Return the first thing in which the series is not what the lock was made of, or None."""
    return compare(
        lock,
        [
            (
                patch.name,
                series_file.options(patch.strip, patch.reverse),
                sha256(patch.text),
                None if patch.sketch is None else sha256(patch.sketch),
            )
            for patch in series.patches
        ],
    )


def covers(lock: Lock, series: Series, count: int) -> bool:
    """Return whether the lock is of the lowest `count` patches of the series, as they are."""
    part = min(count, len(lock.patches))
    lowest = replace(series, patches=series.patches[: len(lock.patches)])
    return part == count and stale(lock, lowest) is None


def compare(lock: Lock, found: Sequence[tuple[str, str, Sha256, Sha256 | None]]) -> str | None:
    """Return the first thing in which name, options, patch and sketch digests differ, or None."""
    for pinned, (name, options, patch, sketch) in zip(lock.patches, found, strict=False):
        if pinned.name != name:
            return f"the lock has {pinned.name} where the series has {name}"
        if pinned.options != options:
            return f"{name}: the lock has options {pinned.options!r}, the series {options!r}"
        if pinned.patch != patch:
            return f"{name} was edited after the lock was written"
        if pinned.sketch != sketch:
            return f"the sketch of {name} was edited, added or removed after the lock was written"
    if len(lock.patches) != len(found):
        return f"the lock has {len(lock.patches)} patches, the series {len(found)}"
    return None


def format(lock: Lock) -> bytes:
    """Return the text of a series.lock; equal locks give equal bytes."""
    head = [
        "{",
        f'  "schema": {SCHEMA},',
        f'  "distribution": {json.dumps(lock.distribution)},',
        f'  "release": {json.dumps(lock.release)},',
        f'  "tree": {json.dumps(lock.tree)},',
    ]
    patches = ",\n".join(_format_patch(patch) for patch in lock.patches)
    body = f'  "patches": [\n{patches}\n  ]' if patches else '  "patches": []'
    return ("\n".join(head) + "\n" + body + "\n}\n").encode()


def parse(data: bytes, *, name: str = "series.lock") -> Lock:
    """Return what the text of a series.lock says; `name` is for messages.

    Raises:
        LockError: not JSON, a merge conflict in it, a newer schema, a value of the wrong kind.
        UnsafePath: a path outside the package.
    """
    if re.search(rb"^<<<<<<< ", data, re.MULTILINE):
        raise _error(name, "git left a merge conflict in it")
    try:
        document = json.loads(data, object_pairs_hook=_once)
        schema = document["schema"]
        if schema != SCHEMA:
            raise _error(name, f"its schema is {schema!r}; this patchq knows {SCHEMA}")
        return Lock(
            _text(document["distribution"]),
            _text(document["release"]),
            _text(document["tree"]),
            tuple(_parse_patch(patch, name) for patch in document["patches"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _error(name, f"{type(error).__name__}: {error}") from error


def _error(name: str, why: str) -> LockError:
    return LockError(f"{name} cannot be read", why=why, mend="patchq lint --write")


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object whose keys are all different."""
    document = dict(pairs)
    if len(document) != len(pairs):
        raise ValueError("a key is there twice")
    return document


def _text(value: object) -> str:
    return value if isinstance(value, str) else _not(value, "text")


def _digest(value: object) -> Sha256:
    if isinstance(value, str) and _DIGEST.fullmatch(value):
        return Sha256(value)
    return _not(value, "a sha256")


def _not(value: object, kind: str) -> NoReturn:
    raise ValueError(f"{value!r} is not {kind}")


def _parse_patch(value: Mapping[str, object], source: str) -> LockedPatch:
    """Return one patch of the document."""
    sketch, changes, reads = value["sketch"], value["changes"], value["reads"]
    if not isinstance(changes, list) or not isinstance(reads, dict):
        _not(value, "a patch")
    return LockedPatch(
        safe_path(_text(value["name"]), source=source),
        _text(value["options"]),
        _digest(value["patch"]),
        None if sketch is None else _digest(sketch),
        tuple(
            PathChange(safe_path(_text(path), source=source), _state(before), _state(after))
            for path, before, after in changes
        ),
        {
            safe_path(path, source=source): None if digest is None else _digest(digest)
            for path, digest in reads.items()
        },
    )


def _state(value: object) -> FileState:
    """Return a file's state; only what `FileState.to_json` can write is one."""
    match value:
        case ["absent", False, None]:
            return FileState(None)
        case ["file", bool(executable), digest]:
            return FileState(_digest(digest), executable)
        case _:
            return _not(value, "the state of a file")


def _format_patch(patch: LockedPatch) -> str:
    """Return one patch of the document."""
    changes = [
        json.dumps([change.path, change.before.to_json(), change.after.to_json()])
        for change in patch.changes
    ]
    reads = [
        f"{json.dumps(path)}: {json.dumps(digest)}" for path, digest in sorted(patch.reads.items())
    ]
    lines = [
        f'      "name": {json.dumps(patch.name)},',
        f'      "options": {json.dumps(patch.options)},',
        f'      "patch": {json.dumps(patch.patch)},',
        f'      "sketch": {json.dumps(patch.sketch)},',
        f'      "changes": {_listed("[]", changes)},',
        f'      "reads": {_listed("{}", reads)}',
    ]
    return "    {\n" + "\n".join(lines) + "\n    }"


def _listed(braces: str, rows: Sequence[str]) -> str:
    """Return rows between braces, one a line."""
    body = ",\n".join(f"        {row}" for row in rows)
    return f"{braces[0]}\n{body}\n      {braces[1]}" if rows else braces
