"""The only door to git.

A user's own repository (`head`) is asked with the user's own configuration. The store
of releases is never asked that way: its calls run with every ``GIT_*`` variable taken
away and no configuration or attributes but its own (a ``*.py merge=union`` of the
user's made a silent wrong merge there). Objects of a repository are read as they are
(`Batch`), whosever it is: no setting changes them.
"""

from __future__ import annotations

import functools
import os
import re
import shlex
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from patchq import gitprocess
from patchq.gitprocess import GitError

__all__ = [
    "Batch",
    "GitError",
    "GitObject",
    "Snapshot",
    "check",
    "commit",
    "create",
    "head",
    "kept",
    "point",
    "references",
    "touching",
]

OLDEST = (2, 38)

# Deterministic on every machine: no text conversion, no filters, no merge drivers.
ATTRIBUTES = "* -text -ident -filter -export-subst !merge\n"
# The date of a fresh zip member, 1980-01-01: a commit's id says its tree and nothing else.
_IDENTITY = b"patchq <patchq@localhost> 315532800 +0000"


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
    top = _top(place)
    if top is None:
        return None, False
    said = _asked(top, "status", "--porcelain=v2", "--branch", "-unormal", "--", str(place))
    if said is None:
        return None, False
    marks, changes = [], 0
    for line in said.splitlines():
        if line.startswith(b"# "):
            marks.append(line.split())
        else:
            changes += 1
    if not changes and not _asked(top, "ls-files", "--", str(place)):
        return None, False
    commits = [mark[2].decode() for mark in marks if mark[1] == b"branch.oid"]
    return next((oid for oid in commits if oid != "(initial)"), None), bool(changes)


def kept(folder: Path, names: Sequence[str]) -> frozenset[str] | None:
    """Return which files of a folder git can give back as they are now; None without git."""
    place = folder.resolve()
    top = _top(place)
    if top is None:
        return None
    paths = {(place / name).relative_to(top).as_posix(): name for name in names}
    which = [f":(top,literal){path}" for path in paths]
    found = []
    for verb in (["ls-files"], ["diff", "--name-only", "--no-ext-diff"]):
        said = _asked(top, *verb, "-z", "--", *which) if names else b""
        if said is None:
            return None
        found.append(set(said.decode(errors="surrogateescape").split("\0")) - {""})
    return frozenset(paths[path] for path in (found[0] - found[1]) & paths.keys())


def _asked(top: Path, *arguments: str) -> bytes | None:
    """Return what git says of a user's own repository; None where it is none.

    With the user's configuration, and without what a hook around patchq says of
    another repository; a monitor program that this one names is not run.
    """
    environ = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name.startswith("GIT_CONFIG_")
    }
    environ.update(GIT_OPTIONAL_LOCKS="0", LC_ALL="C")
    argv = ["git", "-C", str(top), "-c", "core.fsmonitor=false", *arguments]
    try:
        done = subprocess.run(argv, env=environ, capture_output=True, check=False)
    except FileNotFoundError as error:
        raise gitprocess.missing() from error
    if done.returncode == 0:
        return done.stdout
    said = done.stderr.decode(errors="replace").strip()
    if "not a git repository" in said:
        return None
    raise GitError(
        f"git cannot say what state {top} is in",
        why=said,
        mend=f"git -C {shlex.quote(str(top))} status",
    )


def touching(folder: Path, most: int) -> tuple[Path, str, tuple[str, ...]] | None:
    """Return the commits that touched `folder`, newest first, at most so many.

    With them its repository and its path there, for `Batch`; None where there is no
    repository that git trusts, or nothing was committed yet.
    """
    place = folder.resolve()
    top = _top(place)
    if top is None:
        return None
    check()
    repository, inside = top / ".git", place.relative_to(top).as_posix()
    with Batch(repository) as batch:
        if batch.read("HEAD^{commit}") is None:
            return None
    where = [] if inside == "." else ["--", f":(top,literal){inside}"]
    listed = gitprocess.run(repository, "rev-list", f"--max-count={most}", "HEAD", *where)
    return repository, "" if inside == "." else f"{inside}/", tuple(listed.decode().split())


def _top(place: Path) -> Path | None:
    """Return the folder of the repository around a resolved path, if git trusts it."""
    top = next((up for up in (place, *place.parents) if (up / ".git").exists()), None)
    return top if top is not None and _trusted(top) else None


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
    check()
    gitprocess.run(
        None, "init", "--quiet", "--bare", "--object-format=sha1", "--template=", str(repository)
    )
    (repository / "info").mkdir(exist_ok=True)
    (repository / "info" / "attributes").write_text(ATTRIBUTES)


def references(repository: Path, prefix: str) -> tuple[str, ...]:
    """Return the names of the references below `prefix`, without it."""
    text = gitprocess.run(repository, "for-each-ref", "--format=%(refname)", prefix).decode()
    return tuple(line.removeprefix(prefix) for line in text.split("\n") if line)


def point(repository: Path, reference: str, commit: str) -> None:
    """Make `reference` name `commit`, whatever it named before."""
    gitprocess.run(repository, "update-ref", reference, commit)


def commit(repository: Path, snapshots: Sequence[Snapshot]) -> tuple[str, ...]:
    """Write one commit without parents per snapshot, and return their ids.

    No reference names them: until `point` does, nothing is visible.
    """
    with gitprocess.running(
        repository, "fast-import", "--quiet", "--done", "--date-format=raw"
    ) as process:
        stream, answers = gitprocess.pipes(process)
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
            gitprocess.end(self._process)
            self._process = None

    def read(self, name: str) -> GitObject | None:
        """Return the object that `name` (an id, ``ref^{tree}``) names, None if nothing."""
        if "\n" in name:
            return None
        if self._process is None:
            self._process = gitprocess.start(self._repository, "cat-file", "--batch")
        questions, answers = gitprocess.pipes(self._process)
        try:
            questions.write(name.encode(errors="surrogateescape") + b"\n")
            questions.flush()
        except BrokenPipeError as error:
            raise gitprocess.failure(["cat-file"], self._repository, "it ended early") from error
        answer = answers.readline().decode(errors="surrogateescape")
        if answer.endswith((" missing\n", " ambiguous\n")):
            return None
        try:
            oid, kind, size = answer.split()
            data = answers.read(int(size) + 1)[:-1]
        except ValueError as error:
            raise gitprocess.failure(
                ["cat-file"], self._repository, f"it answered {answer!r}"
            ) from error
        return GitObject(oid, kind, data)


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


@functools.cache
def check() -> None:
    """Raise `GitError` unless git is there and new enough."""
    found = gitprocess.run(None, "version").decode()
    numbers = re.search(r"(\d+)\.(\d+)", found)
    if numbers is None or (int(numbers[1]), int(numbers[2])) < OLDEST:
        raise GitError(
            "git is too old",
            why=f"found {found.strip()!r}, expected git 2.38 or newer",
            mend="install a newer git and put it first on PATH",
        )
