"""Texts from outside against the parsers: none takes the process along, or its time."""

import contextlib
import json
import random
import re
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchq.engine import diff, judge, nesting, sections, sketch, trees
from patchq.errors import PatchqError

# Every Python calls this a plain syntax error, and libcst would read on.
FAULTY = b"'\\x'\n"
DEEP = {
    "unary": "x = " + "-" * 100_000 + "1",
    "not": "x = " + "not " * 30_000 + "1",
    "power": "x = " + "1**" * 20_000 + "1",
    "attributes": "x = " + "a." * 50_000 + "a",
    "calls": "x = a" + "()" * 20_000,
    "subscripts": "x = a" + "[0]" * 20_000,
    "sum": "x = " + "1+" * 30_000 + "1",
    "or": "x = " + "a or " * 30_000 + "1",
    "ternary": "x = " + "a if b else " * 10_000 + "c",
    "without spaces": "x = " + "1if 1else " * 10_000 + "1",
    "lambda": "x = " + "lambda:" * 10_000 + "1",
    "lambda with commas": "x = " + "lambda a, b:" * 10_000 + "1",
    "lambda defaults": "x = " + "lambda a=" * 2_000 + "1" + ":1" * 2_000,
    "comprehension": "x = [a " + "for a, b in c " * 10_000 + "]",
    "brackets": "x = " + "(" * 5_000 + "1" + ")" * 5_000,
    "open brackets": "x = " + "f(" * 5_000,
    "left brackets": "x = " + "(" * 100 + "1" + (")" + "+1" * 500) * 100,
    "f-strings": "x = " + "f'{f\"{" * 3_000 + "1" + "}\"}'" * 3_000,
    "f-string in disguise": "x = f\"'{" + "-" * 100_000 + "1}'\"",
    "f-string with quotes of its own": 'x = f"{"\'"}" ' + "+" + "-" * 100_000 + '1 + f"{\'"\'}"',
    "f-string formats": "x = f'" + "{a:" * 20_000 + "}" * 20_000 + "'",
    "raw f-string": "x = rf'\\' + {" + "-" * 100_000 + "1}'",
    "behind comments": "x = 1\n" + "# a\n\n" * 300 + "y = " + "-" * 100_000 + "1",
    "behind names": "x = a" + " \\\n" * 300 + "+ (b or " + "-" * 100_000 + "1)",
    "behind escapes": "x = '" + "\\'" * 300 + "' + " + "-" * 100_000 + "1",
    "elif": "if a: pass\n" + "elif b: pass\n" * 10_000,
    "hidden elif": "if a: pass\n" + " \\\nelif b: pass\n" * 10_000,
    "carriage returns": "x = 1\r" + "if a: pass\r" + "elif b: pass\r" * 10_000,
    "pattern": "match a:\n case " + "{1:" * 40 + "a" + "}" * 40 + ": pass",
    "del": "del " + "(" * 60 + "1" + ")" * 60,
}


@pytest.mark.parametrize("kind", DEEP)
def test_a_text_that_would_overflow_libcst_is_a_finding_and_no_sketch(kind):
    text = FAULTY + DEEP[kind].encode() + b"\n"

    assert nesting.trouble(DEEP[kind]) == nesting.DEEP
    (found,) = judge.judge({}, {"m.py": text}, None, "1", {}.get).findings
    assert found.kind == "syntax"
    with pytest.raises(sections.SketchError) as caught:
        sketch.load(b"# in m.py\n" + text, name="s.pyi")
    assert "longer than" not in caught.value.why


def test_an_encoding_hides_nothing():
    text = "# coding: utf-7\ntype X = int\nx = " + "-" * 20_000 + "1\n"
    hidden = text.replace("-" * 20_000, "+AC0-" * 20_000).encode()

    fault = trees.tree(hidden)

    assert isinstance(fault, trees.Fault)
    assert fault.words == nesting.DEEP


def test_what_python_reads_is_kept_from_libcst_too():
    text = b"x = " + b"a." * 900 + b"a\n"
    assert not isinstance(trees.python(text), trees.Fault)

    (claim,) = sketch.judge(
        sketch.load(b"# in m.py\nx = 1\n", name="s.pyi"), "1", {"m.py": text}.get
    )

    assert not claim.held
    assert claim.nearest == "m.py: it is nested too deeply to be read safely"


USUAL = [
    "x = [" + "lambda a, b: a.b(c)[0],\n" * 3_000 + "]\n",
    "x = {" + "'a': -1 + b.c,\n" * 3_000 + "}\n",
    "x = (" + "'a text'\n" * 2_900 + ")\n",
    "x = 1\nif a: b\nelif c: d\nelse: e\n" * 3_000,
    "def f():\n" + "    # (\n\n" * 300 + "    return 1\n",
    "x = '" + "\\'(" * 3_000 + '\', """' + '\\\\(" ' * 3_000 + '"""\n',
    "x = '" + "(-" * 3_000 + "'  # " + "(-" * 3_000 + "\n",
    "x = '''" + "([{-'\"\\'''" * 1_000 + "'''\n",
    "x = f'''{a!r:>{b}} {{ \" {c['d']} \\N{DASH} ''' + rf'\\{d}'\n" * 1_000,
    "x = f'{a}' if 0x1for b in c else .5e-3or 1_0.0j\n" * 1_000,
    "case = {'a': [[[[(1, 2)]]]]}\nx.case((((((((1))))))))\n" * 500,
    "match a:\n    case {'b': [c, (d, e)]} if f(g(h(1))): pass\n" * 1_000,
    "def f(a: int = (1), *b, c=lambda d, e=f: d, **g): return a\n" * 1_000,
    "a = b\\\n    .c\\\n    .d()\n\x0c\ndef f():\n\tx\n" * 1_000,
    "".join("    " * depth + f"if a{depth}:\n" for depth in range(40)) + "    " * 40 + "b\n",
    "x = (\n" + "    a.b(c).d == e and\n" * 300 + "    f)\n",
]


@pytest.mark.parametrize("text", USUAL)
def test_usual_text_is_no_trouble_however_long(text):
    assert nesting.trouble(text) is None
    assert nesting.trouble(text.replace("\n", "\r\n")) is None


@pytest.mark.parametrize("text", ["x = 'a\n", 'x = """a', "x = f'a", "x = )\n", "x = f'{a}}'\n"])
def test_where_the_tokenizer_stops_nothing_is_promised(text):
    assert nesting.trouble(text) is not None


PIECES = ["x = ", "(", ")", "[", "]", "{", "}", "f'", "'", 'f"', '"', "'''", "rf'''", "a", ".a"]
PIECES += [
    "-",
    "not ",
    "lambda a=",
    ":",
    ", ",
    " if a else ",
    " for a, b in ",
    "**",
    "1",
    "\\",
    "=",
]
PIECES += [
    "\n",
    "\nelif a: b",
    "\n  ",
    "\n \\\n",
    " # ' (",
    "\ncase ",
    "\ndel ",
    "\r",
    "\f",
    "...",
    ";",
]
READ = """
import json, sys, threading, libcst
threading.stack_size(2 << 20)
def read(text):
    try:
        libcst.parse_module(text)
    except (libcst.ParserSyntaxError, SyntaxError, RecursionError):
        pass
for text in json.load(sys.stdin):
    thread = threading.Thread(target=read, args=(text,))
    thread.start()
    thread.join()
"""


@pytest.mark.slow
def test_what_is_let_through_overflows_no_stack_of_a_quarter_of_the_usual():
    """Of each mixture the largest that is let through is parsed, in another process."""
    draw = random.Random(5)
    texts = []
    for _ in range(40):
        parts = [draw.choice(PIECES) for _ in range(draw.randint(1, 4))]
        low, high = 0, 3_000
        while low < high:
            middle = (low + high + 1) // 2
            if nesting.trouble("x = " + "".join(parts) * middle) is None:
                low = middle
            else:
                high = middle - 1
        texts.append("x = " + "".join(parts) * low)

    command = [sys.executable, "-c", READ]
    done = subprocess.run(command, input=json.dumps(texts).encode(), timeout=120, check=False)

    assert done.returncode == 0


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_lines_are_numbered_as_python_numbers_them(end):
    text = b"import os\n\x0c\nclass A:\n    def f(self):\n        b = 1\n        return b\n"
    said = b"# in m.py\nclass A:\n    def f(self):\n        return c\n"

    (claim,) = sketch.judge(
        sketch.load(said, name="s.pyi"), "1", {"m.py": text.replace(b"\n", end)}.get
    )

    assert claim.at == 6
    assert claim.nearest == (
        "m.py, line 6, A.f: nothing fits `return c`; nearest is line 6: `return b`"
    )


@pytest.mark.parametrize("end", [b"\r\n", b"\r"])
def test_a_fault_and_a_sketch_with_carriage_returns_have_their_lines(end):
    (found,) = judge.judge(
        {}, {"m.py": b"x = 1\n\ndef f(:\n".replace(b"\n", end)}, None, "1", {}.get
    ).findings
    said = b"# in n.py\ny = 1\n# in m.py\n\nx = 1  # given\n".replace(b"\n", end)

    assert found.line == 3
    assert "'def f(:'" in found.message
    loaded = sketch.load(said, name="s.pyi")
    claims = sketch.judge(loaded, "1", {"m.py": b"x = 1\n"}.get)
    assert [(claim.line, claim.given, claim.held) for claim in claims] == [
        (2, False, False),
        (5, True, True),
    ]


LARGE = b"x = 1\n" * 400_000


def test_a_file_that_is_too_large_is_not_judged_and_never_silently():
    verdict = judge.judge({"m.py": LARGE}, {"m.py": LARGE}, None, "1", {}.get)

    assert not verdict.holds
    (found,) = verdict.findings
    assert found.message == "too large to be judged: more than 2 MB"


def test_a_neighbour_that_is_too_large_is_not_blamed():
    after = {"pkg/m.py": b"from .large import x\n"}

    assert judge.judge({}, after, None, "1", {"pkg/large.py": LARGE}.get).holds


@pytest.mark.slow
def test_a_sketch_on_a_file_that_is_too_large_for_a_tree_fails():
    loaded = sketch.load(b"# in m.py\nx = 1\n", name="s.pyi")

    (claim,) = sketch.judge(loaded, "1", {"m.py": LARGE[:1_200_000]}.get)

    assert not claim.held
    assert claim.nearest == "m.py: it is too large to be judged: more than 1 MB"


TEXTS = [
    "import os\nfrom .a import b as c, d\n\n\nclass A[T: int](B, metaclass=M):\n    x: int = 1\n"
    "    @deco\n    async def f(self, a, *b, c: int = 2, **d) -> str:\n"
    "        if a: return f'{a!r:>{c}} \\N{DASH}' rb'x'\n        elif b:\n            pass\n"
    "        else:\n            x = [i for i in y if i]\n        return lambda z: (z, *b)\n",
    "match x:\n    case [1, {'a': b}] | C(d=2) if y: z\n    case _: del (a), b[0]\n"
    "try:\n    a()\nexcept* (E, F) as e:\n    raise G from e\nfinally:\n    assert x, 'y'\n"
    "type X[T] = list[T]\nwith (a as b, c): d += '\\xe9'\nglobal g\nwhile x := y: break\n",
    "# in m.py when >=1\n# given: why\nfrom .a import _\nclass A[T](B):  # absent\n    ...\n"
    "# in m.py\ndef f(_a_, *, b=...):\n    _a_ = {'x': _, **...}\n    f(..., a=1)  # when <2\n"
    "    for _i_, _ in [1, ...]:\n        _i_ + '\\x41'  # absent\n    return _, _a_\n",
]
TOKENS = sorted({token for text in TEXTS for token in re.findall(r"\w+|\s+|.", text)})
TOKENS += [
    "\r",
    "\x00",
    "\ufeff",
    "\f",
    "'\\x'",
    "f'{",
    "\\N{x}",
    "\\",
    "# coding: cp037\n",
    "0777",
]


@st.composite
def mutated(draw):
    text = draw(st.sampled_from(TEXTS))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(text)))
        gone = draw(st.integers(0, 12))
        text = text[:at] + draw(st.sampled_from(TOKENS)) + text[at + gone :]
    data = bytearray(text.encode())
    for _ in range(draw(st.integers(0, 2))):
        if data:
            data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data)


@pytest.mark.slow
@settings(deadline=None, max_examples=400)
@given(mutated(), mutated(), mutated())
def test_no_bytes_raise_anything_but_a_named_error(before, after, said):
    if not said.startswith(b"# in"):
        said = b"# in m.py\n" + said
    _, diffs = diff.parse(diff.unified(before, after, "m.py"), name="x.patch")
    for path in ("m.py", "pkg/m.py"):
        judge.judge({path: before}, {path: after}, None, "1.0", {"a.py": before}.get, diffs=diffs)
    try:
        loaded = sketch.load(said, name="s.pyi")
    except PatchqError:
        return
    verdict = judge.judge({"m.py": before}, {"m.py": after}, loaded, "1.0", {}.get)
    judge.lint(verdict)


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(st.binary(max_size=200))
def test_bytes_that_mean_nothing_raise_nothing_else(data):
    judge.judge({"m.py": data}, {"m.py": data + b"\n"}, None, "1.0", {}.get)
    with contextlib.suppress(PatchqError):
        sketch.load(b"# in m.py\n" + data, name="s.pyi")
