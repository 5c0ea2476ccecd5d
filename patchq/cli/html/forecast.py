"""`forecast --html`: releases down, patches across, one word a cell, and why."""

from __future__ import annotations

from collections.abc import Sequence

from patchq.cli.html.page import Cell, Look, Page, Part, Why, parts
from patchq.rebase.forecast import Column
from patchq.rebase.step import Step, Word

LOOKS = {
    Word.CONFLICT: Look("✗", "bad", 0, "two changes meet, or what was merged is wrong"),
    Word.GONE: Look("∅", "bad", 1, "the file is not there any more"),
    Word.STRUCTURAL: Look("◆", "look", 3, "the lines conflict; merged by what the code says"),
    Word.MERGED: Look("≈", "changed", 4, "merged by lines: context around the hunks changed"),
    Word.REMEMBERED: Look("↻", "changed", 5, "a resolution that was made before fits here"),
    Word.RESOLVED: Look("✎", "changed", 6, "somebody said what is right"),
    Word.MOVED: Look("↕", "good", 7, "every hunk fits elsewhere; only line numbers differ"),
    Word.EXACT: Look("=", "good", 8, "every hunk is where it was"),
    Word.UPSTREAM: Look("↑", "done", 9, "the release has what the patch is for"),
    Word.UNNEEDED: Look("○", "none", 10, "queue.toml says that this release does not need it"),
    Word.SKIPPED: Look("»", "none", 11, "somebody left it out"),
}
_FAILED = Look("!", "bad", 2, "the release could not be read or judged")
_NONE = Look("·", "none", 12, "the series that was carried has no such patch")


def page(
    queue: str, distribution: str, specifier: str, columns: Sequence[Column], notes: Sequence[str]
) -> Page:
    """Return the forecast as a page; a column of the forecast is a row here."""
    patches = tuple(dict.fromkeys(step.name for one in columns for step in one.steps)) or ("",)
    rows, whys = [], []
    for at, column in enumerate(columns):
        row = [Cell(column.release, order=at), Cell(column.source or "-")]
        for number, patch in enumerate(patches):
            cell, why = _cell(f"why-{at}-{number}", column, patch)
            row.append(cell)
            whys.append(why)
        rows.append(tuple(row))
    return Page(
        f"Forecast of {queue} for {distribution} {specifier}",
        "What each patch would meet where its series is carried to a release. A click on a word "
        "says why. Nothing was changed.",
        ("release", "series from", *(name.removesuffix(".patch") for name in patches)),
        tuple(rows),
        tuple(whys),
        tuple(notes),
        "to be reviewed: the merge had a choice",
    )


def _cell(name: str, column: Column, patch: str) -> tuple[Cell, Why]:
    """Return what one patch meets on one release, and why."""
    step = next((one for one in column.steps if one.name == patch), None)
    if column.failed:
        word, look, found = "failed", _FAILED, parts((("Why", (column.failed,)),))
    elif step is None:
        said = f"the series for {column.source} has no {patch}"
        word, look, found = "no patch", _NONE, parts((("Why", (said,)),))
    else:
        word, look, found = step.word.value, LOOKS[step.word], _parts(column, step)
    marked = step is not None and bool(step.flags)
    title = f"{patch} on {column.release}: {word}".removeprefix(" on ")
    return Cell(word, look, name, marked), Why(name, title, found)


def _parts(column: Column, step: Step) -> tuple[Part, ...]:
    """Return all that the forecast has of one patch."""
    said = f"carried from the series for {column.source}: {LOOKS[step.word].meaning}"
    found = parts(
        (
            ("What it means", (said,)),
            ("Detail", (step.detail,) if step.detail else ()),
            ("Proof", step.proofs),
            ("Why it is a conflict", step.reasons),
            ("To be reviewed", step.flags),
            ("Not asked by its sketch", step.unasked),
            ("Upstream since", (step.since,) if step.since else ()),
        )
    )
    if not step.changed:
        return found
    heading = "How the new patch differs from the old one"
    return (*found, Part(heading, diff=step.changed.removesuffix("\n")))
