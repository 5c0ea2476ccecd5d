"""The search: its bounds, its laws, and an oracle that tries everything."""

import random
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.version import Version

from patchq.engine import claims, scopes, search, sections, sites, sketch, trees
from patchq.engine.budget import Budget, TooLoose
from patchq.engine.fitting import Fitter, Reach
from patchq.engine.verdict import LOOSE

BIG = "def big(x):\n" + "".join(
    f"    if c{n}:\n        a{n} = g{n}(x)\n        for k{n} in r{n}:\n            b{n} += k{n}\n"
    f"    else:\n        h(b{n}, a{n})\n"
    for n in range(400)
)


def question(said: str, text: str) -> tuple[search.Search, sections.cst.CSTNode, list]:
    (section,) = sections.parse(f"# in m.py\n{said}".encode(), name="s.pyi")
    tree = trees.tree(text.encode())
    assert isinstance(tree, trees.Tree)
    node = next(sections.small(section.module))
    places = scopes.candidates(node, sites.sites(tree, tree.module))
    return search.Search(tree, section, Version("1")), node, places


def trials(lines: list[str]) -> int:
    asked, node, places = question("def big(x):\n    " + "\n    ".join(lines) + "\n", BIG)

    assert not any(True for _ in asked.ask(node, places))
    return asked.budget.spent


@pytest.mark.parametrize("last", ["nothing_like_it()", "h(_, x)", "return 7"])
@pytest.mark.parametrize("loose", ["_ = _", "_", "if _:\n        _ = _", "for _ in _:\n        _"])
def test_two_three_four_loose_statements_cost_in_proportion(loose, last):
    two, three, four = (trials([loose] * count + [last]) for count in (2, 3, 4))

    assert three - two <= two
    assert four <= 3 * two < 60_000


@pytest.mark.slow
def test_a_sketch_that_fits_in_too_many_ways_never_holds():
    said = "# in m.py\ndef big(x):\n    _a_ = _(_)\n    _b_ += _\n    h(_a_, _b_)\n"

    (claim,) = sketch.judge(
        sketch.load(said.encode(), name="s.pyi"), "1", {"m.py": BIG.encode()}.get
    )

    assert not claim.held
    assert claim.loose
    assert claim.nearest == "m.py, big: too loose: name the thing"


def test_the_bound_is_a_number_of_trials():
    said = "# in m.py\ndef big(x):\n    _a_ = _\n    _b_ += _\n"
    (section,) = sections.parse(said.encode(), name="s.pyi")
    tree = trees.tree(BIG.encode())

    enough, short = (
        next(claims.Judge(section, tree, Version("1"), limit=limit).claims())
        for limit in (search.TRIALS, 100)
    )

    assert enough.held
    assert short.loose


# A small program as a tree: a name, or (kind, parts).
NAMES = st.sampled_from(["a", "b", "c", "self"])
VALUES = st.recursive(
    NAMES | st.sampled_from([("int", "1"), ("str", "x"), ("str", "it's"), ("none", "None")]),
    lambda inner: st.one_of(
        st.tuples(st.just("call"), st.lists(inner, min_size=1, max_size=3)),
        st.tuples(st.just("list"), st.lists(inner, max_size=3)),
        st.tuples(st.just("tuple"), st.lists(inner, min_size=2, max_size=3)),
        st.tuples(st.just("plus"), st.lists(inner, min_size=2, max_size=2)),
        st.tuples(st.just("attr"), st.lists(NAMES, min_size=2, max_size=2)),
    ),
    max_leaves=5,
)
SIMPLE = st.one_of(
    st.tuples(st.just("assign"), st.tuples(NAMES, VALUES)),
    st.tuples(st.just("expr"), st.tuples(VALUES)),
    st.tuples(st.just("return"), st.tuples(VALUES)),
)
STATEMENTS = st.recursive(
    SIMPLE,
    lambda inner: st.one_of(
        st.tuples(st.just("if"), st.tuples(VALUES, st.lists(inner, min_size=1, max_size=3))),
        st.tuples(
            st.just("for"), st.tuples(NAMES, VALUES, st.lists(inner, min_size=1, max_size=3))
        ),
        st.tuples(
            st.just("else"),
            st.tuples(
                VALUES,
                st.lists(inner, min_size=1, max_size=2),
                st.lists(inner, min_size=1, max_size=2),
            ),
        ),
        st.tuples(
            st.just("try"),
            st.tuples(
                st.lists(inner, min_size=1, max_size=2), st.lists(inner, min_size=1, max_size=2)
            ),
        ),
    ),
    max_leaves=6,
)
BODIES = st.lists(STATEMENTS, min_size=1, max_size=4)


def expression(tree: object, layout: random.Random) -> str:
    if isinstance(tree, str):
        text = tree
    else:
        kind, parts = tree
        comma = layout.choice(["", ",", " ,"])
        if kind == "str":
            text = layout.choice(
                [f'"{parts}"', f'"""{parts}"""', f'r"{parts}"', f"{parts[:1]!r} {parts[1:]!r}"]
            )
            text = f"({text})" if text.count(" ") else text
        elif kind in ("int", "none"):
            text = parts
        elif kind == "attr":
            text = layout.choice([".", " . "]).join(parts)
        else:
            first, *rest = (expression(part, layout) for part in parts) if parts else [""]
            gap = layout.choice([", ", ",", ",\n  "])
            text = {
                "call": lambda: f"f({gap.join([first, *rest])}{comma})",
                "list": lambda: f"[{gap.join([first, *rest])}{comma if parts else ''}]",
                "tuple": lambda: f"({gap.join([first, *rest])}{comma})",
                "plus": lambda: f"({first}{layout.choice([' ', ''])}+ {rest[0]})",
            }[kind]()
    return layout.choice([text, text, f"({text})", f"({text}  # why\n)"])


def block(body: list, layout: random.Random, depth: int) -> Iterator[str]:
    pad = "    " * depth
    for kind, parts in body:
        yield layout.choice(["", "", "\n", f"{pad}# a comment\n"])
        *head, last = parts
        said = [expression(part, layout) for part in head if not isinstance(part, list)]
        end = layout.choice(["\n", "  # behind\n", "\n\n"])
        if kind in ("assign", "expr", "return"):
            value = expression(last, layout)
            names = {"assign": f"{head and head[0]} = ", "expr": "", "return": "return "}
            yield f"{pad}{names[kind]}{value}{layout.choice(['', ';'])}{end}"
        elif kind == "try":
            yield f"{pad}try:{end}{''.join(block(head[0], layout, depth + 1))}"
            yield f"{pad}except E:{end}{''.join(block(last, layout, depth + 1))}"
        elif kind == "else":
            yield f"{pad}if {said[0]}:{end}{''.join(block(head[1], layout, depth + 1))}"
            yield f"{pad}else:{end}{''.join(block(last, layout, depth + 1))}"
        else:
            start = f"for {head[0]} in {said[1]}" if kind == "for" else f"if {said[0]}"
            yield f"{pad}{start}:{end}{''.join(block(last, layout, depth + 1))}"


def function(body: list, seed: int) -> str:
    return "def f(a):\n" + "".join(block(body, random.Random(seed), 1))


def held(said: str, text: str) -> bool:
    loaded = sketch.load(f"# in m.py\n{said}".encode(), name="s.pyi")
    (claim,) = sketch.judge(loaded, "1", {"m.py": text.encode()}.get, explain=False)
    return claim.held


@pytest.mark.slow
@settings(deadline=None)
@given(BODIES, st.integers(0, 99))
def test_a_function_holds_as_a_sketch_of_itself(body, seed):
    assert held(function(body, seed), function(body, seed))


@pytest.mark.slow
@settings(deadline=None)
@given(BODIES, BODIES, st.integers(0, 99), st.integers(0, 99), st.data())
def test_layout_never_changes_a_verdict(body, other, one, two, data):
    kept = data.draw(st.sampled_from([body, body[:-1] or body, body[1:] or body, other]))

    verdicts = {
        held(function(kept, said), function(body, text))
        for said in (one, two)
        for text in (one, two)
    }

    assert len(verdicts) == 1
    assert verdicts == {True} or kept is other


LINES = st.recursive(
    st.sampled_from(
        [
            "_a_ = _",
            "_b_ = _a_",
            "_a_ = _b_",
            "x = _",
            "_ = _",
            "f(_a_)",
            "f(_b_)",
            "_a_ + _b_",
            "_a_",
            "return _a_",
            "f(_a_)  # absent",
            "x = _a_  # absent",
        ]
    ),
    lambda inner: st.tuples(
        st.sampled_from(["if _:", "if _a_:", "for _a_ in _:", "for _ in _b_:"]),
        st.lists(inner, min_size=1, max_size=2),
    ),
    max_leaves=4,
)
TEXTS = st.recursive(
    st.sampled_from(
        ["x = y", "y = x", "x = 1", "f(x)", "f(y)", "y = f(x + y)", "return x", "z = x"]
    ),
    lambda inner: st.tuples(
        st.sampled_from(["if x:", "if f(y):", "for x in y:", "for y in x:"]),
        st.lists(inner, min_size=1, max_size=3),
    ),
    max_leaves=8,
)


def indented(tree: object, depth: int = 1) -> str:
    pad = "    " * depth
    if isinstance(tree, str):
        return f"{pad}{tree}\n"
    head, body = tree
    return f"{pad}{head}\n" + "".join(indented(line, depth + 1) for line in body)


class Naive:
    """Tries every place for every line: no memory, no candidates, no dropped bindings."""

    def __init__(self, asked: search.Search) -> None:
        self.asked = asked
        self.lines, self.places, self.says = asked.lines, asked.places, asked.says
        self.fitter = Fitter(self, Budget(10**7), asked.section.path)

    def block(self, body, target, env):
        return self.sequence(self.lines(body), self.places(target), Reach(), env)

    def sequence(self, lines, places, reach, env):
        if not lines:
            yield env
        elif lines[0].absent:
            if not any(True for s in places for _ in self.fitter.fit(lines[0].node, s, env)):
                yield from self.sequence(lines[1:], places, reach, env)
        else:
            expression = isinstance(lines[0].node, sections.cst.Expr)
            for site in places[reach.look if expression else reach.after :]:
                for bound, further in self.fitter.fit(lines[0].node, site, env):
                    left = Reach(max(reach.after, further.after), further.look)
                    yield from self.sequence(lines[1:], places, left, bound)


@pytest.mark.slow
@settings(deadline=None, max_examples=400)
@given(st.lists(LINES, min_size=1, max_size=4), st.lists(TEXTS, min_size=1, max_size=5))
def test_the_search_finds_what_trying_everything_finds(lines, texts):
    said = "def f():\n" + "".join(map(indented, lines))
    asked, node, places = question(said, "def f():\n" + "".join(map(indented, texts)))

    found = any(True for _ in asked.ask(node, places))

    every = Naive(asked)
    assert found == any(True for site in places for _ in every.fitter.fit(node, site, {}))


@pytest.mark.parametrize("loose", ["_", "_a{}_ = _", "x", "_a{}_"])
def test_a_long_sketch_is_searched_within_the_budget(loose):
    lines = [loose.format(number) for number in range(900)]
    asked, node, places = question("def big(x):\n    " + "\n    ".join(lines) + "\n", BIG)

    with pytest.raises(TooLoose):
        all(False for _ in asked.ask(node, places))

    assert asked.budget.spent == search.TRIALS + 1


def test_a_block_of_many_lines_is_no_deeper_than_one_of_few():
    lines = "\n    ".join(f"a{number} = {number}" for number in range(990))
    text = f"def f():\n    {lines}\n"

    (claim,) = sketch.judge(
        sketch.load(f"# in m.py\n{text}".encode(), name="s.pyi"), "1", {"m.py": text.encode()}.get
    )

    assert claim.nearest.endswith(LOOSE)


@pytest.mark.parametrize("size", [250, 500])
def test_many_lines_that_fit_are_found(size):
    text = "def f():\n" + "    a = b\n" * 100
    said = "# in m.py\ndef f():\n" + "    b\n" * size

    (claim,) = sketch.judge(
        sketch.load(said.encode(), name="s.pyi"), "1", {"m.py": text.encode()}.get
    )

    assert claim.held


def test_all_questions_of_a_section_together_have_a_bound():
    said = "# in m.py\n" + "def big(x):\n    _a_ = _\n    _a_ += _\n    _a_ += _\n" * 8
    (section,) = sections.parse(said.encode(), name="s.pyi")
    judged = claims.Judge(section, trees.tree(BIG.encode()), Version("1"), limit=1_500)

    found = list(judged.claims())

    assert all(claim.loose for claim in found)
    assert len(found) == 8


def test_parameters_of_holes_are_tried_within_the_budget():
    holes = ", ".join(f"_{letter}_" for letter in "abcdefghij")
    names = ", ".join(f"p{number}" for number in range(12))
    said = f"# in m.py\ndef f({holes}, last): ...\n".encode()

    (claim,) = sketch.judge(
        sketch.load(said, name="s.pyi"), "1", {"m.py": f"def f({names}): ...\n".encode()}.get
    )

    assert claim.loose


def test_many_sections_are_read_one_by_one():
    loaded = sketch.load(b"# in m.py\nfrom .units import metre\n" * 800, name="s.pyi")

    assert len(loaded.sections) == 800
