"""Real mutants of real files: what the always-on checks find of small faults in vLLM."""

import ast
import random
from collections import Counter

import pytest

from patchq.engine import judge
from patchq.releases.store import Store

RELEASE = "0.16.0"
EACH = 40


def cut(text, node, instead):
    """Return a text with the bytes of one node put otherwise."""
    lines = text.split(b"\n")
    first, last = node.lineno - 1, node.end_lineno - 1
    head = lines[first][: node.col_offset]
    tail = lines[last][node.end_col_offset :]
    return b"\n".join([*lines[:first], head + instead + tail, *lines[last + 1 :]])


def inside(tree):
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        and (node.level or (node.module or "").split(".")[0] == "vllm")
        and node.names[0].name != "*"
    ]


def renamed_import(rng, text, tree):
    """`from X import Y` becomes `from X import Yq as Y`: the module has no Yq."""
    node = rng.choice(inside(tree))
    alias = rng.choice(node.names)
    name = alias.name + "q"
    return cut(text, alias, f"{name} as {alias.asname or alias.name}".encode()), name


def dropped_import(rng, text, tree):
    """One imported name that is used is taken out, of whatever module."""
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    found = [
        (node, alias)
        for node in tree.body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
        if (alias.asname or alias.name.split(".")[0]) in used
    ]
    node, alias = rng.choice(found)
    kept = [ast.unparse(one) for one in node.names if one is not alias]
    if not kept:
        return cut(text, node, b"pass"), alias.name
    dots = "." * getattr(node, "level", 0)
    head = f"from {dots}{node.module or ''} " if isinstance(node, ast.ImportFrom) else ""
    return cut(text, node, f"{head}import {', '.join(kept)}".encode()), alias.name


def doubled(rng, text, tree):
    """A def or class stands there twice, as a hunk that was applied twice leaves it."""
    node = rng.choice(
        [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef | ast.ClassDef)]
    )
    lines = text.split(b"\n")
    first = min([node.lineno, *(one.lineno for one in node.decorator_list)]) - 1
    copy = lines[first : node.end_lineno]
    mutant = b"\n".join([*lines[: node.end_lineno], *copy, *lines[node.end_lineno :]])
    return mutant, node.name


def misspelt(rng, text, tree):
    """One place where a local name is looked up says another one."""
    places = []
    for scope in ast.walk(tree):
        if isinstance(scope, ast.FunctionDef):
            names = {one.arg for one in ast.walk(scope) if isinstance(one, ast.arg)}
            places += [
                one
                for one in ast.walk(scope)
                if isinstance(one, ast.Name)
                and isinstance(one.ctx, ast.Load)
                and one.id in names
                and one.id != "self"
            ]
    node = rng.choice(places)
    return cut(text, node, node.id[:-1].encode() + b"qx"), node.id


def level(rng, text, tree):
    """A relative import has one dot more."""
    node = rng.choice([one for one in inside(tree) if one.level])
    lines = text.split(b"\n")
    row = node.lineno - 1
    at = lines[row].index(b".", node.col_offset)
    lines[row] = lines[row][:at] + b"." + lines[row][at:]
    return b"\n".join(lines), ast.unparse(node)


# What no text shows: `vllm/__init__.py` has a `__getattr__`, which may give any name; and a
# registry keeps the first of two classes that are registered by one line.
SURVIVORS = [
    ("renamed_import", "vllm/logging_utils/formatter.py", "envsq"),
    ("doubled", "vllm/multimodal/media/connector.py", "MediaConnector"),
]
KINDS = (renamed_import, dropped_import, doubled, misspelt, level)


def mutants(store):
    """Yield kind, path, what was changed, the text and the mutant: `EACH` of each kind."""
    rng = random.Random(4)
    paths = sorted(
        path
        for path in store.listing(RELEASE)
        if path.endswith(".py") and "/third_party/" not in path
    )
    for kind in KINDS:
        count = 0
        while count < EACH:
            path = rng.choice(paths)
            text = store.read(RELEASE, path)
            if not text.isascii():
                continue
            try:
                mutant, what = kind(rng, text, ast.parse(text))
                ast.parse(mutant)
            except (IndexError, ValueError, SyntaxError):  # nothing of this kind in the file
                continue
            count += 1
            yield kind.__name__, path, what, text, mutant


@pytest.mark.slow
def test_mutants_of_real_files_are_refused(real):
    real.good("fetch", f"vllm=={RELEASE}")
    survivors = []
    caught = Counter()
    with Store("vllm", real.cache / "releases") as store:
        listing = store.installed(RELEASE)
        for kind, path, what, text, mutant in mutants(store):
            verdict = judge.judge(
                {path: text},
                {path: mutant},
                None,
                RELEASE,
                lambda other: store.read(RELEASE, other),
                listing=listing,
            )
            if verdict.holds:
                survivors.append((kind, path, what))
            else:
                caught[kind] += 1

    assert caught == {
        "renamed_import": EACH - 1,
        "dropped_import": EACH,
        "doubled": EACH - 1,
        "misspelt": EACH,
        "level": EACH,
    }
    assert survivors == SURVIVORS
