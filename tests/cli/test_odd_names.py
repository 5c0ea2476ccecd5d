"""Files with names that mean something elsewhere: they are names here, in every verb."""

import pytest

from tests import world as worlds

pytestmark = pytest.mark.slow

NAMES = ("demo/C:x.py", "a: b.txt", "C:evil.py")


@pytest.fixture
def odd(tmp_path):
    """A world whose package has such files."""
    world = worlds.World(tmp_path / "w")
    world.root.mkdir()
    files = {**worlds.FILES, **dict.fromkeys(NAMES, "one = 1\n")}
    done = world.run("fetch", worlds.wheel(world.root, files), "--into", world.site)
    assert done.returncode == 0, done.stderr
    done = world.run("init", "q", "--distribution", "demo", "--target", world.site)
    assert done.returncode == 0, done.stderr
    return world


def test_files_called_like_drives_go_through_every_verb_and_back(odd):
    pristine = odd.tree()

    for step in (["new", "10-a.patch"], ["add", *NAMES, "D:new.py"]):
        done = odd.here(*step)
        assert done.returncode == 0, done.stderr
    for name in (*NAMES, "D:new.py"):
        (odd.site / name).write_text("two = 2\n")
    steps = [
        ["refresh"],
        ["files"],
        ["diff", "-P", "10-a.patch"],
        ["pop", "-a"],
        ["lint"],
        ["push", "-a"],
    ]
    told = {}
    for verb, *more in steps:
        done = odd.here(verb, *more) if verb != "lint" else odd.run("lint", "--queue", odd.queue)
        assert done.returncode == 0 or verb == "lint", (verb, done.stdout, done.stderr)
        told[verb] = done.stdout
    edited = odd.tree()
    popped = odd.here("pop", "-a")

    assert sorted(told["files"].splitlines()) == sorted([*NAMES, "D:new.py"])
    assert all(f"+++ b/{name}" in told["diff"] for name in NAMES)
    assert {name: edited[name] for name in (*NAMES, "D:new.py")} == dict.fromkeys(
        (*NAMES, "D:new.py"), b"two = 2\n"
    )
    assert popped.returncode == 0, popped.stderr
    assert odd.tree() == pristine


def test_a_folder_called_like_a_drive_leads_out_of_nothing(odd):
    odd.here("new", "10-a.patch")

    done = odd.here("add", "C:/../../evil.py")

    assert done.returncode != 0
    assert not (odd.root / "evil.py").exists()
