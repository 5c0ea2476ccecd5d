"""The verbs that only look, in quilt's words."""

import json

import pytest

from patchq.errors import ExitCode

pytestmark = pytest.mark.slow


def test_the_names_are_bare_one_a_line(world):
    assert world.here("series").stdout == "10-pi.patch\n20-foot.patch\n30-text.patch\n"
    assert world.here("next").stdout == "10-pi.patch\n"
    world.here("push", "2")
    assert world.here("applied").stdout == "10-pi.patch\n20-foot.patch\n"
    assert world.here("unapplied").stdout == "30-text.patch\n"
    assert world.here("top").stdout == "20-foot.patch\n"
    assert world.here("next").stdout == "30-text.patch\n"
    assert world.here("previous").stdout == "10-pi.patch\n"
    assert world.here("series", "-v").stdout == "+ 10-pi.patch\n= 20-foot.patch\n  30-text.patch\n"
    assert world.here("files").stdout == "demo/shapes.py\ndemo/more.py\n"
    assert world.here("files", "30-text").stdout == "demo/data.txt\n"
    assert world.here("files", "-a").stdout == "demo/more.py\ndemo/shapes.py\n"


@pytest.mark.parametrize(
    ("verb", "code"),
    [
        ("top", ExitCode.NOTHING_TO_DO),
        ("applied", ExitCode.FAILED),
        ("previous", ExitCode.FAILED),
        ("files", ExitCode.FAILED),
    ],
)
def test_without_a_patch_the_exit_code_is_quilts(world, verb, code):
    done = world.here(verb)

    assert (done.returncode, done.stdout, done.stderr) == (code, "", "No patches applied\n")


def test_status_says_what_is_there_and_changes_nothing(world):
    before = world.tree()

    done = world.here("status")

    assert done.returncode == 0
    assert done.stdout.splitlines()[0].startswith(f"demo 1.0 in {world.site} (Python ")
    assert "queue q, series 1.0 (chosen by content)" in done.stdout
    assert "0 of 3 patches applied" in done.stdout
    assert world.tree() == before
    assert not (world.site / ".patchq").exists()


def test_status_finds_drift(world):
    (world.site / "demo" / "data.txt").write_text("zero\n")

    done = world.here("status")

    assert done.returncode == ExitCode.FINDING
    assert "drift: demo/data.txt" in done.stdout


def test_diff_shows_what_one_patch_changes(world):
    world.here("push", "-a")

    top = world.here("diff")
    middle = world.here("diff", "-P", "20-foot", "demo/more.py")
    lowest = world.here("diff", "-P", "10-pi.patch")

    assert "+four\n" in top.stdout
    assert middle.stdout.startswith("diff --git a/demo/more.py b/demo/more.py\nnew file mode")
    assert "+from math import pi\n" in lowest.stdout
    assert "foot" not in lowest.stdout


def test_diff_z_shows_edits_that_are_in_no_patch(world):
    world.here("push", "-a")
    path = world.site / "demo" / "shapes.py"
    path.write_text(path.read_text() + "# by hand\n")

    done = world.here("diff", "-z")

    assert done.stdout.endswith("+# by hand\n")
    assert done.stdout.count("\n+") == 2


def test_log_tells_who_did_what_newest_first(world):
    world.here("push", "-a")
    world.here("pop")

    receipts = world.json("log")["receipts"]
    done = world.here("log")

    assert [one["verb"] for one in receipts] == ["push", "pop"]
    assert done.stdout.splitlines()[0].split()[2] == "pop"
    assert "    - 30-text.patch" in done.stdout


def test_check_fails_below_and_holds_above(world):
    below = world.here("check")
    world.here("push", "-a")
    above = world.here("check")

    assert below.returncode == ExitCode.FAILED
    assert "10-pi fails (0 of 2 claims)" in below.stdout
    assert above.returncode == 0
    assert above.stdout == (
        "30-text has no sketch\n10-pi holds (2 of 2 claims)\n20-foot holds (2 of 2 claims)\n"
    )


def test_queues_lists_what_is_in_sight(world):
    done = world.run("queues", "--json")

    queues = json.loads(done.stdout)["queues"]
    assert [one["name"] for one in queues] == ["q", "kimi-k2.5-eagle3"]


def test_a_distribution_that_is_not_installed_is_named(world):
    (world.root / "empty").mkdir()

    done = world.run("top", "--target", "empty", "--queue", world.queue)

    assert done.returncode == ExitCode.FAILED
    assert done.stderr.startswith(f"patchq: demo is not installed in {world.root}/empty\n")


def test_a_release_without_a_series_is_named(world):
    info = world.site / "demo-1.0.dist-info"
    info.rename(world.site / "demo-9.0.dist-info")
    meta = world.site / "demo-9.0.dist-info" / "METADATA"
    meta.write_text(meta.read_text().replace("1.0", "9.0"))
    (world.site / "demo" / "shapes.py").write_text("")

    done = world.here("push")

    assert done.returncode == ExitCode.FAILED
    assert "no series of queue q fits demo 9.0" in done.stderr
