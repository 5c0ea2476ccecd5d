"""What a push and a pop ask, in which order, and what they refuse."""

import json
import shutil

import pytest

from patchq.conversation import move, names, undo
from patchq.conversation.goal import Upto
from patchq.conversation.ledger import log as receipts_of
from patchq.errors import ConflictError, ExitCode, PatchqError
from patchq.queue.verdicts import VerdictCache
from patchq.transport.channel import AgentError


def test_a_push_is_two_round_trips(talk):
    report = talk.push()

    assert talk.asked == ["survey", "commit"]
    assert report.document["patches"] == ["10-pi.patch", "20-foot.patch", "30-text.patch"]
    assert report.document["chosen"] == "content"
    assert set(report.document["kept"].values()) == {"inode"}


def test_a_pop_of_all_is_two_round_trips(talk):
    talk.push()

    report = talk.pop()

    assert talk.asked == ["survey", "commit"]
    assert report.document["top"] is None


def test_a_pop_to_between_asks_for_the_original_too(talk):
    talk.push()

    talk.pop("10-pi")

    assert talk.asked == ["survey", "read", "commit"]


def test_a_push_without_known_verdicts_judges_and_remembers(talk):
    shutil.rmtree(talk.cache / "verdicts")

    talk.push()

    assert talk.asked == ["survey", "commit"]
    assert len(list((talk.cache / "verdicts").glob("*.json"))) == 3


def test_a_verdict_that_does_not_hold_is_not_trusted_to_hold(talk):
    shutil.rmtree(talk.cache / "verdicts")
    talk.push()
    talk.pop()
    for path in (talk.cache / "verdicts").glob("*.json"):
        path.write_text(json.dumps({"holds": "yes"}))

    assert VerdictCache(talk.cache / "verdicts").get(path.stem) == {"holds": "yes"}
    assert talk.push().exit_code == ExitCode.DONE


def test_a_neighbour_that_differs_here_is_judged_on_this_hosts_text(talk):
    units = talk.site / "demo" / "units.py"
    units.write_text("metre = 1\n")

    report = talk.push()

    assert report.exit_code == ExitCode.CONFLICT
    (conflict,) = report.document["conflicts"]
    assert conflict["kind"] == "judgement"
    assert "foot" in conflict["message"]
    assert talk.asked[-1] != "commit"


@pytest.mark.slow
def test_an_upgrade_under_a_pushed_stack_is_orphaned_and_the_next_push_goes_on(talk, world):
    talk.push()
    for path in (world.site / "demo", world.site / "demo-1.0.dist-info"):
        shutil.rmtree(path)
    again = world.root / "again"
    world.run("fetch", "demo==1.0", "--into", again)
    for path in again.iterdir():
        shutil.move(path, world.site / path.name)
    before = world.tree()

    status = talk.hold(names.status(talk.aim))
    with pytest.raises(PatchqError, match="are gone"):
        talk.pop()
    report = talk.push()
    talk.pop()

    assert status.exit_code == ExitCode.FINDING
    assert status.document["orphaned"]
    assert report.exit_code == ExitCode.DONE
    assert world.tree() == before


@pytest.mark.slow
def test_two_queues_of_disjoint_files_stack(talk, world):
    other = world.queue.parent / "other"
    shutil.copytree(world.queue, other)
    (other / "1.0" / "series").write_text("30-text.patch\n")
    (world.queue / "1.0" / "series").write_text("10-pi.patch\n20-foot.patch\n")
    for queue in (other, world.queue):
        world.run("lint", "--queue", queue, "--write")
    before = world.tree()

    first = talk.push()
    talk.queue = other
    second = talk.push()
    talk.queue = world.queue
    below = talk.pop()
    talk.queue = other
    talk.pop()

    assert [r.exit_code for r in (first, second, below)] == [ExitCode.DONE] * 3
    assert world.tree() == before


def test_another_queues_patch_of_the_same_file_is_named(talk, world):
    other = world.queue.parent / "other"
    shutil.copytree(world.queue, other)
    talk.push("1")
    talk.queue = other

    report = talk.push("1")

    assert report.exit_code == ExitCode.CONFLICT
    assert report.document["conflicts"][0]["kind"] == "another queue's patch"


@pytest.mark.slow
def test_the_patch_edited_after_its_push_is_a_conflict(talk, world):
    talk.push("1")
    path = world.series / "10-pi.patch"
    path.write_text(path.read_text().replace("2 * metre\n \n", "2 * metre  # mine\n \n"))
    world.run("lint", "--queue", world.queue, "--write")

    report = talk.push()

    assert report.document["conflicts"][0]["kind"] == "changed patch"
    assert talk.pop().exit_code == ExitCode.DONE


def test_what_changed_between_survey_and_commit_is_found_by_the_agent(talk):
    conversation = move.push(talk.aim, talk.ground, Upto(None, True))
    request = next(conversation)
    from patchq.agent import serve
    from patchq.transport.channel import Reply

    answer, blobs = serve.respond(dict(request.message), {})
    request = conversation.send(Reply(answer, blobs))
    path = talk.site / "demo" / "shapes.py"
    path.write_text(path.read_text() + "# just now\n")

    answer, _ = serve.respond(dict(request.message), dict(request.blobs))

    assert answer["error"]["word"] == "changed"
    assert "demo/shapes.py" in answer["error"]["what"] + answer["error"]["why"]
    assert path.read_text().endswith("# just now\n")
    assert (talk.site / "demo" / "data.txt").read_text() == "one\ntwo\nthree\n"


def test_undo_of_what_another_queue_did_is_refused(talk, world):
    talk.push("1")
    other = world.queue.parent / "other"
    shutil.copytree(world.queue, other)
    talk.queue = other

    with pytest.raises(PatchqError, match="the last receipt is of queue q"):
        talk.hold(undo.undo(talk.aim, talk.ground))


def test_an_agents_refusal_comes_out_of_the_conversation(talk):
    (talk.site / "demo-1.0.dist-info" / "RECORD").unlink()
    (talk.site / "demo-1.0.dist-info" / "INSTALLER").write_text("pip\n")

    with pytest.raises((AgentError, PatchqError)) as caught:
        talk.push()

    assert not isinstance(caught.value, ConflictError)
    assert "RECORD" in caught.value.what + caught.value.why


@pytest.mark.slow
def test_a_result_that_the_environments_python_can_not_compile_is_refused(talk, world):
    path = world.series / "30-text.patch"
    path.write_text(
        "--- /dev/null\n+++ b/demo/late.py\n@@ -0,0 +1 @@\n+def f(): return lambda: (yield)\n"
        "--- /dev/null\n+++ b/demo/bad.py\n@@ -0,0 +1 @@\n+return 1\n"
    )
    world.run("lint", "--queue", world.queue, "--write")
    before = world.tree()

    try:
        refused = talk.push().exit_code == ExitCode.CONFLICT
    except AgentError as error:
        refused = error.word == "does-not-compile"

    assert refused
    assert world.tree() == before


def test_a_ledger_that_is_too_long_for_an_answer_gives_its_newest_receipts(talk):
    talk.push()
    ledger = talk.site / ".patchq" / "demo" / "ledger.jsonl"
    line = ledger.read_text()
    one = json.loads(line)
    changes = [[f"demo/m{n}.py", *one["changes"][0][1:]] for n in range(2000)]
    old = json.dumps({**one, "id": "0" * 16, "changes": changes})
    ledger.write_text(f"{old}\n" * 40 + line)

    receipts = talk.hold(receipts_of(talk.aim)).document["receipts"]

    assert 1 < len(receipts) < 41
    assert receipts[-1]["id"] == one["id"]
