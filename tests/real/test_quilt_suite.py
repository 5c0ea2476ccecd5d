"""quilt's own test suite, from Debian's source package, runs on patchq."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SUITE = Path(__file__).parents[2] / "scripts" / "quilt_suite.py"


def test_no_script_of_quilts_suite_differs_where_it_is_not_meant_to():
    done = subprocess.run([sys.executable, SUITE], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    passed, differ, failed = (
        int(part.split()[0]) for part in done.stdout.split("\n")[-2].split(";")
    )
    assert failed == 0
    assert passed >= 40
    assert passed + differ == 64
