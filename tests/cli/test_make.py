"""`patchq sketch`: shown, written, never over what somebody wrote."""

import json

import pytest

from tests import world as worlds

pytestmark = pytest.mark.slow

DRAFT = (
    "# Drafted by `patchq sketch` from 1.0/10-pi.patch: edit it to say what the patch is for.\n"
    "# in demo/shapes.py\n"
    "from math import pi\n\n\n"
    "class Circle:\n"
    "    def area(self):\n"
    "        return pi * _ * _\n"
)


def sketch(world, *args):
    return world.run("sketch", *args, "--queue", world.queue)


@pytest.mark.parametrize("name", ["10-pi", "10-pi.patch"])
def test_a_draft_is_printed(world, name):
    done = sketch(world, name)

    assert done.stdout == DRAFT
    assert (done.returncode, done.stderr) == (0, "")


def test_a_draft_is_made_on_top_of_the_patches_below(world):
    done = sketch(world, "20-foot", "--release", "1.0")

    assert "from .units import foot\n" in done.stdout
    assert "from math" not in done.stdout
    assert "# in demo/more.py\nUNIT = ...\n" in done.stdout


def test_what_is_written_passes_lint_and_is_never_replaced_unasked(world):
    path = world.queue / "post" / "10-pi.pyi"
    kept = path.read_text()

    refused = sketch(world, "10-pi", "--write")
    assert refused.returncode == 1
    assert f"{path} is there already" in refused.stderr
    assert f"mend: patchq sketch 10-pi --queue {world.queue} --write --force\n" in refused.stderr
    assert path.read_text() == kept

    done = sketch(world, "10-pi", "--write", "--force")
    assert done.stdout == f"{path} written; 2 of 2 hunks guarded\n"
    assert path.read_text() == DRAFT
    linted = world.run("lint", "--queue", world.queue)
    assert "1.0 10-pi.patch: good, 2 claims false below" in linted.stdout


def test_a_hunk_that_cannot_be_guarded_is_named_and_is_exit_code_1(world):
    (world.series / "10-pi.patch").write_text(worlds.PI + worlds.TEXT.split("\n\n", 1)[1])

    done = sketch(world, "10-pi")
    document = json.loads(sketch(world, "10-pi", "--json").stdout)

    said = "Not guarded: hunk 1, demo/data.txt, line 4: the file is not Python"
    assert done.stdout.split("\n")[1] == f"# {said}"
    assert done.stderr == f"{said}\n"
    assert done.returncode == document["exit_code"] == 1
    assert [hunk["word"] for hunk in document["hunks"]] == ["guarded", "guarded", "by nature"]
    assert document["sketch"] == done.stdout
    assert document["written"] is None


def test_a_patch_without_python_gets_no_file(world):
    done = sketch(world, "30-text", "--write")

    path = world.queue / "post" / "30-text.pyi"
    assert done.returncode == 1
    assert not path.exists()
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1] == (
        f"{path} not written: no sketch can speak of it: the file is not Python"
    )


def test_the_mend_keeps_the_release_that_was_named(world):
    refused = sketch(world, "10-pi", "--release", "1.0", "--write")

    assert f"sketch 10-pi --release 1.0 --queue {world.queue} --write --force" in refused.stderr


def test_force_without_write_is_a_usage_error(world):
    done = sketch(world, "10-pi", "--force")

    assert done.returncode == 64
    assert f"mend: patchq sketch 10-pi --queue {world.queue} --write --force" in done.stderr


def test_an_unknown_patch_and_a_patch_that_does_not_fit_are_told(world):
    unknown = sketch(world, "40-none")
    assert unknown.returncode == 64
    assert "has no patch 40-none" in unknown.stderr

    path = world.series / "20-foot.patch"
    path.write_text(path.read_text().replace(" from math import pi", " from math import tau"))
    unfit = sketch(world, "20-foot")
    assert unfit.returncode == 1
    assert "20-foot.patch does not apply to demo 1.0" in unfit.stderr
