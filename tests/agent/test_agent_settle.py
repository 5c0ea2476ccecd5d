"""What became of a commit whose answer was lost: told once, and true from then on."""

import json
import os
import subprocess
import tempfile
from pathlib import Path

import agent_lab
import crash_lab
import pytest
from agent_lab import AgentError, Controller, snapshot

PUSH = {"demo/a.py": b"x = 2\n", "demo/b.py": None, "demo/n.py": b"n = 1\n"}
ID = "0123456789abcdef"


def asked(controller, name=ID, generation=0):
    receipt = {"who": "tester", "whence": "desk", "verb": "push"}
    more = {"receipt": receipt, "expect": {"generation": generation}}
    return controller.ask(controller.message("settle", id=name, **more))[0]


def settle(controller, name=ID, generation=0):
    return asked(controller, name, generation)["receipt"]


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

    assert settle(controller, generation=1) is None

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


def test_of_a_place_where_nothing_is_installed_nothing_is_said(tmp_path):
    with pytest.raises(AgentError) as caught:
        settle(Controller(tmp_path))
    assert caught.value.word == "not-installed"
    assert not list(tmp_path.iterdir())


def test_a_distribution_that_is_away_for_a_moment_does_not_let_the_commit_in(site, controller):
    controller.push({"demo/data.json": b"[]"})
    request, blobs = controller.push_request(PUSH, id=ID)
    info = site / "demo-1.0.dist-info"
    info.rename(site / "aside")

    assert settle(controller, generation=1) is None
    (site / "aside").rename(info)

    with pytest.raises(AgentError) as caught:
        controller.ask(request, blobs)
    assert caught.value.word == "settled"


def test_a_change_that_was_taken_back_since_is_told(controller):
    controller.push(PUSH, id=ID)
    assert asked(controller)["last"] is True
    controller.pop()

    answer = asked(controller)

    assert answer["receipt"]["id"] == ID
    assert answer["last"] is False


@pytest.mark.parametrize("harm", ["gone", "torn"])
def test_a_ledger_that_was_cut_does_not_make_a_change_undone(site, controller, harm):
    controller.push(PUSH, id=ID)
    ledger = site / ".patchq/demo/ledger.jsonl"
    if harm == "gone":
        ledger.unlink()
    else:
        ledger.write_bytes(ledger.read_bytes().rstrip(b"\n"))
    before = ledger.read_bytes() if ledger.exists() else None

    with pytest.raises(AgentError) as caught:
        settle(controller)

    assert caught.value.word == "broken-ledger"
    assert (ledger.read_bytes() if ledger.exists() else None) == before


def test_a_change_that_nobody_recorded_is_not_called_undone(controller):
    controller.push(PUSH, id="fedcba9876543210")
    with pytest.raises(AgentError) as caught:
        settle(controller, generation=0)
    assert caught.value.word == "broken-ledger"


@pytest.mark.slow
@pytest.mark.skipif(os.getuid() != 0, reason="only root can mount")
@pytest.mark.parametrize("finished", [True, False])
def test_a_file_system_that_turned_read_only_hides_nothing(tmp_path, finished):
    mount = tmp_path / "disk"
    mount.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", mount], check=True)
    try:
        controller = Controller(agent_lab.make_site(mount / "site"))
        request, blobs = controller.push_request(PUSH, id=ID)
        if finished:
            controller.ask(request, blobs)
        else:  # after GO, before the first rename

            def last(name, first, _):
                return name == "rename" and first.endswith(".new") and "/stage/" in first

            crash_lab.stopped_at(lambda: agent_lab.here(request, blobs), last)
        subprocess.run(["mount", "-o", "remount,ro", mount], check=True)
        if finished:
            assert settle(controller)["id"] == ID
        else:
            with pytest.raises(AgentError):
                settle(controller)
        subprocess.run(["mount", "-o", "remount,rw", mount], check=True)
        assert settle(controller)["id"] == ID
        assert (mount / "site/demo/a.py").read_bytes() == PUSH["demo/a.py"]
    finally:
        subprocess.run(["umount", mount], check=True)


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
