"""What always holds of push, pop, goto, undo and the plan, whatever was done before.

A state machine does what people do to one real tree, with the real agent in this process:
two queues that share a file, hand edits, a reinstall. Every verb is first asked what it
would do.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from patchq.agent import record
from patchq.conversation import move, undo
from patchq.conversation.goal import Upto
from patchq.engine import apply, diff
from patchq.errors import ExitCode, PatchqError
from patchq.model import Patch
from patchq.report import Report
from tests.agent.agent_lab import snapshot
from tests.conversation.conftest import Talk
from tests.engine.corpus import Tree
from tests.torture import form, trees

SHARED = "demo/shared.txt"
MINE = ("demo/a.txt", "demo/new/x.txt", 'demo/q"uote, one.txt', "demo/latin-\udce9.txt")
YOURS = ("demo/b.txt", "demo/sub/y.txt", "demo/caf\u00e9 two.txt", "demo/-dash.txt")
LINES = [b"line %d\n" % number for number in range(60)]
WOULD = (
    ("Would apply patch", "Applying patch"),
    ("Would remove patch", "Removing patch"),
    ("would change", "patching file"),
    ("would remove", "Removing"),
    ("Restoring", "patching file"),
    ("Would be at", "Now at"),
    ("Would leave no patches applied", "No patches applied"),
)
QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


def examples(short: int, long: int) -> settings:
    """Return hypothesis' settings for one law; to shrink a case of many files takes minutes."""
    return settings(
        deadline=None,
        max_examples=long if form.LONG else short,
        suppress_health_check=QUIET,
        phases=(Phase.explicit, Phase.reuse, Phase.generate),
    )


class Environment:
    """A folder with a tree installed, and queues beside it."""

    def __init__(self, root: Path, tree: Tree, end: bytes = b"\r\n") -> None:
        self.root, self.tree, self.site = root, tree, root / "site"
        trees.install(self.site, tree, end)
        self.pristine = snapshot(self.site)

    def talk(self, queue: str = "q") -> Talk:
        """Return what drives the verbs with one queue."""
        return Talk(self.site, self.root / queue, self.root / "cache")

    def enqueue(self, queue: str, steps: list[Tree], header: bytes = b"") -> list[Tree]:
        """Write a queue whose patches make these trees, one of the other; return all of them."""
        texts, below = {}, self.tree
        for number, above in enumerate(steps):
            texts[f"{queue}{number}.patch"] = header + trees.ours(below, above)
            below = above
        trees.enqueue(self.root / queue, self.tree, texts)
        return [self.tree, *steps]

    def kept(self) -> dict[str, bytes]:
        """Return all files of the state but the lock."""
        home = self.site / ".patchq"
        return {
            str(path.relative_to(home)): path.read_bytes()
            for path in sorted(home.rglob("*"))
            if path.is_file() and path.name != "lock"
        }


def series(names: tuple[str, ...], row: int) -> st.SearchStrategy[tuple[Tree, list[Tree]]]:
    """Return what draws a tree and the trees of a series; each patch changes `SHARED`, too."""

    def shared(drawn: trees.Series) -> tuple[Tree, list[Tree]]:
        steps = []
        for number, step in enumerate(drawn.steps):
            lines = list(LINES)
            lines[row] = b"row %d of patch %d\n" % (row, number)
            steps.append({**step.above, SHARED: (b"".join(lines), False)})
        return {**drawn.start, SHARED: (b"".join(LINES), False)}, steps

    return trees.series(names, makers=("ours",), most=4).map(shared)


class Stack(RuleBasedStateMachine):
    """One environment, two queues, and the count of patches that each has on."""

    @initialize(mine=series(MINE, 10), yours=series(YOURS, 40))
    def install(self, mine, yours):
        self.folder = Path(tempfile.mkdtemp(prefix="patchq-laws-"))
        self.here = Environment(self.folder, {**mine[0], **yours[0]})
        self.steps = {
            "q": self.here.enqueue("q", [{**yours[0], **one} for one in mine[1]]),
            "r": self.here.enqueue("r", [{**mine[0], **one} for one in yours[1]]),
        }
        self.names = {"q": set(MINE), "r": set(YOURS)}
        self.on = {"q": 0, "r": 0}
        self.was: tuple[str, dict[str, int]] | None = None
        self.edits: dict[str, bytes] = {}
        self.gone = self.fresh = False

    def teardown(self):
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)

    def expected(self) -> Tree:
        """Return the files as the counts have them, with what was edited by hand."""
        out: Tree = {}
        rows = list(LINES)
        for queue, row in (("q", 10), ("r", 40)):
            tree = self.steps[queue][self.on[queue]]
            out.update({path: file for path, file in tree.items() if path in self.names[queue]})
            rows[row] = tree[SHARED][0].splitlines(keepends=True)[row]
        out[SHARED] = (b"".join(rows), False)
        for path, more in self.edits.items():
            if path in out:
                out[path] = (out[path][0] + more, out[path][1])
        return out

    def do(self, queue: str, verb) -> Report | None:
        """Ask what a verb would do, do it, and compare; None for an error."""
        talk = self.here.talk(queue)
        before, state = snapshot(self.here.site), self.here.kept()
        talk.dry_run = True
        would = outcome(lambda: talk.hold(verb(talk)))
        assert (snapshot(self.here.site), self.here.kept()) == (before, state)
        talk.dry_run = False
        done = outcome(lambda: talk.hold(verb(talk)))
        assert told(done) == told(would)
        if not isinstance(done, Report) or done.exit_code != ExitCode.DONE:
            covered = self.on["r" if queue == "q" else "q"] > 0 and in_the_way(done)
            assert self.edits or self.gone or covered or asked_too_much(done), done
            assert snapshot(self.here.site) == before
            word = "an error" if not isinstance(done, Report) else f"exit {done.exit_code:d}"
            form.count("laws", f"the plan predicts: {word}", "cases")
            return None
        form.count("laws", "the plan predicts: done", "cases")
        last = self.on.copy()
        if self.gone:
            self.on, self.gone, last = {"q": 0, "r": 0}, False, {"q": 0, "r": 0}
        moved = len(done.document["patches"])
        self.on[queue] += moved if done.document["direction"] == "push" else -moved
        self.was = (queue, last)
        return done

    @rule(queue=st.sampled_from("qr"), number=st.integers(0, 4))
    def push(self, queue, number):
        word = str(number) if number else None
        self.do(queue, lambda t: move.push(t.aim, t.ground, Upto(word, not number)))

    @rule(queue=st.sampled_from("qr"), number=st.integers(0, 4))
    def pop(self, queue, number):
        word = str(number) if number else None
        self.do(queue, lambda t: move.pop(t.aim, t.ground, Upto(word, not number)))

    @rule(queue=st.sampled_from("qr"), number=st.integers(0, 3))
    def goto(self, queue, number):
        name = f"{queue}{number}.patch"
        done = self.do(queue, lambda t: move.goto(t.aim, t.ground, name))
        if done is not None:
            assert self.on[queue] == number + 1

    @precondition(lambda self: self.was is not None and not self.gone)
    @rule()
    def undo(self):
        queue, goal = self.was
        done = self.do(queue, lambda t: undo.undo(t.aim, t.ground))
        if done is not None:
            assert self.on == goal
            form.count("laws", "undo takes back the last transaction", "cases")

    @rule(path=st.sampled_from((*MINE, *YOURS, SHARED)))
    def edit(self, path):
        """Somebody edits a file by hand, or takes the edit back."""
        full = self.here.site / path
        if path in self.edits:
            if path in self.expected():
                full.write_bytes(full.read_bytes().removesuffix(self.edits[path]))
            del self.edits[path]
            self.fresh = True
        elif full.exists():
            full.write_bytes(full.read_bytes() + b"by hand\n")
            self.edits[path] = b"by hand\n"
            self.fresh = True

    @rule()
    def reinstall(self):
        """Reinstall as pip does: what RECORD lists goes, then the files come anew."""
        data = (self.here.site / "demo-1.0.dist-info" / "RECORD").read_bytes()
        paths = [*self.expected(), *self.here.tree]
        for path in dict.fromkeys(paths):
            if record.find(data, path) is not None:
                (self.here.site / path).unlink(missing_ok=True)
        assert trees.installed(self.here.site) == {}, "a file that RECORD did not list"
        for path in self.here.site.iterdir():
            if path.name != ".patchq":
                shutil.rmtree(path)
        trees.install(self.here.site, self.here.tree)
        self.here.pristine = snapshot(self.here.site)
        self.gone = bool(self.gone or self.on["q"] or self.on["r"])
        self.on, self.edits, self.fresh = {"q": 0, "r": 0}, {}, False
        self.was = None

    @invariant()
    def the_files_are_those_of_the_applied_patches(self):
        if hasattr(self, "here"):
            assert trees.installed(self.here.site) == self.expected()

    @invariant()
    def record_lists_what_is_there(self):
        if hasattr(self, "here"):
            data = (self.here.site / "demo-1.0.dist-info" / "RECORD").read_bytes()
            for path, (text, _) in self.expected().items():
                wrote = text.removesuffix(self.edits.get(path, b""))
                assert record.digest(data, path) == apply.model.sha256(wrote), path

    @invariant()
    def nothing_is_left_over(self):
        if not hasattr(self, "here") or self.gone:
            return
        kept = {name.partition("/")[2] for name in self.here.kept()}
        assert not [name for name in kept if name.startswith(("stage/", "journal"))]
        if self.on == {"q": 0, "r": 0} and not self.edits:
            assert {n for n in kept if not n.startswith("aside/")} <= {"ledger.jsonl"}
            if not self.fresh:
                assert snapshot(self.here.site) == self.here.pristine
                form.count(
                    "laws", "all popped: bytes, mode, time, inode, RECORD as before", "cases"
                )


def outcome(verb) -> Report | PatchqError:
    """Return how a verb ended: its report, or the error that it raised."""
    try:
        return verb()
    except PatchqError as error:
        return error


def in_the_way(done: Report | PatchqError) -> bool:
    """Return whether another queue's patches of the same file lie above: they go first."""
    found = done.document.get("conflicts", ()) if isinstance(done, Report) else ()
    return {one["kind"] for one in found} == {"another queue's patch"}


def asked_too_much(done: Report | PatchqError) -> bool:
    """Return whether there was nothing to do, or not so much as was asked for."""
    if isinstance(done, Report):
        return done.exit_code == ExitCode.NOTHING_TO_DO
    return any(word in done.what for word in ("not in series", "pushed", "taken off"))


def told(done: Report | PatchqError) -> tuple[object, ...]:
    """Return what a verb said, as far as it must not matter whether it was only asked."""
    if not isinstance(done, Report):
        return type(done).__name__, done.what, done.why, done.mend
    lines = []
    for line in done.lines:
        for would, does in WOULD:
            line = line.replace(would, does)
        lines.append(line)
    later = ("dry_run", "receipt", "kept", "running")  # who runs the old code is asked afterwards
    known = {k: v for k, v in done.document.items() if k not in later}
    return int(done.exit_code), tuple(lines), tuple(done.notes), json.dumps(known, sort_keys=True)


Stack.TestCase.settings = settings(examples(8, 80), stateful_step_count=40 if form.LONG else 14)
TestStack = pytest.mark.slow(Stack.TestCase)


@given(series(MINE, 10), st.integers(0, 4))
@examples(8, 150)
def _split(drawn, number):
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        made = [Environment(Path(name), drawn[0]) for name in (one, two)]
        for environment in made:
            environment.enqueue("q", drawn[1])
        count = 1 + number % len(drawn[1])
        made[0].talk().push()
        made[1].talk().push(str(count))
        if count < len(drawn[1]):
            made[1].talk().push()
        first, second = (trees.installed(environment.site) for environment in made)
        states = [json.loads(e.kept()["demo/state.json"]) for e in made]
        rows = [(e.site / "demo-1.0.dist-info" / "RECORD").read_bytes() for e in made]
        assert first == second == drawn[1][-1]
        # A file that one patch takes away and a later one brings back gets a new row, the last.
        assert sorted(rows[0].split(b"\r\n")) == sorted(rows[1].split(b"\r\n"))
        for key in ("queue", "patch", "sha256", "changes", "options"):
            assert [p[key] for p in states[0]["stack"]] == [p[key] for p in states[1]["stack"]]
        for environment in made:
            environment.talk().pop()
            assert snapshot(environment.site) == environment.pristine
        form.count("laws", "a push in two parts is one push", "cases")


@pytest.mark.slow
def test_a_push_in_two_parts_is_one_push():
    _split()


@given(series(MINE, 10), series(YOURS, 40))
@examples(6, 120)
def _commuting(mine, yours):
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        found = []
        for name, order in ((one, "qr"), (two, "rq")):
            here = Environment(Path(name), {**mine[0], **yours[0]})
            here.enqueue("q", [{**yours[0], **step} for step in mine[1]])
            here.enqueue("r", [{**mine[0], **step} for step in yours[1]])
            for queue in order:
                assert here.talk(queue).push().exit_code == ExitCode.DONE
            found.append(trees.installed(here.site))
            for queue in order:  # the lower one first, where the files allow it
                report = here.talk(queue).pop()
                assert report.exit_code in (ExitCode.DONE, ExitCode.CONFLICT)
            here.talk(order[0]).pop()
            assert snapshot(here.site) == here.pristine
        assert found[0] == found[1]
        form.count("laws", "the order of patches that commute does not matter", "cases")


@pytest.mark.slow
def test_the_order_of_patches_that_commute_does_not_matter():
    _commuting()


@pytest.mark.parametrize("in_sight", [True, False])
@pytest.mark.parametrize("pops", [(None,), ("1", "1")])
def test_patches_that_undo_each_other_can_be_popped_after_one_push(tmp_path, in_sight, pops):
    tree = {"demo/a.txt": (b"one\n", False), "demo/b.txt": (b"b\n", False)}
    here = Environment(tmp_path, tree)
    first = {**tree, "demo/a.txt": (b"two\n", True), "demo/b.txt": (b"c\n", False)}
    here.enqueue("q", [first, {**first, "demo/a.txt": tree["demo/a.txt"]}])
    here.talk().push()
    assert trees.installed(here.site) == {**first, "demo/a.txt": tree["demo/a.txt"]}

    for word in pops:
        talk = here.talk()
        aim = talk.aim if in_sight else replace(talk.aim, queues=())
        report = talk.hold(move.pop(aim, talk.ground, Upto(word, word is None)))
        assert report.exit_code == ExitCode.DONE

    assert snapshot(here.site) == here.pristine


def test_an_edited_file_is_drift_also_where_another_file_lies_on_another_queues_patch(tmp_path):
    text = b"".join(LINES)
    tree = {"demo/a.txt": (text, False), SHARED: (text, False)}
    here = Environment(tmp_path, tree)
    for queue, row, more in (("q", 10, {"demo/a.txt": (b"new\n" + text, False)}), ("r", 40, {})):
        lines = [b"new\n" if number == row else line for number, line in enumerate(LINES)]
        here.enqueue(queue, [{**tree, **more, SHARED: (b"".join(lines), False)}])
    here.talk("r").push()
    path = here.site / "demo" / "a.txt"
    path.write_bytes(text + b"by hand\n")

    report = here.talk("q").push()

    assert report.exit_code == ExitCode.CONFLICT
    assert [one["kind"] for one in report.document["conflicts"]] == ["drift"]
    assert path.read_bytes() == text + b"by hand\n"


@given(series(MINE, 10))
@examples(6, 120)
def _effect(drawn):
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        effects, texts = [], []
        for name, header, end in ((one, b"", b"\n"), (two, b"Author: me\n\n", b"\r\n")):
            here = Environment(Path(name) / "another" / "folder", drawn[0], end)
            here.enqueue("q", drawn[1], header)
            receipt = here.talk().push().document["receipt"]
            effects.append(receipt["effect"])
            texts.append([p["sha256"] for p in receipt["patches"]["push"]])
        assert effects[0] == effects[1]
        assert texts[0] != texts[1]
        form.count("laws", "the effect's id has nothing of the host and of headers", "cases")


def test_the_effect_of_a_series_does_not_depend_on_the_host_or_on_headers():
    _effect()


@given(trees.series(makers=("ours",)))
@examples(100, 4000)
def test_a_diff_that_was_read_and_applied_is_written_again_to_the_byte(drawn):
    below = drawn.start
    for step in drawn.steps:
        text = trees.ours(below, step.above, step.context)
        read = Patch("x", text, *diff.parse(text, name="x"))
        assert bodies(read) == hunks(text)

        done = apply.apply_patch(read, below.get)

        assert isinstance(done, apply.PatchApplied)
        after = {path: file for path, file in {**below, **done.after}.items() if file}
        assert trees.ours(below, after, step.context) == text
        below = step.above
        form.count("laws", "diff, parse, apply, diff: the same bytes", "cases")


def bodies(patch: Patch) -> list[bytes]:
    """Return the lines of each hunk as they were read."""
    out = []
    for one in patch.diffs:
        for hunk in one.hunks:
            rows = []
            for mark, text in hunk.lines:
                rows.append(mark.encode() + text)
                if not text.endswith(b"\n"):
                    rows.append(b"\n\\ No newline at end of file\n")
            out.append(b"".join(rows))
    return out


def hunks(text: bytes) -> list[bytes]:
    """Return the lines of each hunk as they stand in a patch."""
    out: list[bytes] | None = []
    inside = False
    for row in text.split(b"\n")[:-1]:
        if row.startswith((b"@@ -", b"diff --git ")):
            inside = row.startswith(b"@@")
            out += [b""] if inside else []
        elif inside:
            out[-1] += row + b"\n"
    return out
