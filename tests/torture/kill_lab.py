"""The real agent under strace: killed at any of its system calls, and what it leaves.

patchq's own command runs once for each verb, and what it sends to its agent is kept (a
`Tape`). The same bytes are then given to an agent in a fresh copy of the tree, as often
as there are calls to be killed at. Nothing of patchq is replaced: the interpreter's
command line is patchq's own, and the kill is strace's (``inject=CALL:signal=KILL``).
"""

from __future__ import annotations

import contextlib
import os
import py_compile
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from patchq.transport import bootstrap
from tests.agent.agent_lab import record_row
from tests.agent.crash_lab import clone
from tests.torture.kill_calls import Call, Kill, Tape, answers, calls, kills
from tests.world import World, wheel

# A pid namespace of its own: what else runs here is not among what the agent reads.
_STRACE = "unshare --pid --fork --mount-proc strace -y -s8 -o".split()


def module(value: int) -> str:
    """Return a module that tells whether it is whole: its first and its last line agree."""
    return f"VALUE = {value}\n" + "# Something in between.\n" * 200 + f"LAST = {value}\n"


FIRST = {
    "demo/__init__.py": module(0),
    "demo/changed.py": module(0),
    "demo/data.txt": "one\ntwo\n",
    "demo/gone.py": module(0),
    "demo/linked.py": module(0),
    "demo/mode.sh": "#!/bin/sh\necho demo\n",
    "demo/old_name.py": module(0) + "# It moves as it is.\n",
    "demo/twice.py": module(0),
}
CHANGES: dict[str, dict[str, str | None]] = {
    "10-first.patch": {
        "demo/changed.py": module(1),
        "demo/data.txt": "one\ntwo\nthree\n",
        "demo/fresh/deep/made.py": module(1),
        "demo/gone.py": None,
        "demo/linked.py": module(1),
        "demo/mode.sh": FIRST["demo/mode.sh"],
        "demo/new_name.py": FIRST["demo/old_name.py"],
        "demo/old_name.py": None,
        "demo/twice.py": module(1),
    },
    "20-second.patch": {
        "demo/changed.py": None,
        "demo/fresh/deep/made.py": module(2),
        "demo/other.py": module(2),
        "demo/twice.py": module(2),
    },
}
_TAG = sys.implementation.cache_tag
LISTED = (f"changed.{_TAG}", f"gone.{_TAG}", f"linked.{_TAG}")
# The first is run whatever its source says (PEP 552), if it is still there.
UNLISTED = (f"twice.{_TAG}", "changed.cpython-38.opt-1", "twice.cpython-39")


class Venv(World):
    """A world whose site is a virtual environment's, without a pip in it."""

    @property
    def site(self) -> Path:
        version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
        return self.root / "env/lib" / version / "site-packages"

    @property
    def python(self) -> Path:
        return self.root / "env/bin/python"


@dataclass
class Verb:
    """A verb of patchq: the tree it starts from, its tape, and what it makes of the tree."""

    name: str
    before: Path
    after: Path
    tape: Tape
    calls: list[Call] = field(default_factory=list)

    def kills(self) -> list[Kill]:
        """Return every place to be killed at, in order."""
        return kills(self.calls)


@dataclass
class Lab:
    """A world whose site is put back for every case; `work` has tapes and trees."""

    world: Venv
    work: Path
    verbs: dict[str, Verb] = field(default_factory=dict)
    recover: Tape | None = None

    @property
    def site(self) -> Path:
        return self.world.site

    @property
    def home(self) -> Path:
        return self.site / ".patchq/demo"

    def put(self, tree: Path) -> None:
        """Make the site a copy of a tree."""
        shutil.rmtree(self.site, ignore_errors=True)
        clone(tree, self.site)

    def run(
        self, data: bytes, kill: Call | None = None, sure: bool = True
    ) -> tuple[Any, list[str]]:
        """Give bytes to an agent; return its last answer, None where it was killed, and trace.

        `sure`: it comes to the call that it is to be killed at.
        """
        (self.work / "stdin").write_bytes(data)
        trace = self.work / "trace"
        inject = _inject(kill) if kill else []
        with (self.work / "stdin").open("rb") as stdin:
            done = subprocess.run(
                [*_STRACE, trace, *inject, *bootstrap.argv(sys.executable)],
                stdin=stdin,
                capture_output=True,
                timeout=60,
            )
        lines = trace.read_text(errors="replace").splitlines()
        assert lines, done.stderr
        if "+++ killed by SIGKILL +++" in lines[-1]:
            assert kill, lines[-3:]
            assert lines[-2].startswith(f"{kill.name}("), (kill, lines[-2])
            return None, lines
        assert kill is None or not sure, f"the agent never came to {kill}"
        return answers(data, done.stdout)[-1], lines

    def killed(self, verb: Verb, kill: Kill) -> None:
        """Run a verb on a fresh copy of its tree, killed."""
        self.put(verb.before)
        answer, _ = self.run(verb.tape.play(), kill.call)
        assert answer is None

    def recovered(self, kill: Kill | None = None) -> Any:
        """Let an agent recover the site; return its answer, None where it was killed."""
        assert self.recover
        return self.run(self.recover.play(), kill.call if kill else None)[0]

    def calls(self, tape: Tape) -> list[Call]:
        """Return the system calls of a tape that is played on the site as it is."""
        return calls(self.run(tape.play())[1], self.site)

    def untraced(self, data: bytes) -> Any:
        """Give bytes to an agent that nobody watches; return its last answer."""
        argv = bootstrap.argv(sys.executable)
        done = subprocess.run(argv, input=data, capture_output=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return answers(data, done.stdout)[-1]

    def killer(self, call: Call) -> Path:
        """Return an interpreter for the real command, whose first agent is killed at a call."""
        python, spent = self.work / "killer", self.work / "spent"
        shutil.rmtree(spent, ignore_errors=True)
        traced = " ".join(["exec", *_STRACE, f"{self.work}/trace", *_inject(call), sys.executable])
        python.write_text(
            f'#!/bin/sh\nif mkdir "{spent}"; then {traced} "$@"; fi\n'
            f'exec "{sys.executable}" "$@"\n'
        )
        python.chmod(0o755)
        return python

    def record(self, verb: str, *arguments: str) -> Tape:
        """Run a verb of the real command on the site; return what it sent."""
        tape, python = self.work / "tape", self.work / "python"
        python.write_text(f'#!/bin/sh\ntee "{tape}" | "{sys.executable}" "$@"\n')
        python.chmod(0o755)
        done = self.world.here(verb, *arguments, "--python", python)
        assert done.returncode in (0, 2), done.stderr
        return Tape.read(tape.read_bytes())


def _inject(kill: Call) -> list[str]:
    return ["-e", f"inject={kill.name}:signal=KILL:when={kill.number}"]


@contextlib.contextmanager
def place() -> Iterator[Path]:
    """Give a new folder, in memory where there is some: fsync is what takes time."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


def lab(root: Path) -> Lab:
    """Make a lab below `root`: site, queue, and the tapes of push, pop, undo and recover."""
    world = Venv(root / "w")
    world.root.mkdir(parents=True)
    venv.create(world.root / "env", symlinks=True, with_pip=False)
    made = Lab(world, root / "work")
    made.work.mkdir()
    archive = wheel(world.root, dict(FIRST))
    done = world.run("fetch", archive, "--into", world.site)
    assert done.returncode == 0, done.stderr
    _as_pip_does(made)
    world.write(_patches(root / "git"), {})
    world.run("lint", "--queue", world.queue, "--write")
    assert (world.series / "series.lock").exists()
    pristine = _kept(made, "pristine")
    made.recover = made.record("recover")
    tape = made.record("push", "-a")
    pushed = _kept(made, "pushed")
    made.verbs["push"] = Verb("push", pristine, pushed, tape)
    tape = made.record("pop", "-a")
    made.verbs["pop"] = Verb("pop", pushed, _kept(made, "popped"), tape)
    made.put(pristine)
    made.record("push")
    made.record("push")
    second = _kept(made, "second")
    tape = made.record("undo")
    made.verbs["undo"] = Verb("undo", second, _kept(made, "undone"), tape)
    for verb in made.verbs.values():
        made.put(verb.before)
        verb.calls = made.calls(verb.tape)
    return made


def _kept(made: Lab, name: str) -> Path:
    return clone(made.site, made.work / name)


def _patches(root: Path) -> dict[str, str]:
    """Return the patches of `CHANGES` as git writes them."""

    def git(*arguments: str) -> str:
        named = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "core.fileMode=true"]
        command = ["git", "-C", str(root), *named, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    root.mkdir()
    git("init", "-q")
    found = {}
    for patch, files in {"": dict[str, str | None](FIRST), **CHANGES}.items():
        for path, text in files.items():
            full = root / path
            full.parent.mkdir(parents=True, exist_ok=True)
            full.unlink() if text is None else full.write_text(text)
        if patch:
            (root / "demo/mode.sh").chmod(0o755)
        git("add", "-A")
        if patch:
            found[patch] = "Description: A change\n\n" + git("diff", "--cached", "-M", "HEAD")
        git("commit", "-qm", "x")
    return found


def _as_pip_does(made: Lab) -> None:
    """Make the site look as pip leaves it, one file a link into a store, with bytecode."""
    site = made.site
    store = made.world.root / "store"
    store.mkdir()
    (site / "demo/linked.py").rename(store / "linked.py")
    (site / "demo/linked.py").symlink_to(store / "linked.py")
    (site / "demo/__pycache__").mkdir()
    compiled = [f"demo/__pycache__/{name}.pyc" for name in LISTED + UNLISTED]
    for path in compiled:
        source = site / "demo" / (Path(path).name.split(".")[0] + ".py")
        mode = "UNCHECKED_HASH" if f"twice.{_TAG}" in path else "TIMESTAMP"
        how = py_compile.PycInvalidationMode[mode]
        py_compile.compile(str(source), str(site / path), invalidation_mode=how)
    info = site / "demo-1.0.dist-info"
    (info / "INSTALLER").write_bytes(b"pip\n")
    rows = [
        record_row(str(path.relative_to(site)), path.read_bytes())
        for path in sorted([*site.rglob("demo/*.*"), *info.iterdir()])
        if path.suffix != ".pyc" and path.name != "RECORD"
    ]
    rows += [f"demo/__pycache__/{name}.pyc,," for name in LISTED]
    rows.append("demo-1.0.dist-info/RECORD,,")
    (info / "RECORD").write_bytes("".join(f"{row}\r\n" for row in rows).encode())
