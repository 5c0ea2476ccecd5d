"""Completion in the real bash, zsh and fish: verbs, options, and values from files here."""

import contextlib
import json
import os
import pty
import select
import subprocess
import sys
from pathlib import Path

import pytest

from patchq.errors import ExitCode
from tests import ssh_lab

pytestmark = pytest.mark.slow

PATH = f"{Path(sys.executable).parent}:{ssh_lab.PATH}"
PATIENCE = 60


@pytest.fixture
def here(world):
    """A world with two hosts, a group, and a patch that is on."""
    (world.root / "hosts.toml").write_text(
        '[groups.rack1]\nhosts = ["gpu[01-02]"]\n[hosts.other]\naddress = "127.0.0.9"\n'
    )
    assert world.here("push", "20-foot").returncode == 0
    return world


def environ(world):
    return {
        "HOME": str(world.root),
        "PATH": PATH,
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "PATCHQ_CACHE": str(world.root / "cache"),
    }


def run(world, *words):
    done = subprocess.run(
        words, cwd=world.root, env=environ(world), capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.stderr == ""
    return done.stdout


def bash(world, line):
    """Return what bash's completion function of patchq offers for a line."""
    script = (
        'eval "$(patchq completion bash)"\n'
        "COMP_LINE=$1 COMP_POINT=${#1}\n"
        "_patchq_completion patchq\n"
        'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    return run(world, ssh_lab.tool("bash"), "--norc", "-c", script, "bash", line).split("\n")[:-1]


def fish(world, line):
    """Return what fish offers for a line, without its descriptions."""
    script = 'patchq completion fish | source; complete -C "$argv[1]"'
    found = run(world, ssh_lab.tool("fish"), "--no-config", "-c", script, line)
    return [one.split("\t")[0] for one in found.split("\n")[:-1]]


def typed(world, argv, begin, keys, expected):
    """Type keys into a shell on a terminal until `expected` is seen; return all that it wrote."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(world.root)
        os.execve(argv[0], argv, environ(world))
    seen = ""
    try:
        os.write(terminal, f"{begin}; echo re''ady\n".encode())
        for wait, send in (("ready\r", keys), (expected, "")):
            while wait not in seen:
                ready, _, _ = select.select([terminal], [], [], PATIENCE)
                assert ready, f"{argv[0]} showed no {wait!r}: {seen!r}"
                seen += os.read(terminal, 4096).decode(errors="replace")
            os.write(terminal, send.encode())
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(terminal)
    return seen


OFFERED = [
    ("patchq pus", ["push"]),
    ("patchq refresh --strip", ["--strip-trailing-whitespace"]),
    ("patchq push 1", ["10-pi.patch"]),
    ("patchq diff -P ", ["10-pi.patch", "20-foot.patch", "30-text.patch"]),
    ("patchq push --queue q", ["q"]),
    ("patchq lint --release ", ["1.0"]),
    ("patchq status -H gpu", ["gpu01", "gpu02"]),
    ("patchq remove --target site ", ["demo/more.py", "demo/shapes.py"]),
    ("patchq add --target site demo/u", ["demo/units.py"]),
    ("patchq completion f", ["fish"]),
    ("patchq nonesuch ", []),
]


@pytest.mark.parametrize(("line", "expected"), OFFERED)
def test_bash_and_fish_offer_what_may_follow(here, line, expected):
    assert sorted(filter(None, bash(here, line))) == expected
    assert sorted(fish(here, line)) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        # readline keeps what stands before the last of @ = :
        ("patchq status -H @ra", ["rack1"]),
        ("patchq status --queue=q", ["q"]),
        ("patchq status -H gpu01,o", ["gpu01,other"]),
        ("patchq status -H 'gpu0", ["gpu01", "gpu02"]),
    ],
)
def test_bash_words_that_end_within_a_value(here, line, expected):
    assert bash(here, line) == expected


@pytest.mark.parametrize(
    ("keys", "expected"),
    [("patchq pus\t", "push "), ("patchq push 1\t", "10-pi.patch"), ("patchq top -H @\t", "all")],
)
def test_keys_in_bash_on_a_terminal(here, keys, expected):
    argv = [ssh_lab.tool("bash"), "--norc", "-i"]

    seen = typed(here, argv, 'eval "$(patchq completion bash)"', keys + "\t\t", expected)

    assert "patchq: " not in seen


@pytest.mark.parametrize(
    ("keys", "expected"),
    [("patchq pus\t", "push "), ("patchq push 1\t", "0-pi.patch"), ("patchq top -H ot\t", "her")],
)
def test_keys_in_zsh_on_a_terminal(here, keys, expected):
    argv = [ssh_lab.tool("zsh"), "-f", "-i"]
    begin = 'autoload -U compinit; compinit -u -D; eval "$(patchq completion zsh)"'

    seen = typed(here, argv, begin, keys, expected)

    assert "patchq: " not in seen


def test_a_plain_trees_patches_and_its_top_ones_files(here):
    tree = here.root / "tree"
    (tree / "patches").mkdir(parents=True)
    (tree / "a.c").write_text("one\n")
    for words in (("new", "a.diff"), ("add", "tree/a.c"), ("new", "b.diff")):
        done = here.run(*words, "--tree", tree)
        assert done.returncode == 0, done.stderr

    assert bash(here, "patchq pop --tree tree ") == ["a.diff", "b.diff"]
    assert here.run("pop", "--tree", tree).returncode == 0
    assert bash(here, "patchq revert --tree tree ") == ["tree/a.c"]
    assert bash(here, "patchq revert --tree tree t") == ["tree/a.c"]


def test_a_broken_queue_or_inventory_says_nothing_on_the_line_that_is_typed(here):
    (here.queue / "queue.toml").write_text("distribution =\n")
    (here.root / "hosts.toml").write_text("[[[\n")

    for line in ("patchq push ", "patchq push --queue ", "patchq top -H "):
        assert bash(here, line) == [""]


def test_no_program_and_no_host_is_asked(here):
    asked = here.root / "asked"
    tool = here.root / "bin/ansible-inventory"
    tool.parent.mkdir()
    tool.write_text(f"#!/bin/sh\ntouch {asked}\n")
    tool.chmod(0o755)
    (here.root / "inventory.yml").write_text("all:\n")

    done = here.run(
        environ={
            "_PATCHQ_COMPLETE": "bash_complete",
            "COMP_WORDS": "patchq push -H ",
            "PATCHQ_HOSTS": str(here.root / "inventory.yml"),
            "PATH": f"{tool.parent}:{PATH}",
        }
    )

    assert "plain,gpu01\n" in done.stdout
    assert not asked.exists()


def test_the_script_as_json_and_an_unknown_shell(here):
    done = here.run("completion", "zsh", "--json")
    unknown = here.run("completion", "tcsh")

    assert json.loads(done.stdout)["script"].lstrip().startswith("#compdef patchq")
    assert unknown.returncode == ExitCode.USAGE
