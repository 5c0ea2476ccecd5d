"""Patches of several queues on each other, in one set of files.

Each queue's series was made on the pristine files and its own patches. Where two
queues change one file, a patch is put where its lines have gone by what the other
queue's patches below it bring and take: a known place, never a search. It is not put
there where it is not clear of one of them (`patchq.engine.overlap`); so the result
is the same whichever queue goes first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from patchq.engine import apply, overlap, traces
from patchq.engine.traces import Touch
from patchq.model import Patch

Tree = Mapping[str, "apply.File | None"]


@dataclass(frozen=True, slots=True)
class Layer:
    """One patch, and the queue that it is of."""

    queue: str
    patch: Patch


@dataclass(frozen=True, slots=True)
class Footing:
    """How a layer lies on another queue's patch, in one file; `moved` by lines per hunk."""

    path: str
    on: Layer
    relation: overlap.Relation
    moved: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Laid:
    """A layer in its place: `patch` says where its lines really are."""

    layer: Layer
    patch: Patch
    result: apply.PatchApplied
    footings: tuple[Footing, ...]


@dataclass(frozen=True, slots=True)
class Clash:
    """A layer that does not fit: for `footings` that are not clear, or as `apply` says."""

    layer: Layer
    footings: tuple[Footing, ...]
    rejected: apply.PatchRejected | None = None


def lay(layers: Sequence[Layer], tree: Tree, start: int = 0) -> Iterator[Laid | Clash]:
    """Put the layers from `start` on, bottom to top, on files that hold those below.

    After a clash the queue's further layers are not put in; they are yielded only
    where they clash, too.
    """
    files = dict(tree)
    touched = trace(layers)
    stuck: set[str] = set()
    for index, layer in enumerate(layers[start:], start):
        footings = tuple(_footings(layers, touched, index))
        bad = tuple(one for one in footings if not one.relation.clear)
        if bad:
            stuck.add(layer.queue)
            yield Clash(layer, bad)
        if layer.queue in stuck:
            continue
        placed = _placed(layers, touched, index)
        result = apply.apply_patch(placed, files.get)
        if isinstance(result, apply.PatchRejected):
            stuck.add(layer.queue)
            yield Clash(layer, footings, result)
            continue
        files.update(result.after)
        yield Laid(layer, placed, result, footings)


def take_back(layers: Sequence[Layer], tree: Tree) -> Tree | None:
    """Return the files without the layers that `lay` put in, None where they are not in them."""
    files = dict(tree)
    touched = trace(layers)
    for index in reversed(range(len(layers))):
        placed = _placed(layers, touched, index)
        result = apply.apply_patch(placed, files.get, reverse=True)
        if isinstance(result, apply.PatchRejected):
            return None
        files.update(result.after)
    return files


def _placed(layers: Sequence[Layer], touched: Sequence[tuple[Touch, ...]], index: int) -> Patch:
    """Return a layer's patch as its lines are above the other queues' layers below it."""
    layer = layers[index]
    foreign = [
        touch
        for below, some in zip(layers[:index], touched, strict=False)
        if below.queue != layer.queue
        for touch in some
    ]
    return traces.shifted(layer.patch, touched[index], foreign)


def trace(layers: Sequence[Layer]) -> tuple[tuple[Touch, ...], ...]:
    """Return what each layer touches, each queue traced down its own series."""
    out: dict[int, tuple[Touch, ...]] = {}
    for queue in dict.fromkeys(layer.queue for layer in layers):
        mine = [index for index, layer in enumerate(layers) if layer.queue == queue]
        some = traces.trace(layers[index].patch for index in mine)
        out.update(zip(mine, some, strict=True))
    return tuple(out[index] for index in range(len(layers)))


def _footings(
    layers: Sequence[Layer], touched: Sequence[tuple[Touch, ...]], index: int
) -> Iterator[Footing]:
    """Yield what lies below a layer, of other queues, in the files that it touches."""
    mine = traces.by_path(touched[index])
    for below, some in zip(layers[:index], touched, strict=False):
        if below.queue == layers[index].queue:
            continue
        for path, touch in traces.by_path(some).items():
            if path in mine:
                moved = tuple(traces.moves(span, path, some) for span in mine[path].spans)
                yield Footing(path, below, overlap.relate(mine[path], touch), moved)
