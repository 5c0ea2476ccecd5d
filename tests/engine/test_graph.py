import random
import re
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchq.engine import apply, diff, drawing, graph, textdiff
from patchq.engine.graph import Edge
from patchq.model import Patch
from tests import quilt_lab

TEXT = [b"line %d\n" % number for number in range(40)]


def series(*changes, context=3):
    """Return patches: each of `changes` has files with their texts before and after."""
    return [
        parsed(
            f"p{number}",
            b"".join(
                textdiff.unified(before, after, path, context=context)
                for path, (before, after) in some.items()
            ),
        )
        for number, some in enumerate(changes)
    ]


def parsed(name, text):
    return Patch(name, text, *diff.parse(text, name=name))


def at(text, *places):
    """Return a text whose lines at these places say who changed them."""
    lines = text.splitlines(keepends=True)
    for place, word in places:
        lines[place] = word
    return b"".join(lines)


BASE = b"".join(TEXT)
ONE = at(BASE, (5, b"one\n"))
TWO = at(ONE, (20, b"two\n"))
THREE = at(TWO, (5, b"three\n"), (22, b"three\n"))
FILE = {"f": (BASE, ONE)}, {"f": (ONE, TWO)}, {"f": (TWO, THREE)}


def pairs(edges):
    return [(edge.above, edge.below) for edge in edges]


def test_patches_of_one_file_need_each_other_in_turn():
    assert pairs(graph.edges(series(*FILE))) == [(1, 0), (2, 1)]


def test_with_lines_a_patch_needs_all_whose_lines_it_changes():
    """quilt looks no further than the nearest one, here 1: that 2 changes 0's line is lost."""
    assert pairs(graph.edges(series(*FILE), context=2)) == [(2, 0), (2, 1)]
    assert pairs(graph.edges(series(*FILE), context=0)) == [(2, 0)]
    assert pairs(graph.edges(series(*FILE), context=8)) == [(1, 0), (2, 1)]


def test_lines_are_found_again_where_patches_between_have_moved_them():
    moved = b"new\n" * 30 + ONE
    above = moved.replace(b"one\n", b"mine\n")
    elsewhere = at(moved, (5, b"mine\n"))

    needs = graph.edges(
        series({"f": (BASE, ONE)}, {"f": (ONE, moved)}, {"f": (moved, above)}), context=1
    )
    not_so = graph.edges(
        series({"f": (BASE, ONE)}, {"f": (ONE, moved)}, {"f": (moved, elsewhere)}), context=1
    )

    assert pairs(needs) == [(2, 0)]
    assert pairs(not_so) == [(2, 1)]


def test_a_file_that_comes_or_goes_is_meant_as_a_whole():
    found = graph.edges(
        series(
            {"n": (None, b"1\n2\n")}, {"n": (b"1\n2\n", b"1\n2\n3\n")}, {"n": (b"1\n2\n3\n", None)}
        ),
        context=0,
    )

    assert pairs(found) == [(1, 0), (2, 1)]


def test_a_new_name_is_followed_and_the_old_one_is_free():
    rename = b"diff --git a/f b/g\nsimilarity index 100%\nrename from f\nrename to g\n"
    patches = [
        *series({"f": (BASE, ONE)}),
        parsed("1", rename),
        *series({"g": (ONE, THREE)}, {"f": (None, b"again\n")}),
    ]

    assert graph.edges(patches) == (
        Edge(1, 0, ("g",)),
        Edge(2, 1, ("g",)),
        Edge(3, 1, ("f",)),
    )
    assert pairs(graph.edges(patches, context=0)) == [(1, 0), (2, 1), (3, 1)]


def test_modes_are_changed_beside_lines():
    mode = b"diff --git a/f b/f\nold mode 100644\nnew mode 100755\n"
    back = b"diff --git a/f b/f\nold mode 100755\nnew mode 100644\n"
    patches = [parsed("0", mode), *series({"f": (BASE, ONE)}), parsed("2", back)]

    assert pairs(graph.edges(patches, context=2)) == [(2, 0)]


def test_only_the_files_of_one_patch_count():
    patches = series({"f": (BASE, ONE), "g": (BASE, ONE)}, {"g": (ONE, TWO)}, {"f": (ONE, TWO)})

    assert graph.edges(patches, of=1) == (Edge(1, 0, ("g",)),)
    assert graph.edges(patches, of=0) == (Edge(1, 0, ("g",)), Edge(2, 0, ("f",)))


def test_what_follows_from_other_edges_is_left_out():
    edges = [Edge(one, two, ()) for one, two in ((1, 0), (2, 0), (2, 1), (3, 0), (3, 2), (4, 0))]

    assert pairs(graph.reduced(edges)) == [(1, 0), (2, 1), (3, 2), (4, 0)]


def _stack(choice, count, files):
    """Return random changes of files, one after the other, and the files."""
    texts = {name: list(TEXT) for name in files}
    out = []
    for number in range(count):
        change = {}
        for name in choice.sample(files, choice.randint(1, len(files))):
            before = b"".join(texts[name])
            for part in range(choice.randint(1, 2)):
                place = choice.randrange(len(texts[name]))
                new = [b"%d %d %d\n" % (number, part, one) for one in range(choice.randint(0, 2))]
                texts[name][place : place + choice.randint(0, 2)] = new
            after = b"".join(texts[name])
            if before != after:
                change[name] = (before, after)
        if change:
            out.append(change)
    return out


def _quilted(folder, stack):
    tree = quilt_lab.Tree(folder, dict.fromkeys("fg", BASE))
    for number, change in enumerate(stack):
        tree.patch(f"p{number}", {name: after for name, (_, after) in change.items()})
    return tree


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_dot_is_quilts_and_valid(tmp_path, seed):
    stack = _stack(random.Random(seed), 5, ["f", "g"])
    tree = _quilted(tmp_path / "tree", stack)
    patches = series(*stack)
    names = [one.name for one in patches]

    for place in (None, *range(len(names))):
        edges = graph.edges(patches, of=place)
        text = "\n".join(drawing.dot(names, edges, selected=place)) + "\n"
        told = tree.run("graph", *(("--all",) if place is None else (names[place],)))
        assert text == told.decode()
    text = "\n".join(drawing.dot(names, graph.edges(patches), files=True))
    done = subprocess.run(["dot", "-Tsvg"], input=text.encode(), capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"<svg" in done.stdout


@pytest.mark.parametrize("seed", range(3))
def test_reduced_edges_are_those_of_tred(seed):
    stack = _stack(random.Random(seed), 7, ["f", "g", "h"])
    patches = series(*stack)
    edges = graph.edges(patches, context=2)
    names = [one.name for one in patches]

    done = subprocess.run(
        ["tred"], input="\n".join(drawing.dot(names, edges)), capture_output=True, text=True
    )

    told = {(int(b), int(a)) for a, b in re.findall(r"n(\d+) -> n(\d+)", done.stdout)}
    assert set(pairs(graph.reduced(edges))) == told


@pytest.mark.parametrize("seed", range(6))
def test_overlapping_lines_of_two_patches_are_those_of_quilt(tmp_path, seed):
    """Of two: of more it compares line numbers of different texts, and stops at the nearest."""
    stack = _stack(random.Random(seed), 2, ["f"])
    tree = _quilted(tmp_path / "tree", stack)
    patches = series(*stack)

    for context in (1, 2, 4, 9):
        edges = graph.edges(patches, context=context)
        text = "\n".join(drawing.dot([one.name for one in patches], edges)) + "\n"
        assert text == tree.run("graph", "--all", f"--lines={context}").decode(), context


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), gone=st.integers(0, 5))
def test_what_needs_no_patch_applies_without_it(seed, gone):
    """A patch is left out with all that needs it: the others apply, each in one place."""
    stack = _stack(random.Random(seed), 6, ["f"])
    patches = series(*stack)
    gone %= len(patches)
    edges = graph.edges(patches, context=3)
    without = {gone}
    for edge in edges:
        if edge.below in without:
            without.add(edge.above)

    tree = {"f": (BASE, False)}
    for place, patch in enumerate(patches):
        if place not in without:
            result = apply.apply_patch(patch, tree.get, search=True)
            assert isinstance(result, apply.PatchApplied), result
            tree.update(result.after)


def test_names_and_labels_are_quoted():
    edges = [Edge(1, 0, ('a"b', "c\\d"))]

    text = "\n".join(drawing.dot(['x"y', "z\\"], edges, files=True))

    done = subprocess.run(["dot", "-Tplain"], input=text.encode(), capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert '[label="x\\"y"]' in text
    assert '[label="a\\"b\\nc\\\\d",len=' in text


def test_a_tree_shows_each_patch_with_what_it_needs_once():
    edges = [Edge(1, 0, ("f",)), Edge(2, 0, ("g",)), Edge(2, 1, ("f",)), Edge(3, 2, ("f", "g"))]
    names = ["a", "b", "c", "d", "e"]

    assert drawing.tree(names, edges, range(5)) == [
        "e",
        "d",
        "`-- c",
        "    |-- b",
        "    |   `-- a",
        "    `-- a",
    ]
    assert drawing.tree(names, edges, [3, 2], files=True)[:2] == ["d", "`-- c  (f, g)"]


def test_a_tree_does_not_draw_the_same_twice():
    edges = [Edge(1, 0, ()), Edge(2, 1, ()), Edge(3, 1, ()), Edge(4, 2, ()), Edge(4, 3, ())]

    assert drawing.tree(list("abcde"), edges, [4]) == [
        "e",
        "|-- d",
        "|   `-- b",
        "|       `-- a",
        "`-- c",
        "    `-- b  (above)",
    ]
