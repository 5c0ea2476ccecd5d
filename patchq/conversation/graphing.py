"""`graph`: which of the patches need which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from patchq.conversation import differing, files, look, names, view
from patchq.conversation.goal import Upto
from patchq.engine import drawing
from patchq.engine import graph as graphs
from patchq.errors import ExitCode, UsageError
from patchq.model import Patch
from patchq.queue import store
from patchq.report import Report
from patchq.transport.channel import Conversation


@dataclass(frozen=True, slots=True)
class Ask:
    """What is drawn, and how: quilt's options, and `drawn` for a tree instead of dot's language.

    `context` is the N of ``--lines=N``; None looks at files only.
    """

    patch: str | None = None
    every: bool = False
    reduce: bool = False
    context: int | None = None
    labels: bool = False
    drawn: bool = False

    def __post_init__(self) -> None:
        if self.every and self.patch is not None:
            raise UsageError(
                f"--all and {self.patch} do not go together",
                why="--all shows every patch, a name those that have to do with that patch",
                mend="leave one of them out",
            )


def graph(aim: view.Aim, ask: Ask) -> Conversation[Report]:
    """Show what the top patch needs and what needs it, or a named one, or all that are applied.

    A patch that is not applied is shown with those of the series below it.

    Raises:
        PatchqError: there is no such patch, or its text is lost.
    """
    seen = yield from look.sight(aim, view.Want(more=("patches",)), need=view.Need.RECORD)
    patches = list(_patches(seen, ask.patch))
    if not patches:
        return names.nothing("graph", seen, "No patches applied", ExitCode.FAILED)
    titles = [one.name for one in patches]
    word = Upto(ask.patch) if ask.patch is not None else None
    place = word.index(titles, "in series") if word else len(titles) - 1
    selected = None if ask.every else place
    edges = graphs.edges(patches, context=ask.context, of=selected)
    edges = graphs.reduced(edges) if ask.reduce else edges
    if ask.drawn:
        used = {place for edge in edges for place in (edge.above, edge.below)}
        shown = range(len(titles)) if selected is None else sorted({selected, *used})
        out = drawing.tree(titles, edges, shown, files=ask.labels)
    else:
        out = drawing.dot(titles, edges, selected=selected, files=ask.labels)
    document = {
        "verb": "graph",
        "queue": seen.queue.name,
        "patches": titles,
        "patch": None if selected is None else titles[selected],
        "edges": [
            {"patch": titles[e.above], "needs": titles[e.below], "files": list(e.files)}
            for e in edges
        ],
    }
    return Report(tuple(out), (), document)


def _patches(seen: view.Sight, name: str | None) -> Sequence[Patch]:
    """Return the applied patches, and those of the series up to a named one that is not."""
    held = [one.patch for one in seen.applied]
    layers = files.layers_of(seen.survey, seen.texts, seen.applied)
    on = [layer.patch for layer in layers]
    if name is None:
        return on
    every = list(dict.fromkeys((*held, *(seen.names if seen.choice else ()))))
    index = Upto(name).index(every, "in series")
    if index < len(held):
        return on
    if seen.tree:  # its hunks may go elsewhere than they say
        differing.applied(seen, name)
    more = {one.name: one for one in store.load(seen.queue, seen.release).patches}
    return [*on, *(more[title] for title in every[len(held) : index + 1])]
