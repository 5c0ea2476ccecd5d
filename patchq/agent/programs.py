"""What a process's command line says: which interpreter, and which program it runs.

Nothing of what is named here is opened or run. Of the arguments only those are told that
name the program: others may hold keys.
"""

from __future__ import annotations

import os
import re
from typing import FrozenSet, NamedTuple, Optional, Sequence

_PYTHON = re.compile(r"(python|pypy)[\w.+-]*( \(deleted\))?")
# torch names the main thread so.
_THREAD = "pt_main_thread"
_TOLD = 60


class Program(NamedTuple):
    """A command line as Python reads it: `kind` is module, script, code, none or title.

    `value` is the module, the script's path, the code or the title; `flags` are the
    letters of the interpreter's options.
    """

    kind: str
    value: str
    rest: Sequence[str] = ()
    flags: str = ""


def is_python(path: str) -> bool:
    """Return whether a path, or the name of a thread, is a Python interpreter's."""
    return _PYTHON.fullmatch(path.rsplit("/", 1)[-1]) is not None


def program(argv: Sequence[str]) -> Program:
    """Return what a command line runs, by CPython's rules for options.

    A process that wrote a title over its arguments has none (setproctitle and its like).

    >>> program(["/opt/v/bin/python", "-u", "-Xutf8", "-m", "vllm.server", "--key", "k"]).value
    'vllm.server'
    """
    if not argv or not is_python(argv[0]):
        return Program("title", argv[0] if argv else "")
    left, flags = list(argv[1:]), ""
    while left:
        word = left.pop(0)
        if word == "-" or not word.startswith("-"):
            return Program("none" if word == "-" else "script", word, left, flags)
        if word.startswith("--"):
            if word == "--check-hash-based-pycs":
                left[:1] = []
            continue
        for at, letter in enumerate(word[1:], 2):
            if letter in "cm":
                value = word[at:] or (left.pop(0) if left else "")
                return Program("code" if letter == "c" else "module", value, left, flags)
            if letter in "WX":
                left[: 0 if word[at:] else 1] = []
                break
            flags += letter
    return Program("none", "", (), flags)


def name(found: Program, thread: str) -> Optional[str]:
    """Return what to call a process, None for one that only serves multiprocessing.

    `thread`: the name of its main thread, which some write their title into.

    >>> name(program(["python3", "/opt/v/bin/vllm", "serve", "m", "--api-key", "k"]), "vllm")
    'vllm serve'
    """
    if found.kind in ("code", "none"):
        if "multiprocessing.resource_tracker" in found.value:
            return None
        if not is_python(thread) and thread != _THREAD:
            return _plain(thread)
        child = "multiprocessing." in found.value
        return "multiprocessing child" if child else "python -c" if found.value else "python"
    if found.kind == "module":
        return _plain("python -m " + found.value)
    if found.kind == "title" and not found.value.startswith("/"):
        return _plain(found.value)
    base = os.path.basename(found.value)
    verb = found.rest[0] if found.rest else ""
    if base == "vllm" and re.fullmatch("[a-z][a-z-]{1,20}", verb):
        base += " " + verb
    return _plain(base)


def names_package(found: Program, packages: FrozenSet[str], scripts: FrozenSet[str]) -> bool:
    """Return whether a program is of one of these packages, or one of these scripts.

    >>> code = program(["python3", "-c", "import demo.a"])
    >>> names_package(code, frozenset(["demo"]), frozenset())
    True
    """
    if found.kind == "module":
        return found.value.split(".")[0] in packages
    if found.kind == "script":
        return found.value in scripts
    words = re.findall(r"\b(?:import|from)\s+(\w+)", found.value) if found.kind == "code" else ()
    return not packages.isdisjoint(words)


def _plain(text: str) -> str:
    shown = "".join(char if char.isprintable() else "?" for char in text.strip())
    return shown if len(shown) <= _TOLD else shown[: _TOLD - 3] + "..."
