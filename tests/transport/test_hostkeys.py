"""ssh-keygen is the oracle: it finds and hashes lines of known_hosts."""

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import asyncssh
import pytest

from patchq.transport import hostkeys, route, trust
from patchq.transport.hostkeys import KnownHosts
from patchq.transport.hosts import Host
from patchq.transport.route import Surroundings
from patchq.transport.sshconfig import Config
from tests import ssh_lab

KEYS = [asyncssh.generate_private_key("ssh-ed25519") for _ in range(3)]
TEXT = [key.export_public_key().decode().split(" ")[1].strip() for key in KEYS]


@pytest.fixture
def path(tmp_path):
    (tmp_path / ".ssh").mkdir()
    return tmp_path / ".ssh" / "known_hosts"


def hop(path: Path, name="gpu1", port=22, label=None):
    around = Surroundings(Config(), path.parent.parent, "me", None)
    found = route.resolve(Host(name, port=port), around)[-1]
    return replace(found, label=label, known_hosts=(path,))


def lines(path, **at):
    return [entry.line for entry in KnownHosts().look_up(hop(path, **at)).trusted]


def oracle(path, name):
    done = subprocess.run(
        [ssh_lab.tool("ssh-keygen"), "-F", name, "-f", path], capture_output=True, text=True
    )
    words = [line.split() for line in done.stdout.splitlines() if line.startswith("# Host")]
    return [int(found[found.index("line") + 1]) for found in words]


@pytest.mark.parametrize("hashed", [False, True], ids=["plain", "hashed"])
def test_names_are_found_as_ssh_keygen_finds_them(path, hashed):
    entries = [
        "# a comment",
        f"gpu1,10.0.0.1 ssh-ed25519 {TEXT[0]}",
        f"[gpu1]:2222 ssh-ed25519 {TEXT[1]} a comment",
        "",
        f"gpu2 ssh-ed25519 {TEXT[2]}",
    ]
    path.write_text("\n".join(entries) + "\n")
    if hashed:
        subprocess.run(
            [ssh_lab.tool("ssh-keygen"), "-H", "-f", path], check=True, capture_output=True
        )

    assert "gpu" not in path.read_text() or not hashed
    assert lines(path) == oracle(path, "gpu1") != []
    assert lines(path, name="GPU1") == lines(path)
    assert lines(path, port=2222) == oracle(path, "[gpu1]:2222") != []
    assert lines(path, name="10.0.0.1") == oracle(path, "10.0.0.1") != []
    assert lines(path, name="other", label="gpu2", port=9) == oracle(path, "gpu2") != []
    assert lines(path, name="gpu3") == []


def test_patterns_may_match_and_forbid(path):
    path.write_text(
        f"*.example.org,!bad.example.org ssh-ed25519 {TEXT[0]}\ngpu? ssh-ed25519 {TEXT[1]}\n"
    )

    assert lines(path, name="good.example.org") == [1]
    assert lines(path, name="bad.example.org") == []
    assert lines(path, name="gpu7") == [2]


def test_lines_that_hold_no_key_are_passed_over(path):
    path.write_text(f"half line\ngpu1 ssh-ed25519 not*base64\n|1|x|y ssh-ed25519 {TEXT[0]}\n")

    assert lines(path) == []


def test_port_falls_back_to_the_plain_name(path):
    path.write_text(f"gpu1 ssh-ed25519 {TEXT[0]}\n")

    assert lines(path, port=2222) == [1]
    assert lines(path, port=2222, name="x", label="gpu1") == [1]
    assert lines(path, port=2222, name="gpu1", label="x") == []


def test_file_is_read_once_per_run(path):
    path.write_text(f"gpu1 ssh-ed25519 {TEXT[0]}\n")
    known = KnownHosts()
    assert known.look_up(hop(path)).trusted

    path.unlink()

    assert known.look_up(hop(path)).trusted


def test_file_that_is_not_there_knows_nobody(path):
    assert lines(path) == []


def refused(path, shown):
    keys = KnownHosts().look_up(hop(path))
    return hostkeys.refusal(hop(path), keys, "ssh-ed25519", KEYS[shown].public_data)


def test_unknown_changed_and_revoked_are_told_apart(path):
    path.write_text("")
    unknown = refused(path, 0)
    path.write_text(f"gpu1 ssh-ed25519 {TEXT[1]}\n")
    changed = refused(path, 0)
    path.write_text(f"gpu1 ssh-ed25519 {TEXT[1]}\n@revoked * ssh-ed25519 {TEXT[0]}\n")
    revoked = refused(path, 0)

    assert isinstance(unknown, hostkeys.HostKeyUnknown)
    assert "ssh-keyscan -t ed25519 gpu1" in unknown.mend
    assert isinstance(changed, hostkeys.HostKeyChanged)
    assert f"ssh-keygen -R gpu1 -f {path}" in changed.mend
    assert f"{path}:1" in changed.why
    assert isinstance(revoked, hostkeys.HostKeyRevoked)
    assert f"{path}:2" in revoked.why


def test_key_of_another_kind_is_unknown_and_the_known_kind_is_told(path):
    other = asyncssh.generate_private_key("ecdsa-sha2-nistp256").export_public_key().decode()
    path.write_text(f"gpu1 {other}")

    error = refused(path, 0)

    assert isinstance(error, hostkeys.HostKeyUnknown)
    assert "ecdsa-sha2-nistp256" in error.why


@pytest.mark.parametrize(
    "line",
    ["gpu1 ssh-ed25519 not*base64", f"gp* ssh-ed25519 {TEXT[1][:-8]}", "gpu1", "gpu1 rsa"],
    ids=["no base64", "cut short", "no key", "no text"],
)
def test_host_of_a_line_that_cannot_be_read_is_not_new(path, line):
    path.write_text(f"# a comment\n{line}\n")

    error = refused(path, 0)

    assert KnownHosts().look_up(hop(path)) != hostkeys.HostKeys()
    assert KnownHosts().look_up(hop(path, name="other")) == hostkeys.HostKeys()
    assert isinstance(error, hostkeys.HostKeyUnknown)
    assert f"{path}:2" in error.why
    assert "ssh-keygen -R gpu1" in error.mend


def strings(*parts):
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


@pytest.mark.parametrize(
    "line",
    [
        ("ssh-dss", strings(b"ssh-dss", b"nistp256", b"\1\0\1", b"\0", b"\1\0\1")),
        ("ssh-rsa", strings(b"ssh-rsa", b"\xff" * 5, b"\1" * 32)),
        ("ecdsa-sha2-nistp256", strings(b"ecdsa-sha2-nistp256", b"\0", b"\1")),
        ("ssh-\udcff", strings(b"ssh-\xff", b"\1")),
        ("ssh-ed25519", strings(b"ssh-\xdd", b"\1")),
    ],
)
def test_key_of_a_kind_that_is_not_known_here_is_left_out(path, line):
    entry = hostkeys.Entry(path, 1, "", ("gpu1",), *line)
    good = KEYS[0].export_public_key().split()

    path.write_bytes(f"gpu1 {entry.text}\n".encode(errors="surrogateescape"))
    with path.open("ab") as file:
        file.write(b"gpu1 %s %s\n" % (good[0], good[1]))
    keys = KnownHosts().look_up(hop(path))

    assert [key.public_data for key in trust.trust(keys)[0]] == [KEYS[0].public_data]


@pytest.mark.parametrize(
    "make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("/dev/zero")]
)
def test_what_is_no_file_is_told_and_never_waited_for(path, make):
    make(path)

    with pytest.raises(hostkeys.HostKeyUnknown, match="cannot be read") as caught:
        KnownHosts().look_up(hop(path))

    assert caught.value.mend == f"ls -l {path}"


def test_null_device_knows_nobody(path):
    path.symlink_to("/dev/null")

    assert KnownHosts().look_up(hop(path)) == hostkeys.HostKeys()


def test_host_with_one_name_is_looked_for_once(path):
    path.write_text(f"@revoked gpu1 ssh-ed25519 {TEXT[0]}\n")

    assert len(KnownHosts().look_up(hop(path)).revoked) == 1


def test_fingerprint_is_that_of_ssh_keygen(path):
    path.write_text(f"gpu1 ssh-ed25519 {TEXT[0]}\n")
    done = subprocess.run(
        [ssh_lab.tool("ssh-keygen"), "-l", "-f", path], capture_output=True, text=True, check=True
    )

    assert hostkeys.fingerprint(KEYS[0].public_data) in done.stdout.split()
    assert shutil.which("ssh-keygen")
