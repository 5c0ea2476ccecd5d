"""Files of an environment in the user's editor, wherever the environment is."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path

import click

from patchq.cli.move import ground
from patchq.cli.run import Target, outcomes, run, show, told
from patchq.editing import handing, making
from patchq.errors import ExitCode, PatchqError
from patchq.report import Report


def command() -> list[str]:
    """Return the user's editor: ``$VISUAL`` or ``$EDITOR``, else vi."""
    return shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")


def open_in(files: list[str], editor: list[str] | None = None, folder: str | None = None) -> None:
    """Open files in the editor, and wait for its end; they count from `folder`.

    Raises:
        PatchqError: there is no such editor, or it failed.
    """
    words = editor or command()
    try:
        code = subprocess.run([*words, *files], check=False, cwd=folder).returncode
        why = f"it ended with {code}"
    except OSError as error:
        code, why = 1, error.strerror or str(error)
    if code:
        raise PatchqError(
            f"the editor {shlex.join(words)} failed",
            why=why,
            mend="EDITOR=nano patchq edit FILE   # or another editor that is there",
        )


def edit(target: Target, paths: tuple[str, ...]) -> int:
    """Add files to the top patch where they are not in it, edit them, and put them back."""
    (added,) = outcomes(
        target,
        lambda aim: making.add(aim, ground(False, aim), paths, None, False),
        writing=True,
    ).outcomes
    if added.error is not None:
        raise told(target, added.error)
    assert added.report is not None
    code = show(added.report, False)
    if code not in (ExitCode.DONE, ExitCode.NOTHING_TO_DO):
        return code
    with tempfile.TemporaryDirectory(prefix="patchq-edit-") as folder:
        found = outcomes(target, lambda aim: handing.look(aim, ground(False, aim), paths))
        (one,) = found.outcomes
        if one.error is not None:
            raise one.error
        assert one.report is not None
        site = str(one.report.document["site"])
        if not target.hosts:
            open_in(list(paths), folder=site)
            return _unmade(target, site, added.report)
        texts = handing.texts_of(one.report)
        places = [Path(folder, path) for path in paths]
        for path, place in zip(paths, places, strict=True):
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(texts[path] or b"")
        open_in([str(place) for place in places])
        new = {
            path: place.read_bytes()
            for path, place in zip(paths, places, strict=True)
            if place.exists() and (texts[path] or b"") != place.read_bytes()
        }
    if not new:
        click.echo("Nothing was edited", err=True)
        return ExitCode.DONE
    return run(target, lambda aim: handing.put(aim, ground(False, aim), new, texts), writing=True)


def _unmade(target: Target, site: str, added: Report) -> int:
    """Take the files out of the patch again that were to be made, and that the editor did not."""
    new = added.document.get("new")
    gone = [path for path in new if not Path(site, path).exists()] if isinstance(new, list) else []
    if not gone:
        return ExitCode.DONE
    return run(
        target, lambda aim: making.remove(aim, ground(False, aim), gone, None), writing=True
    )
