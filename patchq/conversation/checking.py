"""Judging the post-conditions on what an environment holds."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from patchq import standing
from patchq.conversation import judging, look, view
from patchq.conversation.goal import Upto
from patchq.engine.verdict import Claim
from patchq.errors import ExitCode
from patchq.queue import sketches as sketches_of
from patchq.report import Report
from patchq.transport.channel import Conversation

if TYPE_CHECKING:  # libcst comes with them
    from patchq.engine.sketch import Sketch
    from patchq.engine.unasked import Unasked
    from patchq.engine.upstream import Upstream


@dataclass(frozen=True, slots=True)
class Checked:
    """How one patch's post-condition stands in an environment.

    `upstream`: since when upstream has it (R15); `unasked`: what the sketch does not
    ask of this release.
    """

    patch: str
    held: int
    asked: int
    misses: tuple[str, ...]
    unasked: tuple[Unasked, ...] = ()
    upstream: Upstream | None = None

    @property
    def word(self) -> str:
        """ "holds", "fails", or "not asked" where no claim speaks of this release.

        "rewritten" where it fails since upstream has it in a form of its own.
        """
        if not self.asked:
            return "not asked"
        if self.upstream and self.upstream.rewritten:
            return "rewritten"
        return "fails" if self.misses else "holds"

    def lines(self, version: str) -> list[str]:
        """Return what is said of it on a terminal."""
        tally = f" ({self.held} of {self.asked} claims)" if self.asked else f" of {version}"
        since = f", {self.upstream}" if self.upstream else ""
        out = [f"{self.patch} {self.word}{tally}{since}"]
        out += [f"    not asked of {version}: {one}" for one in self.unasked if self.asked]
        return out + [f"    {miss}" for miss in self.misses if self.word == "fails"]

    def to_json(self) -> dict[str, object]:
        """Return it as ``--json`` shows it."""
        return {
            "patch": self.patch,
            "word": self.word,
            "held": self.held,
            "asked": self.asked,
            "misses": list(self.misses),
            "unasked": [one.to_json() for one in self.unasked],
            "upstream": self.upstream and self.upstream.to_json(),
        }


def check(aim: view.Aim, only: str | None) -> Conversation[Report]:
    """Judge the post-conditions on what is there, applied or not."""
    from patchq.engine import sketch

    sketches = {
        queue.name: {
            release: sketches_of.load(queue, release) for release in (*queue.releases, None)
        }
        for queue in aim.queues
    }
    parsed = {
        text: sketch.load(text, name=name)
        for one in sketches.values()
        for some in one.values()
        for name, text in some.values()
    }
    paths = tuple(dict.fromkeys(path for one in parsed.values() for path in one.paths))
    seen = yield from look.sight(aim, view.Want(contents=True, extra=paths))
    shared = sketches[seen.queue.name]
    mine = shared.get(seen.choice.release if seen.choice else None, shared[None])
    if only is not None:
        stems = list(mine)
        stem = stems[Upto(only.removesuffix(".patch")).index(stems, "known to have a sketch")]
        mine = {stem: mine[stem]}
    have = seen.survey.installed
    assert have is not None
    bare = [n for n in seen.names if _stem(n) not in mine] if seen.choice and not only else []
    held = set() if seen.choice is None else {_stem(name) for name in seen.names}
    with ExitStack() as stack:
        since = _since(aim, seen, stack)
        results = [
            _judged(seen, stem, parsed[text], None if stem in held else partial(since, text))
            for stem, (_, text) in mine.items()
        ]
    notes = () if aim.explicit or aim.remote else (_judged_where(seen, have.version),)
    return _checked(seen, have.version, results, bare, notes)


def _judged_where(seen: view.Sight, version: str) -> str:
    """Name what was judged, where nobody said which environment is meant."""
    return f"judged: {seen.queue.distribution} {version} in {seen.survey.site}"


def _judged(
    seen: view.Sight, stem: str, sketch_: Sketch, since: Callable[[Sketch], Upstream | None] | None
) -> Checked:
    """Judge one sketch; `since` is asked where the series that fits has no such patch."""
    from patchq.engine import sketch, unasked

    assert seen.survey.installed is not None
    version = standing.public(seen.survey.installed.version)
    claims = sketch.judge(sketch_, version, judging.Neighbours(seen.survey).read)
    misses = tuple(_miss(claim) for claim in claims if not claim.held)
    held, left = sum(claim.held for claim in claims), unasked.unasked(sketch_, version)
    return Checked(stem, held, len(claims), misses, left, since and since(sketch_))


def _since(
    aim: view.Aim, seen: view.Sight, stack: ExitStack
) -> Callable[[bytes, Sketch], Upstream | None]:
    """Return what tells since when upstream has it, by the releases that were fetched."""
    from patchq.releases import since
    from patchq.releases.store import Store

    have = seen.survey.installed
    assert have is not None
    version, cache = standing.public(have.version), aim.cache()
    store = Store(seen.queue.distribution, cache / "releases")
    if store.path.is_dir():
        stack.enter_context(store)
    around = judging.Neighbours(seen.survey)

    def ask(text: bytes, sketch_: Sketch) -> Upstream | None:
        found = [seen.survey.files.get(path) for path in sketch_.paths]
        same = all(one is not None and one.state.sha256 == one.recorded for one in found)
        live = around.read if same else None
        return since.since(sketch_, text, version, store, cache, live=live)

    return ask


def _stem(name: str) -> str:
    return name.removesuffix(".patch").removesuffix(".diff")


def _miss(claim: Claim) -> str:
    where = f"{claim.where}: " if claim.where else ""
    return f"{where}{claim.code}\n      {claim.nearest}".rstrip()


def _checked(
    seen: view.Sight,
    version: str,
    results: list[Checked],
    bare: list[str],
    notes: tuple[str, ...],
) -> Report:
    lines = [f"{_stem(name)} has no sketch" for name in bare]
    lines += [line for one in results for line in one.lines(version)]
    document = {
        "verb": "check",
        "queue": seen.queue.name,
        "version": version,
        "site": seen.survey.site,
        "without_sketch": bare,
        "patches": [one.to_json() for one in results],
    }
    failed = any(one.word == "fails" for one in results)
    code = ExitCode.FAILED if failed else ExitCode.DONE
    if not any(one.asked for one in results):
        code = ExitCode.NOTHING_TO_DO
    return Report(tuple(lines), notes, document, code)
