"""Each rule of the sketch language with texts that hold and texts that fail."""

import textwrap

import pytest

from patchq.engine import sketch


def holds(said: str, text: str, *, release: str = "1.0", path: str = "pkg/mod.py") -> bool:
    loaded = sketch.load(f"# in {path}\n{textwrap.dedent(said)}\n".encode(), name="s.pyi")
    claims = sketch.judge(loaded, release, {path: textwrap.dedent(text).encode()}.get)
    assert claims, "the sketch asks nothing"
    return all(claim.held for claim in claims)


def body(*lines: str) -> str:
    return "def f():\n" + "".join(f"    {line}\n" for line in "\n".join(lines).split("\n"))


# rule, what the sketch says in a def, a body that has it, a body that does not
IN_A_DEF = [
    ("R1 any expression", "a = ...", "a = g(1)[2]", "b = g(1)[2]"),
    ("R1 further items", "f(1, ..., 2)", "f(1, 3, 4, 2)", "f(1, 3, 4)"),
    ("R1 none further", "f(1, ..., 2)", "f(1, 2)", "f(2, 1)"),
    ("R1 in a tuple", "return 1, ..., 3", "return 1, 2, 3", "return 2, 1, 3"),
    ("R1 in a subscript", "a: tuple[int, ...] = v", "a: tuple[int, str] = v", "a: tuple[str] = v"),
    ("R1 in a dict", '{"a": 1, **...}', '{"b": 2, "a": 1}', '{"b": 2, "a": 2}'),
    ("R1 before keywords", "f(..., a=1)", "f(x, b=2, a=1)", "f(x, b=2, a=3)"),
    ("R2 hole", "_ = g(_)", "x.y = g(1 + 1)", "x.y = g()"),
    ("R2 the same tree", "_x_ = g()\nh(_x_)", "a.b = g()\nh(a . b)", "a.b = g()\nh(a.c)"),
    ("R2 exactly two values", "return _, _", "return a, b", "return a, b, c"),
    (
        "R2 loop target",
        "for _i_ in r:\n    g(_i_)",
        "for k in r:\n    g(k)",
        "for k in r:\n    g(j)",
    ),
    ("R2 no hole in a starred item", "f(_)", "f(a)", "f(*a)"),
    ("R3 at least", '["a", "b", ...]', '["b", "c", "a"]', '["b", "c"]'),
    ("R3 one for one", "[_, _, ...]", "[1, 2]", "[1]"),
    ("R3 exactly, in order", '["a", "b"]', '["a", "b"]', '["b", "a"]'),
    ("R3 set in any order", "{1, 2}", "{2, 1}", "{1, 2, 3}"),
    ("R3 dict in any order", '{"a": 1, "b": _}', '{"b": 2, "a": 1}', '{"a": 1, "b": 2, "c": 3}'),
    ("R3 semgrep's spelling", '[..., "a", ...]', '["a"]', '["b"]'),
    ("R3 a list is no tuple", "[1, ...]", "[1]", "(1,)"),
    ("R4 positions in order", "g(a, b)", "g(a, b)", "g(b, a)"),
    ("R4 keywords in any order", "g(x=1, y=2)", "g(y=2, x=1)", "g(y=1, x=2)"),
    ("R4 no further keywords", "g(x=1)", "g(x=1)", "g(x=1, y=2)"),
    ("R4 no further positions", "g(a)", "g(a)", "g(a, b)"),
    ("R4 starred", "g(*a, **k)", "g(*a, **k)", "g(a, **k)"),
    ("R5 strings by value", "g('a' \"b\")", 'g("ab")', 'g("a", "b")'),
    ("R5 bytes are no text", "g(b'a')", 'g(b"a")', 'g("a")'),
    ("R5 raw strings", r"g(r'\d')", r'g("\\d")', r'g("\\\\d")'),
    ("R5 f-strings", "g(f'a{x}b')", 'g("a" f"{x}b")', 'g(f"a{y}b")'),
    ("R5 f-string formats", "g(f'{x!r:>{w}}')", 'g(f"{x!r:>{w}}")', 'g(f"{x!s:>{w}}")'),
    ("R5 f-string quotes", "g(f'\"{x}')", 'g(f"\\"{x}")', "g(f'\\'{x}')"),
    ("R5 f-string names", "g(f'{x=}')", 'g(f"{ x =}")', 'g(f"{x}")'),
    ("R5 parentheses", "a = (b + c)", "a = b + c", "a = c + b"),
    ("R5 nothing is folded", "a = 1000", "a = 1000", "a = 1_000"),
    ("R5 subscripts", "a[1, 2]", "a[(1, 2)]", "a[1]"),
    (
        "R5 lambda",
        "g(lambda a, *b, c=1: a)",
        "g(lambda a,*b,c = 1: (a))",
        "g(lambda a, *b, c=2: a)",
    ),
    ("R5 async comprehension", "[i async for i in a]", "[i async for i in a]", "[i for i in a]"),
    ("R6 silence", "'''text'''\npass\n...\na = 1", "a = 1", "b = 1"),
    ("R7 order", "a()\nb()", "a()\nx()\nb()", "b()\na()"),
    (
        "R7 at any depth",
        "a()\nb()",
        "a()\nif x:\n    while y:\n        b()",
        "if x:\n    b()\na()",
    ),
    (
        "R7 begins after",
        "if x:\n    a = 1\nb = 2",
        "if x:\n    a = 1\nb = 2",
        "if x:\n    a = 1\n    b = 2",
    ),
    ("R7 not in a def", "a = 1", "def g():\n    pass\na = 1", "def g():\n    a = 1"),
    ("R7 not in a class", "a = 1", "if x:\n    a = 1", "class A:\n    a = 1"),
    ("R7 not in a lambda", "a()", "g(lambda: 1, a())", "g(lambda: a())"),
    (
        "R7 in a def that is named",
        "def g():\n    a = 1",
        "def g():\n    a = 1",
        "def h():\n    a = 1",
    ),
    (
        "R7 in a class that is named",
        "class A(B):\n    x = 1",
        "class A(C, B):\n    y = 2\n    x = 1",
        "class A(C):\n    x = 1",
    ),
    ("R8 the kind", "for i in a:\n    b()", "for i in a:\n    b()", "async for i in a:\n    b()"),
    ("R8 the header", "while a:\n    b()", "while a:\n    b()", "while c:\n    b()"),
    (
        "R8 the body",
        "with a as x:\n    b()",
        "with a as x:\n    b()",
        "with a as x:\n    c()\nb()",
    ),
    (
        "R8 elif",
        "if a:\n    b()",
        "if x:\n    y()\nelif a:\n    b()",
        "if x:\n    b()\nelif y:\n    a()",
    ),
    (
        "R8 else",
        "if a:\n    b()\nelse:\n    c()",
        "if a:\n    b()\nelse:\n    c()",
        "if a:\n    b()\nc()",
    ),
    (
        "R8 the else of an elif is not the if's",
        "if a:\n    b()\nelse:\n    c()",
        "if x:\n    y()\nelif a:\n    b()\nelse:\n    c()",
        "if a:\n    b()\nelif x:\n    y()\nelse:\n    c()",
    ),
    (
        "R8 the elif that is given has the else",
        "if a:\n    ...\nelif b:\n    ...\nelse:\n    c()",
        "if a:\n    x\nelif y:\n    z\nelif b:\n    x\nelse:\n    c()",
        "if a:\n    x\nelif b:\n    x\nelif y:\n    z\nelse:\n    c()",
    ),
    (
        "R8 elifs in order",
        "if a:\n    ...\nelif b:\n    ...\nelif c:\n    ...",
        "if a:\n    x\nelif b:\n    x\nelif y:\n    z\nelif c:\n    x",
        "if a:\n    x\nelif c:\n    x\nelif b:\n    x",
    ),
    (
        "R8 else of that statement",
        "if a:\n    b()\nelse:\n    c()",
        "if a:\n    b()\nelse:\n    c()",
        "if a:\n    b()\nif x:\n    y()\nelse:\n    c()",
    ),
    (
        "R8 elif of that statement",
        "if a:\n    ...\nelif b:\n    c()",
        "if a:\n    x\nelif b:\n    c()",
        "if a:\n    x\nif b:\n    c()",
    ),
    (
        "R8 except",
        "try:\n    a()\nexcept E:\n    b()",
        "try:\n    a()\nexcept D:\n    x\nexcept E:\n    b()",
        "try:\n    a()\nexcept D:\n    b()",
    ),
    (
        "R8 except as",
        "try:\n    ...\nexcept E as _e_:\n    b(_e_)",
        "try:\n    a()\nexcept E as x:\n    b(x)",
        "try:\n    a()\nexcept E as x:\n    b(y)",
    ),
    (
        "R8 finally",
        "try:\n    a()\nfinally:\n    b()",
        "try:\n    a()\nfinally:\n    b()",
        "try:\n    a()\nexcept E:\n    b()",
    ),
    (
        "R8 loop else",
        "for i in a:\n    ...\nelse:\n    b()",
        "for i in a:\n    x\nelse:\n    b()",
        "for i in a:\n    x\nb()",
    ),
    (
        "R8 case",
        "match a:\n    case [1, _x_]:\n        b(_x_)",
        "match a:\n    case 0:\n        pass\n    case [1, z]:\n        b(z)",
        "match a:\n    case [2, z]:\n        b(z)",
    ),
    ("R9 within a statement", "a + b", "x = g(a + b)", "x = g(a - b)"),
    ("R9 within a header", "g(a)", "if not g(a):\n    pass", "if not g(b):\n    pass"),
    (
        "R9 within an except header",
        "E",
        "try:\n    a\nexcept (D, E):\n    pass",
        "try:\n    a\nexcept D:\n    pass",
    ),
    ("R9 in the statement before", "x.append(_)\na + b", "x.append(a + b)", "a + b\nx.append(c)"),
    ("R9 in the assignment before", "x = _\na + b", "x = g(a + b)", "x = g(a)"),
    ("R9 no keyword's name", "lm", "g(lm)", "g(lm=1)"),
    ("R9 no attribute's name", "lm", "lm.x", "x.lm"),
    ("R9 no imported name", "lm", "lm", "import lm"),
    ("R10 annotated", "a = v", "a: T = v", "a: T"),
    ("R10 chain", "a = v", "b = a = v", "b = v"),
    ("R10 asks the annotation", "a: T = v", "a: T = v", "a = v"),
    ("R10 annotation alone", "a: T", "a: T = v", "a: U = v"),
    (
        "R2 the same string",
        "_x_ = g()\nh(_x_)",
        "a['k', 1] = g()\nh(a[\"k\", 1])",
        "a['k'] = 1\nh(a)",
    ),
    (
        "R2 the same f-string",
        "g(_x_)\nh(_x_)",
        "g(f'{a!r:>2}')\nh(f\"{a!r:>2}\")",
        "g(f'{a}')\nh(b)",
    ),
    ("R5 joined bytes", "g(b'ab')", "g(b'a' b'b')", "g(b'a')"),
    ("R7 nested defs go by name", "def g(a): ...", "def g(a, b): ...", "async def g(a): ..."),
    (
        "R7 nested classes go by name",
        "class A:\n    x = 1",
        "class A:\n    x = 1",
        "class B:\n    x = 1",
    ),
    ("R8 header alone", "while a: ...", "while a:\n    b()", "while b:\n    a()"),
    ("R0 absent import", "a()\nimport b  # absent", "a()\nimport c", "a()\nimport b"),
    (
        "R0 absent member",
        "class A:\n    x = 1\n    y = 1  # absent",
        "class A:\n    x = 1",
        "class A:\n    x = 1\n    y = 1",
    ),
    ("R12 in a def", "from a import b, c", "from a import c\nfrom a import b", "from a import b"),
]


@pytest.mark.parametrize(
    ("said", "good", "bad"), [row[1:] for row in IN_A_DEF], ids=[r[0] for r in IN_A_DEF]
)
def test_a_line_of_a_def_holds_where_it_should_and_only_there(said, good, bad):
    assert holds(body(said), body(good))
    assert not holds(body(said), body(bad))


# rule, sketch, a text that has it, a text that does not
AT_THE_TOP = [
    ("R6 a def alone", "def f(self): ...", "def f(self, x):\n    return 1", "def g(self): ..."),
    ("R6 a class alone", "class A: ...", "class A(B):\n    x = 1", "class B: ..."),
    ("R8 async def", "async def f(): ...", "async def f():\n    return 1", "def f(): ..."),
    (
        "R11 qualified name",
        "class A:\n    class B:\n        x = 1",
        "class A:\n    class B:\n        x = 1",
        "class A: ...\nclass B:\n    x = 1",
    ),
    (
        "R11 last class",
        "class A:\n    x = 1",
        "class A: ...\nclass A:\n    x = 1",
        "class A:\n    x = 1\nclass A: ...",
    ),
    ("R11 no order", "a = 1\nb = 2", "b = 2\na = 1", "b = 2"),
    ("R11 any depth", "a = 1", "if x:\n    a = 1", "def f():\n    a = 1"),
    ("R11 module is no class", "a = 1", "a = 1", "class A:\n    a = 1"),
    ("R11 type parameters", "class A[T]: ...", "class A[T](B): ...", "class A: ..."),
    ("R11 other type parameters", "class A[_, *T]: ...", "class A[U, *T]: ...", "class A[T]: ..."),
    ("R11 a bound", "def f[T: int](): ...", "def f[T : (int)](a): ...", "def f[T](): ..."),
    (
        "R11 type parameters of a def",
        "def f[T]() -> T: ...",
        "def f[T]() -> T: ...",
        "def f() -> T: ...",
    ),
    (
        "R11 a hole in them",
        "def f[_t_](a: _t_): ...",
        "def f[T](a: T): ...",
        "def f[T](a: U): ...",
    ),
    ("R11 type parameters not asked", "class A: ...", "class A[T]: ...", "class B[T]: ..."),
    (
        "R11 a generic class in a def",
        "def f():\n    class A[T]:\n        x = 1",
        "def f():\n    class A[T]:\n        x = 1",
        "def f():\n    class A:\n        x = 1",
    ),
    ("R11 bases", "class A(B): ...", "class A(C, B): ...", "class A(C): ..."),
    ("R11 dotted base", "class A(m.B): ...", "class A(m.B): ...", "class A(B): ..."),
    ("R11 bases and a gap", "class A(..., B): ...", "class A(B): ...", "class A: ..."),
    (
        "R11 class keywords",
        "class A(metaclass=M): ...",
        "class A(B, metaclass=M): ...",
        "class A(M): ...",
    ),
    ("R11 class decorators", "@d\nclass A: ...", "@c\n@d\nclass A: ...", "@c\nclass A: ..."),
    (
        "R11 members",
        "class A:\n    x = ...\n    def f(self): ...",
        "class A:\n    def f(self): ...\n    x: int = 2",
        "class A:\n    def f(self): ...",
    ),
    ("R11 parameters", "def f(a, c): ...", "def f(c, b, *, a): ...", "def f(a, b): ..."),
    (
        "R11 starred parameters",
        "def f(*args, **kw): ...",
        "def f(x, *args, **kw): ...",
        "def f(args, kw): ...",
    ),
    ("R11 parameter annotation", "def f(a: int): ...", "def f(a: int): ...", "def f(a): ..."),
    ("R11 parameter default", "def f(a=1): ...", "def f(a: int = 1): ...", "def f(a=2): ..."),
    ("R11 return annotation", "def f() -> int: ...", "def f() -> int: ...", "def f(): ..."),
    ("R11 no annotation asked", "def f(a): ...", "def f(a: int = 1) -> str: ...", "def f(b): ..."),
    ("R11 decorators", "@d(...)\ndef f(): ...", "@c\n@d(1, 2)\ndef f(): ...", "@c\ndef f(): ..."),
    (
        "R11 a def that is replaced",
        "def f():\n    a()",
        "if x:\n    def f():\n        a()\nelse:\n    def f(): ...",
        "def f():\n    a()\ndef f(): ...",
    ),
    (
        "R11 a property keeps its getter",
        "def f(self):\n    return 1",
        "class A: ...\n@property\ndef f(self):\n    return 1\n@f.setter\ndef f(self, v): ...",
        "def f(self): ...",
    ),
    (
        "R11 parameter hole",
        "def f(_p_):\n    return _p_",
        "def f(x):\n    return x",
        "def f(x):\n    return y",
    ),
    ("R12 name", "from a import b", "from a import (\n    c,\n    b,\n)", "from a import c"),
    ("R12 relative is absolute", "from .x import y", "from pkg.x import y", "from x import y"),
    ("R12 absolute is relative", "from pkg.x import y", "from . x import y", "from ..x import y"),
    ("R12 as", "import a as b", "import a as b", "import a"),
    ("R12 no as", "from a import b", "from a import b", "from a import b as c"),
    (
        "R12 star gives no name",
        "from a import b",
        "from a import *\nfrom a import b",
        "from a import *",
    ),
    ("R12 dotted module", "import a.b", "import a.b, c", "import a"),
    (
        "R12 in that scope",
        "from a import b",
        "try:\n    from a import b\nexcept E: ...",
        "def f():\n    from a import b",
    ),
    (
        "R12 in a class",
        "class A:\n    from a import b",
        "class A:\n    from a import b",
        "from a import b\nclass A: ...",
    ),
    ("R0 absent", "# absent\nimport a", "import b", "import a"),
    (
        "R0 absent def",
        "class A:\n    # absent\n    def f(self): ...",
        "class A: ...",
        "class A:\n    def f(self): ...",
    ),
    ("R0 absent needs its scope", "class A:\n    x = 1  # absent", "class A: ...", "class B: ..."),
    ("R0 absent class", "# absent\nclass A: ...", "class B: ...", "class A: ..."),
    (
        "R0 absent line",
        "def f():\n    a()\n    b()  # absent",
        "def f():\n    a()",
        "def f():\n    b()\n    a()",
    ),
    (
        "R0 absent shares holes",
        "def f():\n    # absent\n    g(_x_)\n    _x_ = h()",
        "def f():\n    a = h()\n    g(b)",
        "def f():\n    a = h()\n    g(a)",
    ),
]


@pytest.mark.parametrize(
    ("said", "good", "bad"), [r[1:] for r in AT_THE_TOP], ids=[r[0] for r in AT_THE_TOP]
)
def test_a_scope_holds_where_it_should_and_only_there(said, good, bad):
    assert holds(said, good)
    assert not holds(said, bad)


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("for i, l in enumerate(ls):\n    if i in s:\n        aux.append(h)\nreturn h, aux", True),
        (
            "for i, l in enumerate(ls):\n    if j in s:\n        aux.append(h)\nreturn h, aux",
            False,
        ),
        (
            "for i, l in enumerate(ls):\n    if i in s:\n        aux.append(h)\nreturn h, other",
            False,
        ),
        # R13: the first loop that fits is not the one that lets the rest fit.
        (
            "for a, b in enumerate(ls):\n    if a in s:\n        x.append(h)\n"
            "for c, d in enumerate(ls):\n    if c in s:\n        y.append(h)\nreturn h, y",
            True,
        ),
    ],
)
def test_a_sketch_holds_if_there_is_one_way_to_read_it(text, held):
    said = body(
        "for _i_, _ in enumerate(ls):\n    if _i_ in s:\n        _a_.append(_)\nreturn h, _a_"
    )

    assert holds(said, body(text)) is held


def test_relative_imports_of_a_package_start_in_the_package():
    assert holds("from .x import y", "from pkg.sub.x import y", path="pkg/sub/__init__.py")
    assert not holds("from .x import y", "from pkg.x import y", path="pkg/sub/__init__.py")


@pytest.mark.parametrize(
    ("release", "claims"),
    [("0.15.1", 2), ("0.16.0", 3), ("0.18.0rc1", 1), ("0.18.0+cu130", 1), ("0.17.0.post1", 3)],
)
def test_specs_are_judged_on_the_release_part_of_the_version(release, claims):
    said = (
        b"# in m.py\nimport a\n# when <0.18\nimport b\n"
        b"# in m.py when >=0.16,<0.18: there is a note\nimport c\n"
    )

    found = sketch.judge(sketch.load(said, name="s.pyi"), release, {"m.py": b""}.get)

    assert len(found) == claims


def test_a_mark_covers_a_statement_with_all_it_holds():
    said = (
        b"# in m.py\n# given\nclass A:\n    x = 1\n    def f(self):\n        a()\n"
        b"class B:  # when >2\n    y = 1\n"
    )

    found = sketch.judge(sketch.load(said, name="s.pyi"), "1.0", {"m.py": b""}.get)

    assert [(claim.where, claim.given) for claim in found] == [("A", True), ("A.f", True)]


def test_claims_are_counted_one_by_one():
    said = b"""# in m.py
from a import b, c

@d
class A(B, C, metaclass=M):
    x = 1
    def f(self):
        a()
        b()
    class D: ...
y = 2
"""
    found = sketch.judge(sketch.load(said, name="s.pyi"), "1.0", {"m.py": b""}.get)

    assert [(claim.line, claim.where, claim.code) for claim in found] == [
        (2, "", "from a import b"),
        (2, "", "from a import c"),
        (5, "A", "class A(B)"),
        (5, "A", "class A(C)"),
        (5, "A", "class A(metaclass=M)"),
        (5, "A", "@d class A"),
        (6, "A", "x = 1"),
        (7, "A.f", "def f(self):"),
        (10, "A", "class D"),
        (11, "", "y = 2"),
    ]


def test_the_claims_are_the_same_ones_whatever_the_text_is():
    said = (
        b"# in m.py\nfrom a import b\nclass A(B):\n    x = 1\n    class C:\n        y = 1\n"
        b"# in n.py\nz = 1\n"
    )
    loaded = sketch.load(said, name="s.pyi")
    texts = [b"class A: ...", b"def (", b"", None, b"class A:\n    class C: ..."]

    found = [sketch.judge(loaded, "1", {"m.py": text}.get) for text in texts]

    codes = {tuple((claim.path, claim.where, claim.code) for claim in claims) for claims in found}
    assert len(codes) == 1


def test_a_sketch_without_a_claim_for_a_version_is_not_asked():
    loaded = sketch.load(b"# in m.py when <0.16\nimport a\n", name="s.pyi")

    assert sketch.judge(loaded, "0.16.0", {"m.py": b"import a\n"}.get) == ()
    assert loaded.paths == ("m.py",)
