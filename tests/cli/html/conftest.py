"""One browser for all tests of pages; each opens its own page."""

import pytest

from tests import browser_lab


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    with browser_lab.browser(tmp_path_factory.mktemp("chromium")) as one:
        yield one


@pytest.fixture
def browser(chromium):
    """The browser as it is at first: scripts run, the page is light."""
    chromium.scripts(on=True)
    chromium.scheme("light")
    return chromium
