import json
import os
import threading

import pytest

from patchq.queue import verdicts

DECIDES = {
    "before": [("x.py", "file", False, "a")],
    "after": [("x.py", "file", False, "b")],
    "reads": {"y.py": "c", "\udce9.py": None},
    "sketch": "d",
    "release": "1.0",
    "python": "3.11",
}


def test_a_verdict_that_was_kept_is_found_again(tmp_path):
    cache = verdicts.VerdictCache(tmp_path / "new" / "folder")
    name = verdicts.key(**DECIDES)

    assert cache.get(name) is None
    cache.put(name, {"holds": True, "n": [1]})

    assert cache.get(name) == {"holds": True, "n": [1]}
    assert os.listdir(cache.folder) == [f"{name}.json"]


@pytest.mark.parametrize(
    ("what", "other"),
    [
        ("before", [("x.py", "file", True, "a")]),
        ("after", []),
        ("reads", {"y.py": "c"}),
        ("sketch", None),
        ("release", "1.0.1"),
        ("python", "3.12"),
    ],
)
def test_whatever_decides_a_verdict_is_in_its_name(what, other):
    assert verdicts.key(**{**DECIDES, what: other}) != verdicts.key(**DECIDES)


def test_the_order_of_reads_says_nothing():
    turned = dict(reversed(DECIDES["reads"].items()))

    assert verdicts.key(**{**DECIDES, "reads": turned}) == verdicts.key(**DECIDES)


@pytest.mark.parametrize("damage", [b"", b"{", b"[1]", b"\xff"])
def test_a_damaged_verdict_is_none_and_is_kept_anew(tmp_path, damage):
    cache = verdicts.VerdictCache(tmp_path)
    (tmp_path / "k.json").write_bytes(damage)

    assert cache.get("k") is None
    cache.put("k", {"a": 1})

    assert cache.get("k") == {"a": 1}


def test_a_folder_that_cannot_be_written_is_no_failure(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    cache = verdicts.VerdictCache(tmp_path / "file" / "below")

    cache.put("k", {"a": 1})

    assert cache.get("k") is None


def test_a_name_that_is_taken_by_a_folder_leaves_nothing_behind(tmp_path):
    (tmp_path / "k.json").mkdir()
    cache = verdicts.VerdictCache(tmp_path)

    cache.put("k", {"a": 1})

    assert os.listdir(tmp_path) == ["k.json"]


def test_a_reader_sees_a_whole_verdict_while_others_write_it(tmp_path):
    cache = verdicts.VerdictCache(tmp_path)
    values = [{"n": number, "long": "x" * 20_000} for number in range(4)]
    cache.put("k", values[0])
    writers = [
        threading.Thread(target=lambda value=value: [cache.put("k", value) for _ in range(10)])
        for value in values
    ]
    for writer in writers:
        writer.start()

    seen = [cache.get("k") for _ in range(50)]
    for writer in writers:
        writer.join()

    assert all(value in values for value in seen)
    assert json.loads((tmp_path / "k.json").read_bytes()) in values
