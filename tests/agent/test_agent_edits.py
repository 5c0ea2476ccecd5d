"""Files that are edited by hand come into a patch as they are: no edit is lost, ever."""

import itertools
import os
import tempfile
from pathlib import Path

import agent_lab
import crash_lab
import pytest
from agent_lab import Controller, snapshot, state_of
from crash_lab import FAILED, FINISHED, KILLED, PASSED, clone, stopped

# What the release has, and what somebody made of it: edited, made, taken away, not yet touched.
FIRST = {
    "demo/a.py": (b"x = 1\n", False),
    "demo/made.py": None,
    "demo/b.py": (b"y = 1\n", False),
    "demo/data.json": (b"{}\n", False),
    "demo/later.py": None,
}
NOW = {
    "demo/a.py": (b"x = 3  # by hand\n", False),
    "demo/made.py": (b"z = 1\n", False),
    "demo/b.py": None,
    "demo/data.json": FIRST["demo/data.json"],
    "demo/later.py": None,
}


def edited(source, site):
    """Copy a tree, and edit it as a person does."""
    clone(source, site)
    for path, file in NOW.items():
        if file is None:
            (site / path).unlink(missing_ok=True)
        else:
            (site / path).write_bytes(file[0])
    return site


def request(controller):
    """Return the commit by which all of it comes into one patch, as it is."""
    survey = controller.survey(NOW)
    text = b"patch p"
    blobs = {agent_lab.state_of((text, False))[2]: text}
    entries = []
    for path, file in NOW.items():
        there, first = state_of(file), state_of(FIRST[path])
        entry = {"path": path, "before": there, "after": there, "adopt": True}
        if there != first:
            entry["pristine"] = first
        elif file is not None:
            entry["detach"] = True
            del entry["adopt"]
        entries.append(entry)
        for one in (file, FIRST[path]):
            if one is not None:
                blobs[state_of(one)[2]] = one[0]
    changes = [[path, state_of(FIRST[path]), state_of(file)] for path, file in NOW.items()]
    patch = {
        "queue": "q",
        "patch": "p",
        "release": "1.0",
        "sha256": next(iter(blobs)),
        "receipt": "",
        "changes": changes,
    }
    return controller.request("add", survey, entries, [patch], compile=False), blobs


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    site = agent_lab.make_site(tmp_path_factory.mktemp("first") / "site")
    for path, file in FIRST.items():
        assert (file is None) == (not (site / path).exists()), path
    (site / "demo/data.json").write_bytes(b"{}\n")
    (site / "demo/a.py").write_bytes(b"x = 1\n")
    rows = (site / "demo-1.0.dist-info/RECORD").read_text().splitlines()
    rows = [row for row in rows if not row.startswith(("demo/a.py,", "demo/data.json,"))]
    rows += [agent_lab.record_row(p, FIRST[p][0]) for p in ("demo/a.py", "demo/data.json")]
    (site / "demo-1.0.dist-info/RECORD").write_bytes("".join(f"{r}\r\n" for r in rows).encode())
    return site


@pytest.fixture
def fresh(tmp_path):
    numbers = itertools.count()
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else tmp_path
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield lambda: Path(folder, str(next(numbers)), "site")


def texts(site):
    """Return what the files hold that were edited."""
    return {p: (site / p).read_bytes() if (site / p).exists() else None for p in NOW}


def held(files):
    return {path: file and file[0] for path, file in files.items()}


def test_it_comes_in_as_it_is_and_a_pop_gives_the_release_back(source, fresh):
    site = edited(source, fresh())
    twin = site.parent / "installers-cache"
    os.link(site / "demo/data.json", twin)
    inodes = {p: (site / p).stat().st_ino for p in ("demo/a.py", "demo/made.py")}
    controller = Controller(site)

    agent_lab.here(*request(controller))
    (site / "demo/data.json").write_bytes(b"{1}\n")  # in place
    rows = (site / "demo-1.0.dist-info/RECORD").read_text()
    taken = {p: (site / p).stat().st_ino for p in inodes}
    (site / "demo/data.json").write_bytes(b"{}\n")
    controller.pop()

    assert taken == inodes
    assert twin.read_bytes() == b"{}\n"
    assert agent_lab.record_row("demo/a.py", NOW["demo/a.py"][0]) in rows
    assert agent_lab.record_row("demo/made.py", NOW["demo/made.py"][0]) in rows
    assert "demo/b.py," not in rows
    assert texts(site) == held(FIRST)
    assert (site / "demo-1.0.dist-info/RECORD").read_bytes() == (
        source / "demo-1.0.dist-info/RECORD"
    ).read_bytes()


@pytest.mark.slow
def test_killed_before_any_call_every_edit_is_there_and_recovery_ends_old_or_new(source, fresh):
    outcomes = []

    def attempt(number):
        site = edited(source, fresh())
        controller = Controller(site)
        asked = request(controller)
        before = snapshot(site)
        code = stopped(lambda: agent_lab.here(*asked), number)
        assert code in (KILLED, FINISHED)
        assert texts(site) == held(NOW)
        controller.recover()
        assert texts(site) == held(NOW)
        state = controller.survey()["state"]
        outcomes.append(state is not None)
        if state is None:
            assert snapshot(site) == before
        else:
            controller.pop()
            assert texts(site) == held(FIRST)
        return code

    assert crash_lab.every(attempt) > 40
    assert outcomes == sorted(outcomes)
    assert {*outcomes} == {False, True}


@pytest.mark.slow
def test_a_call_that_fails_once_loses_no_edit(source, fresh):
    told = []

    def attempt(number):
        site = edited(source, fresh())
        controller = Controller(site)
        asked = request(controller)
        before = snapshot(site)
        code = stopped(lambda: agent_lab.here(*asked), 0, fail=number)
        told.append(code)
        assert code in (FAILED, FINISHED, PASSED)
        assert texts(site) == held(NOW)
        if code == FAILED:
            assert snapshot(site) == before
        return code

    crash_lab.every(attempt)

    assert told.count(FAILED) > 40
