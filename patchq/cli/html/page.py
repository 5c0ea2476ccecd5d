"""One page of HTML that needs nothing else: a table of words, and why each cell says so.

Style and script are in the page, and its policy lets nothing else in: what a patch or a
host says is text, and stays text. Without scripts the table is whole and every reason is
a click away; with them it can be sorted and filtered. The only door to jinja2.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import jinja2
from markupsafe import Markup

from patchq import __version__
from patchq.cli import destination
from patchq.cli.plain import plain

_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Look:
    """How a word is shown: a symbol and a colour that repeats it; `rank` 0 is worst.

    `tone` is one of: bad, look, changed, good, done, none.
    """

    symbol: str
    tone: str
    rank: int
    meaning: str


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: plain text, or a word with its `look`, and `why` names what a click shows.

    `order` sorts where the text does not; `marked`: the word is to be reviewed; `note` is
    a little more beside it.
    """

    text: str
    look: Look | None = None
    why: str = ""
    marked: bool = False
    order: int | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a reason: sentences under a heading, or a diff."""

    heading: str
    sentences: tuple[str, ...] = ()
    diff: str = ""


@dataclass(frozen=True, slots=True)
class Why:
    """What a click on a cell shows."""

    name: str
    title: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """A report: the first cell of a row is its name. `review` says what a mark means.

    `deep`: rows are found by the text of their reasons, too.
    """

    title: str
    lead: str
    headings: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    whys: tuple[Why, ...]
    notes: tuple[str, ...] = ()
    review: str = ""
    deep: bool = False

    @property
    def words(self) -> list[tuple[str, Look, int]]:
        """Each word of the table, worst first, and how many rows have it."""
        found: dict[str, tuple[Look, int]] = {}
        for row in self.rows:
            for text, look in {cell.text: cell.look for cell in row if cell.look}.items():
                _, count = found.get(text, (look, 0))
                found[text] = look, count + 1
        each = [(word, look, count) for word, (look, count) in found.items()]
        return sorted(each, key=lambda one: one[1].rank)

    @property
    def marks(self) -> int:
        """How many rows have a cell that is to be reviewed."""
        return sum(any(cell.marked for cell in row) for row in self.rows)


def render(page: Page, made: datetime) -> str:
    """Return the page as HTML; `made` is when, in UTC."""
    environment = jinja2.Environment(
        autoescape=True,
        finalize=_shown,
        loader=jinja2.FileSystemLoader(_HERE),
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    style, script = (Markup((_HERE / f"page.{kind}").read_text()) for kind in ("css", "js"))
    return environment.get_template("page.html").render(
        page=page,
        made=made.strftime("%Y-%m-%d %H:%M UTC"),
        version=__version__,
        style=style,
        script=script,
        policy=_policy(style, script),
    )


def _shown(value: object) -> object:
    """Return what an expression of the template puts in: controls are shown, not sent."""
    return plain(value) if type(value) is str else value


def _policy(*inline: str) -> str:
    """Return a Content-Security-Policy that lets the page's own style and script in, no more."""
    hashes = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in inline)
    style, script = (f"'sha256-{one}'" for one in hashes)
    return f"default-src 'none'; style-src {style}; script-src {script}; base-uri 'none'"


def write(path: Path, page: Page) -> None:
    """Write a page, whole or not at all.

    Raises:
        PatchqError: it could not be written.
    """
    destination.write(path, render(page, datetime.now(UTC)))


def parts(named: Iterable[tuple[str, Iterable[str]]]) -> tuple[Part, ...]:
    """Return a part for each heading that has sentences."""
    found = ((heading, tuple(sentences)) for heading, sentences in named)
    return tuple(Part(heading, sentences) for heading, sentences in found if sentences)
