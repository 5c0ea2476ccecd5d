"""``hash``: what is not as RECORD says, and what RECORD does not list."""

import os

import pytest

from patchq.agent import protocol, serve


@pytest.fixture
def ask(site):
    """Return what the agent answers about the site."""

    def asked(**more):
        request = {"op": "hash", "distribution": "demo", "target": str(site), "skip": [".so"]}
        answer, blobs = serve.respond({**request, **more}, {})
        return answer["ok"], blobs

    return asked


def digest(path):
    return protocol.sha256(path.read_bytes())


def test_a_pristine_tree_differs_in_nothing_and_record_comes_along(site, ask):
    ok, blobs = ask()

    record = next(site.glob("demo-*.dist-info/RECORD"))
    assert (ok["differs"], ok["added"], ok["more"]) == ({}, {}, 0)
    assert ok["hashed"] > 3
    assert blobs == {ok["record"]: record.read_bytes()}
    assert ask(known=[ok["record"]])[1] == {}


def test_edited_missing_and_added_files_are_named_with_their_digests(site, ask):
    (site / "demo/a.py").write_text("edited\n")
    (site / "demo/b.py").unlink()
    (site / "demo/new").mkdir()
    (site / "demo/new/n.py").write_text("x = 1\n")

    ok, _ = ask()

    assert ok["differs"] == {"demo/a.py": digest(site / "demo/a.py"), "demo/b.py": None}
    assert ok["added"] == {"demo/new/n.py": digest(site / "demo/new/n.py")}


@pytest.mark.parametrize("size", [0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3 << 20])
def test_files_of_any_size_are_hashed_whole(site, ask, size):
    (site / "demo/a.py").write_bytes(b"x" * size)

    assert ask()[0]["differs"] == {"demo/a.py": digest(site / "demo/a.py")}


def test_binaries_and_bytecode_are_left_out(site, ask):
    (site / "demo/fast.so").write_bytes(b"\0")
    (site / "demo/__pycache__").mkdir(exist_ok=True)
    (site / "demo/__pycache__/late.cpython-311.pyc").write_bytes(b"\0")

    assert ask()[0]["added"] == {}


def test_a_pipe_where_a_file_should_be_does_not_hang(site, ask):
    (site / "demo/a.py").unlink()
    os.mkfifo(site / "demo/a.py")
    os.mkfifo(site / "demo/pipe")

    ok, _ = ask()

    assert ok["differs"] == {"demo/a.py": None}
    assert ok["added"] == {"demo/pipe": None}


def test_rows_that_lead_out_of_the_environment_are_not_read(site, ask):
    record = next(site.glob("demo-*.dist-info/RECORD"))
    rows = f"../../etc/passwd,sha256=x,1\n{site}/demo/a.py,sha256=x,1\n"
    record.write_text(record.read_text() + rows)

    assert ask()[0]["differs"] == {}


def test_what_is_not_installed_has_nothing_to_hash(site, ask):
    ok, blobs = ask(distribution="other")

    assert (ok["record"], ok["hashed"], blobs) == (None, 0, {})
