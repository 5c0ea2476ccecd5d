"""export and import --git: git is the judge of what goes out and of what comes back."""

import os
import shutil
import subprocess

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from patchq.errors import ExitCode
from tests import quilt_lab
from tests import world as worlds

pytestmark = pytest.mark.slow

ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "A. Body",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A. Body",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "LC_ALL": "C",
}
BRANCH = "patchq/q/1.0"
HEADER = """\
From: J\u00f6rg <j@example.org>
Date: Mon, 2 Mar 2020 10:00:00 +0100
Subject: [PATCH 3/7] Count to four

It was three.

Signed-off-by: J\u00f6rg <j@example.org>
---
 demo/data.txt | 1 +

"""


def git(folder, *words, code=0, **environ):
    done = subprocess.run(
        ["git", *words], cwd=folder, env={**ENVIRONMENT, **environ}, capture_output=True, text=True
    )
    assert done.returncode == code, (words, done)
    return done.stdout


def out(world, *words):
    return world.run("export", *words, "--queue", world.queue)


def back(world, *words):
    return world.run("import", *words, "--queue", world.queue)


def patches(world):
    return {path.name: path.read_bytes() for path in world.series.iterdir()}


def pushed(world):
    """Return the site's files with all patches on."""
    done = world.here("push", "-a")
    assert done.returncode == 0, done.stderr
    whole = world.tree()
    world.here("pop", "-a")
    return {path: data for path, data in whole.items() if path.startswith("demo/")}


def shown(folder, commit):
    names = git(folder, "ls-tree", "-r", "--name-only", commit).split()
    return {
        name: subprocess.run(
            ["git", "cat-file", "blob", f"{commit}:{name}"], cwd=folder, capture_output=True
        ).stdout
        for name in names
    }


@pytest.fixture
def mailed(world):
    """A world with a header in git's own form, and one that has a DEP-3 author."""
    text = worlds.TEXT.replace("Description: Count to four\n\n", HEADER)
    foot = worlds.FOOT.replace("\n\n", "\nAuthor: B <b@example.org>\nBug: https://x.org/1\n\n", 1)
    world.write({**worlds.PATCHES, "20-foot.patch": foot, "30-text.patch": text}, worlds.SKETCHES)
    world.run("lint", "--queue", world.queue, "--write")
    return world


def test_a_branch_has_the_pristine_release_and_a_commit_for_each_patch(mailed):
    done = out(mailed, "--git", "w")

    folder = mailed.root / "w"
    log = git(folder, "log", "--reverse", "--format=%h|%an <%ae>|%ad|%s", BRANCH).splitlines()
    ids = [row.split("|")[0] for row in log]
    assert [row.partition("|")[2] for row in log] == [
        "patchq <patchq@localhost>|Tue Jan 1 00:00:00 1980 +0000|Pristine text of demo",
        "patchq <patchq@localhost>|Tue Jan 1 00:00:00 1980 +0000|Use pi for the area of a circle",
        "B <b@example.org>|Tue Jan 1 00:00:00 1980 +0000|Squares in feet",
        "J\u00f6rg <j@example.org>|Mon Mar 2 10:00:00 2020 +0100|Count to four",
    ]
    assert [line.split()[0][:7] for line in done.stdout.splitlines()[1:4]] == ids[1:]
    assert git(folder, "log", "-1", "--format=%B", BRANCH) == (
        "Count to four\n\nIt was three.\n\nSigned-off-by: J\u00f6rg <j@example.org>\n\n"
        "Patchq-Patch: 30-text.patch\n\n"
    )
    pristine = {path: data.encode() for path, data in worlds.FILES.items()}
    assert shown(folder, ids[0]) == pristine
    assert shown(folder, BRANCH) == pushed(mailed)
    assert git(folder, "status", "--porcelain") == ""
    assert git(folder, "fsck", "--strict", "--no-dangling") == ""


def test_the_same_series_gives_the_same_commits(mailed):
    out(mailed, "--git", "w")
    out(mailed, "--git", "v")

    again = out(mailed, "--git", "w")

    tips = [git(mailed.root / name, "rev-parse", BRANCH) for name in "wv"]
    assert tips[0] == tips[1]
    assert again.returncode == ExitCode.NOTHING_TO_DO
    assert again.stderr == f"Branch {BRANCH} in w is up to date\n"


def test_what_was_not_edited_comes_back_byte_for_byte(mailed):
    before = patches(mailed)
    out(mailed, "--git", "w")
    git(
        mailed.root / "w",
        "commit",
        "--amend",
        "--no-edit",
        "-q",
        "--author=J\u00f6rg <j@example.org>",
        "--date=Mon, 2 Mar 2020 10:00:00 +0100",
    )

    done = back(mailed, "--git", "w")

    assert done.returncode == ExitCode.NOTHING_TO_DO, done.stderr
    assert done.stderr == f"The series is what branch {BRANCH} is\n"
    assert patches(mailed) == before


def test_an_edited_branch_is_the_series(mailed):
    out(mailed, "--git", "w")
    folder, before = mailed.root / "w", patches(mailed)
    (folder / "demo/data.txt").write_text("one\ntwo\nthree\nfour\nfive\n")
    git(folder, "commit", "-qa", "--amend", "--no-edit")
    (folder / "demo/new.txt").write_text("new\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "Add a file\n\nIt was missing.")
    (folder / "demo/units.py").write_text("metre = 1\nfoot = 0.3048\ninch = 0.0254\n")
    git(folder, "commit", "-qam", "Know inches")

    done = back(mailed, "--git", "w")

    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        "10-pi.patch: unchanged\n20-foot.patch: unchanged\n30-text.patch: changed\n"
        "Add-a-file.patch: new\nKnow-inches.patch: new\n"
    )
    after = patches(mailed)
    assert [after[name] for name in ("10-pi.patch", "20-foot.patch")] == [
        before[name] for name in ("10-pi.patch", "20-foot.patch")
    ]
    assert after["30-text.patch"].startswith(HEADER.encode())
    assert after["Add-a-file.patch"].startswith(
        b"Description: Add a file\n It was missing.\nAuthor: A. Body <a@example.org>\n\ndiff --git"
    )
    assert pushed(mailed) == shown(folder, BRANCH)
    assert "Know-inches.patch: 1 fault" in done.stderr


def test_another_order_and_a_patch_less(mailed):
    out(mailed, "--git", "w")
    folder, before = mailed.root / "w", patches(mailed)
    git(
        folder,
        *("rebase", "-q", "-i", f"{BRANCH}~3"),
        GIT_SEQUENCE_EDITOR="sed -i -e '2d' -e '1{h;d}' -e '3{G}'",
    )

    dry = back(mailed, "--git", "w", "-n")
    same = patches(mailed) == before
    done = back(mailed, "--git", "w")

    assert dry.stdout.startswith("Would be 30-text.patch: unchanged\n")
    assert same
    assert done.stdout == (
        "30-text.patch: unchanged\n10-pi.patch: unchanged\n20-foot.patch: removed\n"
    )
    assert (mailed.series / "series").read_text() == "30-text.patch\n10-pi.patch\n"
    assert not (mailed.series / "20-foot.patch").exists()
    assert (mailed.series / "20-foot.patch~").read_bytes() == before["20-foot.patch"]
    assert not (mailed.queue / "post/20-foot.pyi").exists()
    assert (mailed.queue / "post/10-pi.pyi").exists()
    assert pushed(mailed) == shown(folder, BRANCH)


def test_a_message_that_was_edited_is_a_new_header_in_the_old_form(mailed):
    out(mailed, "--git", "w")
    folder, before = mailed.root / "w", patches(mailed)
    git(
        folder,
        *("rebase", "-q", "-i", f"{BRANCH}~3"),
        GIT_SEQUENCE_EDITOR="sed -i s/^pick/reword/",
        GIT_EDITOR="sed -i -e 1s/feet/FEET/ -e 1s/four/FOUR/",
    )

    done = back(mailed, "--git", "w")

    assert done.stdout == (
        "10-pi.patch: unchanged\n20-foot.patch: header changed\n30-text.patch: header changed\n"
    )
    after = patches(mailed)
    assert after["10-pi.patch"] == before["10-pi.patch"]
    assert after["20-foot.patch"].startswith(
        b"Description: Squares in FEET\nAuthor: B <b@example.org>\nBug: https://x.org/1\n\ndiff"
    )
    assert after["30-text.patch"].startswith(
        HEADER.partition("Subject")[0].encode()
        + b"Subject: Count to FOUR\n\nIt was three.\n\nSigned-off-by:"
    )
    assert back(mailed, "--git", "w").returncode == ExitCode.NOTHING_TO_DO


def test_squashed_split_and_untrailed_commits(mailed):
    out(mailed, "--git", "w")
    folder = mailed.root / "w"
    git(
        folder,
        "rebase",
        "-q",
        "-i",
        f"{BRANCH}~3",
        GIT_SEQUENCE_EDITOR="sed -i 2s/pick/squash/",
        GIT_EDITOR="true",
    )
    git(folder, "commit", "-q", "--amend", "-m", "Count to four")
    (folder / "demo/data.txt").write_text("0\none\ntwo\nthree\nfour\n")
    git(folder, "commit", "-qam", "Count from nothing\n\nPatchq-Patch: 30-text.patch")
    git(folder, "commit", "-q", "--allow-empty", "-m", "Nothing")

    done = back(mailed, "--git", "w")

    assert done.stdout == (
        "10-pi.patch: changed\nCount-to-four.patch: new\n30-text.patch: changed\n"
        "20-foot.patch: removed, it is in 10-pi.patch\n"
    ), done
    assert "changes no file: it is left out" in done.stderr
    assert pushed(mailed) == shown(folder, BRANCH)


def test_an_existing_repository_gets_a_branch_and_nothing_else(mailed):
    folder = mailed.root / "mine"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / ".gitattributes").write_text("* text=auto eol=crlf\n*.py merge=union\n")
    (folder / "x").write_text("x\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "mine")
    before = git(folder, "rev-parse", "HEAD"), git(folder, "status", "--porcelain", "--ignored")

    done = out(mailed, "--git", folder)

    assert done.returncode == 0, done.stderr
    assert git(folder, "symbolic-ref", "HEAD") == "refs/heads/main\n"
    assert before == (
        git(folder, "rev-parse", "HEAD"),
        git(folder, "status", "--porcelain", "--ignored"),
    )
    assert git(folder, "for-each-ref", "--format=%(refname)").split() == [
        "refs/heads/main",
        f"refs/heads/{BRANCH}",
    ]
    assert shown(folder, BRANCH) == pushed(mailed)


def test_a_branch_that_was_edited_is_not_replaced_without_force(mailed):
    out(mailed, "--git", "w")
    folder = mailed.root / "w"
    git(folder, "commit", "-q", "--allow-empty", "-m", "mine")
    tip = git(folder, "rev-parse", BRANCH)

    refused = out(mailed, "--git", "w")
    there = out(mailed, "--git", "w", "-f")
    git(folder, "switch", "-q", "--detach")
    forced = out(mailed, "--git", "w", "-f")

    assert refused.returncode == ExitCode.FAILED
    assert f"branch {BRANCH} in w has other commits" in refused.stderr
    assert "is checked out in w" in there.stderr
    assert forced.returncode == 0
    assert git(folder, "rev-parse", BRANCH) != tip


def test_refusals(mailed):
    folder = mailed.root / "full"
    folder.mkdir()
    (folder / "x").write_text("x\n")

    assert "full is not a git repository" in out(mailed, "--git", "full").stderr
    assert "is not a git repository" in back(mailed, "--git", "absent").stderr
    git(mailed.root, "init", "-q", "empty")
    assert f"there is no branch {BRANCH}" in back(mailed, "--git", "empty").stderr
    assert out(mailed).returncode == ExitCode.USAGE
    assert out(mailed, "--combined", "--mbox", "-").returncode == ExitCode.USAGE
    assert out(mailed, "--combined", "--release", "2.0").returncode == ExitCode.USAGE
    assert back(mailed).returncode == ExitCode.USAGE
    for words in (("x.patch",), ("-p1",), ("-P", "n"), ("--target", mailed.site), ("-R",)):
        done = back(mailed, "--git", "w", *words)
        assert done.returncode == ExitCode.USAGE, words
        assert "do not go together" in done.stderr


@pytest.mark.parametrize("kind", ["merge", "link", "elsewhere", "outside"])
def test_what_is_no_series_is_refused_and_nothing_changes(mailed, kind):
    out(mailed, "--git", "w")
    folder, before = mailed.root / "w", patches(mailed)
    if kind == "merge":
        git(folder, "switch", "-qc", "side", f"{BRANCH}~1")
        git(folder, "commit", "-q", "--allow-empty", "-m", "side")
        git(folder, "switch", "-q", BRANCH)
        git(folder, "merge", "-q", "--no-edit", "side")
    elif kind == "link":
        (folder / "demo/link").symlink_to("data.txt")
        git(folder, "add", ".")
        git(folder, "commit", "-qm", "link")
    elif kind == "outside":
        (folder / "demo/data.txt").write_text("x\n")
        git(folder, "commit", "-qam", "x\n\nPatchq-Patch: ../../x.patch")
    else:
        git(folder, "checkout", "-q", "--orphan", "other")
        git(folder, "commit", "-qm", "other")
        git(folder, "branch", "-qM", BRANCH)

    done = back(mailed, "--git", "w")

    said = {"merge": "is a merge", "link": "no patch can carry", "elsewhere": "does not stand on"}
    assert done.returncode == (ExitCode.USAGE if kind == "outside" else ExitCode.FAILED)
    assert said.get(kind, "names the path '../../x.patch'") in done.stderr
    assert patches(mailed) == before


def test_git_am_reads_the_mailbox(mailed):
    done = out(mailed, "--mbox", "q.mbox")
    folder = mailed.root / "am"
    folder.mkdir()
    for path, data in worlds.FILES.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(data)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "base")

    git(folder, "am", "-q", "../q.mbox")

    assert done.stdout == "Wrote 3 patches to q.mbox\n"
    assert shown(folder, "main") == pushed(mailed)
    assert git(folder, "log", "-2", "--format=%an|%ad|%B") == (
        "J\u00f6rg|Mon Mar 2 10:00:00 2020 +0100|Count to four\n\nIt was three.\n\n"
        "Signed-off-by: J\u00f6rg <j@example.org>\n\n"
        "B|Tue Jan 1 00:00:00 1980 +0000|Squares in feet\n\nBug: https://x.org/1\n\n"
    )
    assert out(mailed, "--mbox", "-").stdout == (mailed.root / "q.mbox").read_text()


def test_the_mailbox_comes_back_as_patches(mailed):
    text = out(mailed, "--mbox", "-").stdout
    (mailed.root / "q.mbox").write_text(text)
    expected = pushed(mailed)
    shutil.rmtree(mailed.series)
    (mailed.series).mkdir()
    (mailed.series / "series").write_text("")
    mailed.run("lint", "--queue", mailed.queue, "--write")

    done = mailed.here("import", mailed.root / "q.mbox")

    assert done.returncode == 0, done.stderr
    assert pushed(mailed) == expected


def test_the_combined_diff_is_what_git_apply_makes_the_whole_of(mailed):
    diff = out(mailed, "--combined").stdout
    folder = mailed.root / "whole"
    for path, data in worlds.FILES.items():
        (folder / path).parent.mkdir(exist_ok=True, parents=True)
        (folder / path).write_text(data)
    (mailed.root / "whole.diff").write_text(diff)

    git(folder, "init", "-q")
    git(folder, "apply", "../whole.diff")

    found = {p: (folder / p).read_bytes() for p in pushed(mailed)}
    assert found == pushed(mailed)


def test_a_plain_tree_goes_out_and_comes_back(tmp_path):
    lab = quilt_lab.Tree(tmp_path / "t", {"a": b"1\n2\n3\n", "d/b": b"x\n"})
    lab.patch("one.patch", {"a": b"1\ntwo\n3\n"})
    lab.patch("two.patch", {"a": b"1\ntwo\n3\nfour\n", "new": b"n\n"}, "-p0")
    lab.patch("three.patch", {"d/b": b""}, "-pab")
    result = {p: (lab.folder / p).read_bytes() for p in ("a", "d/b", "new")}
    lab.run("pop", "-a")
    shutil.rmtree(lab.folder / ".pc")
    before = {path.name: path.read_bytes() for path in (lab.folder / "patches").iterdir()}
    world = worlds.World(tmp_path)
    tree = ("--tree", lab.folder)
    world.run("push", *tree)

    done = world.run("export", "--git", "w", *tree)
    while_on = world.run("import", "--git", "w", *tree)
    world.run("pop", *tree)
    same = world.run("import", "--git", "w", *tree)
    folder = tmp_path / "w"
    files = shown(folder, "patchq/t")
    git(folder, "commit", "-q", "--amend", "-m", "Empty it\n\nPatchq-Patch: three.patch")
    edited = world.run("import", "--git", "w", *tree)

    assert done.returncode == 0, done.stderr
    assert files == result
    assert shown(folder, "patchq/t~3") == {"a": b"1\n2\n3\n", "d/b": b"x\n"}
    assert while_on.returncode == ExitCode.FAILED
    assert same.returncode == ExitCode.NOTHING_TO_DO, same.stderr
    assert edited.stdout == (
        "one.patch: unchanged\ntwo.patch: unchanged\nthree.patch: header changed\n"
    ), edited.stderr
    after = {path.name: path.read_bytes() for path in (lab.folder / "patches").iterdir()}
    assert after["three.patch"].endswith(before["three.patch"])
    assert {n: after[n] for n in ("one.patch", "two.patch", "series")} == {
        n: before[n] for n in ("one.patch", "two.patch", "series")
    }
    lab.run("push", "-a")
    assert {p: (lab.folder / p).read_bytes() for p in result} == result


texts = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "caf\u00e9\n", "\n", "no end"]), max_size=6)
contents = st.one_of(st.none(), texts.map("".join).map(str.encode))


@settings(
    max_examples=3,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(states=st.lists(st.tuples(contents, contents), min_size=2, max_size=4))
def test_any_commits_become_patches_that_quilt_puts_on(tmp_path_factory, states):
    root = tmp_path_factory.mktemp("any")
    lab = quilt_lab.Tree(root / "t", {"x": states[0][0], "y": states[0][1], "z": b"z\n"})
    (lab.folder / "patches/series").write_text("")
    world = worlds.World(root)
    tree = ("--tree", lab.folder)
    assert world.run("export", "--git", "w", *tree).returncode == 0
    folder = root / "w"
    for number, files in enumerate(states[1:]):
        for name, data in zip("xy", files, strict=True):
            (folder / name).unlink(missing_ok=True)
            if data is not None:
                (folder / name).write_bytes(data)
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "--allow-empty", "-m", f"Change {number}")
    expected = shown(folder, "patchq/t")

    done = world.run("import", "--git", "w", *tree)

    assert done.returncode in (0, 2), done.stderr
    names = (lab.folder / "patches/series").read_text().split()
    assert world.run("push", "-a", *tree).returncode == (0 if names else 2)
    found = {p: (lab.folder / p).read_bytes() for p in "xyz" if (lab.folder / p).exists()}
    assert found == expected
    world.run("pop", "-a", *tree)
    shutil.rmtree(lab.folder / ".patchq", ignore_errors=True)
    if names:
        lab.run("push", "-a")
        empty = {path for path in expected if not expected[path]}
        quilted = {p: (lab.folder / p).read_bytes() for p in "xyz" if (lab.folder / p).exists()}
        assert {p: d for p, d in quilted.items() if p not in empty} == {
            p: d for p, d in expected.items() if p not in empty
        }
