"""The editing verbs killed: at any call that changes a file, in patchq and in its agent.

strace ends the process that makes the N-th call of a kind (``inject=CALL:signal=KILL``).
Afterwards the queue and the environment can be read, no edit is lost, and the same
command again leaves what a run leaves that nobody disturbed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from patchq.errors import ExitCode
from tests.torture import form
from tests.world import FILES, World

pytestmark = pytest.mark.slow

EDITED = FILES["demo/units.py"] + "inch = 0.0254\n"
# As many calls of a kind as no verb makes more of in one process.
CALLS = [(call, number) for call in ("rename", "link", "unlink") for number in range(1, 16)]
REFRESH = "push 10-pi|new 15-a.patch|add demo/units.py demo/new.py|EDIT"
ON = REFRESH + "|refresh"
LOOSE = "push 10-pi|EDIT"
# The short form has those between the files of the queue, and before the record is changed.
SHORT = [("rename", 2), ("rename", 3), ("link", 1), ("unlink", 1)]
# What is done before, what is killed, and what the same command may say where all was done.
VERBS = {
    "new": ("push 10-pi", "new 15-a.patch", "exists already"),
    "refresh": (REFRESH, "refresh", ""),
    "refresh-z": (ON + "|EDIT", "refresh -z16-b.patch", "exists already"),
    "rename": (ON + "|EDIT", "rename 16-b.patch", "exists already"),
    "fork": (ON, "fork 15-b.patch", "exists already"),
    "delete": (ON, "delete -r 15-a.patch", "is not in series"),
    "capture": (LOOSE, "capture 15-hot.patch", ""),
    "remove": (ON, "remove demo/units.py", "is not in patch"),
    "sink": (ON, "sink 15-a.patch", ""),
}


def steps(world, line):
    """Run verbs; EDIT writes to files, each time more."""
    for step in line.split("|"):
        if step == "EDIT":
            path = world.site / "demo/units.py"
            text = path.read_text() if "inch" in path.read_text() else EDITED[: -len("\n")]
            path.write_text(text + "\n")
            (world.site / "demo/new.py").write_text("x = 1\n")
        else:
            done = world.here(*step.split())
            assert done.returncode == 0, done.stderr


def killed(world, command, call, number):
    """Run a verb until its N-th call of a kind; return whether it was killed."""
    words = command.split()
    done = subprocess.run(
        [
            *f"strace -f -qq -o /dev/null -e trace={call}".split(),
            *["-e", f"inject={call}:signal=KILL:when={number}", sys.executable, "-m", "patchq"],
            *[words[0], "--target", str(world.site), "--queue", str(world.queue), *words[1:]],
        ],
        cwd=world.root,
        env={
            **os.environ,
            "PATCHQ_CACHE": str(world.root / "cache"),
            "PATCHQ_QUEUES": "",
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.returncode != 0, done


def left(world):
    """Return the files of site and queue, and what is on."""
    queue = {
        str(path.relative_to(world.queue)): path.read_bytes()
        for path in world.queue.rglob("*")
        if path.is_file() and not path.name.endswith(".new")  # one that was never put in place
    }
    return world.tree(), queue, world.here("applied").stdout


def copy(world, root):
    shutil.copytree(world.root, root, symlinks=True)
    return World(root)


@pytest.mark.parametrize("verb", VERBS)
def test_a_killed_verb_is_finished_by_the_same_command(world, verb):
    line, command, all_done = VERBS[verb]
    steps(world, line)
    edited = (world.site / "demo/units.py").read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        whole = copy(world, Path(folder) / "whole")
        steps(whole, command)
        expected = left(whole)
        for call, number in CALLS if form.LONG else SHORT:
            case = copy(world, Path(folder) / f"{call}-{number}")
            was_killed, cut = killed(case, command, call, number)
            looks = [case.here(look) for look in ("status", "series", "applied")]
            where = f"{verb} {call} {number}: {cut.stderr}"
            assert all(one.returncode in (0, ExitCode.FINDING) for one in looks), where

            if was_killed:
                if verb not in ("remove", "delete"):
                    assert (case.site / "demo/units.py").read_bytes() == edited, where
                again = case.here(*command.split())
                fine = again.returncode in (0, ExitCode.NOTHING_TO_DO)
                assert fine or (all_done and all_done in again.stderr), where + again.stderr
                form.count("editing killed", verb, "finished")

            assert left(case) == expected, where
            shutil.rmtree(case.root)


def test_delete_without_a_name_takes_no_second_patch_after_it_was_cut_short(world):
    steps(world, ON)
    cut, _ = killed(world, "delete", "rename", 4)
    assert cut

    again = world.here("delete")

    held = world.here("applied").stdout.split()
    assert "10-pi.patch" in held, again.stdout + again.stderr
    assert "15-a.patch" not in (world.series / "series").read_text()
