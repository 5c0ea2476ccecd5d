"""Making a patch where it is applied: no edit is lost, whatever came first."""

import os
import shutil
import stat
import subprocess

import pytest

from patchq.errors import ExitCode
from tests.world import FILES

pytestmark = pytest.mark.slow

INCH = FILES["demo/units.py"] + "inch = 0.0254\n"


def write(world, path, text):
    (world.site / path).write_text(text)


def test_a_patch_is_made_refreshed_popped_and_pushed(world):
    before = world.tree()
    world.here("push", "10-pi")

    made = world.here("new", "15-inch.patch")
    added = world.here("add", "demo/units.py")
    write(world, "demo/units.py", INCH)
    refreshed = world.here("refresh")
    series = world.here("series", "-v")

    assert made.stdout == "Patch 15-inch.patch is now on top\n", made.stderr
    assert added.stdout == "File demo/units.py added to patch 15-inch.patch\n", added.stderr
    assert refreshed.stdout == "Refreshed patch 15-inch.patch\n"
    assert series.stdout == "+ 10-pi.patch\n= 15-inch.patch\n  20-foot.patch\n  30-text.patch\n"
    assert (world.series / "15-inch.patch").read_text() == (
        "diff --git a/demo/units.py b/demo/units.py\n--- a/demo/units.py\n+++ b/demo/units.py\n"
        "@@ -1,2 +1,3 @@\n metre = 1\n foot = 0.3048\n+inch = 0.0254\n"
    )
    assert world.here("status").returncode == 0
    done = world.tree()
    popped, pushed = world.here("pop"), world.here("push")
    assert (popped.returncode, pushed.returncode) == (0, 0), popped.stderr + pushed.stderr
    assert world.tree() == done
    assert world.here("pop", "-a").returncode == 0
    assert world.tree() == before


def test_an_edit_before_add_is_taken_in_and_named(world):
    world.here("push", "10-pi")
    world.here("new", "15-inch.patch")
    write(world, "demo/units.py", INCH)
    (world.site / "demo/extra.py").write_text("x = 1\n")

    status = world.here("status")
    done = world.here("refresh")

    assert status.returncode == ExitCode.FINDING
    assert "edited, and in no patch: demo/units.py\n" in status.stdout
    assert "edited, and in no patch: demo/extra.py\n" in status.stdout
    assert done.returncode == 0, done.stderr
    assert "File demo/units.py added to patch 15-inch.patch\n" in done.stderr
    assert "File demo/extra.py added to patch 15-inch.patch\n" in done.stderr
    assert world.here("files").stdout == "demo/extra.py\ndemo/units.py\n"
    assert world.here("pop", "-a").returncode == 0
    assert world.tree() == {**world.tree(), "demo/units.py": FILES["demo/units.py"].encode()}
    assert not (world.site / "demo/extra.py").exists()


def test_an_edited_file_that_add_takes_goes_back_to_the_releases_text(world):
    world.here("new", "05-inch.patch")
    write(world, "demo/units.py", INCH)

    added = world.here("add", "demo/units.py")
    shown = world.here("diff", "-z")
    dropped = world.here("pop", "-f")

    assert added.returncode == 0, added.stderr
    assert "+inch = 0.0254\n" in shown.stdout
    assert dropped.returncode == 0, dropped.stderr
    assert (world.site / "demo/units.py").read_text() == FILES["demo/units.py"]


def test_a_file_somebody_took_away_comes_back_with_a_pop(world):
    world.here("new", "05-gone.patch")
    (world.site / "demo/data.txt").unlink()

    done = world.here("refresh")
    back = world.here("pop")

    assert "File demo/data.txt added to patch 05-gone.patch\n" in done.stderr
    assert b"deleted file mode 100644\n" in (world.series / "05-gone.patch").read_bytes()
    assert back.returncode == 0, back.stderr
    assert (world.site / "demo/data.txt").read_text() == FILES["demo/data.txt"]


def test_added_files_have_an_inode_of_their_own_and_pop_gives_the_first_one_back(world):
    path = world.site / "demo/units.py"
    twin = world.root / "cache-of-an-installer.py"
    os.link(path, twin)
    first = path.stat()

    world.here("new", "05-inch.patch")
    world.here("add", "demo/units.py")
    with path.open("a") as file:  # in place, as many editors do it
        file.write("inch = 0.0254\n")
    world.here("refresh")
    own = path.stat()
    world.here("pop")

    assert twin.read_text() == FILES["demo/units.py"]
    assert own.st_ino != first.st_ino
    assert stat.S_IMODE(own.st_mode) == stat.S_IMODE(first.st_mode)
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (first.st_ino, first.st_mtime_ns)


def test_pop_and_push_write_over_no_edit_without_f(world):
    world.here("push", "10-pi")
    world.here("new", "15-inch.patch")
    world.here("add", "demo/units.py")
    write(world, "demo/units.py", INCH)

    popped = world.here("pop")
    pushed = world.here("push")

    assert (popped.returncode, pushed.returncode) == (ExitCode.CONFLICT, ExitCode.CONFLICT)
    assert (world.site / "demo/units.py").read_text() == INCH


def test_revert_drops_the_edits_and_remove_gives_the_file_back(world):
    world.here("new", "05-inch.patch")
    world.here("add", "demo/units.py", "demo/data.txt")
    write(world, "demo/units.py", INCH)
    world.here("refresh")
    write(world, "demo/units.py", "broken\n")

    reverted = world.here("revert", "demo/units.py", "demo/data.txt")
    text = (world.site / "demo/units.py").read_text()
    removed = world.here("remove", "demo/units.py")

    assert reverted.stdout == (
        "Changes to demo/units.py in patch 05-inch.patch reverted\n"
        "File demo/data.txt is unchanged\n"
    )
    assert text == INCH
    assert removed.stdout == "File demo/units.py removed from patch 05-inch.patch\n"
    assert (world.site / "demo/units.py").read_text() == FILES["demo/units.py"]
    assert world.here("files").stdout == "demo/data.txt\n"


def test_patches_above_are_carried_where_their_lines_moved(world):
    world.here("new", "05-head.patch")
    world.here("add", "demo/shapes.py")
    text = FILES["demo/shapes.py"].replace("class Square:", "# A box.\nclass Square:")
    write(world, "demo/shapes.py", text)

    done = world.here("refresh")
    pushed = world.here("push", "-a")

    assert "20-foot.patch was written anew: its lines moved\n" in done.stderr
    assert pushed.returncode == 0, pushed.stderr
    text = (world.site / "demo/shapes.py").read_text()
    assert "# A box.\nclass Square" in text
    assert "metre / foot" in text


def test_a_patch_above_that_fits_no_more_is_named_and_not_pushed(world):
    world.here("new", "05-other.patch")
    write(world, "demo/data.txt", "one\ntwo\n3\n")

    done = world.here("refresh")
    pushed = world.here("push", "-a")
    below = world.here("push", "20-foot")

    assert "30-text.patch does not fit on what is below it any more" in done.stderr
    assert pushed.returncode == ExitCode.FAILED
    assert "or does not fit any more on what is below it; up to 20-foot.patch" in pushed.stderr
    assert below.returncode == 0, below.stderr


def test_the_edits_can_become_a_patch_of_their_own(world):
    world.here("new", "05-inch.patch")
    world.here("add", "demo/units.py")
    write(world, "demo/units.py", INCH)
    world.here("refresh")
    first = (world.series / "05-inch.patch").read_bytes()
    write(world, "demo/units.py", INCH + "yard = 0.9144\n")

    done = world.here("refresh", "-z")

    assert done.stdout == "Fork of patch 05-inch.patch created as 05-inch-2.patch\n", done.stderr
    assert (world.series / "05-inch.patch").read_bytes() == first
    assert "+yard = 0.9144\n" in (world.series / "05-inch-2.patch").read_text()
    assert world.here("applied").stdout == "05-inch.patch\n05-inch-2.patch\n"
    assert world.here("pop").returncode == 0
    assert (world.site / "demo/units.py").read_text() == INCH


def test_rename_fork_and_delete_keep_queue_and_record_together(world):
    world.here("push", "10-pi")

    renamed = world.here("rename", "11-pi.patch")
    forked = world.here("fork")
    names = world.here("applied").stdout
    deleted = world.here("delete", "-r", "--backup")

    assert renamed.stdout == "Patch 10-pi.patch renamed to 11-pi.patch\n", renamed.stderr
    assert (world.queue / "post" / "11-pi.pyi").exists()
    assert forked.stdout == "Fork of patch 11-pi.patch created as 11-pi-2.patch\n"
    assert names == "11-pi-2.patch\n"
    assert deleted.stdout.endswith("No patches applied\nRemoved patch 11-pi-2.patch\n")
    assert (world.series / "11-pi-2.patch~").exists()
    assert world.here("series").stdout == "20-foot.patch\n30-text.patch\n"
    assert (world.site / "demo/shapes.py").read_text() == FILES["demo/shapes.py"]


def test_a_fault_in_what_was_edited_is_said_and_nothing_is_refused(world):
    world.here("new", "05-broken.patch")
    world.here("add", "demo/units.py")
    write(world, "demo/units.py", "metre = (\n")

    done = world.here("refresh")

    assert done.returncode == 0
    assert "Warning: demo/units.py:" in done.stderr
    assert "05-broken.patch has no sketch" in done.stderr


def test_an_editor_gets_the_file_and_a_failing_one_is_told(world):
    world.here("new", "05-inch.patch")
    environ = {"EDITOR": "sh -c 'echo inch = 1 >> \"$0\"'", "VISUAL": ""}
    target = ("--target", world.site, "--queue", world.queue)

    done = world.run("edit", "demo/units.py", *target, environ=environ)
    failed = world.run("edit", "demo/units.py", *target, environ={"EDITOR": "false", "VISUAL": ""})

    assert done.returncode == 0, done.stderr
    assert (world.site / "demo/units.py").read_text().endswith("inch = 1\n")
    assert failed.returncode == ExitCode.FAILED
    assert "the editor false failed" in failed.stderr


@pytest.mark.parametrize(
    ("verb", "words", "text"),
    [
        ("new", ["10-pi.patch"], "Patch 10-pi.patch exists already"),
        ("new", ["../x.patch"], "names the path '../x.patch'"),
        ("add", ["demo/units.py"], "No patches applied"),
        ("refresh", [], "No patches applied"),
        ("remove", ["demo/units.py"], "No patches applied"),
        ("rename", ["x.patch", "-P", "nope"], "Patch nope is not in series"),
        ("delete", ["nope"], "Patch nope is not in series"),
    ],
)
def test_what_cannot_be_done_is_said_and_nothing_changes(world, verb, words, text):
    files = {p: p.read_bytes() for p in world.queue.rglob("*") if p.is_file()}

    done = world.here(verb, *words)

    assert done.returncode in (ExitCode.FAILED, ExitCode.USAGE), done.stdout
    assert text in done.stderr
    assert {p: p.read_bytes() for p in world.queue.rglob("*") if p.is_file()} == files


def test_quilt_pushes_the_series_that_was_made(world, tmp_path):
    world.here("new", "05-inch.patch")
    write(world, "demo/units.py", INCH)
    world.here("refresh")
    world.here("push", "-a")
    tree = tmp_path / "tree"
    for path, text in FILES.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(text)

    environ = {**os.environ, "QUILT_PATCHES": str(world.series), "QUILT_PATCH_OPTS": "-F0"}
    subprocess.run(["quilt", "push", "-aq"], cwd=tree, env=environ, check=True)

    for path in [*FILES, "demo/more.py"]:
        assert (tree / path).read_bytes() == (world.site / path).read_bytes(), path


def test_files_that_came_without_their_record_are_taken_over(world):
    before = world.tree()
    world.here("push", "-a")
    patched = world.tree()
    shutil.rmtree(world.site / ".patchq")

    refused = world.here("push", "-a")
    done = world.here("push", "-a", "--adopt")

    assert refused.returncode == ExitCode.CONFLICT
    assert "patchq push --target" in refused.stderr
    assert "--adopt" in refused.stderr
    assert done.returncode == 0, done.stderr
    assert world.tree() == patched
    assert world.here("status").returncode == 0
    assert world.here("pop", "-a").returncode == 0
    assert world.tree() == before


def test_what_was_patched_by_hand_in_part_is_taken_over_and_the_rest_is_written(world):
    before = world.tree()
    world.here("push", "10-pi")
    half = (world.site / "demo/shapes.py").read_bytes()
    world.here("pop", "-a")
    (world.site / "demo/shapes.py").write_bytes(half)
    (world.site / "demo/data.txt").write_text("one\ntwo\nthree\nfour\n")

    done = world.here("push", "10-pi", "--adopt")
    rest = world.here("push", "-a", "--adopt")

    assert (done.returncode, rest.returncode) == (0, 0), done.stderr + rest.stderr
    assert world.here("pop", "-a").returncode == 0
    assert world.tree() == before


def test_an_edit_before_add_that_refresh_strips_goes_back_to_the_releases_text(world):
    world.here("new", "05-inch.patch")
    write(world, "demo/units.py", FILES["demo/units.py"] + "inch = 0.0254  \n")

    done = world.here("refresh", "--strip-trailing-whitespace")
    live = (world.site / "demo/units.py").read_text()
    popped = world.here("pop")

    assert done.returncode == 0, done.stderr
    assert live == INCH
    assert popped.returncode == 0, popped.stderr
    assert (world.site / "demo/units.py").read_text() == FILES["demo/units.py"]


def test_a_drafted_sketch_leaves_the_lock_up_to_date(world):
    world.here("new", "05-inch.patch")
    world.here("add", "demo/units.py")
    write(world, "demo/units.py", INCH)
    world.here("refresh")
    world.here("pop")

    drafted = world.run("sketch", "05-inch", "--queue", world.queue, "--write")
    pushed = world.here("push")

    assert drafted.returncode == 0, drafted.stderr
    assert pushed.returncode == 0, pushed.stderr


def test_what_a_newcomer_types_is_understood(world):
    world.here("new", "05-inch.patch")
    write(world, "demo/units.py", INCH)

    nothing = world.here("diff")
    pending = world.here("diff", "-z")
    shown = world.here("diff", "-z", "demo/units.py")
    missing = world.here("add", "units.py")
    world.here("remove", "units.py")
    world.here("refresh")
    write(world, "demo/units.py", INCH + "mile = 1609\n")
    popped = world.here("pop")

    said = (
        "edited, and in no patch: demo/units.py (patchq refresh puts it into 05-inch.patch;"
        " patchq diff -z demo/units.py shows it)\n"
    )
    assert (nothing.stdout, nothing.stderr) == ("", said)
    assert (pending.stdout, pending.stderr) == ("", said)
    assert "+inch = 0.0254\n" in shown.stdout
    assert missing.stderr == "units.py is not there yet: the patch will make it\n"
    assert "mend: patchq refresh" in popped.stderr
    assert "05-inch.patch   # keeps the edit there; patchq diff" in popped.stderr


def test_an_edited_module_that_lies_in_no_folder_is_seen(tmp_path):
    from tests.world import World, wheel

    world = World(tmp_path)
    archive = wheel(tmp_path, {"single.py": "x = 1\n"}, name="single")
    world.run("fetch", archive, "--into", world.site)
    target = ("--target", world.site)
    world.run("init", "q", "--distribution", "single", *target)
    made = world.run("new", "a.patch", *target)
    (world.site / "single.py").write_text("x = 22\n")

    status = world.run("status", *target)
    done = world.run("refresh", *target)

    assert made.returncode == 0, made.stderr
    assert "edited, and in no patch: single.py\n" in status.stdout
    assert "File single.py added to patch a.patch\n" in done.stderr


def test_files_are_named_as_they_lie_below_the_working_folder(world, tmp_path):
    site = tmp_path / "lib/python3.11/site-packages"
    site.parent.mkdir(parents=True)
    os.rename(world.site, site)

    from patchq.cli import paths
    from patchq.cli.target import Target

    here = Target(None, None, (), False, None, False, None)
    there = Target(None, None, ("gpu01",), False, None, False, None)
    name = os.path.relpath(site / "demo/units.py")

    assert paths.paths_of(here, (name,)) == ("demo/units.py",)
    assert paths.paths_of(here, ("demo/units.py",)) == ("demo/units.py",)
    assert paths.paths_of(there, ("demo/units.py",)) == ("demo/units.py",)
