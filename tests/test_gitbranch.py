"""A branch of a user's repository, written and read back; git is asked what is there."""

import os
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchq import gitbranch
from patchq.gitbranch import Commit
from patchq.gitprocess import GitError

NAMES = ["x", "a b/c", 'quo"te\\d', "caf\udce9", "\u00fc", "-x", "d/e/f"]
FILE = st.one_of(st.none(), st.tuples(st.binary(max_size=30), st.booleans()))


def git(folder, *words):
    environ = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        ["git", "-C", folder, "-c", "user.name=a", "-c", "user.email=a@b", *words],
        capture_output=True,
        env=environ,
        check=True,
    )
    return done.stdout


def one(message=b"m\n", files=None, author="A <a@b.c>", date=gitbranch.EPOCH):
    return Commit(message, author, date, files or {})


@settings(max_examples=15, deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from(NAMES), FILE, max_size=4), min_size=1, max_size=3))
def test_what_is_written_is_read_back(tmp_path_factory, changes):
    repository, _ = gitbranch.place(tmp_path_factory.mktemp("r") / "new")
    tree = {}
    steps = []
    for files in changes:
        now = {**tree, **files}
        steps.append({p: now[p] for p in files if now[p] != tree.get(p)})
        tree = now

    ids = gitbranch.write(repository, None, [one(b"base\n"), *(one(files=f) for f in steps)])
    gitbranch.point(repository, "side/way", ids[-1], None)
    root, found = gitbranch.log(repository, "refs/heads/side/way", None)

    assert root == ids[0]
    assert [commit.id for commit in found] == list(ids[1:])
    seen = {}
    for commit, files in zip(found, steps, strict=True):
        assert {p: f for p, f in commit.after.items() if commit.before[p] != f} == files
        assert all(commit.before[p] == seen.get(p) for p in commit.before)
        seen.update(commit.after)
    kept = gitbranch.files(repository, ids[-1], NAMES)
    assert kept == {path: tree.get(path) for path in NAMES}


def test_a_new_repository_shows_the_branch_and_no_setting_of_the_users_changes_a_byte(tmp_path):
    folder = tmp_path / "new"
    repository, fresh = gitbranch.place(folder)
    data = b"a\r\nb\n$Id$\n"
    (tip,) = gitbranch.write(repository, None, [one(files={"x.py": (data, True)})])

    gitbranch.point(repository, "b", tip, None)
    gitbranch.check_out(repository, "b")

    assert fresh
    assert (folder / "x.py").read_bytes() == data
    assert os.access(folder / "x.py", os.X_OK)
    assert git(folder, "status", "--porcelain") == b""
    assert git(folder, "-c", "core.autocrlf=true", "diff", "HEAD") == b""
    assert gitbranch.checked_out(repository, "b")
    assert not gitbranch.checked_out(repository, "other")


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("A. Body <a@b.c>", b"A. Body <a@b.c>"),
        ("J\u00f6rg\n <j@b.c>", "J\u00f6rg <j@b.c>".encode()),
        ("only a name", b"only a name <>"),
        ("<a@b.c>", b"<a@b.c>"),
        ("A <a@b.c>, B <b@b.c>", b"A <a@b.c>"),
        ("caf\udce9 <a@b.c>", b"caf\xe9 <a@b.c>"),
        ("", gitbranch.NOBODY.encode()),
    ],
)
def test_authors_are_what_git_can_hold(tmp_path, text, made):
    repository, _ = gitbranch.place(tmp_path / "r")

    (tip,) = gitbranch.write(repository, None, [one(author=text)])

    said = git(tmp_path / "r", "cat-file", "commit", tip)
    assert b"author " + made + b" 315532800 +0000\n" in said.replace(b"author  <", b"author <")


def test_a_rename_is_told(tmp_path):
    repository, _ = gitbranch.place(tmp_path / "r")
    data = b"".join(b"%d\n" % n for n in range(30))
    files = ({"x": (data, False)}, {"x": None, "y": (data + b"more\n", False)})
    ids = gitbranch.write(repository, None, [one(files=some) for some in files])

    _, (commit,) = gitbranch.log(repository, ids[-1], None)

    assert commit.renamed == {"y": "x"}
    assert (commit.before["x"], commit.after["x"]) == ((data, False), None)
    assert (commit.before["y"], commit.after["y"]) == (None, (data + b"more\n", False))


def test_a_branch_that_was_moved_meanwhile_is_left_alone(tmp_path):
    repository, _ = gitbranch.place(tmp_path / "r")
    ids = gitbranch.write(repository, None, [one(b"1\n"), one(b"2\n")])
    gitbranch.point(repository, "b", ids[0], None)

    with pytest.raises(GitError):
        gitbranch.point(repository, "b", ids[1], ids[1])
    with pytest.raises(GitError):
        gitbranch.point(repository, "b", ids[1], None)

    assert gitbranch.tip(repository, "refs/heads/b") == ids[0]


def test_a_bare_repository_and_a_work_tree_of_another(tmp_path):
    folder = tmp_path / "r"
    folder.mkdir()
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "x")
    git(folder, "worktree", "add", "-q", tmp_path / "other")
    git(tmp_path, "init", "-q", "--bare", "bare.git")

    assert gitbranch.place(tmp_path / "bare.git") == (tmp_path / "bare.git", False)
    repository, _ = gitbranch.place(tmp_path / "other")
    (tip,) = gitbranch.write(repository, None, [one()])
    gitbranch.point(repository, "b", tip, None)
    assert git(folder, "rev-parse", "b").decode().strip() == tip
    assert gitbranch.checked_out(repository, "other")


def test_a_folder_with_files_is_no_repository(tmp_path):
    (tmp_path / "x").write_text("x")

    with pytest.raises(GitError, match="is not a git repository"):
        gitbranch.place(tmp_path)
    with pytest.raises(GitError, match="is not a git repository"):
        gitbranch.found(tmp_path)


def test_there_is_no_such_branch(tmp_path):
    repository, _ = gitbranch.place(tmp_path / "r")

    with pytest.raises(GitError, match="there is no branch b"):
        gitbranch.log(repository, "b", None)
