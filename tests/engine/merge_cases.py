"""Texts to merge, drawn or made up: lines for the text merge, modules for the other."""

from __future__ import annotations

from hypothesis import strategies as st

LINES = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"\n", b"  x = 1\n"]), max_size=12)
_NAMES = ("alpha", "beta", "gamma", "delta", "omega")


@st.composite
def edited(draw, base):
    """Return lines with a few of them taken out, changed or put in."""
    lines = list(base)
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(lines)))
        new = draw(st.lists(st.sampled_from([b"new\n", b"b\n", b"\n", b"more\n"]), max_size=2))
        lines[at : at + draw(st.integers(0, 2))] = new
    end = draw(st.sampled_from([b"\n", b""]))
    data = b"".join(lines)
    return data if end else data.removesuffix(b"\n")


@st.composite
def three(draw):
    """Return a base and two edits of it."""
    base = draw(LINES)
    return b"".join(base), draw(edited(base)), draw(edited(base))


@st.composite
def statements(draw, depth=0):
    """Return the lines of a block."""
    made = []
    for _ in range(draw(st.integers(1, 4))):
        made += draw(statement(depth))
    return made


@st.composite
def statement(draw, depth=0):
    """Return the lines of one statement."""
    name = draw(st.sampled_from(_NAMES))
    value = draw(st.sampled_from(["1", "'s'", "[1, 2]", "{'k': 1, 'l': 2}", "f(a, key=b)"]))
    note = draw(st.sampled_from(["", "", "  # why"]))
    kinds = ["assign", "call", "comment"] + (["if", "def"] if depth < 2 else [])
    match draw(st.sampled_from(kinds)):
        case "assign":
            return [f"{name} = {value}{note}"]
        case "call":
            return [f"{name}({value}){note}"]
        case "comment":
            return [f"# {name}", f"{name} = {value}"]
        case "if":
            inner = draw(statements(depth + 1))
            return [f"if {name}:", *("    " + line for line in inner)]
    inner = draw(statements(depth + 1))
    return [f"def {name}({name}):{note}", *("    " + line for line in inner)]


@st.composite
def module(draw):
    """Return a module as a list of its statements, each a list of lines."""
    return [draw(statement()) for _ in range(draw(st.integers(1, 6)))]


@st.composite
def modules(draw):
    """Return a base, and two edits of it by whole statements; all are Python."""
    base = draw(module())
    sides = []
    for _ in range(2):
        side = list(base)
        for _ in range(draw(st.integers(1, 3))):
            at = draw(st.integers(0, len(side)))
            new = [draw(statement())] if draw(st.booleans()) else []
            side[at : at + draw(st.integers(0, 1))] = new
        sides.append(side)
    return tuple(joined(one) for one in (base, *sides))


def joined(statements_: list[list[str]]) -> bytes:
    """Return the text of a module."""
    return "".join(line + "\n" for one in statements_ for line in one).encode()
