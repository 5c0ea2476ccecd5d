"""Which queue a verb means, of those in sight and those on the stack."""

from __future__ import annotations

from patchq.conversation import answers
from patchq.conversation.view import Aim, Sight
from patchq.errors import PatchqError, UsageError
from patchq.queue import store


def only(aim: Aim, seen: list[Sight], *, record: bool, gone: bool) -> Sight | None:
    """Return the one queue that a verb means, None where there is none.

    A verb that works from the `record` means the queue that has patches on; any
    other one, and where none has, the queue whose series fits. `gone` counts a
    distribution, too, of which only the record is left; its queues are one and the same then.

    Raises:
        UsageError: several are meant equally.
    """
    named = [one for one in seen if aim.name is None or one.queue.name == aim.name]
    here = [
        one for one in named if one.survey.installed is not None or (gone and one.survey.orphaned)
    ]
    held = [one for one in here if one.applied] if record else []
    fits = held or [
        one for one in here if one.choice is not None and (record or one.queue.releases)
    ]
    if gone and len({one.queue.distribution for one in fits}) == 1:
        return fits[0]  # what is recovered is the distribution's, whatever its queues
    if len(fits) > 1:
        raise UsageError(
            f"{len(fits)} queues fit this environment: {', '.join(o.queue.name for o in fits)}",
            why="a verb works with one queue" + _with_patches(fits),
            mend=", or: ".join(f"patchq VERB --queue {one.queue.name}" for one in _meant(fits)),
        )
    return next(iter(fits or here), None)


def _meant(fits: list[Sight]) -> list[Sight]:
    """Return those of several queues that have patches on, else all of them."""
    return [one for one in fits if one.applied] or fits


def _with_patches(fits: list[Sight]) -> str:
    held = [one.queue.name for one in fits if one.applied]
    if len(held) == len(fits):
        return ", and each of them has patches on here"
    return f"; patches of {' and '.join(held)} are on here" if held else ""


def none(aim: Aim, seen: list[Sight]) -> PatchqError:
    """Return the error for a verb that no queue answers to."""
    if aim.name is not None and not any(one.queue.name == aim.name for one in seen):
        return UsageError(
            f"there is no queue {aim.name}",
            why="it is not in sight, and no patch of it is applied here",
            mend="patchq queues",
        )
    if not seen:
        return UsageError(
            "there is no queue to work with",
            why="no folder with a queue.toml was found, and no patch is applied here",
            mend="patchq queues   # lists the folders that are searched",
        )
    return _not_installed(aim, next((one for one in seen if one.survey.orphaned), seen[0]))


def _not_installed(aim: Aim, one: Sight) -> PatchqError:
    if one.survey.refusal and one.survey.refusal.get("word") == "no-record":
        return answers.refused(one.survey.refusal)  # it is there, as nothing that can be patched
    name, site = one.queue.distribution, one.survey.site or "this environment"
    if one.survey.orphaned:
        return PatchqError(
            f"{name} is not installed any more in {site}",
            why="it was removed under the patches; patchq's record of them is still there",
            mend="patchq recover   # sets the record aside",
        )
    mend = "patchq VERB --python /path/to/the/environment/bin/python"
    if one.queue.releases and aim.target is None and not aim.remote:
        mend += f", or: pip install {name}=={one.queue.releases[-1]}"
    if aim.name is None and store.is_shipped(one.queue):
        mend += "; for another package make a queue first: patchq init NAME"
    return PatchqError(
        f"{name} is not installed in {site}",
        why=f"queue {one.queue.name} is for {name}, and no dist-info of it is there",
        mend=mend,
    )
