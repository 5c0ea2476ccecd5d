"""A rebase that is killed at any of its changing calls goes on, and the queue is never half."""

import shutil

import pytest

from tests.agent import crash_lab
from tests.agent.crash_lab import FINISHED
from tests.rebase.lab import Lab, patch

pytestmark = pytest.mark.slow  # git processes

A = "".join(f"def f{i}():\n    return {i}\n\n\n" for i in range(6))
PATCHED = A.replace("return 4", "return 44")
OTHER = A.replace("return 1\n", "return 1.5\n").replace("return 4", "return 400")
DATA = "one\ntwo\nthree\n"


@pytest.fixture
def lab(tmp_path):
    """A series in which the first patch is carried, the second waits, the third is upstream."""
    lab = Lab(tmp_path)
    old = {"demo/a.txt": A, "demo/data.txt": DATA}
    lab.release("1.0", old)
    lab.release("2.0", {"demo/a.txt": OTHER, "demo/data.txt": DATA + "four\n"})
    lab.series(
        "1.0",
        {
            "10.patch": patch({"demo/new.py": None}, {"demo/new.py": "n = 1\n"}),
            "20.patch": patch({"demo/a.txt": A}, {"demo/a.txt": PATCHED}),
            "30.patch": patch({"demo/data.txt": DATA}, {"demo/data.txt": DATA + "four\n"}),
        },
    )
    return lab


def series_of(files):
    return {name: data for name, data in files.items() if name.startswith("2.0/")}


def until_it_waits(lab):
    """Begin, or go on, until the second patch waits."""
    asked = lab.places.folder.load()
    if asked is None:
        lab.rebase("2.0")
    elif asked.waiting is None:
        lab.go_on()


def whole(lab):
    """Go all the way, resolving the conflict on the way."""
    until_it_waits(lab)
    (lab.places.folder.work / "demo/a.txt").write_text(OTHER.replace("return 400", "return 444"))
    lab.go_on()


def test_killed_before_it_waits_it_begins_or_goes_on_and_waits_at_the_same_patch(lab):
    before = lab.files()

    def killed(number):
        shutil.rmtree(lab.state, ignore_errors=True)
        code = crash_lab.stopped(lambda: lab.rebase("2.0"), number)
        assert lab.files() == before
        until_it_waits(lab)
        asked = lab.places.folder.load()
        assert [step.name for step in asked.steps] == ["10.patch"]
        assert asked.waiting.step.name == "20.patch"
        assert b"<<<<<<<" in (lab.places.folder.work / "demo/a.txt").read_bytes()
        return code

    assert crash_lab.every(killed) > 10


def test_killed_on_the_way_to_the_end_it_ends_the_same(lab):
    until_it_waits(lab)
    waiting = lab.root / "waiting"
    shutil.copytree(lab.state, waiting)
    old = lab.files()
    whole(lab)
    wanted = lab.files()
    assert series_of(wanted)

    def killed(number):
        shutil.rmtree(lab.queue)
        lab.queue.mkdir()
        for name, data in old.items():
            (lab.queue / name).parent.mkdir(parents=True, exist_ok=True)
            (lab.queue / name).write_bytes(data)
        shutil.rmtree(lab.state)
        shutil.copytree(waiting, lab.state)
        resolved = OTHER.replace("return 400", "return 444")
        (lab.places.folder.work / "demo/a.txt").write_text(resolved)
        code = crash_lab.stopped(lab.go_on, number)
        assert series_of(lab.files()) in ({}, series_of(wanted))
        if lab.places.folder.load() is not None:
            lab.go_on()
        assert lab.files() == wanted
        return code

    assert crash_lab.every(killed) > 20


def test_the_labs_work_finishes_when_it_is_not_killed(lab):
    assert crash_lab.stopped(lambda: lab.rebase("2.0"), 10_000) == FINISHED
