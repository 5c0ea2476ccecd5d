"""What became of a commit whose answer was lost: told once, and true from then on."""

import json
import tempfile
from pathlib import Path

import agent_lab
import crash_lab
import pytest
from agent_lab import AgentError, Controller, snapshot

PUSH = {"demo/a.py": b"x = 2\n", "demo/b.py": None, "demo/n.py": b"n = 1\n"}
ID = "0123456789abcdef"


def settle(controller, name=ID):
    receipt = {"who": "tester", "whence": "desk", "verb": "push"}
    return controller.ask(controller.message("settle", id=name, receipt=receipt))[0]["receipt"]


def receipts(site):
    ledger = site / ".patchq/demo/ledger.jsonl"
    return [json.loads(line) for line in ledger.read_bytes().splitlines()]


def test_a_commit_that_was_done_is_found_by_its_id(site, controller):
    controller.push(PUSH, id=ID)

    found = settle(controller)

    assert found == receipts(site)[0]
    assert found["id"] == ID
    assert len(receipts(site)) == 1


def test_a_commit_that_was_not_done_is_forbidden_for_good(site, controller):
    request, blobs = controller.push_request(PUSH, id=ID)
    before = snapshot(site)

    assert settle(controller) is None
    with pytest.raises(AgentError) as caught:
        controller.ask(request, blobs)

    assert caught.value.word == "settled"
    assert snapshot(site) == before
    told = receipts(site)[0]
    assert (told["id"], told["verb"], told["outcome"]) == (ID, "settle", "abandoned")
    assert (told["who"], told["whence"], told["applied"]) == ("tester", "desk", [])


def test_settling_twice_says_the_same(site, controller):
    assert settle(controller) is None
    assert settle(controller) is None

    controller.push(PUSH, id="fedcba9876543210")

    assert settle(controller) is None
    assert settle(controller, "fedcba9876543210")["verb"] == "push"
    assert controller.survey(want=["ledger"])["ledger_broken"] is None


def test_the_same_commit_is_never_done_twice(controller):
    request, blobs = controller.push_request(PUSH, id=ID)
    controller.ask(request, blobs)
    with pytest.raises(AgentError) as caught:
        controller.ask(request, blobs)
    assert caught.value.word == "settled"


def test_an_abandoned_commit_leaves_the_stack_in_the_ledger_as_it_was(site, controller):
    controller.push(PUSH, id="fedcba9876543210")

    assert settle(controller) is None

    done, given_up = receipts(site)
    assert given_up["applied"] == done["applied"]
    assert given_up["generation"] == 1
    assert given_up["effect"]["before"] == given_up["effect"]["after"] == done["effect"]["after"]
    controller.pop()


@pytest.mark.parametrize("name", ["", "../x", 5, None, "a/b"])
def test_a_name_that_is_none_is_refused(controller, name):
    with pytest.raises(AgentError) as caught:
        settle(controller, name)
    assert caught.value.word == "bad-request"


def test_a_place_where_nothing_is_installed_has_done_nothing(tmp_path):
    assert settle(Controller(tmp_path)) is None
    assert not list(tmp_path.iterdir())


@pytest.fixture
def fresh():
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as one:
        yield lambda number: agent_lab.make_site(Path(one, number, "site"))


@pytest.mark.slow
def test_a_commit_killed_before_any_call_is_settled_as_old_or_new(fresh):
    answers = []

    def attempt(number):
        site = fresh(str(number))
        controller, before = Controller(site), snapshot(site)
        request, blobs = controller.push_request(PUSH, id=ID)
        code = crash_lab.stopped(lambda: agent_lab.here(request, blobs), number)
        found = settle(controller)
        answers.append(found is not None)
        assert (snapshot(site) == before) is (found is None)
        assert ((site / "demo/a.py").read_bytes() == PUSH["demo/a.py"]) is (found is not None)
        with pytest.raises(AgentError) as caught:
            controller.ask(request, blobs)
        assert caught.value.word == "settled"
        return code

    assert crash_lab.every(attempt) > 40
    assert answers == sorted(answers)
    assert {*answers} == {False, True}


@pytest.mark.slow
@pytest.mark.parametrize("stop", [20, 45])
def test_settling_that_is_killed_is_settled_by_the_next(fresh, stop):
    def attempt(number):
        site = fresh(str(number))
        controller, before = Controller(site), snapshot(site)
        request, blobs = controller.push_request(PUSH, id=ID)
        crash_lab.stopped(lambda: agent_lab.here(request, blobs), stop)
        code = crash_lab.stopped(lambda: settle(controller), number)
        found = settle(controller)
        assert (snapshot(site) == before) is (found is None)
        assert settle(controller) == found
        assert controller.survey(want=["ledger"])["ledger_broken"] is None
        return code

    assert crash_lab.every(attempt) > 3
