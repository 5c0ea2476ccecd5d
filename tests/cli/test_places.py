"""Where patchq keeps its own files: where platformdirs says, whose import is not waited for."""

import platformdirs
import pytest

from patchq.cli import places


@pytest.mark.parametrize("value", [None, "", " ", "rel", "/abs", "/abs/", "~/x", " /abs"])
@pytest.mark.parametrize("kind", ["cache", "state", "config"])
def test_folders_are_where_platformdirs_has_them(kind, value, monkeypatch):
    monkeypatch.delenv(f"PATCHQ_{kind.upper()}", raising=False)
    monkeypatch.delenv(f"XDG_{kind.upper()}_HOME", raising=False)
    if value is not None:
        monkeypatch.setenv(f"XDG_{kind.upper()}_HOME", value)

    assert getattr(places, kind)() == getattr(platformdirs, f"user_{kind}_path")("patchq")


@pytest.mark.parametrize("kind", ["cache", "state"])
def test_a_folder_that_is_named_goes_before(kind, monkeypatch, tmp_path):
    monkeypatch.setenv(f"PATCHQ_{kind.upper()}", str(tmp_path))

    assert getattr(places, kind)() == tmp_path
