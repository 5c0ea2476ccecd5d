"""A real uv with a cache of its own, environments that share its files, and what they hold."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests import world
from tests.agent import agent_lab

MODES = ("clone", "hardlink", "symlink", "copy")
FILES = {
    "demo/__init__.py": "",
    "demo/a.py": "x = 1\n",
    "demo/tool.py": "tool = 1\n",
    "demo/gone.py": "gone = 1\n",
    "demo/old.py": "moved = 1\n",
    "demo/data.json": "{}\n",
    "demo/still.py": "still = 1\n",
}
# What a patch may do to files, and the files as it leaves them.
CHANGES: Mapping[str, Mapping[str, agent_lab.File | bytes | None]] = {
    "changed": {"demo/a.py": b"x = 2\n"},
    "mode only": {"demo/tool.py": (b"tool = 1\n", True)},
    "deleted": {"demo/gone.py": None},
    "emptied": {"demo/data.json": b""},
    "created": {"demo/made/m.py": b"m = 1\n"},
    "renamed": {"demo/old.py": None, "demo/new.py": b"moved = 1\n"},
}
EVERYTHING = {path: file for files in CHANGES.values() for path, file in files.items()}


class Uv:
    """The real uv, with a cache in `root` and wheels in ``root/wheels``; it asks no index."""

    def __init__(self, root: Path) -> None:
        beside = Path(sys.executable).with_name("uv")
        found = str(beside) if beside.exists() else shutil.which("uv")
        assert found, "uv is needed: pip install uv"
        self.tool, self.root, self.cache = found, root, root / "uv-cache"
        self.wheels = root / "wheels"
        self.wheels.mkdir(parents=True)
        world.wheel(self.wheels, dict(FILES))

    def run(self, *arguments: str | Path) -> str:
        environ = {**os.environ, "UV_CACHE_DIR": str(self.cache), "UV_OFFLINE": "1"}
        environ.pop("VIRTUAL_ENV", None)
        done = subprocess.run(
            [self.tool, *map(str, arguments)],
            check=False,
            capture_output=True,
            text=True,
            env=environ,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def environment(self, name: str, mode: str) -> Environment:
        """Make a virtual environment with ``demo`` in it, linked as `mode` says."""
        self.run("venv", "-q", "--python", sys.executable, self.root / name)
        made = Environment(self.root / name, self, mode)
        made.install()
        return made

    def cached(self) -> dict[str, Any]:
        """Return every file of the cache: bytes, mode, owner, mtime, inode, attributes."""
        return {
            str(path.relative_to(self.cache)): held(path)
            for path in self.cache.rglob("*")
            if path.is_file() and path.name != ".lock"
        }

    def cached_module(self, name: str) -> Path:
        """Return the cache's own file of one name of the wheel."""
        (found,) = self.cache.glob(f"archive-v*/*/{name}")
        return found


class Environment:
    """A virtual environment that uv made."""

    def __init__(self, root: Path, uv: Uv, mode: str) -> None:
        self.root, self.uv, self.mode = root, uv, mode
        self.python = root / "bin/python"

    @property
    def site(self) -> Path:
        (found,) = self.root.glob("lib/python*/site-packages")
        return found

    @property
    def controller(self) -> agent_lab.Controller:
        return agent_lab.Controller(self.site)

    def install(self, *more: str) -> None:
        """Install ``demo`` from the local wheels."""
        links = ("--no-index", "--find-links", self.uv.wheels, "--link-mode", self.mode)
        self.uv.run("pip", "install", "-q", "--python", self.python, *links, *more, "demo==1.0")

    def run(self, code: str) -> str:
        """Return what a fresh interpreter of the environment prints."""
        return subprocess.run(
            [str(self.python), "-c", code], check=True, capture_output=True, text=True
        ).stdout.strip()


def held(path: Path) -> dict[str, Any]:
    """Return all that a pop promises of one path, and its inode."""
    info = path.lstat()
    link = path.is_symlink()
    attributes = {} if link else {n: os.getxattr(path, n) for n in sorted(os.listxattr(path))}
    return {
        "mode": stat.filemode(info.st_mode),
        "owner": (info.st_uid, info.st_gid),
        "mtime": None if path.is_dir() and not link else info.st_mtime_ns,
        "link": os.readlink(path) if link else None,
        "bytes": path.read_bytes() if path.is_file() else None,
        "attributes": attributes,
        "inode": info.st_ino,
    }


def holds(site: Path) -> dict[str, dict[str, Any]]:
    """Return all of a site but patchq's state and bytecode that RECORD does not list."""
    found = {}
    for folder, names, files in os.walk(site):
        names[:] = [name for name in names if name not in (".patchq", "__pycache__")]
        for name in [*names, *files]:
            path = Path(folder, name)
            found[str(path.relative_to(site))] = held(path)
    return found


def same_but_inodes(found: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return what was found without the inodes: what a pop promises in any case."""
    return {
        path: {key: value for key, value in facts.items() if key != "inode"}
        for path, facts in found.items()
    }


@contextlib.contextmanager
def mounted(target: Path, *arguments: str | Path) -> Iterator[Path]:
    """Mount something for a while."""
    target.mkdir(exist_ok=True)
    subprocess.run(["mount", *map(str, arguments), str(target)], check=True)
    try:
        yield target
    finally:
        subprocess.run(["umount", str(target)], check=True)


@contextlib.contextmanager
def ext4(folder: Path, size: int = 32 << 20) -> Iterator[Path]:
    """Make an ext4 of one's own, which has its limit of 65000 names for an inode."""
    image = folder / "image"
    image.touch()
    os.truncate(image, size)
    subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True)
    with mounted(folder / "disk", "-o", "loop", image) as disk:
        yield disk


@contextlib.contextmanager
def overlay(folder: Path, lower: Path) -> Iterator[Path]:
    """Mount `lower` as the lower layer of an overlay, as a container image is."""
    for name in ("upper", "work"):
        (folder / name).mkdir()
    layers = f"lowerdir={lower},upperdir={folder / 'upper'},workdir={folder / 'work'}"
    with mounted(folder / "merged", "-t", "overlay", "overlay", "-o", layers) as merged:
        yield merged


def fill(source: Path, folder: Path, limit: int = 65000) -> None:
    """Give an inode names until it can get no more."""
    folder.mkdir()
    for number in range(limit - source.lstat().st_nlink):
        os.link(source, folder / str(number))
