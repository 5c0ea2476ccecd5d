"""What reading, matching, judging and drafting cost, counted in calls: in proportion to the input.

No clock: `calls` counts the Python calls of one piece of work, which is the same on
every machine.
"""

import sys
from collections.abc import Callable

import pytest
from packaging.version import Version

from patchq.engine import claims, diff, draft, sections, sketch, takeback, trees
from patchq.model import Patch

# Four times the input may cost this much more.
MOST = 5.5


def calls(work: Callable[[], object]) -> int:
    count = 0

    def note(frame, event, arg):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def grows(cost: Callable[[int], int], size: int) -> None:
    one, two, four = (cost(size * factor) for factor in (1, 2, 4))

    assert one < two < four
    assert four <= MOST * one, (one, two, four)


def said(count: int) -> bytes:
    body = "".join(
        f"    def f{n}(self, a{n}):\n        # when >=1\n"
        f"        if _x_{n}:\n            g(_x_)  # given\n"
        for n in range(count)
    ).replace("_x_", "self.x")
    return f"# in m.py\nclass A:\n{body}".encode()


def text(count: int) -> bytes:
    return "".join(
        f"def f{n}(x):\n    if x.c{n}:\n        a{n} = x.g{n}(x)\n"
        f"    for k in x.r{n}:\n        x.b += k\n"
        for n in range(count)
    ).encode()


def test_a_sketch_of_more_statements_is_read_in_proportion():
    grows(lambda size: calls(lambda: sections.parse(said(size), name="s.pyi")), 8)


def test_a_sketch_of_more_sections_is_read_in_proportion():
    grows(lambda size: calls(lambda: sections.parse(said(2) * size, name="s.pyi")), 8)


def judged(loaded: sketch.Sketch, data: bytes) -> Callable[[], object]:
    trees.tree(data)
    return lambda: sketch.judge(loaded, "1.0", {"m.py": data}.get, explain=False)


def test_more_claims_cost_in_proportion():
    """Each is sought among the names of the file, which does not grow."""
    lines = ["x{n} = _({n})", "def f{n}(x):\n    for _k_ in x.r{n}:\n        _ += _k_"]

    def cost(size: int) -> int:
        asked = "\n".join(line.format(n=n) for n in range(size) for line in lines)
        loaded = sketch.load(f"# in m.py\n{asked}\n".encode(), name="s.pyi")
        return calls(judged(loaded, text(40)))

    grows(cost, 5)


@pytest.mark.parametrize(
    "lines",
    [
        ["_ = _(_)", "_ = _(_)", "nothing()"],
        ["for _i_ in _:\n        g(_i_)", "_x_ = _", "h(_x_, _)", "return _x_"],
        ["if _:\n        _a_ = _\n    else:\n        ...", "_b_ = _", "f(_a_)", "f(_b_)"],
    ],
)
def test_a_longer_def_costs_in_proportion(lines):
    """Trials: what the bound of 100,000 counts."""
    body = "\n    ".join(lines)
    (section,) = sections.parse(f"# in m.py\ndef big(x):\n    {body}\n".encode(), name="s.pyi")

    def cost(size: int) -> int:
        block = "".join(
            f"    if c{n}:\n        a{n} = g{n}(x)\n    for k in r{n}:\n        b{n} += k\n"
            for n in range(size)
        )
        tree = trees.tree(f"def big(x):\n{block}".encode())
        judge = claims.Judge(section, tree, Version("1"), explain=False)
        (claim,) = judge.claims()
        assert not claim.held
        assert not claim.loose
        return claims._LONG * judge.limit - judge._left

    grows(cost, 50)


class Counted(takeback.Back):
    """Counts how often something is taken back and judged."""

    count = 0

    def broken(self, *args) -> str:
        self.count += 1
        return super().broken(*args)


def back(hunks: int) -> tuple[Counted, Patch]:
    """Return a patch with so many hunks in a file of 80 defs."""
    before = text(80)
    after = before
    for n in range(hunks):
        after = after.replace(b"a%d = x.g%d(x)" % (n, n), b"a%d = x.g%d(x, 1)" % (n, n))
    made = diff.unified(before, after, "m.py", context=1)
    header, diffs = diff.parse(made, name="x.patch")
    patch = Patch("x.patch", made, header, diffs)
    return Counted(patch, lambda path: (before, False), "1.0", lambda path: None), patch


@pytest.mark.slow
def test_more_hunks_are_taken_back_in_proportion_while_a_draft_is_made():
    def cost(size: int) -> int:
        made, patch = back(size)
        assert not draft.draft(made, patch).bare
        return made.count

    grows(cost, 5)


@pytest.mark.slow
def test_texts_that_are_alike_are_parsed_in_their_differences_only():
    data = text(80)
    trees.tree(data)

    cost = [
        calls(lambda extra=extra: trees.tree(data + b"def more%d(): ...\n" % extra))
        for extra in range(3)
    ]

    assert max(cost) < calls(lambda: trees.tree(data + b"\n", comments=True))
