"""Drafts: what a diff implies is false below, true above, and guards every hunk."""

# ruff: noqa: E501 - a table, one edit a line
import random

import pytest

from patchq.engine import diff, draft, judge, sketch, takeback
from patchq.model import Patch
from tests import world as worlds

BELOW = {
    **worlds.FILES,
    "demo/work.py": (
        "import os\n\nfrom .shapes import Circle, Square\n\nNAMES = ['a', 'b']\nSIZES = {'a': 1}\n\n\n"
        "class Base:\n    kind = None\n\n    def run(self, items, *, loud=False):\n"
        '        """Run."""\n        total = 0\n        for item in items:\n            total += item\n'
        "        if loud:\n            print(total)\n        elif total:\n            os.sync()\n"
        "        return total\n\n    def stop(self):\n        self.done = True\n        self.count = 0x10\n"
        "        return Circle(self.count)\n\n\n"
        "class Other(Base):\n    def stop(self):\n        return Square(1)\n\n\n"
        "def names(extra=()):\n    pair = (1, 2)\n    return [*NAMES, *extra], pair\n"
    ),
    "demo/branches.py": (
        "import enum\n\n\ndef look(at, log, *rest):\n    found = None\n    try:\n        found = at.go()\n"
        "    except OSError as error:\n        log(error)\n    match at:\n        case 1:\n            log(1)\n"
        "        case 2:\n            log(2)\n    for one in at:\n        log(one)\n    if found:\n        log(found)\n"
        "    return found\n\n\n@enum.unique\nclass Kind(enum.Enum):\n    A = 1\n\n    @property\n    def all(self):\n"
        "        return 1\n"
    ),
}


def drafted(changes: dict[str, str | None], context: int = 1, below: dict[str, str] = BELOW):
    """Return the draft of the patch that makes `changes`, and what judges it."""
    tree = {path: data.encode() for path, data in below.items()}
    text = b"".join(
        diff.unified(tree.get(path), data and data.encode(), path, context=context)
        for path, data in changes.items()
    )
    header, diffs = diff.parse(text, name="x.patch")
    patch = Patch("x.patch", text, header, diffs)

    def file(path):
        return (tree[path], False) if path in tree else None

    back = takeback.Back(patch, file, "1.0", tree.get)
    assert not isinstance(back.whole, str), back.whole
    return draft.draft(back, patch), back, tree


def edited(*edits: tuple[str, str], path: str = "demo/work.py") -> dict[str, str]:
    text = BELOW[path]
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new, 1)
    return {path: text}


def said(changes: dict[str, str | None]) -> str:
    """Return the draft's text without its first line, judged."""
    found, back, tree = drafted(changes)
    assert_good(found, back, tree)
    assert not found.bare
    return found.text.decode().split("\n", 1)[1]


def assert_good(found, back, tree):
    parsed = sketch.load(found.text, name="draft.pyi")
    before = {path: tree.get(path) for path in back.whole}
    verdict = judge.judge(before, back.whole, parsed, "1.0", tree.get)
    assert judge.lint(verdict) == ()


# what changes, what a sketch asks then
EDITS = [
    (("import Circle, Square", "import Circle, Square, metre"), "from .shapes import metre"),
    (("import os\n", "import os\nimport json as js\n"), "import json as js"),
    (("['a', 'b']", "['a', 'c', 'b']"), "NAMES = ['c', ...]"),
    (("{'a': 1}", "{'a': 1, 'b': 2}"), "SIZES = {'b': 2, **...}"),
    (("class Base:", "class Base(dict, metaclass=type):"), "class Base(dict, metaclass=type):\n    ..."),
    (("    kind = None", "    kind = None\n    size: int = 3"), "class Base:\n    size = ..."),
    (("    kind = None", "    kind = 'base'"), "class Base:\n    kind = 'base'"),
    (("items, *, loud", "items, limit=3, *, loud"), "class Base:\n    def run(self, limit=...):\n        ..."),
    (("loud=False", "loud=True"), "class Base:\n    def run(self, loud=True):\n        ..."),
    (("total += item\n", "total += item * 2\n"), "class Base:\n    def run(self):\n        _total_ += _item_ * 2"),
    (("for item in items", "for item in sorted(items, key=abs)"), "class Base:\n    def run(self):\n        for _item_ in sorted(items, key=abs):\n            ..."),
    (("        if loud:\n", "        if loud and items:\n"), "class Base:\n    def run(self):\n        if loud and items:\n            ..."),
    (("            os.sync()\n", "            os.sync()\n        else:\n            self.stop()\n"), "class Base:\n    def run(self):\n        if _total_:\n            ...\n        else:\n            self.stop()"),
    (("self.count = 0x10", "self.count = 0x20"), "class Base:\n    def stop(self):\n        self.count = 0x20"),
    (("Circle(self.count)", "Circle(self.count, name='x')"), "class Base:\n    def stop(self):\n        return Circle(..., name='x')"),
    (("pair = (1, 2)", "pair = (1, 2, 3)"), "def names():\n    _pair_ = (..., 3)"),
    (("class Other(Base):\n", "class Other(Base):\n    def start(self, at):\n        begin = at + 1\n        return begin\n\n"), "class Other:\n    def start(self, at):\n        _begin_ = at + 1\n        return _begin_"),
    (("def names(", "class Third(Base):\n    deep = 1\n\n    def go(self): ...\n\n\ndef names("), "class Third(Base):\n    deep = ...\n\n    def go(self):\n        ..."),
    (("        self.done = True\n", ""), "class Base:\n    def stop(self):\n        # absent\n        self.done = True"),
    (("        return Square(1)", "        pass"), "class Other:\n    def stop(self):\n        # absent\n        return Square(1)"),
    (("    def stop(self):\n        return Square(1)\n", "    pass\n"), "class Other:\n    # absent\n    def stop(self):\n        ..."),
]  # fmt: skip


LOG = "        log(error)\n"
# The same for what hangs on a branch of a statement; each is about `look`.
BRANCHES = [
    ((LOG, f"{LOG}    except KeyError:\n        pass\n"), "try:\n    ...\nexcept KeyError:\n    ..."),
    ((LOG, f"{LOG}    except KeyError:\n        log(7)\n"), "try:\n    ...\nexcept KeyError:\n    log(7)"),
    (("OSError as", "(OSError, KeyError) as"), "try:\n    ...\nexcept (OSError, KeyError) as _error_:\n    log(_error_)"),
    ((LOG, f"{LOG}    else:\n        log(8)\n"), "try:\n    ...\nexcept OSError as _error_:\n    ...\nelse:\n    log(8)"),
    ((LOG, f"{LOG}    finally:\n        log(1)\n"), "try:\n    ...\nfinally:\n    log(1)"),
    (("case 2:", "case 2 | 3:"), "match at:\n    case 2 | 3:\n        log(2)"),
    (("        case 2:\n", "        case 3:\n            pass\n        case 2:\n"), "match at:\n    case 3:\n        ..."),
    (("        log(one)\n", "        log(one)\n    else:\n        log(found)\n"), "for _one_ in at:\n    ...\nelse:\n    log(_found_)"),
    (("    match at:\n", "    if found:\n        log(9)\n        log(1)\n    match at:\n"), "if _found_:\n    log(9)"),
    (("    found = None\n", "    found = None\n    if at is None:\n        return found\n"), "if at is None:\n    return _found_"),
    (("    if found:\n        log(found)\n", "    if found:\n        if log:\n            log(found)\n"), "if log:\n    log(_found_)"),
    (("        found = at.go()\n", "        with at:\n            found = at.go()\n"), "with at:\n    _found_ = at.go()"),
    (("    if found:\n", "    if at:\n        pass\n    elif found:\n"), "if at:\n    ..."),
    (("    if found:\n        log(found)\n", "    if found:\n        log(found)\n        log(10)\n"), "log(10)"),
    (("    return found\n", "    log(f'kinds {Kind._member_map_}')\n    return found\n"), "log(f'kinds {_}')"),
    (("    except OSError as error:\n        log(error)\n", "    finally:\n        log(1)\n"), "try:\n    ...\nfinally:\n    log(1)"),
]  # fmt: skip


@pytest.mark.parametrize(("edit", "expected"), BRANCHES, ids=range(len(BRANCHES)))
def test_what_hangs_on_a_branch_is_asked_for_there(edit, expected):
    lines = "".join(f"    {row}\n" for row in expected.split("\n"))

    assert said(edited(edit, path="demo/branches.py")) == f"def look():\n{lines}"


# A header of a def: what it has got, and what has gone.
HEADERS = [
    (("log, *rest", "log, *all_of_it, **more"), "def look(*all_of_it, **more):\n    ..."),
    (("log, *rest", "*rest"), "# absent\ndef look(log):\n    ..."),
    (("log, *rest", "log"), "# absent\ndef look(*rest):\n    ..."),
    (("    @property\n", ""), "class Kind:\n    # absent\n    @property\n    def all(self):\n        ..."),
    (("def look(", "@enum.global_enum\ndef look("), "@enum.global_enum\ndef look():\n    ..."),
]  # fmt: skip


@pytest.mark.parametrize(("edit", "expected"), HEADERS, ids=range(len(HEADERS)))
def test_a_header_is_asked_for_what_it_got_and_what_it_lost(edit, expected):
    assert said(edited(edit, path="demo/branches.py")) == f"{expected}\n"


def test_a_clause_that_has_gone_is_denied():
    old = "        case 1:\n            log(1)\n        case 2:\n            log(2)\n"
    new = "        case 2:\n            log(1)\n            log(2)\n"

    assert said(edited((old, new), path="demo/branches.py")) == (
        "def look():\n    # absent\n    match at:\n        case 1:\n            ...\n"
    )


def test_a_long_chain_of_branches_costs_no_more_than_its_length():
    """Each step once asked twice for the rest: twenty branches took half a minute."""
    rows = [f"    {'elif' if n else 'if'} at == {n}:\n        log({n}0)\n" for n in range(40)]
    other = [f"    elif found == {n}:\n        log({n}0, {n})\n" for n in range(40)]
    both = [row for pair in zip(rows, other, strict=True) for row in pair]
    start = "    if found:\n"

    assert said(edited((start, "".join(rows) + start), path="demo/branches.py")) == (
        "def look():\n" + "".join(rows)
    )
    text = BELOW["demo/branches.py"].replace(start, "".join(rows) + start)
    new = text.replace("".join(rows), "".join(both))
    found, _, _ = drafted({"demo/long.py": new}, below={"demo/long.py": text})
    assert found.text.decode().count("log(") == len(other)


def test_clauses_at_column_0_belong_to_what_stands_above_them():
    old = "import enum\n"
    new = "try:\n    import enums as enum\nexcept ImportError:\n    import enum\n"

    assert said(edited((old, new), path="demo/branches.py")) == (
        "try:\n    import enums as enum\nexcept ImportError:\n    ...\n"
    )


@pytest.mark.parametrize(("edit", "expected"), EDITS, ids=range(len(EDITS)))
def test_one_edit_implies_one_thing(edit, expected):
    assert said(edited(edit)) == f"{expected}\n"


def test_an_edit_of_comments_implies_nothing_and_says_so():
    found, _, _ = drafted(edited(('"""Run."""', '"""Run it."""')))

    assert found.text == b""
    assert [guard.nature for guard in found.bare] == [
        "it changes no code: comments, docstrings, layout"
    ]


def test_an_edit_that_only_moves_statements_cannot_be_claimed():
    first, second = "        self.done = True\n", "        self.count = 0x10\n"
    found, _, _ = drafted(edited((first + second, second + first)))

    assert [guard.nature for guard in found.bare] == [
        "it only moves statements, and only a def that has them in order can tell"
    ]


def test_a_new_file_is_asked_for_by_its_names():
    text = "import os\n\nLIMIT = 3\n\n\nclass New(dict):\n    def f(self):\n        return os\n"

    assert said({"demo/new.py": text}) == ("LIMIT = ...\n\n\nclass New(dict):\n    ...\n")


def test_long_texts_are_not_repeated():
    text = "x" * 80

    assert said(edited(("        return total\n", f"        raise ValueError('{text}')\n"))) == (
        "class Base:\n    def run(self):\n        raise ValueError(...)\n"
    )


def test_statements_that_guard_nothing_more_are_left_out():
    new = "        return total\n"
    more = "        first = total\n        second = first\n        if second:\n            self.stop()\n"

    assert said(edited((new, more + new))) == (
        "class Base:\n    def run(self):\n        if _second_:\n            self.stop()\n"
    )


def test_a_patch_that_is_applied_in_reverse_is_turned_first():
    old, new = BELOW["demo/work.py"], edited(EDITS[2][0])["demo/work.py"]
    text = diff.unified(new.encode(), old.encode(), "demo/work.py")
    header, diffs = diff.parse(text, name="x.patch")
    patch = draft.forward(Patch("x.patch", text, header, diffs, reverse=True))

    back = takeback.Back(
        patch, lambda path: (BELOW[path].encode(), False), "1.0", lambda path: None
    )

    assert draft.draft(back, patch).text == b"# in demo/work.py\nNAMES = ['c', ...]\n"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_random_patches_of_a_small_world_are_guarded_hunk_by_hunk(seed):
    rng = random.Random(seed)
    edits = rng.sample([edit for edit, _ in EDITS[:18]], rng.randint(2, 6))
    text = BELOW["demo/work.py"]
    for old, new in edits:
        text = text.replace(old, new, 1)
    changes = {"demo/work.py": text}
    if rng.random() < 0.5:
        shapes = BELOW["demo/shapes.py"]
        changes["demo/shapes.py"] = shapes.replace("3 * self", "3.14 * self").replace(
            "self.side = side", "self.side = abs(side)"
        )

    found, back, tree = drafted(changes, rng.randint(0, 3))

    assert_good(found, back, tree)
    assert not found.bare, found.text.decode()
