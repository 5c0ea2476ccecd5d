"""The agent's modules as they are sent: as source, or as bytecode for an equal interpreter.

Compiling them takes an agent half of its time (50 ms of 100). The bytecode of this
interpreter serves every other with the same magic number, and none but those: it is sent
where an agent has said before that it runs under one (`acquaintance`). The files to send
are kept in the user's cache, since making them takes longer than sending them.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import marshal
import os
import stat
import sys
import zlib
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from zipimport import zipimporter

from patchq import agent, cachefile

MAGIC = importlib.util.MAGIC_NUMBER
_DIGEST = hashlib.sha256().digest_size


def body(*, writing: bool, packed: bool, compiled: bool, folder: Path | None = None) -> bytes:
    """Return the modules for the loader of `bootstrap`: marshalled pairs of name and text.

    `writing` adds those that change files. `packed` compresses, for a network. `compiled`:
    bytecode, marshalled once more. What takes long to make is kept in `folder`.
    """
    sources = marshal.dumps(_sources(writing), 2)
    if not (packed or compiled):
        return sources
    form = f"{sys.version} {MAGIC.hex()} {packed} {compiled}".encode()
    name = hashlib.sha256(form + sources).hexdigest()
    found = _kept(folder / name) if folder else None
    if found is None:
        found = marshal.dumps(_compiled(_sources(writing)), 2) if compiled else sources
        found = zlib.compress(found, 6) if packed else found
        if folder is not None:
            cachefile.keep(folder / name, _seal(name, found) + found)
    return found


@functools.cache
def _sources(writing: bool) -> list[tuple[str, bytes]]:
    """Return the agent's modules: name and source.

    Both packages are sent empty: what their `__init__` says is for this side.
    """
    loader = agent.__spec__.loader if agent.__spec__ else None
    assert isinstance(loader, SourceFileLoader | zipimporter)
    assert agent.__file__ is not None
    folder = os.path.dirname(agent.__file__)
    modules = [("patchq", b""), ("patchq.agent", b"")]
    for name in agent.WRITING if writing else agent.READING:
        modules.append(
            (f"patchq.agent.{name}", loader.get_data(os.path.join(folder, f"{name}.py")))
        )
    return modules


def _compiled(sources: list[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
    """Return modules as bytecode, under the file names that the loader gives them."""
    return [
        (name, marshal.dumps(_lean(compile(source, named(name), "exec", optimize=2))))
        for name, source in sources
    ]


def named(module: str) -> str:
    """Return the file name of a module in tracebacks."""
    return f"<patchq>/{module.replace('.', '/')}.py"


def _lean(code: CodeType) -> CodeType:
    """Return code that knows its lines, and not the columns in them: a third less to send.

    The table is that of CPython 3.11 and on (Objects/locations.md there).
    """
    table, last = bytearray(), code.co_firstlineno
    for begin, end, line in code.co_lines():
        for at in range(begin, end, 16):  # an entry is for 8 code units of 2 bytes
            kind = 15 if line is None else 13  # no location; no columns
            table.append(0x80 | kind << 3 | (min(end, at + 16) - at) // 2 - 1)
            if line is not None:
                table += _signed(line - last)
                last = line
    inner = [_lean(each) if isinstance(each, CodeType) else each for each in code.co_consts]
    lean = code.replace(co_linetable=bytes(table), co_consts=tuple(inner))
    return lean if _lines(lean) == _lines(code) else code.replace(co_consts=tuple(inner))


def _signed(number: int) -> bytes:
    """Return a number as a signed variable-length integer: 6 bits a byte, lowest first."""
    left = (-number << 1 | 1) if number < 0 else number << 1
    out = bytearray()
    while left >= 64:
        out.append(0x40 | left & 63)
        left >>= 6
    return bytes([*out, left])


def _lines(code: CodeType) -> list[int | None]:
    """Return the line of each code unit."""
    return [line for begin, end, line in code.co_lines() for _ in range(begin, end, 2)]


def _kept(path: Path) -> bytes | None:
    """Return a file that was kept, None where there is none that may be trusted.

    It is code that hosts will run: it must be this user's, and nobody else's to write.
    """
    try:
        with open(os.open(path, os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            facts = os.fstat(file.fileno())
            own = facts.st_uid == os.geteuid() and stat.S_ISREG(facts.st_mode)
            data = file.read() if own and not facts.st_mode & 0o022 else b""
    except OSError:
        return None
    digest, rest = data[:_DIGEST], data[_DIGEST:]
    return rest if digest == _seal(path.name, rest) else None


def _seal(name: str, data: bytes) -> bytes:
    """Return what stands before a file that is kept: it is whole, and has not another's name."""
    return hashlib.sha256(name.encode() + data).digest()
