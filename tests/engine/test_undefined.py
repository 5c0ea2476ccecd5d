"""Names that nothing defines: Python's scoping, form by form."""

import builtins
import symtable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchq.engine import builtin, diff, judge, lookup
from patchq.engine.verdict import Finding

TREE = {
    "pkg/__init__.py": b"",
    "pkg/listed.py": b"__all__ = ['shown']\nshown = hidden = 1\n",
    "pkg/open.py": b"public = _private = 1\n",
    "pkg/chain.py": b"from .open import *\n",
    "pkg/lazy.py": b"def __getattr__(name): ...\n",
    "pkg/native/__init__.py": b"from ._C import *\n",
    "pkg/sub/__init__.py": b"",
    "pkg/sub/one.py": b"",
}


def judged(after, before=None, *, path="pkg/new.py", python=None):
    texts = ({path: before and before.encode()}, {path: after.encode()})
    return judge.judge(*texts, None, "1.0", TREE.get, python=python)


def lost(text, **options):
    """Return the names of the findings; the text has no other fault."""
    found = judged(text, **options).findings
    assert {one.kind for one in found} <= {"undefined"}
    return [one.message.split("`")[1] for one in found]


DEFINED = {
    "builtins": "print(len, ExceptionGroup, __debug__, WindowsError)",
    "the module's own": "print(__name__, __file__, __doc__, __spec__, __path__)",
    "later": "def f(): return g\ndef g(): ...",
    "if": "if print:\n    a = 1\nelse:\n    b = 1\nprint(a, b)",
    "for": "for a, (b, *c) in print(): ...\nelse: d = 1\nprint(a, b, c, d)",
    "with": "with print() as a, print() as [b]: ...\nprint(a, b)",
    "try": (
        "try: import a\nexcept OSError as e: b = e\nelse: c = 1\nfinally: d = 1\nprint(a, b, c, d)"
    ),
    "except star": "try: ...\nexcept* OSError as e: print(e)",
    "walrus": "if (a := 1): print(a)\ndef f(): return [b := c for c in a], b",
    "walrus in a class's def": (
        "class A:\n    def f(self): return any((b := c) for c in self) and b"
    ),
    "match": (
        "match print:\n    case [a, *b]: print(a, b)\n    case {'c': c, **d}: print(c, d)\n"
        "    case str(e) | int(e) as f: print(e, f)"
    ),
    "global": "def f():\n    global a\n    a = 1\ndef g(): return a",
    "global in a class": "class A:\n    global a\n    a = 1\nprint(a)",
    "nonlocal": (
        "def f():\n    a = 1\n    def g():\n        nonlocal a\n        a += 1\n    return g"
    ),
    "comprehension": (
        "a = [1]\nb = [c for c in a if c], {d: e for d, e in a}, {x for y in a for x in y}"
    ),
    "first iterable of a class": "class A:\n    a = [1]\n    b = [c for c in a]",
    "lambda": "f = lambda a, *b, c=1, **d: (a, b, c, d)",
    "class body": "class A:\n    a = 1\n    b = a\n    def f(self, c=a): return c",
    "class in a def": "def f(a):\n    class B:\n        b = a\n    return B",
    "__class__": "class A:\n    def f(self): return __class__\n    g = __qualname__, __module__",
    "decorator": "import a\n@a.b\nclass C: ...\n@a\ndef f(): ...",
    "dotted import": "import a.b.c, d.e as f\nprint(a, f)",
    "del": "a = 1\ndel a\ndef f():\n    b = 1\n    del b",
    "del of parts": "import a\ndel a.b, a['c']",
    "augmented": "a = 1\na += 1\nclass B:\n    a += 1",
    "annotation": "a: int\ndef f(): return a",
    "private": "class A:\n    __a = 1\n    b = __a\n    def f(self, __c): return __c",
    "private to nobody": "__a = 1\ndef f(): return __a\nclass __:\n    def f(self): return __a",
    "name error": "try: unicode\nexcept NameError: unicode = str\ntry: raw\nexcept: ...",
    "suppressed": "from contextlib import suppress\nwith suppress(NameError): nowhere",
    "asked for": "if 'display' in globals(): display()",
    "globals": "globals().update(print())\nprint(anything)",
    "globals in a def": "def make(n): globals()[n] = 1\nmake('a')\nprint(a)",
    "exec": "exec('a = 1')\nprint(a)",
    "locals": "for n in 'ab': locals()[n] = 1\nprint(a)",
    "star of another distribution": "from torch import *\nprint(anything)",
    "star": "from .open import *\nprint(public)",
    "star with a list": "from .listed import *\nprint(shown)",
    "star behind a star": "from .chain import *\nprint(public)",
    "star of what makes names": "from .lazy import *\nprint(anything)",
    "star of compiled text": "from .native import *\nprint(anything)",
    "type checkers": (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import a\n"
        "def f(x: 'a.B', y: 'list[a.C]') -> 'a.B | None':\n    z: a.B = x\n    return z"
    ),
    "type checkers, postponed": (
        "from __future__ import annotations\nimport typing\nif typing.TYPE_CHECKING:\n"
        "    import a\n    b = a.b\ndef f(x: a.B) -> a.C: ..."
    ),
    "type checkers or else": (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING: import a\nelse: a = None\n"
        "if not TYPE_CHECKING: b = 1\nelse: import b\nprint(a, b)"
    ),
    "quotes that are no type": (
        "from typing import Annotated, Literal\nfrom jaxtyping import Float\n"
        "def f(a: Literal['b'], c: Float[int, 'd e'], g: Float[int, 'h'], i: Annotated[int, 'j'],"
        " k: 'not a type', l: ''): ..."
    ),
    "postponed class names": (
        "from __future__ import annotations\nclass A:\n    class B: ...\n"
        "    def f(self, b: B, c: 'B'): ..."
    ),
    "type parameters": (
        "type Pair[T] = tuple[T, Pair[T]]\ndef f[T: int, *Ts, **P](a: T) -> T:\n    b: T = a\n"
        "    return T, Ts, P\nclass A[T](list[T]):\n    type B = C\n    class C: ...\n"
        "    def f[U](self, a: T, c: C) -> U: return T, U"
    ),
    "newer strings": "a = {'b': 1}\nprint(f'{a['b']:{a}}' f\"{a!r}\", t'{a}')",
    "newer except": "try: ...\nexcept OSError, ValueError: ...",
    "marked": (
        "def f(a: 'B',  # type: ignore[name-defined]\n"
        "      c: 'D'): ...  # noqa\nprint(E)  # noqa: F821"
    ),
    "deep": "a = " + "(" * 150 + "1" + ")" * 150 + "\nb = " + "a + " * 900 + "a",
}


@pytest.mark.parametrize("form", DEFINED)
def test_a_name_that_python_would_find_is_no_finding(form):
    assert judged(DEFINED[form] + "\n").findings == ()


UNDEFINED = {
    "module": ("print(a)", ["a"]),
    "def": ("def f(hidden):\n    return hiden", ["hiden"]),
    "default": ("def f(a, b=a): ...", ["a"]),
    "decorator": ("@a.b\ndef f(): ...", ["a"]),
    "annotation": ("def f(a: Tensor) -> Box: ...", ["Tensor", "Box"]),
    "quotes": (
        "def f(a: 'Tensor', b: 'list[Box]', c: list['Bag']): ...",
        ["Tensor", "Box", "Bag"],
    ),
    "postponed": ("from __future__ import annotations\na: Tensor = 1", ["Tensor"]),
    "a class's name in its def": ("class A:\n    a = 1\n    def f(self): return a", ["a"]),
    "a class's name in its lambda": ("class A:\n    a = 1\n    f = lambda self: a", ["a"]),
    "a class's name in a comprehension": ("class A:\n    a = 1\n    b = [a for _ in '']", ["a"]),
    "a comprehension's name": ("[a for a in '']\nprint(a)", ["a"]),
    "a second iterable of a class": (
        "class A:\n    a = [1]\n    b = [c for _ in a for c in a]",
        ["a"],
    ),
    "a lambda's name": ("f = lambda a: a\nprint(a)", ["a"]),
    "another def's name": ("def f():\n    a = 1\ndef g(): return a", ["a"]),
    "after except": ("try: ...\nexcept OSError as e: ...\nprint(e)", ["e"]),
    "after except in a def": (
        "e = 1\ndef f():\n    try: ...\n    except OSError as e: ...\n    return e",
        ["e"],
    ),
    "deleted": ("a = 1\ndef f():\n    del a", ["a"]),
    "augmented": ("a = 1\ndef f():\n    a += 1", ["a"]),
    "augmented nowhere": ("a += 1", ["a"]),
    "nonlocal": ("def f():\n    def g():\n        nonlocal a\n        return a", ["a"]),
    "type checkers only": (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING: from a import B\nb = B()\n"
        "def f(c: B): return B",
        ["B", "B"],
    ),
    "a private name of the module": ("__a = 1\nclass A:\n    def f(self): return __a", ["__a"]),
    "a case's value": ("match print:\n    case a.b: ...", ["a"]),
    "a case's class": ("match print:\n    case A(b=1): ...", ["A"]),
    "what a star hides": ("from .open import *\nprint(public, _private)", ["_private"]),
    "what a star's list leaves out": ("from .listed import *\nprint(hidden)", ["hidden"]),
    "behind a star behind a star": ("from .chain import *\nprint(_private, x)", ["_private", "x"]),
    "what a lazy module's own code lacks": ("def __getattr__(n): ...\nprint(a)", ["a"]),
    "what only reads its namespace": ("print(globals()['a'], vars(print))\nprint(b)", ["b"]),
    "type parameters elsewhere": ("def f[T](): ...\nprint(T)", ["T"]),
    "a default before its type parameter": ("def f[T](a=T): ...", ["T"]),
    "newer strings": ("print(f'{'a' + b}', t'{c:{d}}')", ["b", "c", "d"]),
    "newer except": ("try: ...\nexcept OSError, a: ...", ["a"]),
    "marked otherwise": ("print(a)  # type: ignore\nprint(b)  # noqa: E501", ["a", "b"]),
    "listed": ("__all__ = ['a', 'b'] + ['c']\n__all__ += ['d']\na = b = c = 1", ["d"]),
    "once in a def": ("def f(): return a, a\ndef g(): return a", ["a", "a"]),
}


@pytest.mark.parametrize("form", UNDEFINED)
def test_a_name_that_python_would_not_find_is_a_finding(form):
    text, names = UNDEFINED[form]

    assert sorted(lost(text + "\n")) == sorted(names)


def test_a_finding_has_its_line_its_scope_and_the_nearest_name():
    text = "class A:\n    def f(self, hidden):\n        def g():\n            return hiden\n"

    assert judged(text).findings == (
        Finding(
            "undefined",
            "pkg/new.py",
            4,
            "A.f.g",
            "nothing defines `hiden`",
            "the nearest name is `hidden`",
        ),
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("if TYPE_CHECKING: import a\na", "a is bound under TYPE_CHECKING only"),
        (
            "try: ...\nexcept OSError as a: ...\na",
            "the only a is that of an `except ... as`, and gone after the handler",
        ),
        ("def f(): a += 1", "a is changed or deleted here and never given a value"),
    ],
)
def test_a_finding_says_why_a_name_that_is_bound_is_not_there(text, why):
    found = judged(f"from typing import TYPE_CHECKING\n{text}\n").findings

    assert [one.why for one in found] == [why]


def test_lines_are_those_of_the_text_where_its_syntax_is_newer():
    text = "def f[\n  T\n](a: T):\n    b = f'''{a} {\n  a['x']\n  }{'y'}'''\n    return c\n"

    assert [one.line for one in judged(text).findings] == [7]


def test_what_was_undefined_before_is_listed_apart():
    verdict = judged("x = 1\ndef f(): return a\n", "def f(): return a, a\n")

    assert verdict.holds
    assert [(one.line, one.message) for one in verdict.old_findings] == [
        (2, "nothing defines `a`")
    ]


def test_the_same_name_in_another_def_is_blamed_on_the_patch():
    assert not judged("def f(): return a\ndef g(): return a\n", "def f(): return a\n").holds


def test_an_import_that_the_patch_takes_out_is_missed():
    before = "import os\ndef f(): return os\n"

    assert lost("def f(): return os\n", before=before) == ["os"]


def test_a_file_that_was_renamed_keeps_its_old_faults():
    text = (
        b"diff --git a/pkg/old.py b/pkg/new.py\nsimilarity index 100%\n"
        b"rename from pkg/old.py\nrename to pkg/new.py\n"
    )
    diffs = diff.parse(text, name="10.patch")[1]
    faulty = b"print(a)\nclass B: ...\nclass B: ...\nfrom .listed import nothing\n"
    verdict = judge.judge(
        {"pkg/old.py": faulty, "pkg/new.py": None},
        {"pkg/old.py": None, "pkg/new.py": faulty},
        None,
        "1.0",
        TREE.get,
        diffs=diffs,
    )

    assert verdict.findings == ()
    assert {one.kind for one in verdict.old_findings} >= {"undefined", "duplicate"}


@pytest.mark.parametrize(
    ("python", "names"), [("3.9", ["aiter"]), ("3.10", []), (None, []), ("3.14", [])]
)
def test_the_builtins_are_those_of_the_environments_python(python, names):
    assert lost("print(aiter)\n", python=python) == names
    assert lost("import sys\nif sys.version_info > (3, 9): print(aiter)\n", python=python) == []


def test_the_running_pythons_builtins_are_all_known():
    assert set(dir(builtins)) <= builtin.names()


def test_a_package_may_list_its_submodules():
    text = "__all__ = ['one', 'two']\n"

    assert judged(text, path="pkg/sub/__init__.py").holds
    assert lost("__all__ = ['Two']\n", path="pkg/sub/__init__.py") == ["Two"]


def test_a_file_that_is_no_module_is_not_asked():
    assert judged("print(a)\n", path="pkg/new.pyi").holds


def test_no_text_makes_more_findings_than_can_be_read():
    text = "".join(f"name_{number}\n" for number in range(300))

    assert len(judged(text).findings) == 50


# A program in which every name is bound somewhere, or nowhere, by the choice of its scopes.
NAMES = st.sampled_from("abc")
SIMPLE = st.one_of(
    st.builds("{} = 1".format, NAMES),
    st.builds("print({})".format, NAMES),
    st.builds("{} = lambda {}: {}".format, NAMES, NAMES, NAMES),
    st.builds("print([{} for {} in {}])".format, NAMES, NAMES, NAMES),
    st.builds("import {}".format, NAMES),
    st.builds("for {} in {}: pass".format, NAMES, NAMES),
    st.builds("print(({} := {}))".format, NAMES, NAMES),
)


def nested(blocks):
    body = st.lists(blocks, min_size=1, max_size=4).map("\n".join)

    def indented(head, inside):
        return head + "\n" + "\n".join("    " + line for line in inside.split("\n"))

    heads = st.one_of(
        st.builds("def {}({}):".format, NAMES, NAMES),
        st.builds("class {}:".format, NAMES),
        st.just("if print:"),
    )
    return st.builds(indented, heads, body)


PROGRAMS = st.lists(st.recursive(SIMPLE, nested, max_leaves=8), max_size=6).map("\n".join)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(PROGRAMS)
def test_scopes_are_those_of_pythons_own_compiler(text):
    bound, free = set(), set()

    def walk(table):
        for symbol in table.get_symbols():
            is_module = table.get_type() == "module"
            if is_module and (symbol.is_assigned() or symbol.is_imported()):
                bound.add(symbol.get_name())
            # A class looks up its own names, and then the module's.
            if symbol.is_referenced() and (is_module or symbol.is_global()):
                free.add(symbol.get_name())
        for child in table.get_children():
            walk(child)

    walk(symtable.symtable(text, "m.py", "exec"))
    found = lookup.names(text.encode())

    assert found is not None
    missing = {one.name for one in found.missing} - {"print"}
    assert missing == free - bound - {"print"}
