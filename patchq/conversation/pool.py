"""Contents of files that the environments of a run sent, kept so that others need not.

A host is not trusted with the controller's memory: only what was asked for is kept, of one
answer and of a run no more than there is room for. What does not fit serves the one
conversation that asked for it.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Mapping

from patchq.conversation.view import Aim

# Bytes that one answer adds, and that a run keeps.
ANSWER_LIMIT = 64 << 20
RUN_LIMIT = 256 << 20


def keep(aim: Aim, blobs: Mapping[str, bytes], asked: Iterable[str | None]) -> Mapping[str, bytes]:
    """Keep the contents that were asked for; return all that is kept, and what did not fit.

    `asked` are digests; `blobs` is what came along.
    """
    held = aim.shared.contents
    wanted = dict.fromkeys(digest for digest in asked if digest and digest in blobs)
    new = {digest: blobs[digest] for digest in wanted if digest not in held}
    size = sum(map(len, new.values()))
    if not new:
        return held
    if size <= ANSWER_LIMIT and size + sum(map(len, held.values())) <= RUN_LIMIT:
        held.update(new)
        return held
    return ChainMap(new, held)
