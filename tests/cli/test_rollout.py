"""A rollout as a user types it: thirty hosts, a canary that fails, ^C, and on from there."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest

from patchq.errors import ExitCode
from tests import fleet_lab
from tests.fleet_lab import SITE

NEW = b"one\ntwo\nthree\nfour\n"
OLD = b"one\ntwo\nthree\n"


@pytest.fixture(scope="module")
def labs(pattern):
    """Start fleets of so many hosts that nobody has used."""
    with fleet_lab.fleet(80, pattern.site) as lab:
        fresh = iter(lab.hosts)
        yield lab, lambda count: [next(fresh) for _ in range(count)]


@pytest.fixture
def lab(labs):
    return labs[0]


@pytest.fixture
def some(labs):
    return labs[1]


@pytest.fixture
def run(lab, world):
    """Run a verb on hosts as the command line does."""

    def run(hosts, *args, verb="push", where=("-a",)):
        environ = {**lab.home.environ, "HOME": str(lab.home.path)}
        site = ("--target", SITE, "--queue", world.queue, "-H", ",".join(hosts))
        return world.run(verb, *where, *site, *args, environ=environ)

    return run


def outcomes(done):
    return {one["host"]: one["outcome"] for one in json.loads(done.stdout)["hosts"]}


def text(lab, name):
    return (lab.hosts[name].tree / "demo/data.txt").read_bytes()


@pytest.mark.slow
def test_thirty_hosts_whose_canary_fails_by_import_then_by_health_then_not(lab, some, run):
    hosts = some(30)
    canary = hosts[0]
    lab.hosts[canary].write("demo/__init__.py", b"import nothing_of_that_name\n")
    rollout = ("--canary", "1", "--serial", "25%", "--check-import", "demo", "--json")
    healthy = ("--health", f"test -e {lab.base}/mended || {{ echo no model; exit 1; }}")

    first = run(hosts, *rollout, *healthy)
    lab.hosts[canary].write("demo/__init__.py", b"")
    second = run(hosts, *rollout, *healthy)
    after_second = {text(lab, name) for name in hosts}
    (lab.base / "mended").touch()
    third = run(hosts, *rollout, *healthy)
    fourth = run(hosts, *rollout, *healthy)

    for done in (first, second):
        assert done.returncode == ExitCode.HOST_FAILED
        assert Counter(outcomes(done).values()) == {"taken back": 1, "not begun": 29}
        assert outcomes(done)[canary] == "taken back"
    told = [json.loads(done.stdout)["hosts"][0]["report"] for done in (first, second)]
    assert "nothing_of_that_name" in told[0]["why"]
    assert told[1]["why"] == "not healthy: exit status 1"
    assert told[1]["health"]["printed"] == ["no model"]
    assert after_second == {OLD}
    assert third.returncode == fourth.returncode == 0
    assert set(outcomes(third).values()) == {"done"}
    assert set(outcomes(fourth).values()) == {"nothing to do"}
    assert {text(lab, name) for name in hosts} == {NEW}
    assert {one["wave"] for one in json.loads(third.stdout)["hosts"]} == {1, 2, 3, 4, 5, 6}
    assert lab.counters()[canary].commits == 5  # twice on and off, then on


@pytest.mark.slow
def test_an_interrupt_in_the_second_wave_leaves_each_host_old_or_new_and_is_resumed(
    lab, some, world, run
):
    hosts = some(14)
    for name in hosts[4:8]:
        lab.fault(name, slow=0.7)
    ranks = f"{hosts[6]},{hosts[7]}"
    rollout = ["--serial", "4", "-j", "1", "--together", ranks, "--health", "true", "--json"]
    argv = [sys.executable, "-m", "patchq", "push", "-a", "--target", SITE]
    argv += ["--queue", str(world.queue), "-H", ",".join(hosts), *rollout]
    environ = {**os.environ, **lab.home.environ, "PATCHQ_CACHE": str(world.root / "cache")}
    with subprocess.Popen(
        argv, env=environ, stdout=subprocess.PIPE, text=True, preexec_fn=heard
    ) as process:
        while not lab.counters()[hosts[6]].commits:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        document = json.loads(process.communicate(timeout=60)[0])
    lab.fault(*hosts)
    found = {one["host"]: one["outcome"] for one in document["hosts"]}

    assert process.returncode == document["exit_code"] == ExitCode.INTERRUPTED
    assert list(found.values())[:6] == ["done"] * 6
    assert (found[hosts[6]], found[hosts[7]]) == ("taken back", "not begun")
    assert set(list(found.values())[8:]) == {"not begun"}
    for name, word in found.items():
        assert text(lab, name) == (NEW if word == "done" else OLD)
    assert not any(lab.counters()[name].sessions for name in hosts[8:])

    resumed = run(hosts, *rollout)

    assert resumed.returncode == 0
    assert list(outcomes(resumed).values()) == ["nothing to do"] * 6 + ["done"] * 8
    assert {text(lab, name) for name in hosts} == {NEW}


@pytest.mark.slow
def test_an_interrupt_while_a_host_is_asked_leaves_it_new_and_says_so(lab, some, world):
    hosts = some(3)
    asked = lab.base / "asked"
    command = f"touch {asked}; sleep 600"
    argv = [sys.executable, "-m", "patchq", "push", "-a", "--target", SITE]
    argv += ["--queue", str(world.queue), "-H", ",".join(hosts), "--canary", "1"]
    environ = {**os.environ, **lab.home.environ, "PATCHQ_CACHE": str(world.root / "cache")}
    with subprocess.Popen(
        [*argv, "--health", command],
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heard,
    ) as process:
        while not asked.exists():
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)

    assert process.returncode == ExitCode.INTERRUPTED
    assert [line.split("  ")[0] for line in out.splitlines()[1:]] == hosts
    assert "done" in out.splitlines()[1]
    assert "not asked to the end whether it is healthy: ^C" in out.splitlines()[1]
    assert out.count("not begun") == 2
    assert text(lab, hosts[0]) == NEW
    assert err.endswith("3 hosts: 1 done, 2 not begun; stopped by ^C\n")


@pytest.mark.slow
def test_an_interrupt_while_hosts_are_taken_back_waits_for_them(lab, some, world):
    hosts = some(3)
    lab.fault(hosts[0], slow=0.5)
    argv = [sys.executable, "-m", "patchq", "push", "-a", "--target", SITE, "--json"]
    argv += ["--queue", str(world.queue), "-H", ",".join(hosts), "--canary", "1"]
    environ = {**os.environ, **lab.home.environ, "PATCHQ_CACHE": str(world.root / "cache")}
    with subprocess.Popen(
        [*argv, "--health", "false"],
        env=environ,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=heard,
    ) as process:
        while lab.counters()[hosts[0]].sessions < 2:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        document = json.loads(process.communicate(timeout=60)[0])

    assert process.returncode == ExitCode.INTERRUPTED
    words = [one["outcome"] for one in document["hosts"]]
    assert words == ["taken back", "not begun", "not begun"]
    assert text(lab, hosts[0]) == OLD
    assert lab.counters()[hosts[0]].commits == 2


@pytest.mark.slow
def test_a_second_interrupt_waits_for_nothing_and_says_what_is_not_known(lab, some, world):
    hosts = some(2)
    argv = [sys.executable, "-m", "patchq", "push", "-a", "--target", SITE, "--json"]
    argv += ["--queue", str(world.queue), "-H", ",".join(hosts), "--canary", "1"]
    environ = {**os.environ, **lab.home.environ, "PATCHQ_CACHE": str(world.root / "cache")}
    slow = f"touch {lab.base}/now; until test -e {lab.base}/slow; do sleep 0.01; done; false"
    with subprocess.Popen(
        [*argv, "--health", slow], env=environ, stdout=subprocess.PIPE, text=True, preexec_fn=heard
    ) as process:
        while not (lab.base / "now").exists():
            time.sleep(0.01)
        lab.fault(hosts[0], hang="survey")
        (lab.base / "slow").touch()
        while lab.counters()[hosts[0]].sessions < 2:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        document = json.loads(process.communicate(timeout=60)[0])

    assert process.returncode == ExitCode.INTERRUPTED
    first, second = document["hosts"]
    assert (first["outcome"], second["outcome"]) == ("failed", "not begun")
    assert "it was not taken back" in first["error"]["what"]
    assert text(lab, hosts[0]) == NEW


def test_a_table_and_the_reasons_below_it(lab, some, run):
    a, b, c = some(3)

    done = run([a, b, c], "--serial", "2", "--health", f"test $PATCHQ_HOST != {b}")

    assert done.returncode == ExitCode.HOST_FAILED
    assert done.stdout.splitlines() == [
        "HOST   WAVE  OUTCOME     DETAIL",
        f"{a}  1     done        Now at patch 30-text.patch",
        f"{b}  1     taken back  not healthy: exit status 1",
        f"{c}  2     not begun   the run stopped before it: {b} failed (the limit is 0)",
    ]
    assert f"wave 1 of 2: h[{a[1:]}-{b[1:]}]\n" in done.stderr
    assert f"\n{b}: taken back\n  patchq: not healthy: exit status 1\n" in done.stderr
    assert "  Taken back to where it was before this run (3 patches).\n" in done.stderr
    assert done.stderr.endswith("3 hosts: 1 done, 1 taken back, 1 not begun\n")


def test_a_command_is_told_of_what_it_is_asked(lab, some, run):
    (host,) = some(1)
    said = lab.base / "said"

    run([host], "--health", f'echo "$PATCHQ_HOST $PATCHQ_ADDRESS $PATCHQ_VERB" > {said}')

    assert said.read_text() == f"{host} {lab.hosts[host].address} push\n"


def test_one_host_that_is_not_healthy_has_failed(lab, some, run):
    (host,) = some(1)

    done = run([host], "--health", "echo no model; false")

    assert done.returncode == ExitCode.FAILED
    assert "patchq: not healthy: exit status 1\n    no model\nTaken back to" in done.stderr
    assert done.stdout.endswith("No patches applied\n")
    assert text(lab, host) == OLD


def test_a_dry_run_says_the_waves_and_asks_nobody(lab, some, run):
    hosts = some(3)

    done = run(hosts, "-n", "--canary", "1", "--health", f"touch {lab.base}/dry; false")

    assert done.returncode == 0
    assert f"wave 1 of 2, the canary: {hosts[0]}\n" in done.stderr
    assert done.stdout.count("Would be at patch") == 3
    assert not (lab.base / "dry").exists()
    assert {text(lab, name) for name in hosts} == {OLD}


def test_groups_of_the_inventory_move_together_without_a_word(lab, some, run, world):
    a, b, c, d = hosts = some(4)
    inventory = world.root / "hosts.toml"
    inventory.write_text(
        f'[groups.replica1]\nhosts = ["{a}", "{b}"]\ntogether = true\n'
        f'[groups.replica2]\nhosts = ["{c}", "{d}", "elsewhere"]\ntogether = true\n'
    )
    lab.fault(b, refused=True)

    done = run(hosts, "--inventory", str(inventory))

    lines = done.stdout.splitlines()[1:]
    assert [line.split()[1] for line in lines] == ["taken", "unreachable", "done", "done"]
    assert "@replica2 moves together, and not all of it is named: not elsewhere" in done.stderr
    assert [text(lab, name) for name in hosts] == [OLD, OLD, NEW, NEW]


def test_groups_are_named_by_a_pattern(lab, some, run, world):
    a, b, c, d = hosts = some(4)
    inventory = world.root / "hosts.toml"
    inventory.write_text(
        f'[groups.r1]\nhosts = ["{a}", "{c}"]\n[groups.r2]\nhosts = ["{b}", "{d}"]\n'
    )

    done = run(
        hosts, "--inventory", str(inventory), "--together", "@r*", "--serial", "2", "-n", "--json"
    )

    assert [one["wave"] for one in json.loads(done.stdout)["hosts"]] == [1, 2, 1, 2]


def test_a_pop_that_is_not_healthy_is_pushed_again(lab, some, run):
    hosts = some(2)
    run(hosts)

    done = run(hosts, "--canary", "1", "--health", "test $PATCHQ_VERB != pop", verb="pop")

    assert done.returncode == ExitCode.HOST_FAILED
    assert {text(lab, name) for name in hosts} == {NEW}


def test_a_goto_rolls_out_too(lab, some, run):
    hosts = some(2)

    done = run(hosts, "--canary", "1", "--health", "true", verb="goto", where=("20-foot",))

    assert done.returncode == 0
    assert done.stdout.count("Now at patch 20-foot.patch") == 2


@pytest.mark.parametrize(
    ("args", "what"),
    [
        (("--serial", "0"), "--serial 0 is no number of hosts"),
        (("--serial", "120%"), "--serial 120% is no number of hosts"),
        (("--canary", "1", "--fail-limit", "-1"), "--fail-limit -1 is no number of hosts"),
        (("--fail-limit", "1"), "--fail-limit has nothing to do"),
        (("--health-wait", "5"), "--health-wait has nothing to do"),
        (("--health", " "), "--health has nothing to do"),
        (("--together", "@nobody"), "'@nobody' names a group, and there is no inventory"),
        (("--together", "gpu7"), "--together gpu7: none of its hosts is named"),
        (("--health", "true", "--adopt"), "--adopt does not go with what takes hosts back"),
        (("--canary", "0"), "0 is not in the range x>=1"),
    ],
)
def test_what_would_do_nothing_or_not_what_it_says_is_refused(world, args, what):
    done = world.here("push", "-a", "-H", "gpu1,gpu2", *args)

    assert done.returncode == ExitCode.USAGE
    assert what in done.stderr


@pytest.mark.parametrize("goal", [(), ("2",)])
@pytest.mark.parametrize("verb", ["push", "pop"])
def test_a_number_of_steps_is_no_goal_of_a_rollout(world, verb, goal):
    done = world.here(verb, *goal, "-H", "gpu1,gpu2", "--serial", "1")

    assert done.returncode == ExitCode.USAGE
    assert "--serial needs -a, or a patch by its name" in done.stderr


def test_a_rollout_is_for_hosts(world):
    done = world.here("push", "-a", "--health", "true")

    assert done.returncode == ExitCode.USAGE
    assert "--health is for hosts, and none is named" in done.stderr


def heard() -> None:
    """Let a process hear ^C, which a job in the background of a shell may be told to ignore."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
