"""Many hosts at once: each ends in one word, and none takes another along."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import replace

import pytest

from patchq import fleet
from patchq.agent import serve
from patchq.conversation import commit, judging, move, view
from patchq.conversation.goal import Upto
from patchq.inventory.hostset import collapse
from patchq.outcome import Stopped, Word
from patchq.queue import store
from patchq.queue.heads import Heads
from patchq.transport.channel import Reply
from patchq.visit import Visit
from tests import fleet_lab
from tests.conversation.conftest import Talk
from tests.fleet_lab import SITE

NEW = b"one\ntwo\nthree\nfour\n"
OLD = b"one\ntwo\nthree\n"


@pytest.fixture(scope="module")
def lab(pattern):
    """Hosts for all tests here: each test takes some that no other has touched."""
    with fleet_lab.fleet(200, pattern.site) as lab:
        yield lab


@pytest.fixture(scope="module")
def fresh(lab):
    return iter(lab.hosts)


@pytest.fixture
def some(fresh):
    """Take so many hosts that nobody has used."""
    return lambda count: [next(fresh) for _ in range(count)]


@pytest.fixture
def push(lab, world, monkeypatch):
    """Push the whole series to hosts, as the command line does."""
    for key, value in lab.home.environ.items():
        monkeypatch.setenv(key, value)

    def push(hosts, **options):
        queues = (store.open(world.queue),)
        several = len(hosts) > 1
        aim = view.Aim(queues, lambda: world.root / "cache", "q", SITE, True, True, several)
        ground = commit.Ground("somebody", "here", Heads(queues))
        told = []
        options = replace(fleet.Options(settle=10), **options)
        make = lambda host: move.push(aim, ground, Upto(None, True))  # noqa: E731
        run = fleet.hold(hosts, make, options, told.append)
        assert sorted(one.host for one in told) == sorted(hosts)
        assert [one.host for one in run.outcomes] == list(hosts)
        return {one.host: one for one in run.outcomes}

    return push


def text(lab, name):
    return (lab.hosts[name].tree / "demo/data.txt").read_bytes()


def test_all_hosts_get_the_series_and_a_second_run_finds_nothing_to_do(lab, some, push):
    hosts = some(8)

    first, second = push(hosts), push(hosts)

    assert {one.word for one in first.values()} == {Word.DONE}
    assert {one.word for one in second.values()} == {Word.NOTHING}
    assert {text(lab, name) for name in hosts} == {NEW}
    assert {lab.counters()[name].commits for name in hosts} == {1}


def test_each_host_ends_in_its_own_word(lab, some, push):
    hosts = some(9)
    good, edited, full, closed, forged, gone, silent, before, after = hosts
    lab.hosts[edited].write("demo/data.txt", b"mine\n")
    lab.fault(full, full=True)
    lab.fault(closed, refused=True)
    lab.forge(forged)
    lab.fault(gone, status=3, noise="bye\n")
    lab.fault(silent, status=127)
    lab.fault(before, before="commit", times=1)
    lab.fault(after, after="commit", times=1)

    found = push(hosts)

    assert {name: one.word for name, one in found.items()} == {
        good: Word.DONE,
        edited: Word.CONFLICT,
        full: Word.FAILED,
        closed: Word.UNREACHABLE,
        forged: Word.UNREACHABLE,
        gone: Word.UNREACHABLE,
        silent: Word.UNREACHABLE,
        before: Word.FAILED,
        after: Word.DONE,
    }
    changed = {name for name in hosts if text(lab, name) == NEW}
    assert changed == {good, after}
    assert "nothing was changed" in found[before].error.what
    assert found[after].report.document["receipt"]["patches"]["push"]
    assert lab.counters()[after].commits == 1
    lab.forge()


def test_a_host_that_stays_away_after_the_change_was_sent_is_unknown(lab, some, push):
    (name,) = some(1)
    lab.fault(name, after="commit")

    def close_the_door():
        while not lab.counters()[name].commits:
            time.sleep(0.01)
        lab.fault(name, refused=True)

    closing = threading.Thread(target=close_the_door)
    closing.start()
    found = push([name], settle=6)[name]
    closing.join()

    assert found.word is Word.UNKNOWN
    assert "its outcome is not known" in found.error.what
    assert "does not let" in found.error.why


def test_thirty_of_a_hundred_fail_and_the_second_run_finishes(lab, some, push):
    hosts = some(40)
    bad = hosts[::3]
    for number, name in enumerate(bad):
        lab.fault(name, **[{"refused": True}, {"status": 1}, {"full": True}][number % 3])

    first = push(hosts)
    lab.fault(*bad)
    second = push(hosts)

    words = Counter(one.word for one in first.values())
    assert words[Word.DONE] == len(hosts) - len(bad)
    assert {second[name].word for name in bad} == {Word.DONE}
    assert {one.word for name, one in second.items() if name not in bad} == {Word.NOTHING}
    assert {text(lab, name) for name in hosts} == {NEW}


def test_connections_that_are_dropped_at_the_door_are_tried_again(lab, some, push):
    hosts = some(6)
    for name in hosts:
        lab.fault(name, dropped=2)

    assert {one.word for one in push(hosts).values()} == {Word.DONE}
    assert {lab.counters()[name].commits for name in hosts} == {1}


def test_what_is_equal_for_all_hosts_is_done_once(some, push, monkeypatch, world):
    loads, walks = [], []
    load, walk = store.load, judging.walk
    monkeypatch.setattr(store, "load", lambda *a: loads.append(a) or load(*a))
    monkeypatch.setattr(judging, "walk", lambda *a: walks.append(a) or walk(*a))

    assert {one.word for one in push(some(10)).values()} == {Word.DONE}

    assert (len(loads), len(walks)) == (1, 1)


def test_no_more_hosts_at_a_time_than_were_asked_for(lab, some, push):
    hosts = some(6)
    before = lab.peak
    push(hosts, jobs=1)
    assert before <= lab.peak <= max(before, 2)


@pytest.mark.slow
def test_the_command_line_ends_in_a_table_and_equal_answers_are_shown_once(lab, some, world):
    hosts = some(4)
    lab.hosts[hosts[1]].write("demo/data.txt", b"mine\n")
    lab.fault(hosts[2], refused=True)
    environ = {**lab.home.environ, "HOME": str(lab.home.path)}
    where = ("--target", SITE, "--queue", world.queue, "-H", f"{hosts[0]},{hosts[1]},{hosts[2]}")

    pushed = world.run("push", "-a", *where, "-H", hosts[3], environ=environ)
    shown = world.run("applied", *where, "-H", f"!{hosts[2]}", "-H", hosts[3], environ=environ)

    assert pushed.returncode == 4
    assert [line.split()[:2] for line in pushed.stdout.splitlines()] == [
        ["HOST", "OUTCOME"],
        [hosts[0], "done"],
        [hosts[1], "conflict"],
        [hosts[2], "unreachable"],
        [hosts[3], "done"],
    ]
    assert pushed.stderr.endswith("4 hosts: 2 done, 1 conflict, 1 unreachable\n")
    assert shown.returncode == 1
    series = "10-pi.patch\n20-foot.patch\n30-text.patch\n"
    assert f"== {collapse([hosts[0], hosts[3]])}\n{series}" in shown.stdout
    assert f"== {hosts[1]}\nNo patches applied\n" in shown.stdout


@pytest.mark.slow
def test_an_interrupt_leaves_each_host_old_or_new_and_says_which(lab, some, world):
    hosts = some(12)
    for name in hosts:
        lab.fault(name, slow=1.0)
    argv = [sys.executable, "-m", "patchq", "push", "-a", "--json", "-j", "4"]
    argv += ["--target", SITE, "--queue", str(world.queue), "-H", ",".join(hosts)]
    environ = {**os.environ, **lab.home.environ, "PATCHQ_CACHE": str(world.root / "cache")}
    with subprocess.Popen(argv, env=environ, stdout=subprocess.PIPE, text=True) as process:
        while not sum(lab.counters()[name].commits for name in hosts):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        document = json.loads(process.communicate(timeout=60)[0])

    assert process.returncode == 130
    assert document["interrupted"] is True
    words = {one["host"]: one["outcome"] for one in document["hosts"]}
    assert set(words.values()) == {"done", "failed"}
    for name, word in words.items():
        assert text(lab, name) == (NEW if word == "done" else OLD)


def test_a_listener_that_fails_ends_no_run(lab, some, world, monkeypatch):
    for key, value in lab.home.environ.items():
        monkeypatch.setenv(key, value)
    aim = view.Aim((store.open(world.queue),), lambda: world.root / "cache", "q", SITE, True, True)
    ground = commit.Ground("somebody", "here", Heads(aim.queues))

    def gone(outcome):
        raise BrokenPipeError

    hosts = some(5)
    run = fleet.hold(
        hosts, lambda host: move.push(aim, ground, Upto(None, True)), fleet.Options(), gone
    )

    assert {one.word for one in run.outcomes} == {Word.DONE}
    assert {text(lab, name) for name in hosts} == {NEW}


@pytest.mark.slow
def test_a_stderr_that_has_gone_costs_no_table(lab, some, world):
    hosts = some(6)
    argv = [sys.executable, "-m", "patchq", "push", "-a", "-H", ",".join(hosts)]
    argv += ["--target", SITE, "--queue", str(world.queue)]
    environ = {**os.environ, **lab.home.environ, "PATCHQ_CACHE": str(world.root / "cache")}
    read, write = os.pipe()
    os.close(read)

    done = subprocess.run(argv, env=environ, stdout=subprocess.PIPE, stderr=write, text=True)
    os.close(write)

    assert done.returncode == 0
    assert done.stdout.count("  done") == len(hosts)


def test_a_visit_that_was_stopped_asks_for_nothing_more(world):
    talk = Talk(world.site, world.queue, world.root / "cache")
    visit = Visit(move.push(talk.aim, talk.ground, Upto(None, True)), threading.Lock())
    before = world.tree()
    link = visit.talk()
    request = next(link)

    assert visit.stop()
    with pytest.raises(Stopped):
        link.send(Reply(*serve.respond(dict(request.message), dict(request.blobs))))

    assert not visit.writing
    assert world.tree() == before
