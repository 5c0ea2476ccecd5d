"""annotate: files whose name changes on the way, and patches of several queues."""

import pytest

from patchq.conversation import annotating, differing, graphing
from patchq.conversation.diffform import Form
from patchq.errors import PatchqError
from tests import world as worlds
from tests.conversation.conftest import Talk

RENAME = """\
Description: Another name

diff --git a/demo/data.txt b/demo/count.txt
similarity index 70%
rename from demo/data.txt
rename to demo/count.txt
--- a/demo/data.txt
+++ b/demo/count.txt
@@ -1,4 +1,4 @@
-one
+ONE
 two
 three
 four
"""
ALSO = """\
Description: Count from zero

--- a/demo/data.txt
+++ b/demo/data.txt
@@ -1,1 +1,2 @@
+zero
 one
"""


@pytest.fixture
def renamed(world):
    """A queue whose second patch gives a file another name."""
    for path in world.series.glob("*.patch"):
        path.unlink()
    world.write({"10-text.patch": worlds.TEXT, "20-name.patch": RENAME}, {})
    world.run("lint", "--queue", world.queue, "--write")
    return Talk(world.site, world.queue, world.root / "cache")


def test_a_file_is_followed_to_its_older_name(renamed):
    renamed.push()

    report = renamed.hold(annotating.annotate(renamed.aim, "demo/count.txt", None))

    assert report.lines == (
        *("2\tONE", "\ttwo", "\tthree", "1\tfour"),
        *("", "1\t10-text.patch", "2\t20-name.patch"),
    )


def test_so_it_is_before_the_patch_is_applied(renamed):
    report = renamed.hold(annotating.annotate(renamed.aim, "demo/count.txt", "20-name"))

    assert report.lines[:4] == ("2\tONE", "\ttwo", "\tthree", "1\tfour")
    assert not (renamed.site / "demo" / "count.txt").exists()


def test_a_name_that_was_given_up_has_no_lines(renamed):
    renamed.push()

    report = renamed.hold(annotating.annotate(renamed.aim, "demo/data.txt", None))

    assert report.lines == ("", "1\t10-text.patch", "2\t20-name.patch")


@pytest.fixture
def other(world, tmp_path):
    """Another queue for the same file, of which its only patch is on."""
    place = worlds.World(tmp_path / "other")
    place.write({"05-zero.patch": ALSO}, {})
    (place.queue.parent / "q").rename(place.queue.parent / "r")
    world.run("lint", "--queue", place.queue.with_name("r"), "--write")
    talk = Talk(world.site, place.queue.with_name("r"), world.root / "cache")
    talk.push()
    return talk


def test_patches_of_another_queue_are_named_with_it(other, talk):
    talk.push()

    report = talk.hold(annotating.annotate(talk.aim, "demo/data.txt", None))
    ahead = other.hold(annotating.annotate(other.aim, "demo/data.txt", "05-zero"))
    graph = talk.hold(graphing.graph(talk.aim, graphing.Ask(every=True)))

    assert report.lines == (
        *("1\tzero", "\tone", "\ttwo", "\tthree", "2\tfour"),
        *("", "1\t05-zero.patch (queue r)", "2\t30-text.patch"),
    )
    assert ahead.lines[:2] == ("1\tzero", "\tone")
    assert ahead.lines[-1] == "1\t05-zero.patch"
    assert not any("05-zero" in line for line in graph.lines)


def test_a_foretold_patch_is_put_on_the_other_queues(other, talk):
    report = talk.hold(annotating.annotate(talk.aim, "demo/data.txt", "30-text"))

    assert report.lines[0] == "1\tzero"
    assert report.lines[4] == "2\tfour"


def test_a_lost_original_is_an_error_and_no_guess(talk):
    talk.push()
    kept = list((talk.site / ".patchq" / "demo" / "originals").iterdir())
    for path in kept:
        path.unlink()
        path.write_text("other\n")
    shapes = talk.site / "demo" / "shapes.py"
    shapes.write_text("mine\n")
    assert kept

    with pytest.raises(PatchqError, match="does not add up"):
        talk.hold(differing.diff(talk.aim, differing.Ask("10-pi"), Form()))
