"""`fetch` from where it is installed: real pip, uv and ssh."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from patchq.releases.store import Store
from tests import ssh_lab

pytestmark = pytest.mark.slow


def wheel(world):
    return next(world.root.glob("*.whl"))


def install(world, folder="installed"):
    """Install the world's wheel by pip, as a --target folder; return it."""
    target = world.root / folder
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps"]
    subprocess.run([*pip, "--target", str(target), str(wheel(world))], check=True)
    return target


def fetch(world, *args, **environ):
    """Fetch into a store that knows nothing yet."""
    environ["PATCHQ_CACHE"] = str(world.root / "fresh")
    return world.run("fetch", *args, environ=environ)


def tree(world):
    """The tree of the release as its wheel has it."""
    return Store("demo", world.root / "cache" / "releases").tree("1.0")


def test_what_pip_installed_is_the_release_and_can_be_laid_out(world):
    site = install(world)

    done = fetch(world, "demo", "--target", site, "--into", world.root / "copy")

    assert done.returncode == 0, done.stderr
    head, proof, laid = done.stdout.splitlines()
    assert head == "demo 1.0: 4 text files from demo-1.0-py3-none-any.whl"
    assert proof.startswith(f"  tree {tree(world)[:12]}; each file equals RECORD ")
    assert f" in {site}, which proves consistency there, not origin" in proof
    assert laid == f"8 files laid out in {world.root / 'copy'}"
    assert (world.root / "copy/demo/units.py").read_bytes() == (
        site / "demo/units.py"
    ).read_bytes()


def test_what_uv_installed_is_the_release(world):
    uv, venv = Path(sys.executable).with_name("uv"), world.root / "venv"
    python = venv / "bin/python"
    environ = {"PATH": "/usr/bin:/bin", "UV_CACHE_DIR": str(world.root / "uv")}
    for words in (
        ("venv", "-q", "--python", sys.executable, venv),
        ("pip", "install", "-q", "--no-index", "--no-deps", "--python", python, wheel(world)),
    ):
        subprocess.run([uv, *words], check=True, env=environ)

    done = fetch(world, "demo", "--python", python, "--json")

    document = json.loads(done.stdout)
    assert (document["tree"], document["verified"]) == (tree(world), "host")
    assert document["origin"].endswith("site-packages")


def test_what_a_host_has_comes_over_ssh_and_an_edit_there_is_refused(world):
    site = install(world)
    with ssh_lab.folder() as base:
        (base / "remote").mkdir()
        home = ssh_lab.Home(base / "client")
        with ssh_lab.embedded(base / "remote", home.public) as server:
            home.add("gpu1", server)
            where = ("--from-host", "gpu1", "--python", sys.executable, "--target", site)
            first = fetch(world, "demo", *where, "--json", **home.environ)
            (site / "demo/units.py").write_text("metre = 2\n")
            again = fetch(world, "demo", *where, **home.environ)

    document = json.loads(first.stdout)
    assert document["tree"] == tree(world), first.stderr
    assert document["origin"].endswith(f" in {site} on gpu1")
    assert again.returncode == 1
    assert "is not as its RECORD says" in again.stderr
    assert "why: demo/units.py differs" in again.stderr


def test_where_patches_are_on_the_mend_means_that_environment(world):
    assert world.here("push", "1").returncode == 0

    done = world.run("fetch", "demo", "--target", world.site)

    assert done.returncode == 1
    assert "why: patches are on: 10-pi.patch" in done.stderr
    assert f"mend: patchq pop --target {world.site} -a" in done.stderr


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (("demo==1.0", "--from-host", "gpu1"), "'demo==1.0' is not the bare name"),
        (("demo", "--from-host", "gpu1", "--full"), "--full is about a wheel"),
        (("demo", "--from-host", "gpu[1-2]"), "more than one host is named"),
        (("demo==1.0", "--sudo"), "sudo"),
    ],
)
def test_what_cannot_be_asked_is_an_error_in_three_parts(world, args, why):
    done = fetch(world, *args)

    assert done.returncode == 64
    assert why in done.stderr
    assert "  mend: " in done.stderr
