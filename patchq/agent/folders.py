"""The site-packages folders of the interpreter that runs the agent, by computation.

The agent runs with ``-I -S``: `sys.prefix` is not the venv's, and no ``.pth``
line has run. The order is that of `sys.path`, so that the first folder that
holds a distribution is the one whose copy is imported.
"""

from __future__ import annotations

import os
import sys
from typing import List, Optional


def site_folders() -> List[str]:
    """Return the existing site-packages folders, in the order of `sys.path`."""
    venv = environment()
    if venv is None:
        found = _system()
    else:
        found = _of_prefix(venv)
        if _sees_system(venv):
            found += _system()
    seen: List[str] = []
    real = set()
    for folder in found:
        if os.path.isdir(folder) and os.path.realpath(folder) not in real:
            real.add(os.path.realpath(folder))
            seen.append(folder)
    return seen


def environment() -> Optional[str]:
    """Return the folder of the virtual environment that the interpreter is of, or None."""
    parent = os.path.dirname(os.path.abspath(sys.executable))
    for folder in (parent, os.path.dirname(parent)):
        if os.path.isfile(os.path.join(folder, "pyvenv.cfg")):
            return folder
    return None


def externally_managed() -> Optional[str]:
    """Return the marker of PEP 668 for an interpreter outside any venv, or None."""
    if environment() is not None:
        return None
    path = os.path.join(os.path.dirname(os.path.abspath(os.__file__)), "EXTERNALLY-MANAGED")
    return path if os.path.isfile(path) else None


def _of_prefix(prefix: str) -> List[str]:
    abi = "t" if "t" in getattr(sys, "abiflags", "") else ""
    version = "python%d.%d%s" % (sys.version_info[0], sys.version_info[1], abi)
    libraries = dict.fromkeys((getattr(sys, "platlibdir", "lib"), "lib"))
    return [os.path.join(prefix, library, version, "site-packages") for library in libraries]


def _system() -> List[str]:
    # Under -S importing site runs nothing; Debian's own folders are in its functions.
    import site

    found = []
    if os.geteuid() == os.getuid():
        found.append(site.getusersitepackages())
    found += site.getsitepackages(list(dict.fromkeys((sys.prefix, sys.exec_prefix))))
    return found


def _sees_system(venv: str) -> bool:
    with open(os.path.join(venv, "pyvenv.cfg"), encoding="utf-8", errors="replace") as lines:
        for line in lines:
            key, _, value = line.partition("=")
            if key.strip().lower() == "include-system-site-packages":
                return value.strip().lower() == "true"
    return False
