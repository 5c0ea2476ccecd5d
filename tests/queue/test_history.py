"""The locks that a queue's commits had."""

import subprocess

import pytest

from patchq.model import FileState, Lock, LockedPatch, PathChange, sha256
from patchq.queue import lock, store
from patchq.queue.history import History


def git(folder, *words):
    identity = "-c user.name=A -c user.email=a@example.org -c commit.gpgsign=false".split()
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


def write(folder, text):
    after = FileState(sha256(text.encode()))
    patch = LockedPatch(
        "a.patch", "", sha256(text.encode()), None, (PathChange("p/a.py", FileState(None), after),)
    )
    (folder / "1.0/series.lock").write_bytes(lock.format(Lock("demo", "1.0", "t", (patch,))))
    (folder / "1.0/a.patch").write_text(text)


@pytest.fixture
def queue(tmp_path):
    """A queue below a repository's top, with three commits that touched it and one beside."""
    folder = tmp_path / "my [repo]" / "queues" / "q"
    (folder / "1.0").mkdir(parents=True)
    (folder / "queue.toml").write_text('distribution = "demo"\nsummary = "s"\n')
    (folder / "1.0/series").write_text("a.patch\n")
    git(folder, "init", "-q", str(tmp_path / "my [repo]"))
    for text in ("one", "two", "three"):
        write(folder, text)
        git(folder, "add", "--all", ".")
        git(folder, "commit", "-qm", text)
    (tmp_path / "my [repo]/beside").write_text("x")
    git(folder.parents[1], "add", "beside")
    git(folder, "commit", "-qm", "beside")
    return folder


def texts(past):
    return [(one.back, one.lock.patches[0].patch) for one in past]


def test_the_past_is_newest_first_and_counts_commits_of_the_folder(queue):
    past = History(store.open(queue)).past("1.0")

    assert texts(past) == [(0, sha256(b"three")), (1, sha256(b"two")), (2, sha256(b"one"))]


def test_a_commit_that_leaves_the_lock_is_counted_and_not_listed_twice(queue):
    (queue / "queue.toml").write_text('distribution = "demo"\nsummary = "other"\n')
    git(queue, "commit", "-qam", "words")

    past = History(store.open(queue)).past("1.0")

    assert [back for back, _ in texts(past)] == [0, 2, 3]


def test_a_lock_with_a_merge_conflict_is_left_out(queue):
    path = queue / "1.0/series.lock"
    path.write_text("<<<<<<< ours\n" + path.read_text())
    git(queue, "commit", "-qam", "conflict")

    assert [back for back, _ in texts(History(store.open(queue)).past("1.0"))] == [1, 2, 3]


def test_another_release_and_no_repository_have_no_past(queue, tmp_path):
    assert History(store.open(queue)).past("2.0") == ()
    bare = tmp_path / "bare"
    (bare / "1.0").mkdir(parents=True)
    (bare / "queue.toml").write_text('distribution = "demo"\nsummary = "s"\n')

    assert History(store.open(bare)).past("1.0") == ()


def test_before_the_first_commit_there_is_no_past(tmp_path):
    (tmp_path / "queue.toml").write_text('distribution = "demo"\nsummary = "s"\n')
    git(tmp_path, "init", "-q")

    assert History(store.open(tmp_path)).past("1.0") == ()


def test_a_work_tree_of_its_own_has_the_past_too(queue, tmp_path):
    git(queue, "worktree", "add", "-q", "--detach", str(tmp_path / "second"))

    past = History(store.open(tmp_path / "second/queues/q")).past("1.0")

    assert [back for back, _ in texts(past)] == [0, 1, 2]


def test_an_edit_of_a_patch_is_told_and_one_of_a_sketch_is_not(queue):
    (queue / "post").mkdir()
    (queue / "post/a.pyi").write_text("# in p/a.py\nx = 1\n")
    untouched = History(store.open(queue)).edited("1.0")
    (queue / "1.0/a.patch").write_text("edited")
    edited = History(store.open(queue)).edited("1.0")
    (queue / "1.0/a.patch").unlink()

    assert untouched is None
    assert "a.patch was edited" in edited
    assert History(store.open(queue)).edited("1.0") == "a.patch is missing"


def test_dirty_is_the_queues_own_folder(queue):
    clean = History(store.open(queue)).is_dirty()
    (queue / "1.0/a.patch").write_text("edited")

    assert not clean
    assert History(store.open(queue)).is_dirty()
