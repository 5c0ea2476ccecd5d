"""A file for an answer: refused before the work, written whole or not at all."""

import os
import resource

import pytest

from patchq.cli import destination
from patchq.errors import PatchqError, UsageError


@pytest.mark.parametrize(
    ("name", "why"), [("", "not a file"), ("none/page.html", "no folder"), ("fifo", "not a file")]
)
def test_a_place_that_cannot_hold_a_page_is_refused(tmp_path, name, why):
    os.mkfifo(tmp_path / "fifo")

    with pytest.raises(UsageError, match="cannot be written") as caught:
        destination.place(str(tmp_path / name), "say it")

    assert why in caught.value.why
    assert caught.value.mend == "say it"


def test_what_cannot_be_written_leaves_what_was_there(tmp_path):
    path = tmp_path / "page.html"
    path.write_text("old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        with pytest.raises(PatchqError, match="could not be written") as caught:
            destination.write(path, "x" * 100)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert path.read_text() == "old"
    assert caught.value.why == "File too large"
