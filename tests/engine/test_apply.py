import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchq.engine import apply, diff
from patchq.model import ABSENT, FileState, Patch, PathChange, sha256
from tests.engine import corpus

LINES = [b"a\n", b"b\n", b"", b"\n", b"\r\n", b"c\r", b"\x0c\n", b"\t\n", b"\xe9\n", b"-- x\n"]
TEXT = st.lists(st.sampled_from(LINES), max_size=12).map(b"".join) | st.binary(max_size=20)


def patch(text, **options):
    header, diffs = diff.parse(text, name="x.patch")
    return Patch("x.patch", text, header, diffs, **options)


def one(before, after, context=3):
    ((found,),) = diff.parse(diff.unified(before, after, "x", context=context), name="x")[1:]
    return found


def merged(tree, result):
    assert isinstance(result, apply.PatchApplied), result
    return {path: file for path, file in {**tree, **result.after}.items() if file is not None}


def rejected(found, before, **options):
    result = apply.apply(found, before, **options)
    assert isinstance(result, apply.Rejected)
    return result


@given(TEXT | st.none(), TEXT | st.none(), st.integers(0, 3), st.booleans())
@settings(deadline=None)
def test_a_diff_applied_gives_the_other_text_and_reversed_gives_the_first(
    before, after, context, search
):
    text = diff.unified(before, after, "x", context=context)
    if before == after:
        assert text == b""
        return
    _, (found,) = diff.parse(text, name="x")

    forward = apply.apply(found, before, search=search)
    back = apply.apply(found, after, reverse=True, search=search)

    assert isinstance(forward, apply.Applied)
    assert isinstance(back, apply.Applied)
    assert (forward.data, back.data) == (after, before)
    assert not any(forward.offsets + back.offsets)


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--no-renames",), ("-U0",), ("-M20%", "--full-index")])
@pytest.mark.parametrize("seed", range(4))
def test_a_diff_of_gits_gives_the_tree_that_git_has_and_back(seed, options, tmp_path):
    before, after = corpus.trees(seed)
    made = patch(corpus.git_diff(before, after, tmp_path, *options))

    forward = merged(before, apply.apply_patch(made, before.get))
    back = merged(after, apply.apply_patch(made, after.get, reverse=True))

    assert forward == after
    assert back == before


def ours(before, after):
    """Return our own diff of two trees, without renames."""
    return b"".join(
        diff.unified(
            before[name][0] if name in before else None,
            after[name][0] if name in after else None,
            name,
            old_mode=0o100755 if before.get(name, (b"", False))[1] else 0o100644,
            new_mode=0o100755 if after.get(name, (b"", False))[1] else 0o100644,
        )
        for name in {**before, **after}
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_git_and_gnu_patch_make_the_same_tree_of_our_diffs(seed, tmp_path):
    before, after = corpus.trees(seed)
    text = ours(before, after)
    for name in ("git", "gnu"):
        (tmp_path / name).mkdir()
        corpus.write(before, tmp_path / name)

    corpus.git(tmp_path / "git", "apply", "-", stdin=text)
    done = subprocess.run(
        ["patch", "-p1", "-F0", "--binary", "--no-backup-if-mismatch"],
        cwd=tmp_path / "gnu",
        input=text,
        capture_output=True,
    )

    assert done.returncode == 0, done.stdout
    assert corpus.read(tmp_path / "git") == after
    assert corpus.read(tmp_path / "gnu") == after
    assert merged(before, apply.apply_patch(patch(text), before.get)) == after


@pytest.mark.slow
def test_quilt_pushes_and_pops_our_diffs_to_the_same_bytes(tmp_path):
    first, third = corpus.trees(1)
    # quilt reads names up to the first space, and its patches carry no modes.
    plain = {name for name in {**first, **third} if " " not in name and name.isascii()}
    plain -= {'pkg/q"uote.py', "mode.sh"}
    first = {name: (first[name][0], False) for name in first if name in plain}
    third = {name: (third[name][0], False) for name in third if name in plain}
    second = {**first, **{name: third[name] for name in list(third)[::2]}}
    corpus.write(first, tmp_path)
    (tmp_path / "patches").mkdir()
    (tmp_path / "patches" / "series").write_text("one.patch\ntwo.patch -R # back\n")
    one_text = b"Description: one\n\n" + ours(first, second)
    two_text = ours(third, second)
    (tmp_path / "patches" / "one.patch").write_bytes(one_text)
    (tmp_path / "patches" / "two.patch").write_bytes(two_text)

    def quilt(*words):
        environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "QUILT_PATCHES": "patches"}
        done = subprocess.run(
            ["quilt", "--quiltrc", "-", *words], cwd=tmp_path, env=environ, capture_output=True
        )
        assert done.returncode == 0, done.stdout + done.stderr

    quilt("push", "-a", "--fuzz=0")
    pushed = corpus.read(tmp_path)
    quilt("pop", "-a")

    header, diffs = diff.parse(two_text, name="two.patch")
    two = Patch("two.patch", two_text, header, diffs, reverse=True)
    tree = merged(first, apply.apply_patch(patch(one_text), first.get))
    tree = merged(tree, apply.apply_patch(two, tree.get))
    assert pushed == tree == third
    # quilt keeps an absent file as an empty backup, so its pop takes empty files away.
    assert corpus.read(tmp_path) == {name: file for name, file in first.items() if file[0]}


def test_a_patch_says_each_path_before_and_after_in_its_order():
    text = (
        b"diff --git a/x b/y\nrename from x\nrename to y\n"
        b"diff --git a/z b/z\nold mode 100644\nnew mode 100755\n"
    ) + diff.unified(b"1\n", None, "w")
    tree = {"x": (b"x", True), "z": (b"z", False), "w": (b"1\n", False)}

    result = apply.apply_patch(patch(text), tree.get)

    assert isinstance(result, apply.PatchApplied)
    assert result.changes == (
        PathChange("x", FileState(sha256(b"x"), True), ABSENT),
        PathChange("y", ABSENT, FileState(sha256(b"x"), True)),
        PathChange("z", FileState(sha256(b"z")), FileState(sha256(b"z"), True)),
        PathChange("w", FileState(sha256(b"1\n")), ABSENT),
    )
    assert result.after == {"x": None, "y": (b"x", True), "z": (b"z", True), "w": None}
    assert result.contents == {sha256(data): data for data in (b"x", b"z")}


def test_files_can_trade_names_in_one_patch():
    text = (
        b"diff --git a/x b/y\nrename from x\nrename to y\n"
        b"diff --git a/y b/x\nrename from y\nrename to x\n"
        b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-y\n+yy\n"
    )
    tree = {"x": (b"x\n", False), "y": (b"y\n", False)}

    there = merged(tree, apply.apply_patch(patch(text), tree.get))

    assert there == {"x": (b"yy\n", False), "y": (b"x\n", False)}
    assert merged(there, apply.apply_patch(patch(text), there.get, reverse=True)) == tree


def test_two_files_cannot_take_one_name():
    text = b"".join(
        b"diff --git a/%c b/%c\nrename from %c\nrename to %c\n" % (old, new, old, new)
        for old, new in (b"xz", b"yz", b"zw")
    )
    tree = {name: (name.encode(), False) for name in "xyz"}

    result = apply.apply_patch(patch(text), tree.get)

    assert isinstance(result, apply.PatchRejected)
    assert (result.path, result.rejected.reason) == ("y", "exists")


def test_a_series_line_with_minus_r_turns_the_patch_and_reverse_turns_it_back():
    text = diff.unified(b"1\n", b"2\n", "x")
    tree = {"x": (b"2\n", False)}

    back = merged(tree, apply.apply_patch(patch(text, reverse=True), tree.get))

    assert back == {"x": (b"1\n", False)}
    assert apply.apply_patch(patch(text, reverse=True), back.get, reverse=True).after == tree


def test_a_hunk_taken_out_by_hand_leaves_a_patch_that_applies_and_reverses():
    before = b"".join(b"%d\n" % number for number in range(30))
    after = before.replace(b"3\n4\n", b"3\nx\nx\n4\n").replace(b"25\n", b"y\n")
    found = one(before, after)
    rest = diff.FileDiff("x", "x", hunks=found.hunks[1:])

    forward = apply.apply(rest, before)

    assert isinstance(forward, apply.Applied)
    assert forward.data == before.replace(b"25\n", b"y\n")
    assert apply.apply(rest, forward.data, reverse=True) == apply.Applied(before, (0,))


def test_a_hunk_that_does_not_fit_names_the_line_and_what_is_there():
    found = one(b"a\nb\nc\n", b"a\nB\nc\n")

    assert rejected(found, b"a\nx\r\nc\n") == apply.Rejected(
        1, "mismatch", r"hunk 1 does not fit: line 2: expected 'b', found 'x\r'"
    )
    assert (
        "line 3: expected 'c', found 'c' without a newline" in rejected(found, b"a\nb\nc").message
    )
    assert "line 2: expected 'b', the file ends there" in rejected(found, b"a\n").message
    assert "fits nowhere else" in rejected(found, b"a\n", search=True).message


@pytest.mark.parametrize(
    ("before", "live"),
    [(b"a\n", b"ba\n"), (b"a", b"ab\n"), (b"a", b"a\n"), (b"a\n", b"a"), (b"a\n", b"a\r\n")],
)
def test_a_line_fits_whole_or_not_at_all(before, live):
    assert rejected(one(before, b"x\n"), live).reason == "mismatch"
    assert rejected(one(before, b"x\n"), live, search=True).reason == "mismatch"


def test_where_one_hunk_has_moved_a_second_fit_of_the_next_is_no_longer_exact():
    found = one(b"first\n0\n1\n2\ntwin\n", b"1st\n0\n1\n2\n2nd\n", context=0)

    result = rejected(found, b"new\nfirst\n0\n1\ntwin\ntwin\n", search=True)

    assert (result.hunk, result.reason) == (2, "ambiguous")


def test_new_lines_without_context_have_no_place_once_a_hunk_has_moved():
    found = one(b"a\nb\nc\nd\n", b"A\nb\nc\nx\nd\n", context=0)

    assert apply.apply(found, b"a\nb\nc\nd\n", search=True).offsets == (0, 0)
    assert rejected(found, b"new\na\nb\nc\nd\n", search=True).hunk == 2


def test_a_moved_hunk_is_taken_only_with_search_and_only_where_one_place_fits():
    found = one(
        b"".join(b"%d\n" % n for n in range(9)), b"".join(b"%d\n" % (n % 8) for n in range(9))
    )
    moved = b"new\n" + b"".join(b"%d\n" % n for n in range(9))
    inner = one(b"0\n1\n2\n3\n4\n5\n6\n", b"0\n1\n2\nX\n4\n5\n6\n")

    assert rejected(found, moved).reason == "mismatch"
    assert apply.apply(found, moved, search=True).offsets == (1,)
    block = b"0\n1\n2\n3\n4\n5\n6\n"
    twice = rejected(inner, b"new\n" + block + block, search=True)
    assert (twice.reason, twice.message) == ("ambiguous", "hunk 1 fits at the lines 2, 9")
    assert apply.apply(inner, block + block, search=True).offsets == (0,)


def test_a_hunk_that_ended_its_file_moves_only_to_the_end_of_one():
    found = one(b"0\n1\n2\n3\n", b"0\n1\n2\nX\n")

    assert apply.apply(found, b"n\n0\n1\n2\n3\n", search=True).offsets == (1,)
    assert rejected(found, b"n\n0\n1\n2\n3\nmore\n", search=True).reason == "mismatch"


def test_a_hunk_of_new_lines_only_goes_to_its_own_line_or_nowhere():
    found = one(b"1\n2\n", b"1\nx\n2\n", context=0)

    assert apply.apply(found, b"a\nb\n", search=True) == apply.Applied(b"a\nx\nb\n", (0,))
    assert "without context" in rejected(found, b"a").message
    assert rejected(found, b"").reason == "mismatch"


def test_a_line_without_newline_is_put_nowhere_but_at_the_end():
    found = one(b"1\n", b"2")

    assert "more lines follow" in rejected(found, b"1\n3\n").message


def test_a_file_that_is_there_or_is_not_there_is_said():
    new, gone = one(None, b"1\n"), one(b"1\n", None)

    assert rejected(new, b"").reason == "exists"
    assert rejected(gone, None).reason == "absent"
    assert "it has more: '2'" in rejected(gone, b"1\n2\n").message


def test_a_patch_that_fits_in_part_is_rejected_with_all_that_does_not_fit():
    text = b"".join(diff.unified(b"1\n", b"2\n", name) for name in "xyz")
    tree = {"x": (b"1\n", False), "y": (b"3\n", False)}

    result = apply.apply_patch(patch(text), tree.get)

    assert isinstance(result, apply.PatchRejected)
    assert (result.path, result.rejected.reason) == ("y", "mismatch")
    assert [(path, why.reason) for path, why in result.others] == [("z", "absent")]
    assert result.message.startswith(
        "y: hunk 1 does not fit: line 1: expected '1', found '3'\nz: "
    )


@pytest.mark.parametrize(
    ("text", "tree", "reason"),
    [
        (b"diff --git a/x b/y\nrename from x\nrename to y\n", {}, "absent"),
        (
            b"diff --git a/x b/y\nrename from x\nrename to y\n",
            {"x": (b"1", False), "y": (b"", False)},
            "exists",
        ),
        (
            b"diff --git a/x b/x\nold mode 100644\nnew mode 100755\n",
            {"x": (b"1", True)},
            "mismatch",
        ),
        (
            b"diff --git a/x b/x\ndeleted file mode 100644\n",
            {"x": (b"", True)},
            "mismatch",
        ),
        (
            diff.unified(b"1\n", b"2\n", "x") + diff.unified(b"2\n", b"1\n", "x"),
            {"x": (b"1\n", False)},
            "mismatch",
        ),
        (
            diff.unified(None, b"2\n", "x") + diff.unified(b"2\n", None, "x"),
            {},
            "absent",
        ),
    ],
)
def test_nothing_is_called_applied_that_did_not_do_what_the_patch_says(text, tree, reason):
    result = apply.apply_patch(patch(text), tree.get)

    assert isinstance(result, apply.PatchRejected)
    assert result.rejected.reason == reason


NO_NEWLINE = b"\\ No newline at end of file\n"


# What two hunks at one place make of a text; None: rejected.
@pytest.mark.parametrize(
    ("before", "hunks", "after"),
    [
        (b"1\n2\n", b"@@ -2,0 +3 @@\n+c\n" + NO_NEWLINE + b"@@ -2,0 +4 @@\n+d\n", b"1\n2\ncd\n"),
        (
            b"1\n2\n",
            b"@@ -2 +2,2 @@\n 2\n+c\n" + NO_NEWLINE + b"@@ -2,0 +4 @@\n+d\n",
            b"1\n2\ncd\n",
        ),
        (b"1\n2\n", b"@@ -2,0 +3 @@\n+c\n@@ -2,0 +4 @@\n+d\n", b"1\n2\nc\nd\n"),
        (b"", b"@@ -0,0 +1 @@\n+a\n" + NO_NEWLINE + b"@@ -0,0 +1 @@\n+b\n", None),
        (b"", b"@@ -0,0 +1 @@\n+a\n@@ -0,0 +2 @@\n+b\n", None),
        (b"1\n2\n3\n", b"@@ -1 +1 @@\n-1\n+c\n" + NO_NEWLINE + b"@@ -3 +3 @@\n-3\n+d\n", None),
        (b"1\n2\n3\n", b"@@ -1 +1 @@\n-1\n+c\n" + NO_NEWLINE + b"@@ -2,2 +1,0 @@\n-2\n-3\n", None),
    ],
)
def test_two_hunks_at_one_place_are_put_as_git_puts_them(before, hunks, after, tmp_path):
    text = b"--- a/x\n+++ b/x\n" + hunks
    (tmp_path / "x").write_bytes(before)
    done = subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=text, capture_output=True)
    assert (tmp_path / "x").read_bytes() == (before if after is None else after)
    assert (done.returncode == 0) is (after is not None)

    result = apply.apply(diff.parse(text, name="x.patch")[1][0], before)

    if after is None:
        assert isinstance(result, apply.Rejected)
    else:
        assert result.data == after
