"""The architecture is a test: docs/architecture.md says why each rule exists."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
AGENT = sorted((ROOT / "patchq" / "agent").glob("*.py"))
OLDEST_REMOTE_PYTHON = (3, 8)
HEAVY = {
    "asyncio",
    "asyncssh",
    "jinja2",
    "libcst",
    "rich",
    "urllib3",
    "platformdirs",
    "unidiff",
}


@pytest.mark.slow
def test_imports_follow_the_layers():
    lint = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )

    assert lint.returncode == 0, lint.stdout


@pytest.mark.parametrize("module", AGENT, ids=lambda p: p.name)
def test_agent_imports_only_stdlib_and_itself(module):
    tree = ast.parse(module.read_text(), feature_version=OLDEST_REMOTE_PYTHON)
    imported = {
        name
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or "."]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }

    foreign = {
        name
        for name in imported
        if name.split(".")[0] not in sys.stdlib_module_names
        and not name.startswith("patchq.agent")
    }
    assert not foreign


def _modules_after(*statements: str) -> set[str]:
    code = "; ".join(statements) + "; import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in done.stdout.splitlines()[-1].split()}


def test_help_loads_nothing_heavy():
    loaded = _modules_after("from patchq.cli import main", "main.main(['--help'])")

    assert "click" in loaded
    assert not loaded & HEAVY


def test_top_loads_nothing_heavy(tmp_path):
    loaded = _modules_after(
        "from patchq.cli import main", f"main.main(['top', '--target', {str(tmp_path)!r}])"
    )

    assert not loaded & HEAVY


def test_agent_starts_in_an_isolated_interpreter():
    code = "import sys; sys.path.insert(0, sys.argv[1]); import patchq.agent.protocol"

    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, str(ROOT)], capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr
