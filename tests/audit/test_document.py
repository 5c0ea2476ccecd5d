"""An earlier audit is read back, and what is none is told apart."""

import json

import pytest

from patchq.audit import document
from patchq.audit.document import NotAnAudit
from tests import fleet_rows


def text(**more):
    found = {"schema": 1, "verb": "audit", "rows": [fleet_rows.row()]}
    return json.dumps(found | more).encode()


def refused(data):
    with pytest.raises(NotAnAudit) as caught:
        document.read(data)
    return str(caught.value)


def test_all_rows_of_a_fleet_are_read_back():
    rows = fleet_rows.fleet(120, 5)

    found = document.read(text(rows=rows, time="2026-01-01T00:00:00Z"))

    assert found.time == "2026-01-01T00:00:00Z"
    assert [(one.host, one.queue, one.word) for one in found.rows] == [
        (row["host"], row.get("queue"), row["word"]) for row in rows
    ]
    assert found.rows == document.rows(rows)
    assert found.rows[0].receipt.who == "ops"


def test_a_document_from_before_there_was_a_time_or_a_series_is_read():
    row = fleet_rows.row()
    del row["series"], row["running"]

    found = document.read(text(rows=[row]))

    assert found.time is None
    assert found.rows[0].patches == fleet_rows.SERIES


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "it is empty"),
        (b" \n", "it is empty"),
        (b"HOST  QUEUE\n", "it is not JSON"),
        (text()[:-20], "it is not JSON"),
        (b"\xff\xfe{}", "it is not JSON"),
        (b"[" * 200_000, "nested"),
        (b"[]", 'no "schema"'),
        (b'{"resultCode": 0}', 'no "schema"'),
        (text(schema=2), "its schema is 2; this patchq reads 1"),
        (text(verb="status"), 'the answer of "status", not of audit'),
        (text(error={"what": "no"}), "a run that failed"),
        (text(rows=None), 'no list of "rows"'),
        (text(rows=[fleet_rows.row(), 7]), "row 2 has 7 where"),
        (text(rows=[fleet_rows.row(host=None)]), 'row 1 has null for "host"'),
        (text(rows=[fleet_rows.row(word=3)]), 'row 1 has 3 for "word"'),
        (text(rows=[fleet_rows.row(queue=[])]), 'row 1 has [] for "queue"'),
        (text(rows=[fleet_rows.row(paths="abc")]), 'row 1 has "abc" for "paths"'),
        (text(rows=[fleet_rows.row(patches=[1])]), 'row 1 has [1] for "patches"'),
        (text(rows=[fleet_rows.row(behind="2")]), 'row 1 has "2" for "behind"'),
        (text(rows=[fleet_rows.row(receipt="r")]), 'row 1 has "r" where'),
        (text(rows=[fleet_rows.row(running=[])]), "row 1 has [] where"),
        (text(rows=[fleet_rows.row(running={"restart": [1]})]), "row 1 has no list of processes"),
        (
            text(rows=[fleet_rows.row(running={"processes": [], "restart": [1], "mixed": []})]),
            "row 1 has no list of processes",
        ),
        (text(rows=[fleet_rows.row(receipt={"id": 1})]), 'row 1 has 1 for "id"'),
    ],
)
def test_what_is_no_audit_is_refused_and_said_what_it_is(data, why):
    assert why in refused(data)


def test_a_long_value_is_not_quoted_whole():
    assert len(refused(text(schema="x" * 5000))) < 200


@pytest.mark.parametrize(
    ("row", "good"),
    [
        (fleet_rows.row(), True),
        (fleet_rows.row(word="missing"), False),
        (fleet_rows.row(word="missing", wanted=False), True),
        (fleet_rows.row(word="drifted", wanted=False), False),
        (fleet_rows.row(ledger_broken="cut"), False),
        (fleet_rows.row(record_broken="gone"), False),
        (fleet_rows.silent("h"), False),
    ],
)
def test_a_row_is_good_as_the_exit_code_has_it(row, good):
    assert document.good(row) is good
