"""The verbs that follow upstream."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from patchq.cli import places, run
from patchq.report import Report


@click.command(short_help="Read a release's pristine text from the index")
@click.argument("release", metavar="NAME==VERSION|WHEEL")
@click.option("--into", metavar="DIR", help="Lay the text out as a --target folder, too.")
@click.option("--full", is_flag=True, help="Read the whole wheel and check the index's digest.")
@run.json_option
def fetch(release: str, into: str | None, full: bool, as_json: bool) -> int:
    """Read a release's pristine text from the index, or from a wheel file.

    Only the wheel's directory and its text files are read, by range requests;
    each is checked against the wheel's RECORD. The index, certificates and
    proxies are pip's.

    \b
    Examples:
      patchq fetch vllm==0.16.0
      patchq fetch ./vllm-0.16.0-cp38-abi3-manylinux_2_31_x86_64.whl --into /tmp/tree
    """
    from patchq.releases import fetch as fetching
    from patchq.releases import layout
    from patchq.releases.store import Store

    root = places.cache() / "releases"
    with _progress(full, quiet=as_json) as progress:
        done = fetching.fetch(release, cache=root, full=full, progress=progress)
    lines = [f"{done.distribution} {done.release}: {_how(done)}"]
    document: dict[str, Any] = {
        "verb": "fetch",
        "distribution": done.distribution,
        "release": done.release,
        "tree": done.tree,
        "files": done.files,
        "wheel": done.wheel,
        "wheel_size": done.wheel_size,
        "bytes_read": done.bytes_read,
        "requests": done.requests,
        "verified": done.verified,
        "already": done.already,
    }
    if into is not None:
        target = Path(into).absolute()
        with Store(done.distribution, root) as store:
            count = layout.lay_out(store, done.release, target)
        lines.append(f"{count} files laid out in {target}")
        document |= {"into": str(target), "laid_out": count}
    return run.show(Report(tuple(lines), done.notes, document), as_json)


def _how(done: Any) -> str:
    if done.already:
        return f"{done.files} text files are here already (tree {done.tree[:12]})"
    share = ""
    if done.requests == 0:
        return (
            f"{done.files} text files from {done.wheel}\n  tree {done.tree[:12]}; {_against(done)}"
        )
    if done.wheel_size and done.bytes_read < done.wheel_size:
        percent = 100 * done.bytes_read / done.wheel_size
        share = f" ({percent:.1f} % of the wheel's {_mb(done.wheel_size)})"
    return (
        f"{done.files} text files, {_mb(done.bytes_read)} in {done.requests} requests{share}\n"
        f"  tree {done.tree[:12]}; {_against(done)}"
    )


def _against(done: Any) -> str:
    return {
        "record": "each file equals the wheel's own RECORD, which proves consistency, not origin",
        "wheel": "the whole wheel equals the index's digest",
    }[done.verified]


def _mb(count: int) -> str:
    return f"{count / 1e6:.1f} MB"


@contextmanager
def _progress(full: bool, *, quiet: bool) -> Iterator[Callable[[int, int | None], None]]:
    """Give a callback for whole downloads: a bar on a terminal, else one line."""
    why = "as asked" if full else "the server has no ranges"
    if quiet or not sys.stderr.isatty():
        said = False

        def once(done: int, total: int | None) -> None:
            nonlocal said
            if not said:
                size = f" of {_mb(total)}" if total else ""
                click.echo(f"Downloading the whole wheel{size}: {why}.", err=True)
                said = True

        yield once
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn(f"the whole wheel ({why})"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@click.command(short_help="Carry a series to another release")
@click.option("--onto", metavar="RELEASE", help="The release to carry it to.")
@click.option("--from", "source", metavar="RELEASE", help="Whose series; the nearest older one.")
@click.option("--queue", metavar="QUEUE", help="A queue's name or folder.")
@click.option("--continue", "go_on", is_flag=True, help="Judge the work tree, and go on.")
@click.option("--skip", is_flag=True, help="Leave the patch that waits out, and go on.")
@click.option("--abort", is_flag=True, help="Forget the rebase; the queue is as it was.")
@click.option("--quit", "leave", is_flag=True, help="Forget it, and leave the work tree.")
@click.option("--show-current-patch", "show", is_flag=True, help="Show the patch that waits.")
@click.option("-n", "--dry-run", "dry", is_flag=True, help="Say what would come, write nothing.")
@click.option(
    "-f", "--force", is_flag=True, help="Replace a series; with --continue: in spite of faults."
)
@run.json_option
def rebase(as_json: bool, **asked: Any) -> int:
    """Carry a series to another release, without touching any environment.

    Each patch is merged into the release's pristine text, judged there, and shown where it is
    not the same. One that upstream has is left out, with what proves it. Where a merge is not
    forced the rebase waits, with the files in a work tree, and exit code 3. Nothing is in the
    queue before all is done. What you resolve is remembered.

    \b
    Examples:
      patchq rebase --onto 0.17.0
      patchq rebase --continue
    """
    from patchq.cli import rebasing

    return rebasing.rebase(as_json=as_json, **asked)


@click.command("range-diff", short_help="Show how the series of two releases differ")
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
@click.option("--queue", metavar="QUEUE", help="A queue's name or folder.")
@run.json_option
def range_diff(old: str, new: str, queue: str | None, as_json: bool) -> int:
    """Show how the series of two releases differ, patch by patch, as a diff of diffs.

    A patch is marked = where both are equal but for line numbers, ! where they differ, < where
    only the old series has it, > where only the new one has.

    \b
    Examples:
      patchq range-diff 0.16.0 0.17.0
    """
    from patchq.rebase import rangediff

    return run.show(rangediff.compare(places.one_queue(queue, "range-diff"), old, new), as_json)


@click.command(short_help="Say what each patch would meet on many releases")
@click.argument("distribution", metavar="DIST")
@click.argument("specifier", metavar="SPEC")
@click.option("--queue", metavar="QUEUE", help="A queue's name or folder.")
@click.option("-v", "--verbose", is_flag=True, help="Say why, below the table.")
@run.json_option
def forecast(as_json: bool, **asked: Any) -> int:
    """Say what each patch would meet on every release that SPEC (PEP 440) allows.

    The releases are read from the index by ranges, and judged as a rebase would: exact, moved,
    merged, structural, conflict, upstream, file gone, or not needed. Nothing is changed.

    \b
    Examples:
      patchq forecast vllm '>=0.15'
      patchq forecast vllm '>=0.16,<0.19' -v
    """
    from patchq.cli import forecasting

    return forecasting.forecast(as_json=as_json, **asked)


COMMANDS: dict[str, Any] = {
    "fetch": fetch,
    "forecast": forecast,
    "range-diff": range_diff,
    "rebase": rebase,
}
