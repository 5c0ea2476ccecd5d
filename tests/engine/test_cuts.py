"""A patch cut into its files: as git names them, and never inside a hunk."""

import subprocess

import pytest

from patchq.engine import cuts, diff, lines
from tests.engine import corpus


def cut(text):
    return cuts.cut(lines.split(text), source="x.patch")


def names(text):
    return [(one.old, one.new) for one in cut(text)]


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--no-renames",), ("--binary",), ("-U0",)])
@pytest.mark.parametrize("seed", range(2))
def test_every_file_of_a_diff_of_gits_is_found_under_the_names_that_git_says(
    seed, options, tmp_path
):
    before, after = corpus.trees(seed)
    before["x.png"], after["x.png"] = (b"\0\1\2", False), (b"\0\1\3" * 99, False)
    text = corpus.git_diff(before, after, tmp_path, *options)
    said = corpus.git(tmp_path, "diff", "--cached", "-z", "--name-status", *options)

    found = cut(text)

    words, expected = iter(said.split(b"\0")[:-1]), []
    for word in words:
        old = new = lines.decode(next(words))
        if word.startswith(b"R"):
            new = lines.decode(next(words))
        expected.append(
            (None if word == b"A" else f"a/{old}", None if word == b"D" else f"b/{new}")
        )
    assert [(one.old, one.new) for one in found] == expected
    assert sum(one.binary for one in found) == 1
    assert [one.start for one in found] == [0, *(one.end for one in found[:-1])]
    assert found[-1].end == found[-1].last == len(lines.split(text))


def test_gnu_diffs_lines_belong_to_the_file_below_them(tmp_path):
    for folder, data in (("one", b"1\n"), ("two", b"2\n")):
        (tmp_path / folder / "sub").mkdir(parents=True)
        (tmp_path / folder / "a.py").write_bytes(data)
        (tmp_path / folder / "sub" / "b c.py").write_bytes(data)
    (tmp_path / "two" / "new.py").write_bytes(b"n\n")
    text = subprocess.run(["diff", "-ruN", "one", "two"], cwd=tmp_path, capture_output=True).stdout

    found = cut(b"why\n\n" + text)

    assert [(one.old, one.new) for one in found] == [
        ("one/a.py", "two/a.py"),
        (None, "two/new.py"),
        ("one/sub/b c.py", "two/sub/b c.py"),
    ]
    assert found[0].start == 2


def test_lines_of_a_hunk_that_look_like_names_are_none():
    before = b"-- a/y\nx\n"
    text = diff.unified(before, b"++ b/y\n@@ -1 +1 @@\nx\n", "x")

    assert names(text) == [("a/x", "b/x")]


def test_what_quilt_writes_above_a_diff_is_no_header():
    rule = b"=" * 67
    text = b"why\n\nIndex: b/x\n%s\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n" % rule

    (found,) = cut(text + text[5:].replace(b"x", b"y"))[:1]

    assert found.start == 2
    assert names(text + text[5:].replace(b"b/x", b"b/y"))[1] == ("a/x", "b/y")


def test_text_behind_the_last_hunk_is_no_diff():
    text = diff.unified(b"1\n", b"2\n", "x") + b"-- \n2.39.5\n\n"

    (found,) = cut(text)

    assert (found.last, found.end) == (found.end - 3, len(lines.split(text)))


def test_a_mode_or_a_pure_rename_has_names_too():
    text = (
        b"diff --git a/x y b/x y\nold mode 100644\nnew mode 100755\n"
        b"diff --git a/o b/n\nsimilarity index 100%\nrename from o\nrename to n\n"
        b"diff --git o n\nsimilarity index 100%\nrename from o\nrename to n\n"
        b'diff --git "a/caf\\303\\251" "b/caf\\303\\251"\nnew file mode 100644\n'
        b"index 0000000..e69de29\n-- \n2.39.5\n"
    )

    assert names(text) == [
        ("a/x y", "b/x y"),
        ("a/o", "b/n"),
        ("o", "n"),
        (None, "b/café"),
    ]
    assert cut(text)[-1].last == len(lines.split(text)) - 2


def test_carriage_returns_of_its_own_lines_are_noticed():
    text = diff.unified(b"1\n", b"2\n", "x")

    assert cut(text.replace(b"\n", b"\r\n"))[0].returns
    assert not cut(text)[0].returns
    assert not cut(diff.unified(b"1\r\n", b"2\r\n", "x"))[0].returns


def test_a_binary_file_of_gnu_diffs_is_known_as_one():
    (found,) = cut(b"Binary files a/x.png and b/x.png differ\n")

    assert (found.old, found.new, found.binary) == ("a/x.png", "b/x.png", True)


def test_a_text_without_a_diff_has_no_files():
    assert cut(b"") == cut(b"--- not a diff\n+++\n") == ()


def test_a_combined_diff_is_refused():
    with pytest.raises(diff.PatchFormatError, match="merge"):
        cut(b"diff --cc x\nindex 1,2..3\n--- a/x\n+++ b/x\n@@@ -1,1 -1,1 +1,1 @@@\n")
