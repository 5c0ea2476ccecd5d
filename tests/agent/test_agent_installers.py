"""Real environments of pip and uv: what they installed is never written, and goes whole."""

import base64
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from agent_lab import Controller, Process, snapshot

pytestmark = pytest.mark.slow
PUSH = {"demo/a.py": b"x = 2\n", "demo/new/n.py": b"n = 1\n", "demo/b.py": None}


def build_wheel(folder, version="1.0"):
    """Write a wheel of ``demo`` by hand."""
    info = f"demo-{version}.dist-info"
    files = {
        "demo/__init__.py": b"",
        "demo/a.py": b"x = 1\n",
        "demo/b.py": b"y = 1\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: demo\nVersion: {version}\n".encode(),
        f"{info}/WHEEL": (
            b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        ),
    }
    rows = []
    path = folder / f"demo-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for name, data in files.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            rows.append(f"{name},sha256={digest},{len(data)}\n")
            wheel.writestr(name, data)
        wheel.writestr(f"{info}/RECORD", "".join(rows) + f"{info}/RECORD,,\n")
    return path


def run(*command, **more):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, **more)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build_wheel(tmp_path_factory.mktemp("wheel"))


class Environment:
    """One virtual environment with ``demo`` in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.python = str(root / "bin/python")
        self.site = next(root.glob("lib/python*/site-packages"))

    def ask(self, message, blobs=None):
        with Process(self.python) as process:
            return process.ask({**message, "target": None}, blobs)

    @property
    def controller(self):
        return Controller(self.site, self.ask)

    def version(self):
        code = "import importlib.metadata as m; print(m.version('demo'))"
        return run(self.python, "-c", code).stdout.strip()

    def leftovers(self):
        """Return what is left of the package, but patchq's own folder."""
        return sorted(p.name for p in self.site.iterdir() if p.name.startswith("demo"))


@pytest.fixture
def pip_venv(tmp_path, wheel):
    run(sys.executable, "-m", "venv", tmp_path / "env")
    env = Environment(tmp_path / "env")
    run(env.python, "-m", "pip", "install", "--no-index", "--no-deps", wheel)
    return env


@pytest.fixture
def uv(tmp_path):
    beside = Path(sys.executable).with_name("uv")
    tool = str(beside) if beside.exists() else shutil.which("uv")
    assert tool, "uv is needed: pip install uv"
    environment = {**os.environ, "UV_CACHE_DIR": str(tmp_path / "cache"), "UV_OFFLINE": "1"}
    environment.pop("VIRTUAL_ENV", None)
    return lambda *arguments: run(tool, *arguments, env=environment)


@pytest.fixture(params=["hardlink", "symlink", "copy", "clone"])
def uv_venv(request, tmp_path, wheel, uv):
    uv("venv", "--python", sys.executable, tmp_path / "env")
    env = Environment(tmp_path / "env")
    uv("pip", "install", "--python", env.python, "--link-mode", request.param, wheel)
    return env


def cache_of(tmp_path):
    return {
        path: (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino, path.stat().st_mode)
        for path in (tmp_path / "cache").rglob("*.py")
    }


def test_pip_push_and_pop_and_uninstall_leaves_nothing(pip_venv):
    before = snapshot(pip_venv.site)
    compiled = {p: p.read_bytes() for p in pip_venv.site.glob("demo/__pycache__/*")}

    pip_venv.controller.push(PUSH)
    assert (
        run(pip_venv.python, "-c", "import demo.a, demo.new.n; print(demo.a.x)").stdout == b"2\n"
    )
    pip_venv.controller.pop()

    assert snapshot(pip_venv.site) == before
    assert {p: p.read_bytes() for p in compiled} == compiled
    run(pip_venv.python, "-m", "pip", "uninstall", "-y", "demo")
    assert pip_venv.leftovers() == []


def test_pip_takes_a_patched_package_away_whole(pip_venv):
    pip_venv.controller.push(PUSH)
    shown = run(pip_venv.python, "-m", "pip", "show", "-f", "demo")
    assert b"demo/new/n.py" in shown.stdout

    run(pip_venv.python, "-m", "pip", "uninstall", "-y", "demo")

    assert pip_venv.leftovers() == []
    assert "not installed any more" in pip_venv.controller.survey()["orphaned"]


def test_pip_upgrades_a_patched_package_and_its_version_is_the_new_one(pip_venv, tmp_path):
    pip_venv.controller.push(PUSH)

    new = build_wheel(tmp_path, "1.1")
    run(pip_venv.python, "-m", "pip", "install", "--no-index", "--no-deps", "--upgrade", new)

    assert pip_venv.version() == b"1.1"
    assert pip_venv.leftovers() == ["demo", "demo-1.1.dist-info"]
    assert not (pip_venv.site / "demo/new").exists()
    assert "demo-1.1.dist-info is there" in pip_venv.controller.survey()["orphaned"]
    assert pip_venv.controller.recover()["outcome"] == "set aside"
    pip_venv.controller.push(PUSH)


def test_uv_push_and_pop_leave_cache_inodes_and_record_alone(uv_venv, uv, tmp_path):
    before, cached = snapshot(uv_venv.site), cache_of(tmp_path)
    assert cached

    uv_venv.controller.push(PUSH)
    assert run(uv_venv.python, "-c", "import demo.a, demo.new.n; print(demo.a.x)").stdout == b"2\n"
    assert cache_of(tmp_path) == cached
    uv_venv.controller.pop()

    assert snapshot(uv_venv.site) == before
    assert cache_of(tmp_path) == cached
    uv("pip", "uninstall", "--python", uv_venv.python, "demo")
    assert uv_venv.leftovers() == []


def test_uv_takes_a_patched_package_away_whole(uv_venv, uv):
    uv_venv.controller.push(PUSH)

    uv("pip", "uninstall", "--python", uv_venv.python, "demo")

    assert uv_venv.leftovers() == []


def test_uv_reinstalls_a_patched_package_pristine(uv_venv, uv, wheel):
    uv_venv.controller.push(PUSH)

    uv("pip", "install", "--python", uv_venv.python, "--reinstall", wheel)

    assert (uv_venv.site / "demo/a.py").read_bytes() == b"x = 1\n"
    assert uv_venv.version() == b"1.0"
    assert "reinstalled" in uv_venv.controller.survey()["orphaned"]


def test_an_installer_at_work_between_stage_and_go_is_noticed(pip_venv, tmp_path):
    """pip upgrades while a push is stopped right before its commit point."""
    import agent_lab
    import crash_lab

    new = build_wheel(tmp_path, "1.1")
    controller = Controller(pip_venv.site)
    request, blobs = controller.push_request(PUSH)
    pip = [pip_venv.python, "-m", "pip", "install", "--no-index", "--no-deps", "--upgrade", new]

    def last(name, _, second):
        if name == "fsync" and (pip_venv.site / ".patchq/demo/stage/receipt").exists():
            run(*pip)
            return False
        return False

    def work():
        agent_lab.here(request, blobs)

    assert crash_lab.stopped_at(work, last) == crash_lab.FAILED
    assert pip_venv.version() == b"1.1"
    assert pip_venv.leftovers() == ["demo", "demo-1.1.dist-info"]
    assert not (pip_venv.site / "demo/new").exists()
    assert (pip_venv.site / "demo/a.py").read_bytes() == b"x = 1\n"
    assert controller.survey()["interrupted"] is None
