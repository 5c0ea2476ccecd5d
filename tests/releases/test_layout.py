"""A release laid out is a folder that Python's own tools take for site-packages."""

import importlib.metadata
import os
import stat
import subprocess
import sys

import pytest

from patchq.releases import layout
from patchq.releases.fetch import fetch
from patchq.releases.settings import Settings
from patchq.releases.store import Store, StoreError

FILES = {
    "demo/__init__.py": b"VERSION = 1\r\n",
    "demo/run.sh": b"#!/bin/sh\n",
    "demo/_C.so": b"\0",
}


@pytest.fixture
def store(wheel, tmp_path):
    def edit(members):
        members[1][0].external_attr = 0o100755 << 16
        return members

    fetch(str(wheel(FILES, edit=edit)), cache=tmp_path / "cache", settings=Settings())
    return Store("demo", tmp_path / "cache")


def test_metadata_record_and_files_agree(store, tmp_path):
    target = tmp_path / "deep" / "site"

    count = layout.lay_out(store, "1.0", target)

    (found,) = importlib.metadata.distributions(path=[str(target)])
    assert (found.metadata["Name"], found.version) == ("demo", "1.0")
    assert found.read_text("INSTALLER") == "patchq\n"
    listed = {str(path): path for path in found.files}
    on_disk = {p.relative_to(target).as_posix() for p in target.rglob("*") if p.is_file()}
    assert set(listed) == on_disk
    assert len(listed) == count
    assert "demo/_C.so" not in listed
    for name, path in listed.items():
        if not name.endswith("RECORD"):
            assert path.size == (target / name).stat().st_size


def test_bytes_and_modes_are_those_of_an_installation(store, tmp_path):
    layout.lay_out(store, "1.0", tmp_path / "site")

    mask = os.umask(0)
    os.umask(mask)
    modes = [
        stat.S_IMODE((tmp_path / "site" / path).stat().st_mode)
        for path in ("demo/__init__.py", "demo/run.sh", ".")
    ]
    assert (tmp_path / "site" / "demo" / "__init__.py").read_bytes() == b"VERSION = 1\r\n"
    assert modes == [0o666 & ~mask, 0o777 & ~mask, 0o777 & ~mask]


@pytest.mark.slow
def test_pip_lists_what_was_laid_out(store, tmp_path):
    layout.lay_out(store, "1.0", tmp_path / "site")

    command = [sys.executable, "-m", "pip", "list", "--path", str(tmp_path / "site")]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout

    assert said.split()[-2:] == ["demo", "1.0"]


def test_an_empty_folder_is_filled(store, tmp_path):
    (tmp_path / "site").mkdir()

    assert layout.lay_out(store, "1.0", tmp_path / "site")


@pytest.mark.parametrize("taken", ["file", "link", "folder"])
def test_what_is_there_is_never_written_over(store, tmp_path, taken):
    target = tmp_path / "site"
    if taken == "file":
        target.write_text("mine")
    elif taken == "link":
        target.symlink_to(tmp_path / "elsewhere")
    else:
        (target / "mine").mkdir(parents=True)

    with pytest.raises(layout.LayoutError, match="not an empty folder"):
        layout.lay_out(store, "1.0", target)


def test_a_failure_leaves_nothing(store, tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(layout.LayoutError, match="could not be laid out"):
        layout.lay_out(store, "1.0", tmp_path / "file" / "site")

    with pytest.raises(StoreError):
        layout.lay_out(store, "2.0", tmp_path / "site")
    assert not (tmp_path / "site").exists()
    assert not list(tmp_path.glob(".patchq-*"))
