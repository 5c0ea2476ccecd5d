"""A demo distribution in three versions, two queues for it, and what installs it.

Every tree lies at the same path in turn: the one that is patched and its control, which goes
through the same commands without patchq, can be compared byte by byte.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import os
import shutil
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

VERSIONS = ("0.9", "1.0", "1.1")
SERIES = ("1.0", "1.1")  # 0.9 has none
Files = dict[str, tuple[str, bool]]


def files(version: str) -> Files:
    """Return what is in the package of a version: path → text and executable bit."""
    return {
        "demo/__init__.py": ("", False),
        "demo/a.py": (f"VERSION = {version!r}\n\nx = 1\n\n\n\n\n\n\n\ny = 1\n", False),
        "demo/b.py": ("b = 1\n", False),
        "demo/c.py": ("c = 1\nC = 2\n\n\ndef see():\n    return c\n", False),
        "demo/notes.txt": ("to be\nemptied\n", False),
        "demo/tool.py": ("#!/usr/bin/env python3\nt = 1\n", False),
        "demo/with, comma.txt": ("one\n", False),
        "demo_top.py": ("top = 1\n", False),
    }


def _edit(tree: Files, path: str, old: str, new: str) -> None:
    text, executable = tree[path]
    assert old in text
    tree[path] = text.replace(old, new), executable


def _changed(tree: Files) -> None:
    _edit(tree, "demo/a.py", "x = 1", "x = 2")
    _edit(tree, "demo/with, comma.txt", "one", "two")


def _created(tree: Files) -> None:
    tree["demo/new/n.py"] = "n = 1\n", False
    tree["demo_more.py"] = "more = 1\n", False
    tree["demo/new, too.txt"] = "new\n", False


def _deleted(tree: Files) -> None:
    del tree["demo/b.py"]


def _emptied(tree: Files) -> None:
    tree["demo/notes.txt"] = "", False


def _mode(tree: Files) -> None:
    tree["demo/tool.py"] = tree["demo/tool.py"][0], True


def _renamed(tree: Files) -> None:
    tree["demo/sub/d.py"] = tree.pop("demo/c.py")


def _other(tree: Files) -> None:
    _edit(tree, "demo/a.py", "y = 1", "y = 2")
    tree["demo/other/o.py"] = "o = 1\n", False


QUEUES: dict[str, dict[str, Callable[[Files], None]]] = {
    "q": {
        "10-changed": _changed,
        "20-created": _created,
        "30-deleted": _deleted,
        "40-emptied": _emptied,
        "50-mode": _mode,
        "60-renamed": _renamed,
    },
    "r": {"10-other": _other},
}


def patched(version: str, *names: str) -> Files:
    """Return the package's files with all patches of these queues."""
    tree = files(version)
    for name in names:
        for edit in QUEUES[name].values():
            edit(tree)
    return tree


def run(*command: object, check: bool = True, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run a command; what it says is in the failure of the test."""
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=120, **more
    )
    assert not check or done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done


def quiet(**more: str) -> dict[str, str]:
    """Return the process's environment without settings of pip, uv and a venv."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PIP_", "UV_", "PYTHON", "VIRTUAL_ENV"))
    }
    return {**kept, "PIP_CONFIG_FILE": os.devnull, "PIP_DISABLE_PIP_VERSION_CHECK": "1", **more}


def wheel(folder: Path, version: str) -> Path:
    """Write the demo's wheel of a version: with scripts, headers and an entry point."""
    data, info = f"demo-{version}.data", f"demo-{version}.dist-info"
    members: dict[str, str | bytes] = {path: text for path, (text, _) in files(version).items()}
    members[f"{data}/scripts/demo-tool"] = "#!python\nprint('tool')\n"
    members[f"{data}/headers/demo.h"] = "int demo;\n"
    members[f"{data}/purelib/demo/pure.py"] = "p = 1\n"
    members[f"{info}/entry_points.txt"] = "[console_scripts]\ndemo-cli = demo.a:x\n"
    return packed(folder, members, version=version)


def packed(
    folder: Path, members: Mapping[str, str | bytes], name: str = "demo", version: str = "1.0"
) -> Path:
    """Write a wheel of these members; RECORD is quoted as csv quotes it."""
    info = f"{name}-{version}.dist-info"
    tags = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    every = {
        **members,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": tags,
    }
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in every.items():
            data = content.encode() if isinstance(content, str) else content
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
            rows.writerow((member, f"sha256={digest.decode()}", len(data)))
            _member(archive, member, data)
        rows.writerow((f"{info}/RECORD", "", ""))
        _member(archive, f"{info}/RECORD", text.getvalue().encode())
    return path


def _member(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    info = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
    info.external_attr = 0o100644 << 16
    archive.writestr(info, data)


def queue(folder: Path, name: str) -> None:
    """Write a queue of `QUEUES`, without its locks; git makes the patches."""
    (folder / "post").mkdir(parents=True)
    (folder / "queue.toml").write_text('distribution = "demo"\nsummary = "s"\nowner = "o"\n')
    for version in SERIES:
        (folder / version).mkdir()
        tree = files(version)
        for patch, edit in QUEUES[name].items():
            before = dict(tree)
            edit(tree)
            (folder / version / f"{patch}.patch").write_text(
                f"Description: {patch}\n\n" + diff(folder, before, tree)
            )
        lines = "".join(f"{patch}.patch\n" for patch in QUEUES[name])
        (folder / version / "series").write_text(lines)


def diff(beside: Path, before: Files, after: Files) -> str:
    """Return git's diff between two trees."""
    work = beside / "work"
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    git = ["git", "-C", work, "-c", "user.name=t", "-c", "user.email=t@example.org"]
    work.mkdir()
    for number, tree in enumerate((before, after)):
        for path in [*work.rglob("*")]:
            if path.is_file() and ".git" not in path.parts:
                path.unlink()
        lay_out(work, tree)
        if number == 0:
            run(*git, "init", "-q", env=env)
        run(*git, "add", "-A", env=env)
        if number == 0:
            run(*git, "commit", "-q", "-m", "x", env=env)
    shown = run(*git, "diff", "--cached", "-M", "HEAD", env=env).stdout
    shutil.rmtree(work)
    return shown


def lay_out(folder: Path, tree: Files) -> None:
    """Write the files of a tree."""
    for path, (text, executable) in tree.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
        (folder / path).chmod(0o755 if executable else 0o644)


def snapshot(root: Path) -> dict[str, object]:
    """Return all of a tree but patchq's own folder: modes and bytes; of bytecode the names."""
    found: dict[str, object] = {}
    for folder, names, leaves in os.walk(root):
        names[:] = [name for name in names if name != ".patchq"]
        for name in [*names, *leaves]:
            path = Path(folder, name)
            mode = stat.filemode(path.lstat().st_mode)
            content: object = None
            if path.is_symlink():
                content = os.readlink(path)
            elif path.is_file() and path.suffix != ".pyc":
                content = path.read_bytes()
            found[path.relative_to(root).as_posix()] = mode, content
    return found


def differing(left: Mapping[str, object], right: Mapping[str, object]) -> dict[str, object]:
    """Return what two snapshots differ in, for the message of a failed test."""
    return {
        path: (left.get(path), right.get(path))
        for path in sorted({*left, *right})
        if left.get(path) != right.get(path)
    }


@dataclass
class Lab:
    """Wheels, queues, and one place at which an environment lies."""

    root: Path
    controls: dict[object, Any] = field(default_factory=dict)
    moved: str = "env"

    @property
    def wheels(self) -> Path:
        return self.root / "wheels"

    def wheel(self, version: str) -> Path:
        return self.wheels / f"demo-{version}-py3-none-any.whl"

    @property
    def place(self) -> Path:
        return self.root / self.moved

    @property
    def python(self) -> Path:
        return self.place / "bin" / "python"

    @property
    def site(self) -> Path:
        (found,) = self.place.glob("lib/python3*/site-packages")
        return found

    def patchq(
        self, verb: str, *args: object, check: bool = True, aim: bool = True, **environ: str
    ) -> subprocess.CompletedProcess[str]:
        """Run patchq on the environment."""
        more = ("--python", self.python) if aim else ()
        env = quiet(
            PATCHQ_CACHE=str(self.root / "cache"),
            PATCHQ_QUEUES=str(self.root / "queues"),
            HOME=str(self.root),
            PYTHONDONTWRITEBYTECODE=os.environ.get("PYTHONDONTWRITEBYTECODE", ""),
        )
        return run(
            sys.executable,
            *("-m", "patchq", verb, *args, *more),
            check=check,
            env={**env, **environ},
            cwd=self.root,
        )

    def queue(self, name: str) -> Path:
        return self.root / "queues" / name

    def push(self, *names: str) -> None:
        """Push whole queues."""
        for name in names:
            self.patchq("push", "-a", "--queue", self.queue(name))

    def pop(self, *names: str) -> None:
        """Pop whole queues."""
        for name in names:
            self.patchq("pop", "-a", "--queue", self.queue(name))

    def audit(self, *args: object, **more: Any) -> dict[str, dict[str, Any]]:
        """Return audit's rows by queue."""
        done = self.patchq("audit", "--json", *args, check=False, **more)
        document = json.loads(done.stdout)
        assert "rows" in document, document
        return {row["queue"]: row for row in document["rows"] if row["queue"] in QUEUES}

    def words(self, *args: object, **more: Any) -> dict[str, str]:
        """Return audit's words by queue."""
        return {name: str(row["word"]) for name, row in self.audit(*args, **more).items()}

    def version(self) -> str:
        """Return what importlib.metadata says in the environment."""
        code = "import importlib.metadata as m; print(m.version('demo'))"
        done = run(self.python, "-c", code, check=False, env=quiet())
        if done.returncode:
            return done.stderr.strip().splitlines()[-1]
        return done.stdout.strip()


def holds(lab: Lab, *queues: str, version: str = "1.0") -> None:
    """Check that the package's files are those with the patches of these queues."""
    for path, (text, executable) in patched(version, *queues).items():
        file = lab.site / path
        assert (path, file.read_text()) == (path, text)
        assert (path, bool(file.stat().st_mode & 0o100)) == (path, executable)
    wanted = {path for path in patched(version, *queues) if path.startswith("demo/")}
    there = {p.relative_to(lab.site).as_posix() for p in (lab.site / "demo").rglob("*.py")}
    assert there - {"demo/pure.py"} == {path for path in wanted if path.endswith(".py")}


def make(root: Path) -> Lab:
    """Return a lab whose wheels and queues are made and locked."""
    lab = Lab(root)
    lab.wheels.mkdir()
    for version in VERSIONS:
        wheel(lab.wheels, version)
    packed(lab.wheels, {"other/__init__.py": ""}, name="other")
    for name in QUEUES:
        queue(lab.queue(name), name)
    for version in SERIES:
        lab.patchq("fetch", lab.wheel(version), aim=False)
    for name in QUEUES:
        lab.patchq("lint", "--write", "--queue", lab.queue(name), check=False, aim=False)
        for version in SERIES:
            assert (lab.queue(name) / version / "series.lock").is_file()
    return lab
