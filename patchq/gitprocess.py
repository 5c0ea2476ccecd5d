"""How a git process is started, spoken to and ended; who calls it is `patchq.git`.

Every process runs with the ``GIT_*`` variables taken away and no configuration but
its repository's own (`isolated`), and is ended here.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from patchq.errors import PatchqError

_SETTINGS = (
    "core.attributesFile=/dev/null",
    "core.hooksPath=/dev/null",
    "fastimport.unpackLimit=1",
    "gc.auto=0",
)


class GitError(PatchqError):
    """git is missing, too old, or failed."""


def isolated(environ: Mapping[str, str]) -> dict[str, str]:
    """Return `environ` without anything that changes what git does to the store."""
    kept = {name: value for name, value in environ.items() if not name.startswith("GIT_")}
    return kept | {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }


def run(repository: Path | None, *arguments: str) -> bytes:
    """Return what git prints; None for a call that needs no repository."""
    with running(repository, *arguments) as process:
        questions, answers = pipes(process)
        questions.close()
        output = answers.read()
    return output


@contextmanager
def running(repository: Path | None, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run git around the block; raise `GitError` if it does not end well."""
    process = start(repository, *arguments)
    try:
        yield process
        said, status = end(process)
    finally:
        if process.returncode is None:
            process.kill()
            end(process)
    if status:
        raise failure(arguments, repository, said or f"exit status {status}")


def start(repository: Path | None, *arguments: str) -> subprocess.Popen[bytes]:
    """Start git with pipes to all of its streams."""
    place = [] if repository is None else [f"--git-dir={repository}"]
    settings = [word for setting in _SETTINGS for word in ("-c", setting)]
    try:
        return subprocess.Popen(
            ["git", *place, *settings, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=isolated(os.environ),
        )
    except FileNotFoundError as error:
        raise missing() from error


def end(process: subprocess.Popen[bytes]) -> tuple[str, int]:
    """Close the process's pipes, wait, and return what it complained of and its status."""
    questions, answers = pipes(process)
    assert process.stderr is not None
    with suppress(BrokenPipeError):
        questions.close()
    with answers, process.stderr:
        said = process.stderr.read().decode(errors="replace").strip()
        return said, process.wait()


def pipes(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    """Return the streams for questions and for answers."""
    assert process.stdin is not None
    assert process.stdout is not None
    return process.stdin, process.stdout


def missing() -> GitError:
    """Return the error for a machine without git."""
    return GitError(
        "git is not there",
        why="no program 'git' on PATH; patchq keeps pristine releases in a git repository",
        mend="install git 2.38 or newer (apt-get install git)",
    )


def failure(arguments: Sequence[str], repository: Path | None, said: str) -> GitError:
    """Return the error for a git that did not end well, with what it said."""
    where = "" if repository is None else f" in {repository}"
    return GitError(
        f"git {arguments[0]} failed{where}",
        why=said,
        mend="git version" if repository is None else f"git --git-dir={repository} fsck",
    )
