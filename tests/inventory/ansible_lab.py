"""A real Ansible in a virtual environment of its own, made once per machine."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import platformdirs


def programs() -> Path:
    """Return the folder that has ``ansible-inventory``; install it where it is not yet."""
    chosen = os.environ.get("PATCHQ_TEST_CACHE")
    cache = Path(chosen) if chosen else platformdirs.user_cache_path("patchq-tests")
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / "ansible-core"
    with (cache / "ansible-core.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run in several processes
        if not (folder / "done").exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
            pip = [folder / "bin/pip", "install", "-q", "--disable-pip-version-check"]
            subprocess.run([*pip, "ansible-core"], check=True, timeout=300)
            (folder / "done").touch()
    return folder / "bin"
