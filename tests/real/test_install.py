"""`pip install .` into a fresh environment gives a working patchq with its queues."""

import json
import os
import shutil
import subprocess
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


@pytest.fixture
def checkout(tmp_path):
    """The files that git tracks, without what a build leaves behind."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    copy = tmp_path / "checkout"
    for name in filter(None, listed.stdout.split("\0")):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, copy / name)
    return copy


def test_pip_install_gives_the_command_and_the_queues(checkout, tmp_path):
    environment = tmp_path / "venv"
    venv.create(environment, with_pip=True)
    pip = str(environment / "bin" / "pip")

    subprocess.run([pip, "wheel", "-q", "--no-deps", "-w", tmp_path, checkout], check=True)
    (wheel,) = tmp_path.glob("patchq-*.whl")
    subprocess.run([pip, "install", "-q", wheel], check=True)
    environ = {**os.environ, "PATCHQ_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(
        [environment / "bin" / "patchq", "queues", "--json"],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )

    (queue,) = json.loads(done.stdout)["queues"]
    assert queue["name"] == "kimi-k2.5-eagle3"
    assert queue["releases"] == ["0.15.0", "0.15.1", "0.16.0", "0.17.0", "0.17.1"]
    folder = Path(queue["folder"])
    assert folder.is_relative_to(environment)
    for name in ("series", "series.lock", "10-deepseek-v2-aux-states.patch"):
        assert (folder / "0.16.0" / name).is_file()
    assert len(list((folder / "post").glob("*.pyi"))) == 5
    names = zipfile.ZipFile(wheel).namelist()
    assert {f"patchq/cli/html/page.{kind}" for kind in ("html", "css", "js")} <= set(names)
    tops = {name.split("/")[0] for name in names}
    named = wheel.name.removesuffix("-py3-none-any.whl")
    assert tops == {"patchq", f"{named}.dist-info", f"{named}.data"}
    assert (environment / "share/man/man1/patchq.1").read_text().startswith(".TH PATCHQ 1")
