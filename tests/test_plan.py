"""Plans are made of hashes alone; every kind of conflict is told apart."""

import pytest

from patchq import plan, standing
from patchq.model import (
    ABSENT,
    Found,
    Installed,
    Lock,
    LockedPatch,
    PathChange,
    Survey,
    sha256,
)
from patchq.plan import Kind
from tests.locked import A0, A1, A2, B0, B1, LOCK, NEW, ONE, THREE, TWO, applied, state


def survey(a=A0, b=B0, n=ABSENT, *, stack=(), version="1.0", **recorded) -> Survey:
    live = {"p/a.py": a, "p/b.py": b, "p/n.py": n}
    files = {
        path: Found(path, "absent" if s == ABSENT else "file", s, recorded.get(path[2]))
        for path, s in live.items()
    }
    have = Installed("demo", version, f"demo-{version}.dist-info", sha256(b""), "pip")
    return Survey("3.11.7", "python", "/site", have, files, stack)


def kinds(planned: plan.Plan) -> list[tuple[Kind, str, str | None]]:
    return [(c.kind, c.patch, c.path) for c in planned.conflicts]


def test_push_goes_from_live_to_goal_in_one_entry_a_path():
    planned = plan.push(LOCK, "q", survey(), 3)

    assert planned.conflicts == ()
    assert planned.patches == ("one.patch", "two.patch", "three.patch")
    assert planned.entries == (
        PathChange("p/a.py", A0, A2),
        PathChange("p/b.py", B0, B1),
        PathChange("p/n.py", ABSENT, NEW),
    )


def test_push_from_the_middle_starts_at_the_recorded_state():
    planned = plan.push(LOCK, "q", survey(a=A1, stack=applied(ONE)), 2)

    assert planned.conflicts == ()
    assert planned.patches == ("two.patch",)
    assert [one.patch for one in planned.stack] == ["one.patch", "two.patch"]


def test_push_lists_the_failures_of_the_whole_series_not_the_first():
    planned = plan.push(LOCK, "q", survey(a=state("x"), n=state("y")), 3)

    assert kinds(planned) == [
        (Kind.DRIFT, "one.patch", "p/a.py"),
        (Kind.DRIFT, "three.patch", "p/n.py"),
    ]


@pytest.mark.parametrize(
    ("here", "kind"),
    [
        (survey(a=state("edited")), Kind.DRIFT),
        (survey(a=ABSENT), Kind.DRIFT),
        (survey(a=A1), Kind.ALREADY_THERE),
        (survey(a=A2), Kind.PARTIAL),
        (survey(a=A2, b=B1), Kind.ALREADY_THERE),
        (survey(a=state("other"), version="2.0", a_=None), Kind.WRONG_RELEASE),
    ],
)
def test_one_file_that_is_not_the_base_is_told_apart(here, kind):
    assert [c.kind for c in plan.push(LOCK, "q", here, 1).conflicts] == [kind]


def test_a_patch_half_in_its_files_is_partial():
    planned = plan.push(LOCK, "q", survey(a=A1, b=B1, stack=applied(ONE)), 2)

    assert kinds(planned) == [(Kind.PARTIAL, "two.patch", "p/b.py")]


def test_bytes_that_nobody_recorded_are_told_up_to_the_last_patch_that_is_there():
    planned = plan.push(LOCK, "q", survey(a=A2, b=B1), 3)

    assert kinds(planned) == [
        (Kind.ALREADY_THERE, "one.patch", "p/a.py"),
        (Kind.ALREADY_THERE, "two.patch", "p/b.py"),
    ]
    assert all("is as after two.patch already" in c.message for c in planned.conflicts)


def test_bytes_that_nobody_recorded_on_top_of_a_record_are_told_too():
    planned = plan.push(LOCK, "q", survey(a=A2, b=B1, stack=applied(ONE)), 3)

    assert kinds(planned) == [
        (Kind.DRIFT, "one.patch", "p/a.py"),
        (Kind.ALREADY_THERE, "two.patch", "p/b.py"),
    ]


@pytest.mark.parametrize("goal", [1, 2, 3])
def test_a_push_on_a_stack_that_drifted_is_refused_whatever_it_touches(goal):
    planned = plan.push(LOCK, "q", survey(a=A0, stack=applied(ONE)), goal)

    assert kinds(planned) == [(Kind.DRIFT, "one.patch", "p/a.py")]
    assert (planned.conflicts[0].expected, planned.conflicts[0].found) == (A1, A0)


def test_a_pop_refuses_drift_below_what_it_takes_off():
    here = survey(a=state("edited"), n=NEW, stack=applied(ONE, THREE))

    assert kinds(plan.pop("q", here, 1)) == [(Kind.DRIFT, "one.patch", "p/a.py")]


def test_another_queues_drift_does_not_keep_a_queue_from_moving():
    other = LockedPatch("x.patch", "", sha256(b"x"), None, (PathChange("p/n.py", ABSENT, NEW),))
    here = survey(n=state("edited"), stack=applied(other, queue="r"))

    assert plan.push(LOCK, "q", here, 2).conflicts == ()


def test_another_queues_patch_below_is_named():
    other = LockedPatch("x.patch", "", sha256(b"x"), None, (PathChange("p/a.py", A0, state("x")),))

    planned = plan.push(LOCK, "q", survey(a=state("x"), stack=applied(other, queue="r")), 1)

    assert kinds(planned) == [(Kind.ANOTHER_QUEUE, "one.patch", "p/a.py")]
    assert "x.patch of queue r" in planned.conflicts[0].message


def test_a_patch_that_changed_since_its_push_is_a_conflict():
    old = LockedPatch("one.patch", "", sha256(b"older"), None, TWO.changes)

    planned = plan.push(LOCK, "q", survey(a=A2, stack=applied(old)), 2)

    assert kinds(planned) == [(Kind.CHANGED_PATCH, "one.patch", None)]


def test_a_patch_whose_header_alone_changed_since_its_push_is_the_same():
    old = LockedPatch("one.patch", "", sha256(b"older"), None, ONE.changes)

    planned = plan.push(LOCK, "q", survey(a=A1, b=B0, stack=applied(old)), 2)

    assert kinds(planned) == []


def test_a_stack_in_another_order_than_the_series_is_a_conflict():
    planned = plan.push(LOCK, "q", survey(n=NEW, stack=applied(THREE)), 2)

    assert kinds(planned) == [(Kind.ORDER, "three.patch", None)]


def test_pop_restores_what_no_patch_below_touches_and_computes_the_rest():
    here = survey(a=A2, b=B1, n=NEW, stack=applied(ONE, TWO, THREE))

    planned = plan.pop("q", here, 1)

    assert planned.conflicts == ()
    assert planned.patches == ("three.patch", "two.patch")
    assert set(planned.entries) == {
        PathChange("p/n.py", NEW, ABSENT),
        PathChange("p/a.py", A2, A1),
        PathChange("p/b.py", B1, B0),
    }
    assert planned.restored == {"p/n.py", "p/b.py"}
    assert [one.patch for one in planned.stack] == ["one.patch"]


def test_pop_refuses_when_a_file_was_edited_since_push():
    planned = plan.pop("q", survey(a=state("edited"), stack=applied(ONE)), 0)

    assert kinds(planned) == [(Kind.DRIFT, "one.patch", "p/a.py")]


def test_pop_refuses_below_another_queues_patch_of_the_same_file():
    other = LockedPatch("x.patch", "", sha256(b"x"), None, (PathChange("p/a.py", A1, state("x")),))
    stack = (*applied(ONE), *applied(other, queue="r"))

    planned = plan.pop("q", survey(a=state("x"), stack=stack), 0)

    assert kinds(planned) == [(Kind.ANOTHER_QUEUE, "one.patch", "p/a.py")]


def test_pop_refuses_where_another_queues_patch_lies_between_two_that_come_off():
    x, y = state("x"), state("y")
    lower = LockedPatch("one.patch", "", sha256(b"one"), None, (PathChange("p/a.py", A0, A1),))
    other = LockedPatch("x.patch", "", sha256(b"x"), None, (PathChange("p/a.py", A1, x),))
    upper = LockedPatch("two.patch", "", sha256(b"two"), None, (PathChange("p/a.py", x, y),))
    stack = (*applied(lower), *applied(other, queue="r"), *applied(upper))
    here = survey(a=y, stack=stack)

    planned = plan.pop("q", here, 0)

    assert kinds(planned) == [(Kind.ANOTHER_QUEUE, "one.patch", "p/a.py")]
    assert planned.conflicts[0].other == "r"
    assert plan.pop("q", here, 1).conflicts == ()


def test_the_series_of_a_queue_is_chosen_below_what_another_queue_changed():
    other = LockedPatch("x.patch", "", sha256(b"x"), None, (PathChange("p/a.py", A0, state("x")),))
    here = survey(a=state("x"), stack=applied(other, queue="r"), version="9.9+vendor")

    assert standing.choose({"1.0": LOCK}, "q", here) == standing.Choice("1.0", "content")


def test_the_series_is_chosen_by_content_whatever_the_version_says():
    choice = standing.choose({"1.0": LOCK}, "q", survey(version="9.9+vendor"))

    assert choice == standing.Choice("1.0", "content")


def test_of_series_with_equal_effect_the_installed_version_picks():
    twin = Lock("demo", "1.1", "tree", LOCK.patches)

    assert standing.choose({"1.0": LOCK, "1.1": twin}, "q", survey(version="1.1+cu130")) == (
        standing.Choice("1.1", "content", ("1.0",))
    )
    assert standing.choose({"1.0": LOCK, "1.1": twin}, "q", survey(version="7")) == (
        standing.Choice("1.1", "content", ("1.0",))
    )


def test_absence_alone_proves_nothing():
    adds = Lock("demo", "1.0", "tree", (THREE,))

    assert standing.choose({"1.0": adds}, "q", survey(version="2.0")) is None
    assert standing.choose({"1.0": adds}, "q", survey(version="1.0")) == standing.Choice(
        "1.0", "version"
    )


def test_where_no_content_fits_the_version_decides_and_never_the_nearest():
    drifted = survey(a=state("edited"))

    assert standing.choose({"1.0": LOCK}, "q", drifted) == standing.Choice("1.0", "version")
    assert standing.choose({"0.9": LOCK}, "q", drifted) is None


def test_the_record_comes_first():
    here = survey(a=A1, stack=applied(ONE), version="3.0")

    assert standing.choose({"1.0": LOCK}, "q", here) == standing.Choice("1.0", "record")
