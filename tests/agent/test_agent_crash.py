"""However a transaction ends, what is there afterwards is the old set or the new one."""

import errno
import itertools
import json
import os
import tempfile
from pathlib import Path

import agent_lab
import crash_lab
import pytest
from agent_lab import Controller, left_in_state, snapshot
from crash_lab import FAILED, FINISHED, KILLED, PASSED, clone, stopped

PUSH = {
    "demo/a.py": b"x = 2\n",
    "demo/b.py": None,
    "demo/new/deep/n.py": b"z = 1\n",
    "demo/tool.py": (b"#!/usr/bin/env python3\n", False),
    "demo/data.json": b'{"k": 1}\n',
}
BYTECODE = {
    "demo/__pycache__/a.cpython-311.pyc": b"listed",
    "demo/__pycache__/b.cpython-311.pyc": b"listed",
    "demo/__pycache__/a.cpython-312.opt-1.pyc": b"not listed",
}


# Every second stop for every first one takes ten minutes (all were run: none is illegal);
# PATCHQ_CRASH_PAIRS=1 runs them all again, else one first stop in so many.
EACH = int(os.environ.get("PATCHQ_CRASH_PAIRS", "9"))


def skipped(number):
    return number % EACH != 0


@pytest.fixture(scope="module")
def pristine(tmp_path_factory):
    site = agent_lab.make_site(tmp_path_factory.mktemp("pristine") / "site")
    (site / "demo/__pycache__").mkdir()
    for path, data in BYTECODE.items():
        (site / path).write_bytes(data)
    record = site / "demo-1.0.dist-info/RECORD"
    listed = "".join(f"{path},,\r\n" for path, data in BYTECODE.items() if data == b"listed")
    record.write_bytes(record.read_bytes() + listed.encode())
    return site


@pytest.fixture(scope="module")
def pushed(pristine, tmp_path_factory):
    site = clone(pristine, tmp_path_factory.mktemp("pushed") / "site")
    Controller(site).push(PUSH)
    return site


def no_links(*_, **__):
    """Answer as a file system without hard links does."""
    raise OSError(errno.EPERM, os.strerror(errno.EPERM))


class Case:
    """One verb on a copy of a tree, and what the tree may be afterwards."""

    def __init__(self, source: Path, site: Path, verb: str, links: bool = True) -> None:
        self.site = clone(source, site)
        self.links = links
        self.controller = Controller(self.site)
        self.verb = verb
        self.before = snapshot(self.site, links)
        self.ledger = self.receipts()
        make = self.controller.pop_request if verb == "pop" else self._push_request
        self.request = make()
        kept = (
            json.loads((self.site / ".patchq/demo/state.json").read_bytes())
            if verb == "pop"
            else {}
        )
        self.inodes = {
            path: (self.site / ".patchq/demo/originals" / entry["name"]).stat().st_ino
            for path, entry in kept.get("originals", {}).items()
            if entry["name"]
        }

    def _push_request(self):
        return self.controller.push_request(PUSH)

    def run(self) -> object:
        if not self.links:
            os.link = no_links  # in the process that is to be stopped
        return agent_lab.here(*self.request)

    def check(self) -> bool:
        """Assert old or new, whole; return whether it is new."""
        new = content(self.site) != content_of(self.before)
        text = self.record()
        files = {p for p in content(self.site) if not p.endswith("/RECORD")}
        assert {path for path in text if not path.endswith(("/RECORD", ".pyc"))} == files
        for path, digest in text.items():
            if digest:
                data = (self.site / path).read_bytes()
                assert agent_lab.record_row(path, data) == ",".join([path, *digest])
        assert len(self.receipts()) == len(self.ledger) + new
        assert self.controller.survey(want=["ledger"])["ledger_broken"] is None
        if not new:
            assert snapshot(self.site, self.links) == self.before
            state = [] if self.verb == "push" else ["demo/state.json", "demo/patches.json"]
            assert (self.site / ".patchq/demo/state.json").exists() == bool(state)
        elif self.verb == "push":
            for path, value in PUSH.items():
                data = value[0] if isinstance(value, tuple) else value
                found = self.site / path
                assert (found.read_bytes() if found.exists() else None) == data
        else:
            assert set(left_in_state(self.site)) == {"demo", "demo/ledger.jsonl", "demo/lock"}
            for path, inode in self.inodes.items() if self.links else ():
                assert (self.site / path).stat().st_ino == inode
        assert not [n for n in left_in_state(self.site) if "/stage" in n or "journal" in n]
        return new

    def receipts(self) -> list[bytes]:
        ledger = self.site / ".patchq/demo/ledger.jsonl"
        return ledger.read_bytes().splitlines() if ledger.exists() else []

    def record(self) -> dict[str, list[str]]:
        rows = (self.site / "demo-1.0.dist-info/RECORD").read_text().split("\n")
        found = {}
        for row in rows:
            if row.strip():
                path, digest, size = row.strip().split(",")
                found[path] = [digest, size] if digest else []
        return found

    def every_file_is_listed(self) -> None:
        """An uninstall at this moment would leave nothing of the package."""
        listed = set(self.record())
        assert set(content(self.site)) <= listed

    def recover(self) -> object:
        return self.controller.recover()

    def settle(self) -> bool:
        """Recover, check, recover again: the second time nothing happens."""
        self.recover()
        new = self.check()
        state = left_in_state(self.site)
        tree = snapshot(self.site)
        assert self.recover()["outcome"] == "nothing"
        assert (snapshot(self.site), left_in_state(self.site)) == (tree, state)
        return new


def content(site: Path) -> dict[str, object]:
    return content_of(snapshot(site))


def content_of(tree: dict) -> dict[str, object]:
    """Return bytes and mode of each file."""
    return {
        path: (mode, value[0])
        for path, (mode, _, _, value) in tree.items()
        if isinstance(value, tuple)
    }


@pytest.fixture
def fresh(tmp_path):
    """Return new places for trees, in memory where there is some: fsync is what takes time."""
    numbers = itertools.count()
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else tmp_path
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield lambda: Path(folder, str(next(numbers)), "site")


@pytest.fixture(params=["push", "pop"])
def source(request, pristine, pushed):
    return request.param, pristine if request.param == "push" else pushed


@pytest.mark.slow
@pytest.mark.parametrize("links", [True, False], ids=["links", "copies"])
def test_killed_before_any_call_it_recovers_to_old_or_new(source, fresh, links):
    verb, tree = source
    outcomes = []

    def attempt(number):
        case = Case(tree, fresh(), verb, links)
        code = stopped(case.run, number)
        assert code in (KILLED, FINISHED)
        case.every_file_is_listed()
        outcomes.append(case.settle())
        if verb == "push" and outcomes[-1]:
            case.controller.pop()
            assert snapshot(case.site, links) == case.before
        return code

    calls = crash_lab.every(attempt)

    assert calls > 40
    # Old before the one commit point, new after it.
    assert outcomes == sorted(outcomes)
    assert {*outcomes} == {False, True}


@pytest.mark.slow
def test_recovery_killed_before_any_of_its_calls_is_recovered_by_the_next(source, fresh):
    verb, tree = source

    def outer(number):
        if skipped(number):
            return KILLED

        def inner(second):
            case = Case(tree, fresh(), verb)
            code = stopped(case.run, number)
            if code == FINISHED:
                return FINISHED
            again = stopped(case.recover, second)
            assert again in (KILLED, FINISHED)
            case.every_file_is_listed()
            case.settle()
            return again

        calls = crash_lab.every(inner)
        return KILLED if calls or number < 20 else FINISHED

    assert crash_lab.every(outer) > 40


@pytest.mark.slow
@pytest.mark.parametrize("memory", [False, True], ids=["EIO", "no memory"])
def test_a_call_that_fails_once_changes_nothing_and_is_told(source, fresh, memory):
    verb, tree = source
    told = []

    def attempt(number):
        case = Case(tree, fresh(), verb)
        code = stopped(case.run, 0, fail=number, memory=memory)
        told.append(code)
        if code == FAILED:
            assert case.controller.survey()["interrupted"] is None
            assert case.check() is False
        else:
            assert code in (FINISHED, PASSED)
            assert case.settle() is True
        return code

    crash_lab.every(attempt)

    assert told.count(FAILED) > 40


@pytest.mark.slow
def test_a_rollback_killed_before_any_of_its_calls_is_recovered(source, fresh):
    verb, tree = source

    def outer(number):
        if skipped(number):
            return KILLED

        def inner(second):
            case = Case(tree, fresh(), verb)
            code = stopped(case.run, number + second, fail=number)
            assert code in (KILLED, FINISHED, FAILED, PASSED)
            case.every_file_is_listed()
            case.settle()
            return code if code == KILLED else FINISHED

        calls = crash_lab.every(inner)
        return KILLED if calls or number < 20 else FINISHED

    assert crash_lab.every(outer) > 40
