"""The road of a merge: which word it ends with, its laws, and what it never does."""

import ast
import os
import re
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings

from patchq.engine import merging, structural
from tests.engine import merge_cases

MANY = settings(
    max_examples=1000 if os.environ.get("PATCHQ_TORTURE") else 30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
COMMENT = re.compile(rb"#[^\n]*")


def merged(base: bytes, ours: bytes, theirs: bytes, path: str = "x.py") -> merging.Outcome:
    return merging.merge(base, ours, theirs, path=path)


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "word", "text"),
    [
        (b"1\n", b"1\n", b"1\n", "same", b"1\n"),
        (b"1\n", b"1\n", b"2\n", "theirs", b"2\n"),
        (b"1\n", b"2\n", b"1\n", "ours", b"2\n"),
        (b"1\n", b"2\n", b"2\n", "upstream", b"2\n"),
        (b"1\n2\n3\n", b"0\n1\n2\n3\n", b"1\n2\n4\n", "text", b"0\n1\n2\n4\n"),
        (b"1\n2\n3\n", b"0\n2\n4\n", b"0\n2\n3\n", "upstream", b"0\n2\n4\n"),
        (b"f(a)\n", b"f(a, k=1)\n", b"g(a)\n", "structural", b"g(a, k=1)\n"),
        (b"f(a)\n", b"f(b)\n", b"f(c)\n", "conflict", None),
    ],
)
def test_the_word_says_which_road_was_taken(base, ours, theirs, word, text):
    found = merged(base, ours, theirs)

    assert (found.word, found.text) == (word, text)


def test_what_upstream_says_in_another_layout_is_upstream():
    base = b"x = [1]\ny = 2\n"
    ours = b"x = [\n    1,\n    3,\n]\ny = 2\n"

    found = merged(base, ours, b"x = [1, 3]\ny = 2\n")

    assert (found.word, found.text) == ("upstream", ours)


def test_only_python_is_merged_by_structure():
    found = merged(b"f(a)\n", b"f(a, k=1)\n", b"g(a)\n", "x.txt")

    assert found.word == "conflict"
    assert found.reasons == ("line 1: both sides changed this line, each in its own way",)


def test_a_merge_by_lines_that_is_no_python_is_merged_by_structure():
    method = b"\n    def g(self):\n        return 2\n"
    base = b"class A:\n    def f(self):\n        return 1\n\n\nclass B:\n    pass\n"
    ours = base.replace(b"\n\n\nclass B", b"\n\n\nx = 1\n\n\nclass B")
    theirs = base.replace(b"return 1\n", b"return 1\n" + method)

    assert ast.parse(merged(base, ours, theirs).text or b"(")


def test_a_line_that_would_lie_in_another_def_is_not_merged_by_lines():
    body = b"        a = 1\n        b = 2\n        c = 3\n"
    base = b"class A:\n    def f(self):\n" + body
    ours = b"class A:\n    def g(self):\n" + body + b"\n    def f(self):\n        pass\n"
    theirs = base.replace(b"b = 2", b"b = 20")

    found = merged(base, ours, theirs)

    assert found.text is None
    assert any("`A.f` would lie in `A.g`" in reason for reason in found.reasons)


def test_a_name_that_nothing_defines_is_a_conflict():
    base = b"import os\n\n\ndef f():\n    return os.name\n\n\ndef g():\n    return 1\n"
    ours = base.replace(b"import os\n", b"").replace(b"os.name", b"2")
    theirs = base.replace(b"return 1", b"return os.sep")

    found = merged(base, ours, theirs)

    assert found.text is None
    assert any("defines `os`" in reason for reason in found.reasons)


def test_a_definition_twice_is_a_conflict():
    base = b"def a():\n    pass\n\n\ndef b():\n    pass\n\n\ndef c():\n    pass\n"
    new = b"def d():\n    return %d\n\n\n"
    ours = new % 1 + base
    theirs = base.replace(b"def c", new % 2 + b"def c")

    found = merged(base, ours, theirs)

    assert found.text is None
    assert any("`d` twice" in reason for reason in found.reasons)


def test_what_the_caller_refuses_is_not_taken():
    base, ours, theirs = b"f(a)\n", b"f(a, k=1)\n", b"g(a)\n"

    found = merging.merge(base, ours, theirs, path="x.py", judge=lambda text: ["too short"])

    assert (found.word, found.text, found.reasons) == ("conflict", None, ("too short",))


def test_what_the_caller_refuses_of_the_lines_may_come_by_structure():
    base, ours = b"a = 1\n\n\n\n\nb = 1\n", b"a = 2\n\n\n\n\nb = 1\n"
    asked = []

    def judge(text: bytes) -> list[str]:
        asked.append(text)
        return ["no"] if len(asked) == 1 else []

    found = merging.merge(base, ours, base.replace(b"b = 1", b"b = 2"), path="x.py", judge=judge)

    assert (found.word, found.reasons, len(asked)) == ("structural", ("no",), 2)


def test_a_merge_by_lines_says_what_changed_under_the_patch():
    base = b"def info(a):\n    return a\n\n\ndef g():\n    return 1\n"
    ours = base.replace(b"info(a)", b"info(a, b)")
    theirs = base.replace(b"return 1", b"return info(1)")

    found = merged(base, ours, theirs)

    assert found.word == "text"
    assert found.flags == (
        "line 6: upstream changed the parameters of `info`, which the patch calls",
    )
    assert merged(base, ours, base.replace(b"return 1", b"return 2")).flags == ()


def test_line_ends_are_those_of_ours():
    base, ours, theirs = b"f(a)\r\ny\r\n", b"f(a, k=1)\r\ny\r\n", b"g(a)\r\ny\r\n"

    assert merged(base, ours, theirs).text == b"g(a, k=1)\r\ny\r\n"
    assert merged(base, ours, theirs.replace(b"\r", b"")).text == b"g(a, k=1)\r\ny\r\n"
    assert merged(base, b"f(a, k=1)\ny\r\n", theirs).text is None


def test_bytes_that_are_no_utf_8_come_back():
    base = b"# -*- coding: latin-1 -*-\nf('\xe9')\n"
    ours, theirs = base.replace(b"')", b"', k=1)"), base.replace(b"f(", b"g(")

    assert merged(base, ours, theirs).text == base.replace(b"f('\xe9')", b"g('\xe9', k=1)")


DEEP = b"".join(b" " * depth + b"if x:\n" for depth in range(80)) + b" " * 80 + b"x\n"


@pytest.mark.parametrize("depth", [5, 25, 31, 500, 9999])
def test_brackets_may_be_nested_as_deep_as_they_like(depth):
    base, ours, theirs = (
        b"(" * depth + x + b")" * depth + b"\n" for x in (b"a + b", b"c + b", b"a + d")
    )

    assert merged(base, ours, theirs).text in (
        b"(" * depth + b"c + d" + b")" * depth + b"\n",
        None,
    )


@pytest.mark.parametrize("text", [DEEP, b"(" * 9999, b"\x00\n", b'"""', b"if x:\n", b"\tx\n  y\n"])
def test_no_text_is_too_strange(text):
    found = merged(b"a\n" + text, b"b\n" + text, b"c\n" + text)

    assert (found.word, found.text) == ("conflict", None)


@given(merge_cases.modules())
@MANY
def test_what_one_side_changed_alone_is_taken(texts):
    base, ours, theirs = texts

    assert merged(base, ours, base).text == ours
    assert merged(base, base, theirs).text == theirs
    assert merged(base, ours, ours).text == ours
    one, other, third = (text.decode() for text in texts)
    assert structural.merge(one, other, one).text == other
    assert structural.merge(one, one, third).text == third
    assert structural.merge(one, other, other).text == other


@given(merge_cases.modules())
@MANY
def test_a_conflict_is_one_whoever_is_ours(texts):
    base, ours, theirs = texts

    one, other = merged(base, ours, theirs), merged(base, theirs, ours)

    if not any("moves" in said for said in (*one.reasons, *other.reasons)):
        assert (one.text is None) == (other.text is None), (one.reasons, other.reasons)


@given(merge_cases.modules())
@MANY
def test_nothing_that_a_side_added_is_lost_unsaid(texts):
    found = merged(*texts)
    if found.text is None or found.flags:
        return

    had, ours, theirs, got = (
        Counter(line.strip() for line in text.split(b"\n")) for text in (*texts, found.text)
    )
    for line, often in ((ours - had) | (theirs - had)).items():
        if line and b"(" not in line and b"[" not in line and b"{" not in line:
            assert got[line] >= min(often, 1), (line, found.text)


@given(merge_cases.modules())
@MANY
def test_no_comment_is_lost_unsaid(texts):
    found = merged(*texts)
    if found.text is None or found.flags:
        return

    had, ours, theirs, got = (Counter(COMMENT.findall(text)) for text in (*texts, found.text))

    kept = had - (had - ours) - (had - theirs)
    assert not (kept | (ours - had) | (theirs - had)) - got


@given(merge_cases.modules())
@MANY
def test_what_is_merged_is_python(texts):
    found = merged(*texts)

    if found.text is not None:
        ast.parse(found.text)


@pytest.mark.parametrize(
    ("base", "ours", "theirs"),
    [
        (b"f(a=1)\n", b"f(a=1, b=2)\n", b"f(b=3, a=1)\n"),
        (b"f = {'a': 1}\n", b"f = {'z': 2, 'a': 1}\n", b"f = {'a': 1, 'z': 3}\n"),
        (b"def f(a): 0\n", b"def f(z, a): 0\n", b"def f(a, z): 0\n"),
    ],
)
def test_what_both_sides_put_in_at_two_places_is_not_there_twice(base, ours, theirs):
    assert merged(base, ours, theirs).word == "conflict"
