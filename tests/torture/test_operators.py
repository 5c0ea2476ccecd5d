"""Two operators on one tree: whoever is stopped where, the end is one of theirs, whole."""

import contextlib
import functools
import itertools
import json
import os
import tempfile
from pathlib import Path

import pytest

from tests.agent import agent_lab, crash_lab
from tests.agent.agent_lab import Controller, Process
from tests.torture import form, race_lab
from tests.torture.race_lab import (
    LOCKED,
    LOOKS,
    Holding,
    disagreements,
    operators,
    shape,
)

ONE = {"demo/a.py": b"x = 2\n", "demo/b.py": None, "demo/new/n.py": b"n = 1\n"}
TWO = {"demo/a.py": b"x = 3\n", "demo/m.py": b"m = 1\n"}
APART = {"demo/data.json": b"[]\n", "demo/tool.py": (b"#!/usr/bin/env python3\n", False)}
ID = "0123456789abcdef"
# What flock(2) says to the first and to the second; None: it works. The errors are those of a
# file system, a kernel or NFS without it.
FLOCKS = {
    "flock": (None, None),
    "no flock: ENOSYS": ("ENOSYS", "ENOSYS"),
    "no flock: ENOLCK": ("ENOLCK", "ENOLCK"),
    "no flock: EOPNOTSUPP": ("EOPNOTSUPP", "EOPNOTSUPP"),
    "only the first has flock": (None, "ENOLCK"),
    "only the second has flock": ("ENOLCK", None),
}
ODD = list(FLOCKS)[1:]
# What the loser is told: who is at it, or that his survey is out of date.
LOST = {"nothing to do", "locked", "changed", "interrupted", "settled", "orphaned"}


def push(files, name, queue="q"):
    def ask(controller):
        message, blobs = controller.push_request(files, name)
        message["stack"][-1]["queue"] = queue
        return message, blobs

    return ask


def pop(verb):
    def ask(controller):
        if not controller.survey()["state"]:
            return None  # nothing to do
        message, blobs = controller.pop_request()
        message["receipt"]["verb"] = verb
        return message, blobs

    return ask


def settle(controller):
    receipt = {"who": "tester", "whence": "desk", "verb": "push"}
    return controller.message("settle", id=ID, receipt=receipt, expect={"generation": 0}), {}


def push_with_an_id(controller):
    return controller.push_request(ONE, "one", id=ID)


def recover(controller):
    return controller.message("recover", force=None, who="tester"), {}


ONE_MORE = push(ONE, "one")
# What is there before; who is stopped; who runs meanwhile.
PAIRS = {
    "push, push the same": ("pristine", ONE_MORE, ONE_MORE),
    "push, push another series": ("pristine", ONE_MORE, push(TWO, "two")),
    "push, push another queue": ("pristine", ONE_MORE, push(APART, "apart", "r")),
    "push, pop": ("pushed", push(APART, "apart", "r"), pop("pop")),
    "pop, push": ("pushed", pop("pop"), push(APART, "apart", "r")),
    "pop, pop": ("pushed", pop("pop"), pop("pop")),
    "undo, push": ("pushed", pop("undo"), push(APART, "apart", "r")),
    "push, recover": ("pristine", ONE_MORE, recover),
    "recover, push": ("staged", recover, push(TWO, "two")),
    "recover, recover": ("decided", recover, recover),
    "push, settle": ("pristine", push_with_an_id, settle),
}


def interrupt(site, call):
    """Kill a push after its last call of this name: link is the decision, linkat is before."""
    with operators(1) as (one,):
        message, blobs = Controller(site, one.ask).push_request(ONE, "one")
        one.held(site.parent, call, "linkat:3" if call == "linkat" else "link:1")
        one.begin(message, blobs)
        assert one.runs()
        one.process.kill()
    assert (site / ".patchq/demo/journal").exists()
    assert (site / ".patchq/demo/journal.go").exists() is (call == "link")


@pytest.fixture(scope="module")
def trees():
    """A function that gives a new copy of a tree: pristine, pushed, or interrupted."""
    with tempfile.TemporaryDirectory(
        dir="/dev/shm" if Path("/dev/shm").is_dir() else None
    ) as base:
        root = Path(base)
        for name in ("pristine", "pushed", "staged", "decided"):
            site = agent_lab.make_site(root / name / "site")
            if name == "pushed":
                Controller(site).push(TWO, "two")
            elif name != "pristine":
                interrupt(site, "linkat" if name == "staged" else "link")
        numbers = itertools.count()

        def fresh(name):
            folder = root / f"copy-{next(numbers)}"
            return crash_lab.clone(root / name / "site", folder / "site")

        yield fresh


@pytest.fixture(scope="module")
def ends(trees):
    """A function that tells what each order of two verbs leaves, one after the other."""

    @functools.cache
    def of(pair):
        start, first, second = PAIRS[pair]
        found = {}
        for order in ((), (0,), (1,), (0, 1), (1, 0)):
            site = trees(start)
            for number in order:
                asked = (first, second)[number](Controller(site))
                with contextlib.suppress(agent_lab.AgentError):  # recovery comes first, say
                    agent_lab.here(*asked or recover(Controller(site)))
            found.setdefault(frozenset(order), []).append(shape(site))
        return found

    return of


@pytest.fixture(scope="module")
def spots(trees):
    """A function that tells at which calls the one that is stopped may be."""

    @functools.cache
    def of(pair, calls):
        start, first, _ = PAIRS[pair]
        site = trees(start)
        with operators(1) as (one,):
            message, blobs = first(Controller(site, one.ask))
            one.held(site.parent, calls, "")
            one.begin(message, blobs)
            one.to_end()
            return one.spots()

    return of


def legal(site, start, ends, answers):
    """Check that a tree is what its winners leave one after the other, and agrees."""
    won = frozenset(number for number, answer in enumerate(answers) if "ok" in answer)
    for answer in answers:
        if "error" in answer:
            assert answer["error"]["word"] in LOST, answer
    if start in ("staged", "decided") and not won:
        return
    assert shape(site) in ends[won], answers
    assert disagreements(site) == [], answers
    if Controller(site).survey()["state"]:
        Controller(site).pop()
    assert shape(site)["files"] == shape_of_the_beginning(site)


@functools.cache
def _pristine():
    with tempfile.TemporaryDirectory() as folder:
        return shape(agent_lab.make_site(Path(folder, "site")))["files"]


def shape_of_the_beginning(site):
    return _pristine()


def race(site, pair, flocks, when, *, then="", early):
    """Run a pair: the first is stopped at `when`, the second runs, the first goes on.

    `then`: where the second is stopped; the two go on in turn.
    """
    _, first, second = PAIRS[pair]
    with operators(2) as (one, two):
        ask = first(Controller(site, one.ask))
        other = second(Controller(site, two.ask)) if early else None
        one.held(site.parent, LOCKED, when, flocks[0])
        if flocks[1] or then:
            two.held(site.parent, LOCKED, then, flocks[1])
        one.begin(*ask)
        stops = [one.runs()]
        other = other or second(Controller(site, two.ask))
        answers = [None, {"error": {"word": "nothing to do"}}]
        if other is not None:
            two.begin(*other)
            stops.append(two.runs())
            while all(stops):
                stops = [one.go_on(), two.go_on()]
            answers[1] = two.to_end() if stops[1] else two.answer()
        answers[0] = one.to_end() if stops[0] else one.answer()
        return answers


def judged(site, pair, ends, answers, case):
    try:
        legal(site, PAIRS[pair][0], ends(pair), answers)
    except AssertionError as error:
        raise AssertionError(f"{pair}, {case}: {error}") from error


@pytest.mark.parametrize(
    "flock", ["flock", *(pytest.param(f, marks=pytest.mark.slow) for f in ODD)]
)
@pytest.mark.parametrize("pair", PAIRS)
def test_one_is_stopped_anywhere_and_the_other_runs_to_its_end(pair, flock, trees, ends, spots):
    plain = flock == "flock"
    if not (form.LONG or plain or flock in shortly(pair)):
        return
    found = spots(pair, LOCKED)
    last = len(found)
    chosen = found[:: 7 if plain else 31]
    if not form.LONG:
        # Between the look and the lock, and within the change.
        chosen = ("mkdir:1", found[last * 2 // 3]) if plain else (found[last // 2],)
    for number, spot in enumerate(chosen):
        site = trees(PAIRS[pair][0])
        answers = race(site, pair, FLOCKS[flock], spot, early=number % 2 == 0)
        judged(site, pair, ends, answers, f"{flock}, stopped at {spot}")
        form.count("two operators", pair, flock)


def shortly(pair):
    """Return the one of the other forms of flock that the short form tries on a pair."""
    return [ODD[list(PAIRS).index(pair) % len(ODD)]]


@pytest.mark.slow
@pytest.mark.parametrize("flock", FLOCKS)
@pytest.mark.parametrize("pair", form.some(list(PAIRS), 1))
def test_both_are_stopped_and_go_on_in_turn(pair, flock, trees, ends):
    steps = ((5, 3), (13, 11), (2, 17)) if form.LONG else ((13, 11),)
    for first, second in steps:
        site = trees(PAIRS[pair][0])
        answers = race(
            site, pair, FLOCKS[flock], f"{first}+{first}", then=f"{second}+{second}", early=True
        )
        judged(site, pair, ends, answers, f"{flock}, in turns of {first} and {second}")
        form.count("two operators", pair, f"{flock}, in turns")


def test_the_loser_is_told_who_holds_the_lock_and_since_when(trees):
    for flock in (None, "ENOLCK"):
        site = trees("pristine")
        with operators(2) as (one, two):
            ask = ONE_MORE(Controller(site, one.ask))
            other = push(TWO, "two")(Controller(site, two.ask))
            one.held(site.parent, "linkat", "linkat:1", flock)
            two.held(site.parent, "linkat", "", flock)
            one.begin(*ask)
            assert one.runs()
            busy = Controller(site).survey() if flock is None else looked(site, flock)
            two.begin(*other)
            error = two.to_end()["error"]
            assert "ok" in one.to_end()

        assert error["word"] == "locked"
        assert f"tester on {os.uname().nodename} (process {one.pid})" in error["why"]
        assert " since 20" in error["why"]
        assert (busy["interrupted"], busy["busy"]["pid"]) == (None, one.pid)


def looked(site, flock):
    """Return what a reader sees where flock(2) gives this error."""
    with operators(1) as (reader,):
        reader.held(site.parent, LOOKS, "", flock)
        return Controller(site, reader.ask).survey()


def consistent(survey):
    """Return which whole state a survey tells of: "old", "new", or that somebody is at it."""
    if survey["busy"]:
        return "busy"
    assert not survey["interrupted"], survey
    assert not survey["orphaned"], survey
    files = {path: found["sha256"] for path, found in survey["files"].items()}
    wanted = {p: v and agent_lab.protocol.sha256(v) for p, v in ONE.items()}
    before = {p: agent_lab.protocol.sha256(v) for p, v in agent_lab.FILES.items()}
    names = [patch["patch"] for patch in (survey["state"] or {"stack": []})["stack"]]
    if names == ["one"]:
        assert files == wanted, survey
        assert survey["installed"]["record"] == survey["state"]["dist_info"]["record"]
        return "new"
    assert names == []
    assert files == {path: before.get(path) for path in ONE}, survey
    return "old"


@pytest.mark.parametrize("verb", ["push", "pop"])
def test_a_reader_that_is_stopped_anywhere_sees_old_or_new_and_nothing_between(trees, verb):
    site = trees("pristine")
    seen = []
    with operators(1) as (reader,):
        reader.held(site.parent, LOOKS, "")
        Controller(site, reader.ask).survey(ONE)
        found = reader.spots()
    last = len(found)
    chosen = found if form.LONG else (found[3], found[last // 2], found[last - 3])
    for spot in chosen:
        site = trees("pristine")
        controller = Controller(site)
        if verb == "pop":
            controller.push(ONE, "one")
        with operators(1) as (reader,):
            reader.held(site.parent, LOOKS, spot)
            reader.begin(controller.message("survey", paths=list(ONE)))
            stopped = reader.runs()
            if verb == "pop":
                controller.pop()
            else:
                controller.push(ONE, "one")
            answer = reader.to_end() if stopped else reader.answer()
        assert "ok" in answer, (spot, answer)
        try:
            seen.append(consistent(answer["ok"]))
        except AssertionError as error:
            raise AssertionError(f"{verb}, reader stopped at {spot}: {error}") from error
        form.count("two operators", f"{verb}, survey", "flock")
    assert ("new" if verb == "push" else "old") in seen, seen


@pytest.mark.slow
@pytest.mark.parametrize("flock", ["flock", "no flock: ENOSYS"])
def test_a_reader_of_a_tree_at_which_somebody_works_says_so(trees, spots, flock):
    seen = []
    for spot in form.some(spots("push, push the same", LOCKED)[::3], 4):
        site = trees("pristine")
        with operators(1) as (writer,):
            ask = ONE_MORE(Controller(site, writer.ask))
            writer.held(site.parent, LOCKED, spot, FLOCKS[flock][0])
            writer.begin(*ask)
            stopped = writer.runs()
            seen.append(consistent_or_partial(site, FLOCKS[flock][0]))
            _ = writer.to_end() if stopped else writer.answer()
        form.count("two operators", "push, survey while it stands still", flock)
    assert {"old", "busy"} <= set(seen), seen


def consistent_or_partial(site, flock):
    with operators(1) as (reader,):
        if flock:
            reader.held(site.parent, LOOKS, "", flock)
        return consistent(Controller(site, reader.ask).survey(ONE))


def lock_of_a_dead(site):
    """Leave the lock of a process that was killed, where there is no flock."""
    site.joinpath(".patchq/demo").mkdir(parents=True)
    with Holding(site) as holding:
        assert holding.said == "held"
        holding.kill()
    return site / ".patchq/demo/lock.held"


def tried(site, flock="ENOLCK"):
    """Push where there is no flock; return the answer."""
    with operators(1) as (one,):
        one.held(site.parent, "link", "", flock)
        one.begin(*ONE_MORE(Controller(site)))
        return one.to_end()


def test_a_lock_whose_owner_was_killed_is_taken_over_and_nothing_is_left(trees):
    site = trees("pristine")
    held = lock_of_a_dead(site)
    assert held.exists()

    answer = tried(site)

    assert "ok" in answer, answer
    assert disagreements(site) == []
    form.count("locks", "owner killed", "taken over")


def test_a_lock_whose_pid_is_another_process_now_is_taken_over(trees):
    site = trees("pristine")
    held = lock_of_a_dead(site)
    text = json.loads(held.read_bytes())
    for path in (held, held.with_name("lock")):
        path.write_text(json.dumps({**text, "pid": os.getpid()}))

    assert "ok" in tried(site)
    assert disagreements(site) == []
    form.count("locks", "pid used again", "taken over")


def test_a_lock_whose_owner_only_waits_for_its_parent_is_taken_over(trees):
    site = trees("pristine")
    site.joinpath(".patchq/demo").mkdir(parents=True)
    # `exec sleep` never looks after the child: its process stays a zombie.
    around = ("sh", "-c", 'exec 3<&0; "$@" <&3 & exec sleep 60', "sh")
    with Holding(site, *around) as holding:
        pid = json.loads(site.joinpath(".patchq/demo/lock.held").read_bytes())["pid"]
        os.kill(pid, 9)
        race_lab.until(lambda: "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text())

        answer = tried(site)
        holding.kill()

    assert "ok" in answer, answer
    form.count("locks", "owner is a zombie", "taken over")


@pytest.mark.parametrize("harm", ["another boot", "another pid namespace", "no start", "no pid"])
def test_a_lock_of_which_nobody_can_tell_is_never_broken(trees, harm):
    site = trees("pristine")
    held = lock_of_a_dead(site)
    text = json.loads(held.read_bytes())
    changed = {
        "another boot": {"boot": "0" * 36},
        "another pid namespace": {"namespace": "pid:[1]"},
        "no start": {"start": ""},
        "no pid": {"pid": None},
    }
    for path in (held, held.with_name("lock")):
        path.write_text(json.dumps({**text, **changed[harm]}))

    error = tried(site)["error"]

    assert error["word"] == "locked"
    assert "holder on h" in error["why"]
    assert shape(site)["files"] == _pristine()
    if harm.startswith("another"):
        mend = error["mend"].partition(": rm ")[2].split()
        assert mend == [str(held), str(held.with_name("lock"))]
        for path in mend:
            Path(path).unlink()
        assert "ok" in tried(site)
        assert disagreements(site) == []
    form.count("locks", harm, "never broken")


@pytest.mark.slow
@pytest.mark.parametrize("proc", ["its own /proc", "the /proc of outside"])
def test_two_containers_of_one_boot_never_break_each_others_lock(trees, proc):
    own = ["--mount-proc"] if proc == "its own /proc" else []
    around = (race_lab.tool("unshare"), "-pf", "--kill-child", *own)
    site = trees("pristine")
    site.joinpath(".patchq/demo").mkdir(parents=True)
    with Holding(site, *around) as first:
        assert first.said == "held"
        text = json.loads(site.joinpath(".patchq/demo/lock.held").read_bytes())
        assert text["pid"] == 1
        with Holding(site, *around) as second:
            assert second.said.startswith("locked")
        assert tried(site)["error"]["word"] == "locked"
        first.kill()
        # A new container may have got the number of the one that is gone; outside has not.
        assert tried(site)["error"]["word"] == "locked"
    assert shape(site)["files"] == _pristine()
    form.count("locks", f"two containers, {proc}", "never broken")


@pytest.mark.slow
def test_a_live_owner_that_proc_hides_is_not_a_dead_one(trees):
    site = trees("pristine")
    site.joinpath(".patchq/demo").mkdir(parents=True)
    for path in (site.parent.parent, site.parent):
        path.chmod(0o755)
    for path in (site, *site.rglob("*")):
        os.chown(path, 65534, 65534)
    hidden = "mount -t proc -o hidepid=2 proc /proc && exec setpriv --reuid 65534 --regid 65534"
    around = (race_lab.tool("unshare"), "-m", "sh", "-c", hidden + ' --clear-groups "$@"', "sh")
    with Holding(site) as first:
        assert first.said == "held"
        with Holding(site, *around) as second:
            assert second.said.startswith("locked holder on h"), second.said
    form.count("locks", "/proc hides the owner", "never broken")


@pytest.mark.slow
def test_of_two_who_see_a_dead_lock_one_gets_it(trees):
    # kill: it has seen that the owner is gone; link: it may replace the lock; rename: it has.
    few = ("kill:1", "link:2", "rename:1")
    outcomes = set()
    for spot in ("link:1", "write:2", *few, "unlink:1") if form.LONG else few:
        site = trees("pristine")
        lock_of_a_dead(site)
        with operators(2) as (one, two):
            ask = ONE_MORE(Controller(site, one.ask))
            other = push(TWO, "two")(Controller(site, two.ask))
            one.held(site.parent, "write,link,rename,unlink,kill", spot, "ENOLCK")
            two.held(site.parent, "linkat", "linkat:1", "ENOLCK")
            one.begin(*ask)
            first = one.runs()
            two.begin(*other)
            second = two.runs()  # once it has the lock, and a journal
            answers = [one.to_end() if first else one.answer()]
            answers.append(two.to_end() if second else two.answer())
        outcomes.add(tuple("ok" in answer for answer in answers))
        assert sum("ok" in answer for answer in answers) == 1, (spot, answers)
        assert disagreements(site) == [], (spot, answers)
        form.count("locks", "two see the owner dead", "one gets it")
    assert outcomes == {(True, False), (False, True)}


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["recover", "push"])
@pytest.mark.parametrize("new", ["nothing", "another file"])
def test_a_lock_that_is_removed_meanwhile_does_no_harm(trees, spots, verb, new):
    found = spots("push, push the same", LOCKED)
    second = {"recover": recover, "push": push(TWO, "two")}[verb]
    for spot in form.some(found[len(found) // 5 :: 4], 3):
        site = trees("pristine")
        with operators(2) as (one, two):
            ask = ONE_MORE(Controller(site, one.ask))
            other = second(Controller(site, two.ask))
            one.held(site.parent, LOCKED, spot)
            one.begin(*ask)
            stopped = one.runs()
            lock = site / ".patchq/demo/lock"
            lock.unlink(missing_ok=True)
            if new != "nothing" and lock.parent.exists():
                lock.write_text("")
            two.begin(*other)
            answers = [None, two.answer()]
            answers[0] = one.to_end() if stopped else one.answer()
        assert_whole(site, answers, f"{verb}, stopped at {spot}")
        form.count("locks", f"file removed, then {verb}", "whole")


def assert_whole(site, answers, case):
    """Check that a tree is old or new, or is so after a recover."""
    told = [answer.get("error", {}).get("word", "ok") for answer in answers]
    Controller(site).recover()
    names = {frozenset(p for p, v in files.items() if v) for files in (ONE, TWO)}
    assert disagreements(site) == [], (case, answers)
    stack = [name for _, name in shape(site)["stack"]]
    assert stack in ([], ["one"], ["two"]), (case, names)
    if told[0] == "ok":
        assert "one" in stack, (case, told)
    if stack:
        Controller(site).pop()
    assert shape(site)["files"] == _pristine(), (case, told)


def test_no_child_of_an_agent_gets_its_lock(trees):
    site = trees("pristine")
    with operators(1) as (one,):
        one.held(site.parent, "link", "link:1")
        one.begin(*ONE_MORE(Controller(site, one.ask)))
        assert one.runs()
        open_ = {
            os.readlink(f"/proc/{one.pid}/fd/{info.name}"): int(
                info.read_text().partition("flags:")[2].split()[0], 8
            )
            for info in Path(f"/proc/{one.pid}/fdinfo").iterdir()
        }
        one.to_end()
    inside = {path: flags for path, flags in open_.items() if str(site) in path}
    assert str(site / ".patchq/demo/lock") in inside
    assert all(flags & os.O_CLOEXEC for flags in inside.values()), inside


@pytest.mark.parametrize("error", ["EBADF", "EIO"])
def test_a_lock_that_cannot_be_had_is_said_and_nothing_is_changed(trees, error):
    site = trees("pristine")

    told = tried(site, error)["error"]

    assert str(site / ".patchq/demo/lock") in told["what"], told
    assert shape(site)["files"] == _pristine()
    form.count("locks", f"flock says {error}", "refused")


@pytest.mark.slow
def test_a_lock_file_of_another_user_is_said_and_nothing_is_changed(trees):
    site = trees("pristine")
    site.joinpath(".patchq/demo").mkdir(parents=True)
    site.joinpath(".patchq/demo/lock").touch(0o644)
    lock = site / ".patchq/demo/lock"
    for path in (site.parent.parent, site.parent):
        path.chmod(0o755)
    for path in (site, *site.rglob("*")):
        if path != lock:
            os.chown(path, 65534, 65534)
    with Process("/usr/bin/python3", user=65534, group=65534, extra_groups=[]) as process:
        process.send.write(agent_lab.protocol.pack(*ONE_MORE(Controller(site))))
        process.send.flush()
        told = race_lab.answer(process)["error"]

    assert (told["word"], str(lock) in told["what"]) == ("not-permitted", True)
    assert shape(site)["files"] == _pristine()


def test_a_file_that_is_edited_between_the_look_and_the_second_name_stays(trees):
    site = trees("pristine")
    with operators(1) as (one,):
        ask = ONE_MORE(Controller(site, one.ask))
        one.held(site.parent, "fsync", "fsync:1")
        one.begin(*ask)
        assert one.runs()
        (site / "edited").write_bytes(b"x = 'mine'\n")
        (site / "edited").rename(site / "demo/a.py")
        error = one.to_end()["error"]

    assert (error["word"], "demo/a.py" in error["what"]) == ("changed", True)
    assert (site / "demo/a.py").read_bytes() == b"x = 'mine'\n"
    (site / "demo/a.py").write_bytes(agent_lab.FILES["demo/a.py"])
    assert disagreements(site) == []


@pytest.mark.parametrize("spot", ["pwrite64:1", "linkat:3"])
def test_who_has_lost_the_lock_file_changes_nothing_and_says_so(trees, spot):
    site = trees("pristine")
    with operators(1) as (one,):
        ask = ONE_MORE(Controller(site, one.ask))
        one.held(site.parent, "pwrite64,linkat", spot)
        one.begin(*ask)
        assert one.runs()
        (site / ".patchq/demo/lock").unlink()
        error = one.to_end()["error"]

    assert (error["word"], "was removed or replaced" in error["why"]) == ("locked", True)
    assert shape(site)["files"] == _pristine()
    assert Controller(site).recover()["outcome"] == "nothing"
    form.count("locks", "file removed", "refused")
