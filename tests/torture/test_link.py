"""Links that fail at any byte: each host ends in one honest word, and no agent is left."""

import asyncio
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from patchq import fleet
from patchq.agent import protocol
from patchq.conversation import commit, move, view
from patchq.conversation.goal import Upto
from patchq.errors import PatchqError
from patchq.outcome import Word
from patchq.queue import store
from patchq.queue.heads import Heads
from patchq.transport import command, endings, hosts, ssh
from patchq.transport.channel import Deadlines
from tests import ssh_lab
from tests.torture import form
from tests.torture.link_lab import Wire

ROOT = Path(__file__).parents[2]
HASTY = Deadlines(sync=20, request=3, end=0.5)
ROADS = ("command", "ssh")
NEW, OLD = b"one\ntwo\nthree\nfour\n", b"one\ntwo\nthree\n"


@pytest.fixture(scope="module")
def base():
    with ssh_lab.folder() as path:
        yield path


@pytest.fixture(scope="module")
def home(base):
    """A client that reaches a real sshd, gpu1."""
    assert os.getuid() == 0, "the wires' trees are root's"
    found = ssh_lab.Home(base / "client")
    (base / "sshd").mkdir()
    owner = ("root", Path.home())
    with ssh_lab.sshd(base / "sshd", found.public, owner=owner) as server:
        found.add("gpu1", server)
        yield found


class Case:
    """A host of its own: a tree, and a wire to the agent on it."""

    def __init__(self, world, place, fault):
        self.site = place / "site"
        shutil.copytree(world.site, self.site, symlinks=True)
        self.world, self.wire = world, Wire(place / "wire", fault)

    @property
    def conversation(self):
        queues = (store.open(self.world.queue),)
        cache = self.world.root / "cache"
        aim = view.Aim(queues, lambda: cache, "q", str(self.site), True, True)
        ground = commit.Ground("somebody", "here", Heads(queues))
        return move.push(aim, ground, Upto(None, True))

    def push(self, road, settle=20):
        """Push over the wire as the command line does; return the outcome."""
        spec = "gpu1" if road == "ssh" else "command:sh -c"
        options = fleet.Options(python=self.wire.python, settle=settle)
        (outcome,) = fleet.hold([spec], lambda host: self.conversation, options).outcomes
        return outcome

    @property
    def text(self):
        return (self.site / "demo/data.txt").read_bytes()

    def whole(self):
        """Return "old" or "new", which all files must be."""
        shapes = (self.site / "demo/shapes.py").read_text()
        marks = {self.text == NEW, "foot" in shapes, (self.site / "demo/more.py").exists()}
        assert len(marks) == 1, "half of the files are new"
        return "new" if marks.pop() else "old"


@pytest.fixture
def case(pattern, base, home, monkeypatch):
    """A function that makes a host with a fault."""
    for key, value in home.environ.items():
        monkeypatch.setenv(key, value)
    made = []

    def make(**fault):
        place = base / f"case-{os.urandom(4).hex()}"
        place.mkdir()
        made.append(Case(pattern, place, fault))
        return made[-1]

    yield make
    for one in made:
        one.wire.end()
        shutil.rmtree(one.site.parent)


def honest(one, outcome, *, heals):
    """Check an outcome against the files, now and after all agents are gone."""
    assert one.wire.left_alone(), f"an agent is left: {one.wire.agents()}"
    now = one.whole()
    told = (outcome.word, str(outcome.error and outcome.error.what))
    if outcome.word is Word.DONE:
        assert now == "new", told
    elif outcome.word is Word.UNKNOWN:
        assert not heals, (told, outcome.error.why)
        assert outcome.error.mend.startswith("patchq status")
    else:
        assert outcome.word in (Word.FAILED, Word.UNREACHABLE, Word.REFUSED), told
        assert now == "old", told
    return now


def steps(case, road):
    """Return how far the bytes of a whole push go each way: a request, an answer, each."""
    one = case()
    outcome = one.push(road)
    assert outcome.word is Word.DONE, outcome.error
    assert honest(one, outcome, heals=True) == "new"
    found = one.wire.totals()
    return found["up"][-1], found["down"][-1], found


def cuts(up, down, found):
    """Return where to cut: before hello, in hello, around and in each frame, both ways."""
    ups = sorted({0, 1, 40, up // 7, up // 2, *found["up"], up - 1, up})
    downs = sorted({0, 1, 13, 26, 27, 30, down // 2, *found["down"], down - 1, down})
    around = [n + d for n in found["down"] for d in (-1, 1, 4, 8, 9)]
    downs = sorted({n for n in (*downs, *around) if 0 <= n <= down})
    return [("up", n) for n in ups] + [("down", n) for n in downs]


@pytest.mark.slow
@pytest.mark.parametrize("road", ROADS)
def test_a_link_that_is_cut_at_any_byte_ends_in_one_honest_word(case, road):
    chosen = cuts(*steps(case, road))
    if form.LONG:
        last = {way: max(n for w, n in chosen if w == way) for way in ("up", "down")}
        chosen += [(way, n) for way in last for n in range(0, last[way], last[way] // 25)]
    words = []

    def proved(spot):
        way, at = spot
        one = case(**{way: at, "times": 1})
        outcome = one.push(road)
        try:
            now = honest(one, outcome, heals=True)
        except AssertionError as error:
            raise AssertionError(f"{road}, cut after {at} bytes {way}: {error}") from error
        words.append((outcome.word, now))
        form.count("the link", f"cut, {way}, {road}", outcome.word.value)

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(proved, form.some(chosen, 12)))
    assert {(Word.DONE, "new"), (Word.UNREACHABLE, "old")} <= set(words), words


@pytest.mark.slow
@pytest.mark.parametrize("road", ROADS)
def test_a_host_that_is_lost_at_each_link_is_unknown_and_whole(case, road):
    up, _, found = steps(case, road)
    spots = [("up", up - 1), ("up", up), ("down", found["down"][-1] - 1)]
    ends = set()
    for way, at in spots if form.LONG else spots[:2]:
        one = case(**{way: at, "times": 1, "later": {"down": 3}})
        outcome = one.push(road, settle=3)
        assert outcome.word is Word.UNKNOWN
        ends.add(honest(one, outcome, heals=False))
        form.count("the link", f"cut at each link, {road}", outcome.word.value)
    assert ends == {"old", "new"}  # whole, whatever it is


@pytest.mark.slow
@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("chunk", [1, 7])
def test_bytes_may_come_one_at_a_time(case, road, chunk):
    one = case(chunk=chunk)

    outcome = one.push(road)

    assert (outcome.word, honest(one, outcome, heals=True)) == (Word.DONE, "new")
    form.count("the link", f"{chunk} bytes at a time, {road}", "done")


def answer(**document):
    return protocol.pack(document).hex()


REFUSED = {"word": "unknown-op", "what": "no", "why": "it is older", "mend": "use one patchq"}
ODD = {
    "an answer twice": ({"twice": 1}, {Word.DONE, Word.FAILED}),
    "the last answer twice": ({"twice": 2}, {Word.DONE}),
    "an answer to no request": ({"unasked": answer(ok={})}, {Word.FAILED}),
    "an older agent": ({"unasked": answer(error=REFUSED)}, {Word.FAILED, Word.REFUSED}),
    "a newer frame": ({"unasked": "50513032" + "00" * 20}, {Word.FAILED}),
    "a frame over the limit": ({"frame": "ffffffffffffffff"}, {Word.FAILED}),
    "text over the limit": ({"frame": "0100000100000000"}, {Word.FAILED}),
    "garbage before the marker, for ever": ({"before": "noise\n"}, {Word.UNREACHABLE}),
    "garbage after the marker, for ever": ({"after": "noise\n"}, {Word.FAILED}),
    "noise on stderr, for ever": ({"stderr": "noise\n"}, {Word.DONE}),
}


@pytest.mark.slow
@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("odd", ODD)
def test_a_host_that_says_what_no_agent_says_is_told_and_not_changed(case, road, odd):
    fault, words = ODD[odd]
    one = case(**fault)

    outcome = one.push(road)

    honest(one, outcome, heals=True)
    assert outcome.word in words, (outcome.word, outcome.error and outcome.error.why)
    form.count("the link", f"{odd}, {road}", outcome.word.value)


def carried(one, road, home, deadlines):
    """Push over one link with these deadlines; return the error, None where there is none."""
    try:
        if road == "command":
            command.converse(["sh", "-c"], one.wire.python, one.conversation, deadlines=deadlines)
        else:
            settings = replace(ssh.Settings.read(home.environ), deadlines=deadlines)
            host = hosts.parse("gpu1", python=one.wire.python)
            asyncio.run(ssh.converse(host, settings, one.conversation))
    except PatchqError as error:
        return error
    return None


@pytest.mark.slow
@pytest.mark.parametrize("road", ROADS)
def test_a_link_that_stands_still_ends_at_its_deadline(case, road, home):
    up, _, found = steps(case, road)
    first = found["down"][-2] if len(found["down"]) > 1 else 27
    spots = {
        "before hello": ({"stall_down": 0}, endings.NoHostAgent),
        "in hello": ({"stall_down": 5}, endings.NoHostAgent),
        "in the first answer": ({"stall_down": 100}, endings.LinkLost),
        "in the commit": ({"stall_up": up - 1}, endings.UnknownOutcome),
        "before the last answer": ({"stall_down": first}, endings.UnknownOutcome),
        "the agent is stopped": ({"freeze": up}, endings.UnknownOutcome),
    }
    for name, (fault, kind) in spots.items():
        one = case(**fault)
        deadlines = replace(HASTY, sync=3) if kind is endings.NoHostAgent else HASTY
        error = carried(one, road, home, deadlines)
        assert type(error) is kind, (name, error)
        one.wire.end()
        form.count("the link", f"stands still {name}, {road}", kind.__name__)
        if name != "the agent is stopped":
            one.whole()


# The controller in a process of its own, of which the most memory is told.
CONTROLLER = """
import os, sys
from dataclasses import replace
from pathlib import Path
from tests.torture import test_link
from tests.transport import talk
from patchq.errors import PatchqError
import asyncio, time
from patchq.transport import command, hosts, ssh
from patchq.transport.channel import Deadlines
road, python = sys.argv[1:]
def conversation():
    first = yield from talk.contents("/", "a")
    time.sleep(6)
    return (yield from talk.contents("/", "b"))
async def think(step):
    return await asyncio.get_running_loop().run_in_executor(None, step)
deadlines = Deadlines(sync=5, request=5, end=0.5)
try:
    if road == "command":
        command.converse(["sh", "-c"], python, conversation(), deadlines=deadlines)
    else:
        settings = replace(ssh.Settings.read(os.environ), deadlines=deadlines)
        host = hosts.parse("gpu1", python=python)
        asyncio.run(ssh.converse(host, settings, conversation(), think=think))
except PatchqError as error:
    print(type(error).__name__, error.why, file=sys.stderr)
status = open("/proc/self/status").read()
print(int(status.partition("VmHWM:")[2].split()[0]) // 1000)
"""
ENDLESS = {
    "before the marker": {"before": "noise\n"},
    "after the marker": {"after": "\0\0"},
    "after the first answer": {"flood": "\0\0"},
    "on stderr": {"stderr": "noise\n"},
    "within a frame": {"frame": "0000000a01ffffff"},
    "within a frame over the limit": {"frame": "0f0000000f000000"},
}


@pytest.mark.slow
@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("where", ENDLESS)
def test_noise_without_end_costs_the_controller_no_memory(case, home, road, where):
    one = case(**ENDLESS[where])

    done = subprocess.run(
        [sys.executable, "-c", CONTROLLER, road, one.wire.python],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=120,
        env={**os.environ, **home.environ, "PYTHONPATH": ""},
    )

    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 150, (done.stdout, done.stderr)
    assert one.wire.left_alone()
    form.count("the link", f"noise without end {where}, {road}", "less than 150 MB")
