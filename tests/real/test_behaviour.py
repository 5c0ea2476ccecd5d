"""The ready-made series, run: vLLM's own models, configuration and drafter loader on the CPU.

scripts/behaviour.py makes the environment and the trees, scripts/tiny_engine.py is what runs
in them. Here are the three shapes that the touched files have; `scripts/behaviour --all` runs
all five releases.
"""

import ast
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from patchq.engine import apply
from patchq.queue import store
from patchq.releases.store import Store
from tests.real.conftest import QUEUE

pytestmark = pytest.mark.slow


def script(name: str) -> ModuleType:
    """Return one of scripts/ as a module."""
    path = Path(__file__).parents[2] / "scripts" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # one script imports the other by its name
    spec.loader.exec_module(module)
    return module


behaviour = script("behaviour")
SPECULATIVE = "vllm/config/speculative.py"
LEFT_OUT = [
    (release, patch) for release in behaviour.SHAPES for patch in behaviour.patches(release)
]
TWINS = [("0.15.0", "0.15.1"), ("0.17.0", "0.17.1")]


@pytest.mark.parametrize("release", behaviour.SHAPES)
def test_the_whole_series_does_what_it_is_for(release):
    found = behaviour.look(release)

    assert behaviour.faults(found) == []


@pytest.mark.parametrize(("release", "patch"), LEFT_OUT)
def test_without_a_patch_a_user_would_meet_the_known_message(release, patch):
    assert behaviour.unlike(release, patch) == []


def states(release: str) -> dict[str, tuple[str | None, str | None]]:
    """Return path -> digests on the pristine release, and with the whole series."""
    lock = store.lock(store.open(QUEUE), release)
    out: dict[str, tuple[str | None, str | None]] = {}
    for patch in lock.patches:
        for change in patch.changes:
            before = out.get(change.path, (change.before.sha256, None))[0]
            out[change.path] = (before, change.after.sha256)
    return out


def verify_args(real, release: str) -> str:
    """Return `_verify_args` of a patched release, layout and comments left aside."""
    real.good("fetch", f"vllm=={release}")
    with Store("vllm", real.cache / "releases") as kept:
        file = kept.read_many(release, [SPECULATIVE])[SPECULATIVE]
    series = store.load(store.open(QUEUE), release)
    (patch,) = (one for one in series.patches if SPECULATIVE in one.paths)
    done = apply.apply_patch(patch, {SPECULATIVE: file}.get)
    (found,) = (
        node
        for node in ast.walk(ast.parse(done.after[SPECULATIVE][0]))
        if isinstance(node, ast.FunctionDef) and node.name == "_verify_args"
    )
    return ast.dump(found)


@pytest.mark.parametrize(("release", "twin"), TWINS)
def test_what_is_not_run_here_is_file_for_file_what_is(real, release, twin):
    mine, other = states(release), states(twin)

    assert set(mine) == set(other)
    unlike = [path for path in mine if mine[path] != other[path]]
    assert unlike in ([], [SPECULATIVE])
    assert verify_args(real, release) == verify_args(real, twin)


@pytest.mark.parametrize("release", behaviour.RELEASES)
def test_the_page_about_the_series_has_what_is_so(real, release):
    table = script("series_table")
    page = table.PAGE.read_text().splitlines()
    real.good("fetch", f"vllm=={release}")

    with Store("vllm", real.cache / "releases") as kept:
        rows = list(table.rows(release, kept))

    assert [row.patch for row in rows] == behaviour.patches(release)
    for row in rows:
        (line,) = (one for one in page if one.startswith(f"| {' | '.join(row.cells())} | "))
        assert " as it should; without it: `" in line
        assert "NO" not in line
