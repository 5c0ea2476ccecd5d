"""Places of foreign hunks, held against GNU patch itself."""

import random
import subprocess

import pytest

from patchq.engine import diff, locating
from patchq.engine.locating import Failed, Landed
from patchq.model import Hunk


def hunks(before, after, context=3):
    (found,) = diff.parse(diff.unified(before, after, "x", context=context), name="x")[1]
    return found.hunks


def told(found, text, fuzz=0):
    fates = locating.locate(found, text, fuzz)
    return [locating.words(number, fate) for number, fate in enumerate(fates, 1)], fates


def edited(rng, rows, words, most):
    rows = list(rows)
    for _ in range(rng.randint(0, most)):
        at = rng.randrange(len(rows) + 1)
        rows[at : at + rng.randint(0, 2)] = [rng.choice(words) for _ in range(rng.randint(0, 2))]
    return rows


def case(seed):
    """Return a patch and a text it was not made for, at random; None where there is none."""
    rng = random.Random(seed)
    words = [b"a\n", b"b\n", b"c\n", b"\n"] if seed % 2 else [b"l%d\n" % at for at in range(12)]
    base = [rng.choice(words) for _ in range(rng.randint(1, 25))]
    new = edited(rng, base, [*words, b"NEW\n"], 3)
    other = edited(rng, base, [*words, b"OTHER\n"], 3)
    texts = [b"".join(rows) for rows in (base, new, other)]
    if seed % 5 == 0:
        texts[0] = texts[0][:-1]
    if seed % 7 == 0:
        texts[2] = texts[2][:-1]
    if not all(texts) or texts[0] == texts[1]:
        return None
    return diff.unified(texts[0], texts[1], "x", context=rng.randint(0, 3)), texts[2]


def gnu(text, other, fuzz, folder):
    """Return what GNU patch says of the hunks, and the file that it leaves."""
    path = folder / "x"
    path.write_bytes(other)
    done = subprocess.run(
        ["patch", "-f", "-p1", f"-F{fuzz}", "--binary"],
        cwd=folder,
        input=text,
        capture_output=True,
    )
    said = [line for line in done.stdout.decode().splitlines() if line.startswith("Hunk #")]
    return said, path.read_bytes() if path.exists() else b""


def explained(fate):
    """Return whether we are stricter than GNU patch on purpose, and say why."""
    if isinstance(fate, Landed):
        return False
    return bool(fate.places) or "no context" in fate.why or "leaves no line" in fate.why


def compare(seeds, folder):
    """Return how many cases were the same as GNU patch's, and how many are explained."""
    same = explained_ones = 0
    for seed in seeds:
        made = case(seed)
        if made is None:
            continue
        text, other = made
        (found,) = diff.parse(text, name="x")[1]
        for fuzz in range(4):
            said, _ = gnu(text, other, fuzz, folder)
            ours, fates = told(found.hunks, other, fuzz)
            if said == [line for line in ours if line]:
                same += 1
            else:
                assert any(map(explained, fates)), (seed, fuzz, said, ours)
                explained_ones += 1
    return same, explained_ones


def test_hunks_land_where_gnu_patch_puts_them_or_the_difference_is_explained(tmp_path):
    same, stricter = compare(range(40), tmp_path)

    assert same > 5 * stricter > 0


@pytest.mark.slow
def test_hunks_land_where_gnu_patch_puts_them_on_many_texts(tmp_path):
    same, stricter = compare(range(1000, 1300), tmp_path)

    assert same > 700
    assert same > 5 * stricter


def test_the_exact_place_is_taken_even_if_another_fits():
    block = b"def f():\n    return 1\n\n\n"
    found = hunks(block, block.replace(b"1", b"2"))

    (fate,) = locating.locate(found, block + b"x\n" + block)

    assert fate == Landed(0, 1)


def test_the_only_other_place_is_taken_and_said():
    text = b"".join(b"%d\n" % at for at in range(9))
    found = hunks(text, text.replace(b"4\n", b"four\n"))

    assert told(found, b"new\n" + text)[0] == ["Hunk #1 succeeded at 3 (offset 1 line)."]
    assert told(found, b"new\n" * 3 + text)[0] == ["Hunk #1 succeeded at 5 (offset 3 lines)."]
    assert told(found, text[2:])[0] == ["Hunk #1 succeeded at 1 (offset -1 lines)."]


def test_two_other_places_are_a_conflict_that_names_them():
    text = b"a\nb\nc\nd\n"
    found = hunks(b"1\n2\n" + text, b"1\n2\n" + text.replace(b"b", b"B"), 1)

    (fate,) = locating.locate(found, b"0\n" * 5 + text + b"x\n" + text)

    assert isinstance(fate, Failed)
    assert fate.places == (6, 11)
    assert fate.why == "it fits at the lines 6, 11"


def test_many_places_are_not_all_listed():
    found = hunks(b"1\n2\na\n", b"1\n2\nb\n", 0)

    (fate,) = locating.locate(found, b"x\na\n" * 50)

    assert fate.why.endswith("and perhaps more")


def test_after_a_hunk_that_moved_the_number_of_the_next_is_no_proof():
    rows = [b"%d\n" % at for at in range(30)]
    rows[20:21] = [b"same\n"]
    before = b"".join(rows)
    found = hunks(before, before.replace(b"2\n3\n", b"two\n3\n", 1).replace(b"same", b"SAME"), 0)
    moved = b"new\n" + before
    twice = moved + b"same\n"

    assert [fate.offset for fate in locating.locate(found, moved)] == [1, 1]
    first, second = locating.locate(found, twice)
    assert first == Landed(3, 4, 1)
    assert second.places == (22, 32)


def test_a_hunk_without_old_lines_stays_where_it_says_or_fails():
    insertion = Hunk(2, 0, 3, 1, (("+", b"new\n"),))
    moved = Hunk(1, 1, 1, 1, (("-", b"a\n"), ("+", b"A\n")))

    assert locating.locate([insertion], b"1\n2\n3\n") == (Landed(2, 3),)
    assert isinstance(locating.locate([insertion], b"1\n")[0], Failed)
    fates = locating.locate([moved, insertion], b"0\na\n2\n3\n")
    assert fates[0] == Landed(1, 2, 1)
    assert "no context" in fates[1].why


def test_fuzz_is_used_only_when_asked_for_and_no_more_than_needed():
    text = b"".join(b"%d\n" % at for at in range(9))
    found = hunks(text, text.replace(b"4\n", b"four\n"))
    other = text.replace(b"1\n", b"one\n").replace(b"7\n", b"seven\n")

    for fuzz in range(4):
        fates = locating.locate(found, other, fuzz)
        assert isinstance(fates[0], Landed) == (fuzz > 0)
    assert fates == (Landed(1, 2, 0, 1, 1, 1),)
    assert told(found, b"0\n" + other, 3)[0] == [
        "Hunk #1 succeeded at 3 with fuzz 1 (offset 1 line)."
    ]


def test_fuzz_that_leaves_nothing_to_look_for_is_a_conflict():
    found = hunks(b"1\n2\n3\n4\n", b"1\n2\nnew\n3\n4\n", 2)

    (fate,) = locating.locate(found, b"x\ny\nz\n", 3)

    assert "fuzz 2 leaves no line of it to look for" in fate.why


def test_a_failed_hunk_says_what_it_expected_and_lets_the_others_be_tried():
    text = b"".join(b"%d\n" % at for at in range(30))
    found = hunks(text, text.replace(b"\n4\n", b"\nfour\n").replace(b"24\n", b"twenty\n"))

    said, fates = told(found, text.replace(b"\n4\n", b"\nvier\n"))

    assert said == ["Hunk #1 FAILED at 2.", ""]
    assert fates[0].why == "line 5: expected '4', found 'vier'"


def test_a_hunk_at_an_end_of_the_file_fits_only_there():
    top = hunks(b"1\n2\n3\n4\n", b"0\n1\n2\n3\n4\n")
    bottom = hunks(b"1\n2\n3\n4\n", b"1\n2\n3\n4\n5\n")

    assert told(top, b"x\n1\n2\n3\n4\n")[0] == ["Hunk #1 FAILED at 1."]
    assert told(top, b"x\n1\n2\n3\n4\n")[1][0].why == (
        "it has less context above than below, as where a file begins, and it is not there"
    )
    assert told(bottom, b"x\n1\n2\n3\n4\n")[0] == ["Hunk #1 succeeded at 3 (offset 1 line)."]
    said, (fate,) = told(bottom, b"1\n2\n3\n4\nx\n")
    assert said == ["Hunk #1 FAILED at 2."]
    assert fate.why.startswith("it has less context below than above")
