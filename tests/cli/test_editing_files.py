"""Odd files, odd names, odd queues under the editing verbs: no edit is lost, nothing half done."""

import os
import shutil
import subprocess
import sys

import pytest

from patchq.errors import ExitCode
from tests.world import FILES

pytestmark = pytest.mark.slow

INCH = FILES["demo/units.py"] + "inch = 0.0254\n"


def begin(world, *paths):
    """Make a patch on top, with some files in it."""
    made = world.here("new", "05-mine.patch")
    assert made.returncode == 0, made.stderr
    if paths:
        added = world.here("add", *paths)
        assert added.returncode == 0, added.stderr


@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_a_file_edited_through_an_installers_link_gets_a_place_of_its_own(world, link):
    path, cached = world.site / "demo/units.py", world.root / "cached.py"
    shutil.copy2(path, cached)
    path.unlink()
    link(cached, path)
    begin(world)
    with path.open("a") as file:  # before `add`: this reaches the cache, and is the user's doing
        file.write("inch = 0.0254\n")

    done = world.here("refresh")
    with path.open("a") as file:
        file.write("yard = 0.9144\n")
    again = world.here("refresh")
    edited = path.read_text()
    popped = world.here("pop")

    assert (done.returncode, again.returncode, popped.returncode) == (0, 0, 0), done.stderr
    assert cached.read_text() == INCH
    assert edited == INCH + "yard = 0.9144\n"
    assert path.read_text() == FILES["demo/units.py"]
    assert world.here("push").returncode == 0
    assert path.read_text() == edited


def test_folders_made_by_hand_for_a_new_file_go_with_it(world):
    begin(world, "demo/told/of/it.txt")
    for name in ("demo/told/of/it.txt", "demo/fresh/deep/mod.py", "demo/shared/one.py"):
        (world.site / name).parent.mkdir(parents=True)
        (world.site / name).write_text("x = 1\n")
    (world.site / "demo/shared/mine.txt").write_text("of somebody else\n")

    done = world.here("refresh")
    popped = world.here("pop")

    assert (done.returncode, popped.returncode) == (0, 0), done.stderr + popped.stderr
    assert not (world.site / "demo/told").exists()
    assert not (world.site / "demo/fresh").exists()
    assert sorted(os.listdir(world.site / "demo/shared")) == ["mine.txt"]
    assert world.here("push").returncode == 0
    assert (world.site / "demo/fresh/deep/mod.py").is_file()
    assert world.here("pop").returncode == 0
    assert not (world.site / "demo/fresh").exists()


def test_a_name_that_no_patch_can_have_keeps_no_other_edit_out(world):
    begin(world)
    (world.site / "demo/tab\t.py").write_text("x = 1\n")
    (world.site / "demo/a b%20ü.py").write_text("x = 1\n")

    done = world.here("refresh")

    assert done.returncode == 0, done.stderr
    assert world.here("files").stdout == "demo/a b%20ü.py\n"
    assert (world.site / "demo/tab\t.py").exists()


def test_a_folder_in_place_of_a_file_is_refused_before_anything_is_written(world):
    begin(world, "demo/units.py")
    before = (world.series / "05-mine.patch").read_bytes()
    (world.site / "demo/units.py").unlink()
    (world.site / "demo/units.py").mkdir()

    done = world.here("refresh")

    assert done.returncode == ExitCode.FAILED
    assert "why: it is a folder, not a file\n" in done.stderr
    assert (world.series / "05-mine.patch").read_bytes() == before


def test_white_space_is_stripped_from_a_file_that_no_patch_had(world):
    begin(world)
    (world.site / "demo/units.py").write_text(INCH + "yard = 1  \n")

    done = world.here("refresh", "--strip-trailing-whitespace")

    assert done.returncode == 0, done.stderr
    assert "File demo/units.py added to patch 05-mine.patch\n" in done.stderr
    assert (world.site / "demo/units.py").read_text() == INCH + "yard = 1\n"
    assert world.here("status").returncode == 0
    assert (world.series / "05-mine.patch").read_text().count("diff --git") == 1
    assert world.here("pop").returncode == 0
    assert (world.site / "demo/units.py").read_text() == FILES["demo/units.py"]


@pytest.mark.parametrize(
    "name", ["#fix", "", "-x", "two words", "../x.patch", "/x", "series", "series.lock", "a.pyi"]
)
def test_what_no_series_can_name_is_no_patchs_name(world, name):
    begin(world, "demo/units.py")
    (world.site / "demo/units.py").write_text(INCH)
    before = {path: path.read_bytes() for path in world.queue.rglob("*") if path.is_file()}

    done = [world.here(verb, name) for verb in ("new", "rename")]
    if name:
        done += [world.here("fork", name), world.here("refresh", f"-z{name}")]

    assert {one.returncode for one in done} <= {ExitCode.FAILED, ExitCode.USAGE}
    after = {path: path.read_bytes() for path in world.queue.rglob("*") if path.is_file()}
    assert after == before
    assert world.here("applied").stdout == "05-mine.patch\n"


def test_a_patch_in_a_folder_leaves_no_folder_behind(world):
    assert world.here("new", "fixes/of/05-mine.patch").returncode == 0

    renamed = world.here("rename", "other/05-mine.patch")
    deleted = world.here("delete", "-r")

    assert (renamed.returncode, deleted.returncode) == (0, 0), renamed.stderr + deleted.stderr
    assert not (world.series / "fixes").exists()
    assert not (world.series / "other").exists()


def test_a_queue_on_a_read_only_file_system_is_refused_before_anything_changes(world):
    assert world.here("push", "10-pi").returncode == 0
    before = world.tree()
    verbs = "new X.patch|add demo/units.py|rename X.patch|fork|delete -r|shell true|sink 30-text"
    lines = [
        f"{sys.executable} -m patchq {verb.split()[0]} --target site --queue queues/q"
        f" {' '.join(verb.split()[1:])}; echo == $?"
        for verb in verbs.split("|")
    ]
    mount = "mount --bind queues queues && mount -o remount,bind,ro queues"

    done = subprocess.run(
        [
            *"unshare --user --map-root-user --mount sh -c".split(),
            f"{mount} || exit 9; " + "\n".join(lines),
        ],
        cwd=world.root,
        env={**os.environ, "PATCHQ_CACHE": str(world.root / "cache"), "PATCHQ_QUEUES": ""},
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.stdout.count("== 1\n") == len(lines), done.stdout + done.stderr
    assert done.stderr.count("can not be written\n") == len(lines), done.stderr
    assert world.tree() == before
    assert world.here("applied").stdout == "10-pi.patch\n"


def test_verbs_that_run_at_once_wait_for_each_other(world):
    command = [sys.executable, "-m", "patchq", "new", "--target", "site", "--queue", "queues/q"]
    environ = {**os.environ, "PATCHQ_CACHE": str(world.root / "cache"), "PATCHQ_QUEUES": ""}
    names = [f"0{number}-new.patch" for number in range(4)]

    running = [
        subprocess.Popen([*command, name], cwd=world.root, env=environ, stdout=subprocess.PIPE)
        for name in names
    ]
    for one in running:
        one.communicate(timeout=60)

    assert [one.returncode for one in running] == [0] * 4
    applied = world.here("applied").stdout.split()
    assert sorted(applied) == names
    assert world.here("series").stdout.split()[:4] == applied
    assert world.here("status").returncode == 0
