"""The always-on checks, and whether a sketch can fail."""

import json

import pytest

from patchq.engine import diff, judge, sketch
from patchq.engine.verdict import Claim, Finding, Verdict

# The fault from the field: sed put a name on a line of its own, without parentheses.
SPLIT_BEFORE = b'"""A model."""\n\nfrom .interfaces import A\n\nx = A\n'
SPLIT_AFTER = b'"""A model."""\n\nfrom .interfaces import A,\n    B\n\nx = A\n'

TREE = {
    "pkg/__init__.py": b"from .core import Core\n",
    "pkg/core.py": b"import os\n\nclass Core:\n    limit = 1\n\ndef run(): ...\n",
    "pkg/lazy.py": b"def __getattr__(name): ...\n",
    "pkg/stars.py": b"from .core import *\nfrom os.path import *\n",
    "pkg/inner.py": b"from .core import *\n",
    "pkg/parts/__init__.py": b"from . import one\nvalue = 1\n",
    "pkg/parts/one.py": b"deep = 1\n",
    "pkg/spaces/two.py": b"",
}


def judged(after, before=None, *, said=None, listing=None, diffs=(), path="pkg/new.py"):
    befores = before if isinstance(before, dict) else {path: before}
    afters = after if isinstance(after, dict) else {path: after}
    loaded = None if said is None else sketch.load(said, name="10-new.pyi")
    read = TREE.get
    return judge.judge(befores, afters, loaded, "1.0", read, diffs=diffs, listing=listing)


def test_the_split_import_is_refused_with_its_line():
    verdict = judged(SPLIT_AFTER, SPLIT_BEFORE)

    assert not verdict.holds
    assert [(found.kind, found.path, found.line) for found in verdict.findings] == [
        ("syntax", "pkg/new.py", 3)
    ]
    assert str(verdict.findings[0]) == (
        "pkg/new.py:3: not Python at column 27: 'from .interfaces import A,': "
        "trailing comma not allowed without surrounding parentheses"
    )


def test_a_fault_that_was_there_before_is_listed_apart():
    verdict = judged(b"x = 1\ndef f(:\n", b"def f(:\n")

    assert verdict.holds
    assert [found.line for found in verdict.old_findings] == [2]


def test_a_second_fault_is_blamed_on_the_patch():
    assert not judged(b"x = = 1\ndef f(:\n", b"def f(:\n").holds


@pytest.mark.parametrize("path", ["pkg/data.json", "pkg/notes.txt", "README"])
def test_a_file_that_is_not_python_is_only_bytes(path):
    assert judged(b"def f(:\n\xff\x00", path=path) == Verdict()


@pytest.mark.parametrize(
    "text",
    [
        b"\x00",
        b"# coding: nonsense\n",
        b"x = '\xff'\n",
        b"(" * 5000,
        b"\xef\xbb\xbf)",
        b"x = 'a' t'b'\n",
    ],
)
def test_what_no_parser_reads_is_a_finding_and_never_a_crash(text):
    (found,) = judged(text).findings

    assert found.kind == "syntax"
    assert found.message


def test_nesting_that_overflows_a_parser_takes_nothing_along():
    elifs = b"a = b = 1\nif a: pass\n" + b"elif b: pass\n" * 990
    said = b"# in pkg/new.py\nx = 1\n"

    assert not judged(b"x = " + b"(" * 9000 + b"1" + b")" * 9000 + b"\n").holds
    assert judged(elifs).holds
    assert not judged(elifs, said=said).holds


@pytest.mark.parametrize(
    "text", [b"", b"\xef\xbb\xbfx = 1\n", b"# coding: latin-1\nx = '\xe9'\n", b"x = 1\r\n"]
)
def test_what_python_reads_is_no_finding(text):
    assert judged(text).holds


RESOLVES = [
    "from .core import Core",
    "from pkg.core import run, Core",
    "from pkg import core",
    "from pkg import Core",
    "import pkg.core",
    "from . import core, parts",
    "from .lazy import whatever",
    "from .stars import Core",
    "from .stars import join",
    "from .inner import run",
    "from .parts import one, value",
    "from .core import *",
    "from .parts.one import deep",
    "import pkg.core as c",
    "from pkg.core import __name__",
    # Not within this distribution.
    "import torch",
    "from torch.nn import Nothing",
    "from os import nothing",
    # A folder without __init__ leaves no text of its own.
    "from .spaces import two",
    "from .spaces.two import __doc__",
    # A compiled module leaves no text at all.
    "from pkg import _C",
    "import pkg._C",
    "from pkg._C import ops",
    "from .parts import native",
    # It may fail, and the file says so.
    "try:\n    from .core import nothing\nexcept ImportError:\n    nothing = None",
    "try:\n    from .nowhere.at import all\nexcept (OSError, Exception):\n    pass",
]


@pytest.mark.parametrize("text", RESOLVES)
def test_an_import_that_may_resolve_is_not_blamed(text):
    assert judged(f"{text}\n".encode()).findings == ()


BROKEN = [
    ("from .core import Cor", "from .core import Cor", "pkg/core.py defines no Cor; it has Core"),
    (
        "def f():\n    from pkg.core import nothing",
        "from pkg.core import nothing",
        "pkg/core.py defines no nothing",
    ),
    (
        "from .inner import nothing",
        "from .inner import nothing",
        "pkg/inner.py defines no nothing",
    ),
    (
        "from .nowhere.at import all",
        "from .nowhere.at import all",
        "there is neither pkg/nowhere/at.py nor pkg/nowhere/at/__init__.py",
    ),
    (
        "import pkg.nowhere.at",
        "import pkg.nowhere.at",
        "there is neither pkg/nowhere/at.py nor pkg/nowhere/at/__init__.py",
    ),
    (
        "from ... import core",
        "from ... import core",
        "the relative import leads out of the package that pkg/new.py is in",
    ),
    # Neither can be a compiled module: one is called, one has a class's name.
    (
        "from .parts import vale\nvale()",
        "from .parts import vale",
        "pkg/parts/__init__.py defines no vale; it has value",
    ),
    (
        "from .parts import Part",
        "from .parts import Part",
        "pkg/parts/__init__.py defines no Part",
    ),
    (
        "from .parts import part\nclass A(part): ...",
        "from .parts import part",
        "pkg/parts/__init__.py defines no part",
    ),
]


@pytest.mark.parametrize(("text", "said", "why"), BROKEN)
def test_an_import_that_resolves_to_nothing_is_a_finding(text, said, why):
    (found,) = judged(f"import os\n{text}\n".encode()).findings

    assert found == Finding(
        "import",
        "pkg/new.py",
        3 if text.startswith("def") else 2,
        "f" if text.startswith("def") else "",
        f"`{said}` resolves to nothing",
        why,
    )


@pytest.mark.parametrize(
    ("text", "resolves"),
    [
        ("from . import native", True),
        ("import pkg.native", True),
        ("from .parts import text", True),
        ("from .native import anything", True),
        ("from . import spaces", True),
        ("from . import nothing", False),
        ("import pkg.nothing", False),
        ("from .nothing import it", False),
    ],
)
def test_a_listing_of_the_installed_paths_leaves_no_doubt(text, resolves):
    listing = [*TREE, "pkg/native.abi3.so", "pkg/parts/text.cpython-311-x86_64-linux-gnu.so"]

    assert judged(f"{text}\n".encode(), listing=listing).holds is resolves


def test_an_import_that_was_there_before_is_not_read_again():
    verdict = judged(b"from .core import nothing\nx = 2\n", b"from .core import nothing\nx = 1\n")

    assert verdict == Verdict()


def test_only_what_new_imports_name_is_read():
    verdict = judged(b"from .lazy import a\nfrom .core import Core\n", b"from .lazy import a\n")

    assert verdict.reads == ("pkg/core.py",)


def test_a_name_that_vanishes_from_a_touched_file_breaks_the_touched_file_that_imports_it():
    before = {"pkg/a.py": b"from .b import gone, kept\n", "pkg/b.py": b"gone = 1\nkept = 1\n"}
    after = {"pkg/a.py": b"from .b import gone, kept\nx = 1\n", "pkg/b.py": b"kept = 1\n"}

    (found,) = judged(after, before).findings

    assert (found.path, found.line, found.why) == ("pkg/a.py", 1, "pkg/b.py defines no gone")


def test_a_touched_module_that_is_removed_is_missed():
    before = {"pkg/a.py": b"from .b import it\nfrom . import b\n", "pkg/b.py": b"it = 1\n"}
    after = {"pkg/a.py": b"from .b import it\nfrom . import b\nx = 1\n", "pkg/b.py": None}

    assert [found.why for found in judged(after, before).findings] == [
        "pkg/b.py is gone with this patch",
        "pkg/__init__.py defines no b",
    ]


def test_a_broken_import_between_touched_files_that_was_broken_before_is_listed_apart():
    before = {"pkg/a.py": b"from .b import never\n", "pkg/b.py": b""}
    after = {"pkg/a.py": b"from .b import never\nx = 1\n", "pkg/b.py": b"y = 1\n"}

    verdict = judged(after, before)

    assert verdict.holds
    assert [found.why for found in verdict.old_findings] == ["pkg/b.py defines no never"]


def test_a_namespace_that_other_distributions_share_is_not_judged():
    assert judged(
        b"from google.protobuf.message import Message\n", path="google/cloud/run.py"
    ).holds


def test_an_import_of_a_module_in_the_same_patch_resolves():
    assert judged({"pkg/a.py": b"from .fresh import it\n", "pkg/fresh.py": b"it = 1\n"}, {}).holds


BODY = b"".join(
    b"    def f%d(self):\n        a = 1\n        b = 2\n        return a\n\n" % n for n in range(2)
)
TWINS = b"class A:\n" + BODY + b"class B:\n" + BODY


def hunk(heading: bytes, start: int) -> tuple:
    text = (
        b"--- a/pkg/new.py\n+++ b/pkg/new.py\n@@ -%d,3 +%d,3 @@%s\n"
        b"         a = 1\n-        b = 2\n+        b = 3\n         return a\n"
        % (start, start, heading)
    )
    return diff.parse(text, name="10.patch")[1]


# Lines 3 and 8 are in A.f0 and A.f1, 14 and 19 in B.f0 and B.f1.
@pytest.mark.parametrize(
    ("heading", "start", "there"),
    [
        (b" class A:", 3, None),
        (b" class A:", 8, None),
        (b" class B:", 14, None),
        (b" def f0(self):", 3, None),
        (b"     def f0(self):", 14, None),
        (b"", 14, None),
        (b" import os", 14, None),
        (b" class A:", 14, "def f0(self):"),
        (b" def f1(self):", 14, "def f0(self):"),
    ],
)
def test_a_hunk_lies_in_the_class_or_def_it_was_made_for(heading, start, there):
    lines = TWINS.split(b"\n")
    lines[start] = lines[start].replace(b"2", b"3")

    verdict = judged(b"\n".join(lines), TWINS, diffs=hunk(heading, start))

    if there is None:
        assert verdict.holds
    else:
        (found,) = verdict.findings
        assert found.kind == "enclosing"
        assert (
            found.message
            == f"hunk 1 was made for `{heading.strip().decode()}`, and lies in `{there}`"
        )


def test_a_long_heading_may_be_cut():
    long = b"class AVeryLongNameOfAClassThatGoesOnAndOnAndOn(Base):\n"
    before = TWINS.replace(b"class A:\n", long)
    after = before.replace(b"b = 2", b"b = 3", 1)

    assert judged(after, before, diffs=hunk(b" " + long[:40], 3)).holds
    assert not judged(after, before, diffs=hunk(b" class AVery", 3)).holds


@pytest.mark.parametrize(
    ("before", "text", "holds"),
    [
        (None, b"--- /dev/null\n+++ b/pkg/new.py\n@@ -0,0 +1 @@ class A:\n+x = 1\n", True),
        (b"x\n", b"--- a/pkg/new.py\n+++ b/pkg/new.py\n@@ -1,0 +2 @@ class A:\n+y = 1\n", False),
        (b"x\n", b"--- a/pkg/new.py\n+++ b/pkg/new.py\n@@ -9,0 +10 @@ class A:\n+y = 1\n", True),
        (b"", b"--- a/pkg/new.py\n+++ b/pkg/new.py\n@@ -1 +1,2 @@ class A:\n x\n+y = 1\n", True),
    ],
)
def test_a_heading_is_judged_only_where_its_hunk_lies(before, text, holds):
    diffs = diff.parse(text, name="10.patch")[1]

    assert judged(b"x = 1\n", before, diffs=diffs).holds is holds


def test_the_headings_of_a_reversed_patch_are_sought_in_its_result():
    after = TWINS
    before = TWINS.replace(b"b = 2", b"b = 3", 1)

    assert judged(after, before, diffs=hunk(b" class A:", 3)).holds
    assert not judged(after, before, diffs=hunk(b" class B:", 3)).holds


def test_our_own_headings_are_accepted():
    after = TWINS[::-1].replace(b"b = 2"[::-1], b"b = 3"[::-1], 1)[::-1]
    _, diffs = diff.parse(diff.unified(TWINS, after, "pkg/new.py"), name="10.patch")

    assert judged(after, TWINS, diffs=diffs).holds
    assert diffs[0].hunks[0].heading


SAID = b"""# in pkg/new.py
import os  # given
class A:
    def f(self):
        first()
        if self.ready:
            second()
        last()  # given
"""
CALLS = b"from calls import first, second, other, last\n"
WITH = (
    b"import os\nclass A:\n    def f(self):\n        first()\n"
    b"        if self.ready:\n            second()\n        last()\n" + CALLS
)


def linted(before: bytes, after: bytes, said: bytes) -> list[tuple[str, int]]:
    return [(found.kind, found.line) for found in judge.lint(judged(after, before, said=said))]


def test_a_sketch_that_could_fail_is_clean():
    before = (
        b"import os\nclass A:\n    def f(self):\n"
        b"        if self.ready:\n            other()\n        last()\n" + CALLS
    )

    verdict = judged(WITH, before, said=SAID)

    assert verdict.holds
    assert not verdict.upstream
    assert judge.lint(verdict) == ()


def test_a_claim_that_is_true_without_the_patch_is_idle():
    assert linted(WITH, WITH, SAID) == [("idle", 4)]
    assert judged(WITH, WITH, said=SAID).upstream


def test_each_leaf_of_a_def_is_asked_alone():
    before = WITH.replace(b"        first()\n", b"")

    assert linted(before, WITH, SAID) == [("idle", 7)]


def test_a_claim_that_is_false_with_the_patch_names_the_nearest_miss():
    after = WITH.replace(b"second", b"other")
    (found,) = judge.lint(judged(after, b"", said=SAID))

    assert (found.kind, found.path, found.line) == ("false", "10-new.pyi", 4)
    assert found.message == "`def f(self):` in A.f is false with the patch"
    assert found.why == (
        "pkg/new.py, line 6, A.f: line 5 `if self.ready:` fits; in it nothing fits `second()`; "
        "nearest is line 6: `other()`"
    )


def test_a_given_line_must_hold_above_too():
    after = WITH.replace(b"import os\n", b"")

    assert ("false", 2) in linted(b"", after, SAID)
    assert not judged(after, b"", said=SAID).holds


def test_a_def_of_givens_only_is_refused():
    said = b"# in pkg/new.py\nx = 1\ndef f():\n    a()  # given\n    if b:  # given\n        c()\n"

    (found,) = judge.lint(
        judged(b"x = 1\ndef f():\n    a()\n    if b:\n        c()\n", b"", said=said)
    )

    assert (found.kind, found.line, found.message) == (
        "givens",
        3,
        "every line of `def f` is given",
    )


@pytest.mark.parametrize(
    "said", [None, b"# in pkg/new.py when >9\nx = 1\n", b"# in pkg/new.py\nx = 1  # given\n"]
)
def test_a_sketch_without_a_claim_is_refused(said):
    (found,) = judge.lint(judged(b"x = 1\n", b"", said=said))

    assert found.kind == "no-claim"


def test_a_sketch_of_an_untouched_file_reads_it_and_says_so():
    verdict = judged(b"x = 1\n", b"", said=b"# in pkg/core.py\nclass Core: ...\n")

    assert verdict.reads == ("pkg/core.py",)
    assert linted(b"", b"x = 1\n", b"# in pkg/core.py\nclass Core: ...\n") == [("idle", 2)]


def test_a_verdict_survives_the_cache():
    for verdict in (
        judged(WITH, WITH, said=SAID),
        judged(SPLIT_AFTER, SPLIT_BEFORE),
        judged(b"", b"", said=SAID),
        Verdict(),
    ):
        assert Verdict.from_json(json.loads(json.dumps(verdict.to_json()))) == verdict


def test_a_claim_that_is_too_loose_is_told_by_the_lint():
    loose = Claim("m.py", "f", "def f():", 2, False, nearest="m.py, f: too loose: name the thing")
    below = Claim("m.py", "f", "def f():", 2, False)

    (found,) = judge.lint(Verdict(below=(below,), above=(loose,), sketch="s.pyi"))

    assert (found.kind, found.line) == ("too-loose", 2)


def test_a_leaf_under_else_or_except_is_asked_under_its_own_headers():
    said = (
        b"# in pkg/new.py\ndef f():\n    if a:\n        one()\n    else:\n        two()\n"
        b"    try:\n        ...\n    except E:\n        three()\n"
    )
    after = said.split(b"\n", 1)[1].replace(b"...", b"pass")

    assert linted(after.replace(b"three()", b"four()"), after, said) == [("idle", 4), ("idle", 6)]
    assert linted(after.replace(b"else:", b"elif b:"), after, said) == [("idle", 4), ("idle", 10)]


ABSENT = b"# in pkg/new.py\ndef f():\n    # absent\n    "


@pytest.mark.parametrize(
    "one",
    [
        b"if a:\n        old()",
        b"def g():\n        old()",
        b"try:\n        ...\n    except old: ...",
        b"match a:\n        case b.old: ...",
    ],
)
def test_what_is_denied_is_denied_with_all_that_it_holds(one):
    """Without what it holds, it would deny every `if a:`."""
    below = b"def f():\n    " + one.replace(b"...", b"pass") + b"\n"

    above = below.replace(b"old", b"new")

    assert linted(below, above, ABSENT + one + b"\n") == []
    assert linted(above, above, ABSENT + one + b"\n") == [("idle", 2)]


def test_an_empty_clause_is_asked_for_with_its_statement():
    said = b"# in pkg/new.py\ndef f():\n    new()\n    try: ...\n    except KeyError: ...\n"
    below = b"def f():\n    try: pass\n    except ValueError: pass\n"
    above = b"def f():\n    new()\n    try: pass\n    except (KeyError): pass\n"

    assert linted(below, above, said) == []
    assert linted(above.replace(b"new()", b"pass"), above, said) == [("idle", 4)]


def test_a_name_that_vanishes_from_a_package_is_missed_though_it_might_be_a_module():
    before = {"pkg/a.py": b"from .sub import it\n", "pkg/sub/__init__.py": b"it = 1\n"}
    after = {"pkg/a.py": b"from .sub import it\nx = 1\n", "pkg/sub/__init__.py": b""}

    assert [found.why for found in judged(after, before).findings] == [
        "pkg/sub/__init__.py defines no it"
    ]


def test_star_imports_that_go_in_circles_come_to_an_end():
    files = {"pkg/a.py": b"from .b import *\n", "pkg/b.py": b"from .a import *\n"}

    assert not judged({**files, "pkg/c.py": b"from .a import it\n"}, {}).holds
