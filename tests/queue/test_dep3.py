"""https://dep-team.pages.debian.net/deps/dep3/"""

import datetime

import pytest

from patchq.queue import dep3

# The page's own examples, shortened.
GOOD = {
    "upstream's": (
        b"From: Ulrich Drepper <drepper@redhat.com>\nSubject: Fix regex problems\n\n"
        b"# commit bdb56bac\nThat: is free text\nand so is this\n"
    ),
    "with an author": (
        b"Description: Use FHS compliant paths by default\n Upstream is not interested.\n .\n"
        b" It is the standard.\nForwarded: http://lists.example.com/1234.html\n"
        b"Author: John Doe <john@example.com>\nLast-Update: 2006-12-21\n---\n"
    ),
    "a vendor's": (
        b"Description: Fix widget frobnication speeds\n"
        b"Bug: http://example.com/bug/98765\nBug-Debian: http://bugs.example.com/123456\n"
        b"Origin: vendor, http://example.com/x.patch\nForwarded: not-needed\n\n"
    ),
    "unknown fields": b"Description: a\nAuthor: b <b@c>\nX-Mine: yes\nCo-authored-by: c <c@d>\n",
    "git's mail": (
        b"From 0123456789abcdef0123456789abcdef01234567 Mon Sep 17 00:00:00 2001\n"
        b"From: A <a@b.c>\nDate: Mon, 2 Mar 2020 10:00:00 +0100\nSubject: [PATCH] Fix it\n\n"
        b"Text.\n---\n x | 2 +-\nnonsense: below\n"
    ),
}


@pytest.mark.parametrize("case", GOOD)
def test_good_headers(case):
    assert dep3.flaws(GOOD[case]) == ()


def test_an_empty_header_lacks_what_is_required():
    assert [(one.line, one.what) for one in dep3.flaws(b"")] == [
        (1, "no Description"),
        (1, "no Origin, and no Author"),
    ]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"Last-Update: yesterday", "it must be a date as YYYY-MM-DD"),
        (b"Last-Update: 2026-02-30", "it must be a date as YYYY-MM-DD"),
        (b"Bug: #123", "it must be the URL of a report"),
        (b"Bug-Debian: 123456", "it must be the URL of a report"),
        (b"Forwarded: none", "all but 'no' and 'not-needed' says that it was forwarded"),
        (b"Forwarded: No", "all but 'no' and 'not-needed' says that it was forwarded"),
        (b"Origin: upstrem, http://x", "the word before the comma is one of upstream, backport,"),
        (b"Origin: upstream", "it does not say where it comes from"),
        (b"Forwarded:", "it has no value"),
        (b"Forwareded: no", "DEP-3 has no such field"),
        (b"no field at all", "a field goes on in lines that begin with a blank"),
    ],
)
def test_flaws_name_their_line(line, why):
    (flaw,) = dep3.flaws(b"Description: a\nAuthor: b <b@c>\n" + line + b"\n")

    assert flaw.line == 3
    assert flaw.why.startswith(why)
    assert flaw.mend


def test_a_description_begins_on_its_own_line():
    (flaw,) = dep3.flaws(b"Author: b <b@c>\nDescription:\n all below\n")

    assert (flaw.line, flaw.why) == (2, "its first line is the short description")


def test_a_template_that_is_not_filled_in_is_flawed_and_a_filled_one_is_good():
    text = dep3.template("A <a@b.c>", datetime.date(2026, 1, 2))
    filled = text.replace(b"<what the patch does, in one line>", b"Fix it")
    filled = filled.replace(b"<no|not-needed|URL>", b"no")
    rows = [row for row in filled.splitlines(True) if not row.startswith((b"Origin", b"Bug"))]

    assert [one.line for one in dep3.flaws(text)] == [1, 3, 5, 6]
    assert dep3.flaws(b"".join(rows)) == ()
