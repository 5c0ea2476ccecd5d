"""The editing verbs on a world of their own, with a fault at one of their system calls.

The verb is the installed command, its agent the real one; strace ends or fails the N-th call
of a kind (``inject=CALL:signal=KILL``, ``:error=ENOSPC``) in whichever of their processes comes
to it first. Only calls on the queue and on the site are taken, as a first run lists them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from patchq.errors import ExitCode
from tests.world import FILES, World

EDITED = FILES["demo/units.py"] + "inch = 0.0254\n"
FOLDED = """\
--- a/demo/data.txt
+++ b/demo/data.txt
@@ -1,3 +1,4 @@
+zero
 one
 two
 three
"""
CAME = "Description: From elsewhere\n\n" + FOLDED
HEADER = b"Bug: https://example.org/1\n"
# Calls that change what a name leads to; between two of them nothing is seen from outside.
NAMING = ("rename", "link", "unlink", "mkdir", "rmdir", "symlink")


@dataclass(frozen=True)
class Act:
    """A verb that is to be disturbed: what is done before, its words, and what it reads.

    `done` is what the same command may say where all was done already; `keeps`: what was
    edited in the site stays there whatever happens.
    """

    before: str
    command: str
    done: str = ""
    stdin: bytes = b""
    keeps: bool = True


ON = "push 10-pi|new 15-a.patch|add demo/units.py demo/new.py|EDIT|refresh"
LOOSE = "push 10-pi|EDIT"
APART = "push 10-pi|new 15-a.patch|add demo/units.py|EDIT|refresh|new 16-b.patch|add demo/data.txt"
ORDERED = APART + "|SIDE|refresh"
ACTS = {
    "new": Act("push 10-pi", "new 15-a.patch", "exists already"),
    "add": Act("push 10-pi|new 15-a.patch|EDIT", "add demo/units.py demo/data.txt"),
    "refresh": Act("push 10-pi|new 15-a.patch|add demo/units.py demo/new.py|EDIT", "refresh"),
    "refresh-z": Act(ON + "|EDIT", "refresh -z16-b.patch", "exists already"),
    "fold": Act(ON, "fold", "is there already", FOLDED.encode()),
    "import": Act(ON, "import CAME", "exists"),
    "header": Act(ON, "header -a", "", HEADER),
    "header-off": Act(ON, "header -a 30-text", "", HEADER),
    "revert": Act(ON + "|EDIT", "revert demo/units.py", "", keeps=False),
    "restore": Act(LOOSE, "restore demo/units.py", "", keeps=False),
    "capture": Act(LOOSE, "capture 15-hot.patch"),
    "shell": Act(ON, "shell cp demo/data.txt demo/other.txt"),
    "remove": Act(ON, "remove demo/units.py", "is not in patch", keeps=False),
    "rename": Act(ON + "|EDIT", "rename 16-b.patch", "exists already"),
    "fork": Act(ON, "fork"),
    "fork-named": Act(ON, "fork 15-b.patch", "exists already"),
    "delete": Act(ON, "delete -r 15-a.patch", "is not in series", keeps=False),
    "sink": Act(ORDERED, "sink 16-b.patch"),
    "sink-carried": Act("push 10-pi|OVER", "sink 15-a.patch"),
    "sink-off": Act("push 20-foot|OVER|pop -a", "sink 15-a.patch"),
    "refresh-carried": Act("push 20-foot|OVER|pop -a|push 10-pi|UNDER", "refresh"),
    "float": Act(ORDERED, "float 10-pi.patch"),
    "pop-only": Act(ORDERED, "pop --only 15-a.patch", "is not applied", keeps=False),
}


def steps(world: World, line: str) -> None:
    """Run verbs; words in capitals write files, EDIT each time more."""
    for step in line.split("|"):
        if step == "EDIT":
            path = world.site / "demo/units.py"
            text = path.read_text() if "inch" in path.read_text() else EDITED[: -len("\n")]
            path.write_text(text + "\n")
            (world.site / "demo/new.py").write_text("x = 1\n")
        elif step == "SIDE":
            (world.site / "demo/data.txt").write_text("zero\none\ntwo\nthree\n")
        elif step == "UNDER":  # an edit that moves the lines of the patches above
            for verb in ("new 12-c.patch", "add demo/shapes.py"):
                _done(world, verb)
            path = world.site / "demo/shapes.py"
            text = path.read_text()
            path.write_text(text.replace("class Circle", "LIMIT = 7\n\n\nclass Circle"))
        elif step == "OVER":  # a patch whose line numbers are others in each order
            for verb in ("new 15-a.patch", "add demo/shapes.py"):
                _done(world, verb)
            path = world.site / "demo/shapes.py"
            text = path.read_text()
            path.write_text(text.replace("class Square:\n", "class Square:\n    kind = 4\n\n"))
            _done(world, "refresh")
        else:
            _done(world, step)


def _done(world: World, step: str) -> None:
    done = world.here(*step.split())
    assert done.returncode == 0, (step, done.stderr)


def words(world: World, act: Act) -> list[str]:
    """Return the command line of an act."""
    verb, *rest = act.command.split()
    if "CAME" in rest:
        (world.root / "40-came.patch").write_text(CAME)
    rest = ["40-came.patch" if word == "CAME" else word for word in rest]
    aim = ["--target", str(world.site), "--queue", str(world.queue)]
    return [sys.executable, "-m", "patchq", verb, *aim, *rest]


def environ(world: World) -> dict[str, str]:
    """Return the environment of a run; what `shell` leaves behind is in the world, too."""
    folder = world.root / "tmp"
    folder.mkdir(exist_ok=True)
    return {
        **os.environ,
        "PATCHQ_CACHE": str(world.root / "cache"),
        "PATCHQ_QUEUES": "",
        "PYTHONDONTWRITEBYTECODE": "1",
        "SHELL": "/bin/sh",
        "HOME": str(world.root),
        "TMPDIR": str(folder),
    }


def run(world: World, act: Act, *strace: str) -> subprocess.CompletedProcess[bytes]:
    """Run an act, under strace where options of it are given."""
    prefix = ["strace", "-f", "-qq", *strace] if strace else []
    return subprocess.run(
        [*prefix, *words(world, act)],
        cwd=world.root,
        env=environ(world),
        input=act.stdin,
        capture_output=True,
        timeout=120,
    )


_LINE = re.compile(r"^(\d+) +(\w+)\((.*)")


def calls(world: World, act: Act, names: tuple[str, ...] = NAMING) -> list[tuple[str, int]]:
    """Run an act to its end; return its calls on queue and site, each with its number."""
    log = world.root / "trace"
    traced = ",".join(f"?{name},?{name}at" for name in names)
    options = ["-y", "-s0", "-o", str(log), "-e", "signal=none", "-e", f"trace={traced}"]
    done = run(world, act, *options)
    assert done.returncode == 0, done.stderr
    seen: dict[tuple[str, str], int] = {}
    found: dict[tuple[str, int], None] = {}
    for line in log.read_text(errors="replace").splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        pid, name, rest = match.groups()
        seen[pid, name] = seen.get((pid, name), 0) + 1
        if str(world.site) in rest or str(world.queue) in rest:
            found[name, seen[pid, name]] = None
    log.unlink()
    return list(found)


def whole_queue(world: World) -> bool:
    """Return whether nothing of an edit that did not end lies in the queue."""
    names = {part for path in world.queue.rglob("*") for part in path.parts}
    return not any(name == ".patchq-edit" or name.endswith(".new") for name in names)


def kept(world: World) -> dict[str, bytes]:
    """Return the files of the site that were edited, or may have been."""
    names = ("demo/units.py", "demo/new.py", "demo/shapes.py")
    there = [name for name in names if (world.site / name).exists()]
    return {name: (world.site / name).read_bytes() for name in there}


def unfinished(world: World, act: Act) -> str:
    """Run an act again; return what it says where it is not done, and does not say that it was."""
    again = run(world, act)
    said = again.stderr.decode()
    done = again.returncode in (0, ExitCode.NOTHING_TO_DO) or (act.done and act.done in said)
    return "" if done else f"exit {again.returncode}: {said}"


def left(world: World) -> tuple[object, ...]:
    """Return the files of site and queue, and what is on."""
    queue = {
        str(path.relative_to(world.queue)): path.read_bytes()
        for path in world.queue.rglob("*")
        # One that was never put in place, and the way back of an edit, are none of its files.
        if path.is_file() and not path.name.endswith(".new") and ".patchq-edit" not in path.parts
    }
    return world.tree(), queue, world.here("applied").stdout


def copy(world: World, root: Path) -> World:
    """Return a copy of a world."""
    shutil.copytree(world.root, root, symlinks=True)
    return World(root)
