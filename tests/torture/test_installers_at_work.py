"""pip and uv share no lock with patchq: whoever is stopped where, no release is mixed."""

import functools
import importlib.metadata
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests import world
from tests.agent import agent_lab
from tests.agent.agent_lab import Controller
from tests.torture import form, race_lab
from tests.torture.race_lab import CHANGES, Installer, disagreements, operators

pytestmark = pytest.mark.slow
PUSH = {"demo/a.py": b"x = 2\n", "demo/b.py": None, "demo/new/n.py": b"n = 1\n"}
NEWER = {
    "demo/__init__.py": b"from demo import a\n",
    "demo/a.py": b"x = 11\n",
    "demo/c.py": b"z = 11\n",
    "demo/data.json": b"{}\n",
}
ACTS = ("pip upgrade", "pip uninstall", "uv upgrade", "uv reinstall", "uv uninstall")


class Place:
    """A virtual environment that gets ``demo`` anew for each case."""

    def __init__(self, root):
        self.root = root
        subprocess.run([sys.executable, "-m", "venv", root / "env"], check=True)
        (self.site,) = (root / "env").glob("lib/python3*/site-packages")
        self.python = str(root / "env/bin/python")
        self.wheels = {
            "1.0": world.wheel(root, dict(agent_lab.FILES)),
            "1.1": world.wheel(root, dict(NEWER), version="1.1"),
        }
        self.run(self.act("pip install"))
        self.saved = {p.name: p for p in self._ours()}
        for name, path in self.saved.items():
            shutil.copytree(path, root / "saved" / name, symlinks=True)

    def act(self, name):
        """Return the command of an installer's act."""
        tool, verb = name.split()
        wheel = str(self.wheels["1.1" if verb == "upgrade" else "1.0"])
        if tool == "pip":
            pip = [self.python, "-m", "pip", "--disable-pip-version-check"]
            if verb == "uninstall":
                return [*pip, "uninstall", "-y", "demo"]
            more = ["--no-index", "--no-deps", "--no-compile", "--upgrade"]
            return [*pip, "install", *more, wheel]
        beside = Path(sysconfig.get_path("scripts"), "uv")
        uv = [str(beside) if beside.exists() else race_lab.tool("uv"), "pip"]
        if verb == "uninstall":
            return [*uv, "uninstall", "--python", self.python, "demo"]
        more = ["--no-index", "--no-deps", "--reinstall", "--python", self.python]
        return [*uv, "install", *more, wheel]

    def run(self, argv):
        environ = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "UV_OFFLINE": "1"}
        environ["UV_CACHE_DIR"] = str(self.root / "uv-cache")
        environ.pop("VIRTUAL_ENV", None)
        done = subprocess.run(argv, capture_output=True, text=True, env=environ)
        assert done.returncode == 0, done.stderr

    def reset(self):
        """Put demo 1.0 back as pip had installed it."""
        for path in self._ours():
            shutil.rmtree(path)
        for name in self.saved:
            shutil.copytree(self.root / "saved" / name, self.site / name, symlinks=True)

    def tree(self):
        """Return all that is of demo: names, modes and bytes; dist-infos by name alone."""
        found = {}
        for top in self._ours():
            if top.name == ".patchq":
                continue
            for path in [top, *top.rglob("*")]:
                name = str(path.relative_to(self.site))
                if "__pycache__" in name:
                    continue
                data = path.read_bytes() if path.is_file() else None
                if ".dist-info" in name and path.name not in ("METADATA", "INSTALLER"):
                    data = None
                found[name] = (path.stat().st_mode, data)
        return found

    def versions(self):
        found = importlib.metadata.distributions(name="demo", path=[str(self.site)])
        return [one.version for one in found]

    def _ours(self):
        names = ("demo", "~emo", ".patchq", "-emo")
        return [path for path in sorted(self.site.iterdir()) if path.name.startswith(names)]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return Place(tmp_path_factory.mktemp("place"))


@pytest.fixture(scope="module")
def alone(place):
    """A function that tells what an act leaves of a tree that was never patched."""

    @functools.cache
    def of(act):
        place.reset()
        place.run(place.act(act))
        return place.tree(), place.versions()

    return of


def proved(place, act, alone, case):
    """Check that the act's end is what it is on a tree that was never patched."""
    controller = Controller(place.site)
    before = controller.survey()
    told = [before["orphaned"], (before["interrupted"] or {}).get("verb")]
    if before["state"] or before["interrupted"]:
        assert any(told), (case, before)
        outcome = controller.recover()["outcome"]
        assert outcome in ("set aside", "undone"), (case, outcome)
    tree, versions = alone(act)
    there = place.tree()
    assert there.keys() == tree.keys(), (case, sorted(there.keys() ^ tree.keys()))
    assert there == tree, case
    assert place.versions() == versions, case
    left = {str(p.relative_to(place.site)) for p in place.site.glob(".patchq/demo/*")}
    names = {f".patchq/demo/{name}" for name in ("lock", "ledger.jsonl", "aside")}
    assert left <= names, (case, left)
    if versions:
        controller.push({"demo/a.py": b"x = 99\n"})
        assert disagreements(place.site) == [], case
        controller.pop()
        assert place.tree() == tree, case


@pytest.mark.parametrize("act", ACTS)
def test_a_push_that_is_stopped_anywhere_while_an_installer_works(place, alone, act):
    alone(act)
    place.reset()
    with operators(1) as (one,):
        one.held(place.root, CHANGES, "")
        one.begin(*Controller(place.site).push_request(PUSH))
        one.to_end()
        spots = one.spots()
    for spot in form.some(spots[:: 1 if "uv" in act else 3], 4):
        place.reset()
        with operators(1) as (one,):
            ask = Controller(place.site, one.ask).push_request(PUSH)
            one.held(place.root, CHANGES, spot)
            one.begin(*ask)
            stopped = one.runs()
            place.run(place.act(act))
            answer = one.to_end() if stopped else one.answer()
        case = f"{act}, push stopped at {spot}: {answer}"
        if "error" in answer:
            words = ("installer", "changed", "interrupted", "os-error")
            assert answer["error"]["word"] in words, case
        proved(place, act, alone, case)
        form.count("installers", f"push stopped, {act}", "the installer's release, whole")


@pytest.mark.parametrize("verb", ["push", "pop", "recover"])
@pytest.mark.parametrize("act", ["pip upgrade", "pip uninstall"])
def test_pip_is_stopped_anywhere_while_somebody_works_on_the_tree(place, alone, act, verb):
    alone(act)
    place.reset()
    trace = place.root / "trace"
    trace.unlink(missing_ok=True)
    pip = Installer(place.act(act), trace)
    assert not pip.runs()
    pip.to_end()
    # From its first change on: a verb that comes and goes between pip's look at RECORD and
    # that can leave a file of which pip does not know (docs/reliability.md).
    spots = pip.spots_in(place.site)
    for spot in form.some(spots, 3):
        place.reset()
        controller = Controller(place.site)
        if verb == "pop":
            controller.push(PUSH)
        elif verb == "recover":
            with operators(1) as (one,):
                one.held(place.root, "link", "link:1")
                one.begin(*controller.push_request(PUSH))
                assert one.runs()
                one.process.kill()
        if verb == "recover":
            ask = (controller.message("recover"), {})
        else:
            ask = controller.pop_request() if verb == "pop" else controller.push_request(PUSH)
        trace.unlink()
        pip = Installer(place.act(act), trace, spot)
        assert pip.runs()
        with operators(1) as (one,):
            one.begin(*ask)
            answer = one.answer()
        pip.to_end()
        proved(place, act, alone, f"{act} stopped at {spot}, {verb}: {answer}")
        form.count("installers", f"{act} stopped, {verb}", "the installer's release, whole")
