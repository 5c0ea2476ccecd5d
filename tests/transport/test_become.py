"""Behind a real sudo: who the agent is, and where a password is never seen."""

import asyncio
import json
import os
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from patchq import fleet, outcome
from patchq.agent import protocol
from patchq.errors import ExitCode, UsageError
from patchq.transport import become, bootstrap, channel, command, endings, hosts, ssh
from patchq.transport.become import Become
from patchq.transport.channel import Exchange, Request
from tests import ssh_lab
from tests.transport import sudo_lab, talk
from tests.transport.sudo_lab import PASSWORD

NONCE = b"0123abcd"
PROMPT = b"patchq%0123abcd:"


@pytest.fixture(scope="module")
def user():
    with ssh_lab.folder() as base, sudo_lab.sudoer(base / "home") as sudoer:
        yield sudoer


@pytest.fixture
def secret(tmp_path_factory):
    """A folder that root alone may enter, with a file in it."""
    with ssh_lab.folder() as base:
        (base / "m.py").write_bytes(b"x: tuple[int, ...]\n")
        base.chmod(0o700)
        yield base


def reach(user, become, conversation, **more):
    return command.converse(user.argv, None, conversation, become=become, **more)


@pytest.mark.slow
@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a user who may use sudo")
class TestRealSudo:
    @pytest.mark.parametrize(
        ("rule", "password"),
        [
            ("{user} ALL=(ALL) NOPASSWD: ALL", None),
            ("{user} ALL=(ALL) NOPASSWD: ALL", "never sent"),
            ("{user} ALL=(ALL) ALL", PASSWORD),
        ],
    )
    def test_agent_is_root(self, user, secret, rule, password):
        user.may(rule)

        found = reach(user, Become(password=password), talk.contents(secret, "m.py"))

        assert found == [b"x: tuple[int, ...]\n"]

    def test_agent_is_another_user(self, user, secret):
        user.may("{user} ALL=(ALL) ALL")
        os.chown(secret, 1, -1)

        found = reach(user, Become("daemon", PASSWORD), talk.contents(secret, "m.py"))

        assert found == [b"x: tuple[int, ...]\n"]

    def test_interpreter_may_have_any_path(self, user, secret):
        user.may("{user} ALL=(ALL) ALL")
        odd = user.home / 'my "own" py\'thon!'
        odd.symlink_to("/usr/bin/python3")

        found = command.converse(
            user.argv, str(odd), talk.contents(secret, "m.py"), become=Become(password=PASSWORD)
        )

        assert found == [b"x: tuple[int, ...]\n"]

    @pytest.mark.parametrize(
        ("rule", "password"),
        [("{user} ALL=(ALL) NOPASSWD: ALL", None), ("{user} ALL=(ALL) ALL", PASSWORD)],
    )
    @pytest.mark.parametrize("python", [None, "/usr/bin/python3"])
    def test_a_restricted_shell_gets_a_line_that_it_takes(
        self, user, secret, rule, password, python
    ):
        user.may(rule)
        argv = [*user.argv[:-2], ssh_lab.tool("rbash"), "-c"]

        found = command.converse(
            argv, python, talk.contents(secret, "m.py"), become=Become(password=password)
        )

        assert found == [b"x: tuple[int, ...]\n"]

    @pytest.mark.parametrize(
        ("shell", "password", "lines"), [("bash", None, 1), ("rbash", None, 2), ("rbash", "no", 2)]
    )
    def test_a_sudo_that_says_no_is_not_tried_twice(self, user, shell, password, lines):
        user.may("{user} ALL=(ALL) ALL")
        argv = [*user.argv[:-2], ssh_lab.tool(shell), "-c"]
        tried = []

        with pytest.raises(become.SudoRefused):
            command.converse(
                argv,
                None,
                talk.read("/tmp"),
                become=Become(password=password),
                started=lambda child: tried.append(child.args[-1]),
            )

        assert [line.startswith("exec ") for line in tried] == [True, False][:lines]

    def test_password_that_is_needed_is_asked_for(self, user):
        user.may("{user} ALL=(ALL) ALL")

        with pytest.raises(become.SudoRefused, match="does not let the agent run as root") as got:
            reach(user, Become(), talk.read("/tmp"))

        assert "a password is required" in got.value.why
        assert "-K" in got.value.mend
        assert got.value.exit_code == ExitCode.HOST_FAILED

    def test_wrong_password_is_sent_once(self, user):
        user.may("{user} ALL=(ALL) ALL")

        with pytest.raises(become.SudoRefused, match="the password for sudo is wrong") as got:
            reach(user, Become(password="wrong one"), talk.read("/tmp"))

        assert "wrong one" not in f"{got.value.what}{got.value.why}{got.value.mend}"

    def test_wrong_password_is_tried_on_one_host_of_a_run_only(self, user):
        user.may("{user} ALL=(ALL) ALL")
        specs = [f"command:{shlex.join(['env', f'N={n}', *user.argv])}" for n in range(3)]
        options = fleet.Options(become=Become(password="wrong one"))

        run = fleet.hold(specs, lambda host: talk.reported("/tmp"), options)

        assert [type(one.error) for one in run.outcomes] == [
            become.WrongPassword,
            outcome.Stopped,
            outcome.Stopped,
        ]
        assert all("password for sudo is wrong" in one.error.what for one in run.outcomes)

    def test_user_who_may_not_is_told(self, user):
        user.may("# nothing for {user}")

        with pytest.raises(become.SudoRefused) as got:
            reach(user, Become(password=PASSWORD), talk.read("/tmp"))

        assert "may not use sudo" in got.value.why
        assert "sudo -l" in got.value.mend

    @pytest.mark.parametrize("password", [None, PASSWORD])
    def test_terminal_that_is_required_is_told(self, user, password):
        user.may("Defaults:{user} requiretty", "{user} ALL=(ALL) NOPASSWD: ALL")

        with pytest.raises(become.SudoRefused) as got:
            reach(user, Become(password=password), talk.read("/tmp"))

        assert "wants a terminal" in got.value.why
        assert "!requiretty" in got.value.mend

    def test_host_without_sudo_is_told(self, user, tmp_path):
        argv = ["env", "-i", f"PATH={tmp_path}", "/bin/sh", "-c"]
        (tmp_path / "env").symlink_to("/usr/bin/env")

        with pytest.raises(become.SudoRefused, match="there is no sudo"):
            command.converse(argv, None, talk.read("/tmp"), become=Become())

    def test_missing_interpreter_is_told_and_others_named(self, user):
        user.may("{user} ALL=(ALL) NOPASSWD: ALL")

        with pytest.raises(endings.NoHostAgent, match="no interpreter 'python9'") as got:
            command.converse(user.argv, "python9", talk.read("/tmp"), become=Become())

        assert "--python /usr/bin/python3" in got.value.mend

    def test_password_is_in_no_command_line_and_in_no_output(self, user, secret):
        user.may("{user} ALL=(ALL) ALL")

        code = """
import os, sys
from patchq.transport import command
from patchq.transport.become import Become
from tests.transport import talk
from pathlib import Path
def look():
    yield from talk.read("/tmp")
    for path in Path("/proc").glob("[0-9]*"):
        for name in ("cmdline", "environ"):
            try:
                sys.stdout.buffer.write((path / name).read_bytes())
            except OSError:
                pass
    raise SystemError("a bug")
command.converse(sys.argv[1:], None, look(), become=Become(password=sys.stdin.readline()[:-1]))
"""
        done = subprocess.run(
            [sys.executable, "-X", "dev", "-c", code, *user.argv],
            input=f"{PASSWORD}\n".encode(),
            capture_output=True,
            cwd=Path(__file__).parents[2],
        )

        assert b"SystemError: a bug" in done.stderr
        assert b"sudo" in done.stdout
        assert b"patchq%%" in done.stdout
        assert PASSWORD.encode() not in done.stdout + done.stderr

    @pytest.mark.parametrize("shell", ["zsh", "fish", "tcsh"])
    def test_sudo_over_ssh_behind_a_login_shell(self, shell, secret):
        with ssh_lab.folder() as base, sudo_lab.sudoer(base / "someone", shell) as sudoer:
            home = ssh_lab.Home(base / "client")
            owner = sudoer.name, sudoer.home
            with ssh_lab.sshd(base, home.public, owner=owner) as server:
                home.add("gpu1", server)
                for rule, password in (("ALL", PASSWORD), ("NOPASSWD: ALL", None)):
                    sudoer.may(f"{{user}} ALL=(ALL) {rule}")
                    settings = ssh.Settings.read(home.environ, become=Become(password=password))
                    found = asyncio.run(
                        ssh.converse(hosts.parse("gpu1"), settings, talk.contents(secret, "m.py"))
                    )
                    assert found == [b"x: tuple[int, ...]\n"]
                sudoer.may("{user} ALL=(ALL) ALL")
                settings = ssh.Settings.read(home.environ, become=Become(password="wrong"))
                with pytest.raises(become.SudoRefused, match="password for sudo is wrong"):
                    asyncio.run(ssh.converse(hosts.parse("gpu1"), settings, talk.read("/tmp")))


def asking():
    yield Request({"op": "records"})


def behind(password="secret"):
    exchange = Exchange(asking(), NONCE, b"payload", Become(None, password))
    assert exchange.start() == b""
    return exchange


def test_nothing_is_sent_before_sudo_asks_or_is_through():
    exchange = behind()

    assert exchange.hear(b"We trust you have received the usual lecture\n") == b""
    assert exchange.hear(PROMPT[:7]) == b""
    assert exchange.hear(PROMPT[7:] + b" ") == b"secret\n"
    assert exchange.feed(b"noise") == b""
    assert exchange.feed(become.ready(NONCE)).startswith(b"payload")


def test_password_is_not_sent_where_no_prompt_came():
    exchange = behind()

    assert exchange.feed(b"Welcome" + become.ready(NONCE)).startswith(b"payload")
    assert exchange.hear(PROMPT) == b""


def test_second_prompt_ends_it():
    exchange = behind()
    assert exchange.hear(PROMPT) == b"secret\n"

    with pytest.raises(channel.Broken, match="again"):
        exchange.hear(b"\nSorry, try again.\n" + PROMPT)

    assert exchange.refused
    assert exchange.hear(PROMPT) == b""


def test_shell_that_shows_what_it_runs_does_not_get_the_password():
    exchange = behind()
    line = bootstrap.command(None, Become("root", "secret"), NONCE)

    assert exchange.hear(f"+ {line}\n".encode()) == b""
    assert exchange.feed(line.encode() + b"\n") == b""
    assert "secret" not in line


def test_password_is_in_no_repr():
    assert "secret" not in repr(Become("root", "secret"))


@pytest.mark.parametrize("password", [PASSWORD, "hunter2-SECRET", "zwölf Boxkämpfer"])
@pytest.mark.parametrize(
    "said",
    [
        lambda secret: f"got [{secret}]\n".encode(),
        lambda secret: f"no such user {secret!r}, {secret.encode()!r}".encode(),
        lambda secret: f"sudo: a password is required, not {secret!a}".encode(),
        lambda secret: f"+ echo {shlex.quote(secret)} {json.dumps(secret)}".encode(),
        lambda secret: b"x" * 190 + secret.encode(),
        lambda secret: b"cut off: " + secret.encode()[:-2],
    ],
)
def test_password_that_a_host_prints_is_not_told(password, said):
    who, printed = Become(password=password), said(password)
    place = endings.Place("host gpu1", "python3", "ssh gpu1", True, become=who)
    exchange = Exchange(talk.read("/tmp"), NONCE, b"payload", who)
    exchange.start()
    reason = printed.decode(errors="replace")
    first = endings.Ending(1, printed, printed, reason)

    for ending in (first, endings.Ending(1, b"", printed), endings.Ending(127, b"", printed)):
        error = endings.failure(place, exchange, replace(ending, before=first))
        told = f"{error.what} {error.why} {error.mend}"
        assert "***" in told or ending.status == 127
        for part in (password, repr(password)[1:-1], "$wor", "hunter", "Boxk", "SECR"):
            assert part not in told


def test_password_in_an_agents_refusal_is_not_told():
    exchange = behind()
    exchange.hear(PROMPT)
    exchange.feed(become.ready(NONCE) + protocol.marker(NONCE))
    error = {"word": "failed", "what": "no secret", "why": "secret!", "mend": "echo secret"}

    with pytest.raises(channel.AgentError) as caught:
        exchange.feed(protocol.pack({"error": error}))

    told = caught.value
    assert (told.what, told.why, told.mend) == ("no ***", "***!", "echo ***")


@pytest.mark.parametrize("user", ["", "-n", "a b", "a;b", "$(id)", "a'b", "ro\not"])
def test_user_that_is_none_is_a_usage_error(user):
    with pytest.raises(UsageError, match="does not name a user"):
        Become(user)


def test_password_of_two_lines_is_a_usage_error_that_does_not_tell_it():
    with pytest.raises(UsageError) as caught:
        Become(None, "two\nlines")

    assert "two" not in f"{caught.value} {caught.value.why} {caught.value.mend}"
