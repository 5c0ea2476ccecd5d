"""Hunks that lie in another class or def than they were made for.

What follows a hunk's second ``@@`` names the class or def around it: git's default
and GNU diff's ``-p`` give the last line that begins at column 0, git's Python
driver and this project the last class or def line. Either is accepted; a heading
that is no class or def, or none, says nothing. GNU patch ``-F0`` and git-apply(1)
both put a hunk into the wrong class where two classes share a body, and exit 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from patchq.engine import lines, trees
from patchq.engine.verdict import Finding
from patchq.model import FileDiff, Hunk

_DEF = re.compile(rb"[ \t]*(?:class|(?:async[ \t]+)?def)[ \t]")
_NAME = re.compile(rb"(?:class|(?:async[ \t]+)?def)[ \t]+\w+")
# GNU diff cuts a heading at 40 bytes, git at 80; both then drop blanks at the end.
_CUT = 36


def check(
    before: Mapping[str, bytes | None],
    after: Mapping[str, bytes | None],
    diffs: Sequence[FileDiff],
    *,
    by_name: bool = False,
) -> Iterator[Finding]:
    """Yield the hunks whose heading is not around the place where they lie.

    `by_name`: the patch was made for another text, where the class or def of that name
    may have other bases or parameters.
    """
    for diff in diffs:
        if diff.old is None or not diff.old.endswith((".py", ".pyi")):
            continue
        # A patch that is applied in reverse has its old side above, not below.
        sides = [side.get(diff.old) for side in (before, after)]
        texts = [
            lines.split(text) for text in sides if text is not None and len(text) <= trees.LARGEST
        ]
        for number, hunk in enumerate(diff.hunks, 1):
            if _DEF.match(hunk.heading + b" "):
                yield from _hunk(diff, number, hunk, texts, by_name)


def _hunk(
    diff: FileDiff, number: int, hunk: Hunk, texts: Sequence[list[bytes]], by_name: bool
) -> Iterator[Finding]:
    heading = hunk.heading.strip()
    for text in texts:
        start = _place(hunk, text)
        if start is None:
            continue
        around = list(_around(text, start, hunk))
        if any(_same(heading, line, by_name) for _, line in around):
            return
        row, line = around[0] if around else (start + 1, b"")
        there = f"`{_text(line)}`" if line else "no class or def"
        assert diff.old is not None
        yield Finding(
            "enclosing",
            diff.new or diff.old,
            row,
            "",
            f"hunk {number} was made for `{_text(heading)}`, and lies in {there}",
            f"the hunk's heading names its class or def; at line {start + 1} it is another",
        )
        return


def _place(hunk: Hunk, text: list[bytes]) -> int | None:
    """The 0-based line where a hunk's old lines stand, nearest to where it says."""
    old = [line for mark, line in hunk.lines if mark != "+"]
    want = hunk.old_start - (1 if hunk.old_count else 0)
    if not old:
        return want if want <= len(text) else None
    last = len(text) - len(old)
    if last < 0:
        return None
    nearest = sorted(
        (at for at in range(last + 1) if text[at] == old[0]), key=lambda at: abs(at - want)
    )
    return next((at for at in nearest if text[at : at + len(old)] == old), None)


def _around(text: list[bytes], start: int, hunk: Hunk) -> Iterator[tuple[int, bytes]]:
    """The class and def lines that may stand as the heading of a hunk at `start`."""
    above = range(min(start, len(text)) - 1, -1, -1)
    for row in above:
        if _DEF.match(text[row]):
            yield row + 1, text[row].strip()
            break
    for row in above:
        if text[row][:1].isalpha() or text[row][:1] in (b"_", b"$"):
            yield row + 1, text[row].strip()
            break
    # The classes and defs around the first changed line, by indentation.
    changed = start + next((at for at, (mark, _) in enumerate(hunk.lines) if mark != " "), 0)
    depth = _indent(text[changed]) if changed < len(text) and text[changed].strip() else 1 << 30
    for row in range(min(changed, len(text)) - 1, -1, -1):
        line = text[row]
        if line.strip() and _indent(line) < depth:
            depth = _indent(line)
            if _DEF.match(line):
                yield row + 1, line.strip()
        if depth == 0:
            return


def _indent(line: bytes) -> int:
    return len(line.expandtabs()) - len(line.expandtabs().lstrip())


def _same(heading: bytes, line: bytes, by_name: bool) -> bool:
    name = _NAME.match(heading) if by_name else None
    there = _NAME.match(line) if name else None
    if name and there and name[0] == there[0]:
        return True
    return line == heading or (len(heading) >= _CUT and line.startswith(heading))


def _text(line: bytes) -> str:
    return lines.decode(line).strip()
