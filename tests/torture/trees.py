"""Random trees, series of changes of them, and the tools that write them as patches.

A tree maps a path to bytes and the executable bit. What hypothesis draws here has all
that text can have: CR, tabs, form feeds, separators of Unicode that are no line ends, NUL,
bytes that are not UTF-8, no final newline; names with blanks, quotes, commas, leading dashes.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hypothesis import strategies as st

from patchq.engine import cquote, diff
from patchq.model import Patch
from patchq.queue import lock
from tests.agent.agent_lab import record_row
from tests.engine import corpus
from tests.engine.corpus import Tree

PLAIN = [f"demo/{name}.txt" for name in ("a", "b", "c", "sub/d", "sub/deep/e")] + ["demo/m.py"]
ODD = [
    "demo/two words.txt",
    "demo/sub dir/ x.txt",
    'demo/q"uote.txt',
    "demo/apo'strophe.txt",
    "demo/comma,.txt",
    "demo/caf\u00e9.txt",
    "demo/latin-\udce9.txt",
    "demo/-dash.txt",
    "-top.txt",
    "demo/#hash;$(x)&.txt",
    "demo/line\u2028.txt",
]
LINES = [b"a\n", b"b\n", b"\n", b"x = 1\r\n", b"cr\rinside\n", b"\ttab\n", b"form\x0cfeed\n"]
LINES += [b"\x0b\n", "sep\u2028\u0085\n".encode(), b"nul\0\n", b"\xe9\xff\n", b"trailing \n"]
LINES += [b"-- minus\n", b"++ plus\n", b"@@ -1 +1 @@\n", b"\\ No newline at end of file\n"]
LINES += [b"diff --git a/x b/x\n", b"--- a/demo/a.txt\n", b"\r\n", b"#\n"]
LINES += [b"line %d\n" % number for number in range(12)]
CODE = [
    b"x = 1\n",
    b"y = [\n]\n",
    b"\n",
    b"\x0c\n",
    b"# \xc3\xa9\n",
    b"if x:\n    pass\n",
    b"z = 3\r\n",
]
MAKERS = ("git", "git -M", "gnu", "ours")


@dataclass(frozen=True)
class Step:
    """What one patch of a series is to do: the tree above it, who writes it, and how."""

    above: Tree
    maker: str
    context: int


@dataclass(frozen=True)
class Series:
    """A tree, and the steps that change it; each changes something."""

    start: Tree
    steps: tuple[Step, ...]


def texts(path: str) -> st.SearchStrategy[bytes]:
    """Return texts for a file of that name; a module's are Python that compiles."""
    if path.endswith(".py"):
        return st.lists(st.sampled_from(CODE), max_size=8).map(b"".join)
    whole = st.lists(st.sampled_from(LINES), max_size=12).map(b"".join)
    return st.tuples(whole, st.sampled_from((0, 0, 1))).map(_cut)


def _cut(drawn: tuple[bytes, int]) -> bytes:
    data, without = drawn
    return data.removesuffix(b"\n") if without else data


@st.composite
def trees(draw: st.DrawFn, names: tuple[str, ...]) -> Tree:
    """Draw a tree of some of these names."""
    chosen = draw(st.lists(st.sampled_from(names), min_size=1, max_size=5, unique=True))
    return {
        name: (draw(texts(name)), draw(st.sampled_from((False, False, True)))) for name in chosen
    }


@st.composite
def series(
    draw: st.DrawFn,
    names: tuple[str, ...] = (*PLAIN, *ODD),
    makers: tuple[str, ...] = MAKERS,
    most: int = 5,
) -> Series:
    """Draw a series of one to `most` patches."""
    start = below = draw(trees(names))
    steps = []
    for _ in range(draw(st.integers(1, most))):
        maker, context = draw(st.sampled_from(makers)), draw(st.integers(0, 3))
        above = dict(below)
        for _ in range(draw(st.integers(1, 3))):
            above = draw(edits(above, names))
        above = told(below, above) if maker == "gnu" else above
        if above == below:
            path = next(iter(below), names[0])
            above = {**below, path: (below.get(path, (b"",))[0] + b"# more\n", False)}
            above = told(below, above) if maker == "gnu" else above
        steps.append(Step(above, maker, context))
        below = above
    return Series(start, tuple(steps))


@st.composite
def edits(draw: st.DrawFn, tree: Tree, names: tuple[str, ...]) -> Tree:
    """Draw one change of a tree: lines, a new, deleted, emptied or renamed file, a mode."""
    free = [name for name in names if name not in tree]
    kinds = ["lines", "lines", "gone", "emptied", "mode", "renamed"] if tree else []
    kind = draw(st.sampled_from([*kinds, "new"] if free else kinds[:-1]))
    if kind == "new":
        name = draw(st.sampled_from(free))
        return {**tree, name: (draw(texts(name)), draw(st.booleans()))}
    path = draw(st.sampled_from(sorted(tree)))
    data, executable = tree[path]
    rest = {name: file for name, file in tree.items() if name != path}
    if kind == "gone":
        return rest
    if kind == "renamed":
        fits = [name for name in free if name.endswith(".py") == path.endswith(".py")]
        return {**rest, draw(st.sampled_from(fits)): tree[path]} if fits else rest
    if kind == "mode":
        return {**tree, path: (data, not executable)}
    return {**tree, path: (b"" if kind == "emptied" else draw(edited(path, data)), executable)}


@st.composite
def edited(draw: st.DrawFn, path: str, data: bytes) -> bytes:
    """Draw a text with some lines of `data` taken out, put in or replaced, and perhaps moved."""
    pool = CODE if path.endswith(".py") else LINES
    rows = data.splitlines(keepends=True) if path.endswith(".py") else _rows(data)
    if path.endswith(".py"):  # whole statements stay whole: new ones go to the end
        return data + (b"" if data[-1:] in (b"\n", b"") else b"\n") + draw(st.sampled_from(pool))
    at = draw(st.integers(0, len(rows)))
    gone = draw(st.integers(0, 2))
    come = draw(st.lists(st.sampled_from(pool), max_size=3))
    if at and not rows[at - 1].endswith(b"\n") and come:
        rows[at - 1] += b"\n"
    return b"".join([*rows[:at], *come, *rows[at + gone :]])


def _rows(data: bytes) -> list[bytes]:
    rows = [row + b"\n" for row in data.split(b"\n")]
    return [*rows[:-1], *([rows[-1][:-1]] if rows[-1] != b"\n" else [])]


def told(below: Tree, above: Tree) -> Tree:
    """Return `above` as far as ``diff -u`` tells it: no modes, no empty files."""
    out = {}
    for path, (data, _) in above.items():
        if path in below:
            out[path] = (data, below[path][1])
        elif data:
            out[path] = (data, False)
    gone = {path: file for path, file in below.items() if path not in above and not file[0]}
    return {**gone, **out}


class Writers:
    """The tools that write patches, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        corpus.git(folder, "init", "-q", "--bare", "repository.git")
        corpus.git(folder / "repository.git", "config", "core.fsync", "none")

    def patch(self, below: Tree, step: Step) -> bytes:
        """Return the patch of one step."""
        if step.maker == "ours":
            return ours(below, step.above, step.context)
        if step.maker == "gnu":
            return self._gnu(below, step.above, step.context)
        return self._git(below, step)

    def _git(self, below: Tree, step: Step) -> bytes:
        repository = self.folder / "repository.git"
        stream = _commit("a", below) + _commit("b", step.above)
        corpus.git(repository, "fast-import", "--force", "--quiet", stdin=stream)
        rename = "-M30%" if step.maker == "git -M" else "--no-renames"
        options = ("--text", rename, f"-U{step.context}")
        return corpus.git(repository, "diff", *options, "a", "b")

    def _gnu(self, below: Tree, above: Tree, context: int) -> bytes:
        for side, tree in (("a", below), ("b", above)):
            empty(self.folder / side)
            corpus.write(tree, self.folder / side)
        done = subprocess.run(
            ["diff", "-r", "-N", "-a", f"-U{context}", "a", "b"],
            cwd=self.folder,
            env={**os.environ, "LC_ALL": "C"},
            capture_output=True,
        )
        assert done.returncode < 2, done.stderr
        return done.stdout


def ours(below: Tree, above: Tree, context: int = 3) -> bytes:
    """Return patchq's own diff of two trees; a rename is a file gone and a new one."""
    return b"".join(
        diff.unified(
            below[name][0] if name in below else None,
            above[name][0] if name in above else None,
            name,
            context=context,
            old_mode=mode(below.get(name)),
            new_mode=mode(above.get(name)),
        )
        for name in {**below, **above}
    )


def mode(file: tuple[bytes, bool] | None) -> int:
    """Return git's mode of a file."""
    return 0o100755 if file is not None and file[1] else 0o100644


def _commit(branch: str, tree: Tree) -> bytes:
    parts = [
        b"commit refs/heads/%s\ncommitter n <e> 0 +0000\ndata 0\ndeleteall\n" % branch.encode()
    ]
    for path, (data, executable) in tree.items():
        name = os.fsencode(cquote.quote(path))
        parts.append(b"M %o inline %s\n" % (mode((data, executable)), name))
        parts.append(b"data %d\n%s\n" % (len(data), data))
    return b"".join(parts)


def empty(folder: Path) -> None:
    """Make a folder, or take all out of it."""
    if folder.exists():
        subprocess.run(["rm", "-rf", "--", folder], check=True)
    folder.mkdir(parents=True)


def install(site: Path, tree: Mapping[str, tuple[bytes, bool]], end: bytes = b"\r\n") -> None:
    """Install a tree as the distribution ``demo`` 1.0, as pip does: files, dist-info, RECORD."""
    info = "demo-1.0.dist-info"
    more = {
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n",
        f"{info}/INSTALLER": b"pip\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\n",
    }
    files = {**tree, **{name: (data, False) for name, data in more.items()}}
    corpus.write(files, site)
    rows = []
    for path, (data, _) in files.items():
        quoted = '"' + path.replace('"', '""') + '"' if set(path) & set('",') else path
        rows.append(quoted + record_row("", data))
    rows.append(f"{info}/RECORD,,")
    (site / info / "RECORD").write_bytes(b"".join(os.fsencode(row) + end for row in rows))


def installed(site: Path) -> Tree:
    """Return the files of a site but dist-info, state and bytecode."""
    return {
        path: file
        for path, file in corpus.read(site).items()
        if not path.startswith((".patchq/", "demo-1.0.dist-info/")) and "__pycache__/" not in path
    }


def enqueue(folder: Path, tree: Tree, texts: Mapping[str, bytes], release: str = "1.0") -> Path:
    """Write a queue of these patches with its lock, made on `tree`; return its folder."""
    series = folder / release
    series.mkdir(parents=True)
    (folder / "queue.toml").write_text('distribution = "demo"\nsummary = "random"\n')
    patches = []
    for name, text in texts.items():
        (series / name).write_bytes(text)
        patches.append(Patch(name, text, *diff.parse(text, name=name)))
    (series / "series").write_text("".join(f"{name}\n" for name in texts))
    made = lock.make("demo", release, "0" * 40, patches, read=tree.get)
    (series / "series.lock").write_bytes(lock.format(made))
    return folder
