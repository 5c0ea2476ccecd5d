"""Which code a process has: by its start, its parents, and the receipts."""

from __future__ import annotations

import time
from typing import Any

import pytest

from patchq import running
from patchq.running import State

SECOND = 10**9
UTC = 1_800_000_000 * SECOND
UP = 1_000 * SECOND  # "now": 1,000 s after the boot
TICKS = 100


def receipt(name: str, up: float, before: str, after: str, **more: Any) -> dict[str, Any]:
    """Return a receipt whose files were staged `up` seconds after the boot."""
    utc = UTC - UP + int(up * SECOND)
    return {
        "id": name,
        "time": stamp(utc),
        "verb": "push",
        "host": "here",
        "clock": {"boot": "b1", "up": int(up * SECOND), "utc": utc},
        "effect": {"before": before, "after": after},
        **more,
    }


def stamp(utc: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(utc // SECOND))


def process(pid: int, start: float, parent: int | None = None, **more: Any) -> dict[str, Any]:
    """Return a process that started `start` seconds after the boot."""
    told = {"pid": pid, "parent": parent, "start": round(start * TICKS), "forked": False}
    return {**told, "name": "demo-serve", "proof": "command", **more}


def found(
    processes: list[dict[str, Any]], receipts: list[dict[str, Any]], took: float | None = 0.05
) -> running.Running:
    """Return what is read from an answer; `took`: how long the last transaction went on."""
    until = receipts[-1]["clock"]["utc"] + int(took * SECOND) if receipts and took else None
    answer = {
        "boot": "b1",
        "up": UP,
        "utc": UTC,
        "ticks": TICKS,
        "processes": processes,
        "receipts": receipts,
        "until": until,
        "unreadable": 0,
        "unseen": 0,
        "others": 0,
    }
    read = running.read(answer)
    assert read is not None
    return read


@pytest.mark.parametrize(
    ("start", "state"),
    [
        (1.0, State.BEFORE),
        (499.98, State.BEFORE),
        (499.99, State.BEFORE),  # its tick ends as the files were staged
        (500.0, State.UNKNOWN),
        (500.04, State.UNKNOWN),
        (500.05, State.CURRENT),
        (900.0, State.CURRENT),
    ],
)
def test_a_start_is_compared_with_both_ends_of_the_transaction(start, state):
    one = found([process(7, start)], [receipt("r1", 500, "e0", "e1")]).processes[0]

    assert one.state is state
    assert one.since is None if state is State.CURRENT else one.since.id == "r1"
    assert (one.receipt.id if one.receipt else None) == ("r1" if state is State.CURRENT else None)


def test_a_transaction_whose_end_nobody_knows_is_given_ten_seconds():
    moved = [receipt("r1", 500, "e0", "e1")]
    states = [
        found([process(7, start)], moved, took=None).processes[0].state for start in (509, 511)
    ]

    assert states == [State.UNKNOWN, State.CURRENT]


def test_the_next_receipt_knows_when_the_one_before_it_was_done():
    moved = [receipt("r1", 500, "e0", "e1"), receipt("r2", 600, "e1", "e2")]
    moved[1]["clock"]["ledger"] = moved[0]["clock"]["utc"] + SECOND
    moved.append(receipt("r3", 601, "e2", "e3"))
    starts = (499, 500.5, 501, 600.5)
    found_ = found([process(n, at) for n, at in enumerate(starts)], moved).processes

    assert [one.code for one in found_] == ["e0", None, "e1", None]


def test_a_ledger_that_was_copied_later_says_nothing_of_the_end():
    moved = [receipt("r1", 500, "e0", "e1")]
    late = found([process(7, 520)], moved, took=7200).processes[0]
    early = found([process(7, 520)], moved, took=-5).processes[0]

    assert late.state is early.state is State.CURRENT


def test_a_process_names_the_receipt_that_was_in_force_and_the_one_it_missed():
    moved = [
        receipt("r1", 100, "e0", "e1"),
        receipt("r2", 200, "e1", "e2"),
        receipt("r3", 300, "e2", "e3"),
    ]
    one = found([process(7, 250)], moved).processes[0]

    assert (one.state, one.receipt.id, one.since.id) == (State.BEFORE, "r2", "r3")
    assert one.code == "e2"


def test_what_was_taken_back_since_is_todays_code():
    moved = [receipt("r1", 100, "e0", "e1"), receipt("r2", 200, "e1", "e0", verb="undo")]
    before, between = found([process(7, 50), process(8, 150)], moved).processes

    assert before.state is State.CURRENT
    assert between.state is State.BEFORE


def test_a_forked_process_has_the_code_of_its_parent():
    processes = [
        process(10, 50),
        process(11, 400, 10, forked=True),
        process(12, 500, 11, forked=True),
        process(13, 500, 11),
    ]
    states = [one.state for one in found(processes, [receipt("r1", 300, "e0", "e1")]).processes]

    assert states == [State.BEFORE, State.BEFORE, State.BEFORE, State.CURRENT]


def test_workers_of_one_server_that_differ_are_an_alarm():
    tree = [process(10, 50), process(11, 60, 10), process(12, 400, 10)]
    alone = [process(20, 50), process(21, 400)]
    answer = found(tree + alone, [receipt("r1", 300, "e0", "e1")])

    assert [[one.pid for one in server] for server in answer.mixed] == [[10, 11, 12]]
    assert [one.pid for one in answer.of(State.BEFORE)] == [10, 11, 20]


def test_what_is_not_proven_or_not_known_is_no_alarm():
    tree = [
        process(10, 50),
        process(11, 400, 10, proof="environment"),
        process(12, 300.01, 10),
    ]
    answer = found(tree, [receipt("r1", 300, "e0", "e1")])

    assert answer.mixed == ()
    assert [one.pid for one in answer.of(State.UNKNOWN)] == [12]
    assert [one.pid for one in answer.of(State.CURRENT, proven=False)] == [11]


def test_a_receipt_of_another_boot_is_placed_by_the_wall_clock():
    old = receipt("r1", 300, "e0", "e1")
    for clock in (None, {"boot": "b0", "up": 7, "utc": 7}, {"boot": "", "up": 7, "utc": 7}):
        moved = [{**old, "clock": clock}]
        answer = found([process(n, at) for n, at in ((7, 290), (8, 305), (9, 325))], moved, None)
        states = [one.state for one in answer.processes]
        assert states == [State.BEFORE, State.UNKNOWN, State.CURRENT]


def test_a_receipt_from_before_the_boot_is_in_force_for_all():
    moved = [{**receipt("r1", -5000, "e0", "e1"), "clock": {"boot": "b0", "up": 1, "utc": 1}}]

    assert found([process(1, 0)], moved, None).processes[0].state is State.CURRENT


def test_a_wall_clock_that_was_set_since_is_no_matter():
    moved = [receipt("r1", 300, "e0", "e1")]
    moved[0]["clock"]["utc"] -= 10**6 * SECOND
    moved[0]["time"] = "2001-01-01T00:00:00Z"
    states = [found([process(7, at)], moved).processes[0].state for at in (299, 301)]

    assert states == [State.BEFORE, State.CURRENT]


def test_where_nothing_was_ever_changed_all_is_current():
    answer = found([process(7, 1)], [])

    assert answer.processes[0].state is State.CURRENT
    assert not answer.managed


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("vllm serve", "API server"),
        ("python -m vllm.entrypoints.openai.api_server", "API server"),
        ("VLLM::APIServer_0", "API server"),
        ("VLLM::EngineCore", "engine core"),
        ("VLLM::EngineCore_DP3", "engine core"),
        ("mine::EngineCore_DP3", "engine core"),
        ("VLLM::Worker", "worker"),
        ("VLLM::Worker_DP0_PP1_PCP0_TP2_DCP0_EP5", "worker"),
        ("VLLM::DPCoordinator", "coordinator"),
        ("vllm bench", "program"),
        ("Workers", "program"),
    ],
)
def test_vllms_own_titles_are_known(name, kind):
    assert running.kind(name) == kind


@pytest.mark.parametrize(
    "damage",
    [
        None,
        7,
        {},
        {"processes": 7},
        {"processes": [{}]},
        {"processes": [process(7, 1, proof="I say so")]},
        {"processes": [{**process(7, 1), "start": "x"}]},
        {"processes": [process(n, 1, n - 1) for n in range(1001)]},
        {"ticks": 0},
        {"receipts": [{}]},
        {"receipts": [receipt("r", 1, "a", "b", clock=7)]},
        {"receipts": [receipt("r", 1, "a", "b", effect=None)]},
        {"until": "x", "receipts": [receipt("r", 1, "a", "b")]},
    ],
)
def test_an_answer_that_makes_no_sense_is_not_believed(damage):
    whole = {
        "boot": "b1",
        "up": UP,
        "utc": UTC,
        "ticks": TICKS,
        "processes": [process(7, 1)],
        "receipts": [],
        "until": None,
        "unreadable": 0,
        "unseen": 0,
        "others": 0,
    }
    assert running.read(whole) is not None
    answer = {**whole, **damage} if isinstance(damage, dict) and damage else damage

    assert running.read(answer) is None


def test_what_could_not_be_seen_matters_where_something_was_changed():
    """An agent that names no process says of one receipt, and no more, that it was."""
    one = receipt("one", 100, "e0", "e1")
    answer = {"boot": "b1", "up": UP, "utc": UTC, "ticks": TICKS, "processes": [], "until": None}
    answer |= {"unreadable": 3, "unseen": 0, "others": 0, "hidden": True, "receipts": [one]}
    answer["unread"] = [[7, "ap\x1bi"]]

    read = running.read(answer)

    assert read is not None
    assert (read.managed, read.hidden, read.unread) == (True, True, ((7, "ap?i"),))
    assert read.to_json()["hidden"] is True
    assert read.to_json()["unread"] == [{"pid": 7, "name": "ap?i"}]


def test_processes_that_name_each_other_as_parents_end():
    answer = found([process(7, 1, 8, forked=True), process(8, 1, 7, forked=True)], [])

    assert [one.server for one in answer.processes] == [8, 7]
