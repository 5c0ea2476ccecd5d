"""The only door to git, and to GitPython.

A user's own repository (`head`) is asked through GitPython, with the user's own
configuration. The store of releases is never asked that way: its calls run with
every ``GIT_*`` variable taken away and no configuration or attributes but its own
(a ``*.py merge=union`` of the user's made a silent wrong merge there), and
GitPython can only add to the environment of git, not take away.

Every process that is started here is ended here.
"""

from __future__ import annotations

import functools
import os
import re
import shlex
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from patchq.errors import PatchqError

OLDEST = (2, 38)

# Deterministic on every machine: no text conversion, no filters, no merge drivers.
ATTRIBUTES = "* -text -ident -filter -export-subst !merge\n"
_SETTINGS = (
    "core.attributesFile=/dev/null",
    "core.hooksPath=/dev/null",
    "fastimport.unpackLimit=1",
    "gc.auto=0",
)
# The date of a fresh zip member, 1980-01-01: a commit's id says its tree and nothing else.
_IDENTITY = b"patchq <patchq@localhost> 315532800 +0000"


class GitError(PatchqError):
    """git is missing, too old, or failed."""


@dataclass(frozen=True, slots=True)
class GitObject:
    """One object of a repository."""

    id: str
    kind: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A tree to commit: (path, bytes, executable), and the commit's message."""

    files: Iterable[tuple[str, bytes, bool]]
    message: str


def head(folder: Path) -> tuple[str | None, bool]:
    """Return the commit of the repository around `folder`, and if the folder is dirty.

    ``(None, False)`` where there is no repository, or it ignores the folder;
    the commit is None, too, before the first one, and where git does not trust the
    repository, since it is another user's.
    """
    place = folder.resolve()
    top = next((up for up in (place, *place.parents) if (up / ".git").exists()), None)
    if top is None or not _trusted(top):
        return None, False
    _require()
    import git

    try:
        with git.Repo(top) as repository:
            work = str(repository.working_tree_dir or top)
            door = repository.git
            door.update_environment(
                GIT_DIR=str(repository.git_dir), GIT_WORK_TREE=work, GIT_OPTIONAL_LOCKS="0"
            )
            door(c="core.fsmonitor=false")  # a program that the repository names is not run
            dirty = bool(door.status("--porcelain", "--untracked-files=normal", "--", str(place)))
            if not dirty and not door.ls_files("--", str(place)):
                return None, False
            commit = repository.head.commit.hexsha if repository.head.is_valid() else None
            return commit, dirty
    except git.InvalidGitRepositoryError:
        return None, False
    except git.GitCommandError as error:
        raise GitError(
            f"git cannot say what state {folder} is in",
            why=str(error.stderr).strip().removeprefix("stderr: ").strip("'\n"),
            mend=f"git -C {shlex.quote(str(folder))} status",
        ) from error


def _trusted(top: Path) -> bool:
    """True where the repository is this user's own, as git's safe.directory has it.

    git does not look when it is told GIT_DIR, and GIT_DIR must be told, so that one
    that is set around patchq (by a hook, say) does not stand in.
    """
    mine = {os.geteuid()}
    if os.geteuid() == 0:
        mine.add(int(os.environ.get("SUDO_UID") or 0))
    return all(path.stat().st_uid in mine for path in (top, top / ".git"))


def create(repository: Path) -> None:
    """Create a bare repository of SHA-1 objects that no user's setting reaches."""
    _require()
    _run(None, "init", "--quiet", "--bare", "--object-format=sha1", "--template=", str(repository))
    (repository / "info").mkdir(exist_ok=True)
    (repository / "info" / "attributes").write_text(ATTRIBUTES)


def references(repository: Path, prefix: str) -> tuple[str, ...]:
    """Return the names of the references below `prefix`, without it."""
    text = _run(repository, "for-each-ref", "--format=%(refname)", prefix).decode()
    return tuple(line.removeprefix(prefix) for line in text.split("\n") if line)


def point(repository: Path, reference: str, commit: str) -> None:
    """Make `reference` name `commit`, whatever it named before."""
    _run(repository, "update-ref", reference, commit)


def commit(repository: Path, snapshots: Sequence[Snapshot]) -> tuple[str, ...]:
    """Write one commit without parents per snapshot, and return their ids.

    No reference names them: until `point` does, nothing is visible.
    """
    with _process(repository, "fast-import", "--quiet", "--done", "--date-format=raw") as process:
        stream, answers = _pipes(process)
        # A git that died has said why; `_process` raises that.
        with suppress(BrokenPipeError):
            for mark, snapshot in enumerate(snapshots, 1):
                _import(stream, mark, snapshot)
            for mark in range(1, len(snapshots) + 1):
                stream.write(b"get-mark :%d\n" % mark)
            stream.write(b"done\n")
            stream.flush()
        ids = answers.read().decode().split()
    return tuple(ids)


class Batch:
    """A `git cat-file --batch` process that reads objects one by one.

    A context manager; the process starts with the first `read`.
    """

    def __init__(self, repository: Path) -> None:
        self._repository = repository
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Batch:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            _end(self._process)
            self._process = None

    def read(self, name: str) -> GitObject | None:
        """Return the object that `name` (an id, ``ref^{tree}``) names, None if nothing."""
        if "\n" in name:
            return None
        if self._process is None:
            self._process = _start(self._repository, "cat-file", "--batch")
        questions, answers = _pipes(self._process)
        try:
            questions.write(name.encode(errors="surrogateescape") + b"\n")
            questions.flush()
        except BrokenPipeError as error:
            raise _failure(["cat-file"], self._repository, "it ended early") from error
        answer = answers.readline().decode(errors="surrogateescape")
        if answer.endswith((" missing\n", " ambiguous\n")):
            return None
        try:
            oid, kind, size = answer.split()
            data = answers.read(int(size) + 1)[:-1]
        except ValueError as error:
            raise _failure(["cat-file"], self._repository, f"it answered {answer!r}") from error
        return GitObject(oid, kind, data)


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


def _import(stream: IO[bytes], mark: int, snapshot: Snapshot) -> None:
    reference = b"refs/incoming/%d" % mark
    message = snapshot.message.encode()
    stream.write(b"commit %s\nmark :%d\ncommitter %s\n" % (reference, mark, _IDENTITY))
    stream.write(b"data %d\n%s\n" % (len(message), message))
    for path, data, executable in snapshot.files:
        quoted = path.encode(errors="surrogateescape")
        quoted = quoted.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
        mode = b"100755" if executable else b"100644"
        stream.write(b'M %s inline "%s"\ndata %d\n' % (mode, quoted, len(data)))
        stream.write(data)
        stream.write(b"\n")
    stream.write(b"\nreset %s\nfrom %s\n\n" % (reference, b"0" * 40))


def _run(repository: Path | None, *arguments: str) -> bytes:
    with _process(repository, *arguments) as process:
        questions, answers = _pipes(process)
        questions.close()
        output = answers.read()
    return output


@contextmanager
def _process(repository: Path | None, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run git around the block; raise `GitError` if it does not end well."""
    process = _start(repository, *arguments)
    try:
        yield process
        said, status = _end(process)
    finally:
        if process.returncode is None:
            process.kill()
            _end(process)
    if status:
        raise _failure(arguments, repository, said or f"exit status {status}")


def _start(repository: Path | None, *arguments: str) -> subprocess.Popen[bytes]:
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
        raise _missing() from error


def _end(process: subprocess.Popen[bytes]) -> tuple[str, int]:
    """Close the process's pipes, wait, and return what it complained of and its status."""
    questions, answers = _pipes(process)
    assert process.stderr is not None
    with suppress(BrokenPipeError):
        questions.close()
    with answers, process.stderr:
        said = process.stderr.read().decode(errors="replace").strip()
        return said, process.wait()


def _pipes(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    assert process.stdin is not None
    assert process.stdout is not None
    return process.stdin, process.stdout


@functools.cache
def _require() -> None:
    """Raise `GitError` unless git is there and new enough."""
    found = _run(None, "version").decode()
    numbers = re.search(r"(\d+)\.(\d+)", found)
    if numbers is None or (int(numbers[1]), int(numbers[2])) < OLDEST:
        raise GitError(
            "git is too old",
            why=f"found {found.strip()!r}, expected git 2.38 or newer",
            mend="install a newer git and put it first on PATH",
        )


def _missing() -> GitError:
    return GitError(
        "git is not there",
        why="no program 'git' on PATH; patchq keeps pristine releases in a git repository",
        mend="install git 2.38 or newer (apt-get install git)",
    )


def _failure(arguments: Sequence[str], repository: Path | None, said: str) -> GitError:
    where = "" if repository is None else f" in {repository}"
    return GitError(
        f"git {arguments[0]} failed{where}",
        why=said,
        mend="git version" if repository is None else f"git --git-dir={repository} fsck",
    )
