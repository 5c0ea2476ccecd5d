"""A push that is tried: the environment's interpreter imports modules, or it comes off again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from patchq.conversation import undo, view
from patchq.conversation.commit import Ground
from patchq.errors import ExitCode, PatchqError
from patchq.report import Report
from patchq.transport.channel import AgentError, Conversation

_NONE: Mapping[str, Any] = {"imported": [], "failed": None, "printed": ""}
# Lines that are told of what a process printed that ended without a traceback.
_LINES = 10


def tried(
    aim: view.Aim,
    ground: Ground,
    push: Callable[[], Conversation[Report]],
    modules: tuple[str, ...],
) -> Conversation[Report]:
    """Push, then import modules in a fresh process there; a failure takes the push off again.

    Without `modules` it is those that queue.toml names, else those that the push touched.
    """
    done = yield from push()
    moved = done.document.get("patches")
    if done.exit_code is not ExitCode.DONE or ground.dry_run or not isinstance(moved, list):
        return done
    queue = next(one for one in aim.queues if one.name == done.document["queue"])
    wanted = modules or queue.imports or touched(_paths(done))
    tested = (yield from _imported(aim, queue.distribution, wanted)) if wanted else _NONE
    document = {**done.document, "import": tested}
    failed = tested["failed"]
    if failed is None:
        note = f"Imported in a fresh process: {', '.join(wanted) or 'nothing'}"
        return replace(done, notes=(note, *done.notes), document=document)
    receipt = done.document["receipt"]
    assert isinstance(receipt, dict)
    try:
        taken = yield from undo.undo(replace(aim, name=queue.name), ground, receipt["id"])
    except PatchqError as error:
        taken = Report((), (f"  why: {error.what}: {error.why}",), {}, ExitCode.FAILED)
    return _failed(done, taken, tested, document)


def _imported(
    aim: view.Aim, distribution: str, modules: tuple[str, ...]
) -> Conversation[Mapping[str, Any]]:
    """Ask for an import; that it cannot be tried is a failure of the first module."""
    try:
        reply = yield aim.request("import", distribution, modules=list(modules))
    except AgentError as error:
        text = f"{error.what}: {error.why}"
        failed = {"module": modules[0], "error": "not tried", "text": text, "trace": ""}
        return {**_NONE, "failed": failed}
    return {key: reply.message["ok"][key] for key in _NONE}


def _failed(
    done: Report, taken: Report, tested: Mapping[str, Any], document: Mapping[str, object]
) -> Report:
    failed = tested["failed"]
    why = f"import {failed['module']}: {failed['error']}: {failed['text']}"
    told = [*failed["trace"].splitlines(), *(() if failed["trace"] else _ends(tested["printed"]))]
    trace = (f"    {line}" for line in told if line.strip())
    off = taken.exit_code is ExitCode.DONE
    back = "The push was taken off again." if off else "It could not be taken off: patchq status"
    notes = (f"patchq: {why}", *trace, back, *taken.notes)
    document = {**document, "why": why.split("\n")[0], "taken_off": off}
    document |= {key: taken.document.get(key) for key in ("top", "running")} if off else {}
    return Report((*done.lines, *taken.lines), notes, document, ExitCode.FAILED)


def _ends(printed: str) -> list[str]:
    return printed.splitlines()[-_LINES:]


def _paths(done: Report) -> list[str]:
    """Return the files that a push left, without those that it took away."""
    paths, gone = (done.document.get(key) for key in ("paths", "removed"))
    assert isinstance(paths, list)
    assert isinstance(gone, list)
    return [str(path) for path in paths if path not in gone]


def touched(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the modules that files are; a program (``__main__``) is none to import.

    Example:
        >>> touched(["a/__init__.py", "a/b.py", "a/data.txt", "a/x-y.py", "a/__main__.py"])
        ('a', 'a.b')
    """
    names = [
        path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for path in paths
        if path.endswith(".py")
    ]
    return tuple(name for name in names if is_module(name) and not name.endswith("__main__"))


def is_module(name: str) -> bool:
    """Return whether a name is a module's."""
    return all(map(str.isidentifier, name.split(".")))
