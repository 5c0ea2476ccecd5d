"""What somebody edited by hand on a host: made a patch, or put back."""

import shutil

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


def test_hosts_that_were_edited_alike_are_one_patch_and_other_edits_are_named(world):
    world.here("push", "10-pi")
    tables = []
    for number, text in enumerate((INCH, INCH, "metre = 2\n")):
        site = world.root / f"site{number}"
        shutil.copytree(world.site, site)
        (site / "demo/units.py").write_text(text)
        tables.append(f'[hosts.h{number}]\ncommand = "sh -c"\ntarget = "{site}"\n')
    (world.root / "hosts.toml").write_text("\n".join(tables))

    def run(verb, *words):
        return world.run(verb, *words, "--queue", world.queue)

    refused = run("capture", "15-hot.patch", "-H", "h[0-2]")
    nothing = not (world.series / "15-hot.patch").exists()
    done = run("capture", "15-hot.patch", "-H", "h[0-1]")
    status = run("status", "-H", "h[0-1]")
    popped = run("pop", "-a", "-H", "h[0-1]")

    assert refused.returncode == ExitCode.FAILED
    assert "one way on h0, h1; one way on h2" in refused.stderr
    assert "patchq capture 15-hot.patch -H h0,h1" in refused.stderr
    assert nothing
    assert done.returncode == 0, done.stderr
    assert status.returncode == 0, status.stdout
    assert popped.returncode == 0, popped.stderr
    for number in (0, 1):
        text = (world.root / f"site{number}" / "demo/units.py").read_text()
        assert text == FILES["demo/units.py"]
