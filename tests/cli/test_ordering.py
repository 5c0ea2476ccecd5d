"""float, sink, pop --only: the same files in another order, or a refusal; quilt agrees."""

import json
import shutil
import subprocess

import pytest

from patchq.errors import ExitCode
from tests import quilt_lab
from tests import world as worlds

pytestmark = pytest.mark.slow

# Another patch of the file that 10-pi and 20-foot change, clear of 10-pi's lines.
SIDE = """\
Description: Squares have an edge

--- a/demo/shapes.py
+++ b/demo/shapes.py
@@ -15,5 +15,5 @@
     def __init__(self, side):
-        self.side = side
+        self.side = self.edge = side
 
     def area(self):
         return self.side**2 * metre / foot
"""


@pytest.fixture
def four(world):
    """A world with a fourth patch, all on."""
    world.write({**worlds.PATCHES, "40-side.patch": SIDE}, worlds.SKETCHES)
    world.run("lint", "--queue", world.queue, "--write")
    assert world.here("push", "-a").returncode == 0
    return world


def series(world):
    return [line for line in (world.series / "series").read_text().split("\n") if line]


def test_float_moves_no_file_and_the_record_comes_along(four):
    before = four.tree()

    done = four.here("float", "30-text")

    assert done.stdout == "Patch 30-text.patch is now above 40-side.patch\n", done.stderr
    order = ["10-pi.patch", "20-foot.patch", "40-side.patch", "30-text.patch"]
    assert series(four) == four.here("applied").stdout.split() == order
    assert four.tree() == before
    assert four.here("push", "-a").returncode == ExitCode.NOTHING_TO_DO
    assert four.here("pop").stdout.startswith("Removing patch 30-text.patch\n")
    assert four.here("pop", "-a").returncode == 0


def test_sink_gives_each_patch_the_lines_that_it_has_then(four):
    before = four.tree()

    done = four.here("sink", "--to", "20-foot", "40-side")

    assert done.stdout == "Patch 40-side.patch is now above 10-pi.patch\n", done.stderr
    assert four.tree() == before
    assert " / foot" not in (four.series / "40-side.patch").read_text()
    assert (
        "+        return self.side**2 * metre / foot"
        in (four.series / "20-foot.patch").read_text()
    )
    lint = four.run("lint", "--queue", four.queue)
    assert "stale" not in lint.stdout + lint.stderr


def test_patches_of_one_file_trade_places_and_pop_gives_what_is_below(world):
    world.write({"10-pi.patch": worlds.PI, "40-side.patch": SIDE.replace(" / foot", "")}, {})
    world.run("lint", "--queue", world.queue, "--write")
    world.here("push", "-a")
    before = world.tree()

    done = world.here("sink")

    assert done.stdout == "Patch 40-side.patch is now below 10-pi.patch, at the bottom\n"
    assert world.tree() == before
    assert "@@ -11,7 +11,7 @@" in (world.series / "40-side.patch").read_text()
    assert world.here("pop").stdout.startswith("Removing patch 10-pi.patch\n")
    text = world.tree()["demo/shapes.py"]
    assert b"self.side = self.edge = side" in text
    assert b"pi" not in text
    assert world.here("push").returncode == 0
    assert world.tree() == before


def test_a_patch_that_needs_a_name_of_another_is_not_good_below_it(world):
    """Their lines do not meet, so only the judge knows."""
    use = (
        "Description: Use pi for squares, too\n\n--- a/demo/shapes.py\n+++ b/demo/shapes.py\n"
        "@@ -18,2 +18,2 @@\n     def area(self):\n"
        "-        return self.side**2 * metre\n+        return self.side**2 * metre * pi\n"
    )
    world.write({"10-pi.patch": worlds.PI, "20-use.patch": use}, {})
    world.run("lint", "--queue", world.queue, "--write")
    assert world.here("push", "-a").returncode == 0
    before = world.tree(), series(world)

    done = world.here("sink", "20-use")

    assert done.returncode == ExitCode.CONFLICT
    assert done.stderr.startswith(
        "patchq: Patch 20-use.patch would not be good on what is below it then\n"
    )
    assert "pi" in done.stderr.split("\n")[1]
    assert (world.tree(), series(world)) == before


def test_a_refusal_names_the_patch_and_the_lines(four):
    before = four.tree(), series(four)

    done = four.here("float", "10-pi")

    assert done.returncode == ExitCode.CONFLICT
    assert done.stderr == (
        "patchq: Patch 10-pi.patch can not trade places with 20-foot.patch\n"
        "  why: demo/shapes.py lines 1-2, as 10-pi.patch leaves it: 20-foot.patch changes the"
        " same or the next lines\n"
        "  mend: patchq overlap   # shows which patches touch the same lines\n"
    )
    assert (four.tree(), series(four)) == before


def test_nothing_to_do(four):
    assert four.here("float").stderr == "Patch 40-side.patch is on top already\n"
    assert four.here("sink", "10-pi").stderr == "Patch 10-pi.patch is at the bottom already\n"
    below = four.here("sink", "--to", "20-foot", "10-pi")
    assert below.stderr == "Patch 10-pi.patch is below 20-foot.patch already\n"
    assert below.returncode == ExitCode.NOTHING_TO_DO
    up = four.here("sink", "--to", "30-text", "10-pi")
    assert up.returncode == ExitCode.USAGE
    assert up.stderr.startswith("patchq: Patch 10-pi.patch is below 30-text.patch already\n")


def test_what_is_not_on_moves_in_the_queue_alone(four):
    four.here("pop", "-a")

    one = four.here("float", "30-text")
    two = four.here("sink", "30-text")
    four.here("push", "10-pi")  # and 30-text, which is below it
    three = four.here("sink", "40-side")

    assert one.stdout == "Patch 30-text.patch is now above 40-side.patch\n"
    assert two.stdout == "Patch 30-text.patch is now below 10-pi.patch, at the bottom\n"
    assert three.stdout == "Patch 40-side.patch is now above 10-pi.patch\n"
    done = four.here("sink", "--to", "10-pi", "20-foot")
    assert done.returncode == ExitCode.FAILED
    assert "Patch 20-foot.patch is not applied, and 10-pi.patch is" in done.stderr


def test_a_dry_run_changes_nothing(four):
    before = series(four)

    done = four.here("sink", "-n", "30-text")

    assert done.stdout == "Patch 30-text.patch would be below 10-pi.patch, at the bottom\n"
    assert series(four) == before


def test_edits_that_are_in_no_patch_are_in_the_way(four):
    path = four.site / "demo/data.txt"
    path.write_text(path.read_text() + "five\n")

    done = four.here("sink", "30-text")

    assert done.returncode == ExitCode.FAILED
    assert "demo/data.txt has edits that are in no patch yet" in done.stderr
    assert path.read_text().endswith("five\n")


def test_one_patch_comes_off_from_the_middle_and_goes_on_again(four):
    full = four.tree()

    done = four.here("pop", "--only", "30-text")
    between = four.tree()
    pushed = four.here("push")

    assert done.stdout == (
        "Removing patch 30-text.patch\nRestoring demo/data.txt\n\nNow at patch 40-side.patch\n"
    ), done.stderr
    assert done.stderr.startswith(
        "Patch 30-text.patch is the next of the series now: above 40-side.patch\n"
    )
    changed = {path for path in full if full[path] != between.get(path)}
    assert changed == {"demo/data.txt", "demo-1.0.dist-info/RECORD"}
    assert pushed.returncode == 0, pushed.stderr
    assert four.tree() == full
    assert four.here("pop", "-a").returncode == 0


def test_undo_puts_it_on_again(four):
    full = four.tree()
    four.here("pop", "--only", "30-text")

    done = four.here("undo")

    assert done.returncode == 0, done.stderr
    assert four.tree() == full


def test_pop_only_is_all_or_nothing(four):
    before = four.tree(), series(four)

    refused = four.here("pop", "--only", "10-pi")
    dry = four.here("pop", "--only", "30-text", "-n")
    both = four.here("pop", "--only", "30-text", "-a")
    absent = four.here("pop", "--only", "50-none")

    assert refused.returncode == ExitCode.CONFLICT
    assert "10-pi.patch can not trade places with 20-foot.patch" in refused.stderr
    assert dry.stdout.startswith("Would remove patch 30-text.patch\n")
    assert both.returncode == ExitCode.USAGE
    assert absent.returncode == ExitCode.FAILED
    assert (four.tree(), series(four)) == before


def test_a_record_in_another_order_than_the_series_follows_it(four):
    """As a run leaves it that was cut short between the queue and the environment."""
    before = four.tree()
    kept = {path: path.read_bytes() for path in four.series.iterdir()}
    four.here("sink", "30-text")
    for path, data in kept.items():
        path.write_bytes(data)

    done = four.here("float", "40-side")

    assert done.stderr == "Patch 40-side.patch is on top already\n"
    assert four.here("applied").stdout.split() == series(four)
    assert four.tree() == before
    assert four.here("pop", "-a").returncode == 0


def test_another_environment_follows_the_series(four):
    """Its patches are on in the old order, with the texts of then."""
    other = four.root / "other"
    shutil.copytree(four.site, other, symlinks=True)
    before = four.tree()
    assert four.here("sink", "--to", "20-foot", "40-side").returncode == 0

    done = four.run("float", "--target", other, "--queue", four.queue)

    listed = four.run("applied", "--target", other, "--queue", four.queue).stdout.split()
    assert done.stderr == "Patch 30-text.patch is on top already\n"
    assert listed == series(four)
    assert (other / "demo/shapes.py").read_bytes() == before["demo/shapes.py"]
    assert four.run("pop", "-a", "--target", other, "--queue", four.queue).returncode == 0


def test_with_another_queues_patch_between(world):
    other = world.queue.parent / "r"
    (other / "1.0").mkdir(parents=True)
    (other / "queue.toml").write_text('distribution = "demo"\nsummary = "Other"\n')
    text = (
        "--- a/demo/units.py\n+++ b/demo/units.py\n@@ -1,2 +1,3 @@\n"
        " metre = 1\n foot = 0.3048\n+inch = 0.0254\n"
    )
    (other / "1.0/series").write_text("inch.patch\n")
    (other / "1.0/inch.patch").write_text("Description: Inches\n\n" + text)
    world.run("lint", "--queue", other, "--write")
    world.here("push", "2")
    assert world.run("push", "--target", world.site, "--queue", other).returncode == 0
    world.here("push", "30-text")
    before = world.tree()

    done = world.here("sink", "30-text")
    popped = world.here("pop", "--only", "30-text")

    assert done.returncode == 0, done.stderr
    assert world.here("status").returncode == 0
    assert popped.returncode == 0, popped.stderr
    assert world.here("push", "-a").returncode == 0
    assert world.tree() == before
    assert world.run("pop", "-a", "--target", world.site, "--queue", other).returncode == 0
    assert world.here("pop", "-a").returncode == 0


def tree(folder):
    """Return a plain tree with four patches in quilt's forms, made by quilt, none on."""
    lines = "".join(f"{n}\n" for n in range(40))
    lab = quilt_lab.Tree(folder, {"a": lines.encode(), "d/b": lines.encode()})

    def text(path, **changes):
        data = (folder / path).read_text().split("\n")
        return "\n".join(changes.get(f"_{row}", row) for row in data).encode()

    lab.patch("one.patch", {"a": text("a", _5="five")})
    lab.patch("two.patch", {"a": text("a", _9="nine"), "d/b": text("d/b", _9="nine")}, "-p0")
    lab.patch("three.patch", {"a": text("a", _13="13\nmore", _30="thirty")}, "-pab")
    lab.patch("four.patch", {"d/b": text("d/b", _20="twenty"), "new": b"new\n"}, "--no-index")
    result = files(folder)
    lab.run("pop", "-a")
    shutil.rmtree(folder / ".pc")
    return lab, result


def files(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not {".pc", ".patchq", "patches"} & set(path.parts)
    }


@pytest.mark.parametrize("on", [0, 4])
def test_quilt_puts_a_reordered_plain_tree_together_the_same(tmp_path, on):
    lab, result = tree(tmp_path / "t")
    world = worlds.World(tmp_path)
    where = ("--tree", lab.folder)
    if on:
        assert world.run("push", "-a", *where).returncode == 0

    done = [
        world.run("sink", "two", *where),
        world.run("float", "one", *where),
        world.run("sink", "--to", "three", "four", *where),
    ]

    assert [one.returncode for one in done] == [0, 0, 0], done
    names = (lab.folder / "patches/series").read_text()
    assert names == "two.patch -p0\nfour.patch\nthree.patch\none.patch\n"
    if on:
        assert files(lab.folder) == result
        assert world.run("pop", "--only", "four", *where).returncode == 0
        assert not (lab.folder / "new").exists()
        assert world.run("pop", "-a", *where).returncode == 0
    shutil.rmtree(lab.folder / ".patchq", ignore_errors=True)
    lab.run("push", "-a")
    assert files(lab.folder) == result


def test_json_has_the_new_order(four):
    document = four.json("sink", "30-text")

    assert document["series"][0] == "30-text.patch"
    assert json.dumps(document)


def test_git_or_the_other_verb_takes_it_back(four):
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", four.queue)
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "x")):
        subprocess.run([*git, *words], check=True)
    before = (four.series / "series").read_text()

    done = four.here("float", "30-text")

    verb, _, files = done.stderr.removeprefix("To take it back: ").partition("; the files alone: ")
    assert verb == "patchq sink --to 40-side.patch 30-text.patch"
    subprocess.run(files, shell=True, check=True, capture_output=True)
    assert (four.series / "series").read_text() == before
    assert four.here("float").returncode == ExitCode.NOTHING_TO_DO
    assert four.here("applied").stdout == before
