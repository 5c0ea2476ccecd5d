"""An edit of a queue that was cut short: the next verb that writes takes it back, and says so."""

import subprocess
import sys

import pytest

from patchq.errors import ExitCode
from patchq.queue.undoing import FOLDER
from tests import world as worlds
from tests.torture import editing_lab

pytestmark = pytest.mark.slow

KILLED = """\
import os, sys
from pathlib import Path
from patchq.queue import writing
from patchq.queue.undoing import Undo
queue = Path(sys.argv[1])
with Undo(queue) as undo:
    for name, data in (("1.0/20-foot.patch", b"half\\n"), ("1.0/series", b"20-foot.patch\\n")):
        undo.keep(queue / name, data)
        writing.write(queue / name, data)
    os.kill(os.getpid(), 9)
"""
NOTE = "was cut short; it was taken back"


@pytest.fixture
def cut(world):
    """A world in whose queue an edit was cut short; its files as they were before."""
    before = editing_lab.left(world)
    done = subprocess.run([sys.executable, "-c", KILLED, world.queue])
    assert done.returncode == -9
    assert editing_lab.left(world) != before
    return world, before


@pytest.mark.parametrize(
    "command", ["push -a", "new 05-a.patch", "header -r 30-text", "lint --write", "float 10-pi"]
)
def test_a_verb_that_writes_takes_it_back_first(cut, command):
    world, before = cut
    verb, *rest = command.split()

    if verb == "lint":
        done = world.run("lint", "--queue", world.queue, *rest)
    else:
        done = world.here(verb, *rest)

    assert NOTE in done.stdout + done.stderr
    assert not (world.queue / FOLDER).exists()
    for name in ("1.0/20-foot.patch", "post/20-foot.pyi"):
        assert editing_lab.left(world)[1][name] == before[1][name]
    assert b"10-pi.patch" in (world.series / "series").read_bytes()
    if verb == "push":
        assert done.returncode == 0, done.stderr
        assert world.here("applied").stdout.split() == [*worlds.PATCHES]


@pytest.mark.parametrize("command", ["status", "series", "push -n", "new -n 05-a.patch"])
def test_a_verb_that_only_looks_leaves_it(cut, command):
    world, _ = cut
    verb, *rest = command.split()
    after = editing_lab.left(world)

    done = world.here(verb, *rest)

    assert editing_lab.left(world) == after
    assert (world.queue / FOLDER).is_dir()
    if verb in ("status", "series"):
        assert "an edit of it was cut short" in done.stdout + done.stderr


def test_status_ends_with_a_finding(cut):
    world, _ = cut

    done = world.here("status")

    assert done.returncode == ExitCode.FINDING
    said = f"the queue in {world.queue} is being edited, or an edit of it was cut short"
    assert said in done.stdout


def test_a_header_has_an_appended_text_once(world):
    act = editing_lab.Act("", "header -a 30-text", stdin=b"Bug: https://example.org/1\n")

    first, second = editing_lab.run(world, act), editing_lab.run(world, act)
    other = editing_lab.run(world, editing_lab.Act("", "header -a 30-text", stdin=b"org/1\n"))

    assert first.returncode == second.returncode == other.returncode == 0
    assert b"its header has that already" in second.stderr
    assert world.here("header", "30-text").stdout == (
        "Description: Count to four\n\nBug: https://example.org/1\norg/1\n"
    )


def test_a_fork_that_nothing_was_changed_in_is_not_forked_again(world):
    world.here("push", "-a")

    first, second = world.here("fork"), world.here("fork")
    named = world.here("fork", "31-mine.patch")

    assert (
        first.stdout
        == second.stdout
        == ("Fork of patch 30-text.patch created as 30-text-2.patch\n")
    )
    assert "it is as 30-text.patch still, and was made before" in second.stderr
    assert named.stdout == "Fork of patch 30-text-2.patch created as 31-mine.patch\n"
    assert "31-mine.patch" in (world.series / "series").read_text()


def test_a_fork_that_was_changed_is_forked(world):
    world.here("push", "-a")
    world.here("fork")
    (world.site / "demo/data.txt").write_text("one\ntwo\nthree\nfour\nfive\n")
    world.here("refresh")

    assert world.here("fork").stdout == (
        "Fork of patch 30-text-2.patch created as 30-text-3.patch\n"
    )


def test_capture_leaves_edits_to_the_queue_that_has_the_file(world):
    other = world.root / "queues/r/1.0"
    other.mkdir(parents=True)
    (other.parent / "queue.toml").write_text('distribution = "demo"\nsummary = "x"\nowner = "n"\n')
    (other / "10-mile.patch").write_text(
        "Description: Miles\n\n--- a/demo/units.py\n+++ b/demo/units.py\n"
        "@@ -1,2 +1,3 @@\n metre = 1\n foot = 0.3048\n+mile = 1609\n"
    )
    (other / "series").write_text("10-mile.patch\n")
    world.run("lint", "--write", "--queue", other.parent)
    done = world.run("push", "-a", "--target", world.site, "--queue", other.parent)
    assert done.returncode == 0, done.stderr
    (world.site / "demo/units.py").write_text("metre = 1\nfoot = 0.3048\nmile = 1609\nyard = 1\n")
    before = editing_lab.left(world)

    refused = world.here("capture", "15-hot.patch")

    assert refused.returncode == ExitCode.FAILED
    assert "is changed by 10-mile.patch of queue r" in refused.stderr
    assert "capture" in refused.stderr.partition("mend:")[2]
    assert editing_lab.left(world) == before
    taken = world.run("capture", "15-hot.patch", "--target", world.site, "--queue", other.parent)
    assert taken.returncode == 0, taken.stderr
    assert b"+yard = 1" in (other / "15-hot.patch").read_bytes()
