"""git behind its one door."""

import os
import shutil
import subprocess

import pytest

from patchq import git, gitprocess
from patchq.releases import trees


def run(folder, *arguments):
    identity = [
        "-c",
        "user.name=A",
        "-c",
        "user.email=a@example.org",
        "-c",
        "commit.gpgsign=false",
    ]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "repository"
    (folder / "queue").mkdir(parents=True)
    (folder / "queue" / "series").write_text("a.patch\n")
    run(folder, "init", "-q")
    return folder


@pytest.fixture
def committed(repository):
    run(repository, "add", ".")
    run(repository, "commit", "-qm", "first")
    return repository


def commit_of(folder):
    said = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True)
    return said.stdout.strip()


def test_a_clean_folder_has_its_commit(committed):
    assert git.head(committed / "queue") == (commit_of(committed), False)


def test_a_change_in_the_folder_makes_it_dirty_and_one_beside_it_does_not(committed):
    (committed / "beside").write_text("x")
    beside = git.head(committed / "queue")
    (committed / "queue" / "new.patch").write_text("x")

    assert beside == (commit_of(committed), False)
    assert git.head(committed / "queue") == (commit_of(committed), True)


def test_before_the_first_commit_there_is_none(repository):
    assert git.head(repository / "queue") == (None, True)


def test_without_a_repository_there_is_no_commit(tmp_path):
    assert git.head(tmp_path) == (None, False)


def test_what_only_looks_like_a_repository_is_none(tmp_path):
    (tmp_path / ".git").mkdir()

    assert git.head(tmp_path) == (None, False)


def test_a_folder_that_the_repository_ignores_is_not_its(committed):
    (committed / ".gitignore").write_text("venv/\n")
    (committed / "venv" / "queue").mkdir(parents=True)
    (committed / "venv" / "queue" / "series").write_text("")

    assert git.head(committed / "venv" / "queue") == (None, False)


def test_a_repository_that_a_hook_runs_for_does_not_stand_in(committed, tmp_path, monkeypatch):
    other = tmp_path / "other"
    other.mkdir()
    run(other, "init", "-q")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))

    found = git.head(committed / "queue")

    monkeypatch.delenv("GIT_DIR")
    monkeypatch.delenv("GIT_WORK_TREE")
    assert found == (commit_of(committed), False)


def test_a_repository_that_git_cannot_read_is_an_error_in_three_parts(committed):
    (committed / ".git" / "index").write_bytes(b"damaged")

    with pytest.raises(git.GitError, match="cannot say what state") as caught:
        git.head(committed / "queue")

    assert "index" in caught.value.why
    assert caught.value.mend.startswith("git -C ")


def test_no_variable_of_gits_and_no_file_of_the_users_reaches_the_store():
    given = {"GIT_DIR": "/x", "GIT_CONFIG_COUNT": "1", "PATH": "/bin", "HOME": "/home/me"}

    kept = gitprocess.isolated(given)

    assert kept["PATH"] == "/bin"
    assert not {"GIT_DIR", "GIT_CONFIG_COUNT"} & set(kept)
    assert kept["GIT_CONFIG_GLOBAL"] == os.devnull


def test_objects_are_read_one_by_one_and_what_is_not_there_is_none(tmp_path):
    git.create(tmp_path / "bare")
    (made,) = git.commit(tmp_path / "bare", [git.Snapshot([("a", b"data\n", True)], "m\n")])

    with git.Batch(tmp_path / "bare") as batch:
        tree = batch.read(f"{made}^{{tree}}")
        mode, blob = trees.entries(tree.data)["a"]
        assert (mode, batch.read(blob).data) == (0o100755, b"data\n")
        assert [batch.read(name) for name in ("0" * 40, "nothing", "", "a\nb", "x y")] == [
            None
        ] * 5
        assert batch.read(made).kind == "commit"


def test_a_commit_is_named_by_nothing_until_it_is_pointed_at(tmp_path):
    git.create(tmp_path / "bare")
    (made,) = git.commit(tmp_path / "bare", [git.Snapshot([("a", b"", False)], "m\n")])
    before = git.references(tmp_path / "bare", "refs/")

    git.point(tmp_path / "bare", "refs/tags/x", made)

    assert (before, git.references(tmp_path / "bare", "refs/")) == ((), ("tags/x",))


def test_a_command_that_fails_says_what_git_said(tmp_path):
    with pytest.raises(git.GitError, match="git for-each-ref failed") as caught:
        git.references(tmp_path / "nothing", "refs/")
    assert "not a git repository" in caught.value.why

    with pytest.raises(git.GitError), git.Batch(tmp_path / "nothing") as batch:
        batch.read("x")
    with pytest.raises(git.GitError, match="fast-import"):
        git.commit(tmp_path / "nothing", [git.Snapshot([("a", b"x" * 500000, False)], "m\n")])


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Put a folder of its own on PATH, and forget which git was found."""
    monkeypatch.setenv("PATH", str(tmp_path))
    git.check.cache_clear()
    yield tmp_path
    git.check.cache_clear()


def test_no_git_is_an_error_in_three_parts(programs):
    with pytest.raises(git.GitError, match="git is not there") as caught:
        git.create(programs / "bare")

    assert "install git" in caught.value.mend


@pytest.mark.parametrize("said", ["git version 2.37.9", "what?"])
def test_an_old_git_is_refused_with_its_version(programs, said):
    (programs / "git").write_text(f"#!/bin/sh\necho '{said}'\n")
    (programs / "git").chmod(0o755)

    with pytest.raises(git.GitError, match="too old") as caught:
        git.create(programs / "bare")

    assert said in caught.value.why
    assert "2.38" in caught.value.why


@pytest.mark.slow
@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a repository to somebody else")
def test_another_users_repository_runs_nothing_of_his(tmp_path):
    folder = tmp_path / "theirs"
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    hook, seen = tmp_path / "hook", tmp_path / "seen"
    hook.write_text(f"#!/bin/sh\ntouch {seen}\n")
    hook.chmod(0o755)
    subprocess.run(["git", "-C", str(folder), "config", "core.fsmonitor", str(hook)], check=True)
    (folder / "queue.toml").write_text("")
    shutil.chown(folder, "nobody")
    shutil.chown(folder / ".git", "nobody")

    assert git.head(folder) == (None, False)
    assert not seen.exists()


def test_a_monitor_of_ones_own_repository_is_not_started_either(tmp_path):
    folder = tmp_path / "mine"
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    hook, seen = tmp_path / "hook", tmp_path / "seen"
    hook.write_text(f"#!/bin/sh\ntouch {seen}\n")
    hook.chmod(0o755)
    subprocess.run(["git", "-C", str(folder), "config", "core.fsmonitor", str(hook)], check=True)
    (folder / "queue.toml").write_text("")

    assert git.head(folder) == (None, True)
    assert not seen.exists()
