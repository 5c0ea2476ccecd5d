"""Two queues on one file: the same bytes in either order, or a clash in both."""

import itertools

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from patchq.engine import apply, diff, layers, overlap
from patchq.engine.layers import Clash, Laid, Layer
from patchq.model import Patch
from tests.engine.test_overlap import numbered, series

Change = tuple[int, int, list[bytes]]


def layered(queue: str, *texts: bytes) -> list[Layer]:
    return [Layer(queue, patch) for patch in series(*texts)]


def result(pile: list[Layer], base: bytes) -> bytes | None:
    """Return the file with all layers in it, None where one clashes."""
    file = (base, False)
    for one in layers.lay(pile, {"f": file}):
        if isinstance(one, Clash):
            return None
        assert one.result.after["f"] is not None
        file = one.result.after["f"]
    return file[0]


def changed(base: bytes, changes: list[Change]) -> bytes:
    """Return the text with lines from a start replaced, last change first."""
    lines = base.splitlines(keepends=True)
    for start, count, new in sorted(changes, reverse=True, key=lambda one: one[0]):
        lines[start : start + count] = new
    return b"".join(lines)


# Few different lines: the same ones stand in many places.
BASES = st.lists(st.sampled_from([b"a\n", b"b\n", b"{\n", b"}\n"]), min_size=40, max_size=60)
NEW = st.lists(st.sampled_from([b"a\n", b"b\n", b"{\n", b"new\n"]), max_size=4)


@st.composite
def apart(draw) -> tuple[bytes, list[Change], list[Change]]:
    """A text, and changes for two queues, at least eight lines from each other."""
    base = b"".join(draw(BASES))
    mine: tuple[list[Change], list[Change]] = ([], [])
    for slot in range(0, 40, 10):
        start = slot + draw(st.integers(0, 1))
        old = base.splitlines(keepends=True)[start : start + draw(st.integers(0, 1))]
        new = draw(NEW)
        if new != old:
            mine[draw(st.integers(0, 1))].append((start, len(old), new))
    return base, *mine


def edits(pile: list[Layer]) -> list[Change]:
    """Return what a series of one patch, or none, says that it changes."""
    if not pile:
        return []
    (diff,) = pile[0].patch.diffs
    spans = overlap.changed(diff)
    new = [
        [text for mark, text in run if mark == "+"]
        for hunk in diff.hunks
        for same, run in itertools.groupby(hunk.lines, key=lambda line: line[0] == " ")
        if not same
    ]
    return [(span.start, len(span), some) for span, some in zip(spans, new, strict=True)]


def far(one: Change, other: Change) -> bool:
    """True where one change is not right before the other."""
    return not one[0] <= other[0] < one[0] + one[1] + 7


@pytest.mark.slow
@given(apart())
@settings(deadline=None)
def test_changes_that_are_apart_give_the_same_bytes_in_either_order(drawn):
    base, first, second = drawn
    one, other = (layered(q, base, changed(base, c)) for q, c in (("p", first), ("q", second)))
    one, other = ([layer for layer in some if layer.patch.diffs] for some in (one, other))

    # Of equal lines a diff may say that others of them were changed: what it says counts.
    mine, theirs = edits(one), edits(other)
    assume(all(far(a, b) and far(b, a) for a in mine for b in theirs))
    wanted = changed(base, [*mine, *theirs])

    assert result([*one, *other], base) == wanted
    assert result([*other, *one], base) == wanted


@st.composite
def edited(draw, base: bytes) -> bytes:
    """One or two small changes of a text, anywhere."""
    for _ in range(draw(st.integers(1, 2))):
        start = draw(st.integers(0, base.count(b"\n")))
        base = changed(base, [(start, draw(st.integers(0, 2)), draw(NEW))])
    return base


@st.composite
def two_series(draw) -> tuple[bytes, list[Layer], list[Layer]]:
    """A text, and a series of two patches for each of two queues, which may meet."""
    base = b"".join(draw(st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n"]), max_size=24)))
    sides = []
    for queue in "pq":
        first = draw(edited(base))
        sides.append(
            [one for one in layered(queue, base, first, draw(edited(first))) if one.patch.diffs]
        )
    return base, *sides


@pytest.mark.slow
@given(two_series())
@settings(max_examples=300, deadline=None)
def test_two_series_give_the_same_bytes_in_every_order_or_clash_in_every_order(drawn):
    base, p, q = drawn
    orders = [[*p, *q], [*q, *p]]
    if len(p) == len(q) == 2:
        orders += [[p[0], q[0], p[1], q[1]], [q[0], p[0], q[1], p[1]], [p[0], *q, p[1]]]

    assert len({result(order, base) for order in orders}) == 1


def test_a_block_that_stands_twice_is_changed_where_the_patch_means_it():
    """A search for the exact place would find the block that the other queue put there."""
    block = b"def f():\n    a\n    b\n    c\n    d\n    e\n    return 1\n"
    base = b"".join(b"top%d\n" % n for n in range(9)) + block + b"end\n"
    ours = layered("q", base, base.replace(b"    c\n", b"    C\n"))
    theirs = layered("p", base, block + base)

    wanted = block + base.replace(b"    c\n", b"    C\n")

    searched = apply.apply_patch(ours[0].patch, {"f": (block + base, False)}.get, search=True)
    assert result([*theirs, *ours], base) == result([*ours, *theirs], base) == wanted
    assert isinstance(searched, apply.PatchRejected) or searched.after["f"][0] == wanted


def test_what_a_layer_lies_on_is_told():
    base = numbered(40)
    theirs = layered("p", base, numbered(40, l3="a b c"))
    ours = layered("q", base, numbered(40, l20="x", l35="y"))

    first, second = layers.lay([*theirs, *ours], {"f": (base, False)})

    assert isinstance(first, Laid)
    assert isinstance(second, Laid)
    (footing,) = second.footings
    assert (footing.path, footing.on.queue, footing.relation.gap) == ("f", "p", 16)
    assert footing.moved == (2, 2)


def test_patches_above_one_that_clashes_are_named_only_where_they_clash_themselves():
    base = numbered(60)
    texts = [base, numbered(60, l3="x"), numbered(60, l3="x", l30="y")]
    ours = layered("q", *texts, numbered(60, l3="x", l30="y", l50="z"))
    theirs = layered("p", base, numbered(60, l3="X", l50="Z"))

    found = list(layers.lay([*theirs, *ours], {"f": (base, False)}))

    assert [(type(one), one.layer.patch.name) for one in found[1:]] == [
        (Clash, "0.patch"),
        (Clash, "2.patch"),
    ]
    assert found[1].footings[0].relation.word is overlap.Word.OVERLAP


def test_a_file_that_another_queue_deleted_clashes():
    base = b"1\n"
    gone = b"--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n"
    theirs = Layer("p", Patch("gone", gone, *diff.parse(gone, name="gone")))

    found = list(layers.lay([theirs, *layered("q", base, b"2\n")], {"f": (base, False)}))

    assert isinstance(found[1], Clash)


def test_a_mode_that_another_queue_changed_is_what_apply_says_of_it():
    def mode(old: int, new: int, queue: str) -> Layer:
        text = f"diff --git a/f b/f\nold mode {old:o}\nnew mode {new:o}\n"
        text += "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-1\n+2\n" if queue == "q" else ""
        return Layer(queue, Patch(queue, text.encode(), *diff.parse(text.encode(), name=queue)))

    pile = [mode(0o100644, 0o100755, "p"), mode(0o100644, 0o100755, "q")]
    first, second = layers.lay(pile, {"f": (b"1\n", False)})

    assert isinstance(first, Laid)
    assert isinstance(second, Clash)


@given(apart())
def test_what_was_laid_on_each_other_is_taken_back(drawn):
    base, mine, theirs = drawn
    pile = [
        layer
        for queue, some in (("p", mine), ("q", theirs))
        if some
        for layer in layered(queue, base, changed(base, some))
    ]
    found = result(pile, base)
    assume(found is not None)

    assert layers.take_back(pile, {"f": (found, False)}) == {"f": (base, False)}


def test_layers_that_are_not_in_a_file_are_not_taken_back():
    pile = layered("q", numbered(9), numbered(9, l3="x"))

    assert layers.take_back(pile, {"f": (numbered(9), False)}) is None


def test_a_file_that_is_not_as_the_layers_below_leave_it_is_rejected():
    base = numbered(9)

    (found,) = layers.lay(layered("q", base, numbered(9, l3="x")), {"f": (b"other\n", False)})

    assert isinstance(found, Clash)
    assert found.rejected is not None
    assert found.footings == ()
