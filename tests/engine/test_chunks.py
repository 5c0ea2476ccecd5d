"""Trees that share their statements are the trees that libcst makes of the whole text."""

import random
from pathlib import Path

import libcst as cst
import pytest

from patchq.engine import chunks, imprints, trees

SOURCES = sorted(Path(trees.__file__).parent.glob("*.py"))
AWKWARD = [
    "",
    "# nothing\n",
    "a = 1; b = 2\nc = 3",
    'x = """\n\n"""; y = """\n"""\nz = 1\n',
    "a = 1 \\\n\nb = 2\n",
    "@one\n# between\n@two(\n    1,\n)\ndef f(): ...\n\n\n# above\nclass A: pass\n# below\n",
    "if a:\n\tb\nelif c:\n  d\nelse: e\n",
    "a = 1\r\nb = (\r\n2)\rc = 3\n",
    "a = 1\n\x0c\nb = 2\n",
    "\ufeffa = 1\nb = 2\n",
    "same(1)\nsame(1)\nother()\nsame(1)\n",
    "for x in y:\n    pass\n    # the last\nelse:\n    pass\n",
]


@pytest.mark.parametrize("text", AWKWARD, ids=range(len(AWKWARD)))
def test_an_awkward_text_has_the_same_tree(text):
    shared = trees.tree(text.encode())
    whole = trees.tree(text.encode(), comments=True)

    assert imprints.imprint(shared.module.body) == imprints.imprint(whole.module.body)
    assert list(shared.lines.values()) == list(whole.lines.values())


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_a_module_has_the_same_tree(path):
    shared, whole = trees.tree(path.read_bytes()), cst.parse_module(path.read_text())

    assert imprints.imprint(shared.module.body) == imprints.imprint(whole.body)


def test_texts_that_are_alike_share_statements_and_no_tree_has_one_twice():
    rng = random.Random(4)
    lines = [f"def f{n}():\n    return {n}\n" for n in range(40)] * 2
    for _ in range(20):
        rng.shuffle(lines)
        first = trees.tree("".join(lines[:40]).encode()).module.body
        second = trees.tree("".join(lines[1:41]).encode()).module.body

        assert len({id(node) for node in first}) == len(first)
        assert len({id(node) for node in first} & {id(node) for node in second}) > 10


def test_what_is_kept_has_a_bound():
    kept = chunks._Kept()
    for number in range(50):
        kept.get(f"x = {'1' * 100_000}{number}\n")

    assert kept.size == sum(map(len, kept.found)) <= 3_000_000
