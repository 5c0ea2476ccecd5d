"""What a move means beyond its files: processes, vLLM's compile cache, layers that go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from patchq import compilecache, running, standing
from patchq.conversation import restart, view

EPHEMERAL = "ephemeral: the tree is in a container's own layer, and goes with the container"


@dataclass(frozen=True, slots=True)
class Aftermath:
    """What to add to the report of a move: notes, the one on restarts last, and keys."""

    notes: tuple[str, ...]
    document: Mapping[str, object]


def of(
    verb: str, seen: view.Sight, paths: Iterable[str], ok: Mapping[str, object] | None
) -> Aftermath:
    """Return what follows from a move.

    `paths`: the files that a push changes; `ok`: the agent's answer, None for a dry run.
    """
    found = running.read(ok.get("running")) if ok else None
    cache = _cache(seen, paths)
    ephemeral = bool(seen.extra.get("ephemeral"))
    notes = ((EPHEMERAL,) if ephemeral else ()) + (cache.lines() if cache else ())
    first = recovered(seen)
    return Aftermath(
        (*first.notes, *notes, *restart.needed(found, verb=verb)),
        {
            **first.document,
            "ephemeral": ephemeral,
            "compile_cache": cache.to_json() if cache else None,
            "running": found.to_json() if found else None,
        },
    )


def recovered(seen: view.Sight) -> Aftermath:
    """Return what is to be said of a transaction that this run found cut short, if it did."""
    word = seen.extra.get("recovered")
    if word not in ("finished", "undone"):
        return Aftermath((), {})
    note = f"The interrupted transaction was {word} first."
    if word == "finished":
        note += " patchq status names who must be restarted."
    return Aftermath((note,), {"recovered": word})


def _cache(seen: view.Sight, paths: Iterable[str]) -> compilecache.Effect | None:
    """Return what a push does to vLLM's compile cache, None for other distributions."""
    have, changed = seen.survey.installed, tuple(paths)
    if have is None or not changed or seen.queue.distribution != "vllm":
        return None

    def text(path: str) -> bytes | None:
        digest = standing.live(seen.survey, path).sha256
        return None if digest is None else seen.survey.contents.get(digest)

    return compilecache.effect(have.version, changed, text)
