"""The editing verbs on a disk that is full, over a link that is cut, and while pip works.

Whatever ends them: no edit is lost, the queue's files are all old or all new, and the
same command again finishes, or says what stands in its way.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from patchq.errors import ExitCode
from tests import ssh_lab
from tests import world as worlds
from tests.torture import editing_lab, form
from tests.torture.link_lab import Wire

pytestmark = pytest.mark.slow

PAGE = 4096


@contextlib.contextmanager
def small(folder: Path, size: str = "4m"):
    """Put a folder on a disk of its own, of few megabytes."""
    kept = folder.with_name(folder.name + "-kept")
    folder.rename(kept)
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", folder], check=True)
    try:
        shutil.copytree(kept, folder, dirs_exist_ok=True, symlinks=True)
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


def filled(folder: Path, free: int) -> Path:
    """Fill a disk but for some pages; return the file that does."""
    ballast = folder / "ballast"
    ballast.write_bytes(b"x" * PAGE * (os.statvfs(folder).f_bavail - free))
    return ballast


@pytest.mark.skipif(os.getuid() != 0, reason="not root")
@pytest.mark.parametrize(
    ("verb", "full"),
    form.some(
        [
            ("refresh-carried", "queue"),
            ("sink-carried", "queue"),
            ("import", "queue"),
            ("shell", "queue"),
            ("refresh-carried", "site"),
            ("shell", "site"),
        ],
        2,
    ),
)
def test_on_a_full_disk_a_verb_is_done_or_leaves_the_queue_as_it_was(world, verb, full):
    act = editing_lab.ACTS[verb]
    editing_lab.steps(world, act.before)
    editing_lab.words(world, act)
    edited, before = editing_lab.kept(world), editing_lab.left(world)
    with tempfile.TemporaryDirectory() as folder:
        whole = editing_lab.copy(world, Path(folder) / "whole")
        assert editing_lab.run(whole, act).returncode == 0
        expected = editing_lab.left(whole)
        ends = set()
        for free in form.some(range(8), 3):
            case = editing_lab.copy(world, Path(folder) / f"case-{free}")
            place = case.queue if full == "queue" else case.site
            with small(place):
                ballast = filled(place, free)
                cut = editing_lab.run(case, act)
                ballast.unlink()
                found = editing_lab.left(case)

                ends.add(cut.returncode == 0)
                assert cut.returncode == 0 or b"why: " in cut.stderr
                # With the queue's own disk full nothing of the edit is there; else all of it.
                assert found[1] in (before[1], expected[1])
                assert cut.returncode == 0 or full == "site" or found == before
                assert not act.keeps or editing_lab.kept(case).items() >= edited.items()
                assert editing_lab.whole_queue(case)
                assert editing_lab.unfinished(case, act) == ""
                assert editing_lab.left(case) == expected
                form.count("editing on a full disk", verb, full)
        assert False in ends
        assert True in ends or full == "site"  # which wants a megabyte to be free


@pytest.fixture(scope="module")
def roads():
    """How a host is named over each road, and the home of who goes there."""
    assert os.getuid() == 0, "the wires' trees are root's"
    with ssh_lab.folder() as base:
        home = ssh_lab.Home(base / "client")
        (base / "sshd").mkdir()
        owner = ("root", Path.home())
        with ssh_lab.sshd(base / "sshd", home.public, owner=owner) as server:
            home.add("gpu1", server)
            yield {"command": ("command:sh -c", None), "ssh": ("gpu1", home)}


def over(world, act, wire, road):
    """Run an act on the world as a host behind a wire."""
    spec, home = road
    words = editing_lab.words(world, act)
    words[4:4] = ["-H", spec, "--python", wire.python]
    more = home.environ if home is not None else {}
    return subprocess.run(
        words,
        cwd=world.root,
        env={**editing_lab.environ(world), **{key: more[key] for key in ("HOME",) if more}},
        input=act.stdin,
        capture_output=True,
        timeout=120,
    )


@pytest.mark.parametrize(
    ("road", "verb"), form.some([("ssh", "header"), ("command", "refresh"), ("ssh", "shell")], 2)
)
def test_over_a_link_that_is_cut_a_verb_is_done_or_can_be_finished(world, roads, road, verb):
    act = editing_lab.ACTS[verb]
    editing_lab.steps(world, act.before)
    edited, before = editing_lab.kept(world), editing_lab.left(world)
    with tempfile.TemporaryDirectory() as folder:
        whole, wire = editing_lab.copy(world, Path(folder) / "whole"), Wire(Path(folder) / "w", {})
        assert over(whole, act, wire, roads[road]).returncode == 0
        expected, totals = editing_lab.left(whole), wire.totals()
        # Up to the last bytes: within the commit, and within its answer.
        cuts = [(way, max(1, max(totals[way]) - part)) for part in (1, 900) for way in totals]
        for number, (way, place) in enumerate(form.some(cuts, 1)):
            for times in (1, 0):  # the host is there again at once, or stays away
                case = editing_lab.copy(world, Path(folder) / f"case-{number}-{times}")
                fault = {way: place, "times": times}
                cut = over(case, act, Wire(Path(folder) / f"{number}-{times}", fault), roads[road])
                found, where = editing_lab.left(case), f"{way} {place} {times}: {cut.stderr}"

                assert found[1] in (before[1], expected[1]), where
                assert not act.keeps or editing_lab.kept(case).items() >= edited.items(), where
                assert cut.returncode != 0 or found == expected, where
                clean = Wire(Path(folder) / f"{number}-{times}-x", {})
                again = over(case, act, clean, roads[road])
                assert again.returncode in (0, ExitCode.NOTHING_TO_DO), again.stderr
                assert editing_lab.left(case) == expected, where
                form.count("editing over a cut link", verb, road)


@pytest.mark.parametrize("late", [False, True])
def test_pip_that_upgrades_within_a_refresh_is_told_and_the_edit_is_in_the_queue(world, late):
    act = editing_lab.ACTS["refresh"]
    editing_lab.steps(world, act.before)
    files = {**worlds.FILES, "demo/units.py": worlds.FILES["demo/units.py"] + "yard = 1\n"}
    archive = worlds.wheel(world.root, files, version="1.1")
    whole = editing_lab.copy(world, world.root.parent / "whole")
    calls = editing_lab.calls(whole, act, ("rename",))
    call, number = calls[-1 if late else 0]
    log = world.root / "trace"
    slow = f"inject={call}:delay_enter=6s:when={number}"
    strace = ["strace", "-f", "-qq", "-o", log, "-e", f"trace={call}", "-e", slow]
    with subprocess.Popen(
        [*strace, *editing_lab.words(world, act)],
        cwd=world.root,
        env=editing_lab.environ(world),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        while not log.exists() or log.read_text().count(f" {call}(") < number:
            assert process.poll() is None
            time.sleep(0.01)
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps"]
        subprocess.run([*pip, "--upgrade", "--target", world.site, archive], check=True)
        _, told = process.communicate(timeout=60)

    assert process.returncode == 0 or b"mend: " in told, told
    assert b"+inch = 0.0254" in (world.series / "15-a.patch").read_bytes()
    assert editing_lab.whole_queue(world)
    status = world.here("status", "--json")
    assert any("orphaned" in one for one in json.loads(status.stdout)["findings"]), status.stdout
    assert (world.site / "demo/units.py").read_text().endswith("yard = 1\n")
    recovered = world.here("recover")
    if late:  # in the midst of the renames: pip's files are neither the old nor the new ones
        assert "--force-old (or --force-new)" in recovered.stderr
        assert world.here("recover", "--force-old").returncode == 0
        recovered = world.here("recover")  # and the record is of a release that is gone
    assert recovered.returncode == 0, recovered.stderr
    assert world.here("status").returncode == 0
    mine = (world.site / "demo/units.py").read_text().endswith("inch = 0.0254\n")
    assert mine is late  # --force-old gives back what was there before the refresh: the edit
