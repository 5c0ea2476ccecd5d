"""An audit as metrics: read back by Prometheus' own client."""

import os
import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from patchq import __version__
from patchq.cli import prometheus
from patchq.errors import ExitCode
from tests import fleet_rows
from tests.fleet_rows import receipt, row, running, silent

MADE = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
NASTY = 'a"b\\c\nd\x1b[31m\u202e\udce9{},= é日'
# The exposition format 0.0.4: a name, labels in quotes, a number, and no time.
SAMPLE = re.compile(
    r'[a-z_]+(\{([a-z]+="([^"\\\n]|\\["\\n])*",?)+\})? \d+|# (HELP|TYPE) [a-z_]+ .+'
)

GOLDEN = """\
# HELP patchq_audit_info Which patchq made the audit.
# TYPE patchq_audit_info gauge
patchq_audit_info{version="VERSION"} 1
# HELP patchq_audit_timestamp_seconds When the audit ended.
# TYPE patchq_audit_timestamp_seconds gauge
patchq_audit_timestamp_seconds 1767323045
# HELP patchq_audit_exit_code 0 all well, 4 a host was not asked, 5 a finding.
# TYPE patchq_audit_exit_code gauge
patchq_audit_exit_code 4
# HELP patchq_host_answered 1 if the host could be asked, else 0.
# TYPE patchq_host_answered gauge
patchq_host_answered{host="h1"} 1
patchq_host_answered{host="h2"} 0
# HELP patchq_installed_info What is installed.
# TYPE patchq_installed_info gauge
patchq_installed_info{host="h1",distribution="demo",version="1.0"} 1
# HELP patchq_restart_needed Processes that run code from before a change.
# TYPE patchq_restart_needed gauge
patchq_restart_needed{host="h1",distribution="demo"} 3
# HELP patchq_mixed_servers Servers whose processes differ in their code.
# TYPE patchq_mixed_servers gauge
patchq_mixed_servers{host="h1",distribution="demo"} 1
# HELP patchq_processes_not_seen Processes that could not be looked into.
# TYPE patchq_processes_not_seen gauge
patchq_processes_not_seen{host="h1",distribution="demo"} 0
# HELP patchq_last_receipt_timestamp_seconds The ledger's last receipt.
# TYPE patchq_last_receipt_timestamp_seconds gauge
patchq_last_receipt_timestamp_seconds{host="h1",distribution="demo"} 1767225600
# HELP patchq_host_state The audit's word for a queue on a host.
# TYPE patchq_host_state gauge
patchq_host_state{host="h1",distribution="demo",queue="p",word="behind"} 1
patchq_host_state{host="h1",distribution="demo",queue="q",word="drifted"} 1
patchq_host_state{host="h1",distribution="demo",queue="r",word="no series"} 1
patchq_host_state{host="h2",distribution="",queue="",word="unreachable"} 1
# HELP patchq_host_good 1 if the queue is as it should be, 0 for a finding.
# TYPE patchq_host_good gauge
patchq_host_good{host="h1",distribution="demo",queue="p"} 0
patchq_host_good{host="h1",distribution="demo",queue="q"} 0
patchq_host_good{host="h1",distribution="demo",queue="r"} 0
# HELP patchq_patches_applied Patches of the queue on the record.
# TYPE patchq_patches_applied gauge
patchq_patches_applied{host="h1",distribution="demo",queue="p"} 2
patchq_patches_applied{host="h1",distribution="demo",queue="q"} 1
patchq_patches_applied{host="h1",distribution="demo",queue="r"} 0
# HELP patchq_patches_in_series Patches of the series that fits.
# TYPE patchq_patches_in_series gauge
patchq_patches_in_series{host="h1",distribution="demo",queue="p"} 4
patchq_patches_in_series{host="h1",distribution="demo",queue="q"} 4
# HELP patchq_commits_behind Commits of the queue that the host lacks.
# TYPE patchq_commits_behind gauge
patchq_commits_behind{host="h1",distribution="demo",queue="p"} 3
# HELP patchq_drifted_files Files that somebody edited.
# TYPE patchq_drifted_files gauge
patchq_drifted_files{host="h1",distribution="demo",queue="p"} 0
patchq_drifted_files{host="h1",distribution="demo",queue="q"} 2
patchq_drifted_files{host="h1",distribution="demo",queue="r"} 0
""".replace("VERSION", __version__)


def exposition(*rows, code=0):
    text = prometheus.exposition(rows, MADE, code)
    assert [line for line in text.split("\n")[:-1] if not SAMPLE.fullmatch(line)] == []
    return text


def read(text):
    """Return each sample by metric and labels, as Prometheus' client reads them."""
    found = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation
        for sample in family.samples:
            key = sample.name, tuple(sample.labels.items())
            assert key not in found
            found[key] = sample.value
    return found


def test_all_metrics_of_three_queues_and_a_host_that_did_not_answer():
    more = {"receipt": receipt(0), "running": running(3, mixed=True)}

    text = exposition(
        row(word="behind", queue="p", behind=3, patches=["10", "20"], **more),
        row(word="drifted", patches=["10"], paths=["a.py"], more=1, **more),
        row(word="no series", queue="r", series=[], **more),
        silent("h2"),
        code=4,
    )

    assert text == GOLDEN


def test_a_fleet_is_read_back_by_the_client():
    rows = fleet_rows.fleet(150, 5)

    found = read(exposition(*rows))

    states = [labels for name, labels in found if name == "patchq_host_state"]
    assert [tuple(value for _, value in labels) for labels in states] == [
        (r["host"], r.get("distribution", ""), r.get("queue", ""), r["word"]) for r in rows
    ]
    assert found["patchq_audit_timestamp_seconds", ()] == MADE.timestamp()


def test_what_could_not_be_seen_is_not_said_to_be_none():
    blind = running() | {"hidden": True, "unreadable": 2, "unseen": 1}
    some = running(3) | {"hidden": True}

    found = read(exposition(row("a", running=blind), row("b", running=some)))

    def of(metric):
        return {dict(labels)["host"]: n for (name, labels), n in found.items() if name == metric}

    assert of("patchq_restart_needed") == {"b": 3}
    assert of("patchq_mixed_servers") == {}
    assert of("patchq_processes_not_seen") == {"a": 3, "b": 0}


def test_what_a_host_says_stays_within_its_label():
    host = row(NASTY, queue=NASTY, version=NASTY, receipt=receipt(0) | {"time": NASTY})

    found = read(exposition(host, silent("x\ny", word="failed")))

    told = 'a"b\\c\nd\\x1b[31m\\u202e\\udce9{},= é日'
    assert ("patchq_host_answered", (("host", told),)) in found
    (queue,) = {dict(labels)["queue"] for _, labels in found if "queue" in dict(labels)} - {""}
    assert queue == told
    assert ("patchq_host_answered", (("host", "x\ny"),)) in found


@given(st.text(st.characters(codec=None), max_size=30))
def test_a_label_is_read_back_as_it_is_shown(text):
    line = f'patchq_x{{host="{prometheus.escaped(text)}"}} 1\n'

    (family,) = text_string_to_metric_families(line)

    assert line.encode().count(b"\n") == 1
    printable = "".join(char for char in text if char.isprintable() or char == "\n")
    shown = family.samples[0].labels["host"]
    assert all(char in shown for char in printable)


def test_of_two_rows_that_say_the_same_one_counts_and_long_names_are_cut():
    found = read(exposition(row(patches=["1"]), row(patches=[]), row(queue="q" * 5000)))

    counts = [v for (name, _), v in found.items() if name == "patchq_patches_applied"]
    assert counts == [1, 4]
    assert all(len(value) < 250 for _, labels in found for _, value in labels)


@pytest.mark.parametrize("time", ["", "yesterday", "2026-01-01T00:00:00", "9" * 400, None])
def test_a_time_that_is_none_has_no_sample(time):
    text = exposition(row(receipt=receipt(0) | {"time": time}))

    assert "patchq_last_receipt" not in text


@pytest.mark.slow
def test_a_file_is_written_whole_beside_the_table_and_is_what_stdout_has(world):
    world.here("push", "-a")
    path = world.root / "patchq.prom"

    table = world.here("audit", "--prometheus", path)
    answer = world.here("audit", "--prometheus")

    assert (table.returncode, answer.returncode) == (ExitCode.DONE, ExitCode.DONE)
    assert table.stdout.startswith("QUEUE")
    assert f"written: {path}\n" in table.stderr
    labels = (("host", ""), ("distribution", "demo"), ("queue", "q"))
    for found in (read(path.read_text()), read(answer.stdout)):
        assert found["patchq_host_state", (*labels, ("word", "current"))] == 1
        assert found["patchq_patches_applied", labels] == 3
        assert found["patchq_host_good", labels] == 1
    # The collector is another user, and reads all that ends in .prom.
    assert path.stat().st_mode & 0o444 == 0o444 & ~_umask()
    assert [one.name for one in world.root.iterdir() if "prom" in one.name] == ["patchq.prom"]


def _umask():
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


@pytest.mark.slow
def test_a_finding_is_in_the_metrics_and_in_the_exit_code(world):
    (world.site / "demo/data.txt").write_text("mine\n")

    done = world.here("audit", "--prometheus", "-")

    found = read(done.stdout)
    assert done.returncode == found["patchq_audit_exit_code", ()] == ExitCode.FINDING
    labels = (("host", ""), ("distribution", "demo"), ("queue", "q"))
    assert found["patchq_drifted_files", labels] == 1


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--prometheus", "--html"])
def test_a_place_that_cannot_be_written_is_refused_before_a_host_is_asked(world, option):
    done = world.here("audit", option, "none/file", "-H", "command:touch asked; false")

    assert done.returncode == ExitCode.USAGE
    assert "none/file cannot be written" in done.stderr
    assert f"mend: patchq audit {option} FILE" in done.stderr
    assert not (world.root / "asked").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [("--csv", "--prometheus"), ("--json", "--prometheus"), ("--csv", "--since", "x")],
)
def test_there_is_one_answer(world, options):
    done = world.here("audit", *options)

    assert done.returncode == ExitCode.USAGE
    assert "do not go together" in done.stderr
