"""The editing verbs killed: at any call that changes a name, in patchq and in its agent.

strace ends the process that makes the N-th call of a kind (``inject=CALL:signal=KILL``).
Afterwards the queue and the environment can be read, no edit is lost, and the same
command again leaves what a run leaves that nobody disturbed.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest

from patchq.errors import ExitCode
from tests.torture import editing_lab, form

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("verb", editing_lab.ACTS)
def test_a_killed_verb_is_finished_by_the_same_command(world, verb):
    act = editing_lab.ACTS[verb]
    editing_lab.steps(world, act.before)
    editing_lab.words(world, act)
    edited = editing_lab.kept(world)
    with tempfile.TemporaryDirectory() as folder:
        whole = editing_lab.copy(world, Path(folder) / "whole")
        calls = editing_lab.calls(whole, act)
        assert len(calls) > 3
        expected = editing_lab.left(whole)
        for call, number in form.some(calls, 2):
            case = editing_lab.copy(world, Path(folder) / "case")
            where = f"{verb} {call} {number}"
            fault = f"inject={call}:signal=KILL:when={number}"
            cut = editing_lab.run(case, act, "-o", "/dev/null", "-e", f"trace={call}", "-e", fault)
            look = case.here("status")

            assert look.returncode in (0, ExitCode.FINDING), where
            if cut.returncode:
                assert not act.keeps or editing_lab.kept(case).items() >= edited.items(), where
                assert editing_lab.unfinished(case, act) == "", where
                form.count("editing killed", verb, "finished")
            assert editing_lab.left(case) == expected, where
            assert editing_lab.whole_queue(case), where
            shutil.rmtree(case.root)


def test_delete_without_a_name_takes_no_second_patch_after_it_was_cut_short(world):
    editing_lab.steps(world, editing_lab.ON)
    act = editing_lab.Act("", "delete", keeps=False)
    whole = editing_lab.copy(world, world.root.parent / "whole")
    renames = [one for one in editing_lab.calls(whole, act) if one[0] == "rename"]
    for call, number in renames:
        case = editing_lab.copy(world, world.root.parent / f"case-{number}")
        fault = f"inject={call}:signal=KILL:when={number}"
        editing_lab.run(case, act, "-o", "/dev/null", "-e", f"trace={call}", "-e", fault)

        again = case.here("delete")

        held = case.here("applied").stdout.split()
        assert "10-pi.patch" in held, again.stdout + again.stderr
        shutil.rmtree(case.root)
