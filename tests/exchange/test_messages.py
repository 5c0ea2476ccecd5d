import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.exchange import messages

DEP3 = b"""\
Description: Use pi
 Three is not enough.
 .
 It never was.
Author: A. Body <a@example.org>
Bug-Debian: https://bugs.example.org/1
Forwarded: not-needed
Last-Update: 2026-01-02

Free text,
in a paragraph.

"""
MAIL = b"""\
From 0123456789abcdef0123456789abcdef01234567 Mon Sep 17 00:00:00 2001
From: =?utf-8?q?J=C3=B6rg?= <j@example.org>
Date: Mon, 2 Mar 2020 10:00:00 +0100
Subject: [PATCH 3/7] Use pi

Three is not enough.

Signed-off-by: J <j@example.org>
---
 x | 2 +-
"""


def test_dep3_is_subject_body_and_trailers():
    found = messages.of(DEP3, "10-pi")

    assert found.text == (
        "Use pi\n\nThree is not enough.\n\nIt never was.\n\nFree text,\nin a paragraph.\n\n"
        "Bug-Debian: https://bugs.example.org/1\nForwarded: not-needed\nLast-Update: 2026-01-02\n"
    )
    assert (found.author, found.raw_date) == ("A. Body <a@example.org>", None)
    assert found.commit("p.patch").endswith(b"Last-Update: 2026-01-02\nPatchq-Patch: p.patch\n")


def test_a_mail_is_what_git_am_makes_of_it():
    found = messages.of(MAIL, "10-pi")

    assert found.text == "Use pi\n\nThree is not enough.\n\nSigned-off-by: J <j@example.org>\n"
    assert found.raw_date == "1583139600 +0100"
    assert found.mail


@pytest.mark.parametrize("header", [b"", b"\n\n", b"---\n"])
def test_what_says_nothing_is_called_by_its_name(header):
    assert messages.of(header, "10-pi").commit("10-pi.patch") == (
        b"10-pi\n\nPatchq-Patch: 10-pi.patch\n"
    )


@pytest.mark.parametrize("header", [DEP3, MAIL, b"Free text\n\nand more\n", b""])
def test_what_was_edited_says_the_new_words_in_the_old_form(header):
    old = messages.of(header, "x")
    text = old.commit("x.patch").replace(old.subject.encode(), b"Other words", 1)

    new = messages.read(text, old.author, old.date, old)
    again = messages.of(messages.header(new), "x")

    assert again.subject == "Other words"
    assert (again.body, again.fields, again.author) == (old.body, old.fields, old.author)
    assert (again.mail, again.ruled) == (old.mail, old.ruled)


def test_signed_off_by_stays_in_the_text():
    new = messages.read(b"A\n\nb\n\nSigned-off-by: c <c@d>\nPatchq-Patch: x\n", "", "", None)

    assert messages.header(new) == b"Description: A\n b\n .\n Signed-off-by: c <c@d>\n\n"


def test_gits_cleaning_is_no_edit():
    one = b"A\n\nb  \n# gone\n\n\nc\n"

    assert messages.same(one, b"A\n\nb\n\nc\n\n")
    assert not messages.same(one, b"A\n\nb\n\nd\n")


def test_squashed_commits_name_all_their_patches():
    assert messages.names(b"A\n\nPatchq-Patch: a\n\nB\n\nPatchq-Patch: b\n") == ("a", "b")


letters = st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zs", "Zl", "Zp"))
words = st.text(st.one_of(letters, st.just(" "), st.just(":")), max_size=20)
rows = st.lists(words, min_size=1, max_size=6)


@given(rows, st.sampled_from(["", "A <a@b.c>"]), st.booleans())
def test_a_header_that_was_written_says_what_the_commit_said(said, author, mail):
    """Written from a commit's message, exported again: the commit would be the same."""
    form = messages.Message("", "", "", "", mail=mail)
    message = messages.read("\n".join(said).encode(), author, "", form)
    if not message.subject.strip():
        return

    again = messages.of(messages.header(message), "x")

    assert messages.same(again.commit("x"), message.commit("x"))
