"""What a failed claim says, word for word; and what an unreadable sketch says."""

import pytest

from patchq.engine import sections, sketch

TEXT = b'''"""A model."""
from .interfaces import (
    SupportsLoRA,
    SupportsPP,
)
import numpy as np


class Model(Base):
    fall_back = False

    def forward(self, x):
        """Run."""
        if self.first:
            x = embed(x)
        for index, layer in enumerate(self.layers):
            if index in self.chosen:
                states.append(x + residual)
                log(x)
            x, residual = layer(x)
        return x

    @cached
    def ready(self, *, fast=True):
        return self.state == "ready"

    def wide(self):
        return (
            self.first
            or self.chosen
        )
'''

MISSES = [
    (
        "from .interfaces import SupportsEagle3",
        "line 2: from pkg.interfaces are imported SupportsLoRA, SupportsPP",
    ),
    (
        "from .other import SupportsPP",
        "line 2: there is `from pkg.interfaces import SupportsPP` instead",
    ),
    ("import torch", ": torch is not imported"),
    ("import numpy", "line 6: the module is there as `import numpy as np`"),
    ("from torch import nn", ": nothing is imported from torch"),
    ("class Modell(Base): ...", ", Modell: there is no class Modell here; there is a class Model"),
    ("class Model(Other): ...", "line 9, Model: it has Base"),
    (
        "class Model:\n    fall_back = True",
        "line 10, Model: nothing fits `fall_back = True`; nearest is line 10: `fall_back = False`",
    ),
    (
        "class Model:\n    def backward(self): ...",
        "line 9, Model.backward: there is no def backward here",
    ),
    (
        "class Model:\n    def forward(self, y): ...",
        "line 12, Model.forward: the def has no parameter y; it has (self, x)",
    ),
    (
        "class Model:\n    @other\n    def ready(self): ...",
        "line 24, Model.ready: the def has no decorator `other`",
    ),
    (
        "class Model:\n    def ready(self, fast=False): ...",
        "line 24, Model.ready: the default of fast is True, not False: "
        "`def ready(self, *, fast=True):`",
    ),
    (
        "class Model:\n    def ready[T](self): ...",
        "line 24, Model.ready: the def has not the type parameters [T]; it has none",
    ),
    ("class Model[T]: ...", "line 9, Model: it has none"),
    ("class Model:\n    async def ready(self): ...", "line 24, Model.ready: the def is not async"),
    (
        "class Model:\n    def ready(self):\n        self.state == 'set'",
        "line 25, Model.ready: nothing fits `self.state == 'set'`; "
        'nearest is line 25: `return self.state == "ready"`',
    ),
    # The trap: the loop is there, and only the line inside is out of order.
    (
        "class Model:\n    def forward(self):\n        embed(_)\n"
        "        for _i_, _ in enumerate(_):\n"
        "            if _i_ in self.chosen:\n                log(_)\n"
        "                _.append(_)\n        return _",
        "line 18, Model.forward: line 16 `for index, layer in enumerate(self.layers):` fits; "
        "in it line 17 `if index in self.chosen:` fits; in it 1 of 2 statements fit; "
        "`_.append(_)` does not; line 18 fits, but before what the sketch has above it",
    ),
    (
        "class Model:\n    def forward(self):\n"
        "        for _i_, _ in enumerate(_):\n            _i_(_)",
        "line 18, Model.forward: line 16 `for index, layer in enumerate(self.layers):` fits; "
        "in it nothing fits `_i_(_)`; line 18 fits with other names",
    ),
    (
        "class Model:\n    def forward(self):\n        return _\n        log(_)  # absent",
        "line 19, Model.forward: 1 of 2 statements fit; `log(_)` is there",
    ),
    ("class Model:\n    x = 1\n    fall_back = ...  # absent", "line 10, Model: it is there"),
    ("class Model: ...  # absent", "line 9: it is there"),
    (
        "class Model:\n    def ready(self):\n        return self.state == _ or self.state",
        "line 25, Model.ready: nothing fits `return self.state == _ or self.state`; "
        'nearest is line 25: `return self.state == "ready"`',
    ),
    (
        "class Model:\n    def ready(self):\n        return self.state",
        "line 25, Model.ready: nothing fits `return self.state`; line 25 "
        '`return self.state == "ready"` has more than that; a `_` can stand for the rest',
    ),
    (
        "class Model:\n    def wide(self):\n        return self.first or self.last",
        "line 28, Model.wide: nothing fits `return self.first or self.last`; "
        "nearest is line 28: `return (self.first or self.chosen)`",
    ),
    ("other = 1", "line 6: nothing fits `other = 1`; nearest is line 6: `import numpy as np`"),
]


@pytest.mark.parametrize(("said", "text"), MISSES)
def test_a_failed_claim_names_file_line_qualified_name_and_what_comes_nearest(said, text):
    loaded = sketch.load(f"# in pkg/model.py\n{said}\n".encode(), name="s.pyi")

    (*_, claim) = [
        one for one in sketch.judge(loaded, "1.0", {"pkg/model.py": TEXT}.get) if not one.held
    ]

    comma = "" if text[0] in ",:" else ", "
    assert claim.nearest == f"pkg/model.py{comma}{text}"
    assert claim.at == (int(text.split()[1].strip(",:")) if text.startswith("line") else None)


@pytest.mark.parametrize(
    ("text", "nearest"),
    [
        (None, "m.py: there is no such file"),
        (b"a = (\n", "m.py: it does not parse, line 1, column 5: '(' was never closed: 'a = ('"),
    ],
)
def test_a_file_that_is_missing_or_broken_fails_every_claim(text, nearest):
    loaded = sketch.load(b"# in m.py\na = 1\nimport b\n", name="s.pyi")

    claims = sketch.judge(loaded, "1.0", {"m.py": text}.get)

    assert [claim.nearest for claim in claims] == [nearest] * 2


def test_no_time_is_spent_on_messages_that_nobody_reads():
    loaded = sketch.load(b"# in m.py\na = 1\n", name="s.pyi")

    (claim,) = sketch.judge(loaded, "1.0", {"m.py": b""}.get, explain=False)

    assert not claim.held
    assert claim.nearest == ""


UNREADABLE = [
    (b"", 1, "the sketch has no section"),
    (b"x = 1\n", 1, "there is code before the first section"),
    (b"# in m.py whn <1\n", 1, "'# in m.py whn <1' begins no section"),
    (b"# in m.py when 1.2\n", 1, "'1.2' is not a version specifier"),
    (b"# in m.py\nx = 1\n# in n.py\n\ndef f(:\n", 5, "invalid syntax: 'def f(:'"),
    (
        b"# in m.py\nf(a=1, ...)\n",
        2,
        "positional argument follows keyword argument: 'f(a=1, ...)'",
    ),
    (b"# in m.py\nx = 1  # when soon\n", 2, "'soon' is not a version specifier"),
    (
        b"# in m.py\n" + b"x = 1\n" * 1_001,
        1_002,
        "it has more than 1,000 statements",
    ),
    (b"# in m.py\n" + b"#" * 200_000, 1, "it is longer than 200 kB"),
    (b"# in m.py\nx._y_ = 1\n", 2, "`_y_` cannot stand for the name of an attribute"),
    (b"# in m.py\nx._ = 1\n", 2, "`_` cannot stand for the name of an attribute"),
    (b"# in m.py\nf(_k_=1)\n", 2, "`_k_` cannot stand for the name of a keyword"),
    (b"# in m.py\ndef _f_(): ...\n", 2, "`_f_` cannot stand for the name of a def"),
    (b"# in m.py\nclass _(Base): ...\n", 2, "`_` cannot stand for the name of a class"),
    (b"# in m.py\nfrom a import _b_\n", 2, "`_b_` cannot stand for the name of an import"),
    (b"# in m.py\nfrom _a_ import b\n", 2, "`_a_` cannot stand for the name of an import"),
    (
        b"# in m.py\nfrom a import *\n",
        2,
        "`import *` brings no name that a sketch could ask for",
    ),
    (b"# in m.py\nx = 1  # when\n", 2, "'# when' names no version"),
    (b"# in m.py\nx = 1\n# given\n", 3, "the mark '# given' stands at no statement"),
    (
        b"# in m.py\ndef f():\n    x = 1\n    # given\ny = 1\n",
        4,
        "the mark '# given' stands at no statement",
    ),
    (
        b"# in m.py\nif x:\n    y\n# given\nelse:\n    z\n",
        4,
        "the mark '# given' stands at no statement",
    ),
    (
        b"# in m.py\n# given that it is so\nx = 1\n",
        2,
        "'# given that it is so' is neither the mark `given` nor a comment",
    ),
]


# Lines that look like a section's or a mark's, and the mend of each.
SLIPS = [
    ("# in packaging.utils", "name the file, not the module: # in packaging/utils.py"),
    ("# in /etc/passwd", "name the file as the distribution's RECORD does"),
    ("# in x/py.typed", "a sketch speaks of .py and .pyi files, and x/py.typed is none"),
    ("    # in n.py", "write it at column 0, as: # in n.py"),
    ("# In n.py", "write it at column 0, as: # in n.py"),
    ("#in n.py", "write it at column 0, as: # in n.py"),
    ("# in: n.py", "write it at column 0, as: # in n.py"),
    ("# in other words", "a note begins with another word"),
    ("# When >=24", "write # when >=1.2 in small letters"),
    ("    # GIVEN", "write # given in small letters"),
    ("y = 1  # given # absent", "a comment is one mark: write one above the statement"),
    ("y = 1  # given: why  # when >=1", "a comment is one mark: write one above the statement"),
    ("y = 1  # Absent: gone", "write # absent in small letters"),
]


@pytest.mark.parametrize(("line", "mend"), SLIPS)
def test_what_is_nearly_a_section_or_a_mark_is_never_silently_a_comment(line, mend):
    below = "    y = 1" if line.startswith(" ") else "y = 1"
    text = f"# in m.py\nif x:\n    z = 1\n{line}\n{below}\n".encode()

    with pytest.raises(sections.SketchError) as caught:
        sketch.load(text, name="s.pyi")

    assert caught.value.line == 4
    assert mend in caught.value.mend


@pytest.mark.parametrize(
    "line",
    ["# inner", "# whenever", "# Given the shape, it fits", "x = 1  # in the loop", "# Index"],
)
def test_a_comment_that_only_begins_alike_is_a_comment(line):
    (section,) = sections.parse(f"# in m.py\n{line}\ny = 1\n".encode(), name="s.pyi")

    assert section.path == "m.py"


def test_a_byte_order_mark_is_no_part_of_the_first_line():
    (section,) = sections.parse(b"\xef\xbb\xbf# in m.py\nx = 1\n", name="s.pyi")

    assert section.path == "m.py"


@pytest.mark.parametrize(
    ("line", "mend"),
    [
        ('d = {"a": 1, ...}', "in a dict `...` is written `**...`"),
        ('d = {..., "k": v}', "in a dict `...` is written `**...`"),
        ("def f(self, ...): ...", "leave `...` out: a def has at least"),
        ("f($X)", "write `_x_` for semgrep's $X"),
        ("f($...ARGS)", "write `...` for any further ones"),
        ("<... f(x) ...>", "is found anywhere in a statement (R9)"),
    ],
)
def test_semgreps_spellings_are_mended_in_words(line, mend):
    with pytest.raises(sections.SketchError) as caught:
        sketch.load(f"# in m.py\nx = 1\n{line}\n".encode(), name="s.pyi")

    assert caught.value.line == 3
    assert mend in caught.value.mend


BRANCHES = b"""
SIZES = {"a": 1, "b": 2}


class M:
    def forward(self, x: int = 3) -> int:
        if x:
            one()
        elif y:
            two()
        else:
            three()
        try:
            one()
        except ValueError:
            two()
"""
IF = "class M:\n    def forward(self):\n        if x:\n            one()\n        "
TRY = "class M:\n    def forward(self):\n        try:\n            one()\n        "


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("SIZES = {'c': 3, 'a': 1, **...}", "it has no `'c': 3`"),
        ("SIZES = {'a': 2, **...}", "it has no `'a': 2`"),
        ("class M:\n    def forwrd(self): ...", "there is a def forward"),
        ("class M:\n    def forward(self, x: str): ...", "x is annotated int, not str"),
        ("class M:\n    def forward(self, x=4): ...", "the default of x is 3, not 4"),
        ("class M:\n    def forward(self) -> str: ...", "annotated to return int, not str"),
        (f"{IF}elif z:\n            two()", "`elif z:` is not there; it has `elif y:`, `else:`"),
        (f"{IF}elif y:\n            ten()", "line 9 `elif y:` fits; in it nothing fits `ten()`"),
        (f"{IF}else:\n            three()", "`else:` is not right behind it; it has `elif y:`"),
        (
            f"{IF}elif y:\n            two()\n        else:\n            ten()",
            "`else:` fits; in it nothing fits `ten()`; nearest is line 12: `three()`",
        ),
        (f"{TRY}except KeyError:\n            two()", "`except KeyError:` is not there; it has"),
        (f"{TRY}finally:\n            two()", "`finally:` is not there; it has `except Value"),
        (f"{TRY}except ValueError:\n            ten()", "`except ValueError:` fits; in it"),
    ],
)
def test_a_miss_names_the_very_part_that_differs(said, text):
    loaded = sketch.load(f"# in m.py\n{said}\n".encode(), name="s.pyi")

    (claim,) = sketch.judge(loaded, "1.0", {"m.py": BRANCHES}.get)

    assert not claim.held
    assert text in claim.nearest


@pytest.mark.parametrize(("text", "line", "why"), UNREADABLE)
def test_a_sketch_that_cannot_be_read_names_its_line(text, line, why):
    with pytest.raises(sections.SketchError) as caught:
        sketch.load(text, name="10-a.pyi")

    assert caught.value.what == f"the sketch 10-a.pyi cannot be read, line {line}"
    assert caught.value.why == why
    assert caught.value.mend


def test_the_wrong_order_of_the_gap_is_mended_in_words():
    with pytest.raises(sections.SketchError) as caught:
        sketch.load(b"# in m.py\nf(a=1, ...)\n", name="s.pyi")

    assert caught.value.mend == "write `...` before the keywords: f(..., a=1)"


def test_a_section_never_leads_out_of_the_package():
    with pytest.raises(sections.model.UnsafePath):
        sketch.load(b"# in ../m.py\nx = 1\n", name="s.pyi")


def test_a_release_that_is_no_version_is_said():
    loaded = sketch.load(b"# in m.py\nx = 1\n", name="s.pyi")

    with pytest.raises(sections.SketchError, match="the release 'nightly' is not a version"):
        sketch.judge(loaded, "nightly", {}.get)


@pytest.mark.parametrize(
    "mark", ["# given", "# given: why", "#given", "# when <9", "# when >=1, <9 : why"]
)
@pytest.mark.parametrize(
    "place",
    [
        "@\nx = 1\n",
        "x = 1  @\n",
        "x = [  @\n    1,\n]\n",
        "x = [\n    1,\n]  @\n",
        "@\n# more\nx = 1\n",
        "@\n\nx = 1\n",
        "@\n@deco\ndef f(): ...\n".replace("@deco", "@ deco"),
        "def f(\n    a,\n):  @\n    x = 1\n",
        "if a: x = 1  @\n",
        "@\ntry:\n    x\nfinally:\n    y\n",
    ],
)
def test_marks_stand_above_or_behind_a_statement(mark, place):
    text = place.replace("@ deco", "%").replace("@", mark).replace("%", "@deco")
    (section,) = sections.parse(f"# in m.py\n{text}".encode(), name="s.pyi")

    marks = section.marked(next(sections.small(section.module)))

    assert marks.given if "given" in mark else len(marks.when) == 1
