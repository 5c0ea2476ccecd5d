"""Which items stand for each other."""

import random

from hypothesis import given
from hypothesis import strategies as st

from patchq.engine import alignment

WORDS = st.text("abcd", max_size=14)


def longest(one: str, other: str) -> int:
    """Return the length of the longest common subsequence, the slow way."""
    row = [0] * (len(other) + 1)
    for a in one:
        last = 0
        for at, b in enumerate(other):
            last, row[at + 1] = row[at + 1], last + 1 if a == b else max(row[at], row[at + 1])
    return row[-1]


@given(WORDS, WORDS)
def test_as_many_items_as_can_be_stand_for_each_other(one, other):
    found = alignment.pairs(one, other)

    assert all(one[at] == other[to] for at, to in found.items())
    assert list(found.values()) == sorted(found.values())
    rare = set(one) & set(other)
    if all(one.count(x) < 4 and other.count(x) < 4 for x in rare):
        assert len(found) == longest(one, other)


@given(WORDS, WORDS)
def test_changes_make_the_one_the_other(one, other):
    made, at = "", 0
    for change in alignment.changes(one, other):
        made += one[at : change.a0] + other[change.b0 : change.b1]
        at = change.a1

    assert made + one[at:] == other


def test_a_search_that_grows_too_long_is_cut_short():
    rng = random.Random(1)
    one, other = ([rng.randrange(900) for _ in range(3000)] for _ in range(2))

    found = alignment.pairs(one, other)

    assert all(one[at] == other[to] for at, to in found.items())
    assert list(found.values()) == sorted(found.values())
    assert len(found) > 100


def test_a_change_ends_as_late_as_it_can():
    one = ["def f", "return", "", "def g", "return", ""]
    other = ["def f", "return", "", "def h", "return", "", "def g", "return", ""]

    assert alignment.changes(one, other) == [(3, 3, 3, 6)]


def test_a_change_stays_beside_one_of_the_other_side():
    assert alignment.changes("axxb", "ayxb") == [(1, 2, 1, 2)] or alignment.changes(
        "axxb", "ayxb"
    ) == [(2, 3, 1, 1), (1, 1, 1, 2)]
