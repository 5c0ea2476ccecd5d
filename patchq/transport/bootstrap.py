"""How an agent starts from nothing: one command line and what follows on stdin.

The command line is constant but for the interpreter, and holds nothing that any
login shell (sh, bash, zsh, fish, tcsh, dash) reads in its own way: no ``!``,
``$``, backquote, backslash, double quote or newline outside ``/bin/sh``. An
interpreter's path travels as octal inside ``/bin/sh``. ``-I -S``: no user site,
no PYTHON* variable, no ``.pth`` line, no sitecustomize of the environment runs.

Then stdin has: ``exit 99 # patchq1 NONCE LENGTH`` and a newline; the loader, LENGTH
bytes of Python; the agent's modules; the first request. Should an rc file have
put another shell in the interpreter's place, the first line makes it leave with
status 99 before it runs anything of the rest.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path

from patchq.errors import UsageError
from patchq.transport import modules
from patchq.transport.become import Become

# The alarm ends it where the link dies while it is sent; `serve` takes that over.
PROGRAM = (
    "import sys,_signal;_signal.alarm(120);"
    "b=sys.stdin.buffer;n,l=b.readline().split()[-2:];exec(b.read(int(l)))"
)
# Says first that it runs: behind sudo with a password (`become.ready`).
_READY = "import sys;print(chr(10)+sys.argv[1][::-1],flush=True);"
# What a shell leaves with when it got the payload's first line (see above).
HIJACKED = 99
# What the loader leaves with under a Python that the agent does not support.
TOO_OLD = 98
# What it leaves with where it got bytecode of another Python.
OTHER = 97
NOT_FOUND = 127
OLDEST = (3, 8)

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._+-")

# Runs in the interpreter's __main__, where PROGRAM left `b` (stdin) and `n` (nonce). It
# must parse under any Python 3. A module is compiled when it is first imported, so that a
# survey does not wait for the modules that write; tracebacks find the source by get_source.
# Every frame was flushed, so that the interpreter need not be taken down with care (5 ms).
_LOADER = """\
import sys
if sys.version_info < (3, 8):
    sys.stderr.write("Python " + sys.version.split()[0] + "\\n")
    sys.exit(98)
import marshal, os, zlib
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import MAGIC_NUMBER
equal = MAGIC_NUMBER == %(magic)r
if %(compiled)d and not equal:
    os._exit(97)
class Modules:
    def __init__(self, texts):
        self.texts = texts
    def find_spec(self, name, path=None, target=None):
        if name in self.texts:
            return ModuleSpec(name, self, is_package=name in ("patchq", "patchq.agent"))
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        text = self.texts[module.__name__]
        path = "<patchq>/" + module.__name__.replace(".", "/") + ".py"
        code = marshal.loads(text) if %(compiled)d else compile(text, path, "exec")
        exec(code, module.__dict__)
    def get_source(self, name):
        return None if %(compiled)d else self.texts[name].decode()
data = b.read(%(size)d)
data = zlib.decompress(data) if %(packed)d else data
sys.meta_path.insert(0, Modules(dict(marshal.loads(data))))
from patchq.agent import serve
serve.main(b, sys.stdout.buffer, n, equal=equal)
os._exit(0)
"""


def argv(python: str) -> list[str]:
    """Return the command that starts an agent under an interpreter of this machine."""
    return [python, "-ISc", PROGRAM]


def command(
    python: str | None,
    become: Become | None = None,
    nonce: bytes = b"",
    *,
    restricted: bool = False,
) -> str:
    """Return the line for a host's login shell; None is its ``python3``.

    `python` is an absolute path, one that starts with ``~/``, or a bare name. `nonce` is
    for sudo with a password. `restricted`: for shells (rbash) that know no ``exec`` and
    run no program by its path.

    Raises:
        UsageError: `python` is none of these.
    """
    run = "" if restricted else "exec "
    sudo, program = become.words(nonce) if become else "", PROGRAM
    last = ""
    if become and become.password is not None:
        program, last = _READY + PROGRAM, f" {nonce.decode()}"
    if python is None:
        return f"{run}{sudo}python3 -ISc '{program}'{last}"
    home = python.startswith("~/")
    if not (home or python.startswith("/") or _is_name(python)) or not python.isprintable():
        raise UsageError(
            f"{python!r} does not name an interpreter on a host",
            why="an absolute path, a path that starts with ~/, or a name is needed",
            mend="ssh HOST command -v python3",
        )
    path = ("$HOME" if home else "") + f'$(printf %b "{_octal(python[1 if home else 0 :])}")'
    shell = "sh" if restricted else "/bin/sh"
    return f'{run}{shell} -c \'exec {sudo}"{path}" -ISc "{program}"{last}\''


def nonce() -> bytes:
    """Return what tells this run's agent from noise."""
    return os.urandom(12).hex().encode()


def payload(
    mark: bytes,
    *,
    writing: bool,
    packed: bool = False,
    compiled: bool = False,
    folder: Path | None = None,
) -> bytes:
    """Return all that goes before the first request.

    `writing` ships the modules that change files, too. `packed` compresses, for a network.
    `compiled`: for an interpreter equal to this one; under another the loader leaves with
    `OTHER`. What takes long to make is kept in `folder`.
    """
    loader, body = _loaded(writing, packed, compiled, folder)
    return b"exit %d # patchq1 %s %d\n" % (HIJACKED, mark, len(loader)) + loader + body


@functools.cache
def _loaded(
    writing: bool, packed: bool, compiled: bool, folder: Path | None
) -> tuple[bytes, bytes]:
    """Return loader and modules, which are the same for all hosts of a run."""
    body = modules.body(writing=writing, packed=packed, compiled=compiled, folder=folder)
    values = {"size": len(body), "packed": packed, "compiled": compiled, "magic": modules.MAGIC}
    return (_LOADER % values).encode(), body


def _is_name(python: str) -> bool:
    return python[:1].isalpha() and "/" not in python and all(c in _PLAIN for c in python)


def _octal(path: str) -> str:
    data = path.encode(errors="surrogateescape")
    return "".join(chr(byte) if chr(byte) in _PLAIN else f"\\0{byte:03o}" for byte in data)
