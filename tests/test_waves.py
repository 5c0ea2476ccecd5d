"""A rollout over hosts that answer: who stays new, who is taken back, who is not begun."""

import threading
import time
from dataclasses import dataclass, replace

import pytest

from patchq import fleet, health, waves
from patchq.conversation import commit, move, same, trying, undo, view
from patchq.conversation.goal import Upto
from patchq.outcome import Word
from patchq.queue import store
from patchq.queue.heads import Heads
from patchq.rollout import Order, Share
from tests import fleet_lab
from tests.fleet_lab import SITE

NEW = b"one\ntwo\nthree\nfour\n"
OLD = b"one\ntwo\nthree\n"
PATH = {"PATH": "/usr/bin:/bin"}


@pytest.fixture(scope="module")
def lab(pattern):
    """Hosts for all tests here: each test takes some that no other has touched."""
    with fleet_lab.fleet(120, pattern.site) as lab:
        yield lab


@pytest.fixture(scope="module")
def fresh(lab):
    return iter(lab.hosts)


@pytest.fixture
def some(fresh):
    """Take so many hosts that nobody has used."""
    return lambda count: [next(fresh) for _ in range(count)]


@dataclass
class Roll:
    """Rolls the series out as the command line does, and keeps what was told."""

    aim: view.Aim
    goal: Upto

    def __call__(self, hosts, command="", *, modules=None, wait=0.0, settle=6.0, **order):
        aim = replace(self.aim, several=len(hosts) > 1, shared=view.Shared())
        ground = commit.Ground("somebody", "here", Heads(aim.queues))
        alone = same.Alone()
        self.told, self.begun = [], []

        def push(host):
            def pushing():
                return move.push(aim, ground, self.goal)

            tried = pushing() if modules is None else trying.tried(aim, ground, pushing, modules)
            return same.once(tried, alone)

        def back(host, report):
            return undo.undo(replace(aim, name="q"), ground, report.document["receipt"]["id"])

        def check(host):
            more = {**PATH, "PATCHQ_HOST": host}
            return health.Check(command, more, wait) if command else None

        part = waves.Part(
            push, back, check, lambda *wave: self.begun.append(wave[0].hosts), self.told.append
        )
        run = waves.hold(hosts, Order(**order), part, fleet.Options(settle=settle))
        assert [one.host for one in run.outcomes] == list(hosts)
        assert {one.host for one in self.told} == set(hosts)
        return {one.host: one for one in run.outcomes}


@pytest.fixture
def roll(lab, world, monkeypatch):
    for key, value in lab.home.environ.items():
        monkeypatch.setenv(key, value)
    queues = (store.open(world.queue),)
    return Roll(
        view.Aim(queues, lambda: world.root / "cache", "q", SITE, True, True), Upto(None, True)
    )


@pytest.fixture
def text(lab):
    return lambda name: (lab.hosts[name].tree / "demo/data.txt").read_bytes()


def words(found):
    return [one.word for one in found.values()]


def unwell(*hosts):
    return f"case $PATCHQ_HOST in {'|'.join(hosts)}) echo no answer; exit 7;; esac"


def test_all_hosts_go_wave_by_wave_and_a_second_run_finds_nothing_to_do(roll, some, text):
    hosts = some(6)

    first = roll(hosts, "true", canary=1, serial=Share(2))
    begun = roll.begun
    second = roll(hosts, "true", canary=1, serial=Share(2))

    assert words(first) == [Word.DONE] * 6
    assert words(second) == [Word.NOTHING] * 6
    assert begun == [(hosts[0],), tuple(hosts[1:3]), tuple(hosts[3:5]), (hosts[5],)]
    assert [one.wave for one in first.values()] == [1, 2, 2, 3, 3, 4]
    assert {text(name) for name in hosts} == {NEW}
    assert [one.host for one in roll.told].count(hosts[0]) == 1


def test_a_wave_begins_when_all_of_the_last_are_healthy(roll, some, lab, tmp_path):
    """Each command looks at the hosts after its own wave: none of them may have been asked."""
    hosts = some(4)
    seen = tmp_path / "seen"

    found = roll(hosts, f"sleep 0.2; echo $PATCHQ_HOST >> {seen}", serial=Share(2))

    assert words(found) == [Word.DONE] * 4
    order = seen.read_text().split()
    assert (set(order[:2]), set(order[2:])) == (set(hosts[:2]), set(hosts[2:]))


def test_who_is_not_healthy_is_taken_back_and_nobody_else_begins(roll, some, lab, text):
    hosts = some(5)
    before = {path: path.read_bytes() for path in files(lab, hosts[1])}

    found = roll(hosts, unwell(hosts[1]), serial=Share(2))

    assert words(found) == [Word.DONE, Word.TAKEN_BACK] + [Word.NOT_BEGUN] * 3
    assert {path: path.read_bytes() for path in files(lab, hosts[1])} == before
    assert [text(name) == NEW for name in hosts] == [True, False, False, False, False]
    report = found[hosts[1]].report
    assert report.document["why"] == "not healthy: exit status 7"
    assert report.document["health"]["printed"] == ["no answer"]
    assert "    no answer" in report.notes
    assert [lab.counters()[name].sessions for name in hosts[2:]] == [0, 0, 0]
    assert hosts[1] in found[hosts[4]].error.what


def test_the_same_command_goes_on_once_it_is_mended(roll, some, text):
    hosts = some(5)
    roll(hosts, unwell(hosts[0]), canary=1, serial=Share(2))

    found = roll(hosts, "true", canary=1, serial=Share(2))

    assert words(found) == [Word.DONE] * 5
    assert {text(name) for name in hosts} == {NEW}


def test_failures_within_the_limit_do_not_stop_it(roll, some, text):
    hosts = some(6)

    found = roll(hosts, unwell(*hosts[:3]), serial=Share(2), fail_limit=Share(2))

    assert words(found) == [
        Word.TAKEN_BACK,
        Word.TAKEN_BACK,
        Word.TAKEN_BACK,
        Word.DONE,
        Word.NOT_BEGUN,
        Word.NOT_BEGUN,
    ]


def test_a_canary_that_fails_stops_it_whatever_the_limit(roll, some):
    hosts = some(3)

    found = roll(hosts, unwell(hosts[0]), canary=1, fail_limit=Share(100, True))

    assert words(found) == [Word.TAKEN_BACK, Word.NOT_BEGUN, Word.NOT_BEGUN]


def test_who_moves_together_falls_together(roll, some, text):
    hosts = some(6)
    ranks = frozenset((hosts[1], hosts[4]))

    found = roll(hosts, unwell(hosts[4]), serial=Share(3), together=(ranks,))

    assert [one.wave for one in found.values()] == [1, 1, 2, 2, 1, 2]
    assert words(found)[:2] == [Word.DONE, Word.TAKEN_BACK]
    assert found[hosts[4]].word is Word.TAKEN_BACK
    assert hosts[4] in found[hosts[1]].report.document["why"]
    assert [text(name) for name in hosts] == [NEW, OLD, OLD, OLD, OLD, OLD]


def test_who_moves_with_a_host_that_cannot_be_reached_is_taken_back(roll, some, lab, text):
    hosts = some(4)
    lab.fault(hosts[0], refused=True)

    found = roll(hosts, serial=Share(2), together=({hosts[0], hosts[1]},))

    assert words(found) == [
        Word.UNREACHABLE,
        Word.TAKEN_BACK,
        Word.NOT_BEGUN,
        Word.NOT_BEGUN,
    ]
    assert text(hosts[1]) == OLD


def test_a_host_that_cannot_be_reached_stops_it_and_is_caught_up_later(roll, some, lab, text):
    hosts = some(4)
    lab.fault(hosts[1], refused=True)
    first = roll(hosts, serial=Share(2))
    lab.fault(hosts[1])

    second = roll(hosts, serial=Share(2))

    assert words(first) == [Word.DONE, Word.UNREACHABLE, Word.NOT_BEGUN, Word.NOT_BEGUN]
    assert words(second) == [Word.NOTHING, Word.DONE, Word.DONE, Word.DONE]


def test_only_what_this_run_pushed_is_taken_back(roll, some, lab, text):
    (host,) = some(1)
    replace(roll, goal=Upto("10-pi.patch"))([host])
    before = {path: path.read_bytes() for path in files(lab, host)}

    found = roll([host], "false")[host]

    assert found.word is Word.TAKEN_BACK
    assert found.report.document["top"] == "10-pi.patch"
    assert {path: path.read_bytes() for path in files(lab, host)} == before


def test_a_host_that_was_at_the_goal_is_asked_and_not_taken_back(roll, some, text):
    hosts = some(3)
    roll(hosts[:1])

    found = roll(hosts, unwell(hosts[0]), serial=Share(1))

    assert words(found) == [Word.FAILED, Word.NOT_BEGUN, Word.NOT_BEGUN]
    assert "it was at the goal before" in found[hosts[0]].error.what
    assert "no answer" in found[hosts[0]].error.why
    assert text(hosts[0]) == NEW


def test_a_host_that_nobody_can_reach_any_more_is_not_called_taken_back(
    roll, some, lab, text, tmp_path
):
    hosts = some(2)

    with meanwhile(tmp_path, lambda: lab.fault(hosts[0], refused=True)) as command:
        found = roll(hosts, f"{unwell_after(hosts[0], command)}", serial=Share(1))

    assert words(found) == [Word.FAILED, Word.NOT_BEGUN]
    assert "it was not taken back" in found[hosts[0]].error.what
    assert text(hosts[0]) == NEW


def test_what_somebody_else_did_meanwhile_is_not_taken_back(roll, some, lab, text, tmp_path):
    hosts = some(1)
    other = replace(roll)

    def pop():
        ground = commit.Ground("other", "there", None)
        fleet.hold(hosts, lambda host: move.pop(other.aim, ground, Upto("1")), fleet.Options())

    with meanwhile(tmp_path, pop) as command:
        (found,) = roll(hosts, unwell_after(hosts[0], command)).values()

    assert found.word is Word.FAILED
    assert "somebody has changed the environment since" in found.error.why
    assert "other" in found.error.why
    assert (lab.hosts[hosts[0]].tree / "demo/more.py").exists()  # the second patch is still on


def test_a_tree_on_two_hosts_is_taken_back_for_both(roll, some, text):
    (host,) = some(1)
    hosts = [host, f"someone@{host}"]

    found = roll(hosts, unwell(hosts[1]))

    assert words(found) == [Word.TAKEN_BACK, Word.TAKEN_BACK]
    assert text(host) == OLD


def test_a_push_that_does_not_import_is_taken_off_and_stops_it(roll, some, lab, text):
    hosts = some(3)
    broken = b"import nothing_of_that_name\n"
    lab.hosts[hosts[0]].write("demo/__init__.py", broken)

    first = roll(hosts, "false", modules=(), canary=1)
    lab.hosts[hosts[0]].write("demo/__init__.py", b"")
    second = roll(hosts, modules=(), canary=1)

    assert words(first) == [Word.TAKEN_BACK, Word.NOT_BEGUN, Word.NOT_BEGUN]
    assert "nothing_of_that_name" in first[hosts[0]].report.document["why"]
    assert words(second) == [Word.DONE] * 3
    assert second[hosts[2]].report.document["import"]["imported"] == ["demo.shapes", "demo.more"]


def test_who_moves_with_a_host_that_does_not_import_is_taken_back(roll, some, lab, text):
    hosts = some(2)
    lab.hosts[hosts[0]].write("demo/__init__.py", b"import nothing_of_that_name\n")

    found = roll(hosts, modules=("demo",), together=(set(hosts),))

    assert words(found) == [Word.TAKEN_BACK, Word.TAKEN_BACK]
    assert [text(name) for name in hosts] == [OLD, OLD]


def test_a_link_that_is_lost_within_the_import_is_found_again(roll, some, lab, text):
    hosts = some(2)
    lab.fault(hosts[0], before="import", times=1)
    lab.fault(hosts[1], after="import", times=1)

    found = roll(hosts, modules=("demo",))

    assert words(found) == [Word.DONE, Word.DONE]
    assert {tuple(one.report.document["import"]["imported"]) for one in found.values()} == {
        ("demo",)
    }


def test_a_host_that_is_lost_for_good_within_the_import_is_unknown(roll, some, lab, text):
    (host,) = some(1)
    lab.fault(host, before="import")

    found = roll([host], modules=("demo",), settle=1)[host]

    assert found.word is Word.UNKNOWN
    assert text(host) == NEW


def test_it_is_asked_again_until_it_is_healthy(roll, some, tmp_path, monkeypatch):
    monkeypatch.setattr(health, "PAUSE", 0.05)
    hosts = some(2)
    command = f"n={tmp_path}/$PATCHQ_HOST; echo >> $n; test $(wc -l < $n) -ge 3"

    found = roll(hosts, command, wait=60)

    assert words(found) == [Word.DONE, Word.DONE]
    assert {one.report.document["health"]["tries"] for one in found.values()} == {3}


def files(lab, name):
    tree = lab.hosts[name].tree
    return [
        path
        for path in sorted(tree.rglob("*"))
        if path.is_file() and ".patchq" not in path.parts and path.suffix != ".pyc"
    ]


class meanwhile:  # noqa: N801  (a context)
    """Do something once a host's command has begun, and before it ends."""

    def __init__(self, folder, do):
        self.begun, self.go_on, self.do = folder / "begun", folder / "go-on", do

    def __enter__(self):
        self.thread = threading.Thread(target=self._work)
        self.thread.start()
        return f"touch {self.begun}; until test -e {self.go_on}; do sleep 0.02; done"

    def _work(self):
        for _ in range(1000):
            if self.begun.exists():
                break
            time.sleep(0.02)
        self.do()
        self.go_on.touch()

    def __exit__(self, *_):
        self.thread.join()


def unwell_after(host, command):
    return f"case $PATCHQ_HOST in {host}) {command}; exit 7;; esac"
