"""Sketch files: sections, and the marks above and behind their statements (R0).

A section begins at ``# in PATH [when SPEC]`` at column 0. A mark is a comment
``# when SPEC``, ``# given`` or ``# absent``, with ``: note`` if one likes; it
stands above a statement, at the same column, or behind its first line (a simple
statement: behind any line), and covers it with all it holds.
"""

from __future__ import annotations

import bisect
import codecs
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import libcst as cst
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from patchq import errors, model
from patchq.engine import habits, nesting, sites, trees

_SECTION = re.compile(r"# in ([^\s:]+)(?:\s+when\s+([^\s:][^:]*))?\s*(?::.*)?$")
_MARK = re.compile(r"#\s*(when|given|absent)\b([^:]*)(?::.*)?$")
# A sketch is read by people. Every statement of it is sought, some in every place.
_MOST_BYTES, _MOST_STATEMENTS, _MOST_WORDS = 200_000, 1_000, 20_000
_WORD = re.compile(rb"#[^\n]*|[\w\x80-\xff]+|[^\w\s]|\n")  # what libcst makes nodes of
_WRONG_ORDER = "positional argument follows keyword argument"


class SketchError(errors.PatchqError):
    """A sketch file that says nothing that can be judged; `line` is 0 where it has none."""

    line = 0


@dataclass(frozen=True, slots=True)
class Marks:
    """What the comments at one statement say of it."""

    when: tuple[SpecifierSet, ...] = ()
    given: bool = False
    absent: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Section:
    """What a sketch says of one file."""

    path: str
    when: SpecifierSet | None
    module: cst.Module
    lines: Mapping[int, int]
    marks: Mapping[int, Marks] = field(default_factory=dict)

    def asked(self, release: Version) -> bool:
        """Return True if the section speaks of this release."""
        return self.when is None or self.when.contains(release, prereleases=True)

    def marked(self, node: cst.CSTNode) -> Marks:
        """Return the marks at one statement."""
        return self.marks.get(id(node), _NONE)

    def statements(
        self, body: cst.CSTNode, release: Version, keep: frozenset[int] | None = None
    ) -> Iterator[tuple[cst.CSTNode, Marks]]:
        """Yield what a block says for a release; `...`, pass, docstrings say nothing (R6).

        `keep`: the only statements that count, by id; None for all.
        """
        for node in small(body):
            if keep is not None and id(node) not in keep:
                continue
            marks = self.marked(node)
            if not silent(node) and all(
                spec.contains(release, prereleases=True) for spec in marks.when
            ):
                yield node, marks


_NONE = Marks()


def release_of(version: str) -> Version:
    """Return the release part of a version, by which every SPEC is judged.

    Raises: SketchError for what PEP 440 does not call a version.
    """
    try:
        return Version(Version(version).base_version)
    except InvalidVersion as error:
        raise SketchError(
            f"the release {version!r} is not a version",
            why="the `when` of a sketch is judged by PEP 440",
            mend="name the folder of the series like the release, as in 0.16.0",
        ) from error


def parse(text: bytes, *, name: str) -> tuple[Section, ...]:
    """Return the sections of a sketch file; raises SketchError, naming `name` and the line."""
    if len(text) > _MOST_BYTES:
        raise _error(name, 1, f"it is longer than {_MOST_BYTES // 1_000} kB", _SHORTER)
    if len(_WORD.findall(text)) > _MOST_WORDS:
        raise _error(name, 1, f"it has more than {_MOST_WORDS:,} words, signs and lines", _SHORTER)
    found: list[tuple[int, str, SpecifierSet | None]] = []
    text = text.removeprefix(codecs.BOM_UTF8)
    lines = [line.decode(errors="surrogateescape") for line in trees.rows(text)]
    for number, line in enumerate(lines, 1):
        head = _SECTION.match(line.rstrip())
        if head and head[1].endswith((".py", ".pyi")):
            path = model.safe_path(head[1], source=f"{name} line {number}")
            spec = _spec(head[2].strip(), name, number) if head[2] else None
            found.append((number, path, spec))
        elif line.startswith("#") and (mend := habits.heading(line)):
            raise _error(name, number, f"{line.strip()!r} begins no section", mend)
        elif not found and line.strip() and not line.startswith("#"):
            raise _error(name, number, "there is code before the first section", _HEADING)
    if not found:
        raise _error(name, 1, "the sketch has no section", _HEADING)
    ends = [number - 1 for number, _, _ in found[1:]] + [len(lines)]
    sections = tuple(
        _section(lines[start:end], start, path, spec, name)
        for (start, path, spec), end in zip(found, ends, strict=True)
    )
    said = sorted(line for section in sections for line in section.lines.values())
    if len(said) > _MOST_STATEMENTS:
        last = said[_MOST_STATEMENTS]
        raise _error(name, last, f"it has more than {_MOST_STATEMENTS:,} statements", _SHORTER)
    return sections


def small(body: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield the statements of one block, without the lines that hold them."""
    assert isinstance(body, cst.Module | cst.BaseSuite)
    for line in body.body:
        yield from line.body if isinstance(line, cst.SimpleStatementLine) else (line,)


def silent(node: cst.CSTNode) -> bool:
    """Return True for a statement that says nothing: `...`, pass, a docstring (R6)."""
    if isinstance(node, cst.Expr):
        return isinstance(node.value, cst.Ellipsis | cst.SimpleString | cst.ConcatenatedString)
    return isinstance(node, cst.Pass)


_MEND = "a sketch is Python; `...` and `_name_` stand for what may differ"
_SHORTER = "say only what the patch is for, in a file for each patch"
_HEADING = "begin a section at column 0: # in package/module.py, or # in PATH when >=1.2"


def _error(name: str, line: int, why: str, mend: str) -> SketchError:
    error = SketchError(f"the sketch {name} cannot be read, line {line}", why=why, mend=mend)
    error.line = line
    return error


def _spec(text: str, name: str, line: int) -> SpecifierSet:
    try:
        return SpecifierSet(text)
    except InvalidSpecifier as error:
        raise _error(
            name,
            line,
            f"{text!r} is not a version specifier",
            "write PEP 440, as in `# when >=0.16,<0.18`; a note follows a colon",
        ) from error


def _section(
    rows: list[str], above: int, path: str, spec: SpecifierSet | None, name: str
) -> Section:
    """Read one section, whose lines have `above` lines before them."""
    try:
        module = _module(rows, above, name)
        where = trees.positions(module)
        heads = _Heads(module, where)
    except RecursionError as error:
        raise _error(name, above + 1, nesting.DEEP, _MEND) from error
    for node, why, mend in habits.slips(where, rows):
        raise _error(name, above + where[node][0], why, mend)
    marks: dict[int, list[re.Match[str]]] = {}
    for node, (line, column, _) in where.items():
        mark = _MARK.match(node.value) if isinstance(node, cst.Comment) else None
        if mark:
            alone = not rows[line - 1][:column].strip()
            covered = heads.behind(line) or (heads.above(line, column) if alone else [])
            if not covered:
                raise _error(
                    name,
                    above + line,
                    f"the mark {mark[0]!r} stands at no statement",
                    "put it above a statement, at the same column, or behind its first line",
                )
            for statement in covered:
                marks.setdefault(id(statement), []).append(mark)
                _check(mark, name, above + line)
    lines = {id(head.node): above + where[head.node][0] for head in heads.all}
    return Section(path, spec, module, lines, {key: _marks(of) for key, of in marks.items()})


def _module(rows: list[str], above: int, name: str) -> cst.Module:
    text = "\n".join(rows) + "\n"
    data = text.encode(errors="surrogateescape")
    parsed = trees.python(data)
    tree = trees.tree(data, comments=True)
    if isinstance(tree, trees.Fault):
        mend = habits.spelling(tree.text) or _MEND
        if isinstance(parsed, trees.Fault) and parsed.words == _WRONG_ORDER:
            mend = "write `...` before the keywords: f(..., a=1)"
        raise _error(name, above + tree.line, f"{tree.words}: {tree.text.strip()!r}", mend)
    if nesting.trouble(text, limit=nesting.SKETCH_LIMIT) is not None:
        raise _error(name, above + 1, nesting.DEEP, _MEND)
    return tree.module


def _check(mark: re.Match[str], name: str, line: int) -> None:
    if mark[1] == "when":
        if not mark[2].strip():
            raise _error(name, line, f"{mark[0]!r} names no version", "write # when >=0.16")
        _spec(mark[2].strip(), name, line)
    elif mark[2].strip():
        raise _error(
            name,
            line,
            f"{mark[0]!r} is neither the mark `{mark[1]}` nor a comment",
            f"a note follows a colon: # {mark[1]}: {mark[2].strip()}",
        )


def _marks(found: list[re.Match[str]]) -> Marks:
    return Marks(
        tuple(SpecifierSet(mark[2].strip()) for mark in found if mark[1] == "when"),
        any(mark[1] == "given" for mark in found),
        any(mark[1] == "absent" for mark in found),
    )


@dataclass(frozen=True, slots=True)
class _Head:
    """Where one statement of a sketch begins, and where its own lines end."""

    node: cst.CSTNode
    first: int
    column: int
    last: int


class _Heads:
    """Where the statements of a section begin, and the lines that are their own."""

    def __init__(
        self, module: cst.Module, where: Mapping[cst.CSTNode, tuple[int, int, int]]
    ) -> None:
        self.where = where
        self.all: list[_Head] = []
        self._walk(module)
        self._begin: dict[int, list[_Head]] = {}
        self._own: dict[int, list[cst.CSTNode]] = {}
        for head in self.all:
            self._begin.setdefault(head.first, []).append(head)
            for line in range(head.first, head.last + 1):
                self._own.setdefault(line, []).append(head.node)
        self._firsts = sorted(self._begin)

    def above(self, line: int, column: int) -> list[cst.CSTNode]:
        """Return the statements on the next line that begins one, at this column."""
        place = bisect.bisect_right(self._firsts, line)
        found = self._begin[self._firsts[place]] if place < len(self._firsts) else []
        return [head.node for head in found] if found and found[0].column == column else []

    def behind(self, line: int) -> list[cst.CSTNode]:
        """Return the statements of which a line is a part, but for the blocks under them."""
        return self._own.get(line, [])

    def _walk(self, body: cst.CSTNode) -> None:
        for node in small(body):
            compound = isinstance(node, cst.BaseCompoundStatement)
            inner = list(sites.parts(node)) if compound else []
            line, column, last = self.where[node]
            if inner:
                header = getattr(inner[0], "header", None)
                last = line if header is None else max(line, self.where[header][0])
            decorators = getattr(node, "decorators", ())
            first = min((self.where[deco][0] for deco in decorators), default=line)
            self.all.append(_Head(node, first, column, last))
            for part in inner:
                self._clause(part)

    def _clause(self, part: cst.CSTNode) -> None:
        if isinstance(part, cst.BaseSuite):
            self._walk(part)
            return
        if isinstance(part, cst.If):
            line, column, _ = self.where[part]
            self.all.append(_Head(part, line, column, line))
        for child in sites.parts(part):
            self._clause(child)
