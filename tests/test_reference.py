"""The reference is what the program's own help says."""

import runpy
from pathlib import Path

import pytest

from patchq.errors import ExitCode

ROOT = Path(__file__).parents[1]


@pytest.fixture
def reference():
    return runpy.run_path(str(ROOT / "scripts" / "reference.py"))


def test_the_page_is_what_the_program_says(reference):
    wanted = reference["page"]()

    assert reference["PAGE"].read_text() == wanted, "run: .venv/bin/python scripts/reference.py"


def test_the_page_does_not_depend_on_the_terminal(reference, monkeypatch):
    first = reference["page"]()
    monkeypatch.setenv("COLUMNS", "40")

    assert reference["page"]() == first


def test_every_exit_code_is_explained_and_every_verb_is_there(reference):
    text = reference["page"]()

    assert set(reference["CODES"]) == set(ExitCode)
    assert all(f"### {verb}\n" in text for verb in reference["main"].HOME)
