"""Bytecode: after a push the new code runs, after a pop the old, whatever was compiled when.

Interpreters write bytecode here: PYTHONDONTWRITEBYTECODE is not set for them.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.machinery
import itertools
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from patchq.agent import protocol
from tests.agent import agent_lab
from tests.agent.agent_lab import AgentError, Controller
from tests.torture import bytecode_lab, form
from tests.torture.bytecode_lab import KINDS, SlowImport, Storm, bytecode, value, values, ways

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts, and uses chattr")
OLD, NEW = b"x = 1\n", b"x = 2\n"
FILES = {
    "demo/__init__.py": b"",
    "demo/a.py": OLD,
    "demo/b.py": b"x = 1\n",
    "demo/ab.py": b"x = 1\n",
}


@pytest.fixture
def site(tmp_path):
    """``demo`` whose files have the second of this moment: a new file of now is of it, too."""
    made = agent_lab.make_site(tmp_path / "site", FILES)
    now = int(time.time())
    for path in made.glob("demo/*.py"):
        os.utime(path, (now, now))
    return made


@pytest.fixture
def controller(site):
    return Controller(site)


@pytest.fixture
def stopped(site, monkeypatch):
    """A clock that stands still in the second of the files."""
    now = (site / "demo/a.py").stat().st_mtime + 0.5
    monkeypatch.setattr(time, "time", lambda: now)
    return now


def some_interpreters(number=2):
    return form.some(bytecode_lab.interpreters(), number)


# --- every kind, tag and level, beside the source


@pytest.mark.parametrize("legacy", [False, True], ids=["__pycache__", "beside"])
@pytest.mark.parametrize("kind", KINDS)
def test_bytecode_beside_the_source_never_wins(site, controller, kind, legacy):
    bytecode_lab.compiled_by_all(site, kind, legacy)
    there = len(bytecode(site))
    assert there == (1 if legacy else len(ways()))
    assert values(site) == {"1"}

    controller.push({"demo/a.py": NEW})
    assert not any("a.c" in name for name in bytecode(site))
    assert values(site) == {"2"}
    bytecode_lab.compiled_by_all(site, kind, legacy)
    assert values(site) == {"2"}
    controller.pop()

    assert values(site) == {"1"}
    where = "beside the source" if legacy else "in __pycache__"
    form.count("bytecode", f"{kind}, {where}", "push", len(ways()))
    form.count("bytecode", f"{kind}, {where}", "pop", len(ways()))


@pytest.mark.parametrize("kind", KINDS)
def test_bytecode_of_neighbours_stays(site, controller, kind):
    paths = [site / "demo/b.py", site / "demo/ab.py", site / "demo/__init__.py"]
    bytecode_lab.compiled(sys.executable, paths, kind)
    before = bytecode(site)

    controller.push({"demo/a.py": NEW})
    controller.pop()

    assert bytecode(site) == before


@pytest.mark.parametrize("kind", KINDS)
def test_a_deleted_module_is_gone_for_every_interpreter(site, controller, kind):
    bytecode_lab.compiled_by_all(site, kind, legacy=False)
    bytecode_lab.compiled_by_all(site, kind, legacy=True)

    controller.push({"demo/a.py": None})
    assert values(site) == {"gone"}
    controller.pop()

    assert values(site) == {"1"}
    form.count("bytecode", f"{kind}, of a deleted module", "push", len(ways()))
    form.count("bytecode", f"{kind}, of a deleted module", "pop", len(ways()))


@pytest.mark.parametrize(
    "path", form.some(["demo/made.py", "demo/deep/made.py", "demo/deep/er/made.py"], 2)
)
def test_a_created_module_leaves_no_bytecode_and_no_folder(site, controller, path):
    """The folders have no __init__.py: they are namespace packages."""
    name = path[:-3].replace("/", ".")
    before = sorted(p for p in site.rglob("*") if ".patchq" not in p.parts)
    assert values(site, name=name) == {"gone"}

    controller.push({path: b"x = 2\n"})
    assert values(site, name=name) == {"2"}
    bytecode_lab.compiled(sys.executable, [site / path], "unchecked-hash", legacy=True)
    controller.pop()

    assert values(site, name=name) == {"gone"}
    left = sorted(p for p in site.rglob("*") if ".patchq" not in p.parts)
    cache = [site / "demo/__pycache__", *(site / "demo/__pycache__").glob("__init__.*")]
    assert [p for p in left if p not in cache] == [p for p in before if p not in cache]
    form.count("bytecode", "of a created module", "push", len(ways()))
    form.count("bytecode", "of a created module", "pop", len(ways()))


@pytest.mark.parametrize("listed", [False, True])
def test_a_module_without_source_is_given_back_where_a_patch_created_the_source(
    site, controller, listed
):
    bytecode_lab.compiled(sys.executable, [site / "demo/b.py"], legacy=True)
    (site / "demo/b.py").rename(site.parent / "b.py")
    if listed:
        _list(site, "demo/b.pyc")
    before = bytecode(site)
    assert value(sys.executable, site, name="demo.b") == "1"
    before = {name: data for name, data in before.items() if "__pycache__" not in name}

    controller.push({"demo/b.py": b"x = 2\n"})
    assert value(sys.executable, site, name="demo.b") == "2"
    bytecode_lab.compiled(sys.executable, [site / "demo/b.py"], legacy=True)
    controller.pop()

    assert value(sys.executable, site, name="demo.b") == "1"
    after = {name: data for name, data in bytecode(site).items() if "__pycache__" not in name}
    assert after == before
    form.count("bytecode", "a module without source", "pop")


def test_a_module_of_a_namespace_package_that_another_distribution_shares(tmp_path):
    site = agent_lab.make_site(tmp_path / "s", {"space/one.py": OLD}, name="demo")
    agent_lab.make_site(site, {"space/two.py": OLD}, name="other")
    bytecode_lab.compiled(sys.executable, site.glob("space/*.py"))
    two = {name: data for name, data in bytecode(site).items() if "two" in name}

    Controller(site).push({"space/one.py": NEW, "space/three/m.py": NEW})
    assert value(sys.executable, site, name="space.one") == "2"
    assert value(sys.executable, site, name="space.three.m") == "2"
    Controller(site).pop()

    assert value(sys.executable, site, name="space.one") == "1"
    assert value(sys.executable, site, name="space.three.m") == "gone"
    assert {name: data for name, data in bytecode(site).items() if "two" in name} == two
    assert not (site / "space/three").exists()
    form.count("bytecode", "of a namespace package", "push")
    form.count("bytecode", "of a namespace package", "pop")


def _list(site, *names):
    record = site / "demo-1.0.dist-info/RECORD"
    record.write_bytes(record.read_bytes() + b"".join(f"{n},,\r\n".encode() for n in names))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("file", [NEW, None], ids=["changed", "deleted"])
def test_bytecode_that_record_lists_comes_back_and_is_used(site, controller, kind, file):
    """pip compiles what it installs, and lists it."""
    pythons = some_interpreters()
    for python in pythons:
        bytecode_lab.compiled(python, site.glob("demo/*.py"), kind)
    _list(site, *bytecode(site))
    before, inodes = bytecode(site), _inodes(site)

    controller.push({"demo/a.py": file})
    assert value(pythons[0], site) == ("2" if file else "gone")
    controller.pop()

    assert bytecode(site) == before
    assert _inodes(site) == inodes
    assert {value(python, site) for python in pythons} == {"1"}
    assert _inodes(site) == inodes  # nobody compiled it again
    form.count("bytecode", f"{kind}, listed in RECORD", "push", len(pythons))
    form.count("bytecode", f"{kind}, listed in RECORD", "pop", len(pythons))


def _inodes(site):
    return {
        name: ((site / name).stat().st_ino, (site / name).stat().st_mtime_ns)
        for name in bytecode(site)
    }


# --- a PYTHONPYCACHEPREFIX


@pytest.mark.parametrize("kind", KINDS[:2])
def test_a_prefix_that_nobody_knows_holds_nothing_that_matches(site, controller, tmp_path, kind):
    """The new file has the same size, and was made in the second of the old one."""
    prefix = tmp_path / "prefix"
    bytecode_lab.compiled_by_all(site, kind, False, prefix)
    assert len(bytecode(prefix)) == len(ways())

    rounds = 4 if form.LONG else 2
    for number in range(2, 2 + rounds):
        controller.push({"demo/a.py": b"x = %d\n" % number})
        assert values(site, (prefix,)) == {str(number)}
        controller.pop()
        assert values(site, (prefix,)) == {"1"}

    form.count("bytecode", f"{kind}, under a prefix", "push", rounds * len(ways()))
    form.count("bytecode", f"{kind}, under a prefix", "pop", rounds * len(ways()))


def test_unchecked_bytecode_under_a_prefix_that_nobody_knows_is_out_of_reach(
    site, controller, tmp_path
):
    """docs/reliability.md says so: Python is told to run it whatever the source says."""
    bytecode_lab.compiled(
        sys.executable, [site / "demo/a.py"], "unchecked-hash", prefix=tmp_path / "prefix"
    )

    controller.push({"demo/a.py": NEW})

    assert value(sys.executable, site, prefix=tmp_path / "prefix") == "1"
    assert value(sys.executable, site) == "2"


@contextlib.contextmanager
def in_agents_environment(site, prefix):
    os.environ["PYTHONPYCACHEPREFIX"] = str(prefix)
    try:
        yield Controller(site)
    finally:
        del os.environ["PYTHONPYCACHEPREFIX"]


@contextlib.contextmanager
def in_sitecustomize(site, prefix):
    (site / "sitecustomize.py").write_text(f"import sys\nsys.pycache_prefix = {str(prefix)!r}\n")
    yield Controller(site)


@contextlib.contextmanager
def in_linked_sitecustomize(site, prefix):
    """Debian's is a link into /etc."""
    etc = site.parent / "etc.py"
    etc.write_text(f"import sys\nsys.pycache_prefix = {str(prefix)!r}\n")
    (site / "sitecustomize.py").symlink_to(etc)
    yield Controller(site)


def in_process(environ: bytes, cmdline: bytes):
    """Show the agent, and nobody else, a process that was started so."""

    @contextlib.contextmanager
    def shown(site, prefix):
        fake = site.parent / "process"
        fake.mkdir()
        (fake / "environ").write_bytes(environ % os.fsencode(prefix) if environ else b"A=1\0")
        (fake / "cmdline").write_bytes(cmdline % os.fsencode(prefix) if cmdline else b"sh\0")
        sleeper = subprocess.Popen(["sleep", "600"])
        wrapper = site.parent / "python"
        over = f"mount --bind {fake} /proc/{sleeper.pid}"
        wrapper.write_text(
            f'#!/bin/sh\nexec unshare -m sh -c \'{over} && exec {sys.executable} "$@"\' sh "$@"\n'
        )
        wrapper.chmod(0o755)

        def ask(message, blobs=None):
            with agent_lab.Process(str(wrapper)) as process:
                return process.ask(message, blobs)

        try:
            yield Controller(site, ask)
        finally:
            sleeper.kill()
            sleeper.wait()

    return shown


SIGHTS = {
    "the agent's environment": in_agents_environment,
    "sitecustomize.py": in_sitecustomize,
    "a linked sitecustomize.py": in_linked_sitecustomize,
    "a process's environment": in_process(b"A=1\0PYTHONPYCACHEPREFIX=%s\0B=2\0", b""),
    "a process's first variable": in_process(b"PYTHONPYCACHEPREFIX=%s\0B=2\0", b""),
    "a process's -X": in_process(b"", b"python3\0-X\0pycache_prefix=%s\0m.py\0"),
    "a process's -X in one word": in_process(b"", b"python3\0-Xpycache_prefix=%s\0m.py\0"),
    "a process's -BX": in_process(b"", b"python3\0-BXpycache_prefix=%s\0m.py\0"),
}


@only_root
@pytest.mark.parametrize("sight", SIGHTS)
def test_new_code_under_the_old_files_time_does_not_run_after_a_pop(site, tmp_path, sight):
    """Somebody looked at the old file's time, and compiled the new one's text."""
    prefix = tmp_path / "prefix"
    before = (site / "demo/a.py").stat()
    Controller(site).push({"demo/a.py": NEW})
    assert value(sys.executable, site, prefix=prefix) == "2"
    _stamp(prefix, before)

    with SIGHTS[sight](site, prefix) as controller:
        done = controller.pop()

    assert (site / "demo/a.py").read_bytes() == OLD
    assert "PYTHONPYCACHEPREFIX" in done["notes"][0]
    assert int((site / "demo/a.py").stat().st_mtime) != int(before.st_mtime)
    assert value(sys.executable, site, prefix=prefix) == "1"
    form.count("bytecode", f"a prefix in sight: {sight}", "pop")


def _stamp(folder, old):
    """Put the old file's time and size into what was compiled of demo.a, as a race would."""
    (pyc,) = folder.rglob("a.*.pyc")
    data = pyc.read_bytes()
    stamp = int(old.st_mtime).to_bytes(4, "little") + old.st_size.to_bytes(4, "little")
    pyc.write_bytes(data[:8] + stamp + data[16:])


# --- a process that compiles while we push and pop

# Within one import somebody pushes and pops, and it writes last: nothing can be done
# but to give no original its time back (docs/reliability.md).
OUT_OF_REACH = ("look", "push", "read", "pop", "write")


def interleavings():
    for places in itertools.combinations(range(5), 2):
        steps = iter(("look", "read", "write"))
        moves = iter(("push", "pop"))
        yield tuple(next(moves) if at in places else next(steps) for at in range(5))


def _interleave(site, controller, order):
    slow, x = SlowImport(site), "1"
    for step in order:
        if step == "push":
            controller.push({"demo/a.py": NEW})
            x = "2"
        elif step == "pop":
            controller.pop()
            x = "1"
        else:
            slow.go(step)
            if step != "write":
                continue
        yield step, value(sys.executable, site, quiet=True), x
    slow.end()
    yield "end", value(sys.executable, site), x


ORDERS = [order for order in interleavings() if order != OUT_OF_REACH]


@pytest.mark.parametrize("order", form.some(ORDERS, 4), ids=" ".join)
def test_an_import_that_is_slow_in_any_way_leaves_no_wrong_code(site, controller, order):
    for step, found, wanted in _interleave(site, controller, order):
        assert found == wanted, step

    form.count("bytecode", "a slow import, in any order", "pop")


def test_an_import_that_lasts_over_a_push_and_a_pop_is_out_of_reach(site, controller):
    *_, (_, found, wanted) = _interleave(site, controller, OUT_OF_REACH)

    assert (found, wanted) == ("2", "1")
    controller.push({"demo/b.py": b"x = 2\n", "demo/a.py": b"x = 3\n"})
    assert value(sys.executable, site) == "3"
    controller.pop()
    assert value(sys.executable, site) == "1"


MOMENTS = {
    "before the rename": ("rename", "demo/a.py"),
    "before the clearing up": ("unlink", "demo/journal"),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_new_code_that_is_written_within_a_pop_does_not_stay(
    site, controller, monkeypatch, moment
):
    """An import looked at the old file, read the new one, and writes while the pop runs."""
    slow = SlowImport(site)
    slow.go("look")
    controller.push({"demo/a.py": NEW})
    slow.go("read")
    request, blobs = controller.pop_request()
    name, last = MOMENTS[moment]
    call = getattr(os, name)

    def meanwhile(*arguments, **more):
        if slow.waits and str(arguments[-1]).endswith(last):
            slow.end()
            assert len(list(site.glob("demo/__pycache__/a.*.pyc"))) == 1
        return call(*arguments, **more)

    monkeypatch.setattr(os, name, meanwhile)
    agent_lab.here(request, blobs)
    monkeypatch.undo()

    assert not slow.waits
    assert value(sys.executable, site) == "1"
    form.count("bytecode", "a slow import that writes within the pop", "pop")


@pytest.mark.slow
def test_processes_that_import_without_end_see_whole_files_only(site, tmp_path, controller):
    rounds = 60 if form.LONG else 3
    pythons = form.some(bytecode_lab.interpreters(), 2)[:2]
    prefix = tmp_path / "prefix"
    with contextlib.ExitStack() as stack:
        storms = [
            stack.enter_context(
                Storm(python, site, tmp_path / f"count{number}{bool(where)}", where)
            )
            for number, python in enumerate(pythons)
            for where in (None, prefix)
        ]
        for _ in range(rounds):
            controller.push({"demo/a.py": NEW})
            for storm in storms:
                storm.wait()
            assert {value(python, site) for python in pythons} == {"2"}
            controller.pop()
            for storm in storms:
                storm.wait()
            assert {value(python, site) for python in pythons} == {"1"}

    form.count("bytecode", "four processes that import without end", "push", rounds)
    form.count("bytecode", "four processes that import without end", "pop", rounds)


def test_a_created_folder_goes_although_a_process_compiles_into_it(site, controller, monkeypatch):
    """Python makes the folders again that its bytecode needs."""
    controller.push({"demo/deep/m.py": b"x = 2\n"})
    request, blobs = controller.pop_request()
    cache, unlink = site / "demo/deep/__pycache__", os.unlink

    def meanwhile(path, **more):
        if str(path).endswith("demo/journal"):
            assert not cache.exists()
            cache.mkdir(parents=True)
            (cache / "m.cpython-311.pyc").write_bytes(b"late")
        return unlink(path, **more)

    monkeypatch.setattr(os, "unlink", meanwhile)
    agent_lab.here(request, blobs)
    monkeypatch.undo()

    assert not (site / "demo/deep").exists()
    form.count("bytecode", "of a created module, written within the pop", "pop")


# --- what is imported in the place of a module


def twins():
    tags = {f"cpython-3{minor}-x86_64-linux-gnu.so" for minor in range(8, 14)}
    own = [suffix[1:] for suffix in importlib.machinery.EXTENSION_SUFFIXES]
    return [*own, *sorted(tags - set(own)), "cpython-313t-x86_64-linux-gnu.so"]


@pytest.mark.parametrize("suffix", twins())
@pytest.mark.parametrize("file", [NEW, None, (OLD, True)], ids=["changed", "deleted", "mode"])
def test_a_compiled_twin_is_refused(site, controller, suffix, file):
    """Of any interpreter: a folder that is a --target serves several."""
    (site / f"demo/a.{suffix}").write_bytes(b"")
    before = agent_lab.snapshot(site)

    with pytest.raises(AgentError) as caught:
        controller.push({"demo/a.py": file})

    assert caught.value.word == "in-the-way"
    assert "compiled twin" in caught.value.why
    assert agent_lab.snapshot(site) == before
    assert not (site / ".patchq").exists()
    form.count("bytecode", "a compiled twin", "refused")


def test_a_new_module_with_a_compiled_twin_is_refused(site, controller):
    (site / f"demo/new{importlib.machinery.EXTENSION_SUFFIXES[0]}").write_bytes(b"")

    with pytest.raises(AgentError) as caught:
        controller.push({"demo/new.py": NEW})

    assert "compiled twin" in caught.value.why
    form.count("bytecode", "a compiled twin", "refused")


@pytest.mark.parametrize("name", ["abc.so", "ab.cpython-311-x86_64-linux-gnu.so", "a_b.so"])
def test_an_extension_of_another_name_is_no_twin(site, controller, name):
    (site / "demo" / name).write_bytes(b"")

    controller.push({"demo/a.py": NEW})

    assert value(sys.executable, site) == "2"


@pytest.mark.parametrize(
    "start",
    ["__init__.py", "__init__.pyc", "__init__" + importlib.machinery.EXTENSION_SUFFIXES[0]],
)
def test_a_package_of_the_same_name_is_refused(site, controller, start):
    (site / "demo/a").mkdir()
    (site / "demo/a" / start).write_bytes(b"")

    with pytest.raises(AgentError) as caught:
        controller.push({"demo/a.py": NEW})

    assert "of the same name wins" in caught.value.why
    form.count("bytecode", "a package of the module's name", "refused")


def test_a_folder_of_the_same_name_that_is_no_package_is_no_twin(site, controller):
    (site / "demo/a").mkdir()
    (site / "demo/a/data.txt").write_bytes(b"")

    controller.push({"demo/a.py": NEW})

    assert value(sys.executable, site) == "2"


# --- a __pycache__ that is not as usual


@contextlib.contextmanager
def chattr(path: Path, flag: int):
    handle = os.open(path, os.O_RDONLY)
    old = fcntl.ioctl(handle, 0x80086601, b"\0" * 8)
    try:
        value = int.from_bytes(old[:4], sys.byteorder) | flag
        fcntl.ioctl(handle, 0x40086602, value.to_bytes(4, sys.byteorder) + b"\0" * 4)
        yield
    finally:
        fcntl.ioctl(handle, 0x40086602, old)
        os.close(handle)


@contextlib.contextmanager
def read_only(path: Path):
    subprocess.run(["mount", "--bind", path, path], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", path], check=True)
        yield
    finally:
        subprocess.run(["umount", path], check=True)


STUCK = {
    "immutable folder": (lambda path: chattr(path, 0x10), "demo/__pycache__"),
    "append-only folder": (lambda path: chattr(path, 0x20), "demo/__pycache__"),
    "read-only folder": (read_only, "demo/__pycache__"),
    "immutable file": (lambda path: chattr(path, 0x10), None),
}


@only_root
@pytest.mark.parametrize("how", STUCK)
@pytest.mark.parametrize("kind", KINDS)
def test_bytecode_that_cannot_go_does_no_harm_or_is_refused(site, controller, kind, how):
    guard, name = STUCK[how]
    bytecode_lab.compiled(sys.executable, [site / "demo/a.py"], kind)
    (pyc,) = bytecode(site)
    before, there = agent_lab.snapshot(site), bytecode(site)

    with guard(site / (name or pyc)):
        if kind == "unchecked-hash":
            with pytest.raises(AgentError) as caught:
                controller.push({"demo/a.py": NEW})
            assert caught.value.word == "in-the-way"
            assert "unchecked-hash" in caught.value.why
            assert agent_lab.snapshot(site) == before
            assert not (site / ".patchq").exists()
        else:
            controller.push({"demo/a.py": NEW})
            assert value(sys.executable, site) == "2"
            controller.pop()
            assert value(sys.executable, site) == "1"
            assert bytecode(site) == there or how == "immutable file"
    form.count("bytecode", f"{kind}, {how}", "refused" if kind == "unchecked-hash" else "pop")


@only_root
@pytest.mark.parametrize("kind", KINDS)
def test_a_legacy_file_that_cannot_go_would_bring_a_deleted_module_back(site, controller, kind):
    bytecode_lab.compiled(sys.executable, [site / "demo/a.py"], kind, legacy=True)
    before = agent_lab.snapshot(site)

    with chattr(site / "demo/a.pyc", 0x10):
        with pytest.raises(AgentError) as caught:
            controller.push({"demo/a.py": None})

        assert caught.value.word == "in-the-way"
        assert "demo/a.pyc" in caught.value.what
        assert agent_lab.snapshot(site) == before
        if kind != "unchecked-hash":
            controller.push({"demo/a.py": NEW})
            assert value(sys.executable, site) == "2"
            controller.pop()
    form.count("bytecode", "of a deleted module, immutable", "refused")


@pytest.mark.parametrize("inside", [True, False], ids=["inside", "outside"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_linked_pycache_does_no_harm_or_is_refused(site, controller, tmp_path, kind, inside):
    target = site / "cache" if inside else tmp_path / "cache"
    target.mkdir()
    (site / "demo/__pycache__").symlink_to(target)
    bytecode_lab.compiled(sys.executable, [site / "demo/a.py"], kind)
    assert len(bytecode(target)) == 1
    old = (site / "demo/a.py").stat()

    if kind == "unchecked-hash":
        with pytest.raises(AgentError) as caught:
            controller.push({"demo/a.py": NEW})
        assert caught.value.word == "in-the-way"
        assert "unchecked-hash" in caught.value.why
        assert value(sys.executable, site) == "1"
        form.count("bytecode", f"{KINDS[2]}, __pycache__ is a link", "refused")
        return
    there = bytecode(target)
    controller.push({"demo/a.py": NEW})
    assert bytecode(target) == there
    assert value(sys.executable, site) == "2"
    if kind == "timestamp":
        _stamp(target, old)
    done = controller.pop()

    assert value(sys.executable, site) == "1"
    assert any("__pycache__" in note for note in done["notes"])
    assert int((site / "demo/a.py").stat().st_mtime) != int(old.st_mtime)
    form.count("bytecode", f"{kind}, __pycache__ is a link", "pop")


def test_unchecked_bytecode_of_the_patched_file_behind_a_link_stops_the_pop(
    site, controller, tmp_path
):
    (tmp_path / "cache").mkdir()
    (site / "demo/__pycache__").symlink_to(tmp_path / "cache")
    controller.push({"demo/a.py": NEW})
    bytecode_lab.compiled(sys.executable, [site / "demo/a.py"], "unchecked-hash")

    with pytest.raises(AgentError) as caught:
        controller.pop()

    assert caught.value.word == "in-the-way"
    subprocess.run(["sh", "-c", f"rm {tmp_path}/cache/a.*"], check=True)
    controller.pop()
    assert value(sys.executable, site) == "1"
    form.count("bytecode", f"{KINDS[2]}, __pycache__ is a link", "refused")


# --- times


def test_many_times_in_a_second_no_second_comes_twice(site, controller, tmp_path, stopped):
    """Every new file has a whole second of its own, not in the future."""
    prefix, path = tmp_path / "prefix", site / "demo/a.py"
    first = path.stat().st_mtime_ns
    assert value(sys.executable, site, prefix=prefix) == "1"
    seen = {first // 10**9}

    cycles = 50 if form.LONG else 12
    for number in range(cycles):
        size = b"x = %d\n" % (number % 8 + 2)
        controller.push({"demo/a.py": size, "demo/b.py": size})
        for name in ("a", "b"):
            found = (site / f"demo/{name}.py").stat().st_mtime_ns
            assert found % 10**9 == 0
            assert found <= stopped * 10**9
        assert found // 10**9 not in seen
        seen.add(found // 10**9)
        if number % (1 if form.LONG else 6) == 0:
            assert value(sys.executable, site, prefix=prefix) == str(number % 8 + 2)
        controller.pop()
        assert path.stat().st_mtime_ns == first

    assert value(sys.executable, site, prefix=prefix) == "1"
    form.count("bytecode", "pushes within one second", "push", cycles)


def test_a_second_push_on_a_pushed_file_has_another_second(site, controller, tmp_path, stopped):
    prefix = tmp_path / "prefix"
    seen = {int((site / "demo/a.py").stat().st_mtime)}
    for number in range(2, 9):
        controller.push({"demo/a.py": b"x = %d\n" % number}, f"p{number}")
        assert int((site / "demo/a.py").stat().st_mtime) not in seen
        seen.add(int((site / "demo/a.py").stat().st_mtime))
        assert value(sys.executable, site, prefix=prefix) == str(number)
    survey = controller.survey()
    now = survey["files"]["demo/a.py"]
    down = {"path": "demo/a.py", "before": ["file", now["executable"], now["sha256"]]}
    down["after"] = ["file", False, protocol.sha256(b"x = 4\n")]
    stack = survey["state"]["stack"][:3]
    texts = {protocol.sha256(f"patch p{n}".encode()): f"patch p{n}".encode() for n in range(2, 9)}
    request = controller.request("pop", survey, [down], stack)
    agent_lab.here(request, {**texts, protocol.sha256(b"x = 4\n"): b"x = 4\n"})

    assert value(sys.executable, site, prefix=prefix) == "4"
    controller.pop()
    assert value(sys.executable, site, prefix=prefix) == "1"
    form.count("bytecode", "pushes within one second", "push", 7)


@pytest.mark.parametrize(
    "shift", form.some([0, -(10**9), -1, 1, 5, 86400, 10**8, 2**31], 3), ids=lambda s: f"{s:+}"
)
def test_files_of_the_past_and_of_the_future(site, controller, tmp_path, shift):
    prefix = tmp_path / "prefix"
    when = int(time.time()) + shift
    os.utime(site / "demo/a.py", (when, when))
    assert value(sys.executable, site, prefix=prefix) == "1"

    controller.push({"demo/a.py": NEW})
    found = (site / "demo/a.py").stat().st_mtime
    assert found <= time.time()
    assert found % 2**32 != when % 2**32
    assert value(sys.executable, site, prefix=prefix) == "2"
    controller.pop()

    assert (site / "demo/a.py").stat().st_mtime == when
    assert value(sys.executable, site, prefix=prefix) == "1"
    form.count("bytecode", "files of the past and of the future", "push")


def test_a_time_that_is_another_ones_in_32_bits_is_not_given(site, controller):
    """Bytecode has 32 bits of it: what is 2**32 seconds away is the same to Python."""
    files = {f"demo/far{number}.py": b"x = 1\n" for number in range(8)}
    now = int(time.time())
    for number, (path, data) in enumerate(files.items()):
        (site / path).write_bytes(data)
        os.utime(site / path, (now + number + 2**32,) * 2)
    there = {int((site / path).stat().st_mtime) % 2**32 for path in files}
    if there != {now + number for number in range(8)}:
        pytest.fail("this test needs a file system with times after 2106, as ext4 is")

    controller.push(dict.fromkeys(files, b"x = 2\n"))

    assert int((site / "demo/far0.py").stat().st_mtime) not in there
    form.count("bytecode", "files of the past and of the future", "push")


@pytest.mark.parametrize("back", [3, 3600, 10**7])
def test_a_clock_that_was_set_back_gives_no_second_again(
    site, controller, tmp_path, monkeypatch, back
):
    prefix, path, clock = tmp_path / "prefix", site / "demo/a.py", time.time
    seen = {int(path.stat().st_mtime)}

    for number in range(2, 8 if form.LONG else 5):
        ahead = back if number % 2 else 0
        monkeypatch.setattr(time, "time", lambda ahead=ahead: clock() + ahead)
        controller.push({"demo/a.py": b"x = %d\n" % number})
        assert int(path.stat().st_mtime) not in seen
        seen.add(int(path.stat().st_mtime))
        assert value(sys.executable, site, prefix=prefix) == str(number)
        controller.pop()

    form.count("bytecode", "a clock that is set back and forth", "push", len(seen) - 1)
