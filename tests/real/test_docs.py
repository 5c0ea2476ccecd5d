"""Commands in the documents are executed, and their output is true."""

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
WITH_COMMANDS = [page for page in PAGES if "```console" in page.read_text()]
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def commands(page: Path) -> list[tuple[str, str]]:
    """Return (command, expected output) of a page's console blocks, in order."""
    out: list[tuple[str, str]] = []
    for block in BLOCK.findall(page.read_text()):
        for line in block.splitlines(keepends=True):
            if line.startswith("$ "):
                out.append((line[2:].rstrip("\n"), ""))
            else:
                out[-1] = (out[-1][0], out[-1][1] + line)
    return out


def sourced(command: str, folder: Path, environ: dict[str, str]) -> dict[str, str]:
    """Return the environment that a sourced file leaves, for the commands that follow."""
    done = subprocess.run(
        ["sh", "-c", f"{command} && env -0"],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(one.split("=", 1) for one in done.stdout.split("\0") if one)


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: page.name)
def test_what_a_page_shows_is_what_happens(page, tmp_path):
    environ = {**os.environ, "PATCHQ_CACHE": str(tmp_path / "cache"), "HOME": str(tmp_path)}
    environ["PATH"] = f"{Path(sys.executable).parent}:{environ['PATH']}"
    environ.pop("VIRTUAL_ENV", None)
    (tmp_path / "here").mkdir()

    for command, expected in commands(page):
        assert not command.startswith("cd "), "the next line would be typed elsewhere"
        if command.startswith(". "):
            environ = sourced(command, tmp_path / "here", environ)
            continue
        done = subprocess.run(
            ["sh", "-c", f"{command}"],
            cwd=tmp_path / "here",
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        checker = doctest.OutputChecker()
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        assert checker.check_output(expected, done.stdout, flags), (
            f"{page.name}: $ {command}\nexpected:\n{expected}\ngot:\n{done.stdout}"
        )


def test_every_link_of_the_pages_leads_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"
