"""What changed since an earlier audit, as it is told."""

import json

import pytest

from patchq.audit import document
from patchq.audit.changes import compare
from patchq.audit.document import Audit
from patchq.cli import since
from patchq.errors import ExitCode, UsageError
from tests import fleet_rows
from tests import world as worlds
from tests.agent import process_lab
from tests.fleet_rows import receipt, row, silent


def told(then, now, time="2026-01-01T00:00:00Z"):
    found = compare(Audit(document.rows(then), time), Audit(document.rows(now)))
    return "\n".join(since.lines(found, "old.json")) + "\n"


GOLDEN = """\
since 2026-01-01T00:00:00Z (old.json): 7 hosts compared
OF    CHANGED                                                                         HOSTS
q     missing -> current                                                              gpu[01-05]
q     on: 10-aux-states.patch, 20-eagle3.patch, 30-speculative.patch and 1 more       gpu[01-05]
q     current -> drifted                                                              gpu09
q     drift came: vllm/a.py, vllm/b.py                                                gpu09
q     current -> unreachable                                                          db
demo  receipt: push by ops from laptop, 2026-01-01T01:00:00Z to 2026-01-01T01:04:00Z  gpu[01-05]
not compared: new: not in old.json
not compared: gone: not asked now
"""


def test_equal_changes_are_told_once_for_all_hosts():
    hosts = [f"gpu{number:02}" for number in range(1, 6)]
    then = [row(h, "missing", receipt=receipt(n)) for n, h in enumerate(hosts)]
    then += [row("gpu09"), row("gone"), row("db")]
    now = [row(h, receipt=receipt(60 + n)) for n, h in enumerate(hosts)]
    now += [
        row("gpu09", "drifted", patches=list(fleet_rows.SERIES), paths=["vllm/a.py", "vllm/b.py"]),
        silent("db"),
        row("new"),
    ]

    assert told(then, now) == GOLDEN


def test_where_nothing_changed_that_is_said():
    assert told([row("")], [row("")], None) == (
        "since an earlier audit (old.json): 1 host compared\nnothing changed\n"
    )


def test_where_nothing_can_be_compared_nothing_is_said_to_be_unchanged():
    assert told([row("a")], [row("b")], None) == (
        "since an earlier audit (old.json): 0 hosts compared\n"
        "not compared: b: not in old.json\n"
        "not compared: a: not asked now\n"
    )


def test_all_else_that_changes_has_its_words():
    then = row("", "behind", behind=1, version="1.0", receipt=receipt(1), record_broken="bad")
    now = row("", "behind", behind=4, version="1.1", ledger_broken="cut at line 3")

    lines = told([then], [now]).splitlines()

    assert [" ".join(line.split()) for line in lines[1:]] == [
        "OF CHANGED HOSTS",
        "q version 1.0 -> 1.1 here",
        "q commits behind 1 -> 4 here",
        "q the ledger has no receipt any more here",
        "q broken: cut at line 3 here",
        "q whole again; it was: bad here",
    ]


def test_processes_are_told_once_for_all_queues_of_a_distribution():
    old = fleet_rows.running(4, mixed=True)
    then = [row("a", queue=q, running=fleet_rows.running()) for q in "pq"]
    then += [row("b", running=old)]
    now = [row("a", queue=q, running=old) for q in "pq"]
    now += [row("b", running=fleet_rows.running() | {"unreadable": 1})]

    lines = told(then, now).splitlines()

    workers = ", ".join(f"VLLM::Worker_TP{n}" for n in range(3)) + " and 1 more"
    hidden = "(or not seen: 1 process more cannot be looked into)"
    assert [" ".join(line.split()) for line in lines[2:]] == [
        f"demo restart needed: {workers} a",
        "demo mixed code: VLLM::Worker_TP0 a",
        f"demo restart needed no more {hidden}: {workers} b",
        f"demo mixed code no more {hidden}: VLLM::Worker_TP0 b",
    ]


def test_processes_that_are_hidden_now_are_not_called_settled():
    now = fleet_rows.running() | {"hidden": True}

    text = told([row("a", running=fleet_rows.running(1))], [row("a", running=now)])

    assert "restart needed no more (or not seen: /proc does not show other users'" in text


def test_what_a_host_says_makes_no_line_of_its_own():
    now = row("evil", "drifted", paths=["x\nhonest  q  current"], version="1\x1b[2J\u202e")

    text = told([row("evil")], [now])

    assert len(text.splitlines()) == 6
    assert "\x1b" not in text
    assert "\u202e" not in text


@pytest.mark.parametrize("name", ["none.json", "folder"])
def test_a_file_that_cannot_be_read_is_a_usage_error(tmp_path, name):
    (tmp_path / "folder").mkdir()

    with pytest.raises(UsageError, match="cannot be read") as caught:
        since.read(str(tmp_path / name))

    assert caught.value.why in ("No such file or directory", "Is a directory")


@pytest.mark.slow
def test_a_document_is_kept_and_the_next_audit_is_held_against_it(world):
    world.here("push", "2")
    (world.root / "old.json").write_text(world.here("audit", "--json").stdout)
    world.here("push")
    (world.site / "demo/data.txt").write_text("mine\n")

    done = world.here("audit", "--since", "old.json")
    document = world.json("audit", "--since", "old.json")

    assert done.returncode == document["exit_code"] == ExitCode.FINDING
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert lines[0].endswith("(old.json): 1 host compared")
    assert lines[1:5] == [
        "OF CHANGED HOSTS",
        "q partial -> drifted here",
        "q drift came: demo/data.txt here",
        "q on: 30-text.patch here",
    ]
    assert lines[5].startswith("demo receipt: push by ")
    assert "mend: patchq diff" in done.stderr
    (one,) = document["since"]["changes"]
    assert one["word"] == ["partial", "drifted"]
    assert one["drift"] == {"came": ["demo/data.txt"], "went": []}
    assert document["since"]["time"] == json.loads((world.root / "old.json").read_text())["time"]
    assert document["rows"][0]["word"] == "drifted"


@pytest.mark.slow
def test_a_server_that_needs_a_restart_is_told_and_its_restart_too(world):
    files = {path: text.encode() for path, text in worlds.FILES.items()}
    home = process_lab.Home(world.root / "venv", files)

    def audit(*args):
        return world.run("audit", *args, "--python", home.python, "--queue", world.queue)

    with process_lab.server(home):
        (world.root / "fresh.json").write_text(audit("--json").stdout)
        world.run("push", "-a", "--python", home.python, "--queue", world.queue)
        (world.root / "stale.json").write_text(audit("--json").stdout)
        stale, again = audit("--since", "fresh.json"), audit("--since", "stale.json")
    with process_lab.server(home):
        settled = audit("--since", "stale.json")

    names = "VLLM::EngineCore, VLLM::Worker_TP0, VLLM::Worker_TP1 and 1 more here"
    assert f"demo restart needed: {names}" in [
        " ".join(line.split()) for line in stale.stdout.splitlines()
    ]
    assert again.stdout.splitlines()[1:] == ["nothing changed"]
    assert [" ".join(line.split()) for line in settled.stdout.splitlines()[2:]] == [
        f"demo restart needed no more: {names}"
    ]


@pytest.mark.slow
def test_the_answer_of_another_verb_is_refused_before_a_host_is_asked(world):
    (world.root / "old.json").write_text(world.here("status", "--json").stdout)

    done = world.here("audit", "--since", "old.json", "-H", "command:touch asked; false")

    assert done.returncode == ExitCode.USAGE
    assert 'it is the answer of "status", not of audit' in done.stderr
    assert "mend: patchq audit --json > old.json" in done.stderr
    assert not (world.root / "asked").exists()
