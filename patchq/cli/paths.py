"""Files as a user names them, as paths below the environment's root."""

from __future__ import annotations

import os
from pathlib import Path

from patchq.cli import places
from patchq.cli.run import Target


def root_of(target: Target) -> Path | None:
    """Return the folder that a target's paths count from, where it is here and known."""
    if target.hosts:
        return None
    if target.tree is not None:
        return places.tree(target.tree)
    return None if target.target is None else Path(target.target).absolute()


def paths_of(target: Target, given: tuple[str, ...]) -> tuple[str, ...]:
    """Return files as paths below the environment's root."""
    root = root_of(target)
    if root is None and not target.hosts:
        given = tuple(map(_here, given))
    return tuple(places.inside(root, name) for name in given)


def _here(name: str) -> str:
    """Return a file with all of its path where the user stands in site-packages, or names it."""
    full = os.path.abspath(name)
    return full if {"site-packages", "dist-packages"} & set(full.split(os.sep)) else name
