"""The verb that runs any command on a patch's files: shell."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from patchq.cli import places
from patchq.cli.making import one
from patchq.cli.move import dry_run, ground
from patchq.cli.plain import plain, put
from patchq.cli.run import Target, outcomes, show, target_options, told
from patchq.cli.scratch import Scratch
from patchq.editing import shelling
from patchq.errors import ExitCode, PatchqError, UsageError
from patchq.outcome import Run
from patchq.report import Report


@click.command(
    short_help="Run a command; what it changes goes into the top patch",
    context_settings={"allow_interspersed_args": False},
)
@click.argument("command", nargs=-1, metavar="[CMD]...")
@dry_run
@target_options
def shell(command: tuple[str, ...], dry_run: bool, **values: Any) -> int:
    """Run CMD, else $SHELL, in a copy of the text files; its changes go into the top patch.

    What CMD changed, made or removed in the copy goes live at once, and the patch is refreshed.
    No file need be added before. The command sees PATCHQ_PATCH, PATCHQ_QUEUE, PATCHQ_RELEASE
    and PATCHQ_SITE, where the files are live. From a host the files are brought here. With -n
    it is only said what would change.

    Options of patchq stand before CMD. A CMD that fails gives its own exit code; what
    it changed is kept, as with quilt.

    \b
    Examples:
      patchq shell sed -i 's/eagle/eagle3/' vllm/config/speculative.py
      patchq shell --queue mine ruff check --fix vllm/v1
      patchq shell -H gpu01
    """
    target = one(values)
    folder = Path(tempfile.mkdtemp(prefix="patchq-shell-"))
    copy = Scratch(folder, shelling.is_text)
    with contextlib.ExitStack() as unused:  # until the command has ended nothing was made there
        unused.callback(shutil.rmtree, folder, ignore_errors=True)
        about = _brought(target, copy, dry_run)
        code = _ran(command, _start(target, copy.folder, about), about, target, copy.folder)
        unused.pop_all()
    try:
        report = _taken(target, copy, dry_run)
    except PatchqError as error:
        error.why += f"; what {_called(command)} made is in {folder}"
        raise
    shutil.rmtree(folder, ignore_errors=True)
    return _told(target, report, command, code)


def _brought(target: Target, copy: Scratch, dry: bool) -> dict[str, str]:
    """Fill the copy; return what is known of the patch. A run that was cut short is recovered."""
    done = outcomes(
        target, lambda aim: shelling.bring(aim, ground(dry, aim), copy.put), writing=True
    )
    report = _only(target, done)
    for note in report.notes:
        click.echo(plain(note), err=True)
    if target.tree is not None:
        root = places.tree(target.tree)
        copy.copy(root, places.tree_queue(root).releases[0])
    return {name: str(value) for name, value in report.document.items()}


def _only(target: Target, done: Run) -> Report:
    (found,) = done.outcomes
    for note in done.notes:
        click.echo(plain(note), err=True)
    if found.error is not None:
        if done.interrupted:
            found.error.exit_code = ExitCode.INTERRUPTED
        raise told(target, found.error)
    assert found.report is not None
    return found.report


def _start(target: Target, copy: Path, about: Mapping[str, str]) -> Path:
    """Return where a command starts: in the folder that is the copy of the working one."""
    here, site = Path.cwd(), Path(about["site"])
    if not target.hosts and here.is_relative_to(site):
        inside = copy / here.relative_to(site)
        if inside.is_dir():
            return inside
    return copy


def _ran(
    command: Sequence[str], start: Path, about: Mapping[str, str], target: Target, copy: Path
) -> int:
    """Run a command, or the user's shell, to its end; return its exit code.

    Raises:
        UsageError: it can not be started.
    """
    environ = {
        **os.environ,
        "PATCHQ_PATCH": about["patch"],
        "PATCHQ_QUEUE": about["queue"],
        "PATCHQ_RELEASE": about["release"],
        "PATCHQ_SITE": about["site"],
    }
    words = list(command) or [os.environ.get("SHELL") or "/bin/sh"]
    if not command:
        # Shells that take their prompt from the environment, and Debian's rule for the others.
        environ["PS1"] = f"({about['patch']}) $ "
        environ["debian_chroot"] = about["patch"]
        click.echo(
            f"A copy of the files is in {copy}; what changes there goes into {about['patch']}"
            " when this shell ends",
            err=True,
        )
    # ^C is the command's: patchq waits for its end.
    kept = signal.signal(signal.SIGINT, lambda *_: None)
    out = sys.stderr if target.as_json else None
    try:
        code = subprocess.run(words, cwd=start, env=environ, stdout=out, check=False).returncode
    except OSError as error:
        raise UsageError(
            f"{shlex.join(words)} can not be run",
            why=error.strerror or str(error),
            mend="patchq shell CMD...   # one that is on PATH; sh -c '...' for a line of shell",
        ) from error
    finally:
        signal.signal(signal.SIGINT, kept)
    return 128 - code if code < 0 else code


def _taken(target: Target, copy: Scratch, dry: bool) -> Report:
    new = copy.changed()
    notes = tuple(f"File {path} is left out: it is no text" for path in copy.left)
    if not new:
        document = {"verb": "shell", "files": []}
        return Report((), (*notes, "Nothing was changed"), document)
    old = {path: copy.initial(path) for path in new}
    done = outcomes(
        target, lambda aim: shelling.take(aim, ground(dry, aim), new, old), writing=True
    )
    report = _only(target, done)
    return replace(report, notes=(*notes, *report.notes))


def _told(target: Target, report: Report, command: Sequence[str], code: int) -> int:
    """Show what became of it; the command's own failure is the exit code."""
    if target.as_json:
        document = {**report.to_json(), "command": list(command), "exit_code": code}
        put(json.dumps(document, indent=1))
        return code
    if code and report.document["files"] and command:
        note = f"{_called(command)} ended with {code}; what it changed is kept"
        report = replace(report, notes=(*report.notes, note))
    show(report, False)
    return code


def _called(command: Sequence[str]) -> str:
    return shlex.join(command[:1]) if command else "the shell"


COMMANDS: dict[str, Any] = {"shell": shell}
