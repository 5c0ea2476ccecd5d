"""Every example of docs/sketches.md is judged, and comes out as the page says."""

import re
from pathlib import Path

import pytest

from patchq.engine import diff, judge, sketch, takeback, unasked, upstream
from patchq.model import Patch

PAGE = Path(__file__).parents[2] / "docs" / "sketches.md"
BLOCK = re.compile(r"^```python\n(#: .*?)^```$", re.MULTILINE | re.DOTALL)
RULE = re.compile(r"^### (R\d+) ", re.MULTILINE)
VERSION = re.compile(r" in (\S+)")


def examples() -> list[tuple[str, str]]:
    """Return (rule, block) of each example of the page."""
    text = PAGE.read_text()
    rules = [(found.start(), found[1]) for found in RULE.finditer(text)]
    return [
        (max((at, rule) for at, rule in rules if at < block.start())[1], block[1])
        for block in BLOCK.finditer(text)
    ]


def parts(block: str) -> list[tuple[str, str]]:
    """Return (what stands behind `#:`, the text under it)."""
    cut = re.split(r"^#: (.*)\n", block, flags=re.MULTILINE)[1:]
    return list(zip(cut[::2], cut[1::2], strict=True))


def load(text: str) -> sketch.Sketch:
    return sketch.load(
        (text if text.startswith("# in ") else f"# in m.py\n{text}").encode(), name="s"
    )


def words(said: sketch.Sketch, below: str, above: str) -> list[str]:
    """Return what lint says of the patch that makes `above` of `below`."""
    before, after = {"m.py": below.encode()}, {"m.py": above.encode()}
    text = diff.unified(before["m.py"], after["m.py"], "m.py", context=2)
    header, diffs = diff.parse(text, name="x.patch")
    found = judge.lint(judge.judge(before, after, said, "1.0", before.get, diffs=diffs))
    patch = Patch("x.patch", text, header, diffs)
    back = takeback.Back(patch, lambda path: (before[path], False), "1.0", before.get)
    bare = [one.finding() for one in back.guards(said) if one.bare]
    return [one.message for one in (*found, *bare)]


def answer(said: sketch.Sketch, kind: str, text: str) -> str:
    """Return `holds`, `does not` or `not asked`, as the page has it."""
    found = VERSION.search(kind.partition(":")[0])
    claims = sketch.judge(said, found[1] if found else "1.0", lambda path: text.encode())
    if not claims:
        return "not asked"
    return "holds" if all(claim.held for claim in claims) else "does not"


@pytest.mark.parametrize(
    ("rule", "block"), examples(), ids=[f"{at}-{rule}" for at, (rule, _) in enumerate(examples())]
)
def test_an_example_of_the_page_is_true(rule, block):
    releases: list[tuple[str, bool | None]] = []
    sides: dict[str, str] = {}
    for kind, text in parts(block):
        word = kind.split()[0].rstrip(":")
        if word == "sketch":
            said = load(text)
        elif word == "release":
            held = upstream.holds(said, kind.split()[1], lambda path, text=text: text.encode())
            releases.append((kind.split()[1], held))
        elif word == "upstream":
            assert str(upstream.upstream(releases)) == kind
        elif word == "claims":
            assert len(sketch.judge(said, "1.0", lambda path: None)) == int(kind.split()[1])
        elif word in ("below", "above"):
            sides[word] = text
        elif word == "lint":
            expected = [] if kind == "lint is content" else [kind.removeprefix("lint: ")]
            assert words(said, sides["below"], sides["above"]) == expected
        else:
            assert kind.startswith(answer(said, kind, text)), (rule, kind)


def test_every_rule_has_an_example_that_holds_and_one_that_does_not():
    kinds: dict[str, set[str]] = {}
    for rule, block in examples():
        kinds.setdefault(rule, set()).update(
            kind.split()[0].rstrip(":") for kind, _ in parts(block)
        )

    assert list(kinds) == [f"R{number}" for number in range(17)]
    assert all({"holds", "does"} <= kinds[f"R{number}"] for number in range(14))


def test_what_is_left_out_of_a_release_is_named():
    (said,) = [load(text) for kind, text in parts(examples()[0][1]) if kind == "sketch"]

    assert [str(one) for one in unasked.unasked(said, "2.0rc1")] == [
        "`def area(): ...` (line 5, when <2)"
    ]
