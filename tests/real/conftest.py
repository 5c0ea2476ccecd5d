"""Real releases of vLLM, read from the index once per machine."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import platformdirs
import pytest

QUEUE = Path(__file__).parents[2] / "queues" / "kimi-k2.5-eagle3"


@dataclass(frozen=True)
class Real:
    """The installed command with a cache that outlives the run."""

    cache: Path

    def run(self, *args, **environ) -> subprocess.CompletedProcess[str]:
        clean = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
        return subprocess.run(
            [sys.executable, "-m", "patchq", *map(str, args)],
            capture_output=True,
            text=True,
            env={**clean, "PATCHQ_CACHE": str(self.cache), **environ},
            timeout=300,
        )

    def good(self, *args, **environ) -> str:
        done = self.run(*args, **environ)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="session")
def real():
    chosen = os.environ.get("PATCHQ_TEST_CACHE")
    return Real(Path(chosen) if chosen else platformdirs.user_cache_path("patchq-tests"))


@pytest.fixture
def pristine(real, tmp_path):
    """A function that lays a release of vLLM out as a --target tree."""

    def lay_out(release: str) -> Path:
        tree = tmp_path / f"vllm-{release}"
        real.good("fetch", f"vllm=={release}", "--into", tree)
        return tree

    return lay_out
