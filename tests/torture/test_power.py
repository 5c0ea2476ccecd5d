"""Power that goes away: the order of what is fsynced, and a device that is cut at any call."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.torture import form, kill_calls, kill_check, kill_lab, power_lab
from tests.torture.kill_check import Case

VERBS = ["push", "pop", "undo"]


@pytest.fixture(scope="module")
def lab():
    with kill_lab.place() as folder:
        yield kill_lab.lab(folder)


@pytest.mark.parametrize("name", VERBS)
def test_nothing_is_done_before_what_it_relies_on_is_on_the_disk(lab, name):
    verb = lab.verbs[name]
    lab.put(verb.before)

    assert power_lab.faults(verb.calls, lab.site) == []
    form.count("order of fsyncs held against the rules", name, "traces")


@pytest.mark.parametrize("name", VERBS)
def test_recovery_relies_on_nothing_that_only_the_killed_process_knew(lab, name):
    verb = lab.verbs[name]
    for kill in form.some([kill for kill in verb.kills() if kill.when == "after"], 5):
        lab.killed(verb, kill)
        tree = kill_lab.clone(lab.site, lab.work / "cut")
        calls = lab.calls(lab.recover)
        lab.put(tree)
        shutil.rmtree(tree)

        assert power_lab.faults(calls, lab.site) == [], kill
        form.count("order of fsyncs held against the rules", f"recover after {name}", "traces")


@pytest.fixture(params=list(power_lab.OPTIONS))
def options(request):
    return request.param


class Device:
    """An image of its own for each case: a tree on it, a verb killed on it, a copy recovered."""

    def __init__(self, lab, options, tree, durable):
        self.lab, self.options, self.tree, self.durable = lab, options, tree, durable
        self.folder = Path(tempfile.mkdtemp(dir=lab.work))
        self.base, self.numbers = power_lab.image(self.folder / "base"), itertools.count()
        if durable:
            with self.mounted(self.base):
                lab.put(tree)

    def mounted(self, path):
        return power_lab.mounted(path, self.lab.site, power_lab.OPTIONS[self.options])

    def copy(self, path):
        """Return a copy of an image, also of a mounted one: what its device has got."""
        return shutil.copyfile(path, self.folder / str(next(self.numbers)))

    def kills(self, tape):
        """Play a tape to its end; return where it can be killed on this file system."""
        with self.played(tape) as (_, answer, trace):
            assert "ok" in answer, answer
        found = kill_calls.kills(kill_calls.calls(trace, self.lab.site))
        return [kill for kill in found if kill.when == "after"]

    @contextlib.contextmanager
    def played(self, tape, kill=None):
        """Play a tape on a new device; give its image, still mounted, answer and trace."""
        image = self.copy(self.base)
        with self.mounted(image):
            if not self.durable:  # as an installer does: written, and never fsynced
                self.lab.put(self.tree)
            yield image, *self.lab.run(tape.play(), kill.call if kill else None)
        image.unlink()

    @contextlib.contextmanager
    def cut(self, tape, kill):
        """Mount what a device has got when an agent is killed on it."""
        with self.played(tape, kill) as (image, answer, _):
            assert answer is None
            copy = self.copy(image)
        with self.mounted(copy):
            yield
        copy.unlink()


@pytest.fixture
def bare(lab):
    """The lab with an empty folder as its site, to mount something on."""
    shutil.rmtree(lab.site, ignore_errors=True)
    lab.site.mkdir()
    return lab


@pytest.mark.slow
@pytest.mark.parametrize("name", VERBS)
def test_a_device_that_is_cut_at_any_call_is_recovered_to_old_or_new(bare, name, options):
    verb = bare.verbs[name]
    bare.put(verb.before)
    case = Case(bare, verb)
    case.copied = True
    shutil.rmtree(bare.site)
    bare.site.mkdir()
    device = Device(bare, options, verb.before, durable=True)
    ends = []
    for kill in form.some(device.kills(verb.tape), 5):
        with device.cut(verb.tape, kill):
            case.whole()
            assert "ok" in bare.recovered()
            ends.append(case.settled())
            case.idle()
        form.count("power cut on ext4", kill_calls.step(kill.of), f"{name}, {options}")
    assert ends == sorted(ends)
    assert {*ends} == {False, True}


@pytest.mark.slow
def test_a_package_that_nobody_ever_fsynced_is_old_or_new_after_a_cut(bare, options):
    """pip and uv fsync nothing; a push within seconds of an install must not lose it."""
    verb = bare.verbs["push"]
    device = Device(bare, options, verb.before, durable=False)
    touched = {path for change in kill_lab.CHANGES.values() for path in change}
    touched |= {kill_check.RECORD, "demo-1.0.dist-info/METADATA"}
    old, new = (
        {path: found for path, found in kill_check.contents(tree).items() if path in touched}
        for tree in (verb.before, verb.after)
    )
    ends = []
    for kill in form.some(device.kills(verb.tape), 6):
        with device.cut(verb.tape, kill):
            began = any((bare.home / name).exists() for name in ("journal", "journal.go"))
            began |= (bare.home / "state.json").exists()
            if not began:
                continue  # nothing of the package was changed: it is as an installer left it
            assert "ok" in bare.recovered()
            now = kill_check.contents(bare.site)
            now = {path: found for path, found in now.items() if path in touched}
            assert now in (old, new), kill
            ends.append(now == new)
            assert bare.recovered()["ok"]["outcome"] == "nothing"
        row = kill_calls.step(kill.of)
        form.count("power cut on ext4", row, f"push, never fsynced, {options}")
    assert ends == sorted(ends)
    assert {*ends} == {False, True}
