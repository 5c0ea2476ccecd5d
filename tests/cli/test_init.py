"""init: a queue where there was none, for what is installed; a plain tree's folder."""

import subprocess

import pytest

from patchq.errors import ExitCode
from patchq.queue import store

pytestmark = pytest.mark.slow


def init(world, *args):
    return world.run("init", *args, "--target", world.site)


def test_a_queue_is_made_and_the_next_command_works_as_it_is_said(world):
    done = init(world, "mine", "--distribution", "demo")

    folder = world.root / "queues/mine"
    assert done.stdout == (
        f"Queue mine for demo 1.0 is in {folder}: queue.toml, .gitattributes, post/\n"
        f"Next: patchq new NAME.patch --queue {folder} --target {world.site}\n"
    ), done.stderr
    assert (store.open(folder).name, store.open(folder).distribution) == ("mine", "demo")
    assert sorted(path.name for path in folder.iterdir()) == [
        ".gitattributes",
        "post",
        "queue.toml",
    ]
    words = done.stdout.splitlines()[1].removeprefix("Next: patchq ").replace("NAME", "1")
    made = world.run(*words.split())
    assert made.stdout == "Patch 1.patch is now on top\n", made.stderr
    assert (folder / "1.0/series").read_text() == "1.patch\n"


def test_the_distribution_is_the_queues_name_if_none_is_named(world):
    assert init(world, "demo").returncode == 0
    assert (world.root / "queues/demo/queue.toml").read_text().startswith('distribution = "demo"')


@pytest.mark.parametrize(
    ("args", "what", "code"),
    [
        (("q", "--distribution", "demo"), "there is a queue", ExitCode.FAILED),
        (("other",), "other is not installed", ExitCode.USAGE),
        (("x", "--distribution", "other"), "other is not installed", ExitCode.USAGE),
        ((), "init needs the name of a queue", ExitCode.USAGE),
        (("a/../../b", "--distribution", "demo"), "a queue can not be called", ExitCode.USAGE),
        (("..", "--distribution", "demo"), "a queue can not be called", ExitCode.USAGE),
        (("-n", "-x", "--distribution", "demo"), "No such option", ExitCode.USAGE),
        (("-n", "mine", "--queue", "q", "--distribution", "demo"), "do not go together", 64),
    ],
)
def test_refusals_make_nothing(world, args, what, code):
    before = sorted(world.root.rglob("queue.toml"))

    done = init(world, *args)

    assert done.returncode == code
    assert what in done.stderr
    assert sorted(world.root.rglob("queue.toml")) == before


def test_a_dry_run_makes_nothing(world):
    done = init(world, "mine", "--distribution", "demo", "-n")

    assert done.stdout == "Would make queue mine for demo\n"
    assert not (world.root / "queues/mine").exists()


def test_git_changes_no_line_end_of_a_patch(world):
    init(world, "mine", "--distribution", "demo")
    folder = world.root / "queues/mine"
    (folder / "1.0").mkdir()
    (folder / "1.0/a.patch").write_bytes(b"why\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\r\n+2\r\n")

    def git(*words):
        return subprocess.run(
            ["git", "-c", "core.autocrlf=true", *words],
            cwd=folder,
            check=True,
            capture_output=True,
        ).stdout

    git("init", "-q")
    git("add", ".")

    assert git("cat-file", "blob", ":1.0/a.patch") == (folder / "1.0/a.patch").read_bytes()


def test_a_plain_trees_folder_is_made_once(world, tmp_path):
    done = world.run("init", "--tree", tmp_path)
    again = world.run("init", "--tree", tmp_path)
    environ = {"QUILT_PATCHES": "debian/patches"}
    other = world.run("init", "--tree", tmp_path, environ=environ)

    assert done.stdout == (
        f"{tmp_path}/patches is made\nNext: patchq new NAME.patch --tree {tmp_path}\n"
    )
    assert again.returncode == ExitCode.FAILED
    assert f"there is {tmp_path}/patches already" in again.stderr
    assert other.returncode == 0
    assert (tmp_path / "debian/patches").is_dir()


def test_who_has_no_queue_yet_is_told_to_make_one(world):
    (world.root / "queues").rename(world.root / "away")

    none = world.run("new", "a.patch", "--target", world.site)
    world.run("init", "demo", "--target", world.site)
    early = world.run("push", "--target", world.site)

    assert "make a queue first: patchq init NAME\n" in none.stderr
    assert "queue demo has no patch yet\n" in early.stderr
    assert f"mend: patchq new --target {world.site} NAME.patch" in early.stderr
