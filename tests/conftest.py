"""Fixtures that many tests share."""

import shutil

import pytest

from tests import world as worlds


@pytest.fixture(scope="session")
def pattern(tmp_path_factory):
    """A world made once; tests get copies."""
    return worlds.make(tmp_path_factory.mktemp("world"))


@pytest.fixture
def world(pattern, tmp_path):
    """A world of one's own: a wheel, a locked queue, a pristine site, a warm cache."""
    shutil.copytree(pattern.root, tmp_path / "w", symlinks=True)
    return worlds.World(tmp_path / "w")
