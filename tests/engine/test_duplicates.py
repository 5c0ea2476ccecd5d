"""Definitions that a later one in the same scope replaces."""

import pytest

from patchq.engine import duplicates, judge
from patchq.engine.verdict import Finding

FINE = {
    "if and else": "if print:\n    def f(): ...\nelse:\n    def f(): ...",
    "type checkers": (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    class A: ...\nelse:\n"
        "    class A: ..."
    ),
    "try and except": "try:\n    def f(): ...\nexcept ImportError:\n    def f(): ...",
    "a better one under a condition": "def f(): ...\nif print:\n    def f(): ...",
    "overload": (
        "from typing import overload\n@overload\ndef f(a: int): ...\n@overload\n"
        "def f(a: str): ...\ndef f(a): ..."
    ),
    "property": (
        "class A:\n    @property\n    def a(self): ...\n    @a.setter\n    def a(self, b): ...\n"
        "    @a.deleter\n    def a(self): ..."
    ),
    "singledispatch": (
        "from functools import singledispatch\n@singledispatch\ndef f(a): ...\n"
        "@f.register\ndef g(a: int): ...\n@f.register\ndef g(a: str): ..."
    ),
    "registry": "import app\n@app.get('a')\ndef f(): ...\n@app.get('b')\ndef f(): ...",
    "underscores": "def _(): ...\ndef _(): ...\ndef __(): ...\ndef __(): ...",
    "used in between": "def f(): ...\nprint(f)\ndef f(): ...",
    "kept in between": "class A:\n    def f(self): ...\n    g = f\n    def f(self): ...",
    "deleted in between": "def f(): ...\ndel f\ndef f(): ...",
    "its own base": "class A: ...\nclass A(A): ...",
    "its own default": "def f(): ...\ndef f(g=f): ...",
    "wrapped": "def f(): ...\nf = print(f)\ndef f(): ...",
    "used by a class body": "def f(): ...\nclass A:\n    a = f\ndef f(): ...",
    "other scopes": "def f():\n    def g(): ...\nclass A:\n    def f(self): ...\ndef g(): ...",
    "assignments": "a = 1\na = 2\n",
    "newer aliases": "type A = int\ndef f[T](): ...\nclass A: ...",
}


@pytest.mark.parametrize("form", FINE)
def test_definitions_that_live_side_by_side_are_no_finding(form):
    assert duplicates.duplicates(FINE[form].encode() + b"\n") == ()


FAULTY = {
    "defs": ("def f(): ...\nasync def f(a): ...", ("f", 2, 1, "")),
    "classes": ("class A: ...\nx = 1\nclass A: ...", ("A", 3, 1, "")),
    "methods": (
        "class A:\n    def f(self): ...\n    def g(self): return f\n    def f(self): ...",
        ("f", 4, 2, "A"),
    ),
    "inner defs": (
        "def f():\n    if print:\n        def g(): ...\n        def g(): ...",
        ("g", 4, 3, "f"),
    ),
    "properties": (
        "class A:\n    @property\n    def a(self): ...\n    @property\n    def a(self): ...",
        ("a", 5, 3, "A"),
    ),
    "setters": (
        "class A:\n    @property\n    def a(self): ...\n    @a.setter\n    def a(self, b): ...\n"
        "    @a.setter\n    def a(self, c): ...",
        ("a", 7, 5, "A"),
    ),
    "equal decorators": (
        "import app\n@app.get('a')\ndef f(): ...\n@app.get('a')\ndef f(): ...",
        ("f", 5, 3, ""),
    ),
    "plain decorators": (
        "from functools import cache\n@cache\ndef f(): ...\ndef f(): ...",
        ("f", 4, 3, ""),
    ),
    "recursion is no use": ("def f(): return f\ndef f(): ...", ("f", 2, 1, "")),
    "newer": ("def f[T](): ...\ndef f[T](): ...", ("f", 2, 1, "")),
}


@pytest.mark.parametrize("form", FAULTY)
def test_a_definition_that_nothing_used_before_it_was_replaced_is_a_finding(form):
    text, found = FAULTY[form]

    assert duplicates.duplicates(text.encode() + b"\n") == (duplicates.Duplicate(*found),)


def judged(after, before):
    return judge.judge({"m.py": before}, {"m.py": after}, None, "1.0", {}.get)


ONE = b"def f(): ...\n"


def test_the_finding_names_both_lines():
    assert judged(ONE * 2, ONE).findings == (
        Finding(
            "duplicate",
            "m.py",
            2,
            "",
            "`f` is defined a second time",
            "it replaces the one at line 1, which nothing has used",
        ),
    )


def test_duplicates_that_were_there_are_listed_apart_and_one_more_is_not():
    verdict = judged(ONE * 3, ONE * 2)

    assert [one.line for one in verdict.old_findings] == [2]
    assert [one.line for one in verdict.findings] == [3]
    assert judged(b"x = 1\n" + ONE * 2, ONE * 2).holds


def test_no_text_makes_more_findings_than_can_be_read():
    assert len(judged(ONE * 200, b"").findings) == 50
