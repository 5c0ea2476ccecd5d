"""Literals, arguments, parameters, bases."""

import pytest

from tests.engine.structural.cases import flagged, forced, refused


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "wanted"),
    [
        ("x = [1, 2, 3]\n", "x = [0, 1, 2, 3]\n", "x = [1, 2, 4, 3]\n", "x = [0, 1, 2, 4, 3]\n"),
        ("x = [1, 2, 3]\n", "x = [1, 3]\n", "x = [1, 2, 3, 4]\n", "x = [1, 3, 4]\n"),
        ("x = {'a': 1}\n", "x = {'a': 2}\n", "x = {'a': 1, 'b': 3}\n", "x = {'a': 2, 'b': 3}\n"),
        ("x = {'a', 'c'}\n", "x = {'c'}\n", "x = {'a', 'b', 'c'}\n", "x = {'b', 'c'}\n"),
        ("f(a, b=1)\n", "f(a, b=2)\n", "f(a, b=1, c=3)\n", "f(a, b=2, c=3)\n"),
        ("f(a, b)\n", "f(x, b)\n", "f(a, y)\n", "f(x, y)\n"),
        ("x = (a, b)\n", "x = (c, b)\n", "x = (a, d)\n", "x = (c, d)\n"),
        (
            "def f(a, b=1):\n    pass\n",
            "def f(a: int, b=1):\n    pass\n",
            "def f(a, b=1, c=2):\n    pass\n",
            "def f(a: int, b=1, c=2):\n    pass\n",
        ),
        (
            "class A(B, k=1):\n    pass\n",
            "class A(B, k=2):\n    pass\n",
            "class A(B, C, k=1):\n    pass\n",
            "class A(B, C, k=2):\n    pass\n",
        ),
        ("f(g(a), h(b))\n", "f(g(a, 1), h(b))\n", "f(g(a), h(b, 2))\n", "f(g(a, 1), h(b, 2))\n"),
        ("x = a[1, 2]\n", "x = a[3, 2]\n", "x = a[1, 4]\n", "x = a[3, 4]\n"),
    ],
)
def test_both_edits_of_one_bracket_are_made(base, ours, theirs, wanted):
    assert forced(base, ours, theirs) == wanted


def test_a_list_that_upstream_broke_over_lines_takes_the_member_of_the_patch():
    base = 'models = ["a", "b"]\n'
    ours = 'models = [\n    "a",\n    "b",\n    "c",\n]\n'
    theirs = 'models = ["a", "x", "b"]\n'

    assert forced(base, ours, theirs) == 'models = [\n    "a",\n    "x",\n    "b",\n    "c",\n]\n'


def test_a_changed_member_stays_beside_a_new_one():
    base = 'x = [\n    "b>=1",\n    "a>=1",\n]\n'
    ours = 'x = [\n    "b>=1",\n    "a>=1",\n    "c",\n]\n'
    theirs = 'x = [\n    "b>=1",\n    "a>=2",\n]\n'

    assert forced(base, ours, theirs) == 'x = [\n    "b>=1",\n    "a>=2",\n    "c",\n]\n'


def test_a_trailing_comma_is_no_change():
    base = "f(\n    a,\n    b=1\n)\n"
    ours = "f(\n    a,\n    b=1,\n)\n"
    theirs = "f(\n    a,\n    b=2\n)\n"

    assert "b=2" in forced(base, ours, theirs)


def test_two_members_at_the_end_of_an_unsorted_list_are_flagged():
    base, ours, theirs = "x = ['z', 'b']\n", "x = ['z', 'b', 'q']\n", "x = ['z', 'b', 'd']\n"

    got = flagged(base, ours, theirs, "both sides put members at one place of the list")

    assert got == "x = ['z', 'b', 'q', 'd']\n"


@pytest.mark.parametrize(
    ("base", "ours", "theirs"),
    [
        ("class A(B):\n    pass\n", "class A(B, C):\n    pass\n", "class A(B, D):\n    pass\n"),
        ("def f(a):\n    pass\n", "def f(a, b=1):\n    pass\n", "def f(a, c=1):\n    pass\n"),
        ("f(a)\n", "f(a, b)\n", "f(a, c, d)\n"),
        ("f(a)\n", "f(a, k=1)\n", "f(a, k=2)\n"),
        ("x = {'a': 1}\n", "x = {'a': 2}\n", "x = {'a': 3}\n"),
        ("x = {'a': 1}\n", "x = {}\n", "x = {'a': 3}\n"),
        ("x = 'a'\n", "x = 'b'\n", "x = 'c'\n"),
        ("x = a.b\n", "x = a.c\n", "x = a.d\n"),
    ],
)
def test_what_nobody_can_tell_is_refused(base, ours, theirs):
    assert refused(base, ours, theirs)


def test_two_versions_of_one_member_are_refused():
    base = "x = ['aaaa', 'bbbb', 'cccc']\n"

    assert refused(base, base.replace("bbbb", "xyz"), base.replace("bbbb", "vuw"))


def test_much_at_one_place_is_refused_at_once():
    def listed(*members: str) -> str:
        return "x = [\n" + "".join(f"    {one!r},\n" for one in members) + "]\n"

    new = [[f"{who}{number}" for number in range(999)] for who in "pq"]

    assert "much" in refused(listed("a", "z"), *(listed("a", *one, "z") for one in new))


def test_a_comment_has_no_place_in_a_list_of_one_line():
    base, ours = "f(a)\ny = 1\n", "f(a, b=1)\ny = 1\n"
    theirs = "f(\n    a,\n    # why\n    c=2,\n)\ny = 1\n"

    got = flagged(base, ours, theirs, "both sides put members at one place of the arguments")

    assert got == "f(\n    a,\n    b=1,\n    # why\n    c=2,\n)\ny = 1\n"
