"""Which distribution a new queue is for: one that is installed in the environment."""

from __future__ import annotations

import shlex
from pathlib import Path

from patchq import standing
from patchq.conversation import look, view
from patchq.errors import UsageError
from patchq.queue import beginning
from patchq.report import Report
from patchq.transport.channel import Conversation


def init(
    aim: view.Aim, folder: Path, distribution: str | None, dry_run: bool, options: str
) -> Conversation[Report]:
    """Make a queue for an installed distribution: the one of its own name if none is named.

    `options` are those that mean the environment, for the command that comes next.

    Raises:
        UsageError: the distribution is not installed.
        PatchqError: the queue is there already, or can not be written.
    """
    name = distribution or folder.name
    survey, _ = yield from look.survey(aim, name, (), view.Want())
    if survey.installed is None:
        mend = f"patchq init {folder.name} --distribution NAME"
        if distribution:
            mend = f"pip install {name}   # or name its environment: --python, --target, -H"
        raise UsageError(
            f"{name} is not installed in {survey.site}",
            why="a queue holds the patches of one installed distribution",
            mend=mend,
        )
    have = survey.installed
    version = standing.public(have.version)
    document = {
        "verb": "init",
        "queue": folder.name,
        "folder": str(folder),
        "distribution": have.name,
        "release": version,
    }
    if dry_run:
        return Report((f"Would make queue {folder.name} for {have.name}",), (), document)
    files = beginning.make(folder, have.name, f"Patches for {have.name}")
    lines = (
        f"Queue {folder.name} for {have.name} {have.version} is in {folder}: {', '.join(files)}",
        f"Next: patchq new NAME.patch --queue {folder}{options}",
    )
    notes = (f"To take it back: rm -r {shlex.quote(str(folder))}",)
    return Report(lines, notes, {**document, "files": list(files)})
