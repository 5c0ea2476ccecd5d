import pytest

from patchq.errors import ExitCode, UsageError
from patchq.transport import hosts
from patchq.transport.hosts import Host


@pytest.mark.parametrize(
    ("spec", "host"),
    [
        ("gpu1", Host("gpu1")),
        ("root@gpu1", Host("gpu1", "root")),
        ("root@gpu1:2222", Host("gpu1", "root", 2222)),
        ("a@b@gpu1", None),
        ("[::1]:22", Host("::1", None, 22)),
        ("root@[fe80::1%eth0]", Host("fe80::1%eth0", "root")),
        ("::1", Host("::1")),
        ("root@fe80::1", Host("fe80::1", "root")),
        ("ssh://root@gpu1:22/", Host("gpu1", "root", 22)),
        ("gpu.example.org", Host("gpu.example.org")),
        ("", None),
        ("@gpu1", None),
        ("gpu1:", None),
        ("gpu1:0", None),
        ("gpu1:65536", None),
        ("gpu1:ssh", None),
        ("gpu 1", None),
        ("-oProxyCommand=id", None),
        ("-root@gpu1", None),
        ("$(id)", None),
        ("a;b", None),
        ("a`b`", None),
    ],
)
def test_host_is_named_as_ssh_names_it(spec, host):
    if host is None:
        with pytest.raises(UsageError, match="does not name a host") as caught:
            hosts.parse(spec)
        assert caught.value.exit_code == ExitCode.USAGE
    else:
        assert hosts.parse(spec) == host


@pytest.mark.parametrize("spec", ["gpu1", "root@gpu1:2222", "[::1]:22"])
def test_host_reads_as_it_was_named(spec):
    assert str(hosts.parse(spec)) == spec
