import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.engine import diff
from patchq.errors import UsageError
from patchq.model import sha256
from patchq.queue import patchfile

BODY = diff.unified(b"1\n", b"2\n", "x")
PART = st.sampled_from(
    [b"Bug: #1\n", b" more\n", b"\n", b"free\n", b"---\n", b"\r\n", b"caf\xe9: y"]
)


def test_a_patch_is_its_bytes_and_what_they_say(tmp_path):
    (tmp_path / "a.patch").write_bytes(b"Bug: caf\xe9\n" + BODY)

    patch = patchfile.load(
        tmp_path / "a.patch", strip=1, reverse=True, sketch=b"x", sketch_name="post/a.pyi"
    )

    assert (patch.name, patch.stem, patch.paths) == ("a.patch", "a", ("x",))
    assert (patch.text, patch.header) == (b"Bug: caf\xe9\n" + BODY, b"Bug: caf\xe9\n")
    assert (patch.reverse, patch.sketch, patch.sketch_name) == (True, b"x", "post/a.pyi")


@given(st.lists(PART).map(b"".join))
def test_the_header_is_kept_byte_for_byte_whatever_it_says(header):
    text = (header if header.endswith(b"\n") or not header else header + b"\n") + BODY

    kept, diffs = diff.parse(text, name="a.patch")

    assert kept + BODY == text
    assert diffs
    assert isinstance(patchfile.fields(kept), dict)


def test_the_fields_of_dep_3_are_read():
    header = (
        b"Description: short\r\n long\n .\n  indented\nORIGIN: backport, https://x/1\nBug: #1\n"
        b"Bug: #2\nBug-Debian:\n https://b\nForwarded: no\n\nMore text: with a colon inside.\n"
        b"Reviewed-by: not here, this is text\n\nLast-Update: 2026-11-30\n---\nAuthor: too late\n"
    )

    assert patchfile.fields(header) == {
        "Description": "short\nlong\n\n indented\nMore text: with a colon inside.\n"
        "Reviewed-by: not here, this is text",
        "Origin": "backport, https://x/1",
        "Bug": "#1\n#2",
        "Bug-Debian": "https://b",
        "Forwarded": "no",
        "Last-Update": "2026-11-30",
    }


def test_a_header_of_gits_mail_is_read():
    header = (
        b"From 1234567 Mon Sep 17 00:00:00 2001\nFrom: A <a@x>\nDate: today\n"
        b"Subject: [PATCH] caf\xe9\n  goes on\n\nBody of\nthe mail\n---\n x | 2 +-\n"
    )

    assert patchfile.fields(header) == {
        "Author": "A <a@x>",
        "Date": "today",
        "Description": "[PATCH] caf\udce9\n goes on\nBody of\nthe mail",
    }


def test_a_missing_patch_is_named(tmp_path):
    with pytest.raises(UsageError) as caught:
        patchfile.load(tmp_path / "a.patch")

    assert "a.patch" in caught.value.what
    assert str(tmp_path) in caught.value.why


def test_a_patch_is_known_by_all_its_bytes(tmp_path):
    (tmp_path / "a.patch").write_bytes(b"x\n" + BODY + b"-- \n2.39\n")

    assert sha256(patchfile.load(tmp_path / "a.patch").text) == sha256(
        (tmp_path / "a.patch").read_bytes()
    )
