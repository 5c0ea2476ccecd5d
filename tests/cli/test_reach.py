"""`audit` as it is typed: its table, its CSV, its document, its exit codes."""

import csv
import io
import json
import shlex
import sys

import pytest

from patchq.cli import many, reach
from patchq.errors import ExitCode
from patchq.outcome import Outcome, Word
from patchq.transport.channel import AgentError

pytestmark = pytest.mark.slow

HERE = "command:sh -c"
NOBODY = "command:sh -c 'exit 3'"


def test_the_table_has_a_row_per_queue_and_counts_go_to_stderr(world):
    world.here("push", "-a")

    done = world.here("audit")

    assert done.returncode == ExitCode.DONE
    head, row = done.stdout.splitlines()
    assert head.split() == ["QUEUE", "VERSION", "WORD", "DETAIL"]
    assert row.split()[:3] == ["q", "1.0", "current"]
    assert done.stderr == "1 row: 1 current\n"


@pytest.mark.parametrize(
    ("push", "edit", "code"),
    [
        (("push", "-a"), False, ExitCode.DONE),
        (("push", "1"), False, ExitCode.FINDING),
        ((), False, ExitCode.FINDING),
        (("push", "-a"), True, ExitCode.FINDING),
    ],
)
def test_the_exit_code_says_whether_all_is_as_wanted(world, push, edit, code):
    if push:
        world.here(*push)
    if edit:
        (world.site / "demo/data.txt").write_text("mine\n")

    assert world.here("audit").returncode == code
    assert world.here("audit", "-H", HERE, "--python", sys.executable).returncode == code


def test_missing_is_well_where_no_queue_is_named(world):
    done = world.run("audit", "--target", world.site)

    assert done.returncode == ExitCode.DONE, done.stdout + done.stderr
    assert "missing" in done.stdout


def test_a_mend_means_the_host_that_it_is_about(world):
    (world.site / "demo/data.txt").write_text("mine\n")

    done = world.here("audit", "-H", HERE, "--python", sys.executable)

    assert "unmanaged" in done.stdout
    assert f"-H {shlex.quote(HERE)} --queue {world.queue} -z" in done.stderr


def test_a_host_that_does_not_answer_is_a_row_and_exit_code_4(world):
    done = world.here("audit", "-H", HERE, "-H", NOBODY, "--python", sys.executable, "--json")

    document = json.loads(done.stdout)
    assert done.returncode == document["exit_code"] == ExitCode.HOST_FAILED
    words = {row["host"]: row["word"] for row in document["rows"]}
    assert words[HERE] == "missing"
    assert words[NOBODY] in ("unreachable", "failed")
    assert sum(document["counts"].values()) == 2


def test_equal_errors_are_told_once(world):
    hosts = [word for n in range(3) for word in ("-H", f"command:sh -c 'exit 3' {n}")]

    done = world.here("audit", *hosts, "--python", sys.executable)

    assert done.returncode == ExitCode.HOST_FAILED
    assert done.stderr.count("  mend: ") == 1


def test_the_document_has_what_proves_each_word(world):
    world.here("push", "2")

    document = world.json("audit")

    assert (document["schema"], document["verb"]) == (1, "audit")
    (row,) = document["rows"]
    assert row["word"] == "partial"
    assert row["patches"] == ["10-pi.patch", "20-foot.patch"]
    assert row["receipt"]["id"]
    assert document["counts"] == {"partial": 1}
    assert document["exit_code"] == ExitCode.FINDING


def test_csv_is_one_row_per_queue_with_a_head(world):
    (world.site / "demo/data.txt").write_text("mine\n")

    done = world.here("audit", "--csv")

    (row,) = csv.DictReader(io.StringIO(done.stdout))
    assert (row["queue"], row["word"], row["paths"]) == ("q", "unmanaged", "demo/data.txt")
    assert row["wanted"] == "true"
    assert done.returncode == ExitCode.FINDING


def test_csv_says_what_the_inventory_wants_on_which_host(world):
    (world.root / "hosts.toml").write_text(
        f'[all]\ncommand = "env NODE={{name}} sh -c"\ntarget = "{world.site}"\n'
        '[hosts.a]\nwanted = ["q"]\n[hosts.b]\n[hosts.dead]\ncommand = "false"\nwanted = ["q"]\n'
    )

    done = world.run("audit", "--csv", "-H", "a,b,dead")

    rows = csv.DictReader(io.StringIO(done.stdout))
    assert [(row["host"], row["queue"], row["wanted"]) for row in rows] == [
        ("a", "q", "true"),
        ("b", "q", "false"),
        ("dead", "", ""),
    ]


@pytest.mark.parametrize("text", ["=cmd|' /C calc'!A0", "+1", "-1", "@x", "\t=1", "  =1", "\n=1"])
def test_no_cell_of_the_csv_is_a_formula(text):
    out = reach._csv([{"host": text, "word": "current", "why": ""}])

    (row,) = csv.DictReader(io.StringIO(out))
    assert row["host"].startswith("'")


def test_every_cell_of_the_csv_is_quoted_and_no_text_begins_a_line():
    out = reach._csv([{"host": "a;=1+1", "word": "current", "why": "x\ny,z\u202e"}])

    head, row = out.splitlines()
    assert all(cell.startswith('"') for cell in head.split(","))
    assert row.startswith('"a;=1+1","')
    assert '"x\\ny,z\\u202e"' in row


def test_what_a_host_says_makes_no_row_of_the_table(capsys):
    rows = [
        {"host": "evil", "word": "failed", "why": "x\nhonest  q  1.0  current", "version": "1\n2"},
        {"host": "honest", "word": "missing", "why": "none\u202e", "version": "1.0"},
    ]

    reach._show(rows, True)

    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[1].startswith("evil")
    assert "\\n2" in lines[1]
    assert "\u202e" not in lines[2]


def test_a_mend_that_the_host_says_is_told_as_the_hosts(capsys):
    error = AgentError("failed", "a\n\nhonest: done", why="b\nhonest: done", mend="rm\nhonest: x")
    one = Outcome("evil", Word.FAILED, None, error)
    (row,) = reach._rows(None, one)
    reach._tell([], [row], [row])

    told = [*capsys.readouterr().err.splitlines(), *many._told(one).splitlines()]
    assert sum("mend: the host says: rm" in each for each in told) == 2
    assert not any(each.startswith("honest") for each in told)


def test_csv_and_json_do_not_go_together(world):
    assert world.here("audit", "--csv", "--json").returncode == ExitCode.USAGE


def test_a_queue_that_nobody_knows_is_a_usage_error(world):
    done = world.run("audit", "--target", world.site, "--queue", "nonesuch")

    assert done.returncode == ExitCode.USAGE
    assert "nonesuch" in done.stderr


def test_verify_names_what_a_forged_record_hides(world):
    path = world.site / "demo/__init__.py"
    path.write_text(path.read_text() + "import os\n")

    done = world.here("audit", "--verify")

    assert done.returncode == ExitCode.FINDING
    assert "demo/__init__.py" in done.stdout
    assert "release store 1.0" in done.stdout


def test_a_hand_edit_that_was_found_is_shown_by_the_mend(world):
    (world.site / "demo/units.py").write_text("metre = 2\nfoot = 0.3048\n")

    mend = world.json("audit")["rows"][0]["mend"]
    shown = world.run(*shlex.split(mend)[1:], "demo/units.py", "--queue", world.queue)

    assert "-metre = 1\n+metre = 2\n" in shown.stdout


def test_log_shows_effects_and_notices_a_cut(world):
    world.here("push", "1")
    world.here("push")
    whole = world.here("log")
    ledger = world.site / ".patchq/demo/ledger.jsonl"
    lines = ledger.read_text().splitlines(keepends=True)
    ledger.write_text(lines[0])
    cut = world.here("log")
    ledger.unlink()
    gone = world.here("log")

    assert whole.returncode == ExitCode.DONE
    first, second = [line for line in whole.stdout.splitlines() if "effect " in line]
    assert second.split("-> ")[1] in first
    assert cut.returncode == gone.returncode == ExitCode.FINDING
    assert "lacks receipt" in cut.stderr
    assert "the ledger is gone" in gone.stderr
