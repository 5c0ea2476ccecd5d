"""What is said of running processes."""

from __future__ import annotations

from patchq.conversation import restart
from patchq.running import Process, Receipt, Running, State

R1 = Receipt("r1", "2026-01-01T00:00:00Z", "push", "e0", "e1", 0, 1)
R2 = Receipt("r2", "2026-02-01T00:00:00Z", "push", "e1", "e2", 5, 6)


def process(pid: int, state: State, **more: object) -> Process:
    values = {
        "name": "demo-serve",
        "kind": "program",
        "proof": "command",
        "server": 1,
        "receipt": R1 if state is State.BEFORE else R2,
        "since": R2 if state is State.BEFORE else None,
        "code": "e1" if state is State.BEFORE else "e2",
    }
    return Process(pid, state=state, **{**values, **more})


def test_the_last_line_names_who_must_be_restarted():
    found = Running((process(1, State.BEFORE, server=1), process(2, State.CURRENT, server=2)))

    assert restart.needed(found, verb="pop") == (
        "restart needed: 1 demo-serve: started before this pop",
    )
    assert restart.needed(found) == (
        "restart needed: 1 demo-serve: started before push 2026-02-01T00:00:00Z",
    )
    assert restart.current(found) == ("running on the current code: 2 demo-serve",)


def test_where_all_is_current_nothing_is_needed():
    found = Running((process(2, State.CURRENT),))

    assert restart.needed(found, verb="push") == ()
    assert restart.alarms(found) == ()


def test_where_nothing_was_ever_changed_nothing_is_said():
    found = Running((process(2, State.CURRENT, receipt=None),), managed=False)

    assert restart.needed(found) == restart.current(found) == ()
    assert restart.needed(None) == restart.current(None) == ()


def test_workers_that_differ_are_named_by_their_code():
    found = Running(
        (
            process(1, State.BEFORE),
            process(2, State.BEFORE, receipt=None, since=R1, code="e0"),
            process(3, State.CURRENT, name="VLLM::Worker_TP1"),
        )
    )

    (alarm, needed) = restart.needed(found, verb="push")
    assert alarm == (
        "alarm: the processes of server 1 differ: as of push 2026-01-01T00:00:00Z: 1 demo-serve;"
        " before push 2026-01-01T00:00:00Z: 2 demo-serve;"
        " as of push 2026-02-01T00:00:00Z: 3 VLLM::Worker_TP1"
    )
    assert needed.startswith("restart needed: 1 demo-serve, 2 demo-serve: ")
    assert restart.needed(found, alarmed=True) != restart.needed(found)


def test_what_is_not_known_is_told_before_what_is():
    found = Running(
        (
            process(1, State.BEFORE),
            process(2, State.BEFORE, proof="environment", name="python -c"),
            process(3, State.UNKNOWN, code=None),
            process(4, State.CURRENT, proof="environment"),
        ),
        unreadable=1,
        unseen=7,
    )

    assert [line.split(":")[0] for line in restart.needed(found)] == [
        "restart perhaps",
        "restart perhaps",
        "1 process of other users may be Python, and cannot be looked into",
        "7 processes were not looked at",
        "restart needed",
    ]


def test_who_cannot_be_looked_into_is_named_also_where_nobody_else_was_found():
    found = Running((), unreadable=22, hidden=True, unread=tuple((n, "api") for n in range(20)))

    hidden, unread = restart.needed(found, verb="push")

    assert hidden == (
        "/proc does not show the processes of other users: which of them must be restarted"
        " cannot be seen"
    )
    assert unread.startswith("22 processes of other users may be Python, and cannot be looked")
    assert unread.endswith(" into: " + ", ".join(f"{n} api" for n in range(20)) + " and 2 more")
    assert restart.needed(Running((), unreadable=1, hidden=True, managed=False)) == ()


def test_more_processes_than_a_line_has_room_for_are_counted():
    found = Running(tuple(process(pid, State.BEFORE) for pid in range(1, 24)))

    (line,) = restart.needed(found, verb="push")
    assert ", 20 demo-serve and 3 more: started" in line
