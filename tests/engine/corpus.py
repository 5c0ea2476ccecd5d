"""Two trees that differ in every way a diff can tell, and the tools that judge it."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

# path -> (bytes, executable)
Tree = dict[str, tuple[bytes, bool]]

WORDS = [b"", b"x = 1", b"\tif y:", b"pass", b"-- a", b"++ b", b"@@ -1 +1 @@", b"a\rb", b"a\x0cb"]
WORDS += [b"caf\xe9", "café".encode(), b"diff --git a/x b/x", b"\\ No newline", b"trailing "]


def text(rng: random.Random, lines: int, end: bytes = b"\n") -> bytes:
    """Return some lines, of which many are equal."""
    data = b"".join(rng.choice(WORDS) + end for _ in range(lines))
    return data if rng.random() < 0.7 else data.removesuffix(end) + b"!"


def edited(rng: random.Random, data: bytes) -> bytes:
    """Return `data` with a few lines changed, taken out, added; never the same."""
    lines = data.split(b"\n")
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(lines))
        lines[at : at + rng.randint(0, 2)] = [rng.choice(WORDS)] * rng.randint(0, 2)
    out = b"\n".join(lines)
    return out if out != data else data + b"more\n"


def trees(seed: int) -> tuple[Tree, Tree]:
    """Return a tree before and after."""
    rng = random.Random(seed)
    before: Tree = {"emptied.py": (b"a\nb\n", False), "filled.py": (b"", False)}
    after: Tree = {"emptied.py": (b"", False), "filled.py": (b"a\n", False)}
    for number in range(12):
        name = f"pkg/sub {number}/caf\u00e9.py" if number % 4 == 0 else f"pkg/m{number}.py"
        data = text(rng, rng.randint(1, 40), b"\r\n" if number % 3 == 0 else b"\n")
        before[name], after[name] = (data, False), (edited(rng, data), False)
    before["pkg/latin-\udce9.py"] = (b"1\n", False)
    after["pkg/latin-\udce9.py"] = (b"2\n", False)
    before['pkg/q"uote.py'], after['pkg/q"uote.py'] = (b"1", False), (b"1\n", False)
    before["a b/x.py"], after["a b/x.py"] = (b"1\n", True), (b"2", True)
    after["new/deep/file.py"] = (text(rng, 5), False)
    after["new/run.sh"], after["new/empty.py"] = (b"#!\n", True), (b"", False)
    before["gone.py"], before["gone-empty.py"] = (text(rng, 7) + b"y\n", False), (b"", False)
    before["mode.sh"], after["mode.sh"] = (b"mode only\n", False), (b"mode only\n", True)
    before["both.sh"], after["both.sh"] = (b"one\ntwo\n", True), (b"one\nthree\n", False)
    moved = b"".join(b"unique line %d\n" % at for at in range(30))
    before["old name.py"], after["fresh name.py"] = (moved, False), (moved + b"end\n", False)
    before["still.py"], after["moved/still.py"] = (moved[:200], False), (moved[:200], False)
    before["same.py"] = after["same.py"] = (b"untouched\n", False)
    return before, after


def write(tree: Tree, folder: Path) -> None:
    """Write a tree into a folder."""
    for name, (data, executable) in tree.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(0o755 if executable else 0o644)


def read(folder: Path) -> Tree:
    """Return the tree in a folder, without what the tools keep there."""
    return {
        path.relative_to(folder).as_posix(): (
            path.read_bytes(),
            bool(path.stat().st_mode & 0o100),
        )
        for path in folder.rglob("*")
        if path.is_file() and not {".git", ".pc", "patches"} & {*path.relative_to(folder).parts}
    }


def git(folder: Path, *words: str, stdin: bytes | None = None) -> bytes:
    """Run git in a folder, without anybody's settings."""
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    names = ("-c", "user.name=n", "-c", "user.email=e", "-c", "core.autocrlf=false")
    done = subprocess.run(
        ["git", *names, *words], cwd=folder, input=stdin, env=environ, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def git_diff(before: Tree, after: Tree, folder: Path, *options: str) -> bytes:
    """Return git's own diff of two trees."""
    write(before, folder)
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "before")
    for name in before:
        (folder / name).unlink()
    write(after, folder)
    git(folder, "add", "-A", "-f")
    return git(folder, "diff", "--cached", *options)
