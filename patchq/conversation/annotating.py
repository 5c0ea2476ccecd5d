"""`annotate`: which patch brought each line of a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from patchq.conversation import differing, heights, look, names, plain, view
from patchq.conversation.goal import Upto
from patchq.engine import annotate as annotating
from patchq.engine import lines, traces
from patchq.engine.apply import File
from patchq.errors import ExitCode, PatchqError
from patchq.model import AppliedPatch, Patch
from patchq.queue import store
from patchq.report import Report
from patchq.transport.channel import Conversation


@dataclass(frozen=True, slots=True)
class _Story:
    """A file's texts: below all patches that have it, then as each of `patches` leaves it."""

    texts: tuple[bytes | None, ...]
    patches: tuple[str, ...]


def annotate(aim: view.Aim, path: str, name: str | None) -> Conversation[Report]:
    """Show a file with the number of the patch that brought each line, and the patches.

    The file is shown as patch `name` leaves it; where that one is not applied, as it would
    leave it. A file that was renamed on the way is followed.

    Raises:
        PatchqError: there is no such file or patch, or a patch above the top does not fit.
    """
    want = view.Want(contents=True, extra=(path,), more=("patches",))
    seen = yield from look.sight(aim, want, need=view.Need.RECORD)
    held = [one.patch for one in seen.applied]
    every = list(dict.fromkeys((*held, *(seen.names if seen.choice else ()))))
    wanted = None if name is None else every[Upto(name).index(every, "in series")]
    if wanted is None and not held:
        return names.nothing("annotate", seen, "No patches applied", ExitCode.FAILED)
    if wanted is None or wanted in held:
        story = yield from _told(aim, seen, path, wanted)
    else:
        story = yield from _foretold(aim, seen, path, every[: every.index(wanted) + 1])
    if not story.patches and story.texts == (None,):
        raise PatchqError(
            f"{path} is no file of {seen.survey.site}",
            why="it is not there, and no patch has it",
            mend="patchq files -a   # names the files that patches have",
        )
    return _report(seen, path, story)


def _told(aim: view.Aim, seen: view.Sight, path: str, wanted: str | None) -> Conversation[_Story]:
    """Return what the patches of the stack made of a file, up to one of them.

    Edits that are in no patch yet count to the topmost one that has the file.
    """
    stack = seen.survey.stack
    count = len(stack)
    if wanted is not None:
        count = stack.index(seen.applied[differing.applied(seen, wanted)]) + 1
    levels = yield from heights.rise(aim, seen, [path])
    over = differing.shadowed(seen, count, path)
    last = levels.trees[count].get(path) if over else differing.live(seen, path)
    steps = {place: _Step.of(seen, stack[place], one) for place, one in levels.patches.items()}
    return _story(path, levels.trees, {p: s for p, s in steps.items() if p < count}, last)


def _foretold(
    aim: view.Aim, seen: view.Sight, path: str, upto: Sequence[str]
) -> Conversation[_Story]:
    """Return what a file would be with patches that are not applied yet on the stack."""
    held = {one.patch for one in seen.applied}
    wanted = [name for name in upto if name not in held]
    load = plain.series if seen.tree else store.load
    patches = [one for one in load(seen.queue, seen.release).patches if one.name in wanted]
    paths = list(dict.fromkeys((path, *(p for one in patches for p in one.paths))))
    seen = yield from look.again(aim, seen, view.Want(True, extra=tuple(paths), more=("patches",)))
    levels = yield from heights.rise(aim, seen, paths)
    live = {one: differing.live(seen, one) for one in paths}
    fresh = heights.above(seen, patches, levels, live)
    stack = seen.survey.stack
    steps = {place: _Step.of(seen, stack[place], one) for place, one in levels.patches.items()}
    for place, one in enumerate(patches, len(stack)):
        steps[place] = _Step(one.name, one, frozenset(one.paths))
    trees = [{**live, **tree} for tree in (*levels.trees, *fresh)]
    return _story(path, trees, steps, trees[-1].get(path))


@dataclass(frozen=True, slots=True)
class _Step:
    """One patch on the way: what it is called here, and the files that it has."""

    label: str
    patch: Patch
    files: frozenset[str]

    @classmethod
    def of(cls, seen: view.Sight, applied: AppliedPatch, patch: Patch) -> _Step:
        """Return the step of a patch on the stack; of another queue's it says so."""
        other = applied.queue != seen.queue.name
        label = f"{applied.patch} (queue {applied.queue})" if other else applied.patch
        return cls(label, patch, frozenset(change.path for change in applied.changes))


def _story(
    path: str,
    trees: Sequence[Mapping[str, File | None]],
    steps: Mapping[int, _Step],
    last: File | None,
) -> _Story:
    """Return a file's texts from the bottom up; its name is followed from the top down."""
    texts = [last and last[0]]
    labels: list[str] = []
    for place in sorted(steps, reverse=True):
        step = steps[place]
        if path not in step.files:
            continue
        if labels:
            above = trees[place + 1].get(path)
            texts[-1] = above and above[0]
        renamed = (d for d in traces.effective(step.patch) if d.renamed and d.new == path)
        path = next((diff.old for diff in renamed if diff.old is not None), path)
        below = trees[place].get(path)
        texts.append(below and below[0])
        labels.append(step.label)
    return _Story(tuple(reversed(texts)), tuple(reversed(labels)))


def _report(seen: view.Sight, path: str, story: _Story) -> Report:
    text = lines.split(story.texts[-1] or b"")
    numbers = annotating.origins(story.texts)
    shown = [lines.decode(line.removesuffix(b"\n")) for line in text]
    out = [f"{n or ''}\t{line}" for n, line in zip(numbers, shown, strict=True)]
    if story.patches:
        out += ["", *(f"{n}\t{name}" for n, name in enumerate(story.patches, 1))]
    document = {
        "verb": "annotate",
        "queue": seen.queue.name,
        "file": path,
        "patches": list(story.patches),
        "lines": [[n, line] for n, line in zip(numbers, shown, strict=True)],
    }
    edited = path in names.drifted(seen) and story.patches
    note = f"{path} has edits that are in no patch yet; mend: patchq diff -z {path}   # shows them"
    return Report(tuple(out), (*names.interrupted(seen), *([note] if edited else ())), document)
