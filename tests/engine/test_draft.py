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
}


def drafted(changes: dict[str, str | None], context: int = 1):
    """Return the draft of the patch that makes `changes`, and what judges it."""
    tree = {path: data.encode() for path, data in BELOW.items()}
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
    (("            os.sync()\n", "            os.sync()\n        else:\n            self.stop()\n"), "class Base:\n    def run(self):\n        self.stop()"),
    (("self.count = 0x10", "self.count = 0x20"), "class Base:\n    def stop(self):\n        self.count = 0x20"),
    (("Circle(self.count)", "Circle(self.count, name='x')"), "class Base:\n    def stop(self):\n        return Circle(..., name='x')"),
    (("pair = (1, 2)", "pair = (1, 2, 3)"), "def names():\n    _pair_ = (..., 3)"),
    (("class Other(Base):\n", "class Other(Base):\n    def start(self, at):\n        begin = at + 1\n        return begin\n\n"), "class Other:\n    def start(self, at):\n        _begin_ = at + 1\n        return _begin_"),
    (("def names(", "class Third(Base):\n    deep = 1\n\n    def go(self): ...\n\n\ndef names("), "class Third(Base):\n    deep = ...\n\n    def go(self):\n        ..."),
    (("        self.done = True\n", ""), "class Base:\n    def stop(self):\n        # absent\n        self.done = True"),
    (("        return Square(1)", "        pass"), "class Other:\n    def stop(self):\n        # absent\n        return Square(1)"),
    (("    def stop(self):\n        return Square(1)\n", "    pass\n"), "class Other:\n    # absent\n    def stop(self):\n        ..."),
]  # fmt: skip


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
