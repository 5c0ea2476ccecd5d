"""An edit of queue files is taken back as a whole, whatever ends it."""

import json
import os
import subprocess
import sys

import pytest

from patchq.errors import PatchqError
from patchq.queue import undoing, writing
from patchq.queue.undoing import FOLDER, Undo


@pytest.fixture
def queue(tmp_path):
    (tmp_path / "1.0").mkdir()
    for name in ("series", "a.patch", "b.patch"):
        (tmp_path / "1.0" / name).write_bytes(f"{name}, old\n".encode())
    return tmp_path


def files(queue):
    return {
        str(path.relative_to(queue)): path.read_bytes()
        for path in queue.rglob("*")
        if path.is_file()
    }


def edit(queue, undo):
    """Replace a file twice, make one and take one away."""
    for data in (b"first\n", b"second\n"):
        undo.keep(queue / "1.0/a.patch", data)
        writing.write(queue / "1.0/a.patch", data)
    undo.keep(queue / "1.0/new.patch", b"new\n")
    writing.write(queue / "1.0/new.patch", b"new\n")
    undo.keep(queue / "1.0/b.patch", None)
    (queue / "1.0/b.patch").unlink()


KILLED = """\
import os, sys
from pathlib import Path
from patchq.queue.undoing import Undo
from tests.queue import test_undoing
with Undo(Path(sys.argv[1])) as undo:
    test_undoing.edit(Path(sys.argv[1]), undo)
    os.kill(os.getpid(), 9)
"""


def killed(queue):
    root = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
    done = subprocess.run([sys.executable, "-c", KILLED, queue], cwd=root)
    assert done.returncode == -9


def test_an_edit_that_ends_leaves_nothing_of_its_way_back(queue):
    with Undo(queue) as undo:
        edit(queue, undo)

    assert files(queue) == {
        "1.0/series": b"series, old\n",
        "1.0/a.patch": b"second\n",
        "1.0/new.patch": b"new\n",
    }
    assert not undoing.is_cut_short(queue)
    assert undoing.take_back(queue) == ()


@pytest.mark.parametrize("error", [OSError(28, "full"), KeyboardInterrupt(), ValueError()])
def test_an_edit_that_fails_is_taken_back_at_once(queue, error):
    before = files(queue)

    def failing():
        with Undo(queue) as undo:
            edit(queue, undo)
            raise error

    with pytest.raises(type(error)):
        failing()

    assert files(queue) == before


def test_an_edit_that_is_killed_is_taken_back_later_inode_and_mode_too(queue):
    (queue / "1.0/b.patch").chmod(0o640)
    before, was = files(queue), (queue / "1.0/b.patch").stat()

    killed(queue)
    assert undoing.is_cut_short(queue)
    (note,) = undoing.take_back(queue)

    assert note == f"an edit of the queue in {queue} was cut short; it was taken back"
    assert files(queue) == before
    now = (queue / "1.0/b.patch").stat()
    assert (now.st_ino, now.st_mode) == (was.st_ino, was.st_mode)
    assert not undoing.is_cut_short(queue)


def test_what_somebody_changed_since_stays(queue):
    killed(queue)
    (queue / "1.0/a.patch").write_bytes(b"mine\n")

    notes = undoing.take_back(queue)

    assert notes[1:] == ("1.0/a.patch was changed since, and stays as it is",)
    assert (queue / "1.0/a.patch").read_bytes() == b"mine\n"
    assert (queue / "1.0/b.patch").read_bytes() == b"b.patch, old\n"
    assert not (queue / "1.0/new.patch").exists()


def test_a_list_whose_last_line_is_cut_counts_without_it(queue):
    killed(queue)
    rows = (queue / FOLDER / "list").read_bytes()
    (queue / FOLDER / "list").write_bytes(rows + b'["1.0/ser')

    undoing.take_back(queue)

    assert (queue / "1.0/a.patch").read_bytes() == b"a.patch, old\n"


def test_a_way_back_that_had_not_begun_is_nothing_to_speak_of(queue):
    (queue / FOLDER).mkdir()

    assert undoing.take_back(queue) == ()
    assert not undoing.is_cut_short(queue)


@pytest.mark.parametrize("name", ["../out", "/etc/out", "1.0/../../out", "link/out", 7])
def test_a_list_of_somebody_else_s_leads_out_of_nothing(queue, name):
    outside = queue.parent / f"outside-{queue.name}"
    outside.mkdir()
    (outside / "out").write_bytes(b"new\n")
    (queue / "link").symlink_to(outside)
    (queue / FOLDER).mkdir()
    (queue / FOLDER / "0").write_bytes(b"evil\n")
    digest = "7aa7a5359173d05b63cfd682e3c38487f3cb4f7f1d60659fe59fab1505977d4c"
    (queue / FOLDER / "list").write_text(json.dumps([name, digest, 0]) + "\n")

    undoing.take_back(queue)

    assert (outside / "out").read_bytes() == b"new\n"
    assert not (queue.parent / "out").exists()


def test_a_link_to_a_folder_in_the_place_of_the_way_back_is_not_followed(queue):
    outside = queue.parent / f"other-{queue.name}"
    outside.mkdir()
    (outside / "mine").write_bytes(b"x\n")
    (queue / FOLDER).symlink_to(outside)

    undoing.take_back(queue)

    assert (outside / "mine").read_bytes() == b"x\n"
    assert not undoing.is_cut_short(queue)


def test_what_can_not_be_put_back_is_told_and_tried_again(queue):
    before = files(queue)
    killed(queue)
    (queue / "1.0/a.patch").unlink()
    (queue / "1.0/a.patch").mkdir()

    with pytest.raises(PatchqError, match="can not be taken back"):
        undoing.take_back(queue)
    (queue / "1.0/a.patch").rmdir()
    (queue / "1.0/a.patch").write_bytes(b"second\n")
    undoing.take_back(queue)

    assert files(queue) == before
