"""Hosts whose shell refuses the usual line, or that have no python3 under that name."""

import asyncio
import shlex
from pathlib import Path

import pytest

from patchq.transport import bootstrap, command, endings, hosts, pythons, ssh
from patchq.transport.channel import Deadlines
from tests import ssh_lab
from tests.transport import talk


def reach(home, conversation, python=None):
    settings = ssh.Settings.read(home.environ)
    return asyncio.run(ssh.converse(hosts.parse("gpu1", python=python), settings, conversation))


@pytest.mark.parametrize("python", [None, "/usr/bin/python3"])
def test_restricted_shell_gets_a_line_that_it_takes(base, home, python):
    with ssh_lab.embedded(base / "remote", home.public, shell="rbash") as server:
        home.add("gpu1", server)

        assert reach(home, talk.contents("/tmp", "none"), python) == [None]

    assert len(server.commands) == 2
    assert server.logins == 1


def test_restricted_shell_behind_a_command_gets_it_too():
    argv = [ssh_lab.tool("rbash"), "-c"]

    assert command.converse(argv, None, talk.contents("/tmp", "none")) == [None]


def test_both_failures_are_told(base, home):
    with ssh_lab.embedded(base / "remote", home.public, shell="bash") as server:
        (server.home / ".bashrc").write_text(
            "test -e ~/second && { echo two; exit 1; }; touch ~/second; echo one; exit 126\n"
        )
        home.add("gpu1", server)

        with pytest.raises(endings.NoHostAgent, match="no agent answered") as caught:
            reach(home, talk.read("/tmp"))

    assert "'one'" in caught.value.why
    assert "status 126" in caught.value.why
    assert "without `exec`: its output ended; it ended with status 1" in caught.value.why
    assert "'two'" in caught.value.why


def test_session_that_was_left_well_is_not_tried_twice(base, home):
    with ssh_lab.embedded(base / "remote", home.public, shell="bash") as server:
        (server.home / ".bashrc").write_text("exit 0\n")
        home.add("gpu1", server)

        with pytest.raises(endings.NoHostAgent):
            reach(home, talk.read("/tmp"))

    assert len(server.commands) == 1


@pytest.mark.parametrize("shell", [*ssh_lab.SHELLS, "rbash"])
def test_interpreters_that_are_there_are_named(base, home, shell):
    with ssh_lab.embedded(base / "remote", home.public, shell=shell) as server:
        own = server.home / ".venv" / "bin"
        own.mkdir(parents=True)
        (own / "python3").symlink_to("/usr/bin/python3")
        home.add("gpu1", server)

        with pytest.raises(endings.NoHostAgent, match="no interpreter 'python9'") as caught:
            reach(home, talk.read("/tmp"), "python9")

    assert "--python /usr/bin/python3" in caught.value.mend
    assert f"--python {own}/python3" in caught.value.mend
    assert caught.value.mend.count("--python") <= pythons.MOST
    assert server.logins == 1


def test_interpreters_behind_a_command_are_named():
    with pytest.raises(endings.NoHostAgent, match="no interpreter") as caught:
        command.converse([ssh_lab.tool("sh"), "-c"], "python9", talk.read("/tmp"))

    assert "--python /usr/bin/python3" in caught.value.mend


def test_host_that_lists_nothing_is_told_as_before(tmp_path):
    argv = ["env", "-i", f"PATH={tmp_path}", "/bin/sh", "-c"]

    with pytest.raises(endings.NoHostAgent) as caught:
        command.converse(argv, None, talk.read("/tmp"), deadlines=Deadlines(sync=5))

    assert caught.value.mend.startswith("name one")


def test_list_is_read_between_its_marks_and_no_further():
    mark = b"abc"
    noise = b"/usr/bin/python3\n"
    lines = b"\n".join(
        [
            b"abc-begin",
            b"/usr/bin/python3",
            b"/usr/bin/python3-config",
            b"python3: aliased",
            b"/opt/a b/bin/python3.12",
            b"/usr/bin/python3",
            *(b"/opt/%d/bin/python3" % n for n in range(20)),
            b"abc-end",
            b"/evil/python3",
        ]
    )

    found = pythons.listed(noise + lines, mark)

    assert found[:2] == ("/usr/bin/python3", "/opt/a b/bin/python3.12")
    assert len(found) == pythons.MOST
    assert "/evil/python3" not in found
    assert pythons.listed(noise + lines.replace(b"-end", b""), mark) == ()


def test_line_for_restricted_shells_is_constant_and_plain():
    line = bootstrap.command(None, restricted=True)

    assert line.startswith("python3 -ISc '")
    assert "exec " not in line.partition("'")[0]
    assert bootstrap.command("/a/b", restricted=True).startswith("sh -c '")
    assert len(shlex.split(pythons.line(b"abc"))) == 3
    assert not Path("abc-begin").exists()
