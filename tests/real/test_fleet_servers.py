"""Servers that run while their package is patched over a real sshd, and who may look at them.

The server is a user's of its own. A login as root, by itself or by sudo, sees all of it; one
without privileges sees of it what /proc shows to everybody, and must not say more.
"""

import json
import os
import re
import shlex
import subprocess
import sys

import pytest

from patchq.errors import ExitCode
from tests import rack_lab, rack_service, ssh_lab
from tests.netns_lab import until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.getuid() != 0, reason="only root can make namespaces and users"),
]
ASK = """\
#!/bin/sh
{ssh} "$PATCHQ_HOST" {serve} "$1" || exit
for n in $(seq 100); do
    answer=$({python} -c "
import sys, urllib.request
print(urllib.request.urlopen('http://%s:{port}' % sys.argv[1], timeout=2).read().decode())
" "$PATCHQ_ADDRESS" 2> /dev/null) && break
    sleep 0.1
done
echo "a circle is $answer"
case $answer in {new}*) ;; *) exit 1;; esac
"""
# A login without privileges, one with sudo, and root's.
PLAIN, SUDO, ROOT = "gpu01", "gpu05", "gpu09"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    of = rack_service.make(tmp_path_factory.mktemp("rack") / "w")
    with rack_lab.rack(9, of, versions=2, users=("sh",)) as rack:
        print(rack.told)
        yield rack


@pytest.fixture
def rack(made):
    """The rack, with nothing pushed and no server."""
    yield made
    made.run("pop", "-a", "-H", "all")
    for name in (PLAIN, SUDO, ROOT):
        inside(made.hosts[name], "sh", "-c", "pkill -KILL -f '[d]emo|[V]LLM'; true")
        inside(made.hosts[name], "mount", "-o", "remount,hidepid=0", "/proc")


def inside(host, *argv):
    """Run a command as the machine's root, in the namespaces of a host."""
    enter = [ssh_lab.tool("nsenter"), "-t", str(host.sshd), "--mount", "--pid"]
    subprocess.run([*enter, *argv], check=True, capture_output=True)


def serve(rack, name, method="spawn", title="", **how):
    """Start a server on a host, by a login of its own user's, and return its numbers."""
    host = rack.hosts[name]
    line = f"{host.serves(**how)} {method} {title}"
    rack.login(host, line, host.server)
    until(lambda: set(host.pids()) == {"server", "engine", "worker0", "worker1"})
    return host.pids()


def end(rack, name, which):
    """End one process of a server's; return the number of that which came in its place."""
    host = rack.hosts[name]
    old = host.pids()[which]
    rack.login(host, f"kill -9 {old}", host.server)
    until(lambda: host.pids()[which] != old)
    return host.pids()[which]


def named(text, what):
    """Return the numbers in the line that begins so."""
    lines = [line for line in text.splitlines() if line.startswith(what)]
    return {int(pid) for line in lines for pid in re.findall(r"(?:: |, )(\d+) ", line)}


def asking(rack, name):
    """Write a health command: it starts the server anew, and asks it what a circle is."""
    host, ask = rack.hosts[name], rack.base / "ask"
    words = {"ssh": rack.ssh(host.server), "serve": f"{host.here}/serve"}
    words |= {"python": shlex.quote(sys.executable), "port": rack_service.PORT}
    ask.write_text(ASK.format(**words, new=rack_service.NEW))
    ask.chmod(0o755)
    return ask


def status(rack, name):
    done = rack.run("status", "-H", name)
    document = json.loads(rack.run("status", "-H", name, "--json").stdout)
    return done, document["running"]


@pytest.mark.parametrize("name", [PLAIN, SUDO, ROOT])
def test_a_server_before_and_after_a_push_and_its_restart_by_the_health_command(rack, name):
    host = rack.hosts[name]
    ask = asking(rack, name)
    old = serve(rack, name)
    assert host.server not in ("root", host.user, host.owner)

    pushed = rack.run("push", "-a", "-H", name)
    after, running = status(rack, name)

    assert pushed.returncode == after.returncode == 0, pushed.stderr
    assert named(pushed.stderr, "restart needed") == set(old.values()), pushed.stderr
    assert named(after.stdout, "restart needed") == set(old.values()), after.stdout
    assert running["restart"] == sorted(old.values())
    assert running["mixed"] == []

    fresh = end(rack, name, "worker1")
    mixed, running = status(rack, name)

    assert mixed.returncode == ExitCode.FINDING
    tree = {*old.values(), fresh} - {old["worker1"]}
    assert [set(one) for one in running["mixed"]] == [tree]
    assert f"alarm: the processes of server {old['server']} differ: before push" in mixed.stdout
    assert named(mixed.stdout, "restart needed") == tree - {fresh}
    assert named(mixed.stdout, "running on the current code") == {fresh}

    again = rack.run("push", "-a", "-H", name, "--health", f"{ask} spawn", "--json")
    after, running = status(rack, name)

    assert again.returncode == ExitCode.NOTHING_TO_DO, again.stderr
    assert json.loads(again.stdout)["health"]["good"] is True
    new = set(host.pids().values())
    assert len(new) == 4
    assert not new & {*old.values(), fresh}
    assert after.returncode == 0
    assert named(after.stdout, "running on the current code") == new
    assert "restart" not in after.stdout
    assert running["restart"] == []


def test_who_asks_a_server_that_was_not_restarted_hears_the_old_code(rack):
    """The health command sees the server as it is: a push alone restarts nothing."""
    host = rack.hosts[PLAIN]
    serve(rack, PLAIN)
    fetch = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).read().decode())"
    ask = f'{sys.executable} -c "{fetch}" "http://$PATCHQ_ADDRESS:{rack_service.PORT}" | grep 3.14'

    done = rack.run("push", "-a", "-H", PLAIN, "--health", ask, "--json")

    document = json.loads(done.stdout)
    assert done.returncode == ExitCode.FAILED
    assert document["why"] == "not healthy: exit status 1"
    assert document["taken_back"]
    assert document["running"]["restart"] == []  # what was taken back needs none
    assert rack_service.OLD == "3"
    assert host.text()["demo/data.txt"] == b"one\ntwo\nthree\n"


def test_a_server_that_was_restarted_and_is_taken_back_needs_another_restart(rack):
    host = rack.hosts[PLAIN]
    old = serve(rack, PLAIN)

    done = rack.run("push", "-a", "-H", PLAIN, "--health", f"{asking(rack, PLAIN)} spawn; exit 3")

    new = set(host.pids().values())
    assert done.returncode == ExitCode.FAILED
    assert "not healthy: exit status 3\n    a circle is 3.14" in done.stderr
    assert not new & {*old.values()}
    assert named(done.stderr.replace("\n  ", "\n"), "restart needed") == new, done.stderr


@pytest.mark.parametrize("name", [PLAIN, SUDO])
def test_a_forked_worker_has_its_servers_code_whoever_looks(rack, name):
    old = serve(rack, name, "fork")
    assert rack.run("push", "-a", "-H", name).returncode == 0

    fresh = end(rack, name, "worker0")
    done, running = status(rack, name)

    assert running["restart"] == sorted({*old.values(), fresh} - {old["worker0"]})
    assert running["mixed"] == []
    assert done.returncode == 0
    assert "running on the current code" not in done.stdout


def test_a_server_that_cannot_be_looked_into_is_counted_and_said(rack):
    """Its command line names no path, and another user may not read its environment."""
    host = rack.hosts[PLAIN]
    path = f"env PATH={host.environment}/bin:{ssh_lab.PATH} "
    serve(rack, PLAIN, command="python -m demo.service", environ=path)

    pushed = rack.run("push", "-a", "-H", PLAIN)
    after, running = status(rack, PLAIN)

    told = "of other users may be Python, and cannot be looked into"
    assert pushed.returncode == after.returncode == 0
    assert told in pushed.stderr
    assert told in after.stdout
    assert running["processes"] == []
    assert running["unreadable"] >= 4


def test_a_title_without_a_sign_is_counted_too(rack):
    host = rack.hosts[PLAIN]
    path = f"env PATH={host.environment}/bin:{ssh_lab.PATH} "
    serve(rack, PLAIN, title="api-server", command="python -m demo.service", environ=path)

    _, running = status(rack, PLAIN)

    assert running["unreadable"] == 4
    assert rack.run("push", "-a", "-H", PLAIN).stderr.count("cannot be looked into") == 1


@pytest.mark.parametrize("hidden", ["1", "2"])
def test_where_proc_hides_other_users_that_is_said(rack, hidden):
    host = rack.hosts[PLAIN]
    pids = serve(rack, PLAIN)
    inside(host, "mount", "-o", f"remount,hidepid={hidden}", "/proc")

    pushed = rack.run("push", "-a", "-H", PLAIN)
    after, running = status(rack, PLAIN)
    audit = json.loads(rack.run("audit", "-H", PLAIN, "--json").stdout)["rows"][0]

    assert not {str(pid) for pid in pids.values()} & set(re.findall(r"\d+", pushed.stderr))
    said = "/proc does not show the processes of other users"
    assert said in pushed.stderr
    assert said in after.stdout
    assert running["hidden"] is audit["running"]["hidden"] is True


def test_root_sees_what_proc_hides_from_others(rack):
    pids = serve(rack, SUDO)
    inside(rack.hosts[SUDO], "mount", "-o", "remount,hidepid=2", "/proc")

    pushed = rack.run("push", "-a", "-H", SUDO)

    assert named(pushed.stderr, "restart needed") == set(pids.values())
    assert "does not show" not in pushed.stderr


def test_nothing_is_said_where_nothing_could_be_missed(rack):
    done, running = status(rack, PLAIN)
    pushed = rack.run("push", "-a", "-H", PLAIN)

    assert running["hidden"] is False
    assert running["unreadable"] == 0
    assert "looked" not in done.stdout + pushed.stderr
