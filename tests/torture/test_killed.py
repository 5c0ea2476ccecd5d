"""The real agent, killed at any system call that changes the environment."""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
import threading

import pytest

from tests.agent.crash_lab import clone
from tests.torture import form, kill_calls, kill_check, kill_lab
from tests.torture.kill_check import Case

VERBS = ["push", "pop", "undo"]
_PROGRAM = """
import importlib, os, sys
sys.dont_write_bytecode = True
site, allowed = sys.argv[1], eval(sys.stdin.readline())
sys.path.insert(0, site)
def look():
    importlib.invalidate_caches()
    for path, texts in allowed.items():
        name = path[:-3].replace("/", ".")
        try:
            with open(os.path.join(site, path), "rb") as file:
                assert file.read() in texts, path
            module = sys.modules.get(name)
            module = importlib.reload(module) if module else importlib.import_module(name)
        except (FileNotFoundError, ModuleNotFoundError):
            assert b"" in texts, path
            sys.modules.pop(name, None)
            continue
        assert module.VALUE == module.LAST, path
"""
ONCE = _PROGRAM + "look()\n"
LONG = (
    _PROGRAM
    + """
import select
number = 0
while not select.select([0], [], [], 0)[0]:
    look()
    number += 1
print(number)
"""
)


@pytest.fixture(scope="module")
def lab():
    with kill_lab.place() as folder:
        yield kill_lab.lab(folder)


def chosen(verb):
    """Return where to kill a verb: everywhere, or spread out and amid the renames."""
    kills = verb.kills()
    renames = [at for at, kill in enumerate(kills) if kill_calls.step(kill.of) == "renames"]
    near = {at for at in renames if abs(at - renames[len(renames) // 2]) < 2}
    spread = form.some(range(len(kills)), 4)
    return [kills[at] for at in sorted({*spread, *near})]


@pytest.mark.parametrize("name", VERBS)
def test_killed_before_or_after_any_call_it_recovers_to_old_or_new(lab, name):
    verb = lab.verbs[name]
    assert len(verb.kills()) > 150
    ends = []
    for kill in chosen(verb):
        case = Case(lab, verb)
        assert lab.run(verb.tape.play(), kill.call)[0] is None
        case.whole()
        assert "ok" in lab.recovered()
        ends.append(case.settled())
        case.idle()
        form.count("killed once", kill_calls.step(kill.of), f"{name}, {kill.when}")
    # Old before the one commit point, new after it.
    assert ends == sorted(ends)
    assert {*ends} == {False, True}


@pytest.mark.parametrize("name", VERBS)
def test_recovery_killed_any_number_of_times_is_recovered_by_the_next(lab, name):
    """Every tree that a kill leaves is a start, also those that a killed recovery leaves."""
    verb, trees = lab.verbs[name], lab.work / f"trees-{name}"
    trees.mkdir()
    case, seen, queue = Case(lab, verb), {}, []
    case.copied = True

    def found(kill):
        key = kill_check.fingerprint(lab.site)
        if key not in seen:
            seen[key] = clone(lab.site, trees / str(len(seen)))
            queue.append((kill, seen[key]))

    for kill in form.some([kill for kill in verb.kills() if kill.when == "before"], 3):
        lab.killed(verb, kill)
        found(kill)
    while queue:
        first, tree = queue.pop(0)
        lab.put(tree)
        case.whole()
        kills = kill_calls.kills(lab.calls(lab.recover))
        case.settled()
        case.idle()
        # What is there after a call is there before the next; an fsync changes nothing of it.
        kills = [kill for kill in kills if kill.when == "before" and kill.of.name != "fsync"]
        for kill in form.some(kills, 2):
            lab.put(tree)
            assert lab.recovered(kill) is None
            case.whole()
            form.count("recovery killed", kill_calls.step(kill.of), name)
            if form.LONG:
                found(first)
            else:
                assert "ok" in lab.recovered()
                case.settled()


@pytest.mark.slow
@pytest.mark.parametrize("name", VERBS)
def test_the_command_tells_of_the_killed_agent_and_its_next_verb_recovers(lab, name):
    """The agent of a real command is killed; a real command finds out, and mends it."""
    verb = lab.verbs[name]
    kills = [kill for kill in verb.kills() if kill.when == "before"]
    for at, kill in enumerate(form.some(kills[:: 8 if form.LONG else 1], 1 + (name == "push"))):
        case = Case(lab, verb)
        arguments = ["-a"] if name != "undo" else []
        done = lab.world.here(name, *arguments, "--python", lab.killer(kill.call))
        assert done.returncode == 1, done.stdout + done.stderr
        assert "mend: " in done.stderr
        case.whole()
        before = kill_check.everything(lab.site)
        told = lab.world.json("status")
        there = (lab.home / "journal").exists() or (lab.home / "journal.go").exists()
        assert (told["interrupted"] is not None) == there
        assert kill_check.everything(lab.site) == before
        if at % 2:
            done = lab.world.here("recover")
            assert done.returncode in (0, 2), done.stderr
            new = case.settled()
            names = list(kill_lab.CHANGES)
            wanted = {"push": names, "pop": [], "undo": names[:1]}[name]
            was = {"push": [], "pop": names, "undo": names}[name]
            told = lab.world.json("status")
            assert told["applied"] == (wanted if new else was)
            assert told["drifted"] == []
            assert told["interrupted"] is None
            assert lab.world.here("recover").returncode == 2
        else:
            done = lab.world.here("goto", "10-first.patch")
            assert done.returncode in (0, 2), done.stderr
            told = lab.world.json("status")
            assert told["applied"] == ["10-first.patch"]
            assert told["drifted"] == []
        form.count("the agent of a command killed", kill_calls.step(kill.of), name)


@pytest.mark.parametrize(
    ("at", "when"),
    [("/demo/journal.go", "before"), ("/demo/journal.go", "after"), ("/stage/0.new/", "after")],
    ids=["not decided", "decided", "new folder filled"],
)
def test_a_folder_that_somebody_made_meanwhile_is_left_or_used(lab, at, when):
    verb = lab.verbs["push"]
    kills = [kill for kill in verb.kills() if kill.when == when and at in kill.of.text]
    kill = [kill for kill in kills if kill.of.name in ("link", "rename")][-1]
    case, folder = Case(lab, verb), lab.site / "demo/fresh"
    assert lab.run(verb.tape.play(), kill.call)[0] is None
    folder.mkdir(mode=0o755)

    assert "ok" in lab.recovered()

    if when == "before":
        folder.rmdir()
    assert case.settled() is (when == "after")
    case.idle()


@pytest.mark.slow
def test_an_interpreter_that_imports_all_the_time_never_sees_half_a_file(lab):
    """Pushes and pops, some killed and recovered, under one long reader and many short ones."""
    push, pop = lab.verbs["push"], lab.verbs["pop"]
    lab.put(push.before)
    versions = [dict(kill_lab.FIRST)]
    for change in kill_lab.CHANGES.values():
        versions.append({**versions[-1], **change})
    modules = {path for files in versions for path in files if path.endswith(".py")}
    # Nothing stands for: it is not there at some time.
    texts = {path: {(files.get(path) or "").encode() for files in versions} for path in modules}
    line = repr(texts).encode() + b"\n"
    stop, looks, faults = threading.Event(), itertools.count(), []

    def short():
        while not stop.is_set() or next(looks) < 2:
            argv = [sys.executable, "-ISc", ONCE, str(lab.site)]
            done = subprocess.run(argv, input=line, capture_output=True, check=False)
            next(looks)
            if done.returncode:
                faults.append(done.stderr.decode())
                return

    argv = [sys.executable, "-ISc", LONG, str(lab.site)]
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    reader = threading.Thread(target=short)
    with subprocess.Popen(argv, **streams) as long:
        long.stdin.write(line)
        long.stdin.flush()
        reader.start()
        try:
            storm(lab, push, pop, 60 if form.LONG else 4)
        finally:
            stop.set()
            out, told = long.communicate(b"x")
            reader.join()
    assert not faults, faults
    assert long.returncode == 0, told.decode()
    form.count("imports in a storm of pushes and pops", "reloads in one process", "", int(out))
    form.count("imports in a storm of pushes and pops", "fresh processes", "", next(looks))


def storm(lab, push, pop, rounds):
    """Push and pop; every second one is killed somewhere, recovered, and done again."""
    chance = random.Random(5)
    for number in range(rounds):
        for verb in (push, pop):
            commit, identity = verb.tape.alone(), f"storm{number}{verb.name}"
            if number % 2:
                kill = chance.choice(verb.kills())
                lab.run(verb.tape.play(identity + "k"), kill.call, sure=False)
                assert "ok" in lab.untraced(lab.recover.play())
                if kill_check.contents(lab.site) != kill_check.contents(verb.before):
                    continue
            answer = lab.untraced(commit.play(identity))
            assert "ok" in answer, answer
    assert kill_check.contents(lab.site) == kill_check.contents(pop.after)
