import contextlib
import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchq.engine import apply, cquote, diff, lines
from patchq.errors import PatchqError
from patchq.model import FileDiff, Hunk, Patch, UnsafePath
from tests.engine import corpus

HUNK = "@@ -1 +1 @@\n-1\n+2\n"
ONE = (Hunk(1, 1, 1, 1, (("-", b"1\n"), ("+", b"2\n"))),)


def parse(text, strip=1):
    data = text if isinstance(text, bytes) else textwrap.dedent(text).encode()
    return diff.parse(data, name="x.patch", strip=strip)


def only(text, strip=1):
    (found,) = parse(text, strip)[1]
    return found


def test_the_header_is_all_above_the_first_diff_byte_for_byte():
    header = b"*** Description: caf\xe9\r\n .\n\n---\n  1 file changed\nlast"

    assert diff.parse(header, name="x") == (header, ())
    assert (
        parse(header + b"\nIndex: x\n====\n--- a/x\n+++ b/x\n" + HUNK.encode())[0]
        == header + b"\n"
    )


def test_an_empty_patch_has_no_diffs():
    assert diff.parse(b"", name="x") == (b"", ())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("diff --git a/x b/x\n--- a/x\n+++ b/x\n" + HUNK, FileDiff("x", "x", hunks=ONE)),
        (
            "diff --git a/x b/x\nindex 1234..4567 100755\n--- a/x\n+++ b/x\n" + HUNK,
            FileDiff("x", "x", hunks=ONE),
        ),
        (
            "diff --git a/x b/x\nnew file mode 100755\nindex 0000000..1234567\n"
            "--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+2\n",
            FileDiff(None, "x", None, 0o100755, (Hunk(0, 0, 1, 1, (("+", b"2\n"),)),)),
        ),
        (
            "diff --git a/x b/x\nnew file mode 100644\nindex 0000000..e69de29\n",
            FileDiff(None, "x", None, 0o100644),
        ),
        (
            "diff --git a/x b/x\ndeleted file mode 100644\nindex e69de29..0000000\n",
            FileDiff("x", None, 0o100644, None),
        ),
        ("diff --git a/x b/x\ndeleted file mode 100664\n", FileDiff("x", None, 0o100644, None)),
        (
            "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n",
            FileDiff("x", "x", 0o100644, 0o100755),
        ),
        (
            "diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n",
            FileDiff("x", "y"),
        ),
        (
            'diff --git a/x "b/\\303\\251 \\"q"\nsimilarity index 50%\nrename from x\n'
            'rename to "\\303\\251 \\"q"\n--- a/x\n+++ "b/\\303\\251 \\"q"\n' + HUNK,
            FileDiff("x", 'é "q', hunks=ONE),
        ),
        (
            'diff --git "a/\\351" "b/\\351"\n--- "a/\\351"\n+++ "b/\\351"\n' + HUNK,
            FileDiff("\udce9", "\udce9", hunks=ONE),
        ),
        (
            "diff --git a/a b/x y b/a b/x y\nold mode 100755\nnew mode 100644\n",
            FileDiff("a b/x y", "a b/x y", 0o100755, 0o100644),
        ),
        (
            "diff --git a/a b/x b/a b/x\n--- a/a b/x\t\n+++ b/a b/x\t\n" + HUNK,
            FileDiff("a b/x", "a b/x", hunks=ONE),
        ),
        (
            "diff -ru o/x n/x\n--- o/x\t2020-01-01 00:00:00.0 +0000\n+++ n/x\t2021\n" + HUNK,
            FileDiff("x", "x", hunks=ONE),
        ),
        (
            "diff --git a/x 2020-01-01 b/x 2020-01-01\n"
            "--- a/x 2020-01-01\t\n+++ b/x 2020-01-01\t\n" + HUNK,
            FileDiff("x 2020-01-01", "x 2020-01-01", hunks=ONE),
        ),
        (
            "--- a/2020-01-01\n+++ b/2020-01-01\n" + HUNK,
            FileDiff("2020-01-01", "2020-01-01", hunks=ONE),
        ),
        ("--- a/x.py.orig\n+++ a/x.py\n" + HUNK, FileDiff("x.py", "x.py", hunks=ONE)),
        (
            "--- a/x\t1970-01-01 01:00:00.000000000 +0100\n+++ b/x\t2020\n@@ -0,0 +1 @@\n+2\n",
            FileDiff(None, "x", hunks=(Hunk(0, 0, 1, 1, (("+", b"2\n"),)),)),
        ),
        (
            "--- a/x\t2020\n+++ b/x\t1969-12-31 20:00:00 -0400\n@@ -1 +0,0 @@\n-1\n",
            FileDiff("x", None, hunks=(Hunk(1, 1, 0, 0, (("-", b"1\n"),)),)),
        ),
        (
            "diff --git a/x b/x\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+2\n",
            FileDiff(None, "x", hunks=(Hunk(0, 0, 1, 1, (("+", b"2\n"),)),)),
        ),
    ],
)
def test_each_form_of_a_file_header_is_read(text, expected):
    assert only(text) == expected


def test_strip_counts_folders_and_renames_have_no_prefix():
    assert only("--- x\n+++ x\n" + HUNK, 0).new == "x"
    assert only("--- a/b/x\n+++ a/b/x\n" + HUNK, 2).new == "x"
    assert only("diff --git x x\nold mode 100644\nnew mode 100755\n", 0).new == "x"
    moved = "diff --git a/p/x b/p/y\nrename from p/x\nrename to p/y\n"
    assert (only(moved, 2).old, only(moved, 2).new) == ("x", "y")


def test_marks_of_hunks_stay_apart_from_lines_that_look_like_marks():
    text = (
        b"--- a/x\n+++ b/x\n@@ -3,4 +3,4 @@ def f(x):  # caf\xe9\n \n\n--- a\n+++ b\n a\rb\x0c\r\n"
    )

    hunk = only(text).hunks[0]

    assert hunk.heading == b"def f(x):  # caf\xe9"
    assert hunk.lines == (
        (" ", b"\n"),
        (" ", b"\n"),
        ("-", b"-- a\n"),
        ("+", b"++ b\n"),
        (" ", b"a\rb\x0c\r\n"),
    )


@pytest.mark.parametrize(
    "marker", ["\\ No newline at end of file\n", "\\ Kein Zeilenumbruch", "\\\n"]
)
def test_a_missing_newline_is_known_in_any_language(marker):
    first = marker if marker.endswith("\n") else marker + "\n"
    text = f"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n{first}+2\n{marker}"

    assert only(text.encode()).hunks[0].lines == (("-", b"1"), ("+", b"2"))


def test_mail_around_and_between_the_diffs_is_no_part_of_them():
    part = "diff --git a/x b/x\n--- a/x\n+++ b/x\n" + HUNK + "-- \n2.39.5\n\n"
    mail = "From 1234567 Mon Sep 17 00:00:00 2001\nSubject: s\n\n---\n x | 2 +-\n\n" + part

    header, diffs = parse((mail * 2).encode())

    assert header.startswith(b"From 1234567")
    assert [found.hunks for found in diffs] == [ONE, ONE]


GIT = "diff --git a/x b/x\n"
PLAIN = "--- a/x\n+++ b/x\n"
WRONG = {
    "binary": (GIT + "index 1234..4567\nGIT binary patch\nliteral 0\n", 3, "binary"),
    "binary after": (GIT + "old mode 100644\nnew mode 100755\nGIT binary patch\n", 4, "binary"),
    "binary files": (PLAIN + HUNK + "Binary files a/y and b/y differ\n", 6, "binary"),
    "binary first": ("Binary files a/y and b/y differ\n", 1, "binary"),
    "link": (GIT + "new file mode 120000\nindex 0000000..1234567\n", 2, "symbolic link"),
    "link in index": (GIT + "index 1234..4567 120000\n" + PLAIN + HUNK, 2, "symbolic link"),
    "submodule": (GIT + "deleted file mode 160000\n", 2, "submodule"),
    "folder": (GIT + "new file mode 040000\n", 2, "regular file"),
    "copy": (GIT + "similarity index 100%\ncopy from x\ncopy to y\n", 3, "copy"),
    "one mode": (GIT + "old mode 100644\n", 1, "only one of"),
    "a word twice": (GIT + "old mode 100644\nold mode 100644\n", 3, "twice"),
    "no index": (GIT + "index 12..34x\n" + PLAIN + HUNK, 2, "index"),
    "empty or cut": (GIT + "new file mode 100644\n", 1, "cut short"),
    "nothing said": (GIT, 1, "cut short"),
    "no change": (GIT + "old mode 100644\nnew mode 100644\n", 1, "changes nothing"),
    "context only": (PLAIN + "@@ -1 +1 @@\n 1\n", 1, "changes nothing"),
    "half a rename": (GIT + "rename from x\n", 1, "contradict"),
    "new and gone": (GIT + "new file mode 100644\ndeleted file mode 100644\n", 1, "contradict"),
    "renamed to itself": (GIT + "rename from x\nrename to x\n", 1, "disagree"),
    "similar, no hunk": (
        "diff --git a/x b/y\nsimilarity index 90%\nrename from x\nrename to y\n",
        1,
        "cut short",
    ),
    "rename, other marks": (
        "diff --git a/x b/y\nrename from x\nrename to y\n" + PLAIN + HUNK,
        1,
        "disagree",
    ),
    "two names": ("diff --git a/x b/y\nold mode 100644\nnew mode 100755\n", 1, "one file"),
    "other marks": (GIT + "--- a/y\n+++ b/y\n" + HUNK, 1, "one file"),
    "wrong null": (
        GIT + "new file mode 100644\n--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n",
        1,
        "wrong side",
    ),
    "two nulls": ("--- /dev/null\n+++ /dev/null\n" + HUNK, 1, "both names"),
    "old lines of a new file": (GIT + "--- /dev/null\n+++ b/x\n" + HUNK, 1, "where there is none"),
    "two files": ("--- a/x\n+++ b/y\n" + HUNK, 1, "two files"),
    "no plus": ("--- a/x\n" + HUNK, 1, "without its '+++'"),
    "no minus": (PLAIN + HUNK + "text\n+++ b/y\n" + HUNK, 7, "Target without source"),
    "far minus": (PLAIN + HUNK + "--- a/y\ntext\n+++ b/y\n" + HUNK, 8, "without its '---'"),
    "no hunk": (PLAIN, 2, "no hunk"),
    "hunk of nothing": (PLAIN + "@@ -0,0 +0,0 @@\n", 1, "no hunk"),
    "only a hunk": ("text\n" + HUNK, 2, "no name"),
    "hunk without marks": (GIT + "old mode 100644\nnew mode 100755\n" + HUNK, 1, "without '---'"),
    "late hunk": (PLAIN + HUNK + "text\n" + HUNK, 7, "Unexpected hunk"),
    "context diff": ("*** a/x\n--- b/x\n", 1, "context diff"),
    "combined diff": (PLAIN + HUNK + "@@@ -1 -1 +1 @@@\n", 6, "belongs to no hunk"),
    "count too small": (PLAIN + HUNK + "+3\n", 6, "belongs to no hunk"),
    "small, then blank": (PLAIN + HUNK + "\n 3\n", 7, "belongs to no hunk"),
    "count too large": (PLAIN + "@@ -1,2 +1 @@\n-1\n+2\n", 5, "shorter"),
    "longer": (PLAIN + "@@ -1 +1,2 @@\n-1\n-2\n+2\n", 5, "longer"),
    "no mark": (PLAIN + "@@ -1,2 +1,2 @@\n-1\n+2\nx\n", 6, "Hunk diff line expected"),
    "bare CR LF": (PLAIN + "@@ -1,2 +1,2 @@\n-1\n+2\n\r\n", 6, "not a line of a hunk"),
    "cut inside a line": (PLAIN + "@@ -1 +1 @@\n-1\n+2", 5, "cut short inside"),
    "marker first": (PLAIN + "@@ -1 +1 @@\n\\ No newline\n-1\n+2\n", 4, "above this marker"),
    "marker twice": (PLAIN + HUNK + "\\ No\n\\ No\n", 7, "belongs to no hunk"),
    "marker in the middle": (
        PLAIN + "@@ -1,2 +1 @@\n-1\n\\ No newline\n-1\n+2\n",
        3,
        "not the last",
    ),
    "marker cut": (PLAIN + HUNK + "\\ N", 6, "cut short inside"),
    "mode cut": (GIT + "old mode 100644\nnew mode 100755", 3, "cut short inside"),
    "deleted cut": (GIT + "deleted file mode 100644", 2, "cut short inside"),
    "rename cut": ("diff --git a/x b/y\nrename from x\nrename to y", 3, "cut short inside"),
    "a date in the name": (
        "--- /dev/null\n+++ b/x        2026-11-30 19:30:00.041942351 +0000\n@@ -0,0 +1 @@\n+1\n",
        2,
        "the name ends in a date, '2026-11-30 19:30:00.041942351 +0000'",
    ),
    "only a day": ("--- a/x 2026-11-30\n+++ b/x\n" + HUNK, 1, "ends in a date"),
    "an old date": ("--- a/x  Mon Nov 30 19:30:00 2026\n+++ b/x\n" + HUNK, 1, "ends in a date"),
    "stray marker": (PLAIN + HUNK + "text\n\\ No newline\n", 7, "Unexpected marker"),
    "stray rename": (PLAIN + HUNK + "rename from x\n", 6, "belongs to no hunk"),
    "from 0": (PLAIN + "@@ -0 +1 @@\n-1\n+2\n", 3, "counted from 1"),
    "to 0": (PLAIN + "@@ -1 +0 @@\n-1\n+2\n", 3, "counted from 1"),
    "digits of another script": (PLAIN + "@@ -\u0661 +1 @@\n-1\n+2\n", 3, "not the @@ line"),
    "5,000 digits": (PLAIN + f"@@ -{'9' * 5000} +1 @@\n-1\n+2\n", 3, "limit"),
    "out of order": (PLAIN + "@@ -5 +5 @@\n-1\n+2\n" + HUNK, 6, "overlap"),
    "CR LF": (GIT.replace("\n", "\r\n"), 1, "autocrlf"),
    "CR LF below": (GIT + "old mode 100644\r\n", 2, "autocrlf"),
    "CR LF marks": (PLAIN.replace("\n", "\r\n") + HUNK, 1, "autocrlf"),
    "too few folders": ("--- x\n+++ x\n" + HUNK, 1, "too few folders"),
    "no name": ("--- a/\n+++ b/\n" + HUNK, 1, "too few folders"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_whole_patch_is_refused_with_its_line(case):
    text, line, words = WRONG[case]

    with pytest.raises(diff.PatchFormatError) as caught:
        diff.parse(text.encode(), name="x.patch")

    assert caught.value.what.startswith(f"x.patch:{line}: ")
    assert words in caught.value.why
    assert caught.value.mend


@pytest.mark.parametrize(
    "name",
    [
        *("../x", "a/../x", "/etc/passwd", "a//x", "a/./x", "a/.git/config", "a/.GIT/x"),
        *("a/.g\u200cit/x", "a/git~1/x", "a/.git ./x", "a/.patchq/x", "a/x.dist-info/RECORD"),
        *('"a/x\\000"', '"a/x\\ny"', '"a/x\\\\y"', "a/x\x00", "a/x\x01", '"a/\\9"'),
    ],
)
@pytest.mark.parametrize("form", ["plain", "git", "rename"])
def test_a_path_that_leads_out_of_the_package_is_refused(name, form):
    bare = name.replace("a/", "", 1) if not name.startswith("/") else name
    text = {
        "plain": f"--- {name}\n+++ {name}\n" + HUNK,
        "git": f"diff --git {name} {name}\nold mode 100644\nnew mode 100755\n",
        "rename": f"diff --git a/x b/y\nrename from x\nrename to {bare}\n",
    }[form]

    with pytest.raises(UnsafePath) as caught:
        diff.parse(text.encode(), name="x.patch")

    assert "x.patch:" in caught.value.what


WHOLE = {
    "hunks": GIT + "index 1234567..89abcde 100644\n" + PLAIN + HUNK + "\\ No newline\n",
    "new": GIT
    + "new file mode 100644\nindex 0..1\n".replace("0..1", "0000000..1234567")
    + "--- /dev/null\n+++ b/x\n@@ -0,0 +1,2 @@\n+1\n+2\n",
    "deleted": GIT + "deleted file mode 100644\nindex 1234567..0000000\n--- a/x\n+++ /dev/null\n"
    "@@ -1,2 +0,0 @@\n-1\n-2\n",
    "renamed": "diff --git a/x b/y\nsimilarity index 60%\nrename from x\nrename to y\n"
    "index 1234567..89abcde 100644\n--- a/x\n+++ b/y\n" + HUNK,
    "plain": "Index: x\n=====\n" + PLAIN + HUNK,
}
# Here the rest is a whole patch of its own: no reader can tell.
WHOLE_CUT = {"hunks": {7}, "deleted": {2}, "plain": {1, 2}}


@pytest.mark.parametrize("case", WHOLE)
def test_a_patch_cut_short_at_any_line_or_byte_is_refused(case):
    text = WHOLE[case].encode()
    cuts = lines.split(text)
    diff.parse(text, name="x.patch")

    for count in range(1, len(cuts)):
        if count in WHOLE_CUT.get(case, ()):
            continue
        with pytest.raises(diff.PatchFormatError):
            diff.parse(b"".join(cuts[:count]), name="x.patch")
    with pytest.raises(PatchqError):
        diff.parse(b"".join(cuts[:5])[:-1], name="x.patch")


SEEDS = [text.encode() for text in (*WHOLE.values(), *(case[0] for case in WRONG.values()))]
PIECES = [line for text in SEEDS for line in lines.split(text)] + [
    b"",
    b"\n",
    b"\r\n",
    b"\xff",
    b" ",
]


@given(st.data())
@settings(max_examples=80, deadline=None)
def test_a_mutilated_patch_gives_a_value_or_a_named_error(data):
    parts = lines.split(data.draw(st.sampled_from(SEEDS)) + data.draw(st.sampled_from(SEEDS)))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(parts)))
        gone = data.draw(st.integers(0, 2))
        parts[at : at + gone] = data.draw(st.lists(st.sampled_from(PIECES), max_size=2))
    text = bytearray(b"".join(parts))
    for _ in range(data.draw(st.integers(0, 3))):
        if text:
            text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))

    with contextlib.suppress(PatchqError):
        header, diffs = diff.parse(bytes(text), name="x.patch")
        patch = Patch("x", bytes(text), header, diffs)
        result = apply.apply_patch(patch, {"x": (b"1\n", False)}.get)
        assert isinstance(result, apply.PatchApplied | apply.PatchRejected)


@given(st.binary().map(lines.decode))
def test_a_name_survives_its_quotes(name):
    quoted = cquote.quote(name)

    assert quoted.isascii()
    if quoted.startswith('"'):
        assert cquote.unquote(cquote.QUOTED.fullmatch(quoted)[1]) == name
    else:
        assert quoted == name


def test_a_heading_is_the_def_above_as_git_writes_it(tmp_path):
    before = b"class A:\n    async def f(self):\n" + b"        x = 1\n" * 9 + b"        y = 2\n"
    after = before.replace(b"y = 2", b"y = 3")

    ours = diff.unified(before, after, "m.py")
    (tmp_path / "a").mkdir()
    attributes = {".gitattributes": (b"*.py diff=python\n", False)}
    theirs = corpus.git_diff(
        {**attributes, "m.py": (before, False)}, {**attributes, "m.py": (after, False)}, tmp_path
    )

    assert lines.split(ours)[3] == lines.split(theirs)[4]
    assert b"@@ async def f(self):\n" in ours


def test_equal_texts_have_no_diff():
    assert diff.unified(b"1\n", b"1\n", "x") == b""
    assert diff.unified(None, None, "x") == b""
    assert diff.unified(b"1\n", b"1\n", "x", old_mode=0o100644, new_mode=0o100755) == (
        b"diff --git a/x b/x\nold mode 100644\nnew mode 100755\n"
    )
