"""The text merge: its laws, and git merge-file's word on it."""

import random
import subprocess

import pytest
from hypothesis import given

from patchq.engine import merge
from tests.engine import merge_cases

LABELS = ("ours", "base", "theirs")


def git(folder, base: bytes, ours: bytes, theirs: bytes, *options: str) -> tuple[int, bytes]:
    """Return what git merge-file says: the number of conflicts, and the text."""
    for name, text in zip(LABELS, (ours, base, theirs), strict=True):
        (folder / name).write_bytes(text)
    named = [word for label in LABELS for word in ("-L", label)]
    done = subprocess.run(
        ["git", "merge-file", "-p", *options, *named, *LABELS], cwd=folder, capture_output=True
    )
    assert done.returncode < 128, done.stderr
    return done.returncode, done.stdout


def edited(rng: random.Random, lines: list[bytes], words: int) -> bytes:
    """Return lines with some of them replaced, taken out, put in."""
    lines = list(lines)
    for _ in range(rng.randint(0, 5)):
        at = rng.randint(0, len(lines))
        new = [b"%d\n" % rng.randrange(words) for _ in range(rng.randint(0, 3))]
        lines[at : at + rng.randint(0, 3)] = new
    data = b"".join(lines)
    return data if rng.random() < 0.9 else data.removesuffix(b"\n")


@pytest.mark.parametrize("words", [4, 30, 1000])
def test_a_merge_is_what_git_makes_of_it_markers_and_all(words, tmp_path):
    rng = random.Random(words)
    seen = set()
    for _ in range(40):
        lines = [b"%d\n" % rng.randrange(words) for _ in range(rng.randint(0, 40))]
        base, ours, theirs = b"".join(lines), edited(rng, lines, words), edited(rng, lines, words)

        mine = merge.merge(base, ours, theirs)
        conflicts, text = git(tmp_path, base, ours, theirs)

        assert (mine.text is None) == bool(conflicts)
        seen.add(bool(conflicts))
        if conflicts:
            assert mine.render(LABELS) == git(tmp_path, base, ours, theirs, "--diff3")[1]
        else:
            assert mine.text == text
    assert seen == {True, False}


def test_code_is_merged_as_git_merges_it(tmp_path):
    rng = random.Random(7)
    block = b"def f%d(x):\n    if x:\n        return x\n\n    return None\n\n\n"
    lines = b"".join(block % number for number in range(30)).splitlines(keepends=True)
    for _ in range(25):
        sides = []
        for _ in range(2):
            side = list(lines)
            for _ in range(6):
                at = rng.randrange(len(side))
                side[at : at + rng.randint(0, 8)] = rng.choices(lines, k=rng.randint(0, 8))
            sides.append(b"".join(side))
        base = b"".join(lines)

        mine = merge.merge(base, *sides)

        conflicts, text = git(tmp_path, base, *sides)
        assert mine.text == (None if conflicts else text)


@given(merge_cases.three())
def test_what_one_side_changed_alone_is_taken(texts):
    base, ours, theirs = texts

    assert merge.merge(base, ours, base).text == ours
    assert merge.merge(base, base, theirs).text == theirs
    assert merge.merge(base, ours, ours).text == ours


@given(merge_cases.three())
def test_a_merge_does_not_ask_who_is_ours(texts):
    base, ours, theirs = texts

    one, other = merge.merge(base, ours, theirs), merge.merge(base, theirs, ours)

    assert one.text == other.text
    assert len(one.conflicts) == len(other.conflicts)


@given(merge_cases.three())
def test_no_line_that_a_side_added_is_lost(texts):
    merged = merge.merge(*texts)

    shown = merged.render(LABELS)
    for side, text in zip(("ours", "theirs"), texts[1:], strict=True):
        kept = [
            line.removesuffix(b"\n")
            for region in merged.regions
            if region.side in ("conflict", side)
            for line in getattr(region, side)
        ]
        assert set(kept) <= set(shown.split(b"\n")), text


@given(merge_cases.three())
def test_the_regions_are_each_side_in_order(texts):
    merged = merge.merge(*texts)

    assert b"".join(b"".join(region.base) for region in merged.regions) == texts[0]
    ours = [region.theirs if region.side == "base" else region.ours for region in merged.regions]
    assert b"".join(map(b"".join, ours)) == texts[1]


def test_a_conflict_is_shown_in_the_line_ends_of_ours(tmp_path):
    shown = merge.merge(b"1\r\n", b"2\r\n", b"3\r\n").render(LABELS)

    assert shown == git(tmp_path, b"1\r\n", b"2\r\n", b"3\r\n", "--diff3")[1]

    assert shown.split(b"\r\n") == [
        *(b"<<<<<<< ours", b"2", b"||||||| base", b"1", b"=======", b"3", b">>>>>>> theirs"),
        b"",
    ]


def test_a_last_line_without_newline_stays_without():
    assert merge.merge(b"1\n2\n3", b"0\n1\n2\n3", b"1\n2\n3").text == b"0\n1\n2\n3"
    assert merge.merge(b"1\n2\n3", b"0\n2\n3", b"1\n2\n3\n").text == b"0\n2\n3\n"


def test_a_conflict_names_its_line_in_ours():
    merged = merge.merge(b"1\n2\n3\n4\n", b"0\n1\n2\nx\n4\n", b"1\n2\ny\n4\n")

    assert [region.line for region in merged.conflicts] == [4]
