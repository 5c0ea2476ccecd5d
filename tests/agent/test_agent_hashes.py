"""``hash``: what is not as RECORD says, and what RECORD does not list."""

import os
import py_compile

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


def digest_of(path):
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

    assert ok["differs"] == {"demo/a.py": digest_of(site / "demo/a.py"), "demo/b.py": None}
    assert ok["added"] == {"demo/new/n.py": digest_of(site / "demo/new/n.py")}


@pytest.mark.parametrize("size", [0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3 << 20])
def test_files_of_any_size_are_hashed_whole(site, ask, size):
    (site / "demo/a.py").write_bytes(b"x" * size)

    assert ask()[0]["differs"] == {"demo/a.py": digest_of(site / "demo/a.py")}


def compiled(path, text, mode=py_compile.PycInvalidationMode.TIMESTAMP):
    """Write a compiled file of other code than its source."""
    source = path.parent / "elsewhere.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    source.write_text(text)
    py_compile.compile(str(source), cfile=str(path), invalidation_mode=mode, doraise=True)
    source.unlink()


def test_data_that_is_no_text_and_harmless_bytecode_are_left_out(site, ask):
    (site / "demo/photo.png").write_bytes(b"\0")
    compiled(site / "demo/__pycache__/a.cpython-311.pyc", "x = 1\n")

    assert ask(skip=[".png", ".pyc"])[0]["added"] == {}


def test_code_in_the_place_of_a_module_is_added_whoever_claims_it(site, ask):
    shadows = ["demo/a.abi3.so", "demo/a/__init__.pyc", "demo/b/__init__.py"]
    compiled(site / shadows[1], "x = 1\n")
    (site / "demo/b").mkdir()
    (site / shadows[2]).write_text("x = 1\n")
    (site / shadows[0]).write_bytes(b"\x7fELF")
    foreign = site / "other-1.dist-info"
    foreign.mkdir()
    (foreign / "METADATA").write_text("Name: other\nVersion: 1\n")
    (foreign / "RECORD").write_text("".join(f"{path},,\n" for path in shadows))

    assert list(ask(skip=[".so", ".pyc"])[0]["added"]) == shadows


def test_entry_points_that_no_row_lists_are_added(site, ask):
    info = next(site.glob("demo-*.dist-info"))
    (info / "entry_points.txt").write_text("[vllm.general_plugins]\nx = evil:y\n")

    assert list(ask()[0]["added"]) == [f"{info.name}/entry_points.txt"]


def test_bytecode_that_runs_whatever_the_source_says_is_added(site, ask):
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    compiled(site / "demo/__pycache__/a.cpython-311.pyc", "x = 1\n", mode)
    compiled(site / "demo/legacy.pyc", "x = 1\n")
    added = ["demo/__pycache__/a.cpython-311.pyc", "demo/legacy.pyc"]

    assert list(ask(skip=[".pyc"])[0]["added"]) == added


@pytest.mark.parametrize("digest", ["", "md5=x", "sha512=AAAA"])
def test_a_row_without_a_sha256_is_told_with_what_is_there(site, ask, digest):
    record = next(site.glob("demo-*.dist-info/RECORD"))
    rows = [row for row in record.read_text().splitlines() if not row.startswith("demo/a.py,")]
    record.write_text("\n".join([*rows, f"demo/a.py,{digest},"]) + "\n")

    ok, _ = ask()

    assert ok["blank"] == {"demo/a.py": digest_of(site / "demo/a.py")}
    assert ok["differs"] == ok["added"] == {}


def test_how_many_files_were_not_named_is_told(site, ask, monkeypatch):
    monkeypatch.setattr("patchq.agent.hashes._MOST", 1)
    (site / "demo/a.py").write_text("edited\n")
    (site / "demo/b.py").write_text("edited\n")

    ok, _ = ask()

    assert (len(ok["differs"]), ok["more"]) == (1, 1)


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
