"""header: shown, appended to, replaced, edited and judged; the diffs stay byte for byte."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from patchq.errors import ExitCode, UsageError
from patchq.model import sha256
from patchq.queue import headers
from tests import world as worlds

pytestmark = pytest.mark.slow


def fed(world, text, *args, target=True):
    """Run `header` with a text on stdin."""
    where = ("--target", world.site, "--queue", world.queue) if target else ()
    return subprocess.run(
        [sys.executable, "-m", "patchq", "header", *map(str, (*args, *where))],
        input=text,
        capture_output=True,
        cwd=world.root,
        env=environ(world),
        timeout=60,
    )


def environ(world):
    kept = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    return {
        **kept,
        "PATCHQ_CACHE": str(world.root / "cache"),
        "PATCHQ_QUEUES": "",
        "HOME": str(world.root),
    }


def body(path):
    return headers.split(path.read_bytes(), name=path.name)[1]


def test_the_header_of_the_top_patch_or_of_any(world):
    assert world.here("header").stderr == (
        "patchq: No patches applied\n"
        f"  why: no patch of queue q is on in {world.site}\n"
        f"  mend: name one: patchq series --target {world.site} --queue {world.queue}\n"
    )
    world.here("push", "10-pi")

    assert world.here("header").stdout == "Description: Use pi for the area of a circle\n\n"
    assert world.here("header", "30-text").stdout == "Description: Count to four\n\n"
    assert world.here("header", "pi").returncode == ExitCode.FAILED


def test_appended_and_replaced_in_quilts_words(world):
    path = world.series / "30-text.patch"
    before = body(path)

    appended = fed(world, b"Bug: https://example.org/1\n", "-a", "30-text")
    first = path.read_bytes()
    replaced = fed(world, b"No trailing newline", "-r", "30-text")

    assert appended.stdout == b"Appended text to header of patch 30-text.patch\n"
    assert first == b"Description: Count to four\n\nBug: https://example.org/1\n" + before
    assert replaced.stdout == b"Replaced header of patch 30-text.patch\n"
    assert path.read_bytes() == b"No trailing newline\n" + before


def test_on_an_applied_patch_the_environments_text_is_renewed_and_no_file_moves(world):
    world.here("push", "-a")
    before = world.tree()

    done = fed(world, b"Description: Squares, in feet\n", "-r", "20-foot")

    assert done.returncode == 0, done.stderr
    assert world.tree() == before
    kept = json.loads((world.site / ".patchq/demo/patches.json").read_text())["patches"]
    assert sha256((world.series / "20-foot.patch").read_bytes()) in kept
    assert len(kept) == 3
    assert world.here("status").returncode == 0
    assert world.here("push", "-a").returncode == ExitCode.NOTHING_TO_DO
    assert world.here("pop", "-a").returncode == 0


def test_edited_in_the_users_editor(world):
    path = world.series / "30-text.patch"
    before = body(path)

    done = world.run(
        *("header", "-e", "30-text", "--target", world.site, "--queue", world.queue),
        environ={"EDITOR": "sed -i s/four/FOUR/"},
    )

    assert done.stdout == "Replaced header of patch 30-text.patch\n", done.stderr
    assert path.read_bytes() == b"Description: Count to FOUR\n\n" + before


def test_an_editor_that_fails_changes_nothing(world):
    path = world.series / "30-text.patch"
    before = path.read_bytes()

    done = world.run(
        *("header", "-e", "30-text", "--target", world.site, "--queue", world.queue),
        environ={"EDITOR": "false"},
    )

    assert done.returncode == ExitCode.FAILED
    assert "the editor false failed" in done.stderr
    assert path.read_bytes() == before


def test_a_header_that_would_be_a_diff_is_refused(world):
    path = world.series / "30-text.patch"
    before = path.read_bytes()

    done = fed(world, b"x\n--- a/y\n+++ b/y\n", "-r", "30-text")

    assert done.returncode == ExitCode.USAGE
    assert b"would not be a header" in done.stderr
    assert path.read_bytes() == before


def test_strip_options_and_backup(world):
    path = world.series / "30-text.patch"
    old = path.read_bytes()
    text = b"why  \n x | 1 +\n 1 file changed, 1 insertion(+)\nend\n"

    done = fed(
        world,
        text,
        *("-r", "--strip-diffstat", "--strip-trailing-whitespace", "--backup", "30-text"),
    )

    assert world.here("header", "30-text").stdout == "why\nend\n"
    assert (world.series / "30-text.patch~").read_bytes() == old
    back = f"mv '{path}~' {path} && patchq lint --write --queue {world.queue}"
    assert done.stderr.decode() == f"To take it back: {back}\n"


def test_a_dry_run_shows_the_header_that_it_would_be(world):
    before = (world.series / "30-text.patch").read_bytes()

    done = fed(world, b"new\n", "-r", "-n", "30-text")

    assert done.stdout == b"new\n"
    assert (world.series / "30-text.patch").read_bytes() == before


def test_dep3_is_linted_by_file_and_line(world):
    fed(world, b"Description: a\nForwarded: nope\nLast-Update: today\n", "-r", "30-text")

    done = world.here("header", "--dep3", "30-text")
    document = world.json("header", "--dep3", "30-text")
    fed(world, b"Description: a\nAuthor: b <b@c>\nForwarded: no\n", "-r", "30-text")
    good = world.here("header", "--dep3", "30-text")

    assert done.returncode == ExitCode.FAILED
    assert done.stdout == (
        "1.0/30-text.patch:1: no Origin, and no Author\n"
        "  why: DEP-3 requires Origin, except where there is an Author\n"
        "  mend: write Author: Name <mail>, or Origin: upstream, URL\n"
        "1.0/30-text.patch:2: Forwarded: nope\n"
        "  why: all but 'no' and 'not-needed' says that it was forwarded\n"
        "  mend: write no, not-needed, or the URL\n"
        "1.0/30-text.patch:3: Last-Update: today\n"
        "  why: it must be a date as YYYY-MM-DD\n"
        "  mend: Last-Update: 2026-01-31\n"
    )
    assert [one["line"] for one in document["flaws"]] == [1, 2, 3]
    assert (good.returncode, good.stdout) == (0, "Header of patch 30-text.patch is good DEP-3\n")


def test_an_empty_header_is_begun_with_dep3s_fields(world):
    fed(world, b"", "-r", "30-text")

    done = world.run(
        *("header", "-e", "--dep3", "30-text", "--target", world.site, "--queue", world.queue),
        environ={
            "EDITOR": "sed -i -e 's/<what.*>/Count/' -e '/^ <why/d' -e '/^Origin/d' -e '/^Bug/d'"
            " -e 's/<no.*>/no/' -e 's/^Author:.*/Author: A <a@b.c>/'"
        },
    )

    assert done.returncode == 0, done.stderr
    assert world.here("header", "--dep3", "30-text").returncode == 0
    assert world.here("header", "30-text").stdout.startswith("Description: Count\nAuthor: A")


def test_in_a_plain_tree_only_the_file_changes(tmp_path):
    world = worlds.World(tmp_path)
    (tmp_path / "x").write_text("1\n")
    (tmp_path / "patches").mkdir()
    diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n"
    (tmp_path / "patches/p.patch").write_text(diff)
    (tmp_path / "patches/series").write_text("p.patch\n")
    world.run("push", "--tree", tmp_path)
    record = sorted((tmp_path / ".patchq").rglob("*"))
    kept = [path.read_bytes() for path in record if path.is_file()]

    done = fed(world, b"why\n", "-r", "--tree", tmp_path, target=False)

    assert done.stdout == b"Replaced header of patch p.patch\n"
    assert done.stderr == b""
    assert (tmp_path / "patches/p.patch").read_text() == "why\n" + diff
    assert [path.read_bytes() for path in record if path.is_file()] == kept


def test_git_takes_a_header_back(world):
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run([*git, "init", "-q", world.queue], check=True)
    subprocess.run([*git, "-C", world.queue, "add", "."], check=True)
    subprocess.run([*git, "-C", world.queue, "commit", "-qm", "x"], check=True)
    before = (world.series / "30-text.patch").read_bytes()

    done = fed(world, b"new\n", "-r", "30-text")

    said = done.stderr.decode().removeprefix("To take it back: ")
    assert said == (f"git -C {world.queue} checkout -- 1.0/30-text.patch 1.0/series.lock\n"), (
        done.stderr
    )
    subprocess.run(said, shell=True, check=True, capture_output=True)
    assert (world.series / "30-text.patch").read_bytes() == before


def is_header(data):
    try:
        headers.joined(data, b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n", name="p")
    except UsageError:
        return False
    return True


lines = st.one_of(
    st.binary(max_size=20).map(lambda row: row.replace(b"\n", b"") + b"\n"),
    st.sampled_from([b"---\n", b"Description: caf\xe9  \n", b"\r\n", b" .\n", b"From: x\n"]),
)
texts = st.lists(lines, min_size=1, max_size=5).map(b"".join).filter(is_header)


@settings(
    max_examples=2,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much],
)
@given(every=st.tuples(texts, texts, texts))
def test_headers_survive_refresh_rename_fork_and_another_order(pattern, tmp_path_factory, every):
    root = tmp_path_factory.mktemp("header")
    shutil.copytree(pattern.root, root / "w", symlinks=True)
    world = worlds.World(root / "w")
    for name, text in zip(worlds.PATCHES, every, strict=True):
        path = world.series / name
        path.write_bytes(text + body(path))
    world.run("lint", "--queue", world.queue, "--write")
    assert world.here("push", "-a").returncode == 0
    data = world.site / "demo/data.txt"
    data.write_text(data.read_text() + "five\n")

    done = [
        world.here("refresh"),
        world.here("rename", "31-count.patch"),
        world.here("sink"),
        world.here("float", "31-count"),
        world.here("fork", "32-more.patch"),
        world.here("pop", "-a"),
    ]

    assert [one.returncode for one in done] == [0] * 6, done
    names = ("10-pi.patch", "20-foot.patch", "31-count.patch", "32-more.patch")
    for name, text in zip(names, (*every, every[-1]), strict=True):
        whole = (world.series / name).read_bytes()
        assert whole.startswith(text)
        assert headers.split(whole, name=name)[0] == text
