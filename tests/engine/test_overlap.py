"""Lines of patches on a common base: where they meet, and what lies between."""

from itertools import pairwise

import pytest

from patchq.engine import diff, overlap, traces
from patchq.engine.overlap import Word
from patchq.engine.traces import Edit, Touch
from patchq.model import Patch


def text(*words: str) -> bytes:
    return "".join(f"{word}\n" for word in words).encode()


def numbered(count: int, **changes: str) -> bytes:
    """Lines 1 to `count`; ``l3="x y"`` puts these words in place of line 3, "" takes it out."""
    out = []
    for number in range(1, count + 1):
        out += changes.get(f"l{number}", f"line{number}").split()
    return text(*out)


def series(*texts: bytes, path: str = "f", context: int = 3) -> list[Patch]:
    """Return the patches that lead from each text to the next."""
    patches = []
    for number, (before, after) in enumerate(pairwise(texts)):
        data = diff.unified(before, after, path, context=context)
        header, diffs = diff.parse(data, name=f"{number}.patch")
        patches.append(Patch(f"{number}.patch", data, header, diffs))
    return patches


def lines_of(*texts: bytes) -> list[list[range]]:
    return [
        [edit.lines for touch in some for edit in touch.edits]
        for some in traces.trace(series(*texts))
    ]


def one(*texts: bytes, context: int = 3) -> Touch:
    (touch,) = traces.trace(series(*texts, context=context))[-1]
    return touch


def test_the_first_patch_has_its_lines_where_it_says():
    assert lines_of(numbered(9), numbered(9, l3="x", l8="line8 new")) == [
        [range(2, 3), range(8, 8)]
    ]


def test_lines_of_an_upper_patch_are_counted_in_the_pristine_file():
    middle = numbered(20, l2="line2 a b c", l5="")

    assert lines_of(numbered(20), middle, middle.replace(b"line9\n", b"nine\n"))[1] == [
        range(8, 9)
    ]


def test_a_line_that_a_lower_patch_put_in_is_the_place_where_it_was_put():
    middle = numbered(20, l2="line2 a b c")

    assert lines_of(numbered(20), middle, middle.replace(b"b\n", b"B\n"))[1] == [range(2, 2)]


def test_a_line_that_a_lower_patch_replaced_is_all_that_it_replaced():
    middle = numbered(20, l2="a", l3="b", l4="c")

    assert lines_of(numbered(20), middle, middle.replace(b"b\n", b"B B\n"))[1] == [range(1, 4)]


def test_an_insertion_where_a_lower_patch_took_lines_away_is_those_lines():
    middle = numbered(20, l4="", l5="")

    assert lines_of(numbered(20), middle, middle.replace(b"line6\n", b"new\nline6\n"))[1] == [
        range(3, 5)
    ]


def test_lines_next_to_those_that_a_lower_patch_took_away_are_just_themselves():
    middle = numbered(20, l4="", l5="")

    assert lines_of(numbered(20), middle, middle.replace(b"line6\n", b"six\n"))[1] == [range(5, 6)]
    assert lines_of(numbered(20), middle, middle.replace(b"line3\n", b"three\n"))[1] == [
        range(2, 3)
    ]


def test_a_reversed_patch_is_traced_as_it_is_applied():
    (patch,) = series(numbered(9, l3="a b c"), numbered(9))
    turned = Patch(patch.name, patch.text, patch.header, patch.diffs, reverse=True)

    ((touch,),) = traces.trace([turned])

    assert touch.edits == (Edit(range(2, 3), 2),)


def test_a_file_that_a_series_makes_or_renames_is_meant_as_a_whole():
    made = b"--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+x\n"
    changed = b"--- a/new\n+++ b/new\n@@ -1 +1 @@\n-x\n+y\n"
    renamed = (
        b"diff --git a/old b/now\nrename from old\nrename to now\n--- a/old\n+++ b/now\n"
        b"@@ -1 +1 @@\n-1\n+2\n"
    )
    later = b"--- a/now\n+++ b/now\n@@ -1 +1 @@\n-2\n+3\n"
    patches = [
        Patch(name, data, *diff.parse(data, name=name))
        for name, data in (("a", made), ("b", changed), ("c", renamed), ("d", later))
    ]

    found = [(touch.path, touch.whole) for some in traces.trace(patches) for touch in some]

    assert found == [("new", True), ("new", True), ("old", True), ("old", True)]


@pytest.mark.parametrize(
    ("mine", "its", "word", "gap"),
    [
        ({"l9": "x"}, {"l9": "y"}, Word.OVERLAP, 0),
        ({"l9": "x", "l10": "x"}, {"l10": "y"}, Word.OVERLAP, 0),
        ({"l9": "line9 x"}, {"l9": "line9 y"}, Word.OVERLAP, 0),
        ({"l9": "line9 x"}, {"l10": "y"}, Word.OVERLAP, 0),
        ({"l9": "x"}, {"l10": "y"}, Word.CLOSE, 0),
        ({"l9": "x"}, {"l12": "y"}, Word.CLOSE, 2),
        ({"l9": "x"}, {"l13": "y"}, Word.APART, 3),
        ({"l9": "x"}, {"l12": "line12 y"}, Word.APART, 3),
        ({"l3": ""}, {"l20": "y z"}, Word.APART, 16),
    ],
)
def test_patches_are_apart_where_neither_changes_the_context_of_the_other(mine, its, word, gap):
    base = numbered(20)
    pair = one(base, numbered(20, **mine)), one(base, numbered(20, **its))

    found = overlap.relate(*pair)
    turned = overlap.relate(*pair[::-1])

    assert (found.word, found.gap) == (turned.word, turned.gap) == (word, gap)
    assert found.clear == (word is Word.APART)
    assert found.lines == turned.lines[::-1]


def test_a_change_between_the_lines_of_one_hunk_is_too_close_however_far_its_context_reaches():
    base = numbered(20)
    mine = one(base, numbered(20, l5="x", l12="x"))
    its = one(base, numbered(20, l9="line9 y"), context=0)

    assert len(mine.spans) == 1
    assert overlap.relate(mine, its).word is Word.CLOSE


def test_two_changes_of_mode_overlap_and_one_is_apart_from_any_line():
    mode, lines = Touch("f", mode=True), Touch("f", (Edit(range(3, 4), 0),), (range(0, 7),))

    assert overlap.relate(mode, mode).word is Word.OVERLAP
    assert str(overlap.relate(mode, lines)) == "apart"


@pytest.mark.parametrize(
    ("gap", "word", "said"),
    [
        (1, Word.CLOSE, "too close (1 line, within the context)"),
        (12, Word.APART, "apart (12 lines)"),
        (0, Word.OVERLAP, "overlap (of the file as a whole)"),
    ],
)
def test_a_relation_is_said_in_a_few_words(gap, word, said):
    assert str(overlap.Relation(word, gap, ((), ()))) == said


def test_a_hunk_moves_by_what_lies_before_it_only():
    base = numbered(40)
    (mine,) = series(base, numbered(40, l5="x", l30="y"))
    ((touch,),) = traces.trace([mine])
    foreign = one(base, numbered(40, l15="a b c d", l38=""))

    moved = traces.shifted(mine, [touch], [foreign])

    was, now = ([h.old_start for h in p.diffs[0].hunks] for p in (mine, moved))
    assert [b - a for a, b in zip(was, now, strict=True)] == [0, 3]


def test_an_edit_by_hand_is_seen_to_meet_a_patch():
    base = numbered(9)
    (file,) = series(base, numbered(9, l3="x"))[0].diffs

    assert overlap.overlaps(base, numbered(9, l3="z"), file)
    assert not overlap.overlaps(base, numbered(9, l7="z"), file)
