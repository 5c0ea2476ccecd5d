"""What changed between two audits, row by row."""

import json

from hypothesis import given
from hypothesis import strategies as st

from patchq.audit import document
from patchq.audit.changes import Change, compare
from patchq.audit.document import Audit
from patchq.audit.finding import Word
from patchq.audit.serving import Served, Serving
from tests import fleet_rows
from tests.fleet_rows import receipt, row, silent


def changes(then, now):
    return compare(Audit(document.rows(then), "then"), Audit(document.rows(now)))


def only(then, now):
    (one,) = changes([then], [now]).changes
    return one


def test_nothing_changed_between_an_audit_and_itself():
    rows = fleet_rows.fleet(120, 5)

    found = changes(rows, rows)

    assert (found.changes, found.appeared, found.vanished) == ((), (), ())
    assert len(found.compared) == 120


def test_a_word_and_drift_that_came_and_drift_that_went():
    drifted = row(word="drifted", paths=["a.py", "b.py"])

    came, went = only(row(), drifted), only(drifted, row())

    said = {"came": ("a.py", "b.py"), "off": fleet_rows.SERIES}
    assert came == Change("h1", "q", "demo", ("current", "drifted"), **said)
    assert (went.word, went.came, went.went) == (("drifted", "current"), (), ("a.py", "b.py"))


def test_other_files_of_one_word_are_drift_too():
    one = only(row(word="unmanaged", paths=["a", "b"]), row(word="drifted", paths=["b", "c"]))

    assert (one.came, one.went) == (("c",), ("a",))


def test_paths_of_other_words_are_no_drift():
    one = only(row(), row(word="unrecorded", paths=["a.py"]))

    assert (one.came, one.went) == ((), ())


def test_a_new_receipt_is_told_where_the_word_is_the_same():
    one = only(row(receipt=receipt(1)), row(receipt=receipt(2)))

    assert one.word is None
    assert one.receipt.id == "r2"


def test_a_receipt_that_is_gone_is_told():
    one = only(row(receipt=receipt(1)), row())

    assert (one.receipt, one.forgotten) == (None, True)


def test_patches_that_went_on_and_off_and_an_upgrade():
    one = only(
        row(word="partial", patches=["10-a", "15-old"]),
        row(word="partial", patches=["10-a", "20-b"], version="2.0"),
    )

    assert (one.word, one.on, one.off) == (None, ("20-b",), ("15-old",))
    assert one.version == ("1.0", "2.0")


def test_a_host_that_falls_further_behind():
    one = only(
        row(word="behind", behind=1, commit="c", patches=[]),
        row(word="behind", behind=3, commit="c", patches=[]),
    )

    assert one.behind == (1, 3)


def test_a_ledger_that_broke_and_a_record_that_was_mended():
    one = only(row(record_broken="RECORD is gone"), row(ledger_broken="cut"))

    assert one.broken == ((None, "cut"), ("RECORD is gone", None))


def test_hosts_of_another_selection_are_named_and_not_compared():
    found = changes([row("a"), row("b", word="missing")], [row("c"), row("b")])

    assert (found.appeared, found.vanished, found.compared) == (("c",), ("a",), ("b",))
    assert [one.host for one in found.changes] == ["b"]


def test_a_host_that_did_not_answer_stands_for_each_of_its_queues():
    both = [row(queue="p"), row(queue="q", word="missing", patches=[])]

    lost, back = changes(both, [silent("h1")]), changes([silent("h1")], both)
    still = changes([silent("h1")], [silent("h1", word="failed")])

    assert [(one.queue, one.word) for one in lost.changes] == [
        ("p", ("current", "unreachable")),
        ("q", ("missing", "unreachable")),
    ]
    assert [(one.queue, one.word) for one in back.changes] == [
        ("p", ("unreachable", "current")),
        ("q", ("unreachable", "missing")),
    ]
    assert [(one.queue, one.word) for one in still.changes] == [
        (None, ("unreachable", "failed"))
    ]  # fmt: skip


def test_a_queue_that_only_one_audit_has_is_told_without_the_other_word():
    found = changes([row(queue="p")], [row(queue="strange", word="unknown")])

    assert [(one.queue, one.word) for one in found.changes] == [
        ("strange", (None, "unknown")),
        ("p", ("current", None)),
    ]


def test_the_document_is_json_and_has_all_of_it():
    then = row(receipt=receipt(1))
    now = row(word="drifted", paths=["a.py"], receipt=receipt(2), record_broken="it is gone")

    found = json.loads(json.dumps(changes([then, row("x")], [now, row("y")]).to_json()))

    assert found == {
        "time": "then",
        "compared": ["h1"],
        "appeared": ["y"],
        "vanished": ["x"],
        "changes": [
            {
                "host": "h1",
                "queue": "q",
                "distribution": "demo",
                "word": ["current", "drifted"],
                "version": None,
                "behind": None,
                "drift": {"came": ["a.py"], "went": []},
                "patches": {"on": [], "off": list(fleet_rows.SERIES)},
                "receipt": {
                    "id": "r2",
                    "time": "2026-01-01T00:02:00Z",
                    "verb": "push",
                    "who": "ops",
                    "whence": "laptop",
                },
                "receipt_gone": False,
                "broken": [[None, "it is gone"]],
                "running": None,
            }
        ],
    }


def live(*processes, restart=(), mixed=(), **more):
    """Return `running` of (pid, name, server)."""
    found = [{"pid": pid, "name": name, "server": server} for pid, name, server in processes]
    return {"processes": found, "restart": list(restart), "mixed": list(mixed), **more}


def test_a_restart_that_is_needed_now_and_one_that_is_settled():
    old = live((10, "serve", 10), (11, "worker", 10), restart=[10, 11], mixed=[[10, 11]])
    new = live((20, "serve", 20), (21, "worker", 20))

    came, went = only(row(running=new), row(running=old)), only(row(running=old), row(running=new))

    names = Serving(("serve", "worker"), ("serve",))
    assert came == Change("h1", "q", "demo", running=Served(came=names))
    assert went.running == Served(went=names)


def test_new_numbers_another_order_and_who_is_up_to_date_are_no_change():
    then = live((10, "serve", 10), (11, "worker", 10), restart=[10, 11], mixed=[[10, 11]])
    other = [(30, "worker", 40), (40, "serve", 40), (50, "other", 50)]
    now = live(*other, restart=[30, 40], mixed=[[40, 30]])

    assert changes([row(running=then)], [row(running=now)]).changes == ()


def test_of_equal_names_the_number_counts():
    then = live((1, "worker", 1), (2, "worker", 1), restart=[1, 2])
    now = live((3, "worker", 1), (4, "worker", 1), (5, "worker", 1), restart=[3, 4, 5])

    assert only(row(running=then), row(running=now)).running.came.restart == ("worker",)


def test_processes_are_compared_where_both_audits_looked():
    old = live((10, "serve", 10), restart=[10])

    assert changes([row()], [row(running=old)]).changes == ()
    assert changes([row(running=old)], [row()]).changes == ()
    assert only(row(running=old), silent("h1")).running is None


def test_what_cannot_be_looked_into_now_is_counted_with_what_went():
    then = live((10, "serve", 10), restart=[10], unreadable=1)

    one = only(row(running=then), row(running=live(unreadable=3, unseen=2)))

    assert one.running == Served(went=Serving(("serve",)), unread=4)
    assert one.to_json()["running"] == {
        "restart": {"came": (), "went": ("serve",)},
        "mixed": {"came": (), "went": ()},
        "unread": 4,
        "hidden": False,
    }


def test_where_other_users_are_hidden_now_what_went_may_be_theirs():
    then = live((10, "serve", 10), restart=[10], hidden=False)

    assert only(row(running=then), row(running=live(hidden=True))).running.hidden
    assert not only(row(running=live(hidden=True)), row(running=then)).running.hidden


ROWS = st.lists(
    st.builds(
        lambda host, queue, word, paths: row(host, word, queue=queue, paths=paths),
        st.sampled_from("abc"),
        st.sampled_from("pq"),
        st.sampled_from([word.value for word in Word]),
        st.lists(st.sampled_from(["x", "y", "z"]), unique=True),
    ),
    unique_by=lambda one: (one["host"], one["queue"]),
)


@given(ROWS, ROWS)
def test_backwards_is_the_same_the_other_way_round(then, now):
    there, back = changes(then, now), changes(now, then)

    assert set(there.appeared) == set(back.vanished)
    assert set(there.compared) == set(back.compared)
    assert {(c.host, c.queue, c.word, c.came, c.went) for c in there.changes} == {
        (c.host, c.queue, c.word and c.word[::-1], c.went, c.came) for c in back.changes
    }
    hosts = {one["host"] for one in (*then, *now)}
    assert hosts == {*there.compared, *there.appeared, *there.vanished}
