import random

import pytest

from patchq.engine import annotate, lines
from tests import quilt_lab


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        ([b"a\nb\n"], [0, 0]),
        ([None, b"a\nb\n"], [1, 1]),
        ([b"a\nb\n", None], []),
        ([b"a\nb\n", None, b"a\n"], [2]),
        ([b"a\nb\nc\n", b"a\nB\nc\n", b"B\nc\nd\n"], [1, 0, 2]),
        ([b"a\nb", b"a\nb\n"], [0, 1]),
        ([b"a\n" * 3, b"a\n" * 4], [0, 0, 0, 1]),
    ],
)
def test_a_line_has_the_number_of_the_text_that_brought_it(texts, numbers):
    assert annotate.origins(texts) == numbers


@pytest.mark.parametrize("seed", range(4))
def test_it_says_of_each_line_what_quilt_says(tmp_path, seed):
    """Texts of few different lines, so that much may be moved."""
    choice = random.Random(seed)
    texts = [b"".join(choice.choices([b"a\n", b"b\n", b"\n", b"c\n"], k=30))]
    tree = quilt_lab.Tree(tmp_path / "tree", {"f": texts[0]})
    for number in range(3):
        texts.append(_edited(choice, texts[-1]))
        tree.patch(f"{number}.patch", {"f": texts[-1]})

    numbers = annotate.origins(texts)

    shown = zip(numbers, lines.split(texts[-1]), strict=True)
    mine = b"".join(
        b"%s\t%s" % (b"%d" % number if number else b"", line) for number, line in shown
    )
    told = tree.run("annotate", "f")
    assert told == mine + b"\n1\t0.patch\n2\t1.patch\n3\t2.patch\n"


def _edited(choice, text):
    """Return a text with a few lines taken out, put in and changed."""
    out = lines.split(text)
    for _ in range(4):
        at = choice.randrange(len(out))
        out[at : at + choice.randint(0, 2)] = choice.choices(
            [b"a\n", b"d\n"], k=choice.randint(0, 2)
        )
    return b"".join(out) + b"end\n"
