"""Laws of the editing verbs on a real tree: what `refresh` writes, `push` reads and `pop` undoes.

Names, contents and modes are made up; every step is the installed command's.
"""

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.torture.form import LONG
from tests.world import World

pytestmark = pytest.mark.slow

LINES = st.lists(
    st.sampled_from(
        [
            b"x = 1",
            b"y = 'two'",
            b"",
            b"  z = 3  ",
            b"w = 4\r",
            b"\xe9t\xe9",
            b"a\x0cb",
            b"--- a/x",
        ]
    ),
    max_size=8,
)
TEXTS = st.builds(lambda rows, end: b"\n".join(rows) + end, LINES, st.sampled_from([b"", b"\n"]))
NAMES = st.sampled_from(
    [
        "units.py",
        "shapes.py",
        "data.txt",
        "__init__.py",
        "new.txt",
        "a b.txt",
        "ü%.txt",
        "d/e/f.txt",
    ]
)
# What somebody makes of a file: None takes it away; the mode is the owner's right to execute it.
FILE = st.one_of(st.none(), st.tuples(TEXTS, st.booleans()))
EDITS = st.dictionaries(NAMES, FILE, min_size=1, max_size=4)
LAWS = settings(
    max_examples=100 if LONG else 5,
    phases=[Phase.generate],  # an example takes seconds: none is made smaller
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture
def copied(world):
    """Return what makes a fresh copy of the world, which goes with the test."""
    with tempfile.TemporaryDirectory() as folder:
        numbers = iter(range(10**6))

        def copy():
            root = Path(folder) / str(next(numbers))
            shutil.copytree(world.root, root, symlinks=True)
            return World(root)

        yield copy


def look(world):
    """Return every file of the site with its right to be executed, and the folders."""
    found = {}
    for path in sorted(world.site.rglob("*")):
        if ".patchq" not in path.parts and "__pycache__" not in path.parts:
            name = str(path.relative_to(world.site))
            found[name] = (path.read_bytes(), os.access(path, os.X_OK)) if path.is_file() else None
    return found


def edit(world, edits):
    for name, file in edits.items():
        path = world.site / "demo" / name
        if file is None:
            path.unlink(missing_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file[0])
        path.chmod(0o755 if file[1] else 0o644)


def done(world, *args):
    result = world.here(*args)
    assert result.returncode in (0, 2), f"{args}: {result.stdout}{result.stderr}"
    return result


@given(EDITS, EDITS)
@LAWS
def test_pop_undoes_a_refresh_and_push_gives_it_again(copied, first, second):
    world = copied()
    before = look(world)
    done(world, "new", "05-law.patch")
    done(world, "add", *(f"demo/{name}" for name in {**first, **second}))
    edit(world, first)
    done(world, "refresh")
    edit(world, second)
    done(world, "refresh")
    after = look(world)
    assert done(world, "status").returncode == 0

    done(world, "pop")
    assert look(world) == before
    pushed = world.here("push", "05-law")

    if pushed.returncode == 3 and "judgement" in pushed.stderr:
        assert look(world) == before  # text that is no Python is refused, whole
    else:
        assert pushed.returncode == 0, pushed.stderr
        same = {name: file for name, file in after.items() if "RECORD" not in name}
        assert {name: file for name, file in look(world).items() if "RECORD" not in name} == same
        done(world, "pop")
        assert look(world) == before


@given(EDITS, EDITS)
@LAWS
def test_names_and_order_never_change_the_final_tree(copied, first, second):
    world = copied()
    clean = look(world)
    one = {name: file for name, file in first.items() if name not in second}
    for name, edits in (("01-one.patch", one), ("02-two.patch", second)):
        done(world, "new", name)
        if edits:
            done(world, "add", *(f"demo/{file}" for file in edits))
        edit(world, edits)
        done(world, "refresh")
    final = look(world)

    done(world, "rename", "-P", "01-one.patch", "sub/01-first.patch")
    done(world, "fork", "03-two.patch")
    assert look(world) == final
    sunk = world.here("sink", "03-two.patch")  # the two share no file, but one may judge badly
    assert sunk.returncode in (0, 3), sunk.stdout + sunk.stderr
    assert look(world) == final
    floated = world.here("float", "03-two.patch")
    assert floated.returncode in (0, 2, 3), floated.stderr
    assert look(world) == final
    assert done(world, "status").returncode == 0
    done(world, "pop", "-a")
    assert look(world) == clean
