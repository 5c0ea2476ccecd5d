"""A client and an embedded host for the tests of the transports."""

import pytest

from tests import ssh_lab


@pytest.fixture
def base():
    """A folder that every user can enter, with the homes of a host and of a jump host."""
    with ssh_lab.folder() as path:
        for name in ("remote", "jump"):
            (path / name).mkdir()
        yield path


@pytest.fixture
def home(base):
    """A client's home."""
    return ssh_lab.Home(base / "client")


@pytest.fixture
def host(base, home):
    """An embedded host that the client knows as gpu1."""
    with ssh_lab.embedded(base / "remote", home.public) as server:
        home.add("gpu1", server)
        yield server
