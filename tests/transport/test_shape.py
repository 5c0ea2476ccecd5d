"""Answers of an agent: what a verb takes for granted is there, or the answer is refused."""

import copy
import json

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from patchq.transport import shape

DIGEST = "a" * 64
SURVEY = {
    "python": {"version": "3.11.2", "executable": "/usr/bin/python3"},
    "site": "/site",
    "installed": {
        "name": "demo",
        "version": "1.0",
        "dist_info": "demo-1.0.dist-info",
        "record": None,
        "metadata": DIGEST,
        "installer": "pip",
    },
    "files": {
        "demo/a.py": {
            "kind": "file",
            "sha256": DIGEST,
            "executable": False,
            "recorded": None,
            "problem": None,
        }
    },
    "state": None,
    "refusal": None,
    "orphaned": None,
    "interrupted": None,
}
ASKED = {"op": "survey", "paths": ["demo/a.py"], "known": []}
READ = {"files": {"a": DIGEST, "b": None}, "originals": {"c": None}}
READING = {"op": "read", "paths": ["a", "b"], "originals": ["c"]}


def changed(answer, at, value):
    """Return a copy of an answer with another value at a place, or none (`...`)."""
    answer = copy.deepcopy(answer)
    *way, last = at.split("/")
    inside = answer
    for name in way:
        inside = inside[name.replace("|", "/")]
    if value is ...:
        del inside[last.replace("|", "/")]
    else:
        inside[last.replace("|", "/")] = value
    return answer


def test_an_agents_own_answers_are_taken():
    assert shape.fault(ASKED, SURVEY, {DIGEST: b""}) is None
    assert shape.fault(READING, READ, {DIGEST: b""}) is None
    assert shape.fault({"op": "records"}, {"records": []}, {}) is None
    assert shape.fault({"op": "commit"}, {"receipt": {}, "pending": None}, {}) is None
    assert shape.fault({"op": "recover"}, {"outcome": "nothing", "paths": []}, {}) is None


@pytest.mark.parametrize(
    ("at", "value", "reason"),
    [
        ("python", ..., "python is NoneType, not dict"),
        ("python/version", 3, "python.version is int, not str"),
        ("site", [], "site is list, not str"),
        ("installed/dist_info", None, "installed.dist_info is NoneType, not str"),
        ("files", [], "files is list, not dict"),
        ("files/demo|a.py", None, "files.demo/a.py is NoneType, not dict"),
        ("files/demo|a.py/kind", ..., "files.demo/a.py.kind is NoneType, not str"),
        ("files/demo|a.py/sha256", {}, "files.demo/a.py.sha256 is dict, not str"),
        ("files/demo|a.py", ..., "it does not say what is at 'demo/a.py'"),
        ("refusal", {"what": "no"}, "refusal.why is NoneType, not str"),
        ("state", "x", "state is str, not dict"),
    ],
)
def test_a_survey_that_lacks_something_is_refused(at, value, reason):
    assert shape.fault(ASKED, changed(SURVEY, at, value), {DIGEST: b""}) == reason


def test_a_content_that_was_asked_for_must_come():
    lacks = "the content of 'demo/a.py' did not come along"

    assert shape.fault(ASKED, SURVEY, {}) == lacks
    assert shape.fault({**ASKED, "known": [DIGEST]}, SURVEY, {}) is None
    assert shape.fault({**ASKED, "known": None}, SURVEY, {}) is None
    assert shape.fault(READING, READ, {}) == "the content of 'a' did not come along"


def test_a_reading_has_the_paths_that_were_asked_for():
    other = changed(READ, "files/b", ...)

    assert (
        shape.fault(READING, other, {DIGEST: b""}) == "files has other paths than were asked for"
    )


@pytest.mark.parametrize(
    ("op", "answer"),
    [
        ("records", {}),
        ("records", {"records": "demo"}),
        ("records", {"records": [["demo"]]}),
        ("commit", {}),
        ("commit", {"receipt": "r1"}),
        ("recover", {"outcome": "undone"}),
        ("recover", {"outcome": None, "paths": []}),
        ("recover", {"outcome": "undone", "paths": [5]}),
    ],
)
def test_an_answer_to_another_question_is_refused(op, answer):
    assert shape.fault({"op": op}, answer, {})


def test_a_reason_is_short():
    files = {"files": {"x" * 100_000: 5}, "originals": {}}

    assert len(shape.fault(READING, files, {})) <= 200


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=5), inside),
    max_leaves=8,
)
PLACES = st.sampled_from(
    [*SURVEY, "installed/name", "python/executable", "files/demo|a.py", "files/demo|a.py/recorded"]
)


@settings(max_examples=50, deadline=None)
@given(PLACES, JSON)
def test_no_answer_makes_the_check_itself_fail(at, value):
    reason = shape.fault(ASKED, changed(SURVEY, at, value), {DIGEST: b""})

    assert reason is None or json.dumps(reason)


@pytest.mark.parametrize("at", ["site", "installed/version", "installed/name", "python/version"])
@pytest.mark.parametrize("text", ["1.0\nhonest: done", "\x1b[2J", "a\u2028b", "\0"])
def test_a_name_that_is_no_line_of_text_is_refused(at, text):
    reason = shape.fault(ASKED, changed(SURVEY, at, text), {DIGEST: b""})

    assert "no line of text" in reason
    assert reason.isprintable()


@pytest.mark.parametrize(
    "names", [["../../tmp/x"], ["/tmp/x"], ["a\nb"], ["-x"], [""], [f"n{i}" for i in range(101)]]
)
def test_records_that_cannot_be_asked_about_are_refused(names):
    for question, answer in (({"op": "records"}, {}), (ASKED, SURVEY)):
        assert shape.fault(question, {**answer, "records": names}, {DIGEST: b""})
        assert (
            shape.fault(question, {**answer, "records": ["demo", "a.b-c_d"]}, {DIGEST: b""})
            is None
        )


FOUND = {
    "python": "/v/bin/python",
    "site": "/v/lib/python3.12/site-packages",
    "distribution": "demo",
    "version": "1.0",
    "processes": [7],
}


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        ([FOUND], None),
        ([FOUND | {"python": "/v/bin/python\n[hosts.evil]"}], "found.python is no line of text"),
        ([FOUND | {"distribution": "x\u2028y"}], "found.distribution is no line of text"),
        ([FOUND | {"processes": ["7"]}], "found.0.processes.0 is str, not int"),
        ([{**FOUND, "version": None}], "found.0.version is NoneType, not str"),
        ([FOUND] * 201, "it found 201 environments, more than 200"),
    ],
)
def test_what_was_found_can_be_shown(found, reason):
    answer = {"found": found, "elsewhere": 0, "cut": None}

    assert shape.fault({"op": "discover"}, answer, {}) == reason
