"""A series for others: commits of a branch, mails that git am reads, one diff of it all."""

from __future__ import annotations

import email.header
import email.utils
import re
import shlex
from pathlib import Path

from patchq import gitbranch
from patchq.engine import cuts, diffstat, lines, patchtext
from patchq.errors import ExitCode, PatchqError
from patchq.exchange.source import Source, Tree
from patchq.model import Patch
from patchq.report import Report

# What begins a mail in a mailbox, as git-format-patch(1) writes it.
_BEGIN = b"From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\n"
# Lines of a message that would end it (mailinfo.c, patchbreak), or begin another mail.
_BREAK = re.compile(r"(?m)^(?=---|diff -|Index: |From |>+From )")
_EDITED = (
    "patchq export --git {0} -f   # replaces it; or, if the edits are to come back:"
    " patchq import --git {0}"
)


def to_git(source: Source, folder: Path, *, force: bool, dry_run: bool) -> Report:
    """Make a branch: the pristine files, then one commit for each patch.

    A folder that is no repository becomes one. The commits are the same on every machine;
    a branch that has others is replaced with `force` only.

    Raises:
        PatchqError: the branch is there and was edited, or a patch does not fit.
    """
    steps = list(source.steps())
    document = {
        "verb": "export",
        "queue": source.queue.name,
        "release": source.release,
        "branch": source.branch,
        "patches": [patch.name for patch, _, _ in steps],
    }
    if dry_run:
        line = f"Would make branch {source.branch} in {folder}: {len(steps)} patches"
        return Report((line,), (), document)
    repository, fresh = gitbranch.place(folder)
    base = _base(source, repository)
    ids = gitbranch.write(repository, base, [_commit(source, *step) for step in steps])
    tip = ids[-1] if ids else base
    document |= {"base": base, "commits": list(ids)}
    old = gitbranch.tip(repository, f"refs/heads/{source.branch}")
    if old == tip:
        said = (f"Branch {source.branch} in {folder} is up to date",)
        return Report((), said, document, ExitCode.NOTHING_TO_DO)
    _check(source, folder, repository, old, force)
    gitbranch.point(repository, source.branch, tip, old)
    if fresh:
        gitbranch.check_out(repository, source.branch)
    rows = [f"  {one[:12]} {step[0].name}" for one, step in zip(ids, steps, strict=True)]
    lines = [f"Branch {source.branch} in {folder}, on the pristine files:", *rows]
    typed = shlex.quote(str(folder))
    lines.append(f"Next: edit it (git -C {typed} rebase -i {base[:12]}), then: patchq import")
    lines[-1] += f" --git {typed}"
    return Report(tuple(lines), (), document)


def to_mails(source: Source) -> tuple[bytes, tuple[str, ...]]:
    """Return a mailbox, a mail for each patch, and what is to be said of it.

    Raises:
        ConflictError: a patch does not fit.
    """
    out, notes = [], []
    steps = list(source.steps())
    for number, (patch, before, after) in enumerate(steps, 1):
        body = _body(source, patch, before, after)
        if b"\r\n" in body:
            notes.append(f"{patch.name} has CR LF at ends of lines: git am --keep-cr reads it")
        out.append(_mail(source, patch, (number, len(steps)), body, (before, after)))
    return b"".join(out), tuple(notes)


def combined(source: Source) -> bytes:
    """Return one diff of what the whole series does.

    Raises:
        ConflictError: a patch does not fit.
    """
    first: Tree = {}
    last: Tree = {}
    for _, before, after in source.steps():
        first = {**before, **first}
        last.update(after)
    changed = [path for path in last if last[path] != first[path]]
    return patchtext.patch(
        b"", {path: first[path] for path in changed}, {path: last[path] for path in changed}, {}
    )


def _commit(source: Source, patch: Patch, before: Tree, after: Tree) -> gitbranch.Commit:
    """Return a patch as a commit."""
    message = source.message(patch)
    return gitbranch.Commit(
        message.commit(patch.name),
        gitbranch.author(message.author),
        message.raw_date or gitbranch.EPOCH,
        {path: file for path, file in after.items() if file != before[path]},
    )


def _base(source: Source, repository: Path) -> str:
    """Return the commit of the pristine files, in the repository."""
    base = source.base
    if base.repository is not None:
        return gitbranch.receive(repository, base.repository, base.reference)
    files = {path: (data, executable) for path, data, executable in base.files()}
    message = lines.encode(f"Files of {source.title} below its patches\n")
    one = gitbranch.Commit(message, gitbranch.NOBODY, gitbranch.EPOCH, files)
    return gitbranch.write(repository, None, [one])[0]


def _check(source: Source, folder: Path, repository: Path, old: str | None, force: bool) -> None:
    """Raise where a branch must not be moved."""
    if old is not None and not force:
        raise PatchqError(
            f"branch {source.branch} in {folder} has other commits",
            why="it was edited there, or the series here, since it was exported",
            mend=_EDITED.format(shlex.quote(str(folder))),
        )
    if old is not None and gitbranch.checked_out(repository, source.branch):
        raise PatchqError(
            f"branch {source.branch} is checked out in {folder}",
            why="its files there would not be those of the branch any more",
            mend=f"git -C {shlex.quote(str(folder))} switch --detach",
        )


def _body(source: Source, patch: Patch, before: Tree, after: Tree) -> bytes:
    """Return a patch's diffs as git am takes them: with -p1, forward, at their exact places."""
    if source.search or patch.strip != 1 or patch.reverse:
        return patchtext.patch(b"", before, after, {})
    rows = lines.split(patch.text[len(patch.header) :])
    found = cuts.cut(rows, source=patch.name)
    return b"".join(rows[: found[-1].last]) if found else b""


def _mail(
    source: Source,
    patch: Patch,
    number: tuple[int, int],
    body: bytes,
    files: tuple[Tree, Tree],
) -> bytes:
    message = source.message(patch)
    author = gitbranch.author(message.author)
    name, mail = author.rsplit(" <", 1)
    sender = f"{_word(name)} <{mail}" if name else f"<{mail}"
    seconds = int((message.raw_date or gitbranch.EPOCH).split()[0])
    date = message.date if message.raw_date else email.utils.formatdate(seconds)
    count = f" {number[0]}/{number[1]}" if number[1] > 1 else ""
    head = f"From: {sender}\nDate: {date}\nSubject: {_word(f'[PATCH{count}] {message.subject}')}\n"
    kind = "MIME-Version: 1.0\nContent-Type: text/plain; charset=UTF-8\n"
    text = message.text.partition("\n")[2].lstrip("\n")
    text = _BREAK.sub(" ", f"\n{text}" if text else "\n")
    counts = [
        diffstat.count(path, (files[0][path] or (None,))[0], (file or (None,))[0])
        for path, file in files[1].items()
    ]
    stat = "".join(f"{row}\n" for row in diffstat.drawn(counts))
    whole = f"{head}{kind}Content-Transfer-Encoding: 8bit\n{text}---\n{stat}\n"
    return _BEGIN + lines.encode(whole) + body + b"-- \npatchq\n\n"


def _word(text: str) -> str:
    """Return a field of a mail's header; what is not ASCII is encoded, as RFC 2047 has it."""
    text = text.encode("utf-8", "replace").decode()
    if text.isascii():
        return text
    return email.header.Header(text, "utf-8", maxlinelen=10_000).encode()
