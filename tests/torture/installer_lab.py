"""Real installers that work on a lab's environment: pips of several ages, uv, plain copies."""

from __future__ import annotations

import contextlib
import functools
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from tests.torture.packager_lab import Lab, quiet, run

PIPS = ("23.0.1", "25.0", "newest")


@functools.cache
def pip(version: str) -> Path:
    """Return a folder with this pip in it, from the package index once a machine."""
    pips = platformdirs.user_cache_path("patchq-tests") / "pips"
    if (pips / version / "pip").is_dir():
        return pips / version
    pips.mkdir(parents=True, exist_ok=True)
    wanted = "pip" if version == "newest" else f"pip=={version}"
    with tempfile.TemporaryDirectory(dir=pips) as folder:
        # Several runs may be at it at once: each in a folder of its own, and the first counts.
        command = ("-m", "pip", "download", "-q", "--no-deps", "-d", folder, wanted)
        run(sys.executable, *command)
        (archive,) = Path(folder).glob("pip-*.whl")
        kept = pips / archive.name.split("-")[1]
        with zipfile.ZipFile(archive) as opened:
            opened.extractall(Path(folder, "got"))
        with contextlib.suppress(OSError):  # it is there
            Path(folder, "got").rename(kept)
    assert (kept / "pip").is_dir()
    return kept


@dataclass(frozen=True)
class Pip:
    """One pip, run by the environment's own interpreter."""

    version: str

    @property
    def name(self) -> str:
        return f"pip {self.version}"

    def __call__(self, lab: Lab, *arguments: object, check: bool = True) -> str:
        env = quiet()
        done = run(lab.python, pip(self.version) / "pip", *arguments, check=check, env=env)
        return done.stdout + f"exit {done.returncode}"

    def install(self, lab: Lab, version: str, *options: object) -> None:
        source = ("--no-index", "--find-links", lab.wheels)
        self(lab, "install", "-q", "--no-deps", *source, *options, f"demo=={version}")

    def reinstall(self, lab: Lab, version: str) -> None:
        self.install(lab, version, "--force-reinstall")

    def uninstall(self, lab: Lab) -> None:
        self(lab, "uninstall", "-q", "-y", "demo")

    def told(self, lab: Lab) -> tuple[str, ...]:
        """Return what list, check and show say."""
        words = (("list", "--format=freeze"), ("check",), ("show", "demo"))
        return tuple(self(lab, *one, check=False) for one in words)


@dataclass(frozen=True)
class Uv:
    """uv, with a cache in the lab and without an index."""

    mode: str = "copy"
    name: str = "uv"

    def __call__(self, lab: Lab, *arguments: object, check: bool = True) -> str:
        beside = Path(sys.executable).with_name("uv")
        tool = str(beside) if beside.exists() else shutil.which("uv")
        assert tool, "uv is needed: pip install uv"
        env = quiet(UV_CACHE_DIR=str(lab.root / "uv-cache"), UV_OFFLINE="1", UV_NO_CONFIG="1")
        done = run(tool, *arguments, check=check, env=env)
        return done.stdout + f"exit {done.returncode}"

    def install(self, lab: Lab, version: str, *options: object) -> None:
        source = ("--no-index", "--find-links", lab.wheels, "--link-mode", self.mode)
        where = ("--python", lab.python)
        self(lab, "pip", "install", "-q", *where, *source, *options, f"demo=={version}")

    def reinstall(self, lab: Lab, version: str) -> None:
        self.install(lab, version, "--reinstall")

    def uninstall(self, lab: Lab) -> None:
        self(lab, "pip", "uninstall", "-q", "--python", lab.python, "demo")

    def told(self, lab: Lab) -> tuple[str, ...]:
        """Return what list, check and show say."""
        words = (("list", "--format=freeze"), ("check",), ("show", "demo"))
        return tuple(self(lab, "pip", *one, "--python", lab.python, check=False) for one in words)


Installer = Pip | Uv
ACTIONS: dict[str, Callable[[Installer, Lab], None]] = {
    "uninstall": lambda tool, lab: tool.uninstall(lab),
    "upgrade": lambda tool, lab: tool.install(lab, "1.1", "--upgrade"),
    "downgrade": lambda tool, lab: tool.install(lab, "0.9"),
    "reinstall": lambda tool, lab: tool.reinstall(lab, "1.0"),
}
STATES: dict[str, tuple[str, ...]] = {
    "after push": ("q",),
    "after push of two queues": ("q", "r"),
    "after pop": (),
}


def fresh(lab: Lab, tool: Installer | None, state: str | None = None) -> None:
    """Lay the environment out: installed by `tool`, in one of `STATES`; None is never patched.

    What is asked for twice is copied.
    """
    shutil.rmtree(lab.place, ignore_errors=True)
    kept = lab.root / "kept" / f"{tool.name if tool else 'bare'} {state}"
    if not kept.is_dir():
        kept.parent.mkdir(exist_ok=True)
        run(sys.executable, "-m", "venv", "--without-pip", lab.place)
        if tool:
            tool.install(lab, "1.0", "other==1.0")
        if state is not None:
            lab.push(*(STATES[state] or ("q", "r")))
            lab.pop(*(() if STATES[state] else ("r", "q")))
        lab.place.rename(kept)
    shutil.copytree(kept, lab.place, symlinks=True)
