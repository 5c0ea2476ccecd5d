"""Fresh interpreters of every version that write bytecode, and ways in which it comes to be."""

from __future__ import annotations

import functools
import itertools
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.agent import agent_lab
from tests.torture import form

KINDS = ("timestamp", "checked-hash", "unchecked-hash")
LEVELS = ("", "-O", "-OO")
PREAMBLE = """
import importlib.machinery, itertools, os, sys
{imports}
sys.dont_write_bytecode = {quiet!r}
sys.pycache_prefix = {prefix!r}
sys.path.insert(0, {site!r})
"""
# compileall of 3.8 knows one level at a time, and so do we.
COMPILE = """
mode = py_compile.PycInvalidationMode[{kind!r}]
for path in {paths!r}:
    py_compile.compile(
        path, cfile=path + "c" if {legacy!r} else None, invalidation_mode=mode, doraise=True
    )
"""
# Real imports, by the real loader, which waits for a word before it looks at the source's
# times, reads the source, and writes what it compiled.
SLOW = """
machinery = importlib.machinery
def word(step):
    print(step, flush=True)
    assert sys.stdin.readline() == step + chr(10)
class Slow(machinery.SourceFileLoader):
    def path_stats(self, path):
        word("look")
        return super().path_stats(path)
    def get_data(self, path):
        if path.endswith(".py"):
            word("read")
        return super().get_data(path)
    def set_data(self, path, data, **more):
        word("write")
        super().set_data(path, data, **more)
sys.path_importer_cache.clear()
sys.path_hooks.insert(0, machinery.FileFinder.path_hook((Slow, [".py"])))
import demo.a
"""
# Imports without end; the file that it is given counts them. Only 1 and 2 are values of x.
STORM = """
handle = os.open({counter!r}, os.O_WRONLY | os.O_CREAT)
for number in itertools.count():
    os.pwrite(handle, b"%d" % number, 0)
    for name in [name for name in sys.modules if name.startswith("demo")]:
        del sys.modules[name]
    importlib.invalidate_caches()
    import demo.a
    assert demo.a.x in (1, 2), demo.a.x
"""


@functools.cache
def interpreters() -> tuple[str, ...]:
    """Return every Python from 3.8 on that is here."""
    return tuple(agent_lab.interpreters())


def ways() -> list[tuple[str, str]]:
    """Return interpreters and levels: all pairs, in the short form each level once."""
    if form.LONG:
        return list(itertools.product(interpreters(), LEVELS))
    return list(zip(form.some(interpreters(), 3), LEVELS, strict=False))


def environ() -> dict[str, str]:
    """Return this process's environment, in which Python writes bytecode beside the source."""
    away = ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX", "PYTHONPATH")
    return {name: value for name, value in os.environ.items() if name not in away}


def start(
    python: str,
    site: Path,
    code: str,
    level: str = "",
    prefix: Path | None = None,
    quiet: bool = False,
    imports: str = "",
) -> subprocess.Popen[str]:
    """Start a fresh interpreter that imports from `site`; nobody sees its `prefix`.

    A `quiet` one writes no bytecode; `imports` come before the prefix counts.
    """
    told = PREAMBLE.format(
        prefix=prefix and str(prefix), site=str(site), quiet=quiet, imports=imports
    )
    told += code
    return subprocess.Popen(
        [python, "-IS", *([level] if level else []), "-c", told],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environ(),
    )


def run(
    python: str,
    site: Path,
    code: str,
    level: str = "",
    prefix: Path | None = None,
    quiet: bool = False,
    imports: str = "",
) -> str:
    """Return what a fresh interpreter prints; it must end well."""
    process = start(python, site, code, level, prefix, quiet, imports)
    out, err = process.communicate()
    assert process.returncode == 0, err
    return out.strip()


def value(
    python: str,
    site: Path,
    level: str = "",
    prefix: Path | None = None,
    name: str = "demo.a",
    quiet: bool = False,
) -> str:
    """Return the x of a module as a fresh interpreter sees it, "gone" where there is none."""
    code = (
        f"try: print(importlib.import_module({name!r}).x)\n"
        "except ModuleNotFoundError: print('gone')\n"
    )
    return run(python, site, code, level, prefix, quiet)


def values(
    site: Path, prefixes: Sequence[Path | None] = (None,), name: str = "demo.a"
) -> set[str]:
    """Return what interpreters of several versions and levels see."""
    return {
        value(python, site, level, prefix, name) for python, level in ways() for prefix in prefixes
    }


def compiled(
    python: str,
    paths: Iterable[Path],
    kind: str = "timestamp",
    level: str = "",
    legacy: bool = False,
    prefix: Path | None = None,
) -> None:
    """Compile sources as an administrator would."""
    code = COMPILE.format(
        kind=kind.upper().replace("-", "_"), paths=[str(path) for path in paths], legacy=legacy
    )
    run(python, Path("/nowhere"), code, level, prefix, imports="import py_compile")


def compiled_by_all(site: Path, kind: str, legacy: bool, prefix: Path | None = None) -> None:
    """Compile demo.a in all ways; a file beside the source has no version or level."""
    for python, level in ways()[:1] if legacy else ways():
        compiled(python, [site / "demo/a.py"], kind, level, legacy, prefix)


def bytecode(folder: Path) -> dict[str, bytes]:
    """Return every compiled file below a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*.py[co]"))
    }


class SlowImport:
    """An import of demo.a that goes on step by step: look, read, write."""

    def __init__(self, site: Path, prefix: Path | None = None) -> None:
        self.process = start(sys.executable, site, SLOW, "", prefix)
        self.waits = self._next()
        # __init__.py of the package comes first.
        while self.waits and not self._package_done:
            self.go()

    _package_done = False
    _looks = 0

    def _next(self) -> str:
        assert self.process.stdout
        word = self.process.stdout.readline().strip()
        if word == "look":
            self._looks += 1
            self._package_done = self._looks == 2
        return word

    def go(self, step: str | None = None) -> None:
        """Let it take the step that it waits for."""
        assert step in (None, self.waits)
        assert self.process.stdin
        self.process.stdin.write(self.waits + "\n")
        self.process.stdin.flush()
        self.waits = self._next()

    def end(self) -> None:
        """Let it come to its end, and check that it did well."""
        while self.waits:
            self.go()
        _, err = self.process.communicate()
        assert self.process.returncode == 0, err


class Storm:
    """A process that imports demo.a again and again, and writes bytecode each time."""

    def __init__(self, python: str, site: Path, counter: Path, prefix: Path | None = None) -> None:
        self.counter = counter
        code = STORM.format(counter=str(counter))
        self.process = start(python, site, code, "", prefix)

    def __enter__(self) -> Storm:
        self.wait()
        return self

    def wait(self) -> None:
        """Wait until an import that began after this call has ended."""
        begun = self._count()
        while self._count() < begun + 2:
            if self.process.poll() is not None:
                raise AssertionError(self.process.communicate()[1])
            os.sched_yield()

    def _count(self) -> int:
        text = self.counter.read_text() if self.counter.exists() else ""
        return int(text) if text else 0

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()
