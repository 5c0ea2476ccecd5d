"""A rollout over thirty real sshd: users, login shells, Pythons, and how environments were made.

After every step the bytes of every host are what its word says.
"""

import json
import os
import signal
import subprocess
from collections import Counter

import pytest

from patchq.errors import ExitCode
from tests import netns_lab, rack_lab, rack_service
from tests.inventory import ansible_lab
from tests.netns_lab import until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.getuid() != 0, reason="only root can make namespaces and users"),
]
RENAME = (".patchq/demo/stage/1.new", "rename", "enter")
NEW_WORDS, OLD_WORDS = {"done", "nothing to do"}, {"taken back", "not begun"}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Thirty hosts for all tests here, and what a push makes of their files."""
    of = rack_service.make(tmp_path_factory.mktemp("rack") / "w")
    new = rack_service.pushed(of)
    with rack_lab.rack(30, of) as rack:
        print(rack.told)  # which Pythons this machine has
        yield rack, new, {name: host.tree() for name, host in rack.hosts.items()}


@pytest.fixture
def rack(made):
    """The rack, its hosts as they were."""
    rack, _, pristine = made
    for host in rack.hosts.values():
        host.needs(there=True)
        host.model(there=True)
        host.runs()
        host.heal()
    rack.write()
    assert {name: host.tree() for name, host in rack.hosts.items()} == pristine
    return rack


@pytest.fixture
def are(made):
    """A function that looks at the bytes of all hosts: what their words say, and no other."""
    rack, new, pristine = made

    def are(words, *, lost=()):
        for name, word in words.items():
            host = rack.hosts[name]
            if word in NEW_WORDS or name in lost:
                assert host.text() == new, (name, word)
            else:
                assert word in OLD_WORDS | {"unreachable", "failed"}
                assert host.tree() == pristine[name], (name, word)

    return are


@pytest.fixture
def health(rack):
    """A command that logs in by ssh(1), and looks for a model there."""
    there = f"{rack.base}/host/model"
    return f'{rack.ssh()} "$PATCHQ_HOST" test -e {there} || {{ echo no model to load; exit 1; }}'


def words(done):
    return {one["host"]: one["outcome"] for one in json.loads(done.stdout)["hosts"]}


def errors(done):
    found = {one["host"]: one.get("error") for one in json.loads(done.stdout)["hosts"]}
    return done.stderr, [(host, error) for host, error in found.items() if error]


def numbers(first, last):
    return [f"gpu{number:02}" for number in range(first, last + 1)]


def test_the_rack_has_users_shells_and_environments_of_all_kinds(made):
    rack = made[0]
    hosts = rack.hosts.values()

    assert len({host.user for host in hosts}) == 29  # root's are one
    assert {host.shell for host in hosts} == {"root's", *rack_lab.shell_lab.SHELLS}
    assert {host.maker for host in hosts} == {"pip", "uv"}
    assert {host.version for host in hosts} == {*rack_lab.shell_lab.interpreters()}, rack.told
    for host in hosts:
        installer = next(host.packages.glob("demo-*.dist-info/INSTALLER")).read_text().strip()
        assert installer == host.maker


def test_a_rollout_from_a_canary_that_fails_to_the_last_host(rack, are, health):
    hosts, canary = rack.hosts, rack.hosts["gpu01"]
    rack.write(slow=("gpu10", "gpu12"), more='[groups.replica1]\nhosts = ["gpu[05-06]"]')
    rollout = ("push", "-a", "-H", "all", "--json", "--canary", "1", "--serial", "25%")
    rollout += ("--fail-limit", "3", "--together", "@replica1", "--check-import", "demo")
    rollout += ("--health", health)

    canary.needs(there=False)
    first = rack.run(*rollout)
    _only_the_canary(first, are)
    assert "speedups" in json.loads(first.stdout)["hosts"][0]["report"]["why"]

    canary.needs(there=True)
    canary.model(there=False)
    second = rack.run(*rollout)
    _only_the_canary(second, are)
    report = json.loads(second.stdout)["hosts"][0]["report"]
    assert report["why"] == "not healthy: exit status 1"
    assert report["health"]["printed"] == ["no model to load"]

    canary.model(there=True)
    for name in ("gpu14", "gpu20"):
        hosts[name].model(there=False)
    hosts["gpu06"].cut()
    for name in ("gpu10", "gpu12"):
        hosts[name].waits(*RENAME)
    third = _with_cuts(rack, rollout)
    expected = dict.fromkeys(numbers(1, 22), "done") | dict.fromkeys(numbers(23, 30), "not begun")
    expected |= dict.fromkeys(("gpu05", "gpu14", "gpu20"), "taken back")
    expected |= {"gpu06": "unreachable", "gpu12": "unknown"}
    assert words(third) == expected
    assert third.returncode == ExitCode.HOST_FAILED
    are(words(third), lost=("gpu12",))  # its agent went on to the end
    cause = json.loads(third.stdout)["hosts"][-1]["error"]["what"]
    assert cause == "the run stopped before it: gpu20 failed (the limit is 3)"

    for host in hosts.values():
        host.heal()
        host.model(there=True)
    until(lambda: "unreachable" not in rack.run("applied", "-H", "gpu06,gpu12", "--json").stdout)
    fourth = rack.run(*rollout)
    missing = [name for name, word in expected.items() if word not in ("done", "unknown")]
    all_good = dict.fromkeys(hosts, "nothing to do") | dict.fromkeys(missing, "done")
    assert words(fourth) == all_good, errors(fourth)
    assert fourth.returncode == 0
    are(words(fourth))
    assert rack.run("audit", "-H", "all").stdout.count(" current ") == 30
    _take_off(rack, are)


def _only_the_canary(done, are):
    """The canary was taken back, nobody else was begun."""
    assert done.returncode == ExitCode.HOST_FAILED, done.stderr
    found = words(done)
    assert found.pop("gpu01") == "taken back"
    assert set(found.values()) == {"not begun"}
    are(words(done))


def _with_cuts(rack, rollout):
    """Run it; in the midst of a commit two links are cut, and one of them is healed later."""
    cut, stays = rack.hosts["gpu10"], rack.hosts["gpu12"]
    with rack.start(*rollout) as process:
        for host in (cut, stays):
            until(lambda host=host: host.waiting, process)
            host.cut()
        until(lambda: not netns_lab.linked(process, cut), process)
        cut.heal()
        out, err = process.communicate(timeout=600)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def _take_off(rack, are, hosts="all", count=30):
    """Pop from all hosts, in two waves: to the byte as they were."""
    done = rack.run("pop", "-a", "-H", hosts, "--json", "--serial", "50%", "--health", "true")
    assert Counter(words(done).values()) == {"done": count}, errors(done)
    are(dict.fromkeys(rack.hosts, "taken back"))


def test_an_interrupt_in_the_second_wave_is_resumed(rack, are, health):
    rack.write(slow=("gpu11",))
    rack.hosts["gpu11"].waits(*RENAME)
    rollout = ("push", "-a", "-H", "all", "--json", "--serial", "25%", "-j", "1")
    rollout += ("--together", "gpu11,gpu14", "--health", health)

    with rack.start(*rollout) as process:
        until(lambda: rack.hosts["gpu11"].waiting, process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=600)
    found = {one["host"]: one["outcome"] for one in json.loads(out)["hosts"]}

    assert process.returncode == ExitCode.INTERRUPTED, err
    done = numbers(1, 10)
    assert found == dict.fromkeys(rack.hosts, "not begun") | dict.fromkeys(done, "done") | {
        "gpu11": "taken back"
    }
    are(found)

    rack.hosts["gpu11"].runs()
    again = rack.run(*rollout)

    assert again.returncode == 0, again.stderr
    assert words(again) == dict.fromkeys(rack.hosts, "done") | dict.fromkeys(done, "nothing to do")
    are(words(again))
    _take_off(rack, are)


def test_hosts_that_lose_their_power_within_a_commit(rack, are):
    """One is back while patchq looks for it, one not before the run has ended."""
    back, off = rack.hosts["gpu15"], rack.hosts["gpu16"]
    rack.write(slow=("gpu15", "gpu16"))
    rollout = ("push", "-a", "-H", "gpu[15-18]", "--json", "--serial", "2", "--fail-limit", "1")
    for host in (back, off):
        host.waits(*RENAME)

    with rack.start(*rollout) as process:
        for host in (back, off):
            until(lambda host=host: host.waiting, process)
            rack.crash(host)
            host.runs()
        rack.boot(back)
        out, err = process.communicate(timeout=600)
    found = {one["host"]: one["outcome"] for one in json.loads(out)["hosts"]}
    rack.boot(off)
    half = off.text()
    again = rack.run(*rollout)

    assert found == dict.fromkeys(("gpu15", "gpu17", "gpu18"), "done") | {"gpu16": "unknown"}, err
    assert process.returncode == ExitCode.HOST_FAILED
    assert again.returncode == 0, again.stderr
    are(words(again))
    assert words(again) == dict.fromkeys(found, "nothing to do")
    assert half != off.text()  # the push found its renames begun, and has finished them
    told = [one["report"].get("recovered") for one in json.loads(again.stdout)["hosts"]]
    assert told == [None, "finished", None, None]
    _take_off(rack, are, hosts="gpu[15-18]", count=4)


def test_the_same_fleet_by_an_inventory_of_ansibles(rack, are, health):
    lines = ["[rack1]"]
    for host in rack.hosts.values():
        become = " ansible_become=true" if host.user != host.owner else ""
        port = f" ansible_port={host.listens}" if host.listens != 22 else ""
        lines.append(
            f"{host.name} ansible_host={host.address} ansible_user={host.user}{port}{become}"
        )
    python = f"{rack.base}/host/venv/bin/python"
    lines += ["[rack1:vars]", f"ansible_python_interpreter={python}"]
    (rack.base / "inventory.ini").write_text("\n".join(lines) + "\n")
    (rack.base / "hosts.toml").unlink()
    rack.hosts["gpu01"].model(there=False)
    rollout = ("push", "-a", "--inventory", "inventory.ini", "-H", "@rack1", "--json")
    rollout += ("--canary", "1", "--serial", "50%", "--health", health)

    first = rack.run(*rollout, path=ansible_lab.programs())
    _only_the_canary(first, are)
    rack.hosts["gpu01"].model(there=True)
    second = rack.run(*rollout, path=ansible_lab.programs())

    assert words(second) == dict.fromkeys(rack.hosts, "done"), second.stderr
    are(words(second))
    rack.write()
    _take_off(rack, are)
