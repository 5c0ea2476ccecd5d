"""What an index or a folder of wheels offers: pages read into candidates.

Pages are those of PEP 503 (HTML) and PEP 691 (JSON), at ``http(s):`` and ``file:`` URLs
and, for find-links, plain paths. pypi-simple would bring requests and
beautifulsoup4, a second HTTP stack, for the hundred lines below.
"""

from __future__ import annotations

import html.parser
import json
import os
import urllib.parse
import urllib.request
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from packaging.tags import Tag
from packaging.utils import (
    BuildTag,
    InvalidSdistFilename,
    InvalidWheelFilename,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import Version

from patchq.errors import PatchqError
from patchq.releases.index import AbsentError, ReadError, Session, shown
from patchq.releases.settings import Settings

_ACCEPT = (
    "application/vnd.pypi.simple.v1+json, "
    "application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
)
SDIST = ".tar.gz"
_LIMIT = 1 << 27
# What a page that is none makes json, html.parser and urllib raise.
_NO_PAGE = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    AssertionError,
    RecursionError,
)


class PageError(PatchqError):
    """A page of an index is not what the packaging specifications say."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One wheel that could be read; `page` is where its link was found.

    A source distribution has no tags; its name is given as PEP 625 has it.
    """

    filename: str
    url: str
    distribution: str
    version: Version
    build: BuildTag
    tags: frozenset[Tag]
    sha256: str | None = None
    requires_python: str | None = None
    yanked: str | None = None
    page: str | None = None

    @property
    def release(self) -> str:
        """The name of the wheel's release: version, and build tag where it has one."""
        build = "".join(map(str, self.build))
        return f"{self.version}-{build}" if build else str(self.version)

    @property
    def local(self) -> Path | None:
        """The wheel's file, None where it is on a server."""
        return local(self.url)


def candidates(
    session: Session, settings: Settings, distribution: str
) -> tuple[tuple[Candidate, ...], tuple[str, ...]]:
    """Return what there is of a distribution, in pip's order of places, and what failed.

    A place that cannot be read is passed over, as pip does, and said in the second tuple.
    """
    pages = [_url(link) for link in settings.find_links]
    pages += [f"{_url(index).rstrip('/')}/{distribution}/" for index in settings.indexes]
    found: list[Candidate] = []
    failed: list[str] = []
    for page in pages:
        try:
            found += read(session, page, distribution)
        except AbsentError:
            continue
        except (ReadError, PageError) as error:
            failed.append(f"{error.what}: {error.why}")
    return tuple(found), tuple(failed)


def read(session: Session, page: str, distribution: str) -> list[Candidate]:
    """Return the wheels and sources of `distribution` that one page or folder links to."""
    path = local(page)
    if path is not None:
        return _folder(path, page, distribution)
    with session.get(page, {"Accept": _ACCEPT}) as answer:
        body = answer.body(_LIMIT, decode=True)
        kind = answer.headers.get("content-type", "")
        return _parse(body, kind, answer.url, distribution, page)


def candidate(filename: str, url: str, **fields: str | None) -> Candidate | None:
    """Return the wheel or source distribution of this name, None for another file."""
    try:
        if filename.endswith(SDIST):
            name, version = parse_sdist_filename(filename)
            filename = f"{name.replace('-', '_')}-{version}{SDIST}"
            return Candidate(filename, url, name, version, (), frozenset(), **fields)
        name, version, build, tags = parse_wheel_filename(filename)
    except (InvalidWheelFilename, InvalidSdistFilename):
        return None
    return Candidate(filename, url, name, version, build, tags, **fields)


def local(url: str) -> Path | None:
    """Return the path of a ``file:`` URL, None for another one."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme != "file":
        return None
    return Path(urllib.request.url2pathname(parts.path))


def _url(link: str) -> str:
    """Return the URL of an index or a find-links entry, which may be a path."""
    if urllib.parse.urlsplit(link).scheme in ("http", "https", "file"):
        return link
    return Path(os.path.abspath(os.path.expanduser(link))).as_uri()


def _folder(path: Path, page: str, distribution: str) -> list[Candidate]:
    try:
        if path.is_dir() and not (path / "index.html").is_file():
            files = sorted((*path.glob("*.whl"), *path.glob(f"*{SDIST}")))
            links = [Link(each.as_uri(), each.name) for each in files]
            return _offered(links, distribution, page)
        body = (path / "index.html" if path.is_dir() else path).read_bytes()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise PageError(f"{path} cannot be read", why=str(error), mend=f"ls {path}") from error
    base = page if not path.is_dir() or page.endswith("/") else f"{page}/"
    return _parse(body, "text/html", base, distribution, page)


@dataclass(frozen=True, slots=True)
class Link:
    """One link of a page."""

    url: str
    filename: str
    sha256: str | None = None
    requires_python: str | None = None
    yanked: str | None = None


def _parse(body: bytes, kind: str, url: str, distribution: str, page: str) -> list[Candidate]:
    form = "JSON as in PEP 691" if "json" in kind else "HTML as in PEP 503"
    try:
        if "json" in kind:
            links = [_link(entry, url) for entry in json.loads(body)["files"]]
        else:
            anchors = _Anchors(url)
            anchors.feed(body.decode(errors="replace"))
            links = anchors.links
    except _NO_PAGE as error:
        raise PageError(
            f"{shown(url)} is not a page of an index",
            why=f"expected {form}: {error!r:.200}",
            mend="check the index's URL: pip config debug",
        ) from error
    return _offered(links, distribution, page)


def _link(entry: dict[str, object], base: str) -> Link:
    hashes, yanked = entry.get("hashes"), entry.get("yanked")
    digest = hashes.get("sha256") if isinstance(hashes, dict) else None
    needs = entry.get("requires-python")
    return Link(
        urllib.parse.urljoin(base, str(entry["url"])),
        str(entry["filename"]),
        None if digest is None else str(digest),
        None if needs is None else str(needs),
        None if yanked in (None, False) else "" if yanked is True else str(yanked),
    )


def _offered(links: Iterable[Link], distribution: str, page: str) -> list[Candidate]:
    found = (
        candidate(
            link.filename,
            link.url,
            sha256=link.sha256,
            requires_python=link.requires_python,
            yanked=link.yanked,
            page=page,
        )
        for link in links
        if link.filename.endswith((".whl", SDIST))
    )
    return [
        each
        for each in found
        if each is not None
        and each.distribution == distribution
        # A page on a server has no business with files here.
        and (each.local is None or local(page) is not None)
    ]


class _Anchors(html.parser.HTMLParser):
    """Collect the links of a PEP 503 page."""

    def __init__(self, base: str) -> None:
        super().__init__()
        self._base = base
        self.links: list[Link] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        fields = dict(attrs)
        target = fields.get("href")
        if tag == "base" and target:
            self._base = urllib.parse.urljoin(self._base, target)
        if tag != "a" or not target:
            return
        parts = urllib.parse.urlsplit(urllib.parse.urljoin(self._base, target))
        name = urllib.parse.unquote(parts.path.rpartition("/")[2])
        kind, _, digest = parts.fragment.partition("=")
        self.links.append(
            Link(
                parts._replace(fragment="").geturl(),
                name,
                digest if kind == "sha256" else None,
                fields.get("data-requires-python"),
                (fields["data-yanked"] or "") if "data-yanked" in fields else None,
            )
        )
