"""RECORD's rows as bytes."""

import pytest

from patchq.agent import record

DIGEST = "00" * 32
RECORD = (
    b"demo/a.py,sha256=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA,3\r\n"
    b'"demo/b,""c"".py",,\r\n'
    b"demo/d.py,,\r\n"
)


def test_a_digest_is_read_as_hexadecimal():
    assert record.digest(RECORD, "demo/a.py") == DIGEST
    assert record.digest(RECORD, "demo/d.py") is None
    assert record.digest(RECORD, "a.py") is None


def test_a_row_that_is_written_is_read_back():
    row = record.row("demo/a.py", DIGEST, 3)

    assert RECORD.startswith(row + b"\r\n")
    assert record.find(RECORD, "demo/a.py") == row


def test_a_quoted_name_is_found():
    assert record.find(RECORD, 'demo/b,"c".py') == b'"demo/b,""c"".py",,'


def test_a_name_that_is_not_utf8_keeps_its_bytes():
    path = b"demo/\xe9.py".decode("utf-8", "surrogateescape")

    assert record.row(path) == b"demo/\xe9.py,,"


def test_a_changed_row_keeps_its_place_and_a_new_one_goes_last():
    rows = {"demo/a.py": b"demo/a.py,,", "new.py": b"new.py,,"}

    lines = record.update(RECORD, rows).split(b"\r\n")

    assert lines == [b"demo/a.py,,", *RECORD.split(b"\r\n")[1:-1], b"new.py,,", b""]


@pytest.mark.parametrize("rows", [{}, {"absent.py": None}])
def test_nothing_to_do_gives_the_same_bytes(rows):
    assert record.update(RECORD, rows) == RECORD


def test_a_removed_row_takes_its_line_along():
    assert record.update(RECORD, {"demo/a.py": None}) == RECORD.partition(b"\n")[2]


def test_a_row_put_back_gives_the_same_bytes():
    changed = record.update(RECORD, {"demo/d.py": record.row("demo/d.py", DIGEST, 9)})

    assert changed != RECORD
    assert record.update(changed, {"demo/d.py": b"demo/d.py,,"}) == RECORD


def test_a_missing_last_newline_is_given_only_where_a_row_follows():
    bare = RECORD[:-2]

    assert record.update(bare, {"demo/a.py": b"demo/a.py,,"}).endswith(b"demo/d.py,,")
    assert record.update(bare, {"n.py": b"n.py,,"}).endswith(b"demo/d.py,,\r\nn.py,,\r\n")
