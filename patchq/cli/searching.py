"""grep through the files of a tree, without quilt's folders and patchq's own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from patchq.cli import places
from patchq.cli.run import json_option, show
from patchq.errors import ExitCode, PatchqError
from patchq.report import Report

# A command line takes some more; the kernel's limit is on its bytes.
_AT_ONCE = 1000


@click.command(
    short_help="Search the files of a plain tree",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.option("--tree", metavar="DIR", default=".", help="A plain tree: in DIR, or above it.")
@json_option
@click.argument("words", nargs=-1, required=True, metavar="[OPTION]... PATTERN [FILE]...")
def grep(tree: str, as_json: bool, words: tuple[str, ...]) -> int:
    """Search the files of a plain tree with grep(1), but not its patches and records.

    All options but --tree, --json and -h are grep's. Without FILEs all files are searched.
    Exit code 1 where nothing is found.

    \b
    Examples:
      patchq grep speculative
      patchq grep --tree src -n -w "kimi_k2"
    """
    root = places.tree(tree)
    end = _pattern(words)
    patches = places.tree_queue(root).releases[0]
    named = words[end:] or tuple(sorted(files(root, patches)))
    codes, lines = [], []
    for at in range(0, len(named), _AT_ONCE):
        done = _run(root, words[:end], named[at : at + _AT_ONCE])
        codes.append(done.returncode)
        lines += done.stdout.decode("utf-8", "surrogateescape").split("\n")[:-1]
    worst = max(codes, default=1)
    code = ExitCode(worst if worst > 1 else min(codes, default=1))
    return show(Report(tuple(lines), (), {"verb": "grep", "lines": lines}, code), as_json)


def files(root: Path, patches: str) -> Iterator[str]:
    """Yield the files of a tree by name, but for the folder of patches and the records."""
    for folder, inside, names in os.walk(root):
        at = os.path.relpath(folder, root)
        keep = (name for name in inside if name not in (".pc", ".patchq", ".git"))
        inside[:] = [name for name in keep if os.path.normpath(f"{at}/{name}") != patches]
        for name in names:
            if os.path.isfile(f"{folder}/{name}"):
                yield os.path.normpath(f"{at}/{name}")


def _pattern(words: Sequence[str]) -> int:
    """Return how many of the words are options and the pattern; files follow."""
    for at, word in enumerate(words):
        if word == "--":
            return at + 2
        if not word.startswith("-") or word == "-":
            return at + 1
    return len(words)


def _run(
    root: Path, words: Sequence[str], names: Sequence[str]
) -> subprocess.CompletedProcess[bytes]:
    options = words if "--" in words else (*words[:-1], "--", words[-1])
    try:
        return subprocess.run(["grep", "-H", *options, *names], cwd=root, stdout=subprocess.PIPE)
    except OSError as error:
        raise PatchqError(
            "grep can not be run", why=error.strerror or str(error), mend="install grep"
        ) from error


COMMANDS = {"grep": grep}
