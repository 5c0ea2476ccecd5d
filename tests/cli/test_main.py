"""The table of verbs: prefixes, help, and errors in three parts."""

import json
import subprocess
import sys

import click
import pytest

from patchq.cli import main, plain
from patchq.errors import ExitCode


def patchq(*args: str, **more) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "patchq", *args], capture_output=True, text=True, **more
    )


@pytest.mark.parametrize(
    ("word", "verb"),
    [
        ("push", "push"),
        ("pu", "push"),
        ("po", "pop"),
        ("to", "top"),
        ("un", "unapplied"),  # quilt's, although undo begins so, too
        ("und", "undo"),
        ("se", "series"),
        ("prev", "previous"),
        ("st", "status"),
        ("rec", "recover"),
        ("go", "goto"),
        ("di", "diff"),
    ],
)
def test_a_prefix_that_is_unique_among_quilts_verbs_keeps_quilts_meaning(word, verb):
    assert main.full_verb(word) == verb


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("p", "'p' is ambiguous: patches, pop, previous, push."),
        (
            "setu",
            "patchq has no verb 'setup': unpack the sources with the packager's own tool, then: "
            "patchq push -a --tree DIR.",
        ),
        ("frobnicate", "No such verb 'frobnicate'; 'patchq --help' lists them."),
    ],
)
def test_a_word_that_is_no_verb_says_why(word, message):
    with pytest.raises(click.UsageError) as caught:
        main.full_verb(word)

    assert caught.value.message == message


@pytest.mark.slow
def test_every_verb_of_the_table_is_there_and_has_help():
    for verb, module in main.HOME.items():
        done = patchq(verb, "--help")

        assert done.returncode == 0, (verb, module, done.stderr)
        assert done.stdout.startswith(f"Usage: patchq {verb} ")


def test_help_lists_the_verbs_under_headings():
    text = patchq("--help").stdout

    for title, verbs in main.VERBS.items():
        assert f"\n{title}:\n" in text
        for verb in verbs:
            assert f"\n  {verb} " in text


@pytest.mark.parametrize("args", [(), ("frobnicate",), ("push", "--no-such-option")])
def test_a_wrong_command_line_is_usage(args):
    assert patchq(*args).returncode == ExitCode.USAGE


def test_an_error_is_one_json_document_when_asked_for():
    done = patchq("top", "--json", "--queue", "no-such-queue")

    document = json.loads(done.stdout)
    assert document["schema"] == 1
    assert document["exit_code"] == done.returncode == ExitCode.USAGE
    assert document["error"]["what"] == "there is no queue no-such-queue"
    assert document["error"]["mend"] == "patchq queues"


def test_a_bug_is_not_dressed_up(tmp_path):
    code = (
        "import sys; from patchq.cli import look, main, run\n"
        "look.COMMANDS['top'].callback = lambda **values: 1 / 0\n"
        "sys.exit(main.main(['top']))"
    )

    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={"PATCHQ_CACHE": str(tmp_path), "PATH": "/usr/bin:/bin"},
    )

    assert done.returncode == ExitCode.BUG
    assert "ZeroDivisionError" in done.stderr
    assert "command: patchq top" in (tmp_path / "last-bug.txt").read_text()


def test_text_that_would_drive_a_terminal_is_shown_instead():
    assert plain.plain("a\x1b[31mred\x07\x9b\tb\nc") == "a\\x1b[31mred\\x07\\x9b\tb\nc"
