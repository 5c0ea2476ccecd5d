"""The manual page is what the program's own help says, and is a page to man(1)."""

import configparser
import os
import runpy
import subprocess
from pathlib import Path

import pytest

from tests import ssh_lab

ROOT = Path(__file__).parents[1]


@pytest.fixture
def manpage():
    return runpy.run_path(str(ROOT / "scripts" / "manpage.py"))


def shown(path, *options):
    """Return what man(1) makes of a page; a warning fails the test."""
    done = subprocess.run(
        [ssh_lab.tool("man"), "--warnings", "-E", "UTF-8", *options, "-l", path],
        env={**os.environ, "MANWIDTH": "80", "MAN_KEEP_FORMATTING": "", "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_page_is_what_the_program_says(manpage):
    wanted = manpage["page"]()

    assert manpage["PAGE"].read_text() == wanted, "run: .venv/bin/python scripts/manpage.py"


def test_man_shows_it_without_a_warning_and_every_verb_is_there(manpage):
    text = shown(manpage["PAGE"])

    lines = {line.strip() for line in text.split("\n")}
    assert "patch queues for installed Python packages" in text
    assert all(verb in lines for verb in manpage["main"].HOME)
    assert "patchq audit -H 'gpu[01-64]'" in lines
    assert 'eval "$(patchq completion bash)"      # in ~/.bashrc' in lines


def test_a_fault_of_the_page_would_be_a_warning(manpage, tmp_path):
    page = tmp_path / "patchq.1"
    page.write_text(manpage["PAGE"].read_text() + ".NOREQUEST\n\\[nosuchglyph]\n")

    with pytest.raises(AssertionError):
        shown(page)


@pytest.mark.parametrize(
    "text", [".PP is a request", "a\\fBb", "-n 'x' ~ ^ `y`", "'quoted line", "two\n.lines"]
)
def test_what_is_text_stays_text(manpage, tmp_path, text):
    page = tmp_path / "x.1"
    page.write_text(f".TH X 1\n.SH NAME\nx\n.nf\nA\n{manpage['_text'](text)}\nZ\n.fi\n")

    lines = [line.strip() for line in shown(page).split("\n")]

    assert lines[lines.index("A") + 1 : lines.index("Z")] == text.replace("`y`", "y").split("\n")


def test_the_wheel_brings_it():
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg")

    assert settings["options.data_files"]["share/man/man1"].split() == ["docs/patchq.1"]
