"""Foreign patches on trees that they were not made for."""

import random
import subprocess

import pytest

from patchq.engine import diff, landing, patchtext
from tests.engine import corpus, test_locating

SHAPES = (
    b"class A:\n    def area(self):\n        return 1\n\n\n"
    b"class B:\n    def area(self):\n        return 1\n"
)


def diffs(text):
    return diff.parse(text, name="x.patch")[1]


def of(before, after, path="x.py", **options):
    return diffs(diff.unified(before, after, path, **options))


def land(found, files, **options):
    tree = {path: (data, False) for path, data in files.items()}
    return landing.land(found, tree.get, **options)


def result(landed):
    assert landed.done is not None, [one.failures for one in landed.files]
    return {path: file and file[0] for path, file in landed.done.after.items()}


@pytest.mark.parametrize(
    "seeds", [range(30), pytest.param(range(2000, 2200), marks=pytest.mark.slow)]
)
def test_what_lands_has_the_bytes_that_gnu_patch_makes(seeds, tmp_path):
    landed = 0
    for seed in seeds:
        made = test_locating.case(seed)
        if made is None:
            continue
        text, other = made
        for fuzz in range(4):
            ours = land(diffs(text), {"x": other}, fuzz=fuzz)
            if ours.done is None:
                continue
            _, theirs = test_locating.gnu(text, other, fuzz, tmp_path)
            assert (result(ours)["x"] or b"") == theirs, (seed, fuzz)
            landed += 1

    assert landed > len(seeds) // 2


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_diff_of_gits_lands_exactly_on_its_own_tree_and_reads_back(seed, tmp_path):
    before, after = corpus.trees(seed)
    found = diffs(corpus.git_diff(before, after, tmp_path))

    landed = landing.land(found, before.get)

    assert landed.exact
    assert {**before, **landed.done.after} == {**dict.fromkeys(before), **after}
    text = patchtext.patch(b"", landed.before, landed.done.after, landed.renamed)
    assert landing.land(diffs(text), before.get).done.after == landed.done.after


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_what_git_apply_puts_elsewhere_lands_at_the_same_place_or_nowhere(seed, tmp_path):
    rng = random.Random(seed)
    before, after = corpus.trees(seed)
    landed = 0
    for path in before.keys() & after.keys():
        one = {path: before[path]}
        text = patchtext.patch(b"", one, {path: after[path]}, {})
        top = b"".join(b"top %d\n" % at for at in range(rng.randint(0, 3)))
        tree = {path: (top + before[path][0], before[path][1])}
        folder = tmp_path / str(rng.random())
        corpus.write(tree, folder)
        done = subprocess.run(
            ["git", "apply", "-"],
            cwd=folder,
            input=text,
            capture_output=True,
            env={"PATH": "/usr/bin:/bin", "GIT_CEILING_DIRECTORIES": str(tmp_path)},
        )
        ours = landing.land(diffs(text), tree.get) if text else None
        if done.returncode == 0 and ours is not None and ours.done is not None:
            assert corpus.read(folder) == ours.done.after
            landed += 1

    assert landed > 5


def test_an_offset_makes_a_landing_that_is_not_exact():
    found = of(b"1\n2\n3\n4\n5\n6\n7\n8\n", b"1\n2\n3\n4\nV\n6\n7\n8\n")

    landed = land(found, {"x.py": b"0\n1\n2\n3\n4\n5\n6\n7\n8\n"})

    assert result(landed)["x.py"] == b"0\n1\n2\n3\n4\nV\n6\n7\n8\n"
    assert not landed.exact
    assert landed.files[0].moved == ("Hunk #1 succeeded at 3 (offset 1 line).",)


def test_with_fuzz_the_trees_own_context_stays():
    found = of(b"1\n2\n3\n4\n5\n6\n7\n", b"1\n2\n3\nV\n5\n6\n7\n")
    tree = {"x.py": b"one\n2\n3\n4\n5\n6\nseven\n"}

    assert land(found, tree).done is None
    landed = land(found, tree, fuzz=1)

    assert result(landed)["x.py"] == b"one\n2\n3\nV\n5\n6\nseven\n"
    assert landing.fuzz_needed(found, {"x.py": (tree["x.py"], False)}.get) == 1


def test_a_hunk_that_lands_in_another_class_is_a_conflict():
    found = of(SHAPES, SHAPES.replace(b"return 1", b"return 2", 1), context=1)
    only_b = b"import a\n\n\n" + SHAPES[SHAPES.index(b"class B") :] + b"\n\n"

    landed = land(found, {"x.py": only_b})

    assert landed.done is None
    assert landed.files[0].failures == ("hunk 1 was made for `class A:`, and lies in `class B:`",)
    assert land(found, {"x.py": SHAPES}).exact


def test_a_class_with_other_bases_is_still_the_class_of_a_heading():
    before = b"class A(Old):\n" + b"".join(b"    x%d = 0\n" % at for at in range(9))
    found = of(before, before.replace(b"x7 = 0", b"x7 = 1"))
    there = before.replace(b"(Old)", b"(New)")

    landed = land(found, {"x.py": there})

    assert found[0].hunks[0].heading == b"class A(Old):"
    assert result(landed)["x.py"] == there.replace(b"x7 = 0", b"x7 = 1")
    assert not landed.exact  # its heading is written anew


def test_line_ends_are_those_of_the_file():
    before, after = b"1\n2\n3\n", b"1\ntwo\n3\n"
    crlf = before.replace(b"\n", b"\r\n")

    there = land(of(before, after), {"x.py": crlf})
    back = land(of(crlf, after.replace(b"\n", b"\r\n")), {"x.py": before})

    assert result(there)["x.py"] == after.replace(b"\n", b"\r\n")
    assert result(back)["x.py"] == after
    assert there.files[0].ends
    assert not there.exact


def test_mixed_line_ends_are_left_alone():
    before = b"1\r\n2\n3\r\n"

    landed = land(of(b"1\n2\n3\n", b"1\ntwo\n3\n"), {"x.py": before})

    assert landed.done is None


def test_a_patch_that_is_in_already_can_be_reverse_applied_and_is_not_turned():
    found = of(b"1\n2\n3\n", b"1\ntwo\n3\n")
    tree = {"x.py": (b"1\ntwo\n3\n", False)}.get

    assert not landing.land(found, tree).fits
    assert landing.reversible(found, tree)
    assert not landing.reversible(found, {"x.py": (b"else\n", False)}.get)
    assert result(landing.land(found, tree, reverse=True))["x.py"] == b"1\n2\n3\n"


def test_every_failure_of_every_file_is_told():
    found = (
        of(b"1\n2\n", b"1\ntwo\n", "a.py")
        + of(None, b"new\n", "b.py")
        + of(b"1\n", b"2\n", "c.py")
    )

    landed = land(found, {"a.py": b"x\n", "b.py": b"there\n"})

    said = {one.path: one.failures for one in landed.files}
    assert said["a.py"] == ("Hunk #1 FAILED at 1: line 1: expected '1', found 'x'",)
    assert said["c.py"] == ("the patch changes this file, and it is not there",)


def test_a_new_file_that_is_there_and_a_deleted_one_that_differs_do_not_fit():
    made = land(of(None, b"new\n", "b.py"), {"b.py": b"there\n"})
    gone = land(of(b"1\n", None, "b.py"), {"b.py": b"1\n2\n"})

    assert "it is there already" in made.files[0].problem
    assert "it has more" in gone.files[0].failures[0]


def test_two_diffs_of_one_file_are_put_in_one_after_the_other():
    first, second, third = b"1\n2\n3\n", b"one\n2\n3\n", b"one\n2\nthree\n"
    found = of(first, second) + of(second, third)

    landed = land(found, {"x.py": first})

    assert result(landed) == {"x.py": third}


def test_a_rename_with_a_hunk_that_moved_lands():
    text = (
        b"diff --git a/old.py b/new.py\nsimilarity index 80%\nrename from old.py\n"
        b"rename to new.py\n--- a/old.py\n+++ b/new.py\n@@ -2,3 +2,3 @@\n 2\n-3\n+three\n 4\n"
    )

    landed = land(diffs(text), {"old.py": b"0\n1\n2\n3\n4\n"})

    assert result(landed) == {"old.py": None, "new.py": b"0\n1\n2\nthree\n4\n"}
    assert landed.renamed == {"new.py": "old.py"}
