"""What a sketch does not ask of a release is named, with its line."""

import pytest

from patchq.engine import sketch, unasked

SAID = b"""\
# in a.py
# when <2: a note
x = 1


class A:
    def f(self):
        if y:
            z()  # when >=3
        else:
            w()  # when <2
        v()


# in b.py when <2
y = 1
"""


@pytest.mark.parametrize(
    ("release", "found"),
    [
        ("1.0", ["`z()` in A.f (line 9, when >=3)"]),
        (
            "2.0rc1",
            [
                "`x = 1` (line 3, when <2)",
                "`z()` in A.f (line 9, when >=3)",
                "`w()` in A.f (line 11, when <2)",
                "`# in b.py` (line 16, when <2)",
            ],
        ),
        ("3", ["`x = 1` (line 3, when <2)", "`w()` in A.f (line 11, when <2)"]),
    ],
)
def test_marks_leave_out_what_they_cover(release, found):
    parsed = sketch.load(SAID, name="s.pyi")

    assert [str(one) for one in unasked.unasked(parsed, release)][: len(found)] == found
