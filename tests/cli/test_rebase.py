"""`patchq rebase` and `range-diff` as they are typed."""

import json

import pytest

from tests import world as worlds

pytestmark = pytest.mark.slow


@pytest.fixture
def newer(world):
    """The world, and a release 2.0 in which patch 10 conflicts and 30 does not."""
    files = dict(worlds.FILES)
    files["demo/shapes.py"] = files["demo/shapes.py"].replace(
        "return 3 * self.radius**2 * metre", "return 3.14 * self.radius * self.radius * metre"
    )
    files["demo/data.txt"] = "zero\n" + files["demo/data.txt"]
    wheel = worlds.wheel(world.root, files, version="2.0")
    assert world.run("fetch", wheel).returncode == 0
    return world


def rebase(world, *args):
    return world.run("rebase", *args, "--queue", world.queue)


def work(world):
    (found,) = (world.root / ".local" / "state" / "patchq" / "rebase").glob("*/work")
    return found


def resolved(world):
    """Resolve the conflict in the work tree as patch 10 would have it."""
    path = work(world) / "demo" / "shapes.py"
    text = path.read_text()
    start, stop = text.index("<<<<<<<"), text.index(">>>>>>> 10-pi.patch\n")
    merged = "        return pi * self.radius * self.radius * metre\n"
    path.write_text(text[:start] + merged + text[stop:].split("\n", 1)[1])


def test_a_series_is_carried_with_a_stop_where_a_person_decides(newer):
    (newer.queue / "post" / "10-pi.pyi").write_text("# in demo/shapes.py\nfrom math import pi\n")

    stopped = rebase(newer, "--onto", "2.0")

    assert stopped.returncode == 3
    assert stopped.stdout.startswith("10-pi.patch: conflict\n")
    assert "The rebase onto 2.0 waits at 10-pi.patch; the queue is as it was" in stopped.stdout
    assert f"edit the files in {work(newer)}" in stopped.stderr
    assert not (newer.queue / "2.0").exists()
    shown = rebase(newer, "--show-current-patch")
    assert shown.stdout == worlds.PI

    resolved(newer)
    done = rebase(newer, "--continue")

    assert done.returncode == 0, done.stderr
    words = [
        line.split(": ")[1].split(" (")[0]
        for line in done.stdout.splitlines()
        if ".patch: " in line
    ]
    assert words[0] == "resolved"
    assert words[2] == "moved"
    assert (
        newer.queue / "2.0" / "series"
    ).read_text() == "10-pi.patch\n20-foot.patch\n30-text.patch\n"
    lint = newer.run("lint", "--queue", newer.queue, "--release", "2.0")
    assert "series.lock" not in lint.stdout + lint.stderr

    compared = newer.run("range-diff", "1.0", "2.0", "--queue", newer.queue)
    assert compared.stdout.splitlines()[0] == "! 10-pi.patch"
    assert "= 30-text.patch" in compared.stdout.splitlines()


def test_what_can_be_done_with_a_rebase_that_waits_needs_no_name_of_the_queue(newer):
    rebase(newer, "--onto", "2.0")

    aborted = newer.run("rebase", "--abort")

    assert aborted.returncode == 0
    assert "is forgotten" in aborted.stdout
    again = newer.run("rebase", "--continue")
    assert again.returncode == 64
    assert "no rebase of" in again.stderr


def test_a_rebase_whose_state_cannot_be_read_can_be_aborted(newer):
    rebase(newer, "--onto", "2.0")
    (work(newer).parent / "rebase.json").write_text("{")

    assert "--abort" in rebase(newer, "--continue").stderr
    assert rebase(newer, "--abort").returncode == 0
    assert rebase(newer, "--onto", "2.0").returncode == 3


def test_quit_leaves_the_work_tree(newer):
    rebase(newer, "--onto", "2.0")
    was = work(newer).parent

    done = rebase(newer, "--quit")

    left = was.with_name(f"{was.name}.left-1") / "work"
    assert done.stdout == f"The rebase is forgotten; its work tree is in {left}\n"
    assert (left / "demo" / "shapes.py").is_file()
    assert rebase(newer, "--onto", "2.0").returncode == 3


def test_skip_leaves_the_patch_out(newer):
    rebase(newer, "--onto", "2.0")

    done = rebase(newer, "--skip")

    assert done.stdout.startswith("10-pi.patch: skipped (left out, as asked)\n")
    assert done.returncode == 0
    assert (newer.queue / "2.0" / "series").read_text() == "20-foot.patch\n30-text.patch\n"


def test_the_document_says_what_became_of_each_patch(newer):
    done = rebase(newer, "--onto", "2.0", "-n", "--json")

    document = json.loads(done.stdout)
    assert document["exit_code"] == done.returncode == 3
    assert document["dry_run"] is True
    assert document["steps"][0]["word"] == "conflict"
    assert document["waiting"] is None
    assert not (newer.queue / "2.0").exists()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((), "given: no --onto"),
        (("--continue", "--abort"), "given: --continue --abort"),
        (("--onto", "2.0", "--skip"), "given: --skip"),
        (("--onto", "1.0"), "has no series to carry"),
        (("--onto", "2.0", "--from", "0.9"), "has no series to carry from 0.9"),
        (("--onto", "3.0"), "the pristine text of demo 3.0 is not here"),
    ],
)
def test_what_makes_no_sense_is_an_error_in_three_parts(newer, args, said):
    done = rebase(newer, *args)

    assert done.returncode in (1, 64)
    assert said in done.stderr
    assert "  mend: patchq " in done.stderr


def test_a_state_folder_that_cannot_be_written_is_an_error_in_three_parts(newer):
    done = newer.run(
        "rebase", "--onto", "2.0", "--queue", newer.queue, environ={"PATCHQ_STATE": "/proc/x"}
    )

    assert done.returncode == 1
    assert "/proc/x/rebase cannot be written" in done.stderr
    assert "mend: export PATCHQ_STATE=DIR" in done.stderr


def test_a_sketch_that_was_edited_while_it_waited_makes_the_other_locks_stale_and_says_so(newer):
    rebase(newer, "--onto", "2.0")
    sketch = newer.queue / "post" / "10-pi.pyi"
    sketch.write_text("# in demo/shapes.py\nfrom math import pi\n")
    resolved(newer)

    done = rebase(newer, "--continue")

    assert "series.lock of 1.0 is stale" in done.stderr
