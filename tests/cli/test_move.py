"""Push, pop, goto, undo: quilt's words, and all or nothing."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from patchq.errors import ExitCode
from tests.world import FILES, wheel

pytestmark = pytest.mark.slow


def test_push_applies_the_next_patch_and_pop_gives_every_byte_back(world):
    before = world.tree()

    pushed = world.here("push")
    after = world.tree()
    popped = world.here("pop")

    assert pushed.returncode == 0, pushed.stderr
    assert pushed.stdout == (
        "Applying patch 10-pi.patch\npatching file demo/shapes.py\n\nNow at patch 10-pi.patch\n"
    )
    assert b"from math import pi" in after["demo/shapes.py"]
    assert popped.returncode == 0, popped.stderr
    assert popped.stdout == (
        "Removing patch 10-pi.patch\nRestoring demo/shapes.py\n\nNo patches applied\n"
    )
    assert world.tree() == before


def test_push_all_then_pop_one_leaves_what_the_patches_below_made(world):
    world.here("push", "10-pi")
    below = world.tree()

    pushed = world.here("push", "-a", "-q")
    first = world.here("pop", "-q")
    second = world.here("pop")

    assert pushed.stdout.splitlines() == [
        "Applying patch 20-foot.patch",
        "Applying patch 30-text.patch",
        "Now at patch 30-text.patch",
    ]
    assert first.stdout == "Removing patch 30-text.patch\nNow at patch 20-foot.patch\n"
    assert second.returncode == 0, second.stderr
    assert world.tree() == below


def test_pop_needs_no_queue(world):
    before = world.tree()
    world.here("push", "-a")
    for path in world.series.glob("*.patch"):
        path.unlink()

    one = world.here("pop", "10-pi")
    rest = world.here("pop", "-a")

    assert one.returncode == 0, one.stderr
    assert rest.returncode == 0, rest.stderr
    assert world.tree() == before


def test_nothing_to_do_is_said_in_quilts_words(world):
    assert world.here("pop").stderr == "No patch removed\n"
    assert world.here("pop").returncode == ExitCode.NOTHING_TO_DO
    world.here("push", "-a")
    again = world.here("push", "-a")
    assert again.stderr == "File series fully applied, ends at patch 30-text.patch\n"
    assert again.returncode == ExitCode.NOTHING_TO_DO
    assert world.here("push", "10-pi.patch").stderr == ("Patch 10-pi.patch is currently applied\n")


def test_a_dry_run_says_would_and_changes_nothing(world):
    before = world.tree()

    done = world.here("push", "2", "-n", "-q")

    assert done.stdout == (
        "Would apply patch 10-pi.patch\nWould apply patch 20-foot.patch\n"
        "Would be at patch 20-foot.patch\n"
    )
    assert world.tree() == before
    assert not (world.site / ".patchq").exists()


def test_goto_goes_both_ways(world):
    world.here("push", "-a")

    down = world.here("goto", "10-pi")
    up = world.here("goto", "20-foot.patch")
    there = world.here("goto", "20-foot.patch")

    assert down.stdout.endswith("Now at patch 10-pi.patch\n"), down.stderr
    assert up.stdout.endswith("Now at patch 20-foot.patch\n"), up.stderr
    assert there.returncode == ExitCode.NOTHING_TO_DO


def test_undo_takes_back_the_last_transaction_and_undo_again_redoes_it(world):
    before = world.tree()
    world.here("push", "-a")
    after = world.tree()

    assert world.here("undo").returncode == 0
    assert world.tree() == before
    redone = world.here("undo")
    assert redone.returncode == 0, redone.stderr
    assert world.tree() == after


def test_a_patch_that_is_not_in_the_series_is_an_error_with_a_mend(world):
    done = world.here("push", "pi")

    assert done.returncode == ExitCode.FAILED
    assert done.stderr == (
        "patchq: Patch pi is not in series\n"
        "  why: there are 10-pi.patch, 20-foot.patch, 30-text.patch\n"
        "  mend: name it whole: 10-pi.patch\n"
    )


def test_drift_is_refused_with_the_edit_shown_and_nothing_changed(world):
    path = world.site / "demo" / "shapes.py"
    path.write_text(path.read_text().replace("3 *", "3.1 *"))
    before = world.tree()

    done = world.here("push", "-a")

    assert done.returncode == ExitCode.CONFLICT
    assert "patchq: drift: demo/shapes.py was edited by somebody" in done.stderr
    assert "+        return 3.1 * self.radius**2 * metre" in done.stderr
    assert "its lines overlap the patch's" in done.stderr
    assert "Nothing was changed" in done.stderr
    assert world.tree() == before


def test_a_patch_by_hand_is_told_from_drift(world):
    path = world.site / "demo" / "data.txt"
    path.write_text(path.read_text() + "four\n")

    done = world.here("push", "-a")

    assert done.returncode == ExitCode.CONFLICT
    assert "patchq: already there: demo/data.txt holds 30-text.patch already" in done.stderr


def in_other_words() -> str:
    """Return shapes.py as 10-pi.patch wants it, in words of its own."""
    text = FILES["demo/shapes.py"].replace("from .units", "from math import (pi)\nfrom .units", 1)
    return text.replace("3 * self.radius**2 * metre", "(pi * self.radius ** 2) * metre")


def test_a_build_that_does_it_already_in_other_words_is_merged_upstream(world):
    shutil.rmtree(world.site)
    archive = wheel(world.root, {**FILES, "demo/shapes.py": in_other_words()}, version="1.0+own")
    assert world.run("fetch", archive, "--into", world.site).returncode == 0

    done = world.here("push")

    assert done.returncode == ExitCode.CONFLICT
    assert "patchq: merged upstream: demo/shapes.py does what 10-pi.patch is for" in done.stderr


def test_a_file_that_was_edited_is_never_merged_upstream(world):
    (world.site / "demo" / "shapes.py").write_text(in_other_words())

    done = world.here("push")

    assert done.returncode == ExitCode.CONFLICT
    assert "patchq: drift: demo/shapes.py was edited by somebody" in done.stderr
    assert "10-pi.pyi says of it holds" in done.stderr
    assert "merged upstream" not in done.stderr


def test_every_conflict_of_the_series_is_listed(world):
    (world.site / "demo" / "shapes.py").write_text("x = 1\n")
    (world.site / "demo" / "data.txt").unlink()

    done = world.here("push", "-a", "--json")

    document = json.loads(done.stdout)
    assert [(c["kind"], c["patch"], c["path"]) for c in document["conflicts"]] == [
        ("drift", "10-pi.patch", "demo/shapes.py"),
        ("drift", "30-text.patch", "demo/data.txt"),
    ]
    assert document["exit_code"] == ExitCode.CONFLICT


def test_pop_refuses_an_edit_since_the_push(world):
    world.here("push")
    path = world.site / "demo" / "shapes.py"
    path.write_text(path.read_text() + "# by hand\n")

    done = world.here("pop")

    assert done.returncode == ExitCode.CONFLICT
    assert "demo/shapes.py was edited after 10-pi.patch was pushed" in done.stderr
    assert path.read_text().endswith("# by hand\n")


def test_an_import_list_split_by_sed_never_becomes_live(world):
    broken = world.series / "20-foot.patch"
    broken.write_text(
        broken.read_text()
        .replace("@@ -1,6 +1,6 @@", "@@ -1,6 +1,7 @@")
        .replace("+from .units import foot, metre\n", "+from .units import foot,\n+    metre\n")
        .replace("@@ -16,4 +16,4 @@", "@@ -16,4 +17,4 @@")
    )
    before = world.tree()

    lint = world.run("lint", "--queue", world.queue, "--write")
    done = world.here("push", "-a")

    assert lint.returncode == ExitCode.FAILED
    assert "demo/shapes.py:3:" in lint.stdout
    assert done.returncode == ExitCode.CONFLICT
    assert "demo/shapes.py:3:" in done.stderr
    assert world.tree() == before


def test_a_stale_lock_is_found_out(world):
    path = world.series / "30-text.patch"
    path.write_text(path.read_text().replace("+four", "+five"))

    done = world.here("push", "-a")

    assert done.returncode == ExitCode.FAILED
    assert "30-text.patch" in done.stderr
    assert "mend: patchq lint --write" in done.stderr


def test_a_package_removed_under_its_patches_leaves_a_record_that_recover_sets_aside(world):
    world.here("push", "-a")
    shutil.rmtree(world.site / "demo")
    shutil.rmtree(world.site / "demo-1.0.dist-info")

    status = world.here("status")
    recovered = world.here("recover")

    assert status.returncode == ExitCode.FAILED
    assert "demo is not installed any more" in status.stderr
    assert f"mend: patchq recover --target {world.site}" in status.stderr
    assert recovered.returncode == 0, recovered.stderr
    assert recovered.stdout.startswith("The record of patches that are gone was set aside")
    assert "is not installed in" in world.here("status").stderr


def test_a_patch_without_a_diff_is_never_applied(world):
    (world.series / "30-text.patch").write_text("Description: nothing\n")
    before = world.tree()

    lint = world.run("lint", "--queue", world.queue, "--write")
    done = world.here("push", "-a")

    assert "it changes nothing: there is no diff in it" in lint.stdout
    assert done.returncode == ExitCode.CONFLICT
    assert "30-text.patch changes nothing" in done.stderr
    assert world.tree() == before


@pytest.mark.parametrize(("verb", "number"), [("pop", "10"), ("push", "20")])
def test_a_number_beyond_the_stack_is_often_the_start_of_a_name(world, verb, number):
    world.here("push", "1")

    done = world.here(verb, number)

    assert done.returncode == ExitCode.FAILED
    assert f"mend: patchq {verb} --target {world.site} --queue {world.queue} {number}-" in (
        done.stderr
    )


def test_a_patch_may_be_named_by_its_path(world):
    assert world.here("push", "queues/q/1.0/10-pi.patch").returncode == 0
    assert world.here("top").stdout == "10-pi.patch\n"


def test_an_answer_that_can_not_be_written_does_not_hide_what_was_done(world):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "patchq", "push", "-a", "--target", world.site],
            cwd=world.root,
            env={**os.environ, "PATCHQ_CACHE": str(world.root / "cache")},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )

    assert done.returncode == ExitCode.FAILED
    assert "what the verb did is done" in done.stderr
    assert "Traceback" not in done.stderr
    assert world.here("applied").stdout.count("\n") == 3


def test_lint_says_where_moved_lines_fit(world):
    path = world.series / "30-text.patch"
    path.write_text(path.read_text().replace("@@ -1,3 +1,4 @@", "@@ -3,3 +3,4 @@"))

    done = world.run("lint", "--queue", world.queue, "--write")

    assert "it fits where its lines have moved to (demo/data.txt: -2 lines)" in done.stdout
    assert "series.lock not written" in done.stdout


def test_a_patch_and_its_reverse_are_popped_to_the_very_file(world):
    there = (
        "--- a/demo/data.txt\n+++ b/demo/data.txt\n@@ -1,3 +1,4 @@\n one\n two\n three\n+four\n"
    )
    back = "--- a/demo/data.txt\n+++ b/demo/data.txt\n@@ -1,4 +1,3 @@\n one\n two\n three\n-four\n"
    made = "--- /dev/null\n+++ b/demo/new.py\n@@ -0,0 +1 @@\n+x = 1\n"
    gone = "--- a/demo/new.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x = 1\n"
    shutil.rmtree(world.queue)
    world.write({"a.patch": there, "b.patch": back, "c.patch": made, "d.patch": gone}, {})
    world.run("lint", "--queue", world.queue, "--write")
    before, info = world.tree(), (world.site / "demo/data.txt").stat()

    for _ in range(4):
        assert world.here("push").returncode == 0
    done = world.here("pop", "-a")

    assert done.returncode == 0, done.stderr
    after = (world.site / "demo/data.txt").stat()
    assert (after.st_ino, after.st_mtime_ns) == (info.st_ino, info.st_mtime_ns)
    assert world.tree() == before
    assert not (world.site / ".patchq/demo/state.json").exists()
