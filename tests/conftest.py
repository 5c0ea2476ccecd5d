"""Fixtures that many tests share."""

import os
import shutil

import pytest
from hypothesis import settings

from tests import world as worlds

# The same examples on every machine: a run that fails, fails again. The long form of
# the torture (scripts/torture) looks for new ones.
# No example fails for its time: machines are busy.
settings.register_profile("same", derandomize=True, database=None, deadline=None)
settings.register_profile("new", print_blob=True, deadline=None)
settings.load_profile("new" if os.environ.get("PATCHQ_TORTURE") else "same")


@pytest.fixture(scope="session")
def pattern(tmp_path_factory):
    """A world made once; tests get copies."""
    return worlds.make(tmp_path_factory.mktemp("world"))


@pytest.fixture
def world(pattern, tmp_path):
    """A world of one's own: a wheel, a locked queue, a pristine site, a warm cache."""
    shutil.copytree(pattern.root, tmp_path / "w", symlinks=True)
    return worlds.World(tmp_path / "w")
