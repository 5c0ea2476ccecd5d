"""Which patches touch the same lines, before one is pushed on the other.

Texts alone decide it: what the environment keeps of its stack, and the series that
fits of each queue in sight. No file of the environment is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from patchq import standing
from patchq.conversation import files, look, selection, view
from patchq.conversation.goal import Upto
from patchq.engine import layers as laying
from patchq.engine import overlap as overlaps
from patchq.engine import traces
from patchq.engine.layers import Layer
from patchq.errors import ExitCode
from patchq.model import Survey
from patchq.queue import store
from patchq.report import Report
from patchq.transport.channel import Conversation, Reply


@dataclass(frozen=True, slots=True)
class Pair:
    """Two patches that touch one file; `applied` says of each whether it is on the stack."""

    path: str
    layers: tuple[Layer, Layer]
    applied: tuple[bool, bool]
    relation: overlaps.Relation

    @property
    def between(self) -> bool:
        """True where the patches are of two queues; those of one are ordered by its series."""
        return self.layers[0].queue != self.layers[1].queue

    def __str__(self) -> str:
        """Return the pair as a line: file, patches with their lines, how they lie."""
        spots = " and ".join(
            f"{layer.patch.name} ({layer.queue}){overlaps.named(places)}"
            for layer, places in zip(self.layers, self.relation.lines, strict=True)
        )
        return f"{self.path}: {spots}: {self.relation}" + ("" if self.between else ", in order")

    def to_json(self) -> dict[str, object]:
        """Return the pair as ``--json`` shows it; lines are counted from 0, half open."""
        return {
            "path": self.path,
            "between": self.between,
            "word": self.relation.word.value,
            "gap": self.relation.gap,
            "patches": [
                {
                    "queue": layer.queue,
                    "patch": layer.patch.name,
                    "applied": on,
                    "lines": [[place.start, place.stop] for place in places],
                }
                for layer, on, places in zip(
                    self.layers, self.applied, self.relation.lines, strict=True
                )
            ],
        }


def overlap(aim: view.Aim, only: Sequence[str]) -> Conversation[Report]:
    """Show the pairs of patches that touch the same file: the stack's, and of series in sight.

    `only` names patches; then a pair has one of them in it.
    """
    distributions = list(dict.fromkeys(queue.distribution for queue in aim.queues))
    if not distributions:
        reply = yield aim.request("records", "")
        distributions = [str(name) for name in reply.message["ok"]["records"]]
    pairs: list[Pair] = []
    patches: list[str] = []
    absent: list[view.Sight] = []
    for distribution in distributions:
        queues = [queue for queue in aim.queues if queue.distribution == distribution]
        every = [lock for queue in queues for lock in aim.locks(queue).values()]
        want = view.Want(more=("patches",))
        survey, reply = yield from look.survey(aim, distribution, every, want)
        if survey.installed is None:
            absent += [view.Sight(queue, survey, None, {}) for queue in queues]
            continue
        pile, applied = _pile(aim, survey, reply, queues)
        pairs += _pairs(pile, applied)
        patches += [layer.patch.name for layer in pile]
    if not patches and (absent or not distributions):
        raise selection.none(aim, absent)
    named = {patches[Upto(word).index(patches, "in sight")] for word in only}
    if named:
        pairs = [one for one in pairs if named & {layer.patch.name for layer in one.layers}]
    return _report(sorted(pairs, key=lambda one: not one.between))


def _pile(
    aim: view.Aim, survey: Survey, reply: Reply, queues: Sequence[store.Queue]
) -> tuple[tuple[Layer, ...], int]:
    """Return the recorded stack, then what each queue would push on it; and the stack's height."""
    pile = list(files.layers_of(survey, reply.blobs, survey.stack))
    for queue in queues:
        choice = standing.choose(aim.locks(queue), queue.name, survey)
        if choice is None or choice.release not in queue.releases:
            continue
        held = {applied.patch for applied in survey.stack if applied.queue == queue.name}
        loaded = store.load(queue, choice.release).patches
        pile += [Layer(queue.name, patch) for patch in loaded if patch.name not in held]
    return tuple(pile), len(survey.stack)


def _pairs(pile: Sequence[Layer], applied: int) -> Iterator[Pair]:
    touched = [traces.by_path(some) for some in laying.trace(pile)]
    for at, above in enumerate(pile):
        for under, below in enumerate(pile[:at]):
            for path, touch in touched[at].items():
                if path in touched[under]:
                    relation = overlaps.relate(touched[under][path], touch)
                    on = (under < applied, at < applied)
                    yield Pair(path, (below, above), on, relation)


def _report(pairs: Sequence[Pair]) -> Report:
    between = [one for one in pairs if one.between]
    bad = [one for one in between if not one.relation.clear]
    document = {
        "verb": "overlap",
        "pairs": [one.to_json() for one in pairs],
        "between": len(between),
        "cannot_stack": len(bad),
    }
    if not pairs:
        note = "No two patches touch the same file"
        return Report((), (note,), document, ExitCode.NOTHING_TO_DO)
    count = f"{len(between)} pair{'' if len(between) == 1 else 's'} between queues"
    last = f"{count}, {len(bad)} can not be stacked"
    return Report((*map(str, pairs), last), (), document)
