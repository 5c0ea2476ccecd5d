"""What is the same for all hosts of a run is done once, whatever their number."""

import shutil

import pytest

from tests import fleet_lab
from tests.fleet_lab import SITE

COUNTS = (2, 6)


@pytest.fixture(scope="module")
def lab(pattern):
    with fleet_lab.fleet(sum(COUNTS), pattern.site) as lab:
        yield lab


@pytest.fixture
def counted(lab, world, tmp_path):
    """Run a verb on hosts; return how it ended, and how many git processes that took."""
    log = tmp_path / "log"
    wrapper = tmp_path / "bin" / "git"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\necho "$@" >> {log}\nexec {shutil.which("git")} "$@"\n')
    wrapper.chmod(0o755)
    path = {"PATH": f"{wrapper.parent}:/usr/bin:/bin"}

    def run(verb, *args, hosts):
        log.write_text("")
        environ = {**lab.home.environ, "HOME": str(lab.home.path), **path}
        site = ("--target", SITE, "--queue", world.queue, "-H", ",".join(hosts))
        done = world.run(verb, *args, *site, environ=environ)
        return done.returncode, len(log.read_text().splitlines())

    return run


def test_no_verb_starts_a_git_process_for_each_host(lab, counted):
    fresh = iter(lab.hosts)
    few, many = ([next(fresh) for _ in range(count)] for count in COUNTS)
    verbs = (("push", "-a"), ("audit",), ("pop", "-a"))

    counts = {hosts[0]: [counted(*verb, hosts=hosts) for verb in verbs] for hosts in (few, many)}

    assert [code for code, _ in counts[few[0]]] == [code for code, _ in counts[many[0]]]
    assert counts[few[0]][0][0] == counts[few[0]][2][0] == 0
    assert sum(count for _, count in counts[few[0]]) > 0, "the wrapper was not used"
    for verb, one, other in zip(verbs, counts[few[0]], counts[many[0]], strict=True):
        assert one == other, verb
