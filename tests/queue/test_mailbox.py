"""Mails, held against git's own reading of them."""

import base64
import quopri

import pytest

from patchq.queue import mailbox
from tests.engine import corpus

DIFF = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n"
FROM = b"From 0123456789012345678901234567890123456789 Mon Sep 17 00:00:00 2001\n"


def mail(subject, body, *, fields=b"", start=FROM):
    head = b"From: A U Thor <a@example.org>\nDate: Tue, 1 Dec 2026 04:00:00 +0000\n"
    return start + head + b"Subject: " + subject + b"\n" + fields + b"\n" + body


def one(data):
    (found,) = mailbox.mails(data)
    return found


def gits(data, folder):
    """Return what git-mailinfo(1) makes of one mail: fields, message, patch."""
    said = corpus.git(folder, "mailinfo", str(folder / "msg"), str(folder / "patch"), stdin=data)
    fields = dict(line.split(": ", 1) for line in said.decode().splitlines() if ": " in line)
    return fields, (folder / "msg").read_bytes(), (folder / "patch").read_bytes()


SUBJECTS = [
    b"[PATCH] fix it",
    b"[PATCH v2 3/7] net: fix it",
    b"Re: [RFC][PATCH 1/2] fix: [really] it",
    b"[PATCH] a very long subject that is\n folded by the mail program",
    b"=?UTF-8?q?[PATCH]_caf=C3=A9?=",
    b"=?utf-8?B?W1BBVENIIDAyLzEwXSDDpMO2w7w=?=",
    b"=?ISO-8859-1?q?caf=E9_one?= =?UTF-8?q?_=C3=A9two?=",
]
BODIES = [
    b"why\n\nmore\n---\n x | 2 +-\n\n" + DIFF + b"-- \n2.39.5\n\n",
    b"why\n" + DIFF,
    DIFF,
    b"From: Other <o@example.org>\n\nwhy\n---\n" + DIFF,
    b"Subject: another subject\nDate: Mon, 30 Nov 2026 00:00:00 +0000\n\nwhy\n---\n" + DIFF,
    b"\n\nwhy --- dashes\n --- not here\n---\n---\n" + DIFF,
    b"caf\xc3\xa9 ole\n---\n" + DIFF.replace(b"+2", b"+\xff\xfe"),
    b"a\n\nSigned-off-by: A <a@example.org>\n---\nnotes below\n" + DIFF,
]


@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.parametrize("body", BODIES)
def test_a_mail_is_read_as_git_mailinfo_reads_it(subject, body, tmp_path):
    fields = b"MIME-Version: 1.0\nContent-Type: text/plain; charset=UTF-8\n"
    fields += b"Content-Transfer-Encoding: 8bit\n"
    data = mail(subject, body, fields=fields)

    ours = one(data)
    theirs, message, patch = gits(data, tmp_path)

    assert ours.subject == theirs["Subject"]
    assert ours.sender == f"{theirs['Author']} <{theirs['Email']}>"
    assert ours.date == theirs["Date"].strip()
    assert ours.message.encode() == message.strip()
    assert b"".join(ours.rows) == patch


@pytest.mark.parametrize("ends", [b"\n", b"\r\n"])
@pytest.mark.parametrize("coding", ["base64", "quoted-printable"])
def test_an_encoded_mail_is_decoded_as_git_does_it(coding, ends, tmp_path):
    body = "Füße\n---\n".encode("latin-1") + DIFF
    coded = base64.encodebytes(body) if coding == "base64" else quopri.encodestring(body)
    fields = b"MIME-Version: 1.0\nContent-Type: text/plain; charset=ISO-8859-1\n"
    fields += b"Content-Transfer-Encoding: %s\n" % coding.encode()
    data = mail(b"[PATCH] x", coded, fields=fields).replace(b"\n", ends)

    ours = one(data)

    assert ours.message == "Füße"
    assert b"".join(ours.rows) == b"---\n" + DIFF
    if ends == b"\n":
        _, message, patch = gits(data, tmp_path)
        assert (message.strip(), patch) == (ours.message.encode(), b"".join(ours.rows))


def test_the_text_and_the_attached_patch_of_a_multipart_mail_are_read_and_html_is_not():
    parts = [
        (b"text/plain; charset=utf-8", b"why\n"),
        (b"text/html", b"<p>why\n---\n</p>\n"),
        (b"text/x-patch; name=x.patch", DIFF),
    ]
    body = b"".join(b"--XX\nContent-Type: %s\n\n%s\n" % (kind, text) for kind, text in parts)
    fields = b"MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=XX\n"

    ours = one(mail(b"[PATCH] x", body + b"--XX--\n", fields=fields))

    assert ours.message == "why"
    assert b"".join(ours.rows).startswith(DIFF)


def test_a_mailbox_is_split_where_git_mailsplit_splits_it(tmp_path):
    box = b"".join(
        mail(b"[PATCH] %d" % at, b"From here on\n>From quoted\nFrom a b 12:00 1\n---\n" + DIFF)
        for at in range(3)
    )

    ours = mailbox.mails(box)
    count = corpus.git(tmp_path, "mailsplit", "--mboxrd", f"-o{tmp_path}", stdin=box)

    assert len(ours) == int(count) == 3
    for number, found in enumerate(ours, 1):
        _, message, _ = gits((tmp_path / f"{number:04}").read_bytes(), tmp_path)
        assert found.message.encode() == message.strip()
        assert found.message.split("\n")[1] == "From quoted"


def test_mails_of_a_series_are_put_in_the_order_of_their_numbers():
    box = b"".join(mail(b"[PATCH v2 %d/3] s%d" % (at, at), DIFF) for at in (2, 0, 3, 1))

    assert [found.subject for found in mailbox.mails(box)] == ["s0", "s1", "s2", "s3"]


def test_mails_whose_numbers_are_of_several_series_stay_as_they_are():
    twice = b"".join(mail(b"[PATCH %d/2] s" % at, DIFF) for at in (2, 1, 1))
    two = b"".join(mail(b"[PATCH 2/%d] s%d" % (at, at), DIFF) for at in (3, 2))

    assert [found.number for found in mailbox.mails(twice)] == [(2, 2), (1, 2), (1, 2)]
    assert [found.subject for found in mailbox.mails(two)] == ["s3", "s2"]


def test_carriage_returns_of_a_mail_are_not_the_patchs(tmp_path):
    data = mail(b"[PATCH] x", b"why\n---\n" + DIFF)

    assert one(data.replace(b"\n", b"\r\n")) == one(data)


def test_a_saved_mail_is_known_and_a_header_of_a_queue_is_not():
    saved = mail(b"x", DIFF, fields=b"Message-Id: <1@x>\n", start=b"")
    dep3 = mail(b"x", DIFF, fields=b"Forwarded: no\n", start=b"")

    assert mailbox.is_mail(saved)
    assert one(saved).subject == "x"
    assert not mailbox.is_mail(dep3)
    assert not mailbox.is_mail(DIFF)
    assert not mailbox.is_mail(b"From here it goes on\n")
    assert not mailbox.is_mail(b"")


def test_the_header_of_a_patch_is_three_fields_and_the_message():
    found = one(mail(b"=?UTF-8?q?[PATCH]_caf=C3=A9?=", b"why\n\nmore\n---\n" + DIFF))

    assert found.header.decode() == (
        "From: A U Thor <a@example.org>\nDate: Tue, 1 Dec 2026 04:00:00 +0000\n"
        "Subject: café\n\nwhy\n\nmore\n\n"
    )


@pytest.mark.parametrize("charset", [b"no-such", b"utf-8"])
def test_a_charset_that_is_wrong_loses_nothing(charset):
    fields = b"Content-Type: text/plain; charset=%s\nContent-Transfer-Encoding: 8bit\n" % charset

    found = one(mail(b"x", b"caf\xe9\n---\n" + DIFF, fields=fields))

    assert b"caf\xe9\n" in found.header
