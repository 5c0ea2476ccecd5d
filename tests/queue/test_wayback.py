"""What is said of the way back works when it is typed."""

import subprocess

import pytest

from patchq.queue import editing, series, store, wayback

OLD = {"a.patch": b"old a\n", "b.patch": b"old b\n", "series": b"a.patch\nb.patch\n"}


@pytest.fixture
def queue(tmp_path):
    folder = tmp_path / "my queue"
    (folder / "1.0").mkdir(parents=True)
    (folder / "queue.toml").write_text('distribution = "demo"\nsummary = "x"\n')
    for name, data in OLD.items():
        (folder / "1.0" / name).write_bytes(data)
    return store.open(folder)


def kept(queue):
    for words in (
        ("init", "-q"),
        ("add", "."),
        ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"),
    ):
        subprocess.run(["git", "-C", queue.folder, *words], check=True)


def edited(queue, files, listed=b"a.patch\n", backup=False):
    named = {f"1.0/{name}": data for name, data in files.items()}
    return editing.Edit(queue, "1.0", series.parse(listed), named, backup)


def now(queue):
    return {path.name: path.read_bytes() for path in (queue.folder / "1.0").iterdir()}


def typed(said):
    command = said.removeprefix("To take it back: ")
    subprocess.run(command, shell=True, check=True, capture_output=True)


def test_git_gives_back_what_was_changed_and_what_is_new_goes(queue):
    kept(queue)
    edit = edited(queue, {"a.patch": b"new a\n", "b.patch": None, "c.patch": b"c\n"})

    (said,) = wayback.told(edit, locked=False)
    editing.write(edit, None)

    assert now(queue) == {"a.patch": b"new a\n", "c.patch": b"c\n", "series": b"a.patch\n"}
    typed(said)
    assert now(queue) == OLD


def test_a_backup_is_moved_back_where_git_has_not_seen_the_file(queue):
    edit = edited(queue, {"a.patch": b"new\n"}, OLD["series"], backup=True)

    (said,) = wayback.told(edit, locked=False)
    editing.write(edit, None)

    typed(said)
    assert now(queue) == OLD


def test_a_file_that_was_changed_after_git_saw_it_is_not_gits_to_give(queue):
    kept(queue)
    (queue.folder / "1.0/a.patch").write_bytes(b"mine\n")
    edit = edited(queue, {"a.patch": b"new\n"}, OLD["series"])

    (said,) = wayback.told(edit)

    assert said.startswith("The old text of 1.0/a.patch is kept nowhere: git has not seen it")


def test_another_verb_is_said_where_git_does_not(queue):
    edit = edited(queue, {}, b"b.patch\na.patch\n")

    assert wayback.told(edit, "patchq float a") == ("To take it back: patchq float a",)
    kept(queue)
    (said,) = wayback.told(edit, "patchq float a")
    assert said.startswith("To take it back: patchq float a; the files alone: git -C ")


def test_an_order_that_nobody_keeps_is_said(queue):
    edit = edited(queue, {}, b"b.patch\na.patch\n")

    assert wayback.told(edit) == ("The series was: a.patch, b.patch",)


def test_there_is_nothing_to_say_of_nothing(queue):
    assert wayback.told(edited(queue, {"a.patch": OLD["a.patch"]}, OLD["series"])) == ()
    assert wayback.told(edited(queue, {"a.patch": b"x\n"}, OLD["series"]), locked=False) == ()
