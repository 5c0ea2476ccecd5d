"""What people write in a sketch by habit, and what it says here instead.

Nearly a section line, nearly a mark, semgrep's spellings, holes where none can stand:
each is an error that names the mend, never a comment or a claim that fits nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import libcst as cst

from patchq.engine import match

_HEAD = re.compile(r"#\s*in(?=[\s:]|$)[\s:]*(\S*)", re.IGNORECASE)
_MARK = re.compile(r"#\s*(when|given|absent)\b\s*(.?)", re.IGNORECASE)
_TWO = re.compile(r"#[^#]*#\s*(?:when|given|absent)\b")
_ONE = "a comment is one mark: write one above the statement, and the other behind it"
# Of a longer line the rest has no hint.
_WIDE = 1_000
_HEADING = (
    "begin a section at column 0: # in package/module.py, or # in PATH when >=1.2; "
    "a note begins with another word"
)
_SPELLINGS = (
    (
        re.compile(r"<\s?\.\.\."),
        "an expression that stands alone is found anywhere in a statement (R9): write it without "
        "<... ...>",
    ),
    (re.compile(r"\$\.\.\."), "write `...` for any further ones"),
    (re.compile(r"\$[A-Za-z_]"), "write `_x_` for semgrep's $X"),
    (
        re.compile(r"\bdef\s+\w+\s*\([^()]*\.\.\."),
        "leave `...` out: a def has at least the parameters that are named (R11)",
    ),
    (
        re.compile(r"\{[^{}]*:[^{}]*\.\.\.|\{\s*\.\.\.[^{}]*:"),
        "in a dict `...` is written `**...`, as in {'a': 1, **...}",
    ),
)


def heading(line: str, *, indented: bool = False) -> str | None:
    """Return the mend of a line that begins like ``# in PATH``; None for any other line.

    For a line that *is* a section's nobody asks.
    """
    found = _HEAD.match(line)
    if found is None:
        return None
    path = found[1]
    if path.startswith("/"):
        return "name the file as the distribution's RECORD does: # in package/module.py"
    if re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", path) and not path.endswith((".py", ".pyi")):
        return f"name the file, not the module: # in {path.replace('.', '/')}.py"
    if path.endswith((".py", ".pyi")) and (indented or not found[0].startswith("# in ")):
        return f"write it at column 0, as: # in {path}"
    if "/" in path and not path.endswith((".py", ".pyi")):
        return f"a sketch speaks of .py and .pyi files, and {path} is none; {_HEADING}"
    return _HEADING


def mark(comment: str) -> str | None:
    """Return the mend of a comment that is two marks, or one but for its capitals; else None."""
    found = _MARK.match(comment)
    if found is None:
        return None
    if found[1].islower():
        return _ONE if _TWO.match(comment) else None
    word = found[1].lower()
    if word == "when":
        return "write # when >=1.2 in small letters; a note begins with another word"
    return f"write # {word} in small letters" if found[2] in ("", ":") else None


def spelling(line: str) -> str | None:
    """Return the mend of a line that is no Python since it is written as semgrep has it."""
    return next((mend for form, mend in _SPELLINGS if form.search(line[:_WIDE])), None)


def slips(
    where: Mapping[cst.CSTNode, tuple[int, int, int]], rows: Sequence[str]
) -> Iterator[tuple[cst.CSTNode, str, str]]:
    """Yield (node, why, mend) of each comment and name in a sketch that misses what it means.

    `where` is what `trees.positions` says of the text, `rows` are its lines. Those are
    comments that are nearly a section line or a mark, and holes where none can stand.
    """
    for node, (line, column, _) in where.items():
        if isinstance(node, cst.Comment):
            alone = not rows[line - 1][:column].strip()
            if alone and (mend := heading(node.value, indented=True)):
                yield node, f"{node.value!r} begins no section: it is indented", mend
            elif mend := mark(node.value):
                yield node, f"{node.value!r} is no mark", mend
        elif isinstance(node, cst.ImportFrom) and isinstance(node.names, cst.ImportStar):
            why = "`import *` brings no name that a sketch could ask for"
            yield node, why, "name what is to be imported: from module import name (R12)"
            continue
        for what, name in _names(node):
            hole = match.hole(name)
            # `from i18n import _` is a name that exists.
            if hole is not None and not (hole == "_" and what == "an import"):
                why = f"`{hole}` cannot stand for the name of {what}"
                yield node, why, f"write that name, {_ELSE[what]}"


_ELSE = {
    "an attribute": "or a hole for the whole value: `_` instead of `x._`",
    "a keyword": "or `...` for further arguments: f(..., a=1)",
    "a def": "or ask for its lines where they are",
    "a class": "or ask for its members where they are",
    "an import": "or ask for where it is used",
}


def _names(node: cst.CSTNode) -> Iterator[tuple[str, object]]:
    """Yield what a node names, where only a name is meant: (of what, the name)."""
    if isinstance(node, cst.Attribute):
        yield "an attribute", node.attr
    elif isinstance(node, cst.Arg):
        yield "a keyword", node.keyword
    elif isinstance(node, cst.FunctionDef):
        yield "a def", node.name
    elif isinstance(node, cst.ClassDef):
        yield "a class", node.name
    elif isinstance(node, cst.ImportAlias):
        yield "an import", node.name
        yield "an import", node.asname and node.asname.name
    elif isinstance(node, cst.ImportFrom):
        yield "an import", node.module
