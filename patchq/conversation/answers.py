"""The agent's answers as values; one that makes no sense is told, not trusted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from patchq.errors import PatchqError
from patchq.model import (
    AppliedPatch,
    FileState,
    Found,
    Installed,
    PathChange,
    Sha256,
    Survey,
    safe_path,
)
from patchq.transport.channel import Reply


def survey_of(reply: Reply) -> Survey:
    """Turn the agent's answer into a `Survey`.

    Raises:
        PatchqError: the answer, or the state in it, is not what patchq writes.
    """
    try:
        return _survey(reply.message["ok"], reply.blobs)
    except (KeyError, TypeError, ValueError, AttributeError, AssertionError) as error:
        raise PatchqError(
            "the environment's record cannot be read",
            why=f"its survey does not have the form that patchq writes: {error!r}",
            mend="look at .patchq/DISTRIBUTION/state.json there; set it aside if it is broken",
        ) from error


def refused(refusal: Mapping[str, str]) -> PatchqError:
    """Return the agent's reason against an environment as an error."""
    return PatchqError(refusal["what"], why=refusal["why"], mend=refusal["mend"])


def receipts_of(extra: Mapping[str, object]) -> list[dict[str, Any]]:
    """Return the receipts that came along, oldest first, those that have a receipt's form."""
    listed = extra.get("ledger")
    return [one for one in listed if _is_receipt(one)] if isinstance(listed, list) else []


def stack_of(ok: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what a state says of its stack, each with the names of queue and patch."""
    listed = (ok.get("state") or {}).get("stack")
    return [
        one
        for one in (listed if isinstance(listed, list) else ())
        if isinstance(one, dict)
        and all(isinstance(one.get(key), str) for key in ("queue", "patch"))
    ]


def _is_receipt(one: object) -> bool:
    if not isinstance(one, dict) or not isinstance(one.get("patches"), dict):
        return False
    texts = all(isinstance(one.get(key), str) for key in ("id", "time", "verb", "queue"))
    if not texts or not all(isinstance(some, list | None) for some in one["patches"].values()):
        return False
    moved = [patch for some in one["patches"].values() for patch in some or ()]
    return all(
        isinstance(patch, dict) and all(isinstance(patch.get(k), str) for k in ("patch", "sha256"))
        for patch in moved
    )


def _survey(ok: Mapping[str, Any], contents: Mapping[str, bytes]) -> Survey:
    state = ok.get("state") or {}
    have = ok.get("installed")
    return Survey(
        python=ok["python"]["version"],
        executable=ok["python"]["executable"],
        site=ok.get("site") or "",
        installed=have
        and Installed(
            have["name"], have["version"], have["dist_info"], have["record"], have["installer"]
        ),
        files={path: _found(path, facts) for path, facts in ok["files"].items()},
        stack=() if ok.get("orphaned") else tuple(map(_applied, state.get("stack", ()))),
        generation=state.get("generation", 0),
        environment=state.get("environment", ""),
        interrupted=ok.get("interrupted"),
        orphaned=ok.get("orphaned"),
        refusal=ok.get("refusal"),
        contents=contents,
        kept={path: _kept(one) for path, one in state.get("originals", {}).items()},
    )


def _kept(original: Mapping[str, object]) -> str | None:
    word = original.get("kept")
    return None if word is None else str(word)


def _found(path: str, facts: Mapping[str, object]) -> Found:
    digest, recorded, problem = facts.get("sha256"), facts.get("recorded"), facts.get("problem")
    return Found(
        path=path,
        kind=str(facts["kind"]),
        state=FileState(Sha256(str(digest)) if digest else None, bool(facts.get("executable"))),
        recorded=Sha256(str(recorded)) if recorded else None,
        problem=str(problem) if problem else None,
    )


def _applied(entry: Mapping[str, object]) -> AppliedPatch:
    changes = entry["changes"]
    assert isinstance(changes, list)
    return AppliedPatch(
        queue=str(entry["queue"]),
        patch=str(entry["patch"]),
        release=str(entry["release"]),
        sha256=Sha256(str(entry["sha256"])),
        changes=tuple(
            PathChange(
                safe_path(str(path), source="the environment's state.json"),
                FileState.from_json(before),
                FileState.from_json(after),
            )
            for path, before, after in changes
        ),
        options=str(entry.get("options", "")),
        receipt=str(entry.get("receipt", "")),
        forced=bool(entry.get("forced")),
    )
