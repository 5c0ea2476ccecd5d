"""A branch of a user's repository: patches written as commits, and commits read back.

Like `patchq.git` this is a door to git. Only objects and one reference are written; no hook
runs, and no setting or attribute of the user's changes a byte. Who the user is, is asked
of the user's own configuration.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from patchq import git, gitprocess
from patchq.gitprocess import GitError

# Bytes and whether it is executable; None for a file that goes.
File = tuple[bytes, bool]
NOBODY = "patchq <patchq@localhost>"
# The date of a fresh zip member, as `patchq.git` has it: ids say what is in a commit only.
EPOCH = "315532800 +0000"
_INCOMING = "refs/patchq/incoming"
_ZERO = "0" * 40


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit to write: what it changes, who made it and when (git's raw date)."""

    message: bytes
    author: str
    date: str
    files: Mapping[str, File | None]


@dataclass(frozen=True, slots=True)
class Found:
    """A commit that was read: its files before and after, and which of them were renamed."""

    id: str
    message: bytes
    author: str
    date: str
    before: Mapping[str, File | None]
    after: Mapping[str, File | None]
    renamed: Mapping[str, str]


def identity() -> str:
    """Return who the user is by git's settings, as ``Name <mail>``; empty where nobody said."""
    said = []
    for key in ("user.name", "user.email"):
        try:
            done = subprocess.run(["git", "config", key], capture_output=True, check=False)
        except FileNotFoundError:
            return ""
        said.append(done.stdout.decode("utf-8", "surrogateescape").strip())
    return f"{said[0]} <{said[1]}>" if all(said) else ""


def author(text: str) -> str:
    """Return who made something as git has it, ``Name <mail>``; nobody for an empty text.

    Example:
        >>> author("A. Body"), author("A <a@b.c>, B <b@b.c>"), author("")
        ('A. Body <>', 'A <a@b.c>', 'patchq <patchq@localhost>')
    """
    if not text.strip():
        return NOBODY
    match = re.match(r"([^<>]*)<([^<>]*)>", text)
    name, mail = (match[1], match[2]) if match else (re.sub("[<>]", "", text), "")
    return f"{' '.join(name.split())} <{mail.strip()}>".lstrip()


def place(folder: Path) -> tuple[Path, bool]:
    """Return the repository in a folder, made if there is none, and whether it was made.

    Raises:
        GitError: the folder has files and is no repository, or git does not trust it.
    """
    if (folder / ".git").exists() or (folder / "objects").is_dir():
        said = gitprocess.run(None, "-C", str(folder), "rev-parse", "--absolute-git-dir")
        return Path(said.decode("utf-8", "surrogateescape").rstrip("\n")), False
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise GitError(
            f"{folder} is not a git repository",
            why="it has files, and no .git",
            mend="name a repository, or a folder that is not there yet",
        )
    git.check()
    words = ("--quiet", "--object-format=sha1", "--template=", str(folder))
    gitprocess.run(None, "init", *words)
    repository = folder.absolute() / ".git"
    (repository / "info").mkdir(exist_ok=True)
    (repository / "info" / "attributes").write_text(git.ATTRIBUTES)
    return repository, True


def found(folder: Path) -> Path:
    """Return the repository in a folder.

    Raises:
        GitError: there is none.
    """
    if (folder / ".git").exists() or (folder / "objects").is_dir():
        return place(folder)[0]
    raise GitError(
        f"{folder} is not a git repository",
        why="it has no .git",
        mend="patchq export --git DIR   # makes one",
    )


def tip(repository: Path, name: str) -> str | None:
    """Return the commit that a name means, None if none does."""
    with git.Batch(repository) as batch:
        known = batch.read(f"{name}^{{commit}}")
    return None if known is None else known.id


def receive(repository: Path, source: Path, reference: str) -> str:
    """Bring a commit of another repository here, and return its id."""
    commit = tip(source, reference)
    if commit is None:
        raise GitError(
            f"{source} has no {reference}", why="it is gone", mend=f"git --git-dir={source} fsck"
        )
    if tip(repository, commit) is None:
        words = ("--quiet", "--no-tags", "--no-write-fetch-head")
        gitprocess.run(repository, "fetch", *words, str(source), reference)
    return commit


def write(repository: Path, base: str | None, commits: Sequence[Commit]) -> tuple[str, ...]:
    """Write commits one on the other, the first on `base`; return their ids.

    No reference names them: until `point` does, nothing is visible. The same commits have
    the same ids on every machine.
    """
    words = ("--quiet", "--done", "--date-format=raw")
    with gitprocess.running(repository, "fast-import", *words) as process:
        stream, answers = gitprocess.pipes(process)
        with suppress(BrokenPipeError):  # a git that died has said why
            for mark, commit in enumerate(commits, 1):
                _put(stream, mark, commit, base if mark == 1 else f":{mark - 1}")
            for mark in range(1, len(commits) + 1):
                stream.write(b"get-mark :%d\n" % mark)
            stream.write(f"reset {_INCOMING}\nfrom {_ZERO}\n\ndone\n".encode())
            stream.flush()
        ids = answers.read().decode().split()
    return tuple(ids)


def point(repository: Path, branch: str, commit: str, old: str | None) -> None:
    """Make a branch name a commit, if it is still where it was.

    Raises:
        GitError: somebody moved it meanwhile.
    """
    reference = f"refs/heads/{branch}"
    gitprocess.run(repository, "update-ref", reference, commit, old or _ZERO)


def check_out(repository: Path, branch: str) -> None:
    """Put the files of a branch into the work tree of a repository that was made just now."""
    gitprocess.run(repository, "symbolic-ref", "HEAD", f"refs/heads/{branch}")
    tree = f"--work-tree={repository.parent}"
    gitprocess.run(repository, tree, "reset", "--quiet", "--hard")


def checked_out(repository: Path, branch: str) -> bool:
    """Return whether a branch is what some work tree of the repository shows."""
    listed = gitprocess.run(repository, "worktree", "list", "--porcelain").decode(errors="replace")
    return f"branch refs/heads/{branch}\n" in listed


def branches(repository: Path) -> tuple[str, ...]:
    """Return the names of the repository's branches."""
    return git.references(repository, "refs/heads/")


def log(repository: Path, name: str, base: str | None) -> tuple[str, tuple[Found, ...]]:
    """Return the root that a branch stands on, and its commits above that, oldest first.

    The root is `base`, or the first commit of all.

    Raises:
        GitError: there is a merge, a link or a submodule on the way.
    """
    out: list[Found] = []
    with git.Batch(repository) as batch:
        at = batch.read(f"{name}^{{commit}}")
        while at is not None and at.id != base:
            parents = re.findall(rb"^parent ([0-9a-f]+)$", at.data.partition(b"\n\n")[0], re.M)
            if not parents:
                break
            if len(parents) > 1:
                raise GitError(
                    f"{at.id[:12]} of {name} is a merge",
                    why="a series is one patch on the other",
                    mend=f"git rebase {base or 'BASE'}",
                )
            out.append(_read(repository, batch, at, parents[0].decode()))
            at = batch.read(parents[0].decode())
    if at is None:
        raise GitError(
            f"there is no branch {name}",
            why=f"{repository} has {', '.join(branches(repository)) or 'none'}",
            mend="patchq export --git DIR",
        )
    return at.id, tuple(reversed(out))


def files(repository: Path, commit: str, paths: Iterable[str]) -> dict[str, File | None]:
    """Return files of a commit by their paths, None for one that it does not have."""
    out: dict[str, File | None] = {}
    with git.Batch(repository) as batch:
        for path in paths:
            blob = batch.read(f"{commit}:{path}")
            mode = b""
            if blob is not None:
                which = f":(literal){path}"
                mode = gitprocess.run(repository, "ls-tree", "-z", commit, "--", which)[:6]
            out[path] = None if blob is None else (blob.data, mode == b"100755")
    return out


def _read(repository: Path, batch: git.Batch, commit: git.GitObject, parent: str) -> Found:
    head, _, message = commit.data.partition(b"\n\n")
    match = re.search(rb"^author (.*?) ?(\d+ [+-]\d+)$", head, re.M)
    author, date = (match[1], match[2]) if match else (b"", EPOCH.encode())
    said = gitprocess.run(repository, "diff-tree", "-r", "-z", "-M", "--raw", parent, commit.id)
    words = said.decode("utf-8", "surrogateescape").split("\0")
    before: dict[str, File | None] = {}
    after: dict[str, File | None] = {}
    renamed: dict[str, str] = {}
    rows = iter(words[:-1])
    for row in rows:
        modes, ids, kind = row[1:].split(" ")[:2], row.split(" ")[2:4], row.split(" ")[4]
        old = new = next(rows)
        if kind.startswith("R"):
            new = next(rows)
            renamed[new] = old
            after.setdefault(old, None)
            before.setdefault(new, None)
        sides = [_file(batch, *side, commit.id, new) for side in zip(modes, ids, strict=True)]
        before[old], after[new] = sides
    text = author.decode("utf-8", "surrogateescape"), date.decode()
    return Found(commit.id, message, *text, before, after, renamed)


def _file(batch: git.Batch, mode: str, blob: str, commit: str, path: str) -> File | None:
    if mode == "000000":
        return None
    found = batch.read(blob) if mode in ("100644", "100755", "100664") else None
    if found is None:
        raise GitError(
            f"{commit[:12]} makes {path} something that no patch can carry",
            why="a patch holds regular files, no links and no submodules",
            mend=f"git rebase -i {commit[:12]}^   # and take it out of that commit",
        )
    return found.data, mode == "100755"


def _put(stream: IO[bytes], mark: int, commit: Commit, parent: str | None) -> None:
    stream.write(f"commit {_INCOMING}\nmark :{mark}\n".encode())
    made = f"author {author(commit.author)} {commit.date}\n"
    stream.write(made.encode("utf-8", "surrogateescape"))
    stream.write(f"committer {NOBODY} {EPOCH}\ndata {len(commit.message)}\n".encode())
    stream.write(commit.message + b"\n")
    if parent is not None:
        stream.write(f"from {parent}\n".encode())
    for path, file in commit.files.items():
        quoted = path.encode("utf-8", "surrogateescape")
        quoted = quoted.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
        if file is None:
            stream.write(b'D "%s"\n' % quoted)
            continue
        mode = b"100755" if file[1] else b"100644"
        stream.write(b'M %s inline "%s"\ndata %d\n' % (mode, quoted, len(file[0])))
        stream.write(file[0] + b"\n")
    stream.write(b"\n")
