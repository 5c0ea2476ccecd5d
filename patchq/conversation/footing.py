"""What a push stands on: the lock as it is, or one derived on another queue's patches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from patchq import stacking, standing
from patchq.conversation import files, judging, look, view
from patchq.model import Series, sha256
from patchq.plan import Conflict, Kind
from patchq.report import Report
from patchq.transport.channel import Conversation


@dataclass(frozen=True, slots=True)
class Footing:
    """Sight and series of a push, as they are in this environment.

    `below` has the files that other queues changed, as the record says that they are.
    """

    seen: view.Sight
    series: Series
    notes: tuple[stacking.Note, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    below: Mapping[str, bytes] = field(default_factory=dict)
    stacked: bool = False

    def against(self, planned: Sequence[Conflict]) -> tuple[Conflict, ...]:
        """Return all that speaks against the push: what stacking found, and the plan's reasons.

        By hashes alone the plan sees that another queue is in the way; stacking knows why.
        """
        own = tuple(one for one in planned if one.kind is not Kind.ANOTHER_QUEUE)
        if self.stacked and (own or self.conflicts):
            return (*self.conflicts, *own)
        return tuple(planned)

    def noted(self, report: Report) -> Report:
        """Return a push's report with what its patches were stacked on."""
        if not self.notes:
            return report
        document = {**report.document, "stacked": [note.to_json() for note in self.notes]}
        notes = (*map(str, self.notes), *report.notes)
        return replace(report, notes=notes, document=document)


def find(aim: view.Aim, seen: view.Sight, series: Series, goal: int) -> Conversation[Footing]:
    """Return what the patches up to `goal` stand on.

    Nothing is asked of the environment where no other queue changed their files.
    """
    name = seen.queue.name
    pile = stacking.needed(seen.lock, name, seen.survey, goal)
    if not pile:
        return Footing(seen, series)
    if any(applied.sha256 not in seen.texts for applied in seen.survey.stack):
        want = view.Want(more=("patches",))
        _, reply = yield from look.survey(aim, seen.queue.distribution, (), want)
        seen = replace(seen, texts=reply.blobs)
    layers = files.layers_of(seen.survey, seen.texts, pile)
    tree = yield from files.replay(aim, seen, pile, layers)
    below = {path: file[0] for path, file in tree.items() if file is not None}
    aim.shared.contents.update((sha256(data), data) for data in below.values())
    todo = series.patches[len(seen.applied) : goal]
    alone = dict.fromkeys(path for patch in todo for path in patch.paths if path not in tree)
    tree.update((yield from _live(aim, seen, tuple(alone))))
    known = (seen.lock, series, seen.survey)
    found = stacking.derive(known, name, goal, layers, tree)
    base = seen.lock.base
    if any(standing.live(seen.survey, path) != base.get(path) for path in alone):
        # A lock derived on an edited file would fit it: the plan is to see the edit.
        return Footing(seen, series, (), found.conflicts, below, True)
    seen = replace(seen, locks={**seen.locks, seen.release: found.lock})
    return Footing(seen, found.series, found.notes, found.conflicts, below, True)


def _live(aim: view.Aim, seen: view.Sight, paths: tuple[str, ...]) -> Conversation[judging.Tree]:
    """Return files as they are now; bytes that did not come with the survey are asked for."""
    held = seen.survey.contents
    states = {path: standing.live(seen.survey, path) for path in paths}
    missing = [path for path, state in states.items() if state.sha256 not in (None, *held)]
    if missing:
        more = yield from files.read(aim, seen, missing)
        aim.shared.contents.update((sha256(data), data) for data in more.values() if data)
    return judging.tree_of(seen.survey, paths)
