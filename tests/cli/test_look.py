"""The verbs that only look, in quilt's words."""

import json
import os
import shutil
import venv

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
    assert world.here("files").stdout == "demo/more.py\ndemo/shapes.py\n"
    assert world.here("files", "30-text").stdout == "demo/data.txt\n"
    assert world.here("files", "-a").stdout == "demo/shapes.py\ndemo/more.py\ndemo/shapes.py\n"


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


def test_check_names_what_it_judged_where_nobody_named_it(world):
    venv.create(world.root / "venv")
    (packages,) = (world.root / "venv").glob("lib/python*/site-packages")
    shutil.copytree(world.site, packages, dirs_exist_ok=True)
    path = f"{world.root}/venv/bin{os.pathsep}{os.environ['PATH']}"

    done = world.run("check", "--queue", world.queue, environ={"PATH": path})
    named = world.here("check")
    document = world.json("check")

    assert done.stderr == f"judged: demo 1.0 in {packages}\n"
    assert named.stderr == ""
    assert document["site"] == str(world.site)


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


def test_diff_z_of_a_named_file_that_no_patch_touches(world):
    path = world.site / "demo" / "units.py"
    path.write_text(path.read_text() + "mile = 1609\n")

    named = world.here("diff", "-z", "demo/units.py")
    other = world.here("diff", "-z", "demo/shapes.py")
    nowhere = world.here("diff", "-z", "demo/nowhere.py")

    assert named.stdout.endswith("+mile = 1609\n"), named.stderr
    assert (other.returncode, other.stdout) == (0, "")
    assert "demo/nowhere.py is no file of" in nowhere.stderr


def test_the_record_is_enough_where_the_queue_is_not_in_sight(world):
    world.here("push", "2")
    before = world.tree()
    world.queue.rename(world.root / "elsewhere")
    at = ("--target", world.site)

    assert world.run("applied", *at).stdout == "10-pi.patch\n20-foot.patch\n"
    assert world.run("top", *at).stdout == "20-foot.patch\n"
    assert "+foot" not in world.run("diff", "-P", "10-pi", *at).stdout
    status = world.run("status", *at)
    assert "queue q, series 1.0 (chosen by record), which is not in sight" in status.stdout
    assert world.run("pop", *at).returncode == 0
    assert world.run("undo", *at).returncode != 0
    assert world.run("pop", "-a", *at, "--queue", "q").returncode == 0
    assert world.tree() != before


def test_a_renamed_queue_does_not_hide_what_is_applied(world):
    world.here("push", "1")
    world.queue.rename(world.queue.with_name("n"))
    at = ("--target", world.site)

    named = world.run("status", *at, "--queue", "n")

    assert "also applied: 10-pi.patch of queue q" in named.stdout
    assert "queue q, series 1.0" in world.run("status", *at).stdout
    assert world.run("pop", "-a", *at).returncode == 0


@pytest.mark.parametrize(
    ("series", "finding"),
    [
        ("20-foot.patch\n10-pi.patch\n", "order: applied are 10-pi.patch"),
        ("20-foot.patch\n", "not in the series any more: 10-pi.patch"),
    ],
)
def test_status_tells_by_name_what_the_series_says_otherwise(world, series, finding):
    world.here("push", "1")
    lock = json.loads((world.series / "series.lock").read_text())
    (world.series / "series").write_text(series)
    by_name = {patch["name"]: patch for patch in lock["patches"]}
    lock["patches"] = [by_name[name] for name in series.split()]
    (world.series / "series.lock").write_text(json.dumps(lock))

    done = world.here("status")

    assert done.returncode == ExitCode.FINDING
    assert finding in done.stdout
    assert "= 20-foot.patch" not in done.stdout


def test_status_tells_a_patch_that_was_edited_after_its_push(world):
    world.here("push", "1")
    path = world.series / "10-pi.patch"
    path.write_text("Author: me\n" + path.read_text())
    world.run("lint", "--queue", world.queue, "--write")
    assert world.here("status").returncode == ExitCode.DONE  # a header is not what it does
    path.write_text(path.read_text().replace("2 * metre\n \n", "2 * metre  # mine\n \n"))
    world.run("lint", "--queue", world.queue, "--write")

    done = world.here("status")

    assert "changed: 10-pi.patch was edited in the queue after it was pushed" in done.stdout
    assert done.returncode == ExitCode.FINDING
