import datetime
import os
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchq.engine import apply, diff, quiltdiff
from tests import quilt_lab

TEN = b"".join(b"%d\n" % n for n in range(10))
# Name of a case -> what a file is before and after.
CASES = {
    "changed": (TEN, TEN.replace(b"4\n", b"four\n")),
    "two hunks": (TEN, b"0\nin\n" + TEN[2:-2] + b"last\n"),
    "new": (None, b"1\n2\n"),
    "of an empty one": (b"", b"1\n"),
    "gone": (b"1\n", None),
    "emptied": (b"1\n", b""),
    "no newline": (b"1\n2", b"1\n2\n"),
    "newline lost": (b"1\n2\n", b"1\n2"),
    "carriage returns": (b"1\r\n2\r\n", b"1\r\n3\r\n"),
    "form feed": (b"1\x0c\x85\n", b"1\x0b\n"),
    "no UTF-8": (b"caf\xe9\n", b"th\xe9\n"),
    "slides down": (b"a\n\nb\n\nc\n", b"a\n\nx\n\nb\n\nc\n"),
    "removed one of many": (b"x\n" * 9, b"x\n" * 8),
}
STRIPS = {"ab": "-pab", "0": "-p0", "1": "-p1"}


@pytest.mark.parametrize("strip", STRIPS)
def test_a_patch_is_what_quilt_refresh_writes(tmp_path, strip):
    files = {f"d/{word.replace(' ', '-')}.py": sides for word, sides in sorted(CASES.items())}
    tree = quilt_lab.Tree(tmp_path / "top-1.0", {name: old for name, (old, _) in files.items()})

    changes = {name: new for name, (_, new) in files.items()}
    told = tree.patch("one.patch", changes, STRIPS[strip], "--no-timestamps")

    mine = [
        quiltdiff.render(old, new, name, strip=strip, top="top-1.0")
        for name, (old, new) in files.items()
    ]
    assert b"".join(mine) == told


@pytest.mark.parametrize("context", [0, 1, 3, 7])
def test_context_and_no_index(tmp_path, context):
    before, after = CASES["two hunks"]
    tree = quilt_lab.Tree(tmp_path / "top", {"x": before})

    told = tree.patch("p", {"x": after}, f"-U{context}", "--no-index", "--no-timestamps")

    assert (
        quiltdiff.render(before, after, "x", strip="1", top="top", context=context, index=False)
        == told
    )


@pytest.mark.parametrize("case", ["changed", "new", "gone"])
def test_timestamps(tmp_path, case, monkeypatch):
    before, after = CASES[case]
    tree = quilt_lab.Tree(tmp_path / "top", {"x": before})
    berlin = datetime.timezone(datetime.timedelta(hours=1))
    times = {"old": 1_700_000_000_012_345_678, "new": 1_710_000_000_000_000_000}
    if before is not None:
        os.utime(tmp_path / "top/x", ns=(times["old"], times["old"]))
    tree.run("new", "p")
    tree.run("add", "x")
    tree.write("x", after)
    if after is not None:
        os.utime(tmp_path / "top/x", ns=(times["new"], times["new"]))

    told = tree.run("diff")

    stamps = (quiltdiff.stamp(times["old"], berlin), quiltdiff.stamp(times["new"], berlin))
    assert quiltdiff.render(before, after, "x", strip="1", top="top", timestamps=stamps) == told


def test_nothing_is_written_of_what_quilt_writes_nothing(tmp_path):
    sides = {"1": (None, None), "2": (b"", None), "3": (None, b""), "4": (b"1\n", b"1\n")}
    tree = quilt_lab.Tree(tmp_path / "top", {name: old for name, (old, _) in sides.items()})
    tree.run("new", "p")
    tree.run("add", *sides)
    for name, (_, new) in sides.items():
        tree.write(name, new)

    assert tree.run("diff") == b""
    for old, new in sides.values():
        assert quiltdiff.render(old, new, "x", strip="1", top="top") == b""


@pytest.mark.parametrize("name", ["a b.py", "a: b [c]", 'a "q" b', "a\tb"])
def test_a_name_with_blanks_is_quoted_so_that_patch_reads_it(tmp_path, name):
    """quilt since 0.68 puts such names in quotes; older ones wrote what nobody could read."""
    (tmp_path / name).write_bytes(b"1\n")

    text = quiltdiff.render(b"1\n", b"2\n", name)
    done = subprocess.run(["patch", "-p1"], cwd=tmp_path, input=text, capture_output=True)

    assert done.returncode == 0, done
    assert (tmp_path / name).read_bytes() == b"2\n"


@pytest.mark.parametrize("name", ["a b.py", "ä b.py", 'a "q" b', "caf\udce9 b"])
def test_patchq_reads_the_names_that_it_quotes(name):
    text = quiltdiff.render(b"1\n", b"2\n", name)

    assert [file.new for file in diff.parse(text, name="x.patch")[1]] == [name]


def test_the_index_line_and_names_of_a_name_with_blanks():
    assert quiltdiff.render(b"1\n", b"2\n", "a b").startswith(
        b'Index: b/a b\n%s\n--- "a/a b"\n+++ "b/a b"\n' % (b"=" * 67)
    )


def test_other_names_are_written_as_they_are(tmp_path):
    tree = quilt_lab.Tree(tmp_path / "top", {"caf\udce9.py": b"1\n", "ä#'*.py": b"1\n"})
    changes = {"caf\udce9.py": b"2\n", "ä#'*.py": b"2\n"}

    told = tree.patch("p", changes, "-pab", "--no-timestamps")

    assert b"".join(quiltdiff.render(b"1\n", b"2\n", name) for name in changes) == told


def test_a_strip_level_that_quilt_does_not_write():
    with pytest.raises(ValueError, match="-p2: quilt writes -pab, -p0, -p1"):
        quiltdiff.render(b"1\n", b"2\n", "x", strip="2")


def test_binary_is_what_gnu_diff_takes_for_it(tmp_path):
    for number, data in enumerate(
        (b"\0\n", b"a\n" * 9 + b"\0", b"a\n" * 20_000 + b"\0", b"a\xff\n")
    ):
        (tmp_path / "1").write_bytes(data)
        (tmp_path / "2").write_bytes(data[1:])
        told = subprocess.run(["diff", "-u", "1", "2"], cwd=tmp_path, capture_output=True).stdout
        assert quiltdiff.is_binary(data) == told.startswith(b"Binary files"), number
    assert not quiltdiff.is_binary(None)


texts = st.lists(st.sampled_from([b"a", b"b", b"", b"  x", b"}"]), max_size=25).map(b"\n".join)


@settings(max_examples=80, deadline=None)
@given(before=texts, after=texts, context=st.sampled_from([0, 1, 3]))
def test_hunks_are_gnu_diffs(tmp_path_factory, before, after, context):
    folder = tmp_path_factory.mktemp("gnu")
    (folder / "1").write_bytes(before)
    (folder / "2").write_bytes(after)
    old = "1" if before else "/dev/null"
    told = subprocess.run(
        ["diff", f"-U{context}", "--label", "a/x" if before else old, "--label", "b/x", old, "2"],
        cwd=folder,
        stdout=subprocess.PIPE,
    ).stdout

    text = quiltdiff.render(before, after, "x", context=context, index=False)

    assert text == told
    if context or before == after:
        file = diff.parse(text, name="x.patch")[1]
        assert (apply.apply(file[0], before or None).data if file else before) == after
