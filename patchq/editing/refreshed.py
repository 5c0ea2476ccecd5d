"""push and pop with ``--refresh``: each patch is written anew on the way, as with quilt.

Each step is a change of its own: where one does not go, those before it are done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from patchq.conversation import look, move, plain, view
from patchq.conversation.commit import Ground
from patchq.conversation.goal import Upto
from patchq.editing import formed, refreshing
from patchq.errors import ExitCode
from patchq.report import Report
from patchq.transport.channel import Conversation


def push(
    aim: view.Aim, ground: Ground, upto: Upto, how: plain.How | None = None
) -> Conversation[Report]:
    """Put patches on up to a goal, and refresh each."""
    seen = yield from look.sight(aim, view.Want())
    goal = move.up(seen, upto)
    if isinstance(goal, str):
        return move.nothing("push", seen, goal)
    done: list[Report] = []
    for _ in range(len(seen.applied), goal):
        done.append((yield from move.push(aim, ground, Upto(), how)))
        if done[-1].exit_code is not ExitCode.DONE or ground.dry_run:
            break
        done.append((yield from refreshing.refresh(aim, ground, None, formed.How())))
    return _joined("push", done, written_last=True)


def pop(aim: view.Aim, ground: Ground, upto: Upto, force: bool = False) -> Conversation[Report]:
    """Refresh the patches that come off, each before it does."""
    want = view.Want(more=("patches",), series="any")
    seen = yield from look.sight(aim, want, need=view.Need.RECORD)
    keep = move.down(seen, upto)
    done: list[Report] = []
    for _ in range(keep, len(seen.applied)):
        done.append((yield from refreshing.refresh(aim, ground, None, formed.How())))
        done.append((yield from move.pop(aim, ground, Upto(), force)))
        if done[-1].exit_code is not ExitCode.DONE or ground.dry_run:
            break
    return _joined("pop", done) if done else move.nothing("pop", seen, "No patch removed")


def _joined(verb: str, done: Sequence[Report], written_last: bool = False) -> Report:
    """Return what all steps say: where the stack is now is said once, at the end."""
    lines: list[str] = []
    for one in done:
        moved = one.document.get("verb") == verb and one.exit_code is ExitCode.DONE
        if moved:
            lines += one.lines[:-1]
            if written_last and lines[-1] == "":  # below what is said of the refresh
                lines.pop()
        elif written_last and one.document.get("verb") == "refresh":
            lines += [*one.lines, ""]
        else:
            lines += one.lines
    moves = [one for one in done if one.document.get("verb") == verb]
    if moves[-1].exit_code is ExitCode.DONE:
        lines.append(moves[-1].lines[-1])
    patches: list[object] = []
    for one in moves:
        listed = one.document.get("patches")
        patches += listed if isinstance(listed, list) else []
    return replace(
        moves[-1],
        lines=tuple(lines),
        notes=tuple(note for one in done for note in one.notes),
        document={**moves[-1].document, "patches": patches},
        warnings=tuple(note for one in done for note in one.warnings),
    )
