"""The verbs that follow upstream."""

from __future__ import annotations

from typing import Any

import click

from patchq.cli import fetching, places, run


@click.command(short_help="Read a release's pristine text from the index")
@click.argument("release", metavar="NAME[==VERSION]|FILE")
@click.option("--into", metavar="DIR", help="Lay the text out as a --target folder, too.")
@click.option("--full", is_flag=True, help="Read the whole wheel and check the index's digest.")
@fetching.source_options
@run.json_option
def fetch(release: str, into: str | None, full: bool, **values: Any) -> int:
    """Read a release's pristine text from the index, or from a wheel file.

    Only the wheel's directory and its text files are read, by range requests;
    each is checked against the wheel's RECORD. The index, certificates and
    proxies are pip's. Where there is only a source distribution, its text is read
    as far as its setup files say plainly where a build puts it; none is built.

    With --from-host, --python or --target it is read from where it is installed: a
    nightly or local build that no index keeps. Every file must be what RECORD
    there says, and no patch may be on; it proves no more than that.

    \b
    Examples:
      patchq fetch vllm==0.16.0
      patchq fetch ./vllm-0.16.0-cp38-abi3-manylinux_2_31_x86_64.whl --into /tmp/tree
      patchq fetch vllm --from-host gpu01
    """
    return fetching.fetch(release, into, full, values)


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
@click.option(
    "--html", metavar="FILE", help="Write it as a page, too: a click on a word says why."
)
@run.json_option
def forecast(as_json: bool, **asked: Any) -> int:
    """Say what each patch would meet on every release that SPEC (PEP 440) allows.

    The releases are read from the index by ranges, and judged as a rebase would: exact, moved,
    merged, structural, conflict, upstream, file gone, or not needed. Nothing is changed.

    \b
    Examples:
      patchq forecast vllm '>=0.15'
      patchq forecast vllm '>=0.16,<0.19' -v
      patchq forecast vllm '>=0.15' --html forecast.html
    """
    from patchq.cli import forecasting

    return forecasting.forecast(as_json=as_json, **asked)


COMMANDS: dict[str, Any] = {
    "fetch": fetch,
    "forecast": forecast,
    "range-diff": range_diff,
    "rebase": rebase,
}
