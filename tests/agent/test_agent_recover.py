"""What recovery does where it cannot simply go on."""

import shutil

import agent_lab
import crash_lab
import pytest
from agent_lab import AgentError, snapshot

PUSH = {"demo/a.py": b"x = 2\n", "demo/b.py": b"y = 2\n", "demo/n.py": b"n = 1\n"}


def interrupt(controller, *, decided):
    """Push in a process that dies right before or right after the commit point."""

    def last(name, first, second):
        if not decided:
            return name == "link" and "journal.go" in second
        return name == "rename" and first.endswith(".new") and "/stage/" in first

    request, blobs = controller.push_request(PUSH)
    assert crash_lab.stopped_at(lambda: agent_lab.here(request, blobs), last) == crash_lab.KILLED


@pytest.mark.parametrize("decided", [False, True])
def test_a_third_content_stops_recovery_until_it_is_forced(site, controller, decided):
    interrupt(controller, decided=decided)
    (site / "demo/b.py").unlink()
    (site / "demo/b.py").write_bytes(b"mine = 1\n")
    before = snapshot(site)

    with pytest.raises(AgentError) as caught:
        controller.recover()
    assert caught.value.word == "third-content"
    assert "demo/b.py" in caught.value.what
    assert snapshot(site) == before
    assert controller.survey()["interrupted"]["go"] is decided

    assert controller.recover("old")["outcome"] == "undone"
    assert (site / "demo/a.py").read_bytes() == b"x = 1\n"
    assert (site / "demo/b.py").read_bytes() == b"y = 1\n"
    assert not (site / "demo/n.py").exists()
    assert controller.recover()["outcome"] == "nothing"


def test_a_third_content_may_be_overwritten_by_the_new_one(site, controller):
    interrupt(controller, decided=True)
    (site / "demo/b.py").unlink()
    (site / "demo/b.py").write_bytes(b"mine = 1\n")

    assert controller.recover("new")["outcome"] == "finished"

    assert (site / "demo/b.py").read_bytes() == b"y = 2\n"
    assert controller.survey()["state"]["generation"] == 1


def test_writing_is_refused_while_a_transaction_is_interrupted(site, controller):
    interrupt(controller, decided=True)
    request, blobs = controller.push_request({"demo/data.json": b"[]"})

    with pytest.raises(AgentError) as caught:
        agent_lab.here(request, blobs)
    assert caught.value.word == "interrupted"
    assert caught.value.mend == "patchq recover"


@pytest.mark.parametrize("decided", [False, True])
def test_a_journal_of_a_replaced_release_is_set_aside(site, controller, decided):
    interrupt(controller, decided=decided)
    shutil.rmtree(site / "demo-1.0.dist-info")
    agent_lab.make_site(site, version="1.1")
    before = snapshot(site)

    assert controller.recover()["outcome"] == "set aside"

    assert snapshot(site) == before
    survey = controller.survey(want=["ledger"])
    assert survey["interrupted"] is None
    assert survey["ledger"][-1]["outcome"] == "set aside"
    controller.push({"demo/a.py": b"x = 5\n"})
    assert controller.survey(want=["ledger"])["ledger_broken"] is None


@pytest.mark.parametrize("force", [None, "old", "new"])
def test_a_journal_of_an_uninstalled_distribution_is_set_aside_whatever_is_forced(
    site, controller, force
):
    interrupt(controller, decided=True)
    shutil.rmtree(site / "demo-1.0.dist-info")
    shutil.rmtree(site / "demo")

    assert controller.recover(force)["outcome"] == "set aside"

    assert snapshot(site) == {}
    assert "demo/aside" in agent_lab.left_in_state(site)


def test_a_folder_that_was_removed_is_made_again_for_what_must_go_back(site, controller):
    interrupt(controller, decided=True)
    shutil.rmtree(site / "demo")

    assert controller.recover("old")["outcome"] == "undone"

    assert (site / "demo/a.py").read_bytes() == b"x = 1\n"
    assert (site / "demo").stat().st_mode == site.stat().st_mode


def test_patches_that_a_reinstall_took_away_are_orphaned_and_set_aside(site, controller):
    controller.push({"demo/a.py": b"x = 2\n", "demo/n.py": b"n = 1\n"})
    shutil.rmtree(site / "demo")
    shutil.rmtree(site / "demo-1.0.dist-info")
    agent_lab.make_site(site)

    assert "reinstalled" in controller.survey()["orphaned"]
    request, blobs = controller.push_request({"demo/b.py": b"y = 2\n"})
    with pytest.raises(AgentError) as caught:
        agent_lab.here(request, blobs)
    assert caught.value.word == "orphaned"
    assert controller.recover()["outcome"] == "set aside"

    survey = controller.survey(want=["ledger"])
    assert survey["orphaned"] is None
    assert survey["state"] is None
    pushed, told = survey["ledger"]
    assert survey["ledger_broken"] is None
    assert (told["verb"], told["outcome"]) == ("recover", "set aside")
    assert told["where"] == str(site / ".patchq/demo/aside/1")
    assert (told["queue"], told["release"], told["patches"]) == ("q", "1.0", {})
    assert told["effect"]["before"] == pushed["effect"]["after"]
    controller.push({"demo/b.py": b"y = 2\n"})


def test_an_upgrade_orphans_the_patches(site, controller):
    controller.push({"demo/a.py": b"x = 2\n"})
    shutil.rmtree(site / "demo-1.0.dist-info")
    agent_lab.make_site(site, version="1.1")

    assert "demo-1.1.dist-info is there" in controller.survey()["orphaned"]


def test_a_hand_edit_does_not_orphan_the_patches(site, controller):
    controller.push({"demo/a.py": b"x = 2\n"})
    (site / "demo/a.py").write_bytes(b"x = 9\n")

    assert controller.survey()["orphaned"] is None


def test_recovering_an_environment_that_has_nothing_of_patchq_writes_nothing(site, controller):
    assert controller.recover() == {"outcome": "nothing", "paths": []}
    assert not (site / ".patchq").exists()


def test_a_journal_that_names_a_path_outside_is_refused(site, controller):
    interrupt(controller, decided=True)
    journal = site / ".patchq/demo/journal"
    outside = site.parent / "outside.py"
    outside.write_bytes(b"mine")
    forged = journal.read_bytes().replace(b'"path":"demo/a.py"', b'"path":"../outside.py"')
    journal.write_bytes(forged)

    with pytest.raises(AgentError) as caught:
        controller.recover("new")

    assert caught.value.word == "damaged-state"
    assert outside.read_bytes() == b"mine"
