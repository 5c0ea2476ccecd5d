r"""The lines of a patch that name a file: ``diff --git`` blocks, ``---`` and ``+++``.

Hunks are not here (`patchq.engine.diff`). The grammar is that of git-diff(1)
§ "Generating patch text with -p" and of GNU diff: names in C quotes, names with
spaces, time stamps after a tab, an epoch stamp for a file that is not there.
Where a block leaves open which file it means, it is refused, never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from patchq.engine import cquote, stamps
from patchq.errors import PatchqError
from patchq.model import FileDiff, safe_path

NULL = "/dev/null"
BINARY = ("GIT binary patch", "Binary files ", "Binary file ")
# Blob ids of no bytes (SHA-1, SHA-256): only they tell an empty new file from one cut short.
_EMPTY_BLOBS = (
    "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
    "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
)
_EXTENDED = re.compile(
    r"(old mode|new mode|deleted file mode|new file mode|similarity index|dissimilarity index"
    r"|rename from|rename to|copy from|copy to|index) (.*)"
)
_INDEX = re.compile(r"([0-9a-f]{4,64})\.\.([0-9a-f]{4,64})(?: ([0-7]{6}))?")
# What git's extended header says: word -> (line number, value).
_Said = dict[str, tuple[int, str]]


class PatchFormatError(PatchqError):
    """A patch that patchq cannot read whole; it names the file and the line."""


@dataclass(frozen=True, slots=True)
class Source:
    """The patch that is read: the name for messages, its lines, ``-pN``.

    `exists` tells which files there are, where that is known.
    """

    name: str
    text: Sequence[str]
    strip: int
    exists: Callable[[str], bool] = lambda _: True

    def error(self, line: int, why: str, mend: str | None = None) -> PatchFormatError:
        """Return the refusal of a line, counted from 1."""
        mend = mend or f"make {self.name} again with git diff, or correct line {line}"
        return PatchFormatError(
            f"{self.name}:{line}: patchq cannot read this patch", why=why, mend=mend
        )


@dataclass(frozen=True, slots=True)
class Block:
    """One file's header: what it says, its lines [start, end), and if hunks must follow."""

    diff: FileDiff
    start: int
    end: int
    hunks: bool


def git_block(source: Source, start: int) -> Block:
    """Read the ``diff --git`` block that begins at index `start`.

    Raises:
        PatchFormatError: copies, links, submodules, names that disagree, a block cut short.
        UnsafePath: a name that leads out of the package.
    """
    refuse_crlf(source, start)
    said, end = _extended(source, start + 1)
    for word in ("copy from", "copy to"):
        if word in said:
            raise source.error(
                said[word][0],
                "a copy depends on a file that the patch does not change",
                "git diff --no-renames gives the copy as a new file",
            )
    if ("old mode" in said) != ("new mode" in said):
        raise source.error(start + 1, "the diff gives only one of 'old mode' and 'new mode'")
    if end < len(source.text):
        refuse_binary(source, end)
    ids = _blobs(source, said)
    old_mode = _mode(source, said, "old mode", "deleted file mode")
    new_mode = _mode(source, said, "new mode", "new file mode")
    hunks = end < len(source.text) and source.text[end].startswith("--- ")
    marked = _marked(source, end, plain=False) if hunks else (None, None)
    old, new = _settled(source, start, said, marked)
    if not hunks:
        _refuse_cut(source, start, said, ids)
    return Block(FileDiff(old, new, old_mode, new_mode), start, end + 2 * hunks, hunks)


def plain_block(source: Source, start: int) -> Block:
    """Read a ``---`` and ``+++`` pair that no ``diff --git`` line introduces.

    Where the two names differ, GNU patch's rule decides: the one that there is, fewest
    folders, the shortest last part, the shortest name.
    """
    if not source.text[start].startswith("--- "):
        raise source.error(start + 2, "a '+++' line stands without its '---' line")
    refuse_crlf(source, start)
    old, new = _marked(source, start, plain=True)
    if old is None and new is None:
        raise source.error(start + 1, f"both names are {NULL}")
    if old is not None and new is not None and old != new:
        last = {n: len(n.rpartition("/")[2]) for n in (old, new)}
        size = {n: (not source.exists(n), n.count("/"), last[n], len(n)) for n in last}
        if size[old] == size[new]:
            raise source.error(start + 1, f"the diff names two files, {old!r} and {new!r}")
        old = new = min(size, key=lambda name: size[name])
    return Block(FileDiff(old, new), start, start + 2, hunks=True)


def refuse_crlf(source: Source, index: int) -> None:
    """Refuse a line of the patch's own that ends in a carriage return."""
    if source.text[index].endswith("\r\n"):
        raise source.error(
            index + 1,
            "the patch's own lines end in CR LF; git's core.autocrlf does this to a clone",
            "put '*.patch -text' into .gitattributes and check the file out again",
        )


def refuse_binary(source: Source, index: int) -> None:
    """Refuse a line that stands for the change of a binary file."""
    if source.text[index].startswith(BINARY):
        raise source.error(
            index + 1,
            "the change of a binary file cannot be read, merged or judged",
            f"leave the file out of {source.name}",
        )


def _extended(source: Source, start: int) -> tuple[_Said, int]:
    """Return git's extended header lines from index `start`, and where they end."""
    said: _Said = {}
    end = start
    while end < len(source.text) and (match := _EXTENDED.match(source.text[end])):
        refuse_crlf(source, end)
        if not source.text[end].endswith("\n"):
            raise source.error(end + 1, "the patch is cut short inside this line")
        if match[1] in said:
            raise source.error(end + 1, f"the diff says {match[1]!r} twice")
        said[match[1]] = (end + 1, match[2])
        end += 1
    return said, end


def _mode(source: Source, said: _Said, *words: str) -> int | None:
    """Return the mode that one of the lines gives; of permissions only x counts, as in git."""
    found = [_regular(source, *said[word]) for word in words if word in said]
    return found[0] if found else None


def _regular(source: Source, line: int, digits: str) -> int:
    """Return the mode in `digits`, which must be a regular file's."""
    if digits in ("120000", "160000"):
        kind = "a symbolic link" if digits == "120000" else "a submodule"
        raise source.error(line, f"mode {digits} is {kind}; patchq changes regular files only")
    if not re.fullmatch("100[0-7]{3}", digits):
        raise source.error(line, f"{digits!r} is not the mode of a regular file")
    return 0o100755 if int(digits, 8) & 0o111 else 0o100644


def _marked(source: Source, start: int, *, plain: bool) -> tuple[str | None, str | None]:
    """Return the names of the ``---`` and ``+++`` lines, None for absent."""
    if start + 1 >= len(source.text) or not source.text[start + 1].startswith("+++ "):
        raise source.error(start + 1, "a '---' line stands without its '+++' line")
    if start + 2 >= len(source.text) or not source.text[start + 2].startswith("@@ -"):
        raise source.error(start + 2, "no hunk follows the '+++' line")
    return _marked_name(source, start, plain), _marked_name(source, start + 1, plain)


def _marked_name(source: Source, index: int, plain: bool) -> str | None:
    """Return the path of one ``---`` or ``+++`` line."""
    refuse_crlf(source, index)
    text = source.text[index][4:].rstrip("\n")
    if match := cquote.QUOTED.match(text):
        name, stamp = cquote.unquote(match[1]), text[match.end() :].strip()
    else:
        name, _, stamp = text.partition("\t")
        if plain and (date := stamps.behind(name)):
            raise source.error(
                index + 1,
                f"the name ends in a date, {date!r}; the tab between them is lost, "
                "as when an editor or a mail turned it into spaces",
                f"put a tab before the date in line {index + 1} of {source.name}",
            )
    if name == NULL or stamps.is_epoch(stamp):
        return None
    return _stripped(source, index, name, source.strip)


def _settled(
    source: Source, start: int, said: _Said, marked: tuple[str | None, str | None]
) -> tuple[str | None, str | None]:
    """Return old and new name, where all lines of a ``diff --git`` block agree on them."""
    made, gone = "new file mode" in said, "deleted file mode" in said
    moved = "rename from" in said, "rename to" in said
    if made + gone + any(moved) > 1 or any(moved) != all(moved):
        raise source.error(start + 1, "the lines after 'diff --git' contradict each other")
    if all(moved):
        old, new = (_renamed(source, *said[word]) for word in ("rename from", "rename to"))
        if old == new or marked not in ((None, None), (old, new)):
            raise source.error(start + 1, "the names of the rename and of '---', '+++' disagree")
        return old, new
    seen = {name for name in (*marked, _common_name(source, start)) if name is not None}
    if len(seen) != 1:
        found = ", ".join(sorted(map(repr, seen))) or "no name that both sides share"
        raise source.error(
            start + 1,
            f"the diff must name one file with -p{source.strip}; it has {found} "
            "(another number of leading folders is told by -pN behind the name in series)",
        )
    name = seen.pop()
    if (made and marked == (name, None)) or (gone and marked == (None, name)):
        raise source.error(start + 1, f"{NULL} stands on the wrong side")
    absent = (made or marked == (None, name), gone or marked == (name, None))
    return None if absent[0] else name, None if absent[1] else name


def _renamed(source: Source, line: int, name: str) -> str:
    """Return the path of a rename line, which has no ``a/`` before it."""
    if match := cquote.QUOTED.fullmatch(name):
        name = cquote.unquote(match[1])
    return _stripped(source, line - 1, name, max(source.strip - 1, 0))


def _common_name(source: Source, start: int) -> str | None:
    """Return the name that both halves of a ``diff --git`` line share, None if they share none.

    Names with spaces are not quoted: the halves are cut where they agree (git-apply does so).
    """
    rest = source.text[start].removeprefix("diff --git ").rstrip("\n")
    if match := cquote.QUOTED.match(rest):
        cuts = [match.end()]
    else:
        cuts = [at for at, char in enumerate(rest) if char == " "]
    for at in cuts:
        whole = [
            cquote.unquote(match[1]) if (match := cquote.QUOTED.fullmatch(half)) else half
            for half in (rest[:at], rest[at + 1 :])
        ]
        names = [name.split("/", source.strip)[source.strip :] for name in whole]
        if names[0] and names[0] == names[1]:
            return _stripped(source, start, whole[0], source.strip)
    return None


def _blobs(source: Source, said: _Said) -> tuple[str, str] | None:
    """Return the two ids of an ``index`` line; the mode there must be a regular file's."""
    if "index" not in said:
        return None
    line, value = said["index"]
    match = _INDEX.fullmatch(value)
    if match is None:
        raise source.error(line, "this is not an 'index' line of git's")
    if match[3]:
        _regular(source, line, match[3])
    return match[1], match[2]


def _refuse_cut(source: Source, start: int, said: _Said, ids: tuple[str, str] | None) -> None:
    """Refuse a block that has no hunks although it speaks of text, or says nothing."""
    cut = source.error(
        start + 1,
        "the diff speaks of changed text and has no hunk; the patch is cut short here",
        "write the patch again; an empty new file needs the line 'index 0000000..e69de29'",
    )
    if "new file mode" in said or "deleted file mode" in said:
        made = "new file mode" in said
        if made if ids is None else not any(b.startswith(ids[made]) for b in _EMPTY_BLOBS):
            raise cut
        return
    alike = said.get("similarity index", (0, "100%"))[1] == "100%"
    if (ids and ids[0] != ids[1]) or not alike or not {"old mode", "rename from"} & said.keys():
        raise cut


def _stripped(source: Source, index: int, name: str, strip: int) -> str:
    """Return `name` without its first `strip` folders, checked to stay in the package."""
    where = f"{source.name}:{index + 1}"
    rest = name.split("/", strip)[strip:]
    if name.startswith("/") or ".." in name.split("/"):
        return safe_path(name, source=where)
    if not rest or not rest[0]:
        raise source.error(
            index + 1,
            f"{name!r} has too few folders for -p{source.strip}",
            f"set the right -p for {source.name} in the series",
        )
    return safe_path(rest[0], source=where)
