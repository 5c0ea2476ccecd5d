"""The part of a patch that fits goes on; the rest is a reject for each file."""

from patchq.engine import diff, rejects
from patchq.engine.locating import Failed, Landed

TEXT = b"1\n2\n3\n4\n5\n6\n7\n8\n9\n"


def parsed(text):
    return diff.parse(text, name="p", strip=1)[1]


def test_hunks_that_fit_go_on_and_the_others_are_rejects():
    diffs = parsed(
        b"--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-one\n+I\n 2\n@@ -8,2 +8,2 @@\n 8\n-9\n+IX\n"
    )

    done = rejects.part(diffs, {"f": (TEXT, True)}.get)

    (one,) = done.files
    assert [type(fate) for fate in one.fates] == [Failed, Landed]
    assert done.after["f"] == (TEXT.replace(b"9", b"IX"), True)
    assert done.before["f"] == (TEXT, True)
    assert one.reject == b"--- f\n+++ f\n@@ -1,2 +1,2 @@\n-one\n+I\n 2\n"


def test_a_file_that_is_not_there_rejects_all_that_is_for_it():
    diffs = parsed(b"--- a/f\n+++ b/f\n@@ -1 +1 @@\n-1\n\\ No newline at end of file\n+2\n")

    (one,) = rejects.part(diffs, {}.get).files

    assert one.problem == "No file to patch"
    assert one.reject == (b"--- f\n+++ f\n@@ -1,1 +1,1 @@\n-1\n\\ No newline at end of file\n+2\n")


def test_a_file_that_is_made_and_is_there_is_left_as_it_is():
    diffs = parsed(b"--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+2\n")

    done = rejects.part(diffs, {"f": (TEXT, False)}.get)

    assert done.files[0].problem == "f is there already"
    assert done.after == {"f": (TEXT, False)}


def test_first_lines_make_the_file_that_is_not_there():
    diffs = parsed(b"--- a/f\n+++ b/f\n@@ -0,0 +1 @@\n+2\n")

    done = rejects.part(diffs, {}.get)

    assert done.after == {"f": (b"2\n", False)}
    assert done.files[0].reject == b""


def test_a_file_stays_where_a_part_of_its_removal_does_not_fit():
    whole = b"--- a/f\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-1\n-2\n"

    gone = rejects.part(parsed(whole), {"f": (b"1\n2\n", False)}.get)
    kept = rejects.part(parsed(whole), {"f": (b"1\n3\n", False)}.get)

    assert gone.after == {"f": None}
    assert kept.after == {"f": (b"1\n3\n", False)}


def test_a_patch_is_taken_out_in_part_too():
    diffs = parsed(b"--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-1\n+I\n 2\n")

    done = rejects.part(diffs, {"f": (TEXT.replace(b"1", b"I"), False)}.get, reverse=True)

    assert done.after == {"f": (TEXT, False)}
