"""What an audit is told as: settled before the hosts are asked, written after."""

import json
import time

import pytest

from patchq.cli import reporting
from patchq.cli.reporting import Reports
from patchq.errors import UsageError
from tests import fleet_rows

NOTHING = {"html": None, "prometheus": None, "since": None, "as_csv": False, "as_json": False}


def taken(**more):
    return Reports.take(dict(NOTHING) | more)


def test_options_are_taken_and_those_of_the_target_left():
    values = dict(NOTHING)

    reports = Reports.take(values)

    assert reports.form == reporting.TABLE
    assert values == {"as_json": False}


@pytest.mark.parametrize(
    ("options", "form"),
    [
        ({"as_csv": True}, "--csv"),
        ({"as_json": True}, "--json"),
        ({"prometheus": "-"}, "--prometheus"),
        ({"since": "old"}, "--since"),
        ({"since": "old", "as_json": True}, "--json"),
        ({"prometheus": "m.prom", "html": "a.html", "as_json": True}, "--json"),
    ],
)
def test_there_is_one_answer_and_files_beside_it(options, form, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    document = {"schema": 1, "verb": "audit", "rows": []}
    (tmp_path / "old").write_text(json.dumps(document))

    reports = taken(**options)

    assert reports.form == form
    assert (reports.html is not None) is ("html" in options)
    assert (reports.earlier is not None) is ("since" in options)


@pytest.mark.parametrize(
    "options",
    [
        {"as_csv": True, "as_json": True},
        {"as_csv": True, "since": "old"},
        {"prometheus": "-", "as_json": True},
        {"prometheus": "-", "since": "old"},
    ],
)
def test_two_answers_are_refused(options):
    with pytest.raises(UsageError, match="do not go together"):
        taken(**options)


def test_a_run_that_was_interrupted_writes_nothing_and_says_so(tmp_path):
    (tmp_path / "m.prom").write_text("old\n")
    reports = taken(prometheus=str(tmp_path / "m.prom"), html=str(tmp_path / "a.html"))

    said = reports.write(fleet_rows.fleet(3, 1), 130, (), whole=False)

    assert [text.split(":")[0] for text in said] == ["not written", "not written"]
    assert (tmp_path / "m.prom").read_text() == "old\n"
    assert not (tmp_path / "a.html").exists()


def test_a_page_and_metrics_are_written_and_named(tmp_path):
    reports = taken(prometheus=str(tmp_path / "m.prom"), html=str(tmp_path / "a.html"))

    said = reports.write(fleet_rows.fleet(3, 1), 5, ("a note",), whole=True)

    assert said == [f"written: {tmp_path / name}" for name in ("a.html", "m.prom")]
    assert "patchq_audit_exit_code 5\n" in (tmp_path / "m.prom").read_text()
    assert "a note" in (tmp_path / "a.html").read_text()
    assert set(reports.to_json(None)) == {"html", "prometheus"}


def test_an_audit_is_of_now():
    assert abs(reporting.now().timestamp() - time.time()) < 60
