"""R16: every hunk taken back alone breaks a claim, an always-on check, or the patch."""

import pytest

from patchq.engine import diff, sketch, takeback, textdiff
from patchq.model import Patch

BELOW = {
    "pkg/__init__.py": "",
    "pkg/a.py": (
        '"""A module."""\n\nfrom .b import one\n\n\nclass A:\n    """Some class."""\n\n'
        "    def f(self, x):\n        first = one(x)\n        return first\n\n\n"
        "class B:\n    names = ['a', 'b']\n\n    def g(self):\n        return one(1)\n\n\n"
        "def last():\n    # a comment\n    return 1\n"
    ),
    "pkg/b.py": "def one(x):\n    return x\n\n\ndef two(x):\n    return x\n",
    "pkg/data.txt": "a\nb\n",
}


def judged(changes: dict[str, str | None], said: str, text: str | None = None) -> list:
    """Return what guards each hunk of the patch that makes `changes` of `BELOW`."""
    tree = {path: data.encode() for path, data in BELOW.items()}
    made = b"".join(
        diff.unified(tree.get(path), data and data.encode(), path, context=1)
        for path, data in changes.items()
    )
    header, diffs = diff.parse(text.encode() if text else made, name="x.patch")
    patch = Patch("x.patch", made, header, diffs)

    def file(path):
        return (tree[path], False) if path in tree else None

    back = takeback.Back(patch, file, "1.0", tree.get)
    assert not isinstance(back.whole, str), back.whole
    parsed = sketch.load(said.encode(), name="post/x.pyi") if said else None
    if parsed:
        world = {**tree, **back.whole}
        assert all(claim.held for claim in sketch.judge(parsed, "1.0", world.get))
    return list(back.guards(parsed))


def a(*edits: tuple[str, str]) -> dict[str, str]:
    text = BELOW["pkg/a.py"]
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return {"pkg/a.py": text}


TWO = a(
    ("names = ['a', 'b']", "names = ['a', 'b', 'c']"), ("first = one(x)", "first = one(x + 1)")
)
NAMES = "class B:\n    names = ['c', ...]\n"
CALL = "class A:\n    def f(self):\n        one(_ + 1)\n"


def test_each_hunk_is_guarded_by_the_line_that_speaks_of_it():
    first, second = judged(TWO, f"# in pkg/a.py\n{CALL}{NAMES}")

    assert first.by == "post/x.pyi:4: `one(_ + 1)` in A.f"
    assert second.by == "post/x.pyi:6: `names = ['c', ...]` in B"
    assert (second.piece.path, second.piece.number, second.piece.line) == ("pkg/a.py", 2, 15)
    assert second.piece.heading == "def f(self, x):"


@pytest.mark.parametrize(("said", "bare"), [(CALL, 1), (NAMES, 0)])
def test_a_hunk_of_which_the_sketch_says_nothing_is_unguarded(said, bare):
    found = judged(TWO, f"# in pkg/a.py\n{said}")

    assert [bool(one.by) for one in found] == [at != bare for at in range(2)]
    assert not found[bare].nature
    message = str(found[bare].finding())
    assert message.startswith(f"pkg/a.py:{(10, 15)[bare]}: unguarded: hunk {bare + 1} (`")


def test_an_import_without_its_definition_is_an_always_on_check():
    changes = {"pkg/b.py": BELOW["pkg/b.py"] + "\n\ndef three(x):\n    return x\n"}
    changes |= a(("import one", "import one, three"), ("one(x)", "three(x)"))

    found = judged(changes, f"# in pkg/a.py\n{CALL.replace('one(_ + 1)', 'three(_)')}")

    assert found[0].by.startswith("always on, import: pkg/a.py:3: `from .b import three`")


def test_what_does_not_parse_without_a_hunk_is_guarded():
    quote = '"""'
    changes = a(
        (f"A module.{quote}", "A module."),
        (f"    {quote}Some class.", f"{quote}\nclass A:\n    {quote}Some class."),
    )

    found = judged(changes, "# in pkg/a.py\nclass A: ...\n")

    assert len(found) == 2
    assert all(one.by.startswith("always on, syntax: pkg/a.py, line ") for one in found)


def test_a_rest_that_does_not_apply_is_a_refusal_too():
    name = "--- a/pkg/b.py\n+++ b/pkg/b.py\n@@ -1,2 +1,2 @@\n"
    text = (
        f"{name}-def one(x):\n+def one(y):\n     return x\n"
        f"{name}-def one(y):\n+def one(z):\n     return x\n"
    )

    found = judged({}, "# in pkg/b.py\ndef one(z): ...\n", text)

    assert found[0].by.startswith("the rest does not apply without it: pkg/b.py: hunk 1")
    assert found[1].by.startswith("post/x.pyi:2: ")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (a(("# a comment", "# another")), "it changes no code: comments, docstrings, layout"),
        (a(("Some class", "That class")), "it changes no code: comments, docstrings, layout"),
        (a(("['a', 'b']", "[\n        'a', 'b'\n    ]")), "it changes no code: comments, "),
        ({"pkg/data.txt": "a\nc\n"}, "the file is not Python"),
    ],
)
def test_some_hunks_are_unguarded_by_nature(changes, why):
    (found,) = judged(changes, "# in pkg/a.py\nclass A: ...\n")

    assert not found.by
    assert found.nature.startswith(why.rstrip())


def test_a_new_file_that_says_nothing_is_unguarded_by_nature():
    (found,) = judged({"pkg/new/__init__.py": ""}, "")

    assert found.nature


def test_a_new_file_is_taken_back_whole():
    (found,) = judged({"pkg/c.py": "X = 1\n"}, "# in pkg/c.py\nX = ...\n")

    assert found.by == "post/x.pyi:2: `X = ...`"
    assert found.piece.line == 1


def test_a_change_of_mode_is_no_hunk_and_has_no_guard():
    text = "diff --git a/pkg/b.py b/pkg/b.py\nold mode 100644\nnew mode 100755\n"

    (found,) = judged({}, "", text)

    assert (found.piece.number, found.piece.line, str(found.piece)) == (0, 0, "the file itself")
    assert found.nature == "a mode or a name, of which no sketch can speak"


def test_a_patch_that_is_applied_in_reverse_has_its_pieces_too():
    tree = {path: data.encode() for path, data in BELOW.items()}
    text = diff.unified(TWO["pkg/a.py"].encode(), tree["pkg/a.py"], "pkg/a.py", context=1)
    header, diffs = diff.parse(text, name="x.patch")
    patch = Patch("x.patch", text, header, diffs, reverse=True)
    back = takeback.Back(patch, lambda path: (tree[path], False), "1.0", tree.get)
    parsed = sketch.load(f"# in pkg/a.py\n{CALL}".encode(), name="post/x.pyi")

    found = list(back.guards(parsed))

    assert [bool(one.by) for one in found] == [True, False]
    assert [one.piece.line for one in found] == [10, 15]


def test_so_many_hunks_and_no_more_are_taken_back(monkeypatch):
    monkeypatch.setattr(takeback, "MOST", 1)

    found = judged(TWO, f"# in pkg/a.py\n{CALL}{NAMES}")

    assert [bool(one.by) for one in found] == [True, False]


LOOP = "def f(xs):\n    for x in xs:\n        if x:\n            break\n    return xs\n"


@pytest.mark.parametrize(
    "changed",
    [
        LOOP.replace("break", "continue"),
        LOOP.replace("            break\n", "            pass\n"),
        LOOP.replace(
            "            break\n", "            break\n        else:\n            break\n"
        ),
        LOOP.replace("            break\n", "            pass\n        break\n"),
    ],
)
def test_a_jump_is_code(changed):
    tree = {"pkg/a.py": (LOOP.encode(), False)}
    made = textdiff.unified(LOOP.encode(), changed.encode(), "pkg/a.py")
    header, diffs = diff.parse(made, name="x.patch")

    back = takeback.Back(Patch("x.patch", made, header, diffs), tree.get, "1.0", lambda _: None)

    assert back.nature == ""
    assert [guard.bare for guard in back.guards(None)] == [True]
