"""One tree that several hosts have: changed once, whoever comes first."""

from __future__ import annotations

import json
import shutil

import pytest

HOSTS = [f"command:env HOST={number} sh -c" for number in range(3)]


@pytest.fixture
def on_all(world):
    def run(verb, *args, jobs=32):
        options = [word for host in HOSTS for word in ("-H", host)]
        return world.here(verb, *args, *options, "-j", str(jobs))

    return run


def outcomes(done):
    hosts = json.loads(done.stdout)["hosts"]
    return {one["host"]: (one["outcome"], one["report"].get("same_as")) for one in hosts}


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 32])
def test_one_host_writes_and_the_others_name_it(world, on_all, jobs):
    for verb in (["push"], ["push"], ["pop"], ["undo"]):
        done = on_all(*verb, "--json", jobs=jobs)

        assert done.returncode == 0, done.stderr
        found = outcomes(done)
        (writer,) = [host for host, (word, _) in found.items() if word == "done"]
        assert {one for host, one in found.items() if host != writer} == {
            ("nothing to do", writer)
        }
    receipts = world.json("log")["receipts"]
    assert [one["verb"] for one in receipts] == ["push", "push", "pop", "undo"]


def test_the_table_says_it_in_a_line(on_all):
    done = on_all("push", "-a")

    assert done.stdout.count("same environment as command:env HOST=") == 2
    assert done.stderr.endswith("3 hosts: 1 done, 2 nothing to do\n")


def test_trees_that_are_copies_are_each_changed(world):
    world.here("push")
    site, options = world.site, []
    for number in range(2):  # each host has at the same path a copy, with the environment's id
        copy = world.root / f"copy{number}"
        shutil.copytree(site, copy, symlinks=True)
        script = world.root / f"host{number}"
        script.write_text(
            f'#!/bin/sh\nexec unshare -m sh -c \'mount --bind "$1" "$2" && eval "$3"\''
            f' sh {copy} {site} "$1"\n'
        )
        script.chmod(0o755)
        options += ["-H", f"command:{script}"]
    done = world.here("push", *options, "--json")

    assert done.returncode == 0, done.stderr
    assert [word for word, _ in outcomes(done).values()] == ["done", "done"]
    rows = json.loads(world.here("audit", *options, "--json").stdout)["rows"]
    assert rows[0]["environment"] == rows[1]["environment"]


def test_an_audit_says_where_one_environment_id_is_on_several_hosts(on_all):
    before = on_all("audit")
    on_all("push", "-a")
    after = on_all("audit")

    assert "one environment id" not in before.stderr
    assert f"one environment id on {','.join(HOSTS)}: one tree, or copies of it" in after.stderr
