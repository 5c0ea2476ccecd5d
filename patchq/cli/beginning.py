"""The verb that makes a queue: init."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from patchq.cli.making import one
from patchq.cli.move import dry_run
from patchq.cli.run import run, show
from patchq.cli.target import Target, target_options
from patchq.errors import UsageError
from patchq.report import Report


@click.command(short_help="Make a queue for an installed distribution")
@click.argument("name", required=False)
@click.option("--distribution", metavar="D", help="What pip installs; NAME if not given.")
@dry_run
@target_options
def init(name: str | None, distribution: str | None, dry_run: bool, **values: Any) -> int:
    """Make the queue queues/NAME below the working folder, for an installed distribution.

    It gets queue.toml, post/ for sketches, and .gitattributes, so that git changes no line
    end of a patch. The folder of a release comes with the first patch. With --tree DIR: make
    quilt's folder of patches in DIR.

    \b
    Examples:
      patchq init my-fixes --distribution vllm
      patchq init --tree .
    """
    target = one(values)
    if target.tree is not None:
        return _tree(target, name or distribution, dry_run)
    called = _called(target, name or distribution)
    from patchq.editing import beginning

    folder = Path.cwd() / "queues" / called
    host = target.hosts[0] if target.hosts else ""
    options = target.aimed("patchq VERB", host).removeprefix("patchq VERB")
    return run(
        target,
        lambda aim: beginning.init(
            replace(aim, queues=()), folder, distribution, dry_run, options
        ),
        record=True,
    )


def _called(target: Target, called: str | None) -> str:
    """Return the name of a queue that can be made."""
    if called is None:
        raise UsageError(
            "init needs the name of a queue, or of a distribution",
            why="the queue is made for one installed distribution",
            mend="patchq init my-fixes --distribution vllm",
        )
    if Path(called).name != called or called.startswith(".") or not called.strip():
        raise UsageError(
            f"a queue can not be called {called}",
            why="the name is that of a folder in queues/ below the working folder",
            mend=f"patchq init {Path(called).name.strip('. ') or 'my-fixes'}",
        )
    if target.queue is not None:
        raise UsageError(
            f"init and --queue {target.queue} do not go together",
            why="it makes a queue in queues/ below the working folder",
            mend=f"patchq init {called}",
        )
    return called


def _tree(target: Target, named: str | None, dry_run: bool) -> int:
    """Make the folder of patches of a plain tree; no record of patchq's is needed."""
    from patchq.queue import beginning

    assert target.tree is not None
    root = Path(target.tree).absolute()
    if named is not None:
        raise UsageError(
            f"{named} and --tree do not go together",
            why="the queue of a plain tree has no name",
            mend=f"patchq init --tree {target.tree}",
        )
    if not root.is_dir():
        raise UsageError(
            f"--tree {target.tree} is not a folder",
            why="it must be a folder of files to patch",
            mend="patchq init --tree .",
        )
    folder = root / os.environ.get("QUILT_PATCHES", "patches")
    document = {"verb": "init", "folder": str(folder)}
    if dry_run:
        return show(Report((f"Would make {folder}",), (), document), target.as_json)
    beginning.make_tree(folder)
    lines = (
        f"{folder} is made",
        f"Next: patchq new NAME.patch --tree {target.tree}",
    )
    return show(Report(lines, (), document), target.as_json)


COMMANDS: dict[str, Any] = {"init": init}
