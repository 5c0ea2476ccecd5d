"""The lab's hosts behave as hosts do, and go wrong as they are told to."""

import asyncio
import contextlib
import subprocess
import sys

import asyncssh
import pytest

from patchq.agent import protocol
from patchq.transport import bootstrap
from tests import fleet_lab
from tests.fleet_lab import SITE, Counters

READ = {"op": "read", "distribution": "demo", "paths": ["demo/data.txt"], "originals": []}
COMMIT = {"op": "commit", "distribution": "demo", "paths": []}


def talk(lab, name, *messages, seconds=10):
    """Send what patchq sends, all at once; return noise and answers, as far as they came."""
    return asyncio.run(_talk(lab, name, messages, seconds))


async def _talk(lab, name, messages, seconds):
    mark = bootstrap.nonce()
    async with (
        asyncio.timeout(seconds),
        asyncssh.connect(
            lab.hosts[name].address,
            lab.port,
            config=None,
            username="someone",
            client_keys=[lab.home.key],
            known_hosts=str(lab.home.known_hosts),
        ) as connection,
        connection.create_process(bootstrap.command(None), encoding=None) as process,
    ):
        payload = bootstrap.payload(mark, writing=True, packed=True)
        with contextlib.suppress(BrokenPipeError):  # a host may leave before it is asked
            process.stdin.write(payload + b"".join(map(protocol.pack, messages)))
            process.stdin.write_eof()
        done = await process.wait()
    noise, _, rest = done.stdout.partition(protocol.marker(mark)[:-1])
    rest = rest[1:]  # whether its interpreter is equal
    answers, at = [], protocol.HEADER.size
    while len(rest) > at:
        head, tail = protocol.lengths(rest[:at])
        frame, rest = rest[at : at + head + tail], rest[at + head + tail :]
        if len(frame) == head + tail:
            answers.append(protocol.unpack(frame[:head], frame[head:]))
    return done.returncode, noise, answers


def contents(answers):
    """Return the bytes of the one file that was read."""
    message, blobs = answers[0]
    return blobs[message["ok"]["files"]["demo/data.txt"]]


@pytest.fixture(scope="module")
def lab(pattern):
    """Hosts for all tests here: each test takes some that no other has touched."""
    with fleet_lab.fleet(60, pattern.site) as lab:
        yield lab


@pytest.fixture(scope="module")
def fresh(lab):
    return iter(lab.hosts)


@pytest.fixture
def host(fresh):
    """The name of a host of one's own."""
    return next(fresh)


def test_every_host_has_a_tree_of_its_own(lab, fresh, host):
    lab.hosts[host].write("demo/data.txt", b"two\n")
    other = next(fresh)

    found = [contents(talk(lab, name, {**READ, "target": SITE})[2]) for name in (host, other)]

    assert found == [b"two\n", b"one\ntwo\nthree\n"]
    assert lab.counters()[host] == Counters(connections=1, sessions=1)


def test_host_shows_its_tree_as_the_site(lab, host):
    _, _, answers = talk(lab, host, {**READ, "op": "survey"})

    assert answers[0][0]["ok"]["site"] == SITE
    assert answers[0][0]["ok"]["host"]["name"] == host


def test_start_up_file_may_print_or_exit(lab, fresh, host):
    other = next(fresh)
    lab.fault(host, noise="hello\n")
    lab.fault(other, status=3, noise="bye\n")

    greeted, left = talk(lab, host, READ), talk(lab, other, READ)

    assert greeted[:2] == (0, b"hello\n")
    assert contents(greeted[2]) == b"one\ntwo\nthree\n"
    assert left == (3, b"bye\n", [])


@pytest.mark.parametrize(
    ("fault", "answered", "commits"),
    [
        ({"before": "commit"}, 1, 0),
        ({"after": "read"}, 0, 0),
        ({"answered": "read"}, 1, 0),
        ({"received": 1000}, 0, 0),
        ({"sent": 60}, 0, 0),
    ],
)
def test_link_is_cut_where_it_was_asked_for(lab, host, fault, answered, commits):
    lab.fault(host, **fault)

    code, _, answers = talk(lab, host, READ, COMMIT)

    assert code is None
    assert len(answers) == answered
    assert lab.counters()[host].commits == commits


def test_fault_may_be_for_some_connections_only(lab, host):
    lab.fault(host, status=3, times=2)

    assert [talk(lab, host, READ)[0] for _ in range(3)] == [3, 3, 0]


def test_connection_is_dropped_before_authentication(lab, host):
    lab.fault(host, dropped=1)

    with pytest.raises((asyncssh.ConnectionLost, ConnectionResetError)):
        talk(lab, host, READ)
    assert talk(lab, host, READ)[0] == 0


def test_host_refuses_who_comes(lab, fresh, host):
    other = next(fresh)
    lab.fault(host, refused=True)
    lab.forge(other)

    with pytest.raises(asyncssh.PermissionDenied):
        talk(lab, host, READ)
    with pytest.raises(asyncssh.HostKeyNotVerifiable):
        talk(lab, other, READ)
    assert talk(lab, next(fresh), READ)[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["connect", "login", "sync", "read"])
def test_host_hangs_for_ever(lab, host, phase):
    lab.fault(host, hang=phase)

    with pytest.raises(TimeoutError):
        talk(lab, host, READ, seconds=0.3)


def test_disk_may_be_full(lab, host):
    lab.fault(host, full=True)

    _, _, answers = talk(lab, host, COMMIT)

    assert answers[0][0]["error"]["word"] == "no-space"


@pytest.mark.slow
def test_line_may_be_run_by_a_real_shell(pattern):
    with fleet_lab.fleet(1, pattern.site, shell=True) as lab:
        here = str(lab.hosts["h0001"].tree)
        code, _, answers = talk(lab, "h0001", {**READ, "target": here})

    assert code == 0
    assert contents(answers) == b"one\ntwo\nthree\n"


@pytest.mark.slow
def test_patchq_pushes_to_one_host_and_not_to_its_neighbour(lab, fresh, host, world):
    other = next(fresh)
    argv = [sys.executable, "-m", "patchq", "push", "-a", "-H", host, "--target", SITE]
    environ = {**lab.home.environ, "PATCHQ_CACHE": str(world.root / "cache")}
    before = (lab.hosts[other].tree / "demo/data.txt").read_bytes()

    done = subprocess.run(
        [*argv, "--queue", str(world.queue)], env=environ, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr
    assert (lab.hosts[host].tree / "demo/data.txt").read_bytes() == before + b"four\n"
    assert (lab.hosts[other].tree / "demo/data.txt").read_bytes() == before
    assert lab.counters()[host].commits == 1
