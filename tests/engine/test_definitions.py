"""Names that a module defines and imports, found by either parser."""

import pytest

from patchq.engine import definitions, modules, newer, trees
from patchq.engine.outlines import Import, Outline

MODULE = b'''"""Text."""
import os, a.b.c as abc
import d.e
from . import sibling
from .. import cousin as relative
from .stars import *

plain = 1
one, (two, *three) = chained = 1, (2, 3)
annotated: int = 1
bare: int
counted += 1
if (walrus := plain) > 0:
    in_if = 1
elif plain:
    in_elif = 1
else:
    in_else = 1
for loop in plain:
    in_loop = 1
while plain:
    in_while = 1
with open("x") as opened, plain as (left, right):
    in_with = 1
try:
    from .maybe import optional
except (ImportError, KeyError):
    in_except = None
finally:
    in_finally = 1
match plain:
    case [first, *rest]:
        in_case = 1
    case {"k": value, **others}:
        pass
    case str() as text:
        pass


def function(parameter):
    local = 1
    global from_a_def
    from .lazily import inner

    class Local: ...


async def coroutine(): ...


class Class:
    member = 1
    from .members import mixed
'''
NAMES = {
    *(
        "os",
        "abc",
        "d",
        "sibling",
        "relative",
        "plain",
        "one",
        "two",
        "three",
        "chained",
        "annotated",
    ),
    *(
        "bare",
        "counted",
        "walrus",
        "in_if",
        "in_elif",
        "in_else",
        "loop",
        "in_loop",
        "in_while",
        "opened",
    ),
    *(
        "left",
        "right",
        "in_with",
        "optional",
        "in_except",
        "in_finally",
        "first",
        "rest",
        "in_case",
        "value",
    ),
    *("others", "text", "function", "from_a_def", "coroutine", "Class"),
}


def by_libcst(data: bytes) -> Outline:
    tree = trees.tree(data, comments=True)
    assert isinstance(tree, trees.Tree)
    lowered = newer.lowered(tree)
    assert lowered is not None
    return definitions.of(lowered, data)


@pytest.mark.parametrize("outline", [definitions.outline, by_libcst])
def test_the_names_of_a_module_are_those_that_any_of_its_branches_binds(outline):
    found = outline(MODULE)

    assert found.names == NAMES
    assert found.stars == ((1, "stars"),)
    assert not found.anything
    assert not found.extended


@pytest.mark.parametrize("outline", [definitions.outline, by_libcst])
def test_imports_are_found_at_any_depth_with_their_line_and_scope(outline):
    found = {one.module or one.name: one for one in outline(MODULE).imports}

    assert found["a.b.c"] == Import(0, "a.b.c", None, 2, "", False)
    assert found["cousin"] == Import(2, "", "cousin", 5, "", False)
    assert found["maybe"] == Import(1, "maybe", "optional", 26, "", True)
    assert found["lazily"].where == "function"
    assert found["members"].where == "Class"


@pytest.mark.parametrize("outline", [definitions.outline, by_libcst])
@pytest.mark.parametrize(
    "text",
    [
        b"def __getattr__(name): ...",
        b"__getattr__, __dir__ = attach()",
        b"globals()['a'] = 1",
        b"globals().update(a)",
        b"for n in a: vars()[n] = 1",
        b"exec('a = 1')",
        b"import sys\nsys.modules[__name__] = Lazy()",
        b"from a import __getattr__",
    ],
)
def test_a_module_that_makes_names_at_run_time_may_have_any(outline, text):
    assert outline(text + b"\n").anything


@pytest.mark.parametrize("outline", [definitions.outline, by_libcst])
def test_names_made_within_a_def_are_not_the_modules(outline):
    found = outline(b"def f():\n    globals\n    a = 1\n    [b := 1]\nclass C:\n    d = 1\n")

    assert found.names == {"f", "C"}
    assert not found.anything


def test_a_package_whose_path_changes_is_extended():
    assert definitions.outline(b"__path__ = extend_path(__path__, __name__)\n").extended
    assert definitions.outline(b"__path__.append('x')\n").extended


def test_syntax_that_this_python_reads_or_does_not_gives_the_same_outline():
    text = b"type Alias = int\nclass Box[T]: ...\nfrom .a import b\nx = f'{d['k']}'\n"

    assert definitions.outline(text).names == {"Alias", "Box", "b", "x"}
    assert by_libcst(text).names == {"Alias", "Box", "b", "x"}


def test_a_text_that_is_not_python_has_a_fault_instead():
    fault = definitions.outline(b"def f(:\n")

    assert isinstance(fault, trees.Fault)
    assert (fault.line, fault.words) == (1, "invalid syntax")


@pytest.mark.parametrize(
    ("text", "sure"),
    [
        ("x()", True),
        ("class A(x): ...", True),
        ("@x\ndef f(): ...", True),
        ("try: a\nexcept x: b", True),
        ("x.y()", False),
        ("f(x)", False),
        ("def (", False),
    ],
)
def test_what_is_called_or_inherited_is_no_module(text, sure):
    assert definitions.no_module(f"{text}\n".encode(), "x") is sure


@pytest.mark.parametrize(
    ("path", "level", "module", "absolute"),
    [
        ("a/b/c.py", 0, "x.y", "x.y"),
        ("a/b/c.py", 1, "x", "a.b.x"),
        ("a/b/c.py", 1, "", "a.b"),
        ("a/b/c.py", 2, "x", "a.x"),
        ("a/b/c.py", 3, "x", None),
        ("a/b/__init__.py", 1, "x", "a.b.x"),
        ("top.py", 1, "x", None),
    ],
)
def test_relative_modules_start_where_the_file_is(path, level, module, absolute):
    assert modules.absolute(path, level, module) == absolute


def test_every_statement_has_its_line_whichever_parser_counts():
    tree = trees.tree(MODULE, comments=True)
    found = trees.positions(tree.module)

    assert len(tree.lines) > 40
    assert {found[node][0] for node in found if id(node) in tree.lines} == set(tree.lines.values())
