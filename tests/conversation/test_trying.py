"""A push that has to import: what is imported, and what takes it off again."""

import pytest

from patchq.agent import serve
from patchq.conversation import move, trying
from patchq.conversation.goal import Upto
from patchq.errors import ExitCode
from patchq.transport.channel import AgentError, Reply

GONE = """\
Description: Units are not needed

diff --git a/demo/units.py b/demo/units.py
deleted file mode 100644
--- a/demo/units.py
+++ /dev/null
@@ -1,2 +0,0 @@
-metre = 1
-foot = 0.3048
diff --git a/demo/shapes.py b/demo/shapes.py
--- a/demo/shapes.py
+++ b/demo/shapes.py
@@ -1,4 +1,4 @@
-from .units import metre
+metre = 1
 
 
 class Circle:
"""


@pytest.fixture
def tried(talk):
    def tried(*modules, upto=None):
        def push():
            return move.push(talk.aim, talk.ground, Upto(upto, upto is None))

        return talk.hold(trying.tried(talk.aim, talk.ground, push, modules))

    return tried


def test_the_touched_modules_are_imported(tried, talk):
    done = tried()

    assert done.exit_code is ExitCode.DONE
    assert done.document["import"]["imported"] == ["demo.shapes", "demo.more"]
    assert done.notes[0] == "Imported in a fresh process: demo.shapes, demo.more"
    assert talk.asked[-2:] == ["commit", "import"]


def test_a_file_that_the_push_takes_away_is_not_imported(world, tried):
    world.write({"10-gone.patch": GONE}, {})
    linted = world.run("lint", "--queue", world.queue, "--write")
    assert (world.series / "series.lock").is_file(), linted.stderr

    done = tried()

    assert done.exit_code is ExitCode.DONE, done.notes
    assert done.document["import"]["imported"] == ["demo.shapes"]
    assert done.document["removed"] == ["demo/units.py"]


def test_where_only_data_is_touched_nothing_is_run(tried, talk):
    tried(upto="20-foot.patch")

    done = tried()

    assert done.exit_code is ExitCode.DONE
    assert "import" not in talk.asked


def test_what_queue_toml_names_is_imported(world, tried):
    with (world.queue / "queue.toml").open("a") as file:
        file.write('imports = ["demo"]\n')

    assert tried().document["import"]["imported"] == ["demo"]


def test_a_failure_takes_the_push_off_byte_for_byte(world, tried):
    before = world.tree()

    done = tried("demo.nothing")

    assert done.exit_code is ExitCode.FAILED
    assert done.document["taken_off"] is True
    assert done.document["why"].startswith("import demo.nothing: ModuleNotFoundError: ")
    assert "The push was taken off again." in done.notes
    assert world.tree() == before


def test_a_failure_leaves_what_was_on_before(world, tried, talk):
    talk.push("10-pi.patch")
    before = world.tree()

    done = tried("demo.nothing")

    assert done.document["top"] == "10-pi.patch"
    assert world.tree() == before


def test_a_process_that_ends_without_a_word_tells_what_it_printed(world, tried):
    (world.site / "ends.py").write_text("import os\nprint('bye', flush=True)\nos._exit(5)\n")

    done = tried("ends")

    assert done.document["why"] == "import ends: ended: the process ended with 5"
    assert "    bye" in done.notes


def test_an_import_that_cannot_be_tried_takes_the_push_off_too(world, talk):
    before = world.tree()

    def push():
        done = yield from move.push(talk.aim, talk.ground, Upto(None, True))
        info = world.site / "demo-1.0.dist-info"
        info.rename(world.root / "away")
        return done

    conversation = trying.tried(talk.aim, talk.ground, push, ("demo",))
    request = next(conversation)
    done = None
    while done is None:
        try:
            request = step(conversation, request, world)
        except StopIteration as stop:
            done = stop.value

    assert done.document["taken_off"] is True
    assert "not tried" in done.document["why"]
    assert world.tree() == before


def step(conversation, request, world):
    """Answer one request; the dist-info that went comes back once its absence was told."""
    answer, blobs = serve.respond(dict(request.message), dict(request.blobs))
    away = world.root / "away"
    if request.message["op"] == "import" and away.exists():
        away.rename(world.site / "demo-1.0.dist-info")
    if "error" in answer:
        error = answer["error"]
        return conversation.throw(
            AgentError(error["word"], error["what"], why=error["why"], mend=error["mend"])
        )
    return conversation.send(Reply(answer, blobs))


def test_a_push_that_cannot_be_taken_off_says_so(world, talk):
    """Somebody edits a pushed file within the import."""

    (world.site / "edits.py").write_text(
        f"open({str(world.site / 'demo/shapes.py')!r}, 'a').write('# mine\\n')\nraise ValueError\n"
    )

    def push():
        return move.push(talk.aim, talk.ground, Upto(None, True))

    done = talk.hold(trying.tried(talk.aim, talk.ground, push, ("edits",)))

    assert done.exit_code is ExitCode.FAILED
    assert done.document["taken_off"] is False
    assert "It could not be taken off: patchq status" in done.notes
    assert "# mine" in (world.site / "demo/shapes.py").read_text()


def test_a_dry_run_and_a_series_that_is_on_import_nothing(tried, talk):
    talk.dry_run = True
    tried()
    assert "import" not in talk.asked
    talk.dry_run = False
    tried()

    assert tried().exit_code is ExitCode.NOTHING_TO_DO
    assert "import" not in talk.asked
