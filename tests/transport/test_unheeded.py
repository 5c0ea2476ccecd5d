"""What ssh_config says and patchq's own SSH does not do is told, once, where it matters."""

import asyncio
import socket
from dataclasses import replace

import asyncssh
import pytest

from patchq.transport import hosts, ssh, sshconfig, unheeded, unreached
from patchq.transport.channel import Deadlines
from patchq.transport.sshconfig import Facts
from tests import ssh_lab
from tests.transport import talk


def of(tmp_path, text, *, system=None, host="gpu1"):
    own, other = tmp_path / "config", tmp_path / "system"
    own.write_text(text)
    other.write_text(system or "")
    return unheeded.of(sshconfig.read(own, other), Facts(host, None, "me"))


@pytest.mark.parametrize(
    "text",
    [
        "ServerAliveInterval 5\nCompression yes\nLogLevel ERROR\nSendEnv LANG\nForwardAgent yes",
        "ControlMaster no\nForwardX11 yes\nVisualHostKey yes\nRequestTTY force\nIPQoS none",
        "KexAlgorithms none\nGSSAPIAuthentication no\nRemoteCommand none\nProxyUseFdpass no",
        "CertificateFile ~/c\nAddressFamily inet\nBindAddress 127.0.0.1\nPubkeyAuthentication yes",
        "Host other\n KexAlgorithms x\nMatch exec true\n LogLevel DEBUG",
        "Match exec true originalhost other\n User root",
    ],
)
def test_nothing_is_said_of_what_changes_nothing(tmp_path, text):
    assert of(tmp_path, text) == ((), ())


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("kexalgorithms +x\nCiphers aes128-ctr\nMACs x", ("KexAlgorithms", "Ciphers", "MACs")),
        ("GSSAPIAuthentication yes\nPKCS11Provider /lib/x", ("GSSAPIAuthentication", "PKCS11")),
        ("KnownHostsCommand /bin/x %H\nBindInterface wg0", ("KnownHostsCommand", "BindInterf")),
        ("CanonicalizeHostname yes\nProxyUseFdpass yes", ("CanonicalizeHostname", "ProxyUse")),
        ("RemoteCommand tmux\nPubkeyAuthentication no", ("RemoteCommand", "PubkeyAuthentication")),
        ("FrobnicateHosts yes", ("frobnicatehosts",)),
        ("Match exec true\n User root", ("Match exec",)),
        ("Match final host gpu*\n ProxyJump x", ("Match final",)),
        ("Match canonical\n KexAlgorithms x", ("Match canonical",)),
    ],
)
def test_what_may_change_the_connection_is_named(tmp_path, text, names):
    noted, suspects = of(tmp_path, text)

    assert len(noted) == len(names)
    assert all(found.startswith(name) for found, name in zip(noted, names, strict=True))
    assert suspects == noted


def test_what_the_system_sets_for_all_is_suspected_and_not_noted(tmp_path):
    system = "SendEnv LANG\nHashKnownHosts yes\nGSSAPIAuthentication yes\nMatch final all\nMACs x"

    assert of(tmp_path, "", system=system) == ((), ("GSSAPIAuthentication", "Match final"))


def test_shared_connection_of_ssh_is_suspected_and_not_noted(tmp_path):
    text = "ControlMaster auto\nControlPath ~/.ssh/%C\nControlPersist 10m"

    assert of(tmp_path, text) == ((), ("ControlMaster", "ControlPath"))


def reach(home, *specs, conversation=lambda: talk.contents("/tmp", "none")):
    settings = ssh.Settings.read(home.environ)

    async def run():
        async with settings:
            for spec in specs:
                found = await ssh.converse(hosts.parse(spec), settings, conversation())
                assert found == [None]

    asyncio.run(run())
    return settings.notes


def test_note_is_one_for_all_hosts(base, home):
    with ssh_lab.embedded(base / "remote", home.public) as server:
        for name in ("gpu1", "gpu2"):
            home.add(name, server, "KexAlgorithms curve25519-sha256", "ControlMaster auto")

        (note,) = reach(home, "gpu1", "gpu2", "gpu1")

    assert "KexAlgorithms for gpu1, gpu2" in note
    assert "ControlMaster" not in note
    assert "command:ssh HOST" in note


def test_failed_login_names_what_was_not_honoured(base, home):
    other = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode()
    with ssh_lab.embedded(base / "remote", other) as server:
        home.add("gpu1", server, "ControlMaster auto", "GSSAPIAuthentication yes")

        with pytest.raises(unreached.AuthenticationRefused) as caught:
            reach(home, "gpu1")

    assert "ControlMaster, GSSAPIAuthentication" in caught.value.why
    assert "-H 'command:ssh gpu1'" in caught.value.why


def test_failed_connection_names_what_was_not_honoured(home):
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = f"HostName 127.0.0.1\n Port {server.getsockname()[1]}"
        home.config.write_text(f"Host gpu1\n {place}\n MACs hmac-sha2-256\n")
        settings = replace(ssh.Settings.read(home.environ), deadlines=Deadlines(login=0.1))

        with pytest.raises(unreached.HostUnreachable) as caught:
            asyncio.run(ssh.converse(hosts.parse("gpu1"), settings, talk.read("/tmp")))

    assert "ssh_config sets MACs" in caught.value.why


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("HostName 127.0.0.1\n Port {port}", "refused the connection"),
        ("HostName no-such-host.invalid", "there is no host"),
        ("HostName 127.0.0.1\n BindAddress 192.0.2.1", "127.0.0.1 port 22"),
    ],
    ids=["refused port", "unknown name", "no way there"],
)
def test_options_are_not_blamed_where_nothing_was_reached(home, place, why):
    text = place.format(port=ssh_lab.free_port())
    home.config.write_text(f"Host gpu1\n {text}\n GSSAPIAuthentication yes\n ControlPath x\n")

    with pytest.raises(unreached.HostUnreachable) as caught:
        reach(home, "gpu1")

    assert why in caught.value.why
    assert "ssh_config" not in caught.value.why


def test_certificate_of_the_user_is_shown(base, home):
    authority = asyncssh.generate_private_key("ssh-ed25519")
    file = base / "client" / "cert"
    authority.generate_user_certificate(home.key, "lab", principals=["someone"]).write_certificate(
        str(file)
    )
    trusted = f"cert-authority {authority.export_public_key().decode()}"
    with ssh_lab.embedded(base / "remote", trusted) as server:
        home.add("gpu1", server, f"CertificateFile {file}")

        assert reach(home, "gpu1") == []


def test_address_and_family_are_taken_from_ssh_config(base, home):
    with ssh_lab.embedded(base / "remote", home.public) as server:
        home.add("gpu1", server, "AddressFamily inet", "BindAddress 127.0.0.9")
        home.add("gpu2", server, "AddressFamily inet6")

        assert reach(home, "gpu1") == []
        assert server.peers[-1] == "127.0.0.9"
        with pytest.raises(unreached.HostUnreachable):
            reach(home, "gpu2")


def test_key_on_a_security_key_is_never_used_and_named(base, home):
    sk = "sk-ssh-ed25519@openssh.com AAAAGnNrLXNzaC1lZDI1NTE5QG9wZW5zc2guY29tAAAAIA lab\n"
    home.key_file.with_name("id_touch").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\n")
    home.key_file.with_name("id_touch.pub").write_text(sk)
    with ssh_lab.embedded(base / "remote", home.public) as server:
        home.add("gpu1", server, f"IdentityFile {home.ssh}/id_touch")

        notes = reach(home, "gpu1", "gpu1")

    assert len(notes) == 1
    assert "id_touch" in notes[0]
    assert "command:ssh HOST" in notes[0]
