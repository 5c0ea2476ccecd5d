"""`patchq fetch`: a release's text goes from a wheel into the store.

Everything is checked before anything is written. A release that is there already
costs no network if ``==`` names it, else the index's pages. Every build of a version
is read (``0.20.1`` and ``0.20.1-1``): an installed tree does not tell which one it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from patchq.errors import PatchqError, UsageError
from patchq.releases import choice, pages, ranges, reading, unbuilt, wheel
from patchq.releases import settings as pip
from patchq.releases.index import ReadError, Session
from patchq.releases.note import WheelNote
from patchq.releases.pages import Candidate
from patchq.releases.reading import Progress, Read, Reader
from patchq.releases.store import Store, default_root

_COMPARED = 3
_ATTEMPTS = 3


class FetchError(PatchqError):
    """No wheel answers to the requirement, or it could not be read."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """One release that is in the store now.

    `bytes_read` and `requests` are what went over the wire, all pages included;
    `wheel_size` is the wheel's length. `already`: nothing was read. `origin`: whose RECORD
    was believed, where it came from no wheel.
    """

    distribution: str
    release: str
    tree: str
    files: int
    wheel: str
    wheel_size: int | None
    bytes_read: int
    requests: int
    verified: str
    already: bool
    notes: tuple[str, ...] = ()
    origin: str | None = None

    def to_json(self) -> dict[str, object]:
        """Return it as ``--json`` shows it."""
        named = (name for name in Fetched.__slots__ if name != "notes")
        return {name: getattr(self, name) for name in named}


def fetch(
    wanted: str,
    *,
    cache: Path | None = None,
    settings: pip.Settings | None = None,
    full: bool = False,
    progress: Progress = lambda done, total: None,
    python: str | None = None,
    platform: str | None = None,
) -> Fetched:
    """Read a release into the store below `cache` and return what is there.

    `wanted` is a requirement, or the path or URL of a wheel; where there is no wheel, a source
    distribution is read. `progress` is called
    only for a whole download, with the bytes that came and the total.
    """
    root = default_root() if cache is None else cache
    aimed = _named(wanted) or _requirement(wanted)
    indexed = isinstance(aimed, Requirement)
    found = _already(aimed, root) if isinstance(aimed, Requirement) and not full else None
    if found is not None and found.origin is None:
        return found
    with Session(settings or pip.load()) as session:
        reader = Reader(session, root, full, progress)
        try:
            selected = _select(session, aimed, python, platform)
        except FetchError as error:
            if found is None:
                raise
            # No index keeps it, or none answers: what a host said is all there is.
            return replace(found, notes=(f"{error.what}: {error.why}",))
        held = None if full else _held(Store(selected.wheels[0].distribution, root), selected)
        if held is not None:
            return replace(held, bytes_read=session.received, requests=session.requests)
        for _ in range(_ATTEMPTS):
            try:
                return _fetch(reader, selected, indexed=indexed)
            except ranges.ChangedError:
                continue
    raise FetchError(
        f"{selected.wheels[0].filename} changes while it is read",
        why=f"the server gave another file {_ATTEMPTS} times",
        mend="try again later, or: pip download the wheel and patchq fetch ./FILE.whl",
    )


def _named(wanted: str) -> Candidate | None:
    """Return the wheel that a path or URL names, None for a requirement."""
    if not wanted.partition("#")[0].endswith((".whl", pages.SDIST)):
        return None
    url = wanted if "://" in wanted else Path(wanted).absolute().as_uri()
    name = Path(pages.local(url) or url.partition("#")[0]).name
    found = pages.candidate(name, url, sha256=_fragment(url))
    if found is None:
        raise UsageError(
            f"{wanted} is not a wheel, nor a source distribution",
            why=f"expected NAME-VERSION-PYTHON-ABI-PLATFORM.whl or NAME-VERSION.tar.gz, "
            f"found {name!r}",
            mend="patchq fetch NAME==VERSION",
        )
    if found.local is not None and not found.local.is_file():
        raise UsageError(f"{wanted} is not there", why="no such file", mend=f"ls {found.local}")
    return found


def _fragment(url: str) -> str | None:
    kind, _, digest = url.partition("#")[2].partition("=")
    return digest if kind == "sha256" else None


def _requirement(wanted: str) -> Requirement:
    try:
        return Requirement(wanted)
    except InvalidRequirement as error:
        raise UsageError(
            f"{wanted!r} is not a requirement",
            why=str(error).replace("\n", " "),
            mend="patchq fetch NAME==VERSION",
        ) from error


def _already(requirement: Requirement, root: Path) -> Fetched | None:
    """Return the pinned release if all its builds are in the store."""
    version = choice.pinned(requirement)
    if version is None:
        return None
    with Store(requirement.name, root) as store:
        named = [each for each in store.releases() if _is_version(each, version)]
        named.reverse()
        # A platform's own text (names.py) only where nothing else is there.
        named.sort(key=lambda each: each.count("-") > 1)
        for release in named:
            for note in sorted(store.wheels(release), key=lambda one: not one.of_wheel):
                builds = note.builds or (release,)
                if release == builds[0] and all(map(store.has, builds)):
                    return _fetched(store, note)
    return None


def _held(store: Store, selected: choice.Choice) -> Fetched | None:
    """Return the chosen release if every wheel of it was read before; a file always is anew."""
    with store:
        notes = [store.note(each.filename) for each in selected.wheels]
        for each, note in zip(selected.wheels, notes, strict=True):
            if note is None or note.origin is not None or each.local is not None:
                return None
            if each.sha256 not in (None, note.sha256) or not store.has(note.release):
                return None
        assert notes[0] is not None
        return replace(_fetched(store, notes[0]), notes=selected.notes)


def _is_version(release: str, version: Version) -> bool:
    return release.partition("-")[0] == str(version)


def _fetched(store: Store, note: WheelNote) -> Fetched:
    return Fetched(
        store.distribution,
        note.release,
        note.tree,
        len(store.listing(note.release)),
        note.filename,
        note.size,
        0,
        0,
        note.verified,
        True,
        origin=note.origin,
    )


def _select(
    session: Session,
    requirement: Requirement | Candidate,
    python: str | None,
    platform: str | None,
) -> choice.Choice:
    if isinstance(requirement, Candidate):
        return choice.Choice((requirement,), ())
    name = canonicalize_name(requirement.name)
    found, failed = pages.candidates(session, session.settings, name)
    selected = choice.choose(found, requirement, python=python, platform=platform)
    selected = selected or choice.sdist(found, requirement)
    if selected is not None:
        return replace(selected, notes=(*selected.notes, *failed))
    versions = sorted({each.version for each in found})
    known = ", ".join(map(str, versions[-12:]))
    if not (session.settings.indexes or session.settings.find_links):
        failed = ("no index is set, and pip's own default is not known here",)
    offered = f"the indexes offer {known}" if known else f"the indexes have no wheel of {name}"
    raise FetchError(
        f"no wheel answers to {requirement}",
        why="; ".join((offered, *failed)),
        mend=f"pip index versions {name}, or set PIP_INDEX_URL",
    )


def _fetch(reader: Reader, selected: choice.Choice, *, indexed: bool) -> Fetched:
    """Read every build, lowest first, and return the one that pip would install."""
    wanted, notes = selected.wheels, list(selected.notes)
    if not wanted[0].tags:
        note, said = unbuilt.keep(reader, wanted[0])
        return _now(reader, Store(wanted[0].distribution, reader.root), note, (*notes, *said))
    read = {each.filename: reading.read(reader, each) for each in reversed(wanted)}
    best = read[wanted[0].filename]
    notes += best.notes
    notes += _differences(wanted, read)
    if best.ranged:
        notes += _compare(reader.session, wanted[0], best.text, selected.others)
    builds = tuple(each.release for each in wanted) if indexed else None
    store = Store(wanted[0].distribution, reader.root)
    for each in reversed(wanted):
        got = read[each.filename]
        note = WheelNote(
            each.filename, each.release, "", got.verified, got.size, each.sha256, builds
        )
        note = store.add(note, got.text.files, _kept(got.text))
    if note.release != wanted[0].release:
        notes.append(
            f"another wheel of {wanted[0].release} has another text; kept as {note.release}"
        )
    return _now(reader, store, note, tuple(notes))


def _now(reader: Reader, store: Store, note: WheelNote, notes: tuple[str, ...]) -> Fetched:
    """Return a release that was read just now."""
    return replace(
        _fetched(store, note),
        bytes_read=reader.session.received,
        requests=reader.session.requests,
        already=False,
        notes=notes,
    )


def _kept(text: wheel.WheelText) -> dict[str, bytes]:
    return {f"{text.dist_info_name}/{name}": data for name, data in text.dist_info.items()}


def _differences(wanted: Iterable[Candidate], read: dict[str, Read]) -> Iterator[str]:
    """Say how the builds of one version differ in text."""
    first, *lower = wanted
    for each in lower:
        count = _count(read[first.filename].text.signature, read[each.filename].text.signature)
        yield f"{each.release} differs from {first.release} in {count} text files; both are kept"


def _compare(
    session: Session, best: Candidate, text: wheel.WheelText, others: Iterable[Candidate]
) -> Iterator[str]:
    """Say where a wheel for another platform has another text, by directory alone."""
    alike = [each for each in others if each.local is None and _differs_in_platform(each, best)]
    for each in alike[:_COMPARED]:
        try:
            with ranges.RemoteFile(session, reading.locate(session, each)) as file:
                other = wheel.signature(file, each.filename, each.distribution, text.directory)
        except (ReadError, ranges.NoRangesError, ranges.ChangedError, wheel.WheelError) as error:
            yield f"{each.filename} could not be compared: {error or type(error).__name__}"
            continue
        count = _count(text.signature, other)
        if count:
            yield f"{each.filename} differs from {best.filename} in {count} text files"


def _differs_in_platform(one: Candidate, other: Candidate) -> bool:
    """Return True for wheels of one build and Python; only Linux is of interest on hosts."""
    pythons = [{(tag.interpreter, tag.abi) for tag in each.tags} for each in (one, other)]
    linux = any("linux" in tag.platform for tag in one.tags)
    return one.build == other.build and linux and not pythons[0].isdisjoint(pythons[1])


def _count(one: dict[str, tuple[int, int]], other: dict[str, tuple[int, int]]) -> int:
    return sum(one.get(path) != other.get(path) for path in {*one, *other})
