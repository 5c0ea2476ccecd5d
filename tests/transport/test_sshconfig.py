"""ssh(1) is the oracle: `ssh -G` says what a configuration means."""

import getpass
import os
import subprocess
from pathlib import Path

import pytest

from patchq.transport import route, sshconfig
from patchq.transport.hosts import Host, parse
from patchq.transport.route import Surroundings
from tests import ssh_lab

CONFIG = """\
# A comment.
Include more/*.conf
Host gpu* !gpu9
    HostName %h.example.org
    Port=2222
    IdentityFile ~/.ssh/gpu_key
Host gpu1 "gpu two"
    User "deploy"
    IdentityFile ~/keys/%r_%h
    IdentitiesOnly yes
    UserKnownHostsFile ~/.ssh/gpu_hosts /dev/null   # a comment
Host b?stion
    ProxyJump none
    HostKeyAlias the-bastion
Match host *.example.org user deploy
    ProxyJump jump@bastion:2200,second
    ConnectTimeout 7
Match !originalhost gpu* all
    Port 2022
Host inner
    HostName 10.0.0.7
    ProxyCommand /usr/bin/nc -X connect %h %p # kept
Host *
    User nobody
    Port 23
"""
INCLUDED = "Host gpu3\n  Port 2003\nHost nested\n  HostName nested.example.org\n"
KEYS = {
    "hostname": lambda hop: hop.name,
    "port": lambda hop: str(hop.port),
    "user": lambda hop: hop.user,
    "hostkeyalias": lambda hop: hop.label,
    "proxycommand": lambda hop: hop.proxy_command,
}


@pytest.fixture
def config(tmp_path, monkeypatch):
    (tmp_path / ".ssh" / "more").mkdir(parents=True)
    (tmp_path / ".ssh" / "more" / "a.conf").write_text(INCLUDED)
    path = tmp_path / ".ssh" / "config"
    path.write_text(CONFIG)
    return path


def around(config: Path) -> Surroundings:
    return Surroundings.read({"HOME": str(config.parent.parent)}, config)


def oracle(config: Path, *argv: str) -> dict[str, list[str]]:
    # ssh reads ~ from passwd and Include from ~/.ssh: give it both as absolute paths.
    absolute = config.with_name("absolute")
    absolute.write_text(CONFIG.replace("more/", f"{config.parent}/more/"))
    done = subprocess.run(
        [ssh_lab.tool("ssh"), "-G", "-F", absolute, *argv],
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        key, _, value = line.partition(" ")
        found.setdefault(key, []).append(value)
    return found


@pytest.mark.parametrize(
    "spec",
    ["gpu1", "gpu3", "gpu9", "root@gpu1", "gpu1:99", "bastion", "boston", "inner", "nested", "x"],
)
def test_host_means_what_ssh_says(config, spec):
    host = parse(spec)
    argv = [
        *(["-l", host.user] if host.user else []),
        *(["-p", str(host.port)] if host.port else []),
    ]

    hop = route.resolve(host, around(config))[-1]

    expected = oracle(config, *argv, host.name)
    for key, value in KEYS.items():
        text = expected.get(key, [None])[0]
        # ssh fills in the tokens of this one only when it runs it.
        text = text and text.replace("%h", hop.name).replace("%p", str(hop.port))
        assert value(hop) == text, key
    home = str(Path.home())
    own = [str(path).replace(str(config.parent.parent), home) for path in hop.identities]
    if hop.chosen:
        raw = [path.replace("~", home) for path in expected["identityfile"]]
        assert own == [path.replace("%r", hop.user).replace("%h", hop.name) for path in raw]
    assert hop.only_chosen == (expected["identitiesonly"] == ["yes"])


def test_jumps_are_a_route_of_resolved_hops(config):
    hops = route.resolve(Host("gpu1"), around(config))

    assert [(hop.user, hop.name, hop.port) for hop in hops] == [
        ("jump", "bastion", 2200),
        ("nobody", "second", 2022),
        ("deploy", "gpu1.example.org", 2222),
    ]
    assert hops[0].known_as == "the-bastion"
    assert hops[-1].known_as == "[gpu1.example.org]:2222"
    assert hops[-1].connect_timeout == 7


def test_jump_host_that_matches_its_own_jump_is_reached_directly(config):
    config.write_text("Host *\n  ProxyJump bastion\n")

    assert [hop.name for hop in route.resolve(Host("gpu1"), around(config))] == ["bastion", "gpu1"]
    assert [hop.name for hop in route.resolve(Host("bastion"), around(config))] == ["bastion"]


def test_jumps_in_a_circle_are_an_error(config):
    config.write_text("Host a\n  ProxyJump b\nHost b\n  ProxyJump c\nHost c\n  ProxyJump a\n")

    with pytest.raises(route.BadRoute, match="circle"):
        route.resolve(Host("a"), around(config))


def test_defaults_are_those_of_ssh(config):
    config.write_text("")
    home = config.parent

    hop = route.resolve(Host("gpu1"), around(config))[-1]

    assert (hop.name, hop.port, hop.user) == ("gpu1", 22, getpass.getuser())
    assert hop.known_hosts[:2] == (home / "known_hosts", home / "known_hosts2")
    assert home / "id_ed25519" in hop.identities
    assert hop.known_as == "gpu1"


def test_identity_agent_names_the_socket(config):
    config.write_text(
        "Host a\n  IdentityAgent none\nHost b\n  IdentityAgent ~/s\nHost c\n  IdentityAgent $X\n"
    )
    known = Surroundings(
        sshconfig.read(config), config.parent.parent, "me", "/default", {"X": "/named"}
    )

    sockets = [route.resolve(Host(name), known)[-1].agent for name in "abcd"]

    assert sockets == [None, str(config.parent.parent / "s"), "/named", "/default"]


@pytest.mark.parametrize("line", ["Port", "Host", 'User "open', "Match host", "%%%"])
def test_line_that_is_none_is_named(config, line):
    config.write_text(f"Host *\n{line}\n")

    with pytest.raises(sshconfig.BadConfig, match=f"{config}:2"):
        around(config)


@pytest.mark.parametrize("line", ["Port 0", "Port x", "ConnectTimeout never"])
def test_number_that_is_none_is_an_error(config, line):
    config.write_text(line)

    with pytest.raises(route.BadRoute, match="ssh_config gives gpu1"):
        route.resolve(Host("gpu1"), around(config))


def test_check_that_cannot_be_made_is_never_skipped(config):
    config.write_text("Host gpu*\n  RevokedHostKeys /etc/ssh/revoked\n")

    assert route.resolve(Host("other"), around(config))
    with pytest.raises(sshconfig.UnsupportedOption, match="revokedhostkeys"):
        route.resolve(Host("gpu1"), around(config))


def test_match_that_is_not_known_here_does_not_hold(config):
    config.write_text(
        "Match exec true\n  Port 1\nMatch !exec true\n  Port 2\nMatch final\n  Port 3\n"
    )

    assert route.resolve(Host("gpu1"), around(config))[-1].port == 22


@pytest.mark.parametrize(
    "make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("/dev/zero")]
)
def test_include_of_what_is_no_file_is_told_and_never_waited_for(tmp_path, make):
    make(tmp_path / "other")
    (tmp_path / "config").write_text("Include other\n")

    with pytest.raises(sshconfig.BadConfig, match="other cannot be read"):
        sshconfig.read(tmp_path / "config", None)


def test_nul_byte_is_told_with_its_line(tmp_path):
    (tmp_path / "config").write_text("Host a\n  User a\0b\n")

    with pytest.raises(sshconfig.BadConfig, match=r"config:2 cannot be read"):
        sshconfig.read(tmp_path / "config", None)


def test_each_name_has_the_line_that_names_it_first_in_whichever_file(tmp_path):
    (tmp_path / "more").mkdir()
    (tmp_path / "more/a.conf").write_text("# A comment.\nHost inner\nHost web\n  Port 1\n")
    (tmp_path / "config").write_text(
        "User ops\nInclude more/*.conf\n\nHost web db gpu*\n  Port 2\nHost empty\n\tHost=late"
    )

    read = sshconfig.read(tmp_path / "config", None)

    inner = tmp_path / "more/a.conf"
    assert read.places == {
        "inner": (inner, 2),
        "web": (inner, 3),
        "db": (tmp_path / "config", 4),
        "empty": (tmp_path / "config", 6),
        "late": (tmp_path / "config", 7),
    }
    assert read.names == tuple(read.places)


def test_names_have_lines_of_the_user_s_file_before_those_of_the_system_s(tmp_path):
    (tmp_path / "mine").write_text("\nHost a\n")
    (tmp_path / "system").write_text("Host b a\n")

    read = sshconfig.read(tmp_path / "mine", tmp_path / "system")

    assert read.places == {"a": (tmp_path / "mine", 2), "b": (tmp_path / "system", 1)}


def test_options_after_an_include_are_still_of_the_block_that_has_it(tmp_path):
    (tmp_path / "more").write_text("User early\nHost b\n  Port 9\n")
    (tmp_path / "config").write_text("Host a\n  Include more\n  Port 5\nHost b\n  Port 6\n")

    read = sshconfig.read(tmp_path / "config", None)

    asked = {name: read.options(sshconfig.Facts(name, None, "me")) for name in "ab"}
    assert asked == {"a": {"user": ("early",), "port": ("5",)}, "b": {"port": ("6",)}}
