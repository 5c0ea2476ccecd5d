"""The text of a patch file: a header, then the git-style diffs of files before and after."""

from __future__ import annotations

import re
from collections.abc import Mapping

from patchq.engine import cquote, lines, textdiff
from patchq.engine.apply import File
from patchq.model import Patch

_HUNK = re.compile(rb"^@@ -(\d+)((?:,\d+)?) \+(\d+)((?:,\d+)?) @@", re.MULTILINE)
_MODES = {False: 0o100644, True: 0o100755}


def patch(
    header: bytes,
    before: Mapping[str, File | None],
    after: Mapping[str, File | None],
    renamed: Mapping[str, str],
    *,
    context: int = 3,
) -> bytes:
    """Return a patch file: a header, kept as it is, then the git-style diffs.

    `renamed`: for a file's path in `after` its path in `before`. `context`: lines of it.
    """
    out = [header]
    left = set(renamed.values())
    for path, file in after.items():
        if path in renamed and file is not None:
            out.append(_renamed(before, renamed[path], path, file))
        elif not (path in left and file is None):
            out.append(_diff(before.get(path), file, path, context))
    return b"".join(out)


def _diff(before: File | None, after: File | None, path: str, context: int) -> bytes:
    return textdiff.unified(
        before and before[0],
        after and after[0],
        path,
        context=context,
        old_mode=_MODES[before[1]] if before else None,
        new_mode=_MODES[after[1]] if after else None,
    )


def _renamed(before: Mapping[str, File | None], source: str, path: str, file: File) -> bytes:
    """Return the diff of a file that gets another name, as git writes it."""
    was = before[source]
    assert was is not None
    names = [cquote.quote(f"{side}{name}") for side, name in (("a/", source), ("b/", path))]
    head = [f"diff --git {names[0]} {names[1]}"]
    if was[1] != file[1]:
        head += [f"old mode {_MODES[was[1]]:o}", f"new mode {_MODES[file[1]]:o}"]
    head += [f"rename from {cquote.quote(source)}", f"rename to {cquote.quote(path)}"]
    body = b""
    if was[0] != file[0]:
        whole = textdiff.unified(was[0], file[0], path)
        body = whole[whole.index(b"\n@@ ") + 1 :]
        head += [
            f"{mark} {name}{chr(9) * (' ' in name)}"
            for mark, name in zip(("---", "+++"), names, strict=True)
        ]
    return lines.encode("\n".join(head) + "\n") + body


def shifted(patch: Patch, offsets: Mapping[str, tuple[int, ...]]) -> bytes:
    """Return a patch file whose hunks lie elsewhere, and are else as they are.

    `offsets`: for each file that moved, by how many lines each of its hunks does.
    """
    moves = [
        move
        for one in patch.diffs
        for move in offsets.get((one.old if patch.reverse else one.new) or "", ())
        or (0,) * len(one.hunks)
    ]
    start = len(patch.header)
    left = iter(moves)

    def moved(found: re.Match[bytes]) -> bytes:
        move = next(left)
        places = (b"%d" % (int(found[at]) + move) for at in (1, 3))
        return b"@@ -%s%s +%s%s @@" % (next(places), found[2], next(places), found[4])

    return patch.text[:start] + _HUNK.sub(moved, patch.text[start:])
