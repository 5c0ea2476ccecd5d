"""Bytes from an environment beyond the survey: files, originals, and what lies between.

What lies between the originals and the live files is made here from the patch
texts that the environment keeps, so that a pop needs no queue.
"""

from __future__ import annotations

from patchq import standing
from patchq.conversation import judging, view
from patchq.errors import PatchqError
from patchq.model import AppliedPatch, Patch
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


def rebuild(
    aim: view.Aim, seen: view.Sight, stack: tuple[AppliedPatch, ...], paths: list[str]
) -> Conversation[judging.Tree]:
    """Return files as a lower part of the stack has them.

    They are made from the originals and the patch texts that the environment
    keeps, so this needs no queue.
    """
    from patchq.engine import apply, diff

    if not paths:
        return {}
    wanted = set(paths)
    touching = [a for a in stack if any(c.path in wanted for c in a.changes)]
    involved = {c.path for a in touching for c in a.changes}
    originals = yield from read(aim, seen, sorted(involved), originals=True)
    tree: judging.Tree = {}
    for path in involved:
        data = originals.get(path)
        tree[path] = (
            None if data is None else (data, standing.pristine(seen.survey, path).executable)
        )
    for applied in touching:
        text = seen.texts.get(applied.sha256)
        if text is None:
            raise PatchqError(
                f"{seen.survey.site} does not keep the text of {applied.patch} any more",
                why="its patches.json has other texts than its state names",
                mend="patchq pop -a",
            )
        entry = series.parse(f"{applied.patch} {applied.options}\n".encode()).entries[0]
        header, diffs = diff.parse(text, name=applied.patch, strip=entry.strip)
        patch = Patch(applied.patch, text, header, diffs, entry.strip, entry.reverse)
        result = apply.apply_patch(patch, tree.get)
        if isinstance(result, apply.PatchRejected) or tuple(result.changes) != applied.changes:
            raise PatchqError(
                f"the state of {seen.survey.site} does not add up at {applied.patch}",
                why="its original with the patches that it keeps gives other bytes than recorded",
                mend="patchq pop -a",
            )
        tree.update(result.after)
    return {path: tree[path] for path in paths}
