"""A small installed distribution, the agent as a real process, and a small controller."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from patchq import agent
from patchq.agent import protocol, serve

SOURCES = Path(agent.__file__).parent
BOOT = "import sys;b=sys.stdin.buffer;n,l=b.readline().split()[-2:];exec(b.read(int(l)))"
LOADER = """
import sys, types
for name in ("patchq", "patchq.agent"):
    sys.modules[name] = types.ModuleType(name); sys.modules[name].__path__ = []
sys.modules["patchq"].agent = sys.modules["patchq.agent"]
read = sys.stdin.buffer
for _ in range(int(read.readline())):
    leaf, size = read.readline().decode().split()
    module = types.ModuleType("patchq.agent." + leaf)
    module.__package__ = "patchq.agent"
    sys.modules[module.__name__] = module
    setattr(sys.modules["patchq.agent"], leaf, module)
    exec(compile(read.read(int(size)), "<patchq.agent.%s>" % leaf, "exec"), module.__dict__)
sys.modules["patchq.agent.serve"].main(read, sys.stdout.buffer, b"n0nce", DEADLINE)
"""
FILES = {
    "demo/__init__.py": b"from demo import a\n",
    "demo/a.py": b"x = 1\n",
    "demo/b.py": b"y = 1\n",
    "demo/tool.py": b"#!/usr/bin/env python3\n",
    "demo/data.json": b"{}\n",
}
File = tuple[bytes, bool]


class AgentError(Exception):
    """The agent answered with an error."""

    def __init__(self, error: Mapping[str, str]) -> None:
        super().__init__(f"{error['word']}: {error['what']}: {error['why']}")
        self.word, self.what, self.why, self.mend = (
            error[key] for key in ("word", "what", "why", "mend")
        )


def interpreters() -> list[str]:
    """Return every Python from 3.8 on that PATH or pyenv has; at least the running one."""
    found = [shutil.which(f"python3.{minor}") for minor in range(8, 16)]
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found += [str(path) for path in sorted(root.glob("versions/3.*/bin/python"))]
    by_version = {}
    for path in (sys.executable, *filter(None, found)):
        done = subprocess.run(
            [path, "-ISc", "import sys; print(*sys.version_info[:2])"],
            capture_output=True,
            text=True,
        )
        if done.returncode == 0 and tuple(map(int, done.stdout.split())) >= (3, 8):
            by_version.setdefault(done.stdout.strip(), path)
    return list(by_version.values())


def payload(names: Iterable[str] = agent.WRITING, deadline: int = 60) -> bytes:
    """Return what goes into the agent's stdin before the first frame."""
    loader = LOADER.replace("DEADLINE", str(deadline)).encode()
    modules = [(name, (SOURCES / f"{name}.py").read_bytes()) for name in names]
    parts = [b"exit 99 # patchq1 n0nce %d\n" % len(loader), loader, b"%d\n" % len(modules)]
    for name, source in modules:
        parts += [b"%s %d\n" % (name.encode(), len(source)), source]
    return b"".join(parts)


class Process:
    """The agent in an interpreter of its own; use as a context."""

    def __init__(self, python: str = sys.executable, **options: Any) -> None:
        self.process = subprocess.Popen(
            [python, "-ISc", BOOT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **options,
        )
        assert self.process.stdin
        assert self.process.stdout
        self.send = self.process.stdin
        self.receive = self.process.stdout

    def __enter__(self) -> Process:
        self.send.write(payload())
        self.send.flush()
        marker = protocol.marker(b"n0nce")
        assert self.receive.read(len(marker)) == marker
        return self

    def __exit__(self, *_: object) -> None:
        self.send.close()
        self.process.wait(20)
        self.receive.close()
        assert self.process.stderr
        self.stderr = self.process.stderr.read()
        self.process.stderr.close()

    def ask(self, message: Mapping[str, Any], blobs: Mapping[str, bytes] | None = None) -> Any:
        self.send.write(protocol.pack(message, blobs))
        self.send.flush()
        head, tail = protocol.lengths(self.receive.read(protocol.HEADER.size))
        answer, contents = protocol.unpack(self.receive.read(head), self.receive.read(tail))
        return checked(answer), contents


def here(message: Mapping[str, Any], blobs: Mapping[str, bytes] | None = None) -> Any:
    """Ask the agent in this process, as `serve` would answer."""
    answer, contents = serve.respond(dict(message), dict(blobs or {}))
    return checked(answer), contents


def checked(answer: Mapping[str, Any]) -> Any:
    if "error" in answer:
        raise AgentError(answer["error"])
    return answer["ok"]


def record_row(path: str, data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(data)}"


def make_site(
    site: Path,
    files: Mapping[str, bytes] = FILES,
    *,
    name: str = "demo",
    version: str = "1.0",
    installer: str = "pip",
    end: str = "\r\n",
) -> Path:
    """Install a distribution by hand, as pip does: files, dist-info, RECORD."""
    dist_info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode()
    everything = {
        **files,
        f"{dist_info}/METADATA": metadata,
        f"{dist_info}/INSTALLER": f"{installer}\n".encode(),
        f"{dist_info}/WHEEL": b"Wheel-Version: 1.0\n",
    }
    for path, data in everything.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_bytes(data)
        if data.startswith(b"#!"):
            (site / path).chmod(0o755)
    rows = [record_row(path, data) for path, data in everything.items()]
    rows.append(f"{dist_info}/RECORD,,")
    (site / dist_info / "RECORD").write_bytes("".join(row + end for row in rows).encode())
    return site


def state_of(file: File | None) -> list[Any]:
    return ["absent", False, None] if file is None else ["file", file[1], protocol.sha256(file[0])]


def file_at(path: Path) -> File | None:
    if not path.exists():
        return None
    return path.read_bytes(), bool(path.stat().st_mode & 0o100)


class Controller:
    """Plans pushes and pops of whole files for one environment, as the real one does."""

    def __init__(
        self, site: Path, ask: Callable[..., Any] = here, distribution: str = "demo"
    ) -> None:
        self.site, self.ask, self.distribution = site, ask, distribution

    def survey(self, paths: Iterable[str] = (), **more: Any) -> Any:
        return self.ask(self.message("survey", paths=list(paths), **more))[0]

    def message(self, op: str, **more: Any) -> dict[str, Any]:
        return {"op": op, "distribution": self.distribution, "target": str(self.site), **more}

    def recover(self, force: str | None = None) -> Any:
        return self.ask(self.message("recover", force=force))[0]

    def push(self, files: Mapping[str, File | bytes | None], name: str = "p", **more: Any) -> Any:
        request, blobs = self.push_request(files, name, **more)
        return self.ask(request, blobs)[0]

    def push_request(
        self, files: Mapping[str, File | bytes | None], name: str = "p", **more: Any
    ) -> tuple[dict[str, Any], dict[str, bytes]]:
        survey = self.survey(files)
        entries, blobs, changes = [], {}, []
        for path, value in files.items():
            now = file_at(self.site / path)
            new = (value, bool(now and now[1])) if isinstance(value, bytes) else value
            if new is not None:
                blobs[protocol.sha256(new[0])] = new[0]
            changes.append([path, state_of(now), state_of(new)])
            entries.append({"path": path, "before": state_of(now), "after": state_of(new)})
        text = f"patch {name}".encode()
        blobs[protocol.sha256(text)] = text
        kept = (survey["state"] or {}).get("stack", [])
        patch = {
            "queue": "q",
            "patch": name,
            "release": "1.0",
            "sha256": protocol.sha256(text),
            "receipt": "",
            "changes": changes,
        }
        return self.request("push", survey, entries, [*kept, patch], **more), blobs

    def pop(self, **more: Any) -> Any:
        request, blobs = self.pop_request(**more)
        return self.ask(request, blobs)[0]

    def pop_request(self, **more: Any) -> tuple[dict[str, Any], dict[str, bytes]]:
        """Pop everything."""
        survey = self.survey()
        entries = []
        for path, kept in survey["state"]["originals"].items():
            found = survey["files"][path]
            kind = "absent" if found["sha256"] is None else "file"
            original = "absent" if kept["sha256"] is None else "file"
            entries.append(
                {
                    "path": path,
                    "before": [kind, found["executable"], found["sha256"]],
                    "after": [original, kept["executable"], kept["sha256"]],
                    "original": True,
                }
            )
        return self.request("pop", survey, entries, [], **more), {}

    def request(
        self,
        verb: str,
        survey: Any,
        entries: list[dict[str, Any]],
        stack: list[dict[str, Any]],
        **more: Any,
    ) -> dict[str, Any]:
        return self.message(
            "commit",
            expect={
                "dist_info": survey["installed"]["dist_info"],
                "record": survey["installed"]["record"],
                "generation": (survey["state"] or {}).get("generation", 0),
            },
            entries=entries,
            stack=stack,
            patches=[patch["sha256"] for patch in stack],
            receipt={
                "verb": verb,
                "who": "tester",
                "queue": "q",
                "patches": {verb: [{"patch": "p", "sha256": protocol.sha256(b"patch p")}]},
            },
            **{"compile": True, **more},
        )


def snapshot(site: Path, inodes: bool = True) -> dict[str, Any]:
    """Return all of a site but patchq's state and bytecode: kind, bytes, mode, owner, mtime."""
    found = {}
    for folder, names, files in os.walk(site):
        names[:] = [name for name in names if name not in (".patchq", "__pycache__")]
        for name in [*names, *files]:
            path = Path(folder, name)
            info = path.lstat()
            content: Any = None
            if path.is_symlink():
                content = os.readlink(path)
            elif path.is_file():
                content = (path.read_bytes(), info.st_mtime_ns, inodes and info.st_ino)
            mode = stat.filemode(info.st_mode)
            found[str(path.relative_to(site))] = (mode, info.st_uid, info.st_gid, content)
    return found


def left_in_state(site: Path) -> list[str]:
    """Return what is in the state's folder."""
    root = site / ".patchq"
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))
