"""House rules that a linter cannot be told in one line."""

import ast
import configparser
import contextlib
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "patchq"
MODULES = sorted(PACKAGE.rglob("*.py"))
VAGUE = {
    "util",
    "utils",
    "helper",
    "helpers",
    "common",
    "misc",
    "base",
    "manager",
    "handler",
    "core",
}
# Where one failure must not sink the rest: the process, one host, one request.
BOUNDARIES = {"cli/main.py", "fleet.py", "agent/serve.py"}
MAX_MODULE, MAX_FUNCTION = 300, 45


def relative(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


@pytest.fixture(params=MODULES, ids=relative)
def module(request):
    return request.param


@pytest.fixture
def tree(module):
    return ast.parse(module.read_text())


def test_module_is_named_for_what_it_holds(module):
    assert module.stem not in VAGUE


def test_module_and_functions_fit_on_a_few_screens(module, tree):
    assert len(module.read_text().splitlines()) <= MAX_MODULE
    long = [
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno - node.lineno >= MAX_FUNCTION
    ]
    assert not long


def test_only_the_cli_prints(module, tree):
    prints = [n.lineno for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == "print"]

    assert not prints or relative(module).startswith("cli/")


def test_broad_except_only_at_a_boundary(module, tree):
    broad = [
        n.lineno
        for n in ast.walk(tree)
        if isinstance(n, ast.ExceptHandler)
        and (
            n.type is None
            or (isinstance(n.type, ast.Name) and n.type.id in {"Exception", "BaseException"})
        )
    ]

    assert not broad or relative(module) in BOUNDARIES


def test_every_public_name_has_a_docstring(module, tree):
    bare = [
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and not node.name.startswith("_")
        and ast.get_docstring(node) is None
    ]

    assert ast.get_docstring(tree)
    assert not bare


def written(node: ast.AST) -> str | bytes | None:
    """Return the text that an expression spells, with `x` for what an f-string fills in."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(written(part) or "x" for part in node.values)
    return None


def possessive(tree: ast.AST) -> list[int]:
    """Return the lines of regexes with a possessive quantifier or an atomic group."""
    found = []
    for node in ast.walk(tree):
        text = written(node)
        for flags in (0, re.VERBOSE) if text else ():
            with contextlib.suppress(re.error):
                if re.search("POSSESSIVE|ATOMIC", repr(re._parser.parse(text, flags))):
                    found.append(node.lineno)
    return found


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_no_regex_has_a_possessive_quantifier_or_an_atomic_group(tree):
    """CPython 3.11.0 to 3.11.4, as in Debian 12, match them wrongly; 3.8 has none at all."""
    imported = {name.name for n in ast.walk(tree) if isinstance(n, ast.Import) for name in n.names}

    assert "re" not in imported or not possessive(tree)


ATOMIC = [r"(?:ab?c)*+", "a++", "\n [+] ?+ # why\n", "(?>a|b)c", "b{2,3}+"]


@pytest.mark.parametrize("text", ATOMIC)
def test_a_possessive_quantifier_or_an_atomic_group_is_found(text):
    verbose = "rf'''" + text.replace("{", "{{").replace("}", "}}") + "{more}'''"

    for spelled in (repr(text), repr(text.encode()), verbose):
        assert possessive(ast.parse(f"A = re.compile({spelled}, re.VERBOSE)\n"))


@pytest.mark.parametrize("text", [r"[*+]+[?+] a\++ (?:b)+ c?\+", "--- a\n+++ b\n", r"a\?+ [}]+"])
def test_a_plus_that_is_no_such_quantifier_is_no_finding(text):
    assert not possessive(ast.parse(f"A = re.compile({text!r})\n"))


def test_no_index_host_and_no_path_of_a_machine_is_named():
    hosts = "pythonhoste[d]|py[p]i\\.org|npmj[s]\\.|/(wor[k]|roo[t])/"
    found = subprocess.run(
        ["git", "grep", "-nIE", hosts, "--", "."], cwd=ROOT, capture_output=True, text=True
    )

    assert found.stdout == ""
    assert not re.search("x", found.stderr)


def test_every_package_is_listed_for_the_wheel():
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg")
    listed = set(settings["options"]["packages"].split())
    found = {
        ".".join(path.parent.relative_to(ROOT).parts) for path in PACKAGE.rglob("__init__.py")
    }

    assert listed == found | {"patchq.queues"}
