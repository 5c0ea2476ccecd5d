"""A server that runs while its package is patched: real processes, the installed command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time

import pytest

from tests import world as worlds
from tests.agent import process_lab

RESPAWN = """\
import os, subprocess, sys, time
from demo.server import retitle
while True:
    child = subprocess.Popen([sys.executable, "-c", "import demo; " + sys.argv[1]])  # says "up"
    child.wait()
"""


@pytest.fixture
def home(world):
    """A virtual environment that has the world's distribution."""
    files = {path: text.encode() for path, text in worlds.FILES.items()}
    return process_lab.Home(world.root / "venv", files)


@pytest.fixture
def patchq(world, home):
    def run(verb, *args):
        return world.run(verb, *args, "--python", home.python, "--queue", world.queue)

    return run


def document(done):
    return json.loads(done.stdout)["running"]


def test_a_push_ends_with_the_processes_that_must_be_restarted(home, patchq):
    with process_lab.server(home) as old:
        pushed = patchq("push", "-a")
        with process_lab.server(home) as new:
            found = document(patchq("status", "--json"))
            status = patchq("status")

    assert pushed.returncode == status.returncode == 0
    stale = [one for one in found["processes"] if one["state"] == "before"]
    titles = [f"{one['pid']} {one['name']}" for one in stale]
    assert sorted(title.split()[1] for title in titles) == [
        "VLLM::EngineCore",
        "VLLM::Worker_TP0",
        "VLLM::Worker_TP1",
        "demo-serve",
    ]
    assert pushed.stderr.splitlines()[-1] == (
        f"restart needed: {', '.join(titles)}: started before this push"
    )
    last = status.stdout.splitlines()
    assert last[-2].startswith(f"running on the current code: {new[0]} demo-serve, {new[1]} ")
    assert last[-1].startswith(f"restart needed: {old[0]} demo-serve, {old[1]} VLLM::")
    assert found["restart"] == sorted(old)
    assert [one["pid"] for one in found["processes"] if one["state"] == "current"] == sorted(new)
    assert sorted(one["kind"] for one in stale) == ["engine core", "program", "worker", "worker"]
    assert found["mixed"] == []


def test_pop_goto_and_undo_name_them_and_what_is_undone_needs_no_restart(home, patchq):
    patchq("push", "-a")
    with process_lab.server(home) as pids:
        named = f"restart needed: {pids[0]} demo-serve"
        popped, gone = patchq("pop"), patchq("goto", "10-pi.patch")
        back = [patchq("undo"), patchq("undo", "--json")]

    assert f"{named}" in popped.stderr
    assert popped.stderr.endswith("started before this pop\n")
    assert f"{named}" in gone.stderr
    assert gone.stderr.endswith("started before this goto\n")
    assert [done.returncode for done in back] == [0, 0]
    assert document(back[1])["restart"] == sorted(pids)


def test_a_dry_run_names_no_process(home, patchq):
    with process_lab.server(home):
        done = patchq("push", "-a", "-n", "--json")

    assert document(done) is None


def test_a_worker_that_was_started_anew_is_an_alarm(home, patchq):
    with process_lab.started(home.python, "-c", RESPAWN, process_lab.WAIT) as server:
        (first,) = children(server.pid)
        assert patchq("push", "-a").returncode == 0
        os.kill(first, signal.SIGKILL)
        while (second := children(server.pid)) in ([], [first]):
            time.sleep(0.01)
        status, pushed = patchq("status"), patchq("pop", "--json")

    (alarm,) = [line for line in status.stdout.splitlines() if line.startswith("alarm: ")]
    assert f"server {server.pid} differ: before push" in alarm
    assert f"{server.pid} python -c; as of push" in alarm
    assert alarm.endswith(f"{second[0]} python -c")
    assert status.returncode == 5
    assert document(pushed)["mixed"] == [[server.pid, *second]]


def children(pid):
    listed = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True)
    return [int(word) for word in listed.stdout.split()]


def test_an_audit_has_them_in_its_rows(home, patchq):
    with process_lab.server(home) as pids:
        patchq("push", "-a")
        (row,) = json.loads(patchq("audit", "--json").stdout)["rows"]

    assert row["word"] == "current"
    assert row["running"]["restart"] == sorted(pids)


def test_several_hosts_have_a_line_each(world, home):
    other = process_lab.Home(
        world.root / "other", {path: text.encode() for path, text in worlds.FILES.items()}
    )
    hosts = {}
    for name, one in (("one", home), ("two", other)):
        script = world.root / name
        script.write_text(f'#!/bin/sh\nPATH={one.python.parent}:$PATH exec sh "$@"\n')
        script.chmod(0o755)
        hosts[f"command:{script} -c"] = one
    options = [word for host in hosts for word in ("-H", host)]
    with process_lab.server(home) as first, process_lab.server(other) as second:
        done = world.run("push", "-a", *options, "--queue", world.queue)

    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if "restart needed" in line]
    assert [line.partition(": restart")[0] for line in lines] == [*hosts]
    assert [line.partition("needed: ")[2].split()[0] for line in lines] == [
        str(first[0]),
        str(second[0]),
    ]


def test_who_can_look_into_nothing_knows_that_something_was_changed(home, patchq):
    for folder in home.root.parents:
        if folder.stat().st_mode & 0o005 != 0o005:
            folder.chmod(folder.stat().st_mode | 0o005)
    nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    environ = {"PATH": f"{home.root}/bin:/usr/bin:/bin"}
    code = f"import demo; {process_lab.WAIT}"
    with process_lab.started("python", "-c", code, env=environ) as process:
        before = process_lab.asked(home.site, nobody)["running"]
        for _ in range(2):
            assert patchq("push", "-a").returncode == 0
            assert patchq("pop", "-a").returncode == 0
        after = process_lab.asked(home.site, nobody)["running"]

    for found in (before, after):
        assert found["processes"] == []
        assert process.pid in dict(found["unread"])
    assert before["receipts"] == []
    assert [one["verb"] for one in after["receipts"]] == ["pop"]
