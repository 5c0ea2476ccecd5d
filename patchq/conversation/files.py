"""Bytes from an environment beyond the survey: files, originals, and what lies between.

What lies between the originals and the live files is made here from the patch
texts that the environment keeps, so that a pop needs no queue.
"""

from __future__ import annotations

from collections.abc import Mapping

from patchq import stacking, standing
from patchq.conversation import judging, view
from patchq.engine import layers as laying
from patchq.engine.layers import Layer
from patchq.errors import PatchqError
from patchq.model import AppliedPatch, FileState, Patch, Survey
from patchq.queue import series
from patchq.transport.channel import Conversation


def read(
    aim: view.Aim, seen: view.Sight, paths: list[str], originals: bool = False
) -> Conversation[dict[str, bytes | None]]:
    """Fetch the bytes of files, or of the originals kept for them."""
    request = aim.request(
        "read",
        seen.queue.distribution,
        paths=[] if originals else paths,
        originals=paths if originals else [],
    )
    reply = yield request
    listed = reply.message["ok"]["originals" if originals else "files"]
    return {path: None if name is None else reply.blobs[name] for path, name in listed.items()}


def originals(
    aim: view.Aim, seen: view.Sight, paths: list[str]
) -> Conversation[dict[str, bytes | None]]:
    """Fetch the originals of files; those that are lost are made anew.

    A kept link may lead into a cache that was cleared meanwhile. What is there without
    its patches is the original, too.
    """
    found = yield from read(aim, seen, paths, originals=True)
    wanted = {path: standing.pristine(seen.survey, path).sha256 for path in paths}
    lost = [path for path in paths if FileState.of(found.get(path)).sha256 != wanted[path]]
    if lost:
        found.update((yield from _taken_back(aim, seen, lost)))
    return found


def _taken_back(
    aim: view.Aim, seen: view.Sight, paths: list[str]
) -> Conversation[dict[str, bytes | None]]:
    """Return files without any of the stack's patches; none where these are not in them."""
    pile = stacking.below(seen.survey.stack, paths)
    involved = sorted({change.path for applied in pile for change in applied.changes})
    now = yield from read(aim, seen, involved)
    tree: judging.Tree = {
        path: None if data is None else (data, standing.live(seen.survey, path).executable)
        for path, data in now.items()
    }
    below = laying.take_back(layers_of(seen.survey, seen.texts, pile), tree) or {}
    return {path: file and file[0] for path, file in below.items() if path in paths}


def rebuild(
    aim: view.Aim, seen: view.Sight, stack: tuple[AppliedPatch, ...], paths: list[str]
) -> Conversation[judging.Tree]:
    """Return files as a lower part of the stack has them.

    They are made from the originals and the patch texts that the environment
    keeps, so this needs no queue.
    """
    if not paths:
        return {}
    pile = stacking.below(stack, paths)
    tree = yield from replay(aim, seen, pile, layers_of(seen.survey, seen.texts, pile))
    return {path: tree[path] for path in paths}


def layers_of(
    survey: Survey, texts: Mapping[str, bytes], stack: tuple[AppliedPatch, ...]
) -> tuple[Layer, ...]:
    """Return patches of the stack by the texts that the environment keeps."""
    from patchq.engine import diff

    out = []
    for applied in stack:
        text = texts.get(applied.sha256)
        if text is None:
            raise PatchqError(
                f"{survey.site} does not keep the text of {applied.patch} any more",
                why="its patches.json has other texts than its state names",
                mend="patchq pop -a",
            )
        entry = series.parse(f"{applied.patch} {applied.options}\n".encode()).entries[0]
        header, diffs = diff.parse(text, name=applied.patch, strip=entry.strip)
        patch = Patch(applied.patch, text, header, diffs, entry.strip, entry.reverse)
        out.append(Layer(applied.queue, patch))
    return tuple(out)


def replay(
    aim: view.Aim, seen: view.Sight, pile: tuple[AppliedPatch, ...], layers: tuple[Layer, ...]
) -> Conversation[judging.Tree]:
    """Return the files of a part of the stack as it leaves them, from the originals.

    `pile` is what `stacking.below` gives; `layers` are its texts.
    """
    involved = sorted({change.path for applied in pile for change in applied.changes})
    first = yield from originals(aim, seen, involved)
    tree: judging.Tree = {}
    for path in involved:
        data = first.get(path)
        mode = standing.pristine(seen.survey, path).executable
        tree[path] = None if data is None else (data, mode)
    for applied, one in zip(pile, laying.lay(layers, tree), strict=False):
        # A file that was only added to a patch stands in the record, and not in its text.
        real = tuple(change for change in applied.changes if change.before != change.after)
        if isinstance(one, laying.Clash) or one.result.changes != real:
            raise PatchqError(
                f"the state of {seen.survey.site} does not add up at {applied.patch}",
                why="its original with the patches that it keeps gives other bytes than recorded",
                mend="patchq pop -a",
            )
        tree.update(one.result.after)
    return tree
