"""What tells the processes of one environment from all others."""

from __future__ import annotations

import os
import re
import sys
from typing import Dict, FrozenSet, List, NamedTuple, Optional, Tuple

from patchq.agent import facts, folders, proc
from patchq.agent.environment import Environment
from patchq.agent.programs import Program

# Prefixes whose interpreter serves programs of all kinds.
_SHARED = ("/usr", "/usr/local")
_TOP = re.compile(rb'^([^/,"\r\n.][^/,"\r\n]*)([/,])', re.MULTILINE)
_SCRIPT = re.compile(rb'^"?((?:\.\./)*bin/[^",\r\n]+)"?,', re.MULTILINE)


class Sought(NamedTuple):
    """The marks of an environment and a distribution in it.

    `sites`: the folder, as it is named and as it is; `mark`: how a file in it begins in
    /proc/PID/maps; `tops`: how one of the distribution begins in RECORD; `packages`,
    `scripts`: what a command line may name; `bins`: where its interpreter is, none for
    ``--target``; `venv`: what VIRTUAL_ENV says there, none outside one; `exe`: the
    interpreter's file; `dedicated`: no program of the system runs on it; `view`: the mount
    namespace in which all this holds, `mounted`: what is mounted there.
    """

    sites: FrozenSet[str]
    mark: Tuple[bytes]
    tops: Tuple[str, ...]
    packages: FrozenSet[str]
    scripts: FrozenSet[str]
    bins: FrozenSet[str]
    venv: FrozenSet[str]
    exe: str
    dedicated: bool
    view: str
    mounted: Dict[str, Tuple[str, str]]

    def inside(self, path: str) -> Optional[str]:
        """Return an absolute path as RECORD has it, None outside the folder."""
        for site in self.sites:
            if path.startswith(site + "/"):
                return path[len(site) + 1 :]
        return None

    def belongs(self, pid: int, first: str, program: Program, exe: Optional[str]) -> bool:
        """Return whether a process runs on the environment, by its interpreter or its path.

        `first`: the interpreter as its command line names it; `exe`: the file that it is,
        None where that cannot be read.
        """
        if exe is not None and proc.link(pid, "ns/mnt") != self.view:
            return False
        environ = {} if exe is None else proc.environ(pid)
        paths = environ.get("PYTHONPATH", "").split(":")
        if not self.sites.isdisjoint(paths) and not {"E", "I"} & set(program.flags):
            return True
        starts_here = program.kind in ("module", "code") and "I" not in program.flags
        if starts_here and proc.link(pid, "cwd") in self.sites:
            return True
        if "S" in program.flags or not self.bins:
            return False
        if program.kind == "title":
            told = environ.get("VIRTUAL_ENV")
            return exe == self.exe and (told in self.venv if self.venv else told is None)
        if not self.venv and exe not in (None, self.exe):
            return False  # another Python in the same folder
        return self._is_own(pid, first, environ)

    def _is_own(self, pid: int, first: str, environ: Dict[str, str]) -> bool:
        """Return whether an interpreter, as a command line names it, is the environment's."""
        if "/" not in first:
            for folder in environ.get("PATH", "").split(":"):
                if folder in self.bins:
                    return True
                if self._is_near(folder) and facts.exists(os.path.join(folder, first)):
                    return os.path.realpath(folder) in self.bins
            return False
        folder = os.path.dirname(os.path.normpath(os.path.join(proc.link(pid, "cwd"), first)))
        if folder in self.bins:
            return True
        return self._is_near(folder) and os.path.realpath(folder) in self.bins

    def _is_near(self, folder: str) -> bool:
        """Return whether a folder is on a disk of the environment, which answers."""
        mine = {self._disk(path) for path in (*self.sites, *self.bins)}
        return folder.startswith("/") and self._disk(folder) in mine

    def _disk(self, path: str) -> str:
        while path.strip("/") and path not in self.mounted:  # normpath keeps a leading "//"
            path = os.path.dirname(path)
        return path if path in self.mounted else "/"


def of(here: Environment) -> Sought:
    """Return the marks of an environment; the agent's own interpreter is the environment's."""
    assert here.installed is not None
    listed = here.installed.record or b""
    tops = {(os.fsdecode(name), mark == b"/") for name, mark in set(_TOP.findall(listed))}
    tops = {one for one in tops if not one[0].endswith((".dist-info", ".egg-info"))}
    sites = frozenset(_both(here))
    scripts = map(os.fsdecode, _SCRIPT.findall(listed))
    venv, exe, bins = _interpreter(here)
    return Sought(
        sites,
        (os.fsencode(" %s/" % here.real),),
        tuple(name + "/" if folder else name for name, folder in tops),
        frozenset(name[:-3] if name.endswith(".py") else name for name, _ in tops),
        frozenset(
            os.path.normpath(os.path.join(site, script)) for script in scripts for site in sites
        ),
        frozenset(bins),
        frozenset(venv),
        exe,
        bool(venv) or (bool(bins) and sys.prefix not in _SHARED),
        proc.link(os.getpid(), "ns/mnt"),
        here.mounted,
    )


def _interpreter(here: Environment) -> Tuple[List[str], str, List[str]]:
    """Return the virtual environment of a folder, its interpreter's file, and where that is.

    Of a folder that is no interpreter's there is none of it.
    """
    homes = [os.path.dirname(os.path.dirname(os.path.dirname(site))) for site in _both(here)]
    if os.path.isfile(homes[-1] + "/pyvenv.cfg"):
        return homes, os.path.realpath(homes[-1] + "/bin/python"), [one + "/bin" for one in homes]
    if here.real not in map(os.path.realpath, folders.site_folders()):
        return [], "", []
    own = os.path.abspath(sys.executable)
    return (
        [],
        proc.link(os.getpid(), "exe"),
        [os.path.dirname(own), os.path.dirname(os.path.realpath(own))],
    )


def _both(here: Environment) -> List[str]:
    """Return an environment's folder as it is named and as it is."""
    return [here.site, here.real]
