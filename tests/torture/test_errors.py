"""Each system call on the tree fails once, or from then on: old state, or done, and told.

The short form takes a sample of the calls; the long form takes every call with every
error that it can meet.
"""

from __future__ import annotations

import itertools
import re
import shutil
from pathlib import Path

import pytest

from patchq import agent
from patchq.errors import PatchqError
from patchq.transport.channel import AgentError
from tests import world as worlds
from tests.agent import agent_lab
from tests.torture import error_lab, form
from tests.torture.error_lab import FAULTS, WORDS, Call, Lab, Told

# Words of errors that were found by asking, before the first change, and say their cause.
ASKED = {"not-writable", "in-the-way"}
LOCK = {"demo", "demo/lock"}
VERBS = {"push": error_lab.push, "second push": error_lab.push_more, "pop": error_lab.pop}


class Scene:
    """A tree to start from, a verb, its calls, and the trees from before and after it."""

    def __init__(self, root: Path, verb: str) -> None:
        self.verb, self.lab, self.pattern = VERBS[verb], Lab(root), root / "pattern"
        error_lab.make(self.pattern)
        if verb != "push":
            self._grown(error_lab.push)
        if verb == "pop":
            self._grown(error_lab.push_more)
        self.lab.fresh(self.pattern)
        told = self.lab.run(self.verb)
        assert told.word == "done", told
        self.calls = self.lab.calls()
        self.after = error_lab.plain(self.lab.site)

    def decided(self, call: Call) -> bool:
        """Return whether a call came after GO."""
        go = next(
            at
            for at, one in enumerate(self.calls)
            if one.name.startswith("link") and one.path == ".patchq/demo/journal"
        )
        return self.calls.index(call) > go

    def _grown(self, verb: object) -> None:
        self.lab.fresh(self.pattern)
        self.lab.run(verb)  # type: ignore[arg-type]
        error_lab.clone_over(self.lab.site, self.pattern)

    def cases(self) -> list[tuple[Call, str]]:
        """Return each call with each error; neighbours differ in both, for a sample."""
        rows = [[(call, fault) for fault in FAULTS[call.name]] for call in self.calls]
        turned = [row[at % len(row) :] + row[: at % len(row)] for at, row in enumerate(rows)]
        columns = itertools.zip_longest(*turned)
        return [case for column in columns for case in column if case]


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    made: dict[str, Scene] = {}

    def scene(verb):
        if verb not in made:
            made[verb] = Scene(tmp_path_factory.mktemp("errors"), verb)
        return made[verb]

    return scene


@pytest.mark.parametrize("verb", VERBS)
def test_a_call_that_fails_once_leaves_the_old_state_or_is_done_another_way(scenes, verb):
    scene, faults = scenes(verb), []

    for call, fault in form.some(scene.cases(), 10):
        try:
            form.count("errors", fault, once(scene, call, fault))
        except AssertionError as error:
            faults.append(f"{call} {fault}: {error}")

    assert not faults, "\n".join(faults)


def once(scene: Scene, call: Call, fault: str) -> str:
    """Fail one call once; return how it ended: old state, done, or clean-up pending."""
    lab = scene.lab
    lab.fresh(scene.pattern)
    before, kept = error_lab.whole(lab.site), error_lab.state(lab.site)

    told = lab.run(scene.verb, call.name, f"error={fault}:when={call.number}")

    assert told.hit == call.path, f"not the call that was meant: {told.hit}"
    another_way = call.name.startswith("link") and fault in ("EXDEV", "EPERM", "EMLINK")
    if call.path == ".patchq/demo/journal" and fault != "EPERM":
        another_way = False  # GO is a link, or a copy where there are none
    assert told.ok or not another_way, f"{told.error}: {told.error and told.error.why}"
    if told.error:
        found = error_lab.whole(lab.site)
        if scene.decided(call):  # unlisted bytecode went after the renames: a cache
            before = {key: before[key] for key in before if error_lab.CACHE not in key}
            found = {key: found[key] for key in found if error_lab.CACHE not in key}
        same(found, before)
        now = error_lab.state(lab.site)
        if call.path == ".patchq/demo/lock":  # nobody may remove a lock that he does not hold
            now = {name: now[name] for name in now if name in kept or name not in LOCK}
        same(now, kept)
        clear(told, fault, lab)
        return "old state"
    done(scene, told)
    return "clean-up pending" if told.pending else "done"


def same(found: dict, wanted: dict) -> None:
    differ = [key for key in {**found, **wanted} if found.get(key) != wanted.get(key)]
    assert not differ, f"not as before: {differ}"


def clear(told: Told, fault: str, lab: Lab) -> None:
    """Check that an error says what, why and what to do, and that the word is the right one."""
    error = told.error
    assert error is not None
    said = f"{error.word}: {error} / {error.why} / {error.mend}"
    assert error.word in WORDS.get(fault, {"os-error"}) | ASKED, said
    assert str(lab.site) in f"{error} {error.why}", said
    assert all((error.why, error.mend, "Traceback" not in said)), said


def done(scene: Scene, told: Told) -> None:
    """Check that all is as after a run in which nothing failed, once the next verb came."""
    lab = scene.lab
    same(error_lab.plain(lab.site), scene.after)
    if told.pending:
        assert "clearing up" in told.ok["pending"]
        again = agent_lab.Controller(lab.site).recover()
        assert again["outcome"] in ("finished", "nothing"), again
        same(error_lab.plain(lab.site), scene.after)
    names = {path.name for path in (lab.site / ".patchq/demo").iterdir()}
    assert not names & {"stage", "journal", "journal.go", "journal.new"}, names
    if scene.verb is not error_lab.pop:
        agent_lab.Controller(lab.site).pop()
        original = error_lab.plain(lab.site)
        made = error_lab.plain(error_lab.make(lab.root / "again"))
        same(original, made)


@pytest.mark.parametrize("verb", VERBS)
def test_a_call_that_fails_from_then_on_is_mended_by_recover_once_the_fault_is_gone(scenes, verb):
    scene, faults = scenes(verb), []
    # Not EINTR: most calls are tried again by Python itself (PEP 475), for as long as it takes.
    cases = [case for case in scene.cases() if case[1] != "EINTR"]

    for call, fault in form.some(cases, 6):
        try:
            form.count("errors from then on", fault, for_ever(scene, call, fault))
        except AssertionError as error:
            faults.append(f"{call} {fault}: {error}")

    assert not faults, "\n".join(faults)


def for_ever(scene: Scene, call: Call, fault: str) -> str:
    lab = scene.lab
    lab.fresh(scene.pattern)
    before = error_lab.plain(lab.site)

    try:
        told = lab.run(scene.verb, call.name, f"error={fault}:when={call.number}+")
    except PatchqError as lost:
        told = unanswered(lost, call)
    if told.error:
        assert told.error.word != "bug", told.error.why
        assert all((told.error.why, told.error.mend))
    agent_lab.Controller(lab.site).recover()

    left = set(error_lab.state(lab.site))
    assert not left & {"demo/stage", "demo/journal", "demo/journal.go", "demo/journal.new"}, left
    found = error_lab.plain(lab.site)
    if told.word in ("interrupted", "lost"):
        # Recovery goes on where GO could not be taken back, or where only the answer was lost.
        either = call.name in ("unlink", "write") and found == scene.after
        same(found, scene.after if either else before)
        return "interrupted, then done" if either else "interrupted, then old state"
    if told.error:
        same(found, before)
        return "old state"
    same(error_lab.plain(lab.site), scene.after)
    return "clean-up pending" if told.pending else "done"


def unanswered(lost: PatchqError, call: Call) -> Told:
    """Return what was told by an agent that could not write its answer either."""
    assert call.name == "write", lost
    return Told(None, AgentError("lost", str(lost), why=lost.why, mend=lost.mend), call.path)


class Cut:
    """A tree on which a push or a pop was killed at one call, and the recovery of it."""

    def __init__(self, root: Path, verb: str, name: str, path: str) -> None:
        scene = Scene(root, verb)
        at = next(c for c in scene.calls if (c.name, c.path) == (name, path))
        self.lab, self.pattern, self.verb = scene.lab, root / "cut", error_lab.recover
        scene.lab.fresh(scene.pattern)
        self.before = error_lab.plain(scene.lab.site)
        with pytest.raises(PatchqError):
            scene.lab.run(scene.verb, at.name, f"signal=KILL:when={at.number}")
        error_lab.clone(scene.lab.site, self.pattern)
        scene.lab.fresh(self.pattern)
        told = scene.lab.run(error_lab.recover)
        assert told.word == "done", told
        self.calls, self.after = scene.lab.calls(), error_lab.plain(scene.lab.site)
        self.outcome = told.ok["outcome"]
        assert self.after == (self.before if self.outcome == "undone" else scene.after)

    cases = Scene.cases


CUTS = {
    "push cut before GO": ("push", "link", ".patchq/demo/journal"),
    "push cut in the renames": ("push", "rename", ".patchq/demo/stage/2.new"),
    "push cut in clearing up": ("push", "unlink", ".patchq/demo/journal.go"),
    "pop cut before GO": ("pop", "link", ".patchq/demo/journal"),
    "pop cut in the renames": ("pop", "rename", ".patchq/demo/stage/1.new"),
    "pop cut in clearing up": ("pop", "unlink", ".patchq/demo/journal"),
}


@pytest.fixture(scope="module")
def cuts(tmp_path_factory):
    made: dict[str, Cut] = {}

    def cut(name):
        if name not in made:
            made[name] = Cut(tmp_path_factory.mktemp("cut"), *CUTS[name])
        return made[name]

    return cut


@pytest.mark.parametrize("name", form.some(list(CUTS), 3))
@pytest.mark.parametrize("often", ["once", "from then on"])
def test_a_recovery_in_which_a_call_fails_loses_nothing(cuts, name, often):
    cut, faults = cuts(name), []
    cases = [case for case in cut.cases() if often == "once" or case[1] != "EINTR"]

    for call, fault in form.some(cases, 4):
        try:
            form.count("errors in recovery", fault, recovered(cut, call, fault, often))
        except AssertionError as error:
            faults.append(f"{call} {fault}: {error}")

    assert not faults, "\n".join(faults)


def recovered(cut: Cut, call: Call, fault: str, often: str) -> str:
    """Fail a recovery, then recover in peace; return how the failed one ended."""
    lab = cut.lab
    lab.fresh(cut.pattern)

    when = f"{call.number}+" if often == "from then on" else call.number
    try:
        told = lab.run(cut.verb, call.name, f"error={fault}:when={when}")
    except PatchqError as lost:
        told = unanswered(lost, call)
    if told.error and often == "once":
        clear(told, fault, lab)
    elif told.error:
        assert told.word != "bug", told.error.why
    else:
        same(error_lab.plain(lab.site), cut.after)
        assert told.ok["outcome"] == cut.outcome, told.ok
    again = agent_lab.Controller(lab.site).recover()["outcome"]
    assert again in (cut.outcome, "nothing"), again
    assert agent_lab.Controller(lab.site).recover()["outcome"] == "nothing"

    same(error_lab.plain(lab.site), cut.after)
    left = set(error_lab.state(lab.site))
    assert not left & {"demo/stage", "demo/journal", "demo/journal.go", "demo/journal.new"}, left
    return "told, and recovered by the next" if told.error else "recovered"


def test_no_module_that_writes_takes_a_failing_disk_for_an_absent_name():
    asks = re.compile(r"\bos\.path\.(l?exists|isdir|isfile|islink)\(")
    looks = {"state", "bytecode", "obstacles"}
    for name in (*looks, *(set(agent.WRITING) - set(agent.READING))):
        source = (agent_lab.SOURCES / f"{name}.py").read_text()
        assert not asks.search(source), f"{name}: `patchq.agent.facts` has what tells them apart"


# The command that a user types


@pytest.fixture(scope="module")
def typed(pattern, tmp_path_factory):
    """Give a world, an agent under strace for it, and the calls of its push."""
    root = tmp_path_factory.mktemp("typed")
    shutil.copytree(pattern.root, root / "world", symlinks=True)
    world = worlds.World(root / "world")
    lab = Lab(root)
    shutil.copytree(world.site, root / "site")
    lab.fresh(world.site)
    done = run_typed(world, lab, "push", "-a")
    assert done.returncode == 0, done.stderr
    return world, lab, lab.calls()


def run_typed(world, lab, *words, call=error_lab.TRACED, fault=""):
    python = lab.write(call, fault)
    where = ("--python", python, "--target", lab.site, "--queue", world.queue)
    return world.run(*words, *where)


TYPED = {
    "mkdir": ("ENOSPC", "No space left on device", "make room"),
    "openat": ("EMFILE", "Too many open files", "ulimit -n"),
    "write": ("EDQUOT", "Disk quota exceeded", "raise the quota"),
    "fsync": ("EIO", "Input/output error", "dmesg"),
    "rename": ("EROFS", "Read-only file system", "mount it writable"),
    "linkat": ("EACCES", "Permission denied", "as the user"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TYPED)
def test_the_command_tells_what_why_and_what_to_do(typed, name):
    world, lab, calls = typed
    fault, why, mend = TYPED[name]
    mine = [call for call in calls if call.name == name]
    for call in form.some(mine, 2):
        if name == "openat" and call is mine[-1]:
            continue  # looking for bytecode once all is done: clearing up
        lab.fresh(world.site)
        before = error_lab.whole(lab.site)

        failing = f"error={fault}:when={call.number}"
        done = run_typed(world, lab, "push", "-a", call=name, fault=failing)

        said = done.stdout + done.stderr
        if done.returncode == 0:  # what is done is done
            assert "clearing up" in said, (call, said)
            assert run_typed(world, lab, "recover").returncode in (0, 2)
            continue
        assert done.returncode == 1, (call, said)
        assert all(part in said for part in (why, mend, str(lab.site))), said
        assert not any(part in said for part in ("Traceback", "bug")), said
        assert error_lab.whole(lab.site) == before
        assert run_typed(world, lab, "push", "-a").returncode == 0
        assert run_typed(world, lab, "undo").returncode == 0
        form.count("errors", fault, "told by the command")
