"""Two queues in one environment, as a user meets them: one story."""

import pytest

from patchq.errors import ExitCode
from tests.conversation.test_stacking import NAME, SQUARE, queue_of

pytestmark = pytest.mark.slow


def test_two_queues_on_one_file_are_looked_at_pushed_and_popped(world):
    other = queue_of(world, "r", {"05-square.patch": SQUARE, "06-name.patch": NAME})
    before = world.tree()

    looked = world.run("overlap", "--target", world.site)
    assert looked.returncode == 0, looked.stderr
    assert looked.stdout.splitlines()[1] == (
        "demo/shapes.py: 20-foot.patch (q) line 17 and 05-square.patch (r) line 17: overlap"
    )
    assert looked.stdout.endswith("4 pairs between queues, 2 can not be stacked\n")

    assert other.here("push", "-a", "-q").returncode == 0
    dry = world.here("push", "-n", "-q")
    done = world.here("push", "-q")
    refused = world.here("push")
    under = other.here("pop", "-a")
    assert "stacked on 06-name.patch of queue r in demo/shapes.py (5 lines apart)" in dry.stderr
    assert done.stderr == dry.stderr
    assert done.stdout == "Applying patch 10-pi.patch\nNow at patch 10-pi.patch\n"
    assert (refused.returncode, under.returncode) == (ExitCode.CONFLICT, ExitCode.CONFLICT)
    assert f"mend: patchq pop --target {world.site} -a --queue r" in refused.stderr
    assert f"mend: patchq pop --target {world.site} -a --queue q" in under.stderr

    assert world.here("pop", "-a").returncode == 0
    assert other.here("pop", "-a").returncode == 0
    assert world.tree() == before


def test_overlap_without_a_shared_file_has_nothing_to_show(world):
    done = world.here("overlap", "30-text")

    assert done.returncode == ExitCode.NOTHING_TO_DO
    assert done.stderr == "No two patches touch the same file\n"


def test_overlap_of_a_distribution_that_is_not_there_says_so(world, tmp_path):
    (tmp_path / "empty").mkdir()

    done = world.run("overlap", "--target", tmp_path / "empty", "--queue", world.queue)

    assert done.returncode == ExitCode.FAILED
    assert "demo is not installed in" in done.stderr
