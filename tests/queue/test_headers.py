import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.engine import diff
from patchq.errors import UsageError
from patchq.queue import headers

BODY = b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n"
lines = st.lists(st.binary(max_size=12).map(lambda row: row.replace(b"\n", b"") + b"\n"))


@given(lines.map(b"".join))
def test_a_header_is_one_byte_for_byte_or_refused(header):
    try:
        text = headers.joined(header, BODY, name="p")
    except UsageError:
        return

    assert headers.split(text, name="p") == (header, BODY)


def test_a_last_line_without_newline_gets_one():
    assert headers.joined(b"why", BODY, name="p") == b"why\n" + BODY


def test_an_empty_header_leaves_the_body():
    assert headers.joined(b"", BODY, name="p") == BODY


@pytest.mark.parametrize(
    "line", [b"--- a/y\n+++ b/y\n", b"diff --git a/y b/y\n", b"@@ -1 +1 @@\n", b"diff --cc y\n"]
)
def test_a_header_that_reads_as_a_diff_is_refused(line):
    with pytest.raises(UsageError, match="would not be a header"):
        headers.joined(b"why\n" + line, BODY, name="p")


@pytest.mark.parametrize(
    "body",
    [
        b"diff --git a/x b/x\nindex 1..2\nBinary files a/x and b/x differ\n",
        b"diff --git a/x b/x\nnew file mode 120000\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+1\n",
        b"--- a/x\n+++ b/x\n@@ -1,9 +1 @@\n-1\n+2\n",
    ],
    ids=["binary", "link", "miscounted"],
)
def test_a_patch_that_can_not_be_read_has_a_header_too(body):
    assert headers.split(b"why\n" + body, name="p") == (b"why\n", body)
    with pytest.raises(diff.PatchFormatError):
        diff.parse(b"why\n" + body, name="p")


@pytest.mark.parametrize(
    ("strip", "body"),
    [
        (0, b"Index: x\n===\n--- x.orig\n+++ x\n@@ -1 +1 @@\n-1\n+2\n"),
        (2, b"--- a/b/x\n+++ a/c/x\n@@ -1 +1 @@\n-1\n+2\n"),
    ],
)
def test_the_patchs_own_strip_is_what_its_names_are_read_with(strip, body):
    text = headers.joined(b"why\ndiff\n", body, name="p", strip=strip)

    assert headers.split(text, name="p", strip=strip) == (b"why\ndiff\n", body)
    with pytest.raises(UsageError):
        headers.joined(b"why\ndiff --combined x\n", body, name="p", strip=strip)


def test_a_diffstat_goes_and_the_text_around_it_stays():
    stat = b" a/x |    2 +-\n b/y |   10 ++\n 2 files changed, 11 insertions(+), 1 deletion(-)\n"
    header = b"why\n---\n" + stat + b"\nend\n"

    assert headers.without_diffstat(header) == b"why\n---\n\nend\n"


def test_a_table_without_a_sum_is_no_diffstat():
    header = b"name | value\n a | b\nend\n"

    assert headers.without_diffstat(header) == header
