"""The verbs that look into patches and files: diff, show, annotate, patches, files, graph."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import click

from patchq.cli import attached, paging, paint, places
from patchq.cli.paths import paths_of
from patchq.cli.run import Target, run, target_of, target_options
from patchq.conversation.view import Aim
from patchq.errors import UsageError
from patchq.report import Report
from patchq.transport.channel import Conversation

Painter = Callable[[Report, Iterable[str]], Iterator[str]]


def _answer(
    target: Target,
    make: Callable[[Aim], Conversation[Report]],
    color: str = "never",
    painter: Painter | None = None,
) -> int:
    """Run a verb whose answer may be long: painted, and on a terminal through the pager."""

    def printer(report: Report) -> int:
        painted = painter is not None and paint.wanted(color)
        return paging.show(report, painter if painted else None)

    return run(target, make, record=True, printer=printer)


@click.command(
    cls=attached.Command, short_help="Show what a patch changes, or what is in no patch yet"
)
@click.argument("file", nargs=-1)
@click.option("-P", "patch", metavar="PATCH", help="An applied patch; the top one if not given.")
@click.option("-z", "pending", is_flag=True, help="Only edits that are in no patch yet.")
@click.option(
    "--combine", metavar="PATCH", help="All patches from this one on as one; - is the lowest."
)
@click.option("--snapshot", is_flag=True, help="What changed since patchq snapshot.")
@click.option("-R", "reverse", is_flag=True, help="The diff that takes it back.")
@click.option("-p", "strip", metavar="ab|0|1", help="quilt's format: a/FILE, FILE or DIR/FILE.")
@click.option("-u", "unified", is_flag=True, help="A unified diff, as ever.")
@click.option("-U", "context", metavar="N", type=click.IntRange(0), default=3, help="Context.")
@click.option("--no-index", is_flag=True, help="No Index: lines in quilt's format.")
@click.option("--no-timestamps", is_flag=True, help="No times of files: there are none ever.")
@click.option("--sort", is_flag=True, help="Files by name, not in the patch's order.")
@click.option("--stat", is_flag=True, help="How many lines of each file, instead of the diff.")
@paint.option
@target_options
def diff(file: tuple[str, ...], **values: Any) -> int:
    """Show what the top patch changes, or the patch of -P, in FILEs or all its files.

    Edits that are not refreshed yet count. The format is git's; quilt's with -p, and on a
    plain tree. On a terminal it is shown by $PATCHQ_PAGER or $PAGER.

    \b
    Examples:
      patchq diff -P 30-speculative-kimi-k2
      patchq diff -z vllm/config/speculative.py
      patchq diff --combine - --stat
      patchq diff -p ab -U 5
    """
    from patchq.conversation import differing
    from patchq.conversation.diffform import Form

    form = Form(
        strip=values.pop("strip"),
        context=values.pop("context"),
        index=not values.pop("no_index"),
        width=shutil.get_terminal_size().columns,
        reverse=values.pop("reverse"),
        sort=values.pop("sort"),
    )
    for said in ("unified", "no_timestamps"):  # what is always so
        values.pop(said)
    ask = {name: values.pop(name) for name in ("patch", "pending", "combine", "stat", "snapshot")}
    color = values.pop("color")
    target = target_of(values)
    wanted = differing.Ask(only=paths_of(target, file), **ask)
    return _answer(target, lambda aim: differing.diff(aim, wanted, form), color, paint.diff)


@click.command(cls=attached.Command, short_help="Remember a plain tree, for diff --snapshot")
@click.option("-d", "drop", is_flag=True, help="Only take the snapshot away.")
@target_options
def snapshot(drop: bool, **values: Any) -> int:
    """Remember the patched files of a plain tree as they are, for diff --snapshot.

    Patches may then be pushed and popped. There is one snapshot at a time.

    \b
    Example:
      patchq snapshot --tree .
    """
    from patchq.conversation import snapping

    target = target_of(values)
    if target.tree is None:
        raise UsageError(
            "snapshot is for plain trees",
            why="what an installed package had is known: the release, the receipts",
            mend="patchq log",
        )
    return run(target, snapping.drop if drop else snapping.take, record=True)


@click.command(cls=attached.Command, short_help="Show a patch: its place, header, sketch and diff")
@click.argument("patch", required=False)
@paint.option
@target_options
def show(patch: str | None, color: str, **values: Any) -> int:
    """Show the top patch or PATCH as the queue has it, and whether it is applied.

    The header and the sketch are indented, the diff is not: git apply and patch read it.

    \b
    Examples:
      patchq show
      patchq show 30-speculative-kimi-k2 | git apply --stat
    """
    from patchq.conversation import showing

    return _answer(target_of(values), lambda aim: showing.show(aim, patch), color, paint.diff)


@click.command(cls=attached.Command, short_help="Show which patch brought each line of a file")
@click.argument("file")
@click.option("-P", "patch", metavar="PATCH", help="The file as this patch leaves it.")
@target_options
def annotate(file: str, patch: str | None, **values: Any) -> int:
    """Show FILE, before each line the number of the patch that brought it, then the patches.

    A PATCH of the series that is not applied is put on in thought. Edits that are in no
    patch yet count to the topmost patch that has the file.

    \b
    Examples:
      patchq annotate vllm/config/speculative.py
      patchq annotate -P 20-kimi-k25-eagle3 vllm/model_executor/models/kimi_k25.py
    """
    from patchq.conversation import annotating

    target = target_of(values)
    (path,) = paths_of(target, (file,))
    return _answer(target, lambda aim: annotating.annotate(aim, path, patch))


@click.command(cls=attached.Command, short_help="Name the patches that touch a file")
@click.argument("file", nargs=-1, required=True, metavar="FILE...")
@click.option("-v", "marked", is_flag=True, help="Mark applied patches with +, the top with =.")
@paint.option
@target_options
def patches(file: tuple[str, ...], marked: bool, color: str, **values: Any) -> int:
    """Name the patches of the series, applied or not, that touch any of the FILEs.

    \b
    Examples:
      patchq patches vllm/config/speculative.py
      patchq patches -v vllm/config/speculative.py
    """
    from patchq.conversation import touching

    target = target_of(values)
    if target.tree is not None:  # no patch has a file that lies elsewhere
        root = str(places.tree(target.tree))
        file = tuple(name for name in file if os.path.abspath(name).startswith(root + os.sep))
    paths = paths_of(target, file)
    return _answer(target, lambda aim: touching.patches(aim, paths, marked), color, paint.marks)


@click.command(cls=attached.Command, short_help="Name the files that a patch touches")
@click.argument("patch", required=False)
@click.option("-a", "every", is_flag=True, help="The files of each applied patch, in turn.")
@click.option("-v", "marked", is_flag=True, help="Mark files that it makes (+) or removes (-).")
@click.option("-l", "labels", is_flag=True, help="With the patch's name.")
@click.option(
    "--combine", metavar="PATCH", help="The files of each patch from this one on; - is the lowest."
)
@target_options
def files(**values: Any) -> int:
    """Name the files that the top patch touches, or PATCH.

    \b
    Examples:
      patchq files -v 20-kimi-k25-eagle3
      patchq files -al
    """
    from patchq.conversation import touching

    names = ("patch", "every", "marked", "labels", "combine")
    ask = touching.Ask(**{name: values.pop(name) for name in names})
    return _answer(target_of(values), lambda aim: touching.files(aim, ask))


@click.command(cls=attached.Command, short_help="Draw which patches need which")
@click.argument("patch", required=False)
@click.option("--all", "every", is_flag=True, help="All applied patches.")
@click.option("--reduce", is_flag=True, help="Without what follows from other edges.")
@click.option(
    "--lines",
    "context",
    metavar="N",
    type=click.IntRange(0),
    is_flag=False,
    flag_value="2",
    help="Only where lines overlap, with N around them (2).",
)
@click.option("--edge-labels", type=click.Choice(["files"]), help="Name the files.")
@click.option("--draw", is_flag=True, help="A tree, instead of dot's language.")
@target_options
def graph(edge_labels: str | None, draw: bool, **values: Any) -> int:
    """Draw which patches the top one needs, or PATCH, and which need it.

    A patch needs the next one below it that has one of its files; with --lines it needs
    all below it whose lines overlap its own. The answer is in the language of dot(1), whose
    arrows lead to the patch that needs the other.

    \b
    Examples:
      patchq graph --all --lines | dot -Tsvg > graph.svg
      patchq graph --all --draw --edge-labels=files
    """
    from patchq.conversation import graphing

    names = ("patch", "every", "reduce", "context")
    options = {name: values.pop(name) for name in names}
    ask = graphing.Ask(**options, labels=edge_labels is not None, drawn=draw)
    return _answer(target_of(values), lambda aim: graphing.graph(aim, ask))


COMMANDS = {
    "snapshot": snapshot,
    "files": files,
    "patches": patches,
    "diff": diff,
    "show": show,
    "annotate": annotate,
    "graph": graph,
}
