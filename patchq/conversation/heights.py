"""Files at every height of the stack: below all patches, and above each of them.

They are made from the originals and the patch texts that the environment keeps, so this needs
no queue; the patches of a series that are not on can be put on top of that, in thought.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from patchq import stacking, standing
from patchq.conversation import files, view
from patchq.engine import apply
from patchq.engine import layers as laying
from patchq.engine.apply import File
from patchq.engine.layers import Clash, Layer
from patchq.errors import ConflictError, PatchqError
from patchq.model import AppliedPatch, Patch
from patchq.transport.channel import Conversation

Tree = Mapping[str, "File | None"]


@dataclass(frozen=True, slots=True)
class Heights:
    """The files below the stack, and above each of its patches: one tree more than patches.

    `patches` has, by their places on the stack, those that have to do with the files.
    """

    trees: tuple[Tree, ...]
    patches: Mapping[int, Patch]


def rise(aim: view.Aim, seen: view.Sight, paths: Iterable[str]) -> Conversation[Heights]:
    """Return files that patches of the stack have, at every height.

    Raises:
        PatchqError: the environment's record does not add up, or a text is lost.
    """
    stack = seen.survey.stack
    pile = stacking.below(stack, tuple(paths))
    layers = files.layers_of(seen.survey, seen.texts, pile)
    involved = sorted({change.path for applied in pile for change in applied.changes})
    tree: dict[str, File | None] = {}
    if involved:
        first = yield from files.originals(aim, seen, involved)
        for path in involved:
            data = first.get(path)
            mode = standing.pristine(seen.survey, path).executable
            tree[path] = None if data is None else (data, mode)
    trees: list[Tree] = [dict(tree)]
    patches: dict[int, Patch] = {}
    laid = dict(zip(map(id, pile), laying.lay(layers, tree), strict=False))
    for place, applied in enumerate(stack):
        if id(applied) in laid:
            one = laid[id(applied)]
            patches[place] = one.layer.patch
            tree.update(_after(seen, applied, one))
        trees.append(dict(tree))
    return Heights(tuple(trees), patches)


def _after(seen: view.Sight, applied: AppliedPatch, one: laying.Laid | Clash) -> Tree:
    """Return what a patch leaves of the files that it changes; an added file may be unchanged."""
    changes = tuple(change for change in applied.changes if change.before != change.after)
    if isinstance(one, Clash) or set(one.result.changes) != set(changes):
        raise PatchqError(
            f"the state of {seen.survey.site} does not add up at {applied.patch}",
            why="its original with the patches that it keeps gives other bytes than recorded",
            mend="patchq pop -a",
        )
    return one.result.after


def above(seen: view.Sight, todo: Sequence[Patch], top: Heights, live: Tree) -> tuple[Tree, ...]:
    """Return files with patches that are not on, each put on those below it in thought.

    `live` has the files that no patch of the stack has. One tree for each patch.

    Raises:
        ConflictError: a patch does not fit.
    """
    tree = {**live, **top.trees[-1]}
    stack = seen.survey.stack
    pile = [Layer(stack[place].queue, patch) for place, patch in top.patches.items()]
    layers = [*pile, *(Layer(seen.queue.name, patch) for patch in todo)]
    trees: list[Tree] = []
    if seen.tree:
        for patch in todo:
            result = apply.apply_patch(patch, tree.get, search=True)
            if isinstance(result, apply.PatchRejected):
                raise _unfit(patch.name, result.message)
            tree.update(result.after)
            trees.append(dict(tree))
        return tuple(trees)
    for one in laying.lay(layers, tree, len(pile)):
        if isinstance(one, Clash):
            on = ", ".join(footing.on.patch.name for footing in one.footings)
            why = one.rejected.message if one.rejected else f"lines of {on} are in the way"
            raise _unfit(one.layer.patch.name, why)
        tree.update(one.result.after)
        trees.append(dict(tree))
    return tuple(trees)


def _unfit(name: str, why: str) -> ConflictError:
    return ConflictError(
        f"Patch {name} does not apply on what is there",
        why=why,
        mend=f"patchq push {name}   # says what is in its way",
    )
