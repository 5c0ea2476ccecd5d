"""A new host's key is written once, and no other key is ever taken on trust."""

import asyncio
import subprocess
from dataclasses import replace
from pathlib import Path

import asyncssh
import pytest

from patchq.transport import hostkeys, hosts, ssh
from tests import ssh_lab
from tests.transport import talk


@pytest.fixture
def host(base, home):
    """A host that the client does not know yet."""
    with ssh_lab.embedded(base / "remote", home.public) as server:
        yield server


def reach(home, spec="gpu1", *, accept_new=True):
    """Reach a host; return the notes of the run."""
    settings = ssh.Settings.read(home.environ, accept_new=accept_new)
    conversation = talk.contents("/tmp", "none")
    assert asyncio.run(ssh.converse(hosts.parse(spec), settings, conversation)) == [None]
    return settings.notes


def known(home, server):
    """Return whether ssh-keygen finds the server's key in known_hosts."""
    argv = [ssh_lab.tool("ssh-keygen"), "-F", f"[127.0.0.1]:{server.port}"]
    done = subprocess.run([*argv, "-f", home.known_hosts], capture_output=True, text=True)
    return server.host_key.split()[1] in done.stdout


@pytest.mark.parametrize("word", ["accept-new", "no", "off", None])
def test_new_host_is_written_and_told(home, host, word):
    home.add("gpu1", host, *([f"StrictHostKeyChecking {word}"] if word else []), known=False)
    home.known_hosts.write_text("# no newline at the end")

    (note,) = reach(home, accept_new=word is None)

    assert known(home, host)
    key = asyncssh.import_public_key(host.host_key)
    assert "the host key of gpu1 is new" in note
    assert key.get_fingerprint() in note
    assert str(home.known_hosts) in note
    assert reach(home, accept_new=False) == []


def test_file_and_folder_are_made_for_the_user_alone(base, home, host):
    home.known_hosts = base / "client" / "more" / "known"
    home.add("gpu1", host, known=False)

    reach(home)

    assert home.known_hosts.stat().st_mode & 0o777 == 0o600
    assert home.known_hosts.parent.stat().st_mode & 0o777 == 0o700


def test_name_is_hashed_where_the_user_wants_it(home, host):
    home.add("gpu1", host, "HashKnownHosts yes", known=False)

    reach(home)

    assert home.known_hosts.read_text().startswith("|1|")
    assert known(home, host)
    assert reach(home, accept_new=False) == []


def test_host_is_new_without_the_switch_and_refused(home, host):
    home.add("gpu1", host, known=False)

    with pytest.raises(hostkeys.HostKeyUnknown):
        reach(home, accept_new=False)

    assert home.known_hosts.read_text() == ""


@pytest.mark.parametrize(
    ("kind", "marker", "error"),
    [
        ("ssh-ed25519", "", hostkeys.HostKeyChanged),
        ("ecdsa-sha2-nistp256", "", hostkeys.HostKeyUnknown),
        ("ssh-ed25519", "@cert-authority ", hostkeys.HostKeyUnknown),
        ("ssh-ed25519", "@revoked ", hostkeys.HostKeyUnknown),
    ],
    ids=["changed", "another type", "an authority", "another key is revoked"],
)
@pytest.mark.parametrize("place", ["[127.0.0.1]:{port}", "127.0.0.1"])
def test_host_that_has_any_entry_is_not_new(base, home, host, kind, marker, error, place):
    home.add("gpu1", host, "StrictHostKeyChecking no", known=False)
    other = asyncssh.generate_private_key(kind).export_public_key().decode()
    name = place.format(port=host.port)
    home.known_hosts.write_text(before := f"{marker}{name} {other}")

    with pytest.raises(error):
        reach(home)

    assert home.known_hosts.read_text() == before
    assert not host.commands


def test_revoked_key_of_a_new_host_is_refused(home, host):
    home.add("gpu1", host, "StrictHostKeyChecking no", known=False)
    home.trust(host, "@revoked ")

    with pytest.raises(hostkeys.HostKeyRevoked):
        reach(home)


def test_two_new_hosts_at_once_are_both_written(base, home, host):
    (base / "other").mkdir()
    with ssh_lab.embedded(base / "other", home.public) as other:
        home.add("gpu1", host, known=False)
        home.add("gpu2", other, known=False)
        settings = ssh.Settings.read(home.environ, accept_new=True)

        async def both():
            async with settings:
                await asyncio.gather(
                    *(
                        ssh.converse(hosts.parse(name), settings, talk.contents("/tmp", "none"))
                        for name in ("gpu1", "gpu2", "gpu1", "gpu2")
                    )
                )

        asyncio.run(both())

        assert known(home, host)
        assert known(home, other)
    assert len(home.known_hosts.read_text().splitlines()) == 2


def test_key_that_another_run_wrote_meanwhile_decides(home, host):
    home.add("gpu1", host, known=False)
    settings = ssh.Settings.read(home.environ, accept_new=True)
    hop = ssh.route.resolve(hosts.parse("gpu1"), settings.around)[-1]
    assert settings.known_hosts.look_up(hop) == hostkeys.HostKeys()
    other = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode()
    home.trust(replace(host, host_key=other.strip()))

    with pytest.raises(hostkeys.HostKeyChanged):
        asyncio.run(ssh.converse(hosts.parse("gpu1"), settings, talk.contents("/tmp", "none")))

    assert not known(home, host)
    assert not host.commands


def test_file_that_keeps_nothing_is_none_that_is_known(home, host):
    home.known_hosts = Path("/dev/null")
    home.add("gpu1", host, "StrictHostKeyChecking no", known=False)

    for _ in range(2):
        (note,) = reach(home, accept_new=False)
        assert "/dev/null" in note


def test_key_that_cannot_be_written_is_not_taken(base, home, host):
    home.known_hosts.unlink()
    home.known_hosts.mkdir()
    home.config.write_text("UserKnownHostsFile none\n")
    home.add("gpu1", host, known=False)

    with pytest.raises(hostkeys.HostKeyUnknown, match="cannot be written") as caught:
        reach(home)

    assert "none" in caught.value.why
    assert not host.commands
