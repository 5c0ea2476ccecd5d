"""Fixtures of the agent's tests."""

import agent_lab
import pytest


@pytest.fixture
def site(tmp_path):
    """A folder that holds the distribution ``demo``, as pip installs it."""
    return agent_lab.make_site(tmp_path / "site")


@pytest.fixture
def controller(site):
    """A controller of that folder, with the agent in this process."""
    return agent_lab.Controller(site)
