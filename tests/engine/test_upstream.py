"""R15 in its pure part: since when upstream has what a patch is for."""

import pytest

from patchq.engine import sketch, upstream


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", None),
        ("--?", None),
        ("-+", "upstream since 2"),
        ("-+++", "upstream since 2"),
        ("-+?", "upstream since 2"),
        ("-+--", "upstream since 2, rewritten in 3"),
        ("-+?-", "upstream since 2, rewritten in 4"),
        ("-+-?", "upstream since 2, rewritten in 3"),
        ("-+-+", "upstream since 2"),
        ("-+-+-", "upstream since 2, rewritten in 5"),
        ("+", "upstream since 1"),
    ],
)
def test_the_first_release_that_has_it_counts_for_all_later_ones(words, said):
    held = [{"+": True, "-": False, "?": None}[word] for word in words]
    found = upstream.upstream([(str(at), one) for at, one in enumerate(held, 1)])

    assert (found and str(found)) == said


@pytest.mark.parametrize(
    ("said", "held"),
    [
        ("x = 1", True),
        ("x = 2", False),
        ("x = 1\n# when <1\ny = 1", True),
        ("# when <1\nx = 1", None),
        ("x = 1  # given", None),
        ("x = 2  # given", None),
    ],
)
def test_a_sketch_without_a_claim_says_nothing_of_a_release(said, held):
    parsed = sketch.load(f"# in m.py\n{said}\n".encode(), name="s.pyi")

    assert upstream.holds(parsed, "1.0", {"m.py": b"x = 1\n"}.get) is held
