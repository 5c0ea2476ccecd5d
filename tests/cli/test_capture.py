"""What somebody edited by hand on a host: made a patch, or put back."""

import pytest

from patchq.errors import ExitCode
from tests.world import FILES

pytestmark = pytest.mark.slow

INCH = FILES["demo/units.py"] + "inch = 0.0254\n"


def test_an_edit_becomes_a_patch_that_is_on(world):
    before = world.tree()
    world.here("push", "10-pi")
    (world.site / "demo/units.py").write_text(INCH)
    (world.site / "demo/hot.py").write_text("x = 1\n")
    shapes = (world.site / "demo/shapes.py").read_text().replace("side", "edge")
    (world.site / "demo/shapes.py").write_text(shapes)

    done = world.here("capture", "15-hot.patch")

    assert done.returncode == 0, done.stderr
    assert world.here("status").returncode == 0
    assert world.here("files").stdout == "demo/hot.py\ndemo/shapes.py\ndemo/units.py\n"
    assert world.here("applied").stdout == "10-pi.patch\n15-hot.patch\n"
    edited = world.tree()
    assert world.here("pop", "-a").returncode == 0
    assert world.tree() == before
    assert world.here("push", "15-hot").returncode == 0
    assert world.tree() == edited


def test_nothing_edited_is_nothing_to_do(world):
    world.here("push", "10-pi")

    captured = world.here("capture", "15-hot.patch")
    restored = world.here("restore", "-a")

    assert captured.returncode == ExitCode.NOTHING_TO_DO
    assert restored.returncode == ExitCode.NOTHING_TO_DO
    assert not (world.series / "15-hot.patch").exists()


def test_restore_puts_back_what_the_stack_and_the_release_say(world):
    world.here("push", "10-pi")
    before = world.tree()
    (world.site / "demo/shapes.py").write_text("broken\n")
    (world.site / "demo/units.py").write_text(INCH)
    (world.site / "demo/data.txt").unlink()

    shown = world.here("restore", "-n", "-a")
    done = world.here("restore", "-a")

    assert shown.stdout.splitlines() == [
        "Would restore demo/data.txt",
        "Would restore demo/shapes.py",
        "Would restore demo/units.py",
    ], shown.stderr
    assert done.returncode == 0, done.stderr
    assert world.tree() == before
    assert world.here("status").returncode == 0
    assert world.here("pop", "-a").returncode == 0


def test_restore_needs_no_patch_and_leaves_no_state_but_its_receipt(world):
    before = world.tree()
    (world.site / "demo/units.py").write_text(INCH)
    (world.site / "demo/extra.py").write_text("x = 1\n")

    done = world.here("restore", "demo/units.py", "demo/extra.py")

    assert done.stdout == "Restoring demo/units.py\nRemoving demo/extra.py\n", done.stderr
    assert world.tree() == before
    left = sorted(path.name for path in (world.site / ".patchq/demo").iterdir())
    assert left == ["ledger.jsonl", "lock"]
