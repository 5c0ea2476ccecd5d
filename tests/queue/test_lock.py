import contextlib
import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchq.engine import diff
from patchq.errors import PatchqError
from patchq.model import (
    ABSENT,
    FileState,
    Lock,
    LockedPatch,
    Patch,
    PathChange,
    Series,
    UnsafePath,
    sha256,
)
from patchq.queue import lock as locks

NAMES = st.sampled_from(["a.py", "pkg/caf\u00e9.py", "pkg/\udce9.py", 'q"uote', "a b/c"])
DIGESTS = st.binary(max_size=2).map(sha256)
STATES = st.just(ABSENT) | st.builds(FileState, DIGESTS, st.booleans())
LOCKED = st.builds(
    LockedPatch,
    st.sampled_from(["10-a.patch", "sub/\udcff.patch"]),
    st.sampled_from(["", "-p0 -R"]),
    DIGESTS,
    st.none() | DIGESTS,
    st.lists(st.builds(PathChange, NAMES, STATES, STATES), max_size=3).map(tuple),
    st.dictionaries(NAMES, st.none() | DIGESTS, max_size=3),
)
LOCKS = st.builds(
    Lock,
    st.just("vllm"),
    st.text(max_size=3),
    st.text(max_size=3),
    st.lists(LOCKED, max_size=3).map(tuple),
)


def patch(name, before, after, path="x", **options):
    text = diff.unified(before, after, path)
    header, diffs = diff.parse(text, name=name)
    return Patch(name, text, header, diffs, **options)


FIRST = patch("1.patch", b"1\n", b"2\n", sketch=b"# in x\n")
SECOND = patch("2.patch", b"3\n", b"2\n", reverse=True)
THIRD = patch("3.patch", None, b"y\n", "y")
TREE = {"x": (b"1\n", True)}
READS = {"1.patch": {"z.py": sha256(b"z"), "gone.py": None}}


def made(*patches):
    return locks.make("d", "1.0", "tree", patches, read=TREE.get, reads=READS)


@given(LOCKS)
@settings(max_examples=30)
def test_a_lock_written_and_read_is_the_same_lock_and_the_same_bytes(lock):
    text = locks.format(lock)

    assert locks.parse(text) == lock
    assert locks.format(locks.parse(text)) == text
    assert text.isascii()


def test_every_path_has_a_line_of_its_own():
    text = locks.format(made(FIRST, SECOND, THIRD)).decode()

    rows = [line for line in text.split("\n") if '"x"' in line or "z.py" in line]
    assert len(rows) == 3
    assert json.loads(text)["schema"] == 1


def test_a_lock_has_the_facts_of_each_patch_on_those_below_it():
    lock = made(FIRST, SECOND, THIRD)

    one, two, three = (FileState(sha256(b"%d\n" % n), True) for n in (1, 2, 3))
    assert [patch.changes for patch in lock.patches] == [
        (PathChange("x", one, two),),
        (PathChange("x", two, three),),
        (PathChange("y", ABSENT, FileState(sha256(b"y\n"))),),
    ]
    assert [patch.options for patch in lock.patches] == ["", "-R", ""]
    assert lock.patches[0].sketch == sha256(b"# in x\n")
    assert lock.patches[0].reads == READS["1.patch"]
    assert lock.base == {"x": one, "y": ABSENT}


def test_a_patch_that_does_not_fit_is_named_with_the_release():
    with pytest.raises(locks.UnfitPatchError) as caught:
        made(SECOND)

    assert caught.value.what == "2.patch does not fit on d 1.0"
    assert "expected '2', found '1'" in caught.value.why


def test_a_file_that_a_patch_deleted_is_not_asked_for_again():
    gone = patch("1.patch", b"2\n", None)
    back = patch("2.patch", None, b"1\n")

    lock = locks.make("d", "1.0", "", (gone, back), read={"x": (b"2\n", False)}.get)

    assert lock.patches[1].changes[0].before == ABSENT


@pytest.mark.parametrize(
    ("patches", "words"),
    [
        ((FIRST, SECOND), None),
        ((SECOND, FIRST), "1.patch where the series has 2.patch"),
        ((FIRST,), "the lock has 2 patches, the series 1"),
        ((FIRST, SECOND, THIRD), "the lock has 2 patches, the series 3"),
        ((replace(FIRST, strip=0), SECOND), "options '', the series '-p0'"),
        ((replace(FIRST, text=FIRST.text + b"\n"), SECOND), "1.patch was edited"),
        ((replace(FIRST, sketch=b"x"), SECOND), "sketch of 1.patch"),
        ((replace(FIRST, sketch=None), SECOND), "sketch of 1.patch"),
    ],
)
def test_a_lock_knows_when_the_series_is_no_longer_its_own(patches, words):
    found = locks.stale(made(FIRST, SECOND), Series("1.0", patches, None))

    assert found is words is None or words in found


GOOD = locks.format(made(FIRST, THIRD))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "JSONDecodeError"),
        (b"{}", "KeyError: 'schema'"),
        (b"[]", "TypeError"),
        (b"\xff", "UnicodeDecodeError"),
        (b"[" * 100_000, "RecursionError"),
        (GOOD.replace(b'"schema": 1', b'"schema": 2'), "its schema is 2; this patchq knows 1"),
        (GOOD.replace(b"  ]", b"<<<<<<< HEAD\n  ]"), "merge conflict"),
        (GOOD.replace(b'"d"', b"3"), "3 is not text"),
        (GOOD.replace(b'"tree": "tree"', b'"release": "2"'), "a key is there twice"),
        (GOOD.replace(sha256(FIRST.text).encode(), b"abc"), "'abc' is not a sha256"),
        (GOOD.replace(b'["absent"', b'["link"'), "not the state of a file"),
        (GOOD.replace(b'"reads": {}', b'"reads": []'), "not a patch"),
        (GOOD.replace(b'["y", ', b'["y", 1, '), "too many values"),
    ],
)
def test_a_lock_that_is_none_is_refused_with_the_reason(data, words):
    with pytest.raises(locks.LockError) as caught:
        locks.parse(data, name="q/1.0/series.lock")

    assert caught.value.what == "q/1.0/series.lock cannot be read"
    assert words in caught.value.why
    assert caught.value.mend == "patchq lint --write"


@pytest.mark.parametrize("name", [b'"../y"', b'"/y"', b'".git/y"', b'"a/\\u0000"'])
def test_a_path_that_leads_out_of_the_package_is_refused(name):
    for old in (b'"y"', b'"z.py"', b'"3.patch"'):
        with pytest.raises(UnsafePath):
            locks.parse(GOOD.replace(old, name))


@given(st.integers(0, len(GOOD) - 1), st.binary(min_size=0, max_size=3))
@settings(max_examples=30)
def test_a_damaged_lock_gives_a_value_or_a_named_error(at, bytes_):
    with contextlib.suppress(PatchqError):
        assert isinstance(locks.parse(GOOD[:at] + bytes_ + GOOD[at + 1 :]), Lock)
