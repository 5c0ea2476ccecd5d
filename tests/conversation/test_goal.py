"""A patch is found by its name, by its path, and without its ending."""

import pytest

from patchq.conversation.goal import Upto
from patchq.errors import QuiltError

NAMES = ["a.patch", "sub/b.diff", "c"]


@pytest.mark.parametrize(
    ("word", "index"), [("a", 0), ("patches/a.patch", 0), ("sub/b", 1), ("/x/patches/c", 2)]
)
def test_a_name_is_found(word, index):
    assert Upto(word).index(NAMES, "in series") == index


@pytest.mark.parametrize(
    ("word", "said"),
    [("c", "Patch c is not applied"), ("sub/b", "Patch sub/b.diff is not applied")],
)
def test_a_patch_of_the_series_is_named_whole(word, said):
    with pytest.raises(QuiltError, match=said):
        Upto(word).index(NAMES[:1], "applied", NAMES)


def test_what_is_in_no_series_is_said_to_be_so():
    with pytest.raises(QuiltError, match="Patch d is not in series"):
        Upto("d").index(NAMES[:1], "applied", NAMES)
