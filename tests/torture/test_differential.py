"""patchq against git apply, GNU patch and quilt: where all accept, equal bytes and modes.

Where patchq refuses and one of them accepts, the reason is one of `REASONS`, each of which
docs/formats.md explains; patchq accepts nothing that git apply refuses.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from patchq.engine import apply, diff
from patchq.errors import ExitCode, PatchqError
from patchq.model import Patch, UnsafePath
from patchq.report import Report
from tests.conversation.conftest import Talk
from tests.engine import corpus
from tests.engine.corpus import Tree
from tests.torture import form, trees

# Why patchq refuses what others take; the words by which docs/formats.md tells it.
REASONS = {
    "moved": "whose lines have moved",
    "ambiguous": "fits in more than one place",
    "no context": "without context whose place is not there",
    "mode": "expects another mode",
    "leftover": "deletes a file that has more lines",
    "exists": "creates a file that is there",
    "nothing": "changes nothing",
    "line ends": "ends its own lines in CR LF",
    "not whole": "cut short or miscounted",
    "order": "hunks out of order",
    "outside": "outside the package",
}
TABLE = "patchq, git apply, patch -F0"
SPOILS = ("shifted", "moved", "twice", "context", "mode", "exists", "CR LF", "cut", "count")
SPOILS += ("again", "outside", "longer", "order")


def examples(short: int, long: int) -> settings:
    """Return hypothesis' settings; to shrink a case of many processes takes minutes."""
    return settings(
        phases=(Phase.explicit, Phase.reuse, Phase.generate),
        deadline=None,
        max_examples=long if form.LONG else short,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


class Lab:
    """One tree in a folder for each tool, and the patch that all of them are given."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.writers = trees.Writers(folder / "writers")

    def gits(self, tree: Tree, text: bytes, *, zero: bool) -> Tree | None:
        """Return what ``git apply`` makes of a tree, None where it refuses.

        `zero`: it is told that hunks may have no context, which it does not take else.
        """
        options = ["--unidiff-zero"] if zero else []
        return self._run("git", ["git", "apply", *options, "-"], tree, text)

    def gnus(self, tree: Tree, text: bytes) -> Tree | None:
        """Return what ``patch -F0`` makes of a tree, None where it refuses."""
        argv = ["patch", "-p1", "-F0", "-f", "-s", "--no-backup-if-mismatch", "-r", "-"]
        return self._run("gnu", argv, tree, text)

    def _run(self, name: str, argv: list[str], tree: Tree, text: bytes) -> Tree | None:
        at = self.folder / name
        trees.empty(at)
        corpus.write(tree, at)
        environ = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "LC_ALL": "C"}
        environ["GIT_CEILING_DIRECTORIES"] = str(self.folder)
        done = subprocess.run(argv, cwd=at, input=text, env=environ, capture_output=True)
        self.said = done.stdout + done.stderr
        return corpus.read(at) if done.returncode == 0 else None


@pytest.fixture
def lab(tmp_path):
    return Lab(tmp_path)


def judged(tree: Tree, text: bytes) -> tuple[Tree | None, str]:
    """Return what patchq makes of a tree, or None and the word for why it refuses."""
    try:
        header, diffs = diff.parse(text, name="x.patch")
    except UnsafePath:
        return None, "outside"
    except PatchqError as error:
        return None, _format_word(error.why)
    patch = Patch("x.patch", text, header, diffs)
    if not diffs:
        return None, "nothing"
    result = apply.apply_patch(patch, tree.get)
    if isinstance(result, apply.PatchApplied):
        merged = {**tree, **result.after}
        return {path: file for path, file in merged.items() if file is not None}, ""
    why = result.rejected
    if why.reason == "exists":
        return None, "exists"
    for words, word in (("expects the mode", "mode"), ("it has more", "leftover")):
        if words in why.message:
            return None, word
    if "changes nothing in it" in why.message:
        return None, "nothing"
    searched = apply.apply_patch(patch, tree.get, search=True)
    if isinstance(searched, apply.PatchApplied):
        return None, "moved"
    if searched.rejected.reason == "ambiguous":
        return None, "ambiguous"
    anchored = ("hunk without context can go", "less context below than above")
    short = any(words in searched.message for words in anchored)
    return None, "no context" if short else "mismatch"


def _format_word(why: str) -> str:
    for words, word in (("CR LF", "line ends"), ("overlap", "order"), ("nothing", "nothing")):
        if words in why:
            return word
    return "not whole"


def compare(lab: Lab, tree: Tree, text: bytes, context: int, row: str) -> Tree | None:
    """Hold patchq against git apply and GNU patch; return the new tree where all accept."""
    mine, word = judged(tree, text)
    gits, gnus = lab.gits(tree, text, zero=context == 0), lab.gnus(tree, text)
    if mine is None:
        if gits is not None or gnus is not None:
            assert word in REASONS, (word, lab.said)
            form.count(TABLE, row, f"only patchq refuses: {word}")
        else:
            form.count(TABLE, row, "all refuse")
        return None
    if gits is None and without_context(text):
        gits = lab.gits(tree, text, zero=True)
        form.count(TABLE, row, "git apply wants --unidiff-zero")
    if gits != mine and without_context(text) and gnus == mine:
        # Its @@ line contradicts itself: git goes by the new line, patch and patchq by the old.
        form.count(TABLE, row, "git apply goes by the new line")
        return None
    assert gits == mine, (lab.said, text)
    if gnus is None:
        form.count(TABLE, row, "only patch -F0 refuses")
        return mine
    assert gnus == mine, text
    form.count(TABLE, row, "all accept, equal bytes and modes")
    return mine


def without_context(text: bytes) -> bool:
    """Return whether some hunk has no line of context: git apply takes it if told so."""
    hunks = [hunk for one in diff.parse(text, name="x")[1] for hunk in one.hunks]
    return any(all(mark != " " for mark, _ in hunk.lines) for hunk in hunks)


@given(st.data())
@examples(40, 1000)
def _whole(lab, data):
    series = data.draw(trees.series())
    tree = series.start
    for step in series.steps:
        text = lab.writers.patch(tree, step)
        after = compare(lab, tree, text, step.context, f"made by {step.maker}")
        assert after == step.above
        tree = after


@pytest.mark.slow
def test_a_series_of_any_tools_gives_the_same_files_everywhere(lab):
    _whole(lab)


def spoiled(kind: str, tree: Tree, text: bytes, number: int) -> tuple[Tree, bytes]:
    """Return a tree and a patch of which one does not fit the other any more."""
    path = sorted(tree)[number % len(tree)]
    data, executable = tree[path]
    if kind == "moved":
        tree = {name: (b"# new\n" + d, x) for name, (d, x) in tree.items()}
    elif kind == "twice":
        tree = {name: (b"# new\n" + d + d, x) for name, (d, x) in tree.items()}
    elif kind == "longer":
        tree = {**tree, path: (data + b"# more\n", executable)}
    elif kind == "mode":
        tree = {name: (d, not x) for name, (d, x) in tree.items()}
    elif kind == "exists":
        made = [one.new for one in diff.parse(text, name="x")[1] if one.old != one.new]
        tree = {name: (b"", False) for name in made if name is not None} | tree
    elif kind == "context":
        tree = {**tree, path: (data.replace(b"line", b"LINE"), executable)}
    elif kind == "CR LF":
        text = text.replace(b"\n", b"\r\n")
    elif kind == "cut":
        text = text[: len(text) * (number % 97) // 97]
    elif kind == "shifted":
        text = _renumbered(text, 1 + number % 5)
    elif kind == "count":
        text = text.replace(b" @@", b"1 @@", 1)
    elif kind == "outside":
        text = text.replace(b"demo/", (b"../demo/", b"demo-1.0.dist-info/", b".git/")[number % 3])
    elif kind == "order":
        text = _turned(text)
    return tree, text


def _renumbered(text: bytes, by: int) -> bytes:
    out = []
    for row in text.split(b"\n"):
        words = row.split(b" ")
        if row.startswith(b"@@ -") and len(words) > 3:
            for at in (1, 2):
                start, comma, count = words[at][1:].partition(b",")
                words[at] = words[at][:1] + b"%d" % (int(start) + by) + comma + count
            row = b" ".join(words)
        out.append(row)
    return b"\n".join(out)


def _turned(text: bytes) -> bytes:
    """Return a patch whose first file has its hunks in the wrong order, if it has two."""
    head, *hunks = text.split(b"\n@@ ")
    if len(hunks) < 2 or b"\ndiff " in hunks[0] or not hunks[1].endswith(b"\n"):
        return text
    return b"\n@@ ".join((head, hunks[1].removesuffix(b"\n"), hunks[0], *hunks[2:])) + b"\n"


@given(st.data())
@examples(100, 3000)
def _spoiled(lab, data):
    kind, number = data.draw(st.sampled_from(SPOILS)), data.draw(st.integers(0, 96))
    series = data.draw(trees.series(most=1))
    (step,) = series.steps
    text = lab.writers.patch(series.start, step)
    start = step.above if kind == "again" else series.start
    if not start:
        return
    tree, text = spoiled(kind, start, text, number)
    compare(lab, tree, text, step.context, f"spoiled: {kind}")


@pytest.mark.slow
def test_a_spoiled_patch_is_taken_by_patchq_only_where_git_takes_it(lab):
    _spoiled(lab)


ROWS = [b"line %d\n" % number for number in range(24)]
TEXT = b"".join(ROWS)
# One file of each kind; alone, so that each is what a spoiled patch stumbles over.
ONE_CHANGE = {
    "two hunks": ((TEXT, False), (TEXT.replace(b" 4", b" four").replace(b" 20", b" XX"), False)),
    "new": (None, (TEXT, False)),
    "deleted": ((TEXT, False), None),
    "emptied": ((TEXT, False), (b"", False)),
    "mode": ((TEXT, True), (TEXT + b"more\n", False)),
}


@pytest.mark.parametrize("kind", SPOILS)
def test_each_way_to_spoil_each_kind_of_change(lab, kind):
    cases = [
        (change, maker, context)
        for change in ONE_CHANGE
        for maker in trees.MAKERS[1:]
        for context in (0, 3)
    ]
    for change, maker, context in form.some(cases, 10):
        before, after = ONE_CHANGE[change]
        path, rest = "demo/a.txt", {"demo/b.txt": (b"b\n", False)}
        start = rest if before is None else {**rest, path: before}
        above = rest if after is None else {**rest, path: after}
        above = trees.told(start, above) if maker == "gnu" else above
        text = lab.writers.patch(start, trees.Step(above, maker, context))
        for number in form.some((0, 1, 2, 50, 90), 1):
            tree, spoilt = spoiled(kind, above if kind == "again" else start, text, number)
            compare(lab, tree, spoilt, context, f"spoiled: {kind}")


@pytest.mark.parametrize(
    ("rows", "more", "taken"),
    [
        (b" a\n b\n-c\n", b"", "ours git gnu"),
        (b" a\n b\n-c\n", b"more\n", ""),
        (b" a\n b\n-c\n c\n", b"more\n", "git"),
        (b" a\n-b\n c\n", b"more\n", "ours git gnu"),
    ],
)
def test_a_hunk_that_ended_its_file_is_taken_where_patch_takes_it(lab, rows, more, taken):
    old = b"".join(row[1:] + b"\n" for row in rows.split(b"\n")[:-1])
    count = rows.count(b"\n")
    text = b"--- a/demo/a.txt\n+++ b/demo/a.txt\n@@ -1,%d +1,%d @@\n%s" % (count, count - 1, rows)
    tree = {"demo/a.txt": (old + more, False)}

    found = {
        "ours": judged(tree, text)[0],
        "git": lab.gits(tree, text, zero=False),
        "gnu": lab.gnus(tree, text),
    }

    assert " ".join(name for name, files in found.items() if files is not None) == taken
    form.count(TABLE, "a hunk that ended its file", "taken only where patch -F0 takes it")


def push(tmp: Path, tree: Tree, there: Tree, texts: dict[str, bytes]) -> tuple[Tree, Report]:
    """Push a series made on `tree` to an environment that has `there`; return files and report."""
    trees.empty(tmp)
    trees.install(tmp / "site", there)
    queue = trees.enqueue(tmp / "q", tree, texts)
    report = Talk(tmp / "site", queue, tmp / "cache").push()
    return trees.installed(tmp / "site"), report


@given(st.data())
@examples(15, 300)
def _pushed(lab, data):
    series = data.draw(trees.series(most=3))
    texts, tree = {}, series.start
    for number, step in enumerate(series.steps):
        texts[f"{number}.patch"] = lab.writers.patch(tree, step)
        tree = step.above
    files, report = push(lab.folder / "push", series.start, series.start, texts)
    if report.exit_code == ExitCode.CONFLICT:
        kinds = {one["kind"] for one in report.document["conflicts"]}
        assert kinds == {"judgement"}, report.document
        assert files == series.start
        form.count("patchq push", "a whole series", "refused by the judge of Python")
        return
    assert report.exit_code == ExitCode.DONE
    assert files == tree
    form.count("patchq push", "a whole series", "the files that git apply makes")


@pytest.mark.slow
def test_a_push_of_a_series_gives_the_files_that_the_other_tools_make(lab):
    _pushed(lab)


@given(st.data())
@examples(15, 300)
def _drifted(lab, data):
    kind = data.draw(st.sampled_from(("moved", "twice", "context", "mode", "exists", "longer")))
    series = data.draw(trees.series(most=1, names=tuple(n for n in trees.PLAIN if n[-2:] != "py")))
    (step,) = series.steps
    if not series.start:
        return
    text = lab.writers.patch(series.start, step)
    number = data.draw(st.integers(0, 96))
    there, _ = spoiled(kind, series.start, text, number)
    touched = {path for diff_ in diff.parse(text, name="x")[1] for path in (diff_.old, diff_.new)}
    fits = all(there.get(path) == series.start.get(path) for path in touched if path)
    files, report = push(lab.folder / "push", series.start, there, {"x.patch": text})
    taken = lab.gits(there, text, zero=step.context == 0) is not None
    others = "git apply takes it" if taken else "git apply refuses, too"
    if fits:
        assert report.exit_code == ExitCode.DONE
        form.count("patchq push", "an edited neighbour", "done")
        return
    assert report.exit_code == ExitCode.CONFLICT
    assert files == there
    for one in report.document["conflicts"]:
        assert one["kind"] in ("drift", "already there", "partial"), one
        form.count("patchq push", f"an edited file, {others}", f"refused: {one['kind']}")


def test_a_push_onto_files_that_somebody_edited_is_refused_by_its_kind(lab):
    _drifted(lab)


def quilt(folder: Path, verb: str) -> None:
    """Push or pop all patches of a folder with quilt."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "QUILT_PATCHES": "patches"}
    done = subprocess.run(
        ["quilt", "--quiltrc", "-", verb, "-a", "-q", *(["--fuzz=0"] if verb == "push" else [])],
        cwd=folder,
        env=environ,
        capture_output=True,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def lines_of(tree: Tree) -> dict[str, bytes]:
    """Return what quilt keeps of a tree: it takes empty files away, and knows no modes."""
    return {path: data for path, (data, _) in tree.items() if data}


@pytest.mark.slow
def test_quilt_pushes_many_series_at_once_to_the_same_bytes(lab):
    """Case by case in a folder of its own, and the patches of one number in one file."""
    cases: list[list[tuple[bytes, Tree]]] = []
    starts: Tree = {}

    @given(st.data())
    @examples(12, 100)
    def collect(data):
        names = tuple(f"c{len(cases)}/{name.removeprefix('demo/')}" for name in trees.PLAIN)
        drawn = data.draw(trees.series(names[:-1], most=4))
        tree, texts = drawn.start, []
        for step in drawn.steps:
            texts.append((lab.writers.patch(tree, step), step.above))
            if lines_of(lab.gnus(tree, texts[-1][0]) or {}) != lines_of(step.above):
                return  # what patch does not take, quilt does not
            if any(not data and path.encode() in texts[-1][0] for path, (data, _) in tree.items()):
                return  # an earlier patch emptied it: quilt has taken it away
            tree = step.above
        starts.update(drawn.start)
        cases.append(texts)

    collect()
    work = lab.folder / "quilt"
    corpus.write(starts, work)
    (work / "patches").mkdir(parents=True)
    expected: Tree = {}
    for number in range(4):
        text = b"".join(texts[number][0] for texts in cases if number < len(texts))
        (work / "patches" / f"{number}.patch").write_bytes(text)
    (work / "patches" / "series").write_text("".join(f"{n}.patch\n" for n in range(4)))
    for texts in cases:
        expected |= texts[-1][1]

    quilt(work, "push")

    assert lines_of(corpus.read(work)) == lines_of(expected)
    form.count("quilt push -a", "series", "equal bytes", len(cases))


@pytest.mark.parametrize("word", REASONS)
def test_each_reason_to_refuse_is_in_the_docs(word):
    page = (Path(__file__).parents[2] / "docs" / "formats.md").read_text()

    assert REASONS[word] in " ".join(page.split())
