"""What a pop does where somebody touched the originals that are kept."""

import os
import stat

import agent_lab
import crash_lab
import pytest
from agent_lab import AgentError, snapshot

PUSH = {"demo/a.py": b"x = 2\n", "demo/b.py": None, "demo/data.json": b"[]"}


def chmod_cache(site, tmp_path, names, mode):
    """Give files a second name outside, as uv's cache has; return what changes its mode."""
    others = []
    for name in names:
        other = tmp_path / name.replace("/", "-")
        os.link(site / name, other)
        others.append(other)
    return lambda: [other.chmod(mode) for other in others]


@pytest.mark.parametrize("mode", [0o755, 0o600])
def test_a_pop_gives_back_the_recorded_mode_whatever_the_cache_has(
    site, controller, tmp_path, mode
):
    """The kept original is an inode of the installer's cache, and has one mode there."""
    (site / "demo/data.json").chmod(0o640)
    chmod = chmod_cache(site, tmp_path, ["demo/a.py", "demo/b.py", "demo/data.json"], mode)
    before = snapshot(site, inodes=False)
    controller.push(PUSH)
    chmod()

    done = controller.pop()

    assert snapshot(site, inodes=False) == before
    assert {path: done["kept"][path] for path in PUSH} == dict.fromkeys(PUSH, "copy")
    assert sum("a copy was given back" in note for note in done["notes"]) == len(PUSH)
    assert stat.S_IMODE((tmp_path / "demo-a.py").stat().st_mode) == mode
    assert not (site / ".patchq/demo/originals").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_pop_gives_back_the_recorded_owner(site, controller, tmp_path):
    os.link(site / "demo/a.py", tmp_path / "cache")
    before = snapshot(site, inodes=False)
    controller.push(PUSH)
    os.chown(tmp_path / "cache", 12345, 12345)

    controller.pop()

    assert snapshot(site, inodes=False) == before


def test_a_record_file_whose_own_inode_changed_is_given_back_as_a_copy(site, controller):
    before = snapshot(site, inodes=False)
    controller.push(PUSH)
    name = controller.survey()["state"]["dist_info"]["original"]
    (site / ".patchq/demo/originals" / name).chmod(0o777)

    controller.pop()

    after = snapshot(site, inodes=False)
    record = "demo-1.0.dist-info/RECORD"
    assert after[record][0] == before[record][0]
    assert after[record][3][0] == before[record][3][0]
    assert not (site / ".patchq/demo/originals").exists()


def test_a_link_in_the_store_is_not_read_in_place_of_a_file(site, controller, tmp_path):
    controller.push({"demo/a.py": b"x = 2\n"})
    kept = site / ".patchq/demo/originals"
    name = controller.survey()["state"]["originals"]["demo/a.py"]["name"]
    (kept / name).rename(tmp_path / "moved")
    (kept / name).symlink_to(tmp_path / "moved")
    before = snapshot(site)

    with pytest.raises(AgentError) as caught:
        controller.pop()

    assert caught.value.word == "original-damaged"
    assert snapshot(site) == before


def test_bytecode_that_is_another_now_is_not_given_back(site, controller):
    pyc = site / "demo/__pycache__/a.cpython-311.pyc"
    pyc.parent.mkdir()
    pyc.write_bytes(b"listed")
    record = site / "demo-1.0.dist-info/RECORD"
    listed = f"{pyc.relative_to(site)},,\r\n".encode()
    record.write_bytes(record.read_bytes() + listed)
    controller.push({"demo/a.py": b"x = 2\n"})
    name = controller.survey()["state"]["bytecode"][str(pyc.relative_to(site))]["name"]
    (site / ".patchq/demo/originals" / name).write_bytes(b"evil")

    done = controller.pop()

    assert not pyc.exists()
    assert any("stays away" in note for note in done["notes"])


class Racing:
    """Change something right after the commit point, in the process that commits."""

    def __init__(self, monkeypatch, change):
        self.change, self.link = change, os.link
        monkeypatch.setattr(os, "link", self)

    def __call__(self, source, target, **more):
        self.link(source, target, **more)
        if str(target).endswith("journal.go"):
            self.change()


def test_a_mode_that_changes_within_a_pop_is_undone_whole(site, controller, tmp_path, monkeypatch):
    chmod = chmod_cache(site, tmp_path, ["demo/a.py", "demo/b.py"], 0o755)
    controller.push(PUSH)
    pushed = snapshot(site)
    state = {p: (site / ".patchq" / p).is_file() for p in agent_lab.left_in_state(site)}
    Racing(monkeypatch, chmod)

    with pytest.raises(AgentError) as caught:
        controller.pop()

    assert caught.value.word == "read-back"
    assert "undone" not in caught.value.why + caught.value.mend
    assert snapshot(site) == pushed
    assert {p: (site / ".patchq" / p).is_file() for p in agent_lab.left_in_state(site)} == state
    assert controller.survey()["interrupted"] is None
    monkeypatch.undo()
    controller.pop()
    assert (site / "demo/a.py").read_bytes() == b"x = 1\n"


@pytest.mark.parametrize("verb", ["push", "pop"])
def test_what_cannot_go_back_keeps_its_second_name_and_the_journal(
    site, controller, monkeypatch, verb
):
    """Somebody writes over a file between its rename and the undo."""
    if verb == "pop":
        controller.push({"demo/a.py": b"x = 2\n", "demo/data.json": b"[]"})
        request, blobs = controller.pop_request()
    else:
        request, blobs = controller.push_request(
            {"demo/a.py": b"x = 2\n", "demo/data.json": b"[]"}
        )
    before = snapshot(site)
    rename = os.rename

    def renamed(source, target):
        rename(source, target)
        if str(target).endswith("demo/a.py"):
            os.unlink(target)
            (site / "demo/a.py").write_bytes(b"mine = 1\n")

    monkeypatch.setattr(os, "rename", renamed)
    with pytest.raises(AgentError) as caught:
        agent_lab.here(request, blobs)
    monkeypatch.undo()

    assert caught.value.word == "interrupted"
    assert caught.value.mend == "patchq recover"
    assert "demo/a.py" in caught.value.why
    after = snapshot(site)
    assert (site / "demo/a.py").read_bytes() == b"mine = 1\n"
    changed = {path for path in before if before[path] != after[path]}
    assert changed == {"demo/a.py"}
    with pytest.raises(AgentError) as caught:
        controller.recover()
    assert caught.value.word == "third-content"
    assert "demo/a.py" in caught.value.what
    assert controller.recover("old")["outcome"] == "undone"
    assert snapshot(site) == before
    assert controller.recover()["outcome"] == "nothing"


def test_recovery_takes_a_given_back_file_for_ours_whatever_its_mode(site, controller, tmp_path):
    chmod = chmod_cache(site, tmp_path, ["demo/a.py"], 0o755)
    controller.push({"demo/a.py": b"x = 2\n"})
    request, blobs = controller.pop_request()

    def work():
        agent_lab.here(request, blobs)

    def stop(name, first, second):
        return name == "unlink" and first.endswith(("patches.json", "state.json"))

    assert crash_lab.stopped_at(work, stop) == crash_lab.KILLED
    chmod()

    assert controller.recover()["outcome"] == "finished"
    assert (site / "demo/a.py").read_bytes() == b"x = 1\n"
