"""What a snapshot keeps comes back, byte for byte; a damaged one says so."""

import pytest

from patchq.errors import PatchqError
from patchq.queue import snapshot


def test_a_snapshot_comes_back_as_it_was_taken(tmp_path):
    files = {"a b": (b"\x00\xff\n", True), "gone": None}

    assert snapshot.load(tmp_path) is None
    snapshot.save(tmp_path, files)

    assert snapshot.load(tmp_path) == files
    assert (snapshot.drop(tmp_path), snapshot.drop(tmp_path)) == (True, False)
    assert snapshot.load(tmp_path) is None


@pytest.mark.parametrize("text", ["", "[]", '{"schema": 2, "files": {}}', '{"schema": 1}'])
def test_a_damaged_one_is_named(tmp_path, text):
    snapshot.save(tmp_path, {})
    place = tmp_path / ".patchq/tree/snapshot.json"
    place.write_text(text)

    with pytest.raises(PatchqError, match=r"snapshot\.json can not be read"):
        snapshot.load(tmp_path)
