"""Push and pop in one environment: what changes, and what is exactly as it was."""

import json
import os
import subprocess
import sys
import time

import agent_lab
import pytest
from agent_lab import AgentError, Controller, left_in_state, snapshot

from patchq import model


def test_push_and_pop_leave_every_file_and_inode_as_they_were(site, controller):
    before = snapshot(site)

    controller.push({"demo/a.py": b"x = 2\n", "demo/b.py": None, "demo/n/m.py": b"z = 1\n"})
    assert (site / "demo/a.py").read_bytes() == b"x = 2\n"
    assert not (site / "demo/b.py").exists()
    assert (site / "demo/n/m.py").read_bytes() == b"z = 1\n"
    controller.pop()

    assert snapshot(site) == before
    assert left_in_state(site) == ["demo", "demo/ledger.jsonl", "demo/lock"]


def test_two_patches_come_off_one_by_one(site, controller):
    before = snapshot(site)
    controller.push({"demo/a.py": b"x = 2\n"}, "one")
    with_one = snapshot(site, inodes=False)
    request, blobs = controller.push_request({"demo/a.py": b"x = 3\n"}, "two")
    agent_lab.here(request, blobs)

    # Pop "two" only: the bytes between come along, the original stays where it is.
    survey = controller.survey()
    back = {"path": "demo/a.py", "before": request["entries"][0]["after"]}
    back["after"] = request["entries"][0]["before"]
    one = survey["state"]["stack"][:1]
    data = {model.sha256(b"x = 2\n"): b"x = 2\n"}
    agent_lab.here(controller.request("pop", survey, [back], one), data | blobs)

    assert (site / "demo/a.py").read_bytes() == b"x = 2\n"
    assert snapshot(site).keys() == with_one.keys()
    controller.pop()
    assert snapshot(site) == before


def test_record_tells_the_truth_while_patches_are_on(site, controller):
    record = site / "demo-1.0.dist-info/RECORD"
    before = record.read_bytes()

    controller.push({"demo/a.py": b"x = 22\n", "demo/b.py": None, "demo/c.py": b"c = 1\n"})

    now = record.read_bytes()
    old = {line for line in before.split(b"\r\n") if not line.startswith((b"demo/a", b"demo/b"))}
    assert agent_lab.record_row("demo/a.py", b"x = 22\n").encode() + b"\r\n" in now
    assert now.endswith(agent_lab.record_row("demo/c.py", b"c = 1\n").encode() + b"\r\n")
    assert b"demo/b.py" not in now
    assert old <= set(now.split(b"\r\n"))


def test_a_record_that_another_tool_changed_keeps_its_change_after_the_last_pop(site, controller):
    record = site / "demo-1.0.dist-info/RECORD"
    before = record.read_bytes()
    controller.push({"demo/a.py": b"x = 22\n", "demo/c.py": b"c = 1\n"})
    record.write_bytes(record.read_bytes() + b"other.txt,,\r\n")

    done = controller.pop()

    assert record.read_bytes() == before + b"other.txt,,\r\n"
    assert "another tool" in done["notes"][0]


@pytest.mark.parametrize(("mode", "after"), [(0o644, 0o755), (0o640, 0o750), (0o600, 0o700)])
def test_a_change_of_mode_alone_makes_a_new_inode(site, controller, mode, after):
    path = site / "demo/a.py"
    path.chmod(mode)
    os.link(path, site.parent / "cache.py")
    inode = path.stat().st_ino

    controller.push({"demo/a.py": (path.read_bytes(), True)})

    assert path.stat().st_mode & 0o7777 == after
    assert (site.parent / "cache.py").stat().st_mode & 0o7777 == mode
    controller.pop()
    assert path.stat().st_ino == inode
    assert path.stat().st_mode & 0o7777 == mode


def test_a_link_into_a_cache_is_kept_and_its_target_never_written(site, controller):
    cache = site.parent / "cache/a.py"
    cache.parent.mkdir()
    (site / "demo/a.py").rename(cache)
    (site / "demo/a.py").symlink_to("../../cache/a.py")
    before = snapshot(site)

    controller.push({"demo/a.py": b"x = 2\n"})
    assert not (site / "demo/a.py").is_symlink()
    assert (site / "demo/a.py").read_bytes() == b"x = 2\n"
    assert cache.read_bytes() == b"x = 1\n"
    controller.pop()

    assert snapshot(site) == before
    assert (site / "demo/a.py").read_bytes() == b"x = 1\n"


def test_pop_refuses_a_link_whose_target_is_gone_unless_its_bytes_come_along(site, controller):
    cache = site.parent / "a.py"
    (site / "demo/a.py").rename(cache)
    (site / "demo/a.py").symlink_to(cache)
    controller.push({"demo/a.py": b"x = 2\n"})
    cache.unlink()

    request, _ = controller.pop_request()
    with pytest.raises(AgentError) as caught:
        agent_lab.here(request)
    assert caught.value.word == "original-damaged"
    assert (site / "demo/a.py").read_bytes() == b"x = 2\n"
    done, _ = agent_lab.here(request, {model.sha256(b"x = 1\n"): b"x = 1\n"})

    assert (site / "demo/a.py").read_bytes() == b"x = 1\n"
    assert "damaged" in done["notes"][0]


def test_extended_attributes_come_along(site, controller):
    os.setxattr(site / "demo/a.py", "user.label", b"kept")

    controller.push({"demo/a.py": b"x = 2\n"})

    assert os.getxattr(site / "demo/a.py", "user.label") == b"kept"


def test_new_files_never_repeat_an_mtime(site, controller):
    path = site / "demo/a.py"
    seen = [int(path.stat().st_mtime)]

    for number in range(4):
        controller.push({"demo/a.py": b"x = %d\n" % (number + 2)})
        info = path.stat()
        assert info.st_mtime_ns % 10**9 == 0
        assert info.st_mtime <= time.time()
        seen.append(int(info.st_mtime))
        controller.pop()

    assert len(set(seen)) == 5


def test_bytecode_of_touched_modules_goes_and_what_record_lists_comes_back(site, controller):
    cache = site / "demo/__pycache__"
    cache.mkdir()
    listed, other = cache / "a.cpython-311.pyc", cache / "a.cpython-312.opt-2.pyc"
    legacy, neighbour = site / "demo/a.pyc", cache / "ab.cpython-311.pyc"
    for path in (listed, other, legacy, neighbour):
        path.write_bytes(b"code of " + path.name.encode())
    record = site / "demo-1.0.dist-info/RECORD"
    record.write_bytes(record.read_bytes() + b"demo/__pycache__/a.cpython-311.pyc,,\r\n")
    inode = listed.stat().st_ino

    controller.push({"demo/a.py": b"x = 2\n"})
    assert [path.exists() for path in (listed, other, legacy, neighbour)] == [False] * 3 + [True]
    listed.write_bytes(b"of the patched module")
    other.write_bytes(b"of the patched module")
    controller.pop()

    assert listed.read_bytes() == b"code of a.cpython-311.pyc"
    assert listed.stat().st_ino == inode
    assert not other.exists()
    assert neighbour.exists()


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["timestamp", "checked-hash", "unchecked-hash"])
def test_a_patched_module_is_what_python_runs(site, controller, mode):
    def value():
        code = f"import sys; sys.path.insert(0, {str(site)!r}); import demo.a; print(demo.a.x)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        return int(done.stdout)

    compiled = [sys.executable, "-m", "compileall", "-q", "--invalidation-mode", mode, site]
    subprocess.run(compiled, check=True)
    assert value() == 1

    controller.push({"demo/a.py": b"x = 2\n"})
    assert value() == 2
    subprocess.run([*compiled, "-f"], check=True)
    controller.pop()

    assert value() == 1


@pytest.mark.slow
def test_no_name_of_the_state_is_compiled_by_compileall(site, controller):
    controller.push({"demo/a.py": b"x = 2\n", "demo/b.py": b"y = 2\n"})
    before = left_in_state(site)

    subprocess.run([sys.executable, "-m", "compileall", "-q", site], check=True)

    assert left_in_state(site) == before
    assert not [name for name in before if name.endswith(".py")]


def test_a_prefix_for_bytecode_in_sight_gives_a_fresh_mtime(site, controller, monkeypatch):
    path = site / "demo/a.py"
    before = path.stat()
    controller.push({"demo/a.py": b"x = 2\n"})
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", "/nowhere")

    done = controller.pop()

    assert path.read_bytes() == b"x = 1\n"
    assert path.stat().st_mtime_ns != before.st_mtime_ns
    assert "PYTHONPYCACHEPREFIX" in done["notes"][0]
    assert left_in_state(site) == ["demo", "demo/ledger.jsonl", "demo/lock"]


def test_the_state_has_the_mode_of_its_site_packages_whatever_the_umask(site, controller):
    site.chmod(0o2775)
    old = os.umask(0o077)
    try:
        controller.push({"demo/a.py": b"x = 2\n"})
    finally:
        os.umask(old)

    for path in (site / ".patchq").rglob("*"):
        if "originals/" not in str(path):
            wanted = 0o2775 if path.is_dir() else 0o664
            assert path.stat().st_mode & 0o7777 == wanted, path


def test_a_created_file_gets_what_its_folder_gives(site, controller):
    (site / "demo").chmod(0o2770)

    controller.push({"demo/n.py": b"n = 1\n", "demo/d/t.py": (b"#!/bin/sh\n", True)})

    assert (site / "demo/n.py").stat().st_mode & 0o7777 == 0o660
    assert (site / "demo/d").stat().st_mode & 0o7777 == 0o2770
    assert (site / "demo/d/t.py").stat().st_mode & 0o7777 == 0o770


def test_a_created_file_inherits_the_default_acl(site, controller):
    # u::rwx, u:65534:rw-, g::r-x, mask::rwx, o::---, in acl(5)'s binary form.
    entries = [(1, 7, -1), (2, 6, 65534), (4, 5, -1), (16, 7, -1), (32, 0, -1)]
    value = (2).to_bytes(4, "little") + b"".join(
        tag.to_bytes(2, "little")
        + bits.to_bytes(2, "little")
        + (who % 2**32).to_bytes(4, "little")
        for tag, bits, who in entries
    )
    os.setxattr(site / "demo", "system.posix_acl_default", value)
    (site / "demo/by_open.py").write_bytes(b"")

    controller.push({"demo/n.py": b"n = 1\n"})

    ours, theirs = site / "demo/n.py", site / "demo/by_open.py"
    for path in (ours, theirs):
        assert path.stat().st_mode & 0o777 == 0o660
    acl = "system.posix_acl_access"
    assert os.getxattr(ours, acl) == os.getxattr(theirs, acl)


def test_a_folder_that_somebody_put_a_file_into_stays(site, controller):
    controller.push({"demo/n/m.py": b"m = 1\n"})
    (site / "demo/n/mine.txt").write_text("keep me")

    controller.pop()

    assert [path.name for path in (site / "demo/n").iterdir()] == ["mine.txt"]


def test_receipts_are_chained_and_stay(site, controller):
    first = controller.push({"demo/a.py": b"x = 2\n"})["receipt"]
    second = controller.pop()["receipt"]

    survey = controller.survey(want=["ledger"])
    assert survey["ledger"] == [first, second]
    assert survey["ledger_broken"] is None
    lines = (site / ".patchq/demo/ledger.jsonl").read_bytes().split(b"\n")
    assert second["prev"] == model.sha256(lines[0])
    assert first["environment"] == second["environment"]
    assert second["applied"] == []


def test_a_receipt_that_was_edited_is_found(site, controller):
    controller.push({"demo/a.py": b"x = 2\n"})
    controller.pop()
    ledger = site / ".patchq/demo/ledger.jsonl"
    ledger.write_bytes(ledger.read_bytes().replace(b"tester", b"nobody", 1))

    assert controller.survey(want=["ledger"])["ledger_broken"].startswith("line 2")


def test_the_effect_is_the_models_effect(site, controller):
    receipt = controller.push({"demo/a.py": b"x = 2\n"})["receipt"]

    old, new = model.FileState.of(b"x = 1\n"), model.FileState.of(b"x = 2\n")
    assert receipt["effect"]["after"] == model.effect_id([model.PathChange("demo/a.py", old, new)])
    assert receipt["effect"]["before"] == model.effect_id([])


def test_texts_of_applied_patches_and_originals_can_be_read_back(site, controller):
    controller.push({"demo/a.py": b"x = 2\n", "demo/n.py": b""}, "one")

    survey, blobs = controller.ask(controller.message("survey", paths=[], want=["patches"]))
    assert [blobs[name] for name in survey["patches"]] == [b"patch one"]
    asked = controller.message("read", paths=["demo/a.py"], originals=["demo/a.py", "demo/n.py"])
    answer, blobs = controller.ask(asked)
    assert blobs[answer["files"]["demo/a.py"]] == b"x = 2\n"
    assert blobs[answer["originals"]["demo/a.py"]] == b"x = 1\n"
    assert answer["originals"]["demo/n.py"] is None


def test_a_file_that_holds_the_result_already_is_adopted_with_its_pristine_bytes(site, controller):
    (site / "demo/a.py").write_bytes(b"x = 2\n")
    inode = (site / "demo/a.py").stat().st_ino
    request, blobs = controller.push_request({"demo/a.py": b"x = 2\n"})
    pristine = agent_lab.state_of((b"x = 1\n", False))
    request["entries"][0]["pristine"] = pristine

    done, _ = agent_lab.here(request, {**blobs, pristine[2]: b"x = 1\n"})

    assert done["kept"]["demo/a.py"] == "pristine"
    assert (site / "demo/a.py").stat().st_ino == inode
    controller.pop()
    assert (site / "demo/a.py").read_bytes() == b"x = 1\n"


def test_a_survey_sends_only_contents_that_are_not_known(site, controller):
    known = [model.sha256(b"x = 1\n")]

    _, none = controller.ask(controller.message("survey", paths=["demo/a.py"], known=None))
    _, other = controller.ask(
        controller.message("survey", paths=["demo/a.py", "demo/b.py"], known=known)
    )

    assert none == {}
    assert other == {model.sha256(b"y = 1\n"): b"y = 1\n"}


def test_a_target_that_patchq_made_needs_no_record(tmp_path):
    site = agent_lab.make_site(tmp_path / "t", installer="patchq")
    (site / "demo-1.0.dist-info/RECORD").unlink()
    before = snapshot(site)

    controller = Controller(site)
    controller.push({"demo/a.py": b"x = 2\n", "demo/n.py": b""})
    controller.pop()

    assert snapshot(site) == before


def test_the_state_names_what_it_was_made_for(site, controller):
    controller.push({"demo/a.py": b"x = 2\n"})

    state = json.loads((site / ".patchq/demo/state.json").read_bytes())

    assert state["dist_info"]["name"] == "demo-1.0.dist-info"
    assert state["originals"]["demo/a.py"]["kept"] == "inode"
    assert state["stack"][0]["receipt"]


def test_a_distribution_of_another_name_that_owns_the_paths_is_served(tmp_path):
    site = agent_lab.make_site(tmp_path / "t", name="demo_cpu")
    controller = Controller(site)
    before = snapshot(site)

    controller.push({"demo/a.py": b"x = 2\n"})

    assert controller.survey()["installed"]["name"] == "demo_cpu"
    controller.pop()
    assert snapshot(site) == before
