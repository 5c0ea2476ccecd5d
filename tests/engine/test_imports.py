"""Imports inside the distribution: through re-exports, lists, and modules that make names."""

import pytest

from patchq.engine import judge

TREE = {
    "pkg/__init__.py": b"",
    "pkg/core.py": b"real = _private = 1\n",
    "pkg/listed.py": b"__all__ = ['shown']\nshown = hidden = 1\n",
    "pkg/counted.py": b"from . import listed\n__all__ = listed.__all__\n"
    b"from .core import _private\n",
    "pkg/more.py": b"__all__ = ['a']\n__all__ += ['b', *('c',)]\n__all__.extend(['d'])\n"
    b"__all__.append('e')\na = b = c = d = e = f = 1\n",
    "pkg/made.py": b"__all__ = []\nfor n in 'ab': __all__.append(n)\na = b = 1\n",
    "pkg/stars.py": b"from .listed import *\nfrom .more import *\nfrom .core import *\n",
    "pkg/starmade.py": b"from .made import *\nfrom .counted import *\n",
    "pkg/door.py": b"from .core import real as given, gone\nfrom .stars import shown, hidden\n",
    "pkg/long.py": b"from .door import given, gone\n",
    "pkg/try_.py": b"try:\n    from .core import gone\nexcept ImportError:\n    gone = None\n",
    "pkg/one.py": b"from .two import round, there\n",
    "pkg/two.py": b"from .one import round\nthere = 1\n",
    "pkg/self_.py": b"from .self_ import me\n",
    "pkg/lazy.py": b"def __getattr__(name): ...\n",
    "pkg/loader.py": b"import sys\nsys.modules[__name__] = LazyModule(__name__)\n",
    "pkg/looped.py": b"for name in 'ab':\n    globals()[name] = 1\n",
    "pkg/in_def.py": b"def make(name):\n    globals()[name] = 1\n",
    "pkg/updated.py": b"vars().update({'a': 1})\n",
    "pkg/reads.py": b"x = globals()['__name__'], globals().get('a')\nif 'a' in vars(): ...\n",
    "pkg/delayed.py": b"from .lazy import LazyLoader\ntorch = LazyLoader('torch', globals())\n",
    "pkg/typed.py": (
        b"from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .core import real\n"
        b"    both = 1\nelse:\n    both = 2\n"
    ),
    "pkg/typed_lazy.py": (
        b"import typing\nif typing.TYPE_CHECKING:\n    from .core import real\n"
        b"def __getattr__(name): ...\n"
    ),
    "pkg/sub/__init__.py": b"from .part import thing\n__all__ = ['thing', 'part']\n",
    "pkg/sub/part.py": b"thing = 1\n",
    "pkg/newer.py": b"type Alias = int\ndef generic[T](): ...\nx = f'{d['k']}'\n",
    "pkg/space/deep.py": b"x = 1\n",
}
LISTING = (*TREE, "pkg/_C.abi3.so", "pkg/sub/fast.cpython-311-x86_64-linux-gnu.so")


def found(text, *, before=None, path="pkg/new.py", listing=LISTING):
    before = {path: before and before.encode()}
    after = {path: text.encode()}
    return judge.judge(before, after, None, "1.0", TREE.get, listing=listing).findings


RESOLVES = [
    "from .listed import hidden",
    "from .stars import shown, a, b, c, d, e, real",
    "from .starmade import a, b",
    "from .counted import _private",
    "from .door import given",
    "from .long import given",
    "from .try_ import gone",
    "from .one import there",
    "from .lazy import anything",
    "from .loader import anything",
    "from .looped import a, z",
    "from .in_def import a",
    "from .updated import a",
    "from .delayed import torch",
    "from .typed import both",
    "from .typed_lazy import real",
    "from .sub import *\nprint(thing, part)",
    "from .sub import thing, part, fast",
    "from .newer import Alias, generic, x",
    "from ._C import ops",
    "from .sub.fast import anything",
    "from .space.deep import x",
    "from .space import deep",
    "from . import _C, core, space",
    "import pkg.sub.part, pkg._C",
    # A build makes them; they are in no text and on no list.
    "from ._version import version",
    "from . import _version, version",
    "from .proto_pb2 import Message",
    "from .sub import core_pb2_grpc",
    # Either branch may be missing.
    "try:\n    from .gone import a\nexcept ImportError:\n    from .never import a",
    "try:\n    import pkg.gone\nexcept (ImportError, OSError):\n    pkg = None",
    "from contextlib import suppress\nwith suppress(ImportError):\n    from .core import gone",
    "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .typed import real",
]


@pytest.mark.parametrize("text", RESOLVES)
def test_an_import_that_python_would_find_is_no_finding(text):
    assert found(text + "\n") == ()


FAILS = [
    ("from .stars import hidden", "pkg/stars.py defines no hidden"),
    ("from .stars import _private", "pkg/stars.py defines no _private"),
    ("from .stars import f", "pkg/stars.py defines no f"),
    (
        "from .door import gone",
        "pkg/door.py takes gone from pkg.core: pkg/core.py defines no gone",
    ),
    (
        "from .door import hidden",
        "pkg/door.py takes hidden from pkg.stars: pkg/stars.py defines no hidden",
    ),
    (
        "from .long import gone",
        "pkg/long.py takes gone from pkg.door: pkg/door.py takes gone from pkg.core: "
        "pkg/core.py defines no gone",
    ),
    (
        "from .one import round",
        "pkg/one.py takes round from pkg.two: pkg/two.py takes round from pkg.one: "
        "pkg/one.py takes round from itself, by way of other modules",
    ),
    (
        "from .self_ import me",
        "pkg/self_.py takes me from pkg.self_: "
        "pkg/self_.py takes me from itself, by way of other modules",
    ),
    ("from .reads import a", "pkg/reads.py defines no a"),
    ("from .delayed import a", "pkg/delayed.py defines no a"),
    ("from .typed import real", "pkg/typed.py has real under TYPE_CHECKING only"),
    ("from .newer import T", "pkg/newer.py defines no T"),
    ("from .sub import slow", "pkg/sub/__init__.py defines no slow"),
    ("from .. import core", "the relative import leads out of the package that pkg/new.py is in"),
    (
        "from .nothing import a",
        "there is neither pkg/nothing.py nor pkg/nothing/__init__.py",
    ),
    ("try:\n    from .core import gone\nexcept KeyError: ...", "pkg/core.py defines no gone"),
    (
        "try: ...\nexcept ImportError:\n    from .core import gone",
        "pkg/core.py defines no gone",
    ),
    ("try: ...\nfinally:\n    from .core import gone", "pkg/core.py defines no gone"),
]


@pytest.mark.parametrize(("text", "why"), FAILS)
def test_an_import_that_python_would_not_find_says_why(text, why):
    assert [one.why for one in found(text + "\n")] == [why]


def test_a_name_that_a_touched_file_loses_is_missed_through_an_untouched_one():
    before = {"pkg/a.py": b"from .door import given\n", "pkg/core.py": TREE["pkg/core.py"]}
    after = {"pkg/a.py": b"from .door import given\nx = 1\n", "pkg/core.py": b"other = 1\n"}

    verdict = judge.judge(before, after, None, "1.0", TREE.get)

    assert [(one.path, one.why) for one in verdict.findings] == [
        ("pkg/a.py", "pkg/door.py takes given from pkg.core: pkg/core.py defines no real")
    ]


@pytest.mark.parametrize("size", [30, 2_000])
def test_modules_that_take_names_from_each_other_without_end_are_no_trouble(size):
    tree = {
        f"pkg/m{n}.py": f"from .m{(n + 1) % size} import *\nfrom .m{(n + 2) % size} import *\n"
        f"from .m{(n + 1) % size} import x\n".encode()
        for n in range(size)
    }
    read = {**TREE, **tree}.get
    texts = {"pkg/a.py": b"from .m0 import x, y\nfrom .m1 import *\nprint(z)\n"}

    verdict = judge.judge({}, texts, None, "1.0", read)

    # Beyond a hundred modules a name is taken to be there.
    assert verdict.holds is (size > 100)


def test_a_plain_module_and_a_package_of_one_name_are_both_asked():
    read = {"pkg/__init__.py": b"", "pkg/a.py": b"x = 1\n", "pkg/a/__init__.py": b"y = 1\n"}.get

    def judged(text):
        return judge.judge({}, {"pkg/new.py": text}, None, "1.0", read, listing=())

    assert judged(b"from .a import x, y\n").holds
    assert [one.why for one in judged(b"from .a import z\n").findings] == ["pkg/a.py defines no z"]


def test_what_was_read_on_the_way_is_noted():
    texts = {"pkg/new.py": b"from .long import given\n"}

    verdict = judge.judge({"pkg/new.py": b""}, texts, None, "1.0", TREE.get)

    assert verdict.reads == ("pkg/core.py", "pkg/door.py", "pkg/long.py")
