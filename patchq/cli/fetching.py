"""`patchq fetch`: from the index, a wheel file, or where it is installed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from patchq.cli import places, reaching, run
from patchq.errors import UsageError
from patchq.report import Report

F = TypeVar("F", bound=Callable[..., Any])


def source_options(function: F) -> F:
    """Add the options that name an environment to take the text from."""
    named = (
        click.option(
            "--from-host", metavar="HOST", help="Take it from where it is installed on HOST."
        ),
        click.option("--python", metavar="PATH", help="Take it from this interpreter's packages."),
        click.option("--target", metavar="DIR", help="Take it from a folder of packages."),
    )
    for option in reversed((*named, *reaching.OPTIONS)):
        function = option(function)
    return function


def fetch(release: str, into: str | None, full: bool, values: dict[str, Any]) -> int:
    """Read a release into the store, and lay it out where that is asked for."""
    host = values.pop("from_host")
    values |= {"host": () if host is None else (host,), "queue": None, "tree": None}
    target = run.target_of(values)
    if target.hosts or target.python or target.target:
        report = _taken(target, release, full)
    else:
        report = _fetched(release, full, quiet=target.as_json)
    document = dict(report.document)
    lines = [f"{document['distribution']} {document['release']}: {_how(document)}"]
    if into is not None:
        count = _laid_out(document, Path(into).absolute())
        lines.append(f"{count} files laid out in {Path(into).absolute()}")
        document |= {"into": str(Path(into).absolute()), "laid_out": count}
    return run.show(Report(tuple(lines), report.notes, document), target.as_json)


def _fetched(release: str, full: bool, *, quiet: bool) -> Report:
    from patchq.releases import fetch as fetching

    with _progress(full, quiet=quiet) as progress:
        done = fetching.fetch(
            release, cache=places.cache() / "releases", full=full, progress=progress
        )
    return Report((), done.notes, {"verb": "fetch", **done.to_json()})


def _taken(target: run.Target, name: str, full: bool) -> Report:
    """Take the text from where it is installed.

    Raises:
        UsageError: what is asked for is not one distribution of one environment.
    """
    from patchq.conversation import origin

    if full or target.several or not _is_bare(name):
        raise UsageError(
            "an environment has one version of a distribution, and no wheel of it",
            why="--full is about a wheel"
            if full
            else "more than one host is named"
            if target.several
            else f"{name!r} is not the bare name of a distribution",
            mend="patchq fetch NAME --from-host HOST",
        )
    host = target.hosts[0] if target.hosts else ""
    done = run.outcomes(target, lambda aim: origin.take(aim, name, host), record=True)
    (one,) = done.outcomes
    if one.error is not None:
        raise one.error
    assert one.report is not None
    return one.report


def _is_bare(name: str) -> bool:
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        return Requirement(name).name == name
    except InvalidRequirement:
        return False


def _laid_out(document: Mapping[str, Any], target: Path) -> int:
    from patchq.releases import layout
    from patchq.releases.store import Store

    with Store(document["distribution"], places.cache() / "releases") as store:
        return layout.lay_out(store, document["release"], target)


def _how(done: Mapping[str, Any]) -> str:
    count, tree = f"{done['files']} text files", f"tree {done['tree'][:12]}"
    if done["already"]:
        of = f"; {_against(done)}" if done["verified"] in ("host", "sdist") else ""
        return f"{count} are here already ({tree}){of}"
    read, size = done["bytes_read"], done["wheel_size"]
    if done["requests"] == 0 or done["origin"]:
        return f"{count} from {done['wheel']}\n  {tree}; {_against(done)}"
    share = ""
    if size and read < size:
        share = f" ({100 * read / size:.1f} % of the wheel's {_mb(size)})"
    return (
        f"{count}, {_mb(read)} in {done['requests']} requests{share}\n  {tree}; {_against(done)}"
    )


def _against(done: Mapping[str, Any]) -> str:
    return {
        "record": "each file equals the wheel's own RECORD, which proves consistency, not origin",
        "wheel": "the whole wheel equals the index's digest",
        "sdist": "the text is as in the source distribution; a build may differ",
        "host": f"each file equals {done['origin']}, which proves consistency there, not origin",
    }[done["verified"]]


def _mb(count: int) -> str:
    return f"{count / 1e6:.1f} MB"


@contextmanager
def _progress(full: bool, *, quiet: bool) -> Iterator[Callable[[int, int | None], None]]:
    """Give a callback for whole downloads: a bar on a terminal, else one line."""
    why = "as asked" if full else "it cannot be read in part"
    if quiet or not sys.stderr.isatty():
        said = False

        def once(done: int, total: int | None) -> None:
            nonlocal said
            if not said:
                size = f" of {_mb(total)}" if total else ""
                click.echo(f"Downloading the whole file{size}: {why}.", err=True)
                said = True

        yield once
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn(f"the whole file ({why})"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
