"""Patches in another order: the same files, or a refusal that names the lines in the way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.engine import apply, commute, diff, textdiff
from patchq.errors import ConflictError
from patchq.model import Patch

HEADER = b"Description: caf\xe9\n about it\n---\n"


def patch(name, body, strip=1, reverse=False):
    header, diffs = diff.parse(HEADER + body, name=name, strip=strip)
    return Patch(name, HEADER + body, header, diffs, strip, reverse)


def made(name, before, after, path="x"):
    return patch(name, textdiff.unified(before, after, path))


def put(patches, tree):
    for one in patches:
        result = apply.apply_patch(one, tree.get)
        assert isinstance(result, apply.PatchApplied), result
        tree = {**tree, **result.after}
    return {path: file for path, file in tree.items() if file is not None}


def numbered(count):
    return [b"%d\n" % n for n in range(count)]


TEN = b"".join(numbered(10))


def test_a_file_that_only_one_has_keeps_its_diff_byte_for_byte():
    low = made("low", TEN, TEN.replace(b"3\n", b"three\n"))
    up = made("up", b"a\n", b"b\n", "y")
    tree = {"x": (TEN, False), "y": (b"a\n", False)}

    first, second = commute.swap(low, up, tree)

    assert (first, second) == (up, low)


def test_hunks_of_a_common_file_get_their_new_lines_and_context():
    low = made("low", TEN, TEN.replace(b"2\n", b"2\nin\n"))
    top = TEN.replace(b"2\n", b"2\nin\n").replace(b"5\n", b"five\n")
    up = made("up", TEN.replace(b"2\n", b"2\nin\n"), top)

    first, second = commute.swap(low, up, {"x": (TEN, False)})

    assert first.text == HEADER + textdiff.unified(TEN, TEN.replace(b"5\n", b"five\n"), "x")
    assert second.text == HEADER + textdiff.unified(TEN.replace(b"5\n", b"five\n"), top, "x")


@pytest.mark.parametrize(
    ("word", "becomes", "lines"),
    [
        (b"3\n", b"three\n", " line 4"),  # the same line
        (b"4\n", b"four\n", " line 4"),  # the next one
        (b"2\n", b"two\n", " line 4"),
    ],
)
def test_the_same_or_the_next_line_is_in_the_way(word, becomes, lines):
    middle = TEN.replace(b"3\n", b"drei\n")
    low = made("low", TEN, middle)
    up = made("up", middle, middle.replace(word.replace(b"3", b"drei"), becomes))

    found = commute.swap(low, up, {"x": (TEN, False)})

    assert isinstance(found, commute.InTheWay)
    assert str(found) == f"x{lines}, as low leaves it: up changes the same or the next lines"


def test_a_line_between_is_enough():
    middle = TEN.replace(b"3\n", b"drei\n")
    up = made("up", middle, middle.replace(b"5\n", b"five\n"))

    assert isinstance(commute.swap(made("low", TEN, middle), up, {"x": (TEN, False)}), tuple)


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ((None, b"1\n2\n3\n", b"1\n2\n4\n"), "x: low makes it"),
        ((b"1\n", b"2\n", None), "x: up removes it"),
        ((b"1\n", None, b"2\n"), "x: low removes it"),
    ],
)
def test_a_file_that_one_of_them_makes_or_removes(files, why):
    below, middle, top = files
    low, up = made("low", below, middle), made("up", middle, top)

    found = commute.swap(low, up, {"x": (below, False) if below else None})

    assert str(found) == why


def test_a_rename_is_in_the_way():
    text = b"diff --git a/x b/y\nrename from x\nrename to y\n"
    low = made("low", TEN, TEN.replace(b"3\n", b"three\n"))

    found = commute.swap(low, patch("up", text), {"x": (TEN, False)})

    assert str(found) == "x: up renames it"


def test_modes_go_with_their_patch():
    mode = textdiff.unified(TEN, TEN, "x", old_mode=0o100644, new_mode=0o100755)
    low = patch("low", mode)
    up = made("up", TEN, TEN.replace(b"3\n", b"three\n"))
    tree = {"x": (TEN, False)}

    first, second = commute.swap(low, up, tree)

    assert put([first], tree) == {"x": (TEN.replace(b"3\n", b"three\n"), False)}
    assert put([first, second], tree) == put([low, up], tree)


def test_both_change_the_mode():
    low = patch("low", textdiff.unified(TEN, TEN, "x", old_mode=0o100644, new_mode=0o100755))
    up = patch("up", textdiff.unified(TEN, TEN, "x", old_mode=0o100755, new_mode=0o100644))

    found = commute.swap(low, up, {"x": (TEN, False)})

    assert str(found) == "x: both change whether it is executable"


def test_two_diffs_of_one_file_are_left_alone():
    two = TEN.replace(b"2\n", b"two\n")
    twice = textdiff.unified(TEN, two, "x") + textdiff.unified(
        two, two.replace(b"4\n", b"four\n"), "x"
    )
    low = patch("low", twice)
    middle = two.replace(b"4\n", b"four\n")
    up = made("up", middle, middle.replace(b"8\n", b"eight\n"))

    assert str(commute.swap(low, up, {"x": (TEN, False)})) == "x: low has it in two diffs"


def test_names_index_lines_and_options_stay():
    low = made("low", TEN, b"in\n" + TEN)
    middle, top = b"in\n" + TEN, b"in\n" + TEN.replace(b"8\n", b"eight\n")
    text = (
        textdiff.unified(top, middle, "x").replace(b"a/x", b"top/a/x").replace(b"b/x", b"top/b/x")
    )
    body = b"".join(row for row in text.splitlines(True) if not row.startswith(b"diff --git"))
    up = patch("up", b"Index: top/x\n" + b"=" * 67 + b"\n" + body, strip=2, reverse=True)

    first, second = commute.swap(low, up, {"x": (TEN, False)})

    assert first.text.startswith(HEADER + b"Index: top/x\n" + b"=" * 67 + b"\n--- top/a/x\n")
    assert (first.strip, first.reverse) == (2, True)
    assert put([first, second], {"x": (TEN, False)}) == {"x": (top, False)}


def test_gits_index_line_goes_since_it_names_other_blobs():
    low = made("low", TEN, b"in\n" + TEN)
    body = textdiff.unified(b"in\n" + TEN, b"in\n" + TEN.replace(b"8\n", b"eight\n"), "x")
    body = body.replace(b"--- a/x", b"index 1234567..89abcde 100644\n--- a/x")

    first, _ = commute.swap(low, patch("up", body), {"x": (TEN, False)})

    assert b"index " not in first.text


def test_what_does_not_fit_as_it_is_can_not_be_moved():
    low = made("low", b"other\n", b"text\n")

    with pytest.raises(ConflictError, match="Patch low does not fit"):
        commute.moved([low, made("up", TEN, TEN + b"10\n")], 0, 1, {"x": (TEN, False)})


texts = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"\n"]), max_size=12).map(b"".join)


@given(st.lists(st.tuples(texts, texts), min_size=2, max_size=5), st.data())
def test_another_order_gives_the_same_files_or_names_lines(states, data):
    names = [f"p{n}" for n in range(len(states) - 1)]
    patches = []
    for name, old, new in zip(names, states, states[1:], strict=False):
        body = textdiff.unified(old[0], new[0], "x") + textdiff.unified(old[1], new[1], "y")
        patches.append(patch(name, body))
    tree = {"x": (states[0][0], False), "y": (states[0][1], False)}
    if any(not one.diffs for one in patches):
        return
    start, goal = (data.draw(st.integers(0, len(patches) - 1)) for _ in "ab")

    found = commute.moved(patches, start, goal, tree)

    if isinstance(found, commute.InTheWay):
        assert found.places or found.why
        assert names[start] in (found.lower, found.upper)
        return
    left = [name for name in names if name != names[start]]
    assert [one.name for one in found] == [*left[:goal], names[start], *left[goal:]]
    assert all(one.header == HEADER for one in found)
    assert put(found, tree) == put(patches, tree)


@given(st.permutations(range(6)), st.integers(0, 5), st.integers(0, 5), st.integers(0, 3))
def test_patches_with_a_line_between_them_always_commute(order, start, goal, more):
    """Each changes another line of three, or puts lines behind it."""
    text = numbered(18)
    tree = {"x": (b"".join(text), False)}
    patches = []
    for at in order:
        old = b"".join(text)
        line = b"%d\n" % (at * 3)
        text[text.index(line)] = b"x%d\n" % at + b"more\n" * (more * (at % 2))
        patches.append(made(f"p{at}", old, b"".join(text)))

    found = commute.moved(patches, start, goal, tree)

    assert isinstance(found, tuple), found
    assert put(found, tree) == put(patches, tree)


@given(st.integers(0, 7))
def test_the_way_back_is_the_same_text(context):
    middle = TEN.replace(b"1\n", b"one\nmore\n")
    top = middle.replace(b"7\n", b"seven\n")
    low = patch("low", textdiff.unified(TEN, middle, "x", context=context))
    up = patch("up", textdiff.unified(middle, top, "x", context=context))
    tree = {"x": (TEN, False)}

    once = commute.swap(low, up, tree)
    twice = commute.swap(*once, tree)

    assert put(once, tree) == put(twice, tree) == {"x": (top, False)}
    if context in (3,):
        assert [one.text for one in twice] == [low.text, up.text]
