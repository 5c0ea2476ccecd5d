"""Whether a release needs a queue at all: its sketches, judged on what is there."""

from __future__ import annotations

from collections.abc import Mapping

from patchq import standing
from patchq.conversation import pool
from patchq.conversation.view import Aim
from patchq.engine.sketch import Sketch
from patchq.model import Survey
from patchq.queue import sketches, store
from patchq.transport.channel import Conversation


def proof(aim: Aim, queue: store.Queue, survey: Survey) -> Conversation[str | None]:
    """Return what proves that the installed release has all that the queue is for, or None.

    Every shared sketch of a patch that this version needs holds on the files as they are,
    and at least one of them claims something. Equal files are judged once a run.
    """
    from patchq.engine import sections

    if survey.installed is None:
        return None
    version = standing.public(survey.installed.version)
    try:
        release = sections.release_of(version)
    except sections.SketchError:
        return None  # no release, so nothing speaks of it
    asked = {
        stem: one for stem, one in _sketches(aim, queue).items() if queue.needs(stem, version)
    }
    paths = {
        section.path
        for one in asked.values()
        for section in one.sections
        if section.asked(release)
    }
    if not paths:
        return None
    known: set[str | None] = aim.shared.once(("upstream", queue.folder), set)
    reply = yield aim.request(
        "read",
        queue.distribution,
        paths=sorted(paths),
        originals=[],
        known=sorted(map(str, known)),
    )
    files: dict[str, str | None] = reply.message["ok"]["files"]
    contents = pool.keep(aim, reply.blobs, files.values())
    known.update(digest for digest in files.values() if digest in aim.shared.contents)
    return aim.shared.once(
        ("upstream", queue.folder, version, *sorted((p, d or "") for p, d in files.items())),
        lambda: _judge(asked, version, files, contents),
    )


def _sketches(aim: Aim, queue: store.Queue) -> Mapping[str, Sketch]:
    from patchq.engine import sketch

    return aim.shared.once(
        ("sketches", queue.folder),
        lambda: {
            stem: sketch.load(text, name=name)
            for stem, (name, text) in sketches.load(queue, None).items()
        },
    )


def _judge(
    asked: Mapping[str, Sketch],
    version: str,
    files: Mapping[str, str | None],
    contents: Mapping[str, bytes],
) -> str | None:
    from patchq.engine import sketch

    def read(path: str) -> bytes | None:
        digest = files.get(path)
        return None if digest is None else contents[digest]

    claims = [
        claim
        for one in asked.values()
        for claim in sketch.judge(one, version, read, explain=False)
    ]
    own = [claim for claim in claims if not claim.given]
    if not own or not all(claim.held for claim in claims):
        return None
    return f"{len(own)} claims of the queue's sketches hold on {version} as it is"
