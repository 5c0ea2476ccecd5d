"""Over real SSH to embedded hosts: every shell, every way to fail."""

import asyncio
import contextlib
import os
import re
import signal
import socket
import subprocess
from dataclasses import replace
from pathlib import Path

import asyncssh
import pytest

from patchq.errors import ExitCode
from patchq.transport import connect, endings, hostkeys, hosts, ssh, unreached
from patchq.transport.channel import Deadlines, Request
from tests import ssh_lab
from tests.transport import talk

HASTY = Deadlines(connect=2, login=1, sync=0.7, request=0.7, end=0.2)


def reach(home, conversation, spec="gpu1", *, deadlines=None, python=None, **more):
    """Hold a conversation with a host as this client."""
    settings = ssh.Settings.read(home.environ | more)
    if deadlines:
        settings = replace(settings, deadlines=deadlines)
    return asyncio.run(ssh.converse(hosts.parse(spec, python=python), settings, conversation))


def test_a_name_is_resolved_once_as_ssh_does(home, host, monkeypatch):
    with home.config.open("a") as file:
        file.write("Host 127.0.0.1\n    HostName no-such-host.invalid\n    ProxyJump nowhere\n")
    monkeypatch.setenv("HOME", str(home.path))

    assert reach(home, talk.contents(host.home)) == []


@pytest.mark.parametrize("shell", ssh_lab.SHELLS)
def test_agent_answers_behind_every_login_shell(base, home, shell):
    (base / "remote" / "tuple[int, ...].py").write_bytes(b"x: tuple[int, ...]\n")

    with ssh_lab.embedded(base / "remote", home.public, shell=shell) as server:
        home.add("gpu1", server)
        found = reach(home, talk.contents(server.home, "tuple[int, ...].py"))

    assert found == [b"x: tuple[int, ...]\n"]
    assert len(server.commands) == 1


RC = {
    "bash": ".bashrc",
    "zsh": ".zshenv",
    "fish": ".config/fish/config.fish",
    "tcsh": ".tcshrc",
}


EATEN = ("bash", "cat >/dev/null", "nothing of an agent came within 0.7 s")


@pytest.mark.parametrize("shell", RC)
def test_start_up_file_may_print(base, home, shell):
    with ssh_lab.embedded(base / "remote", home.public, shell=shell) as server:
        rc = server.home / RC[shell]
        rc.parent.mkdir(parents=True, exist_ok=True)
        rc.write_text("echo Welcome to gpu1\necho 'the * rules'\n")
        home.add("gpu1", server)

        assert reach(home, talk.contents(server.home, "none")) == [None]


@pytest.mark.parametrize(
    ("shell", "line", "why"),
    [
        ("bash", "exit 0", "status 0"),
        ("zsh", "exit 3", "status 3"),
        ("bash", "exec bash", "puts another shell in the place"),
        ("zsh", "exec dash", "puts another shell in the place"),
        ("tcsh", "exec sh", "puts another shell in the place"),
        pytest.param(*EATEN, id="eaten by bash", marks=pytest.mark.slow),
        pytest.param("zsh", *EATEN[1:], id="eaten by zsh", marks=pytest.mark.slow),
        ("zsh", "read x", "status 1"),
        ("bash", "yes garbage", "more than 1 MiB came.*'garbage"),
        ("bash", "echo no entry; exit 1", "instead of an agent's words came 'no entry'"),
        ("bash", "echo no entry >&2; exit 1", "on stderr stood 'no entry'"),
    ],
)
def test_start_up_file_that_takes_the_session_is_told(base, home, shell, line, why):
    canary = base / "canary"
    with ssh_lab.embedded(base / "remote", home.public, shell=shell) as server:
        (server.home / RC[shell]).write_text(f"{line}\n")
        home.add("gpu1", server)

        with pytest.raises(endings.NoHostAgent, match="no agent answered on host gpu1") as caught:
            reach(home, talk.read(server.home), deadlines=HASTY)

    assert caught.value.exit_code == ExitCode.HOST_FAILED
    assert re.search(why, caught.value.why), caught.value.why
    assert not canary.exists()


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_fish_in_the_place_of_the_command_is_told(base, home, shell):
    # It reads all before it runs a line, and leaves as one who does not find python3.
    with ssh_lab.embedded(base / "remote", home.public, shell=shell) as server:
        (server.home / RC[shell]).write_text("exec fish\n")
        home.add("gpu1", server)

        with pytest.raises(endings.NoHostAgent, match="no agent answered") as caught:
            reach(home, talk.read(server.home), deadlines=replace(HASTY, end=10))

    assert "puts another shell in the place" in caught.value.why
    assert "start-up file" in caught.value.mend


def test_stderr_is_read_all_the_time_and_its_end_kept(base, home):
    with ssh_lab.embedded(base / "remote", home.public, shell="zsh") as server:
        flood = "head -c 5000000 /dev/zero | tr '\\0' x >&2"
        (server.home / ".zshenv").write_text(f"{flood}\n")
        home.add("gpu1", server)
        assert reach(home, talk.contents(server.home, "none")) == [None]

        (server.home / ".zshenv").write_text(f"{flood}\necho the end >&2\nexit 1\n")
        with pytest.raises(endings.NoHostAgent) as caught:
            reach(home, talk.read(server.home))

    assert "xxxthe end'" in caught.value.why
    assert len(caught.value.why) < 400


def test_host_without_python_is_told(base, home, host):
    with pytest.raises(endings.NoHostAgent, match="no interpreter 'python9' on host gpu1"):
        reach(home, talk.read("/tmp"), python="python9")


def test_interpreter_may_have_any_path(base, home, host):
    odd = base / 'my "own" py\'thon!'
    odd.symlink_to("/usr/bin/python3")

    assert reach(home, talk.contents(host.home, "none"), python=str(odd)) == [None]


def test_nothing_of_a_request_is_in_a_command_line(home, host):
    secret = "tuple[int, ...] and $(more)"

    def look():
        yield from talk.read(host.home, secret)
        return [line for pid in _family(host.children) if (line := _cmdline(pid))]

    lines = reach(home, look())

    assert lines
    assert not [line for line in [*lines, *host.commands] if "tuple" in line]
    assert not [line for line in [*lines, *host.commands] if str(host.home) in line]


def test_host_that_is_not_in_known_hosts_is_unknown(base, home):
    with ssh_lab.embedded(base / "remote", home.public) as server:
        home.add("gpu1", server, known=False)

        with pytest.raises(hostkeys.HostKeyUnknown) as caught:
            reach(home, talk.read("/tmp"))

        assert "SHA256:" in caught.value.why
        scan = next(part for part in caught.value.mend.split(", or: ") if "keyscan" in part)
        subprocess.run(scan, shell=True, check=True, capture_output=True)
        assert reach(home, talk.contents("/tmp", "none")) == [None]


def test_host_that_shows_another_key_has_changed(base, home):
    with ssh_lab.embedded(base / "remote", home.public) as server:
        home.add("gpu1", server, known=False)
        other = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode()
        home.trust(replace(server, host_key=other.strip()))

        with pytest.raises(hostkeys.HostKeyChanged) as caught:
            reach(home, talk.read("/tmp"))

        remove = re.search("ssh-keygen -R .*", caught.value.mend)
        subprocess.run(remove[0], shell=True, check=True, capture_output=True)
        with pytest.raises(hostkeys.HostKeyUnknown):
            reach(home, talk.read("/tmp"))
        assert not server.commands


@pytest.mark.parametrize("trusted", [False, True])
def test_host_that_shows_a_revoked_key_is_refused(base, home, trusted):
    with ssh_lab.embedded(base / "remote", home.public) as server:
        home.add("gpu1", server, known=trusted)
        home.trust(server, marker="@revoked ")

        with pytest.raises(hostkeys.HostKeyRevoked, match="gpu1 is revoked") as caught:
            reach(home, talk.read("/tmp"))

        assert f"{home.known_hosts}:{2 if trusted else 1}" in caught.value.why
        assert not server.commands


def test_host_may_show_a_certificate_of_a_known_authority(base, home):
    authority, key = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
    certificate = authority.generate_host_certificate(key, "lab", principals=["127.0.0.1"])
    with ssh_lab.embedded(base / "remote", home.public, key=(key, certificate)) as server:
        home.add("gpu1", server, known=False)
        public = authority.export_public_key().decode().strip()
        home.trust(replace(server, host_key=public), marker="@cert-authority ")

        assert reach(home, talk.contents("/tmp", "none")) == [None]


def test_key_under_an_alias_is_found(base, home):
    with ssh_lab.embedded(base / "remote", home.public) as server:
        home.add("gpu1", server, "HostKeyAlias the-gpu", known=False)
        home.known_hosts.write_text(f"the-gpu {server.host_key}\n")

        assert reach(home, talk.contents("/tmp", "none")) == [None]


def test_user_whose_key_is_not_taken_is_told(base, home):
    other = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode()
    with ssh_lab.embedded(base / "remote", other) as server:
        home.add("gpu1", server)

        with pytest.raises(
            unreached.AuthenticationRefused, match="does not let someone in"
        ) as caught:
            reach(home, talk.read("/tmp"))

    assert caught.value.exit_code == ExitCode.HOST_FAILED
    assert hostkeys.fingerprint(home.key.public_data) in caught.value.why
    assert "ssh-copy-id" in caught.value.mend


def test_key_with_a_passphrase_is_named(base, home, host):
    argv = [ssh_lab.tool("ssh-keygen"), "-q", "-p", "-N", "secret", "-f", str(home.key_file)]
    subprocess.run(argv, check=True, capture_output=True)

    with pytest.raises(unreached.AuthenticationRefused) as caught:
        reach(home, talk.read("/tmp"))

    assert "passphrase" in caught.value.why
    assert caught.value.mend == f"ssh-add {home.key_file}"


@contextlib.contextmanager
def ssh_agent(folder):
    path = folder / "agent"
    argv = [ssh_lab.tool("ssh-agent"), "-D", "-a", str(path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        try:
            process.stdout.readline()
            yield {"SSH_AUTH_SOCK": str(path)}
        finally:
            process.terminate()


def test_key_of_the_agent_is_used_and_only_five_are_offered(base, home, host):
    with ssh_agent(base) as environ:
        for number in range(7):
            file = base / f"key{number}"
            asyncssh.generate_private_key("ssh-ed25519").write_private_key(str(file))
            file.chmod(0o600)
            _add_to_agent(file, environ)
        _add_to_agent(home.key_file, environ)
        home.key_file.unlink()

        assert reach(home, talk.contents("/tmp", "none"), **environ) == [None]

        Path(f"{home.key_file}.pub").unlink()
        with pytest.raises(unreached.AuthenticationRefused) as caught:
            reach(home, talk.read("/tmp"), **environ)
        assert caught.value.why.count("SHA256:") == 5


def test_public_file_names_a_key_of_the_agent(base, home):
    with ssh_agent(base) as environ, ssh_lab.embedded(base / "remote", home.public) as server:
        _add_to_agent(home.key_file, environ)
        home.key_file.unlink()
        home.add("gpu1", server, "IdentitiesOnly yes")
        home.config.write_text(home.config.read_text().replace("id_ed25519\n", "id_ed25519.pub\n"))

        assert reach(home, talk.contents("/tmp", "none"), **environ) == [None]


def test_identities_only_keeps_the_agent_out(base, home):
    with ssh_agent(base) as environ:
        _add_to_agent(home.key_file, environ)
        with ssh_lab.embedded(base / "remote", home.public) as server:
            home.add("gpu1", server, "IdentitiesOnly yes", f"IdentityFile {base}/none")
            home.config.write_text(
                home.config.read_text().replace(f"{home.key_file}\n", "/none\n")
            )

            with pytest.raises(unreached.AuthenticationRefused, match="does not let someone in"):
                reach(home, talk.read("/tmp"), **environ)


def test_agent_that_has_gone_is_passed_over(base, home, host):
    assert reach(home, talk.contents("/tmp", "none"), SSH_AUTH_SOCK=str(base / "gone")) == [None]


def test_dead_port_is_refused(home):
    with pytest.raises(unreached.HostUnreachable, match="cannot be reached") as caught:
        reach(home, talk.read("/tmp"), f"127.0.0.1:{ssh_lab.free_port()}")

    assert "refused the connection" in caught.value.why
    assert caught.value.exit_code == ExitCode.HOST_FAILED


def test_unknown_name_is_told(home):
    with pytest.raises(unreached.HostUnreachable) as caught:
        reach(home, talk.read("/tmp"), "no-such-host.invalid")

    assert "there is no host 'no-such-host.invalid'" in caught.value.why


def test_server_that_accepts_and_hangs_is_given_up(home):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        with pytest.raises(unreached.HostUnreachable) as caught:
            reach(
                home, talk.read("/tmp"), f"127.0.0.1:{port}", deadlines=replace(HASTY, login=0.2)
            )

    assert "no SSH came of it within 0.2 s" in caught.value.why


@contextlib.asynccontextmanager
async def door(host, *, drops):
    """Keep a port that drops the first connections and hands on the others to a host."""
    knocks = []

    async def knock(reader, writer):
        knocks.append(asyncio.current_task())
        if len(knocks) > drops:
            inner, outer = await asyncio.open_connection("127.0.0.1", host.port)
            await asyncio.gather(_pipe(reader, outer), _pipe(inner, writer))
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(knock, "127.0.0.1", 0)
    async with server:
        yield replace(host, port=server.sockets[0].getsockname()[1]), knocks
    await asyncio.gather(*knocks)


@pytest.mark.slow
def test_connection_that_is_dropped_before_the_login_is_tried_again(home, host):
    async def knock():
        async with door(host, drops=2) as (server, knocks):
            home.add("door", server)
            settings = ssh.Settings.read(home.environ)
            conversation = talk.contents("/tmp", "none")
            return await ssh.converse(hosts.parse("door"), settings, conversation), len(knocks)

    assert asyncio.run(knock()) == ([None], 3)


@pytest.mark.slow
def test_connection_that_is_always_dropped_is_given_up(home, host):
    async def knock():
        async with door(host, drops=99) as (server, knocks):
            home.add("door", server)
            settings = ssh.Settings.read(home.environ)
            with pytest.raises(unreached.HostUnreachable) as caught:
                await ssh.converse(hosts.parse("door"), settings, talk.read("/tmp"))
            return caught.value, len(knocks)

    error, knocks = asyncio.run(knock())

    assert knocks == connect.TRIES
    assert "dropped the connection before the login" in error.why


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(signal.SIGKILL, id="dies"),
        pytest.param(signal.SIGSTOP, id="hangs", marks=pytest.mark.slow),
    ],
)
def test_agent_that_is_lost_midway_is_told(home, host, end):
    def read():
        yield from talk.read(host.home)
        os.kill(host.children[-1], end)
        yield from talk.read(host.home)

    with pytest.raises(endings.LinkLost, match="had not been asked to change anything") as caught:
        reach(home, read(), deadlines=HASTY)

    assert re.search("signal KILL ended it|no answer to 'read' came", caught.value.why)


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(signal.SIGKILL, id="dies"),
        pytest.param(signal.SIGSTOP, id="hangs", marks=pytest.mark.slow),
    ],
)
def test_outcome_is_unknown_when_the_link_dies_within_a_change(home, host, end):
    def write():
        yield from talk.read(host.home)
        os.kill(host.children[-1], end)
        yield Request({"op": "commit"})

    with pytest.raises(endings.UnknownOutcome, match="outcome is not known") as caught:
        reach(home, write(), deadlines=HASTY)

    assert caught.value.exit_code == ExitCode.HOST_FAILED
    assert caught.value.mend == "patchq status -H gpu1"


def test_outcome_is_unknown_when_the_connection_is_cut_within_a_change(home, host):
    def write():
        yield from talk.read(host.home)
        host.cut()
        yield Request({"op": "commit"})

    with pytest.raises(endings.UnknownOutcome) as caught:
        reach(home, write())

    assert "onnection" in caught.value.why


def test_host_is_reached_through_jumps(base, home, host):
    for name in ("one", "two"):
        (base / name).mkdir()
    with (
        ssh_lab.embedded(base / "one", home.public) as one,
        ssh_lab.embedded(base / "two", home.public) as two,
    ):
        home.add("one", one)
        home.add("two", two, "ProxyJump one")
        home.add("inner", host, "ProxyJump two")

        found = reach(home, talk.contents(host.home, "none"), "inner")

        assert found == [None]
        assert (len(one.tunnels), len(two.tunnels)) == (1, 1)
        assert not one.commands + two.commands


def test_jump_that_fails_is_the_one_that_is_named(base, home, host):
    with ssh_lab.embedded(base / "remote", home.public) as one:
        home.add("one", one, known=False)
        home.add("inner", host, "ProxyJump one")

        with pytest.raises(hostkeys.HostKeyUnknown, match="of one is not known"):
            reach(home, talk.read("/tmp"), "inner")


def test_host_that_a_jump_cannot_reach_is_named(base, home, host):
    home.add("inner", replace(host, port=ssh_lab.free_port()), "ProxyJump gpu1")

    with pytest.raises(unreached.HostUnreachable, match="inner cannot be reached"):
        reach(home, talk.read("/tmp"), "inner")


def test_proxy_command_is_run(home, host):
    home.add("proxied", host, f"ProxyCommand {ssh_lab.tool('ssh')} -F {home.config} -W %h:%p gpu1")

    assert reach(home, talk.contents("/tmp", "none"), "proxied") == [None]


@pytest.mark.slow
def test_proxy_command_that_ends_at_once_is_told_without_noise(home, host, caplog):
    home.add("proxied", host, "ProxyCommand false")

    with pytest.raises(unreached.HostUnreachable):
        reach(home, talk.read("/tmp"), "proxied")

    assert "Unknown child" not in caplog.text


@pytest.mark.parametrize("name", ["a" * 64 + ".example", "a..b"])
def test_name_that_no_host_can_have_is_told(home, host, name):
    with pytest.raises(unreached.HostUnreachable, match="cannot be reached") as caught:
        reach(home, talk.read("/tmp"), name)

    assert "1 to 63 characters" in caught.value.why


@pytest.mark.parametrize(
    "make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("/dev/zero")]
)
def test_key_file_that_is_none_is_skipped_and_never_waited_for(base, home, host, make):
    make(base / "odd")
    make(base / "odd.pub")
    home.config.write_text(f"IdentityFile {base / 'odd'}\n{home.config.read_text()}")

    assert reach(home, talk.contents("/tmp", "none")) == [None]


def test_no_terminal_and_no_agent_forwarding_is_asked_for(base, home):
    with ssh_agent(base) as environ, ssh_lab.embedded(base / "remote", home.public) as server:
        home.add("gpu1", server, "ForwardAgent yes", "RequestTTY force")
        reach(home, talk.contents("/tmp", "none"), **environ)

    assert server.sessions == [(None, None)]


async def _pipe(reader, writer):
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


def _add_to_agent(file, environ):
    argv = [ssh_lab.tool("ssh-add"), "-q", str(file)]
    subprocess.run(argv, env=os.environ | environ, check=True)


def _family(pids):
    """Return these processes and all below them."""
    found = list(pids)
    for pid in found:
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            found += map(int, task.read_text().split())
    return found


def _cmdline(pid):
    with contextlib.suppress(FileNotFoundError):
        return Path(f"/proc/{pid}/cmdline").read_text()
