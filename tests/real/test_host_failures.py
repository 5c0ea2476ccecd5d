"""A third of the hosts fail, each in its own way: the rest is done, the second run finishes."""

import contextlib
import json
import os
import signal

import pytest

from tests import netns_lab, ssh_lab

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.getuid() != 0, reason="only root can make network namespaces"),
]
WELL = [f"gpu{number}" for number in range(7)]
ILL = ["full", "changed", "hung"]


@pytest.fixture
def net(world):
    with netns_lab.net([*WELL, *ILL], world, {"full": "4m"}) as found:
        yield found


def test_rest_is_done_where_a_third_fails_and_the_second_run_finishes(net):
    known = net.client.known_hosts.read_text()
    filler = net.nodes["full"].site / "filler"
    _fill(filler)
    _change_key(net, "changed")
    net.nodes["hung"].stop(listener=True)

    first = net.run("push", "-a", "--json")
    table = net.run("status")

    document = json.loads(first.stdout)
    words = _words(document)
    assert first.returncode == document["exit_code"] == 4, first.stderr
    assert words == dict.fromkeys(WELL, "done") | {
        "full": "failed",
        "changed": "unreachable",
        "hung": "unreachable",
    }
    errors = {one["host"]: one["error"] for one in document["hosts"] if "error" in one}
    assert errors.keys() == set(ILL)
    assert "No space left on device" in errors["full"]["why"]
    assert "ssh-keygen -R" in errors["changed"]["mend"]
    assert table.returncode == 4
    assert "10 hosts: 8 done, 2 unreachable" in table.stderr

    filler.unlink()
    net.client.known_hosts.write_text(known)
    os.kill(net.nodes["hung"].sshd, signal.SIGCONT)
    second = net.run("push", "-a", "--json")

    assert _words(json.loads(second.stdout)) == {
        **dict.fromkeys(WELL, "nothing to do"),
        **dict.fromkeys(ILL, "done"),
    }
    assert second.returncode == 0
    assert not any(node.agents for node in net.nodes.values())


def test_table_names_every_host_once_with_its_outcome(net):
    _fill(net.nodes["full"].site / "filler")
    _change_key(net, "changed")

    run = net.run("push", "-a", hosts="gpu0,full,changed")

    rows = [line.split()[:2] for line in run.stdout.splitlines()]
    assert rows == [
        ["HOST", "OUTCOME"],
        ["gpu0", "done"],
        ["full", "failed"],
        ["changed", "unreachable"],
    ]
    assert run.returncode == 4


def _words(document):
    return {one["host"]: one["outcome"] for one in document["hosts"]}


def _fill(path):
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(4096)):
            pass
    assert not os.statvfs(path.parent).f_bavail


def _change_key(net, name):
    """Let known_hosts have another key for a host than it shows."""
    other = ssh_lab.asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode()
    lines = net.client.known_hosts.read_text().splitlines()
    address = net.nodes[name].address
    kept = [line for line in lines if not line.startswith(address)]
    net.client.known_hosts.write_text("\n".join([*kept, f"{address} {other}"]))
