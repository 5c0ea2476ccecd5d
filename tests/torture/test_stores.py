"""Stores and links: what an installer shares is never written, and a pop keeps its promise.

The promise (docs/reliability.md): bytes, mode, owner, mtime and attributes always; the
very inode where the receipt says ``kept: inode``.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import subprocess
from pathlib import Path

import pytest

from patchq.agent import protocol, stage
from tests import world as worlds
from tests.agent import agent_lab
from tests.agent.agent_lab import AgentError, Controller
from tests.torture import form, store_lab
from tests.torture.store_lab import CHANGES, EVERYTHING, MODES, held, holds, same_but_inodes

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
RECORD = "demo-1.0.dist-info/RECORD"


@pytest.fixture
def uv(tmp_path):
    return store_lab.Uv(tmp_path)


@pytest.fixture
def site(tmp_path):
    """``demo`` as pip installs it, with an attribute on every file."""
    made = agent_lab.make_site(tmp_path / "site", encoded())
    for path in made.glob("demo/*"):
        os.setxattr(path, "user.label", path.name.encode())
    return made


def encoded():
    return {path: text.encode() for path, text in store_lab.FILES.items()}


def promised(before, site, done):
    """Check the promise of a pop, and what its receipt says of inodes."""
    after = holds(site)
    assert same_but_inodes(after) == same_but_inodes(before)
    assert done["receipt"]["kept"] == done["kept"]
    for path, kept in done["kept"].items():
        if path in before and path != RECORD:
            assert (after[path]["inode"] == before[path]["inode"]) == (kept == "inode"), path
    untouched = before.keys() - done["kept"].keys()
    assert all(after[path]["inode"] == before[path]["inode"] for path in untouched)


def is_there(site, files):
    for path, file in files.items():
        found = agent_lab.file_at(site / path)
        assert found == (file if file is None or isinstance(file, tuple) else (file, False)), path
        assert not (site / path).is_symlink()


# --- uv in its four link modes


@pytest.mark.parametrize("mode", MODES)
def test_no_change_of_any_kind_reaches_uvs_cache(uv, mode):
    env = uv.environment("env", mode)
    before, cached = holds(env.site), uv.cached()
    assert any(path.endswith("demo/a.py") for path in cached)
    assert env.site.joinpath("demo/a.py").is_symlink() == (mode == "symlink")

    for files in (*CHANGES.values(), EVERYTHING):
        pushed = env.controller.push(files)
        is_there(env.site, files)
        assert uv.cached() == cached
        touched = [path for path in files if path in before]
        assert [pushed["kept"][path] for path in touched] == ["inode"] * len(touched)
        popped = env.controller.pop()

        assert set(popped["kept"].values()) <= {"inode"}
        promised(before, env.site, popped)
        assert holds(env.site) == before
        assert uv.cached() == cached
        form.count("stores", f"uv, {mode}", "kinds of change")


@pytest.mark.parametrize("mode", form.some(MODES[1:], 2))
def test_patches_pile_up_and_come_off_in_any_order_of_kinds(uv, mode):
    """Random stacks: each push changes what the one below it left."""
    env = uv.environment("env", mode)
    before, cached = holds(env.site), uv.cached()
    rng = random.Random(mode)
    names = [*store_lab.FILES, "demo/new.py", "demo/made/m.py"]

    for _ in range(40 if form.LONG else 2):
        for depth in range(rng.randrange(1, 5)):
            files = {}
            for path in rng.sample(names, rng.randrange(1, 4)):
                now = agent_lab.file_at(env.site / path)
                new = rng.choice([None, (b"v = %d\n" % rng.randrange(9), rng.random() < 0.3)])
                if new != now:
                    files[path] = new
            if files:
                env.controller.push(files, f"p{depth}")
                is_there(env.site, files)
                assert uv.cached() == cached
        if env.controller.survey()["state"]:
            promised(before, env.site, env.controller.pop())
        assert holds(env.site) == before
        assert uv.cached() == cached
        form.count("stores", f"uv, {mode}", "random stacks")


# --- one inode in two environments


@pytest.mark.parametrize("mode", MODES)
def test_a_patch_in_one_environment_never_shows_in_another(uv, mode):
    one, two = uv.environment("one", mode), uv.environment("two", mode)
    if mode in ("hardlink", "symlink"):
        assert os.path.samefile(one.site / "demo/a.py", two.site / "demo/a.py")
    first, second, cached = holds(one.site), holds(two.site), uv.cached()

    one.controller.push(EVERYTHING)
    assert holds(two.site) == second
    promised(first, one.site, one.controller.pop())
    assert (holds(one.site), holds(two.site)) == (first, second)

    for order in itertools.permutations([(one, first), (two, second)]):
        one.controller.push(EVERYTHING)
        two.controller.push({**EVERYTHING, "demo/a.py": b"x = 3\n"})
        is_there(one.site, EVERYTHING)
        for env, before in order:
            promised(before, env.site, env.controller.pop())
            assert holds(env.site) == before
            assert uv.cached() == cached
        form.count("stores", f"uv, {mode}", "two environments")
    assert one.run("import demo.a; print(demo.a.x)") == "1"


# --- the store goes away, or is installed anew, while a patch is on


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("verb", ["prune", "clean"])
def test_a_pop_after_the_cache_was_cleared_gives_the_bytes_back(uv, mode, verb):
    env = uv.environment("env", mode)
    before = holds(env.site)
    env.controller.push(EVERYTHING)
    uv.run("cache", verb, "-q")
    gone = mode == "symlink" and not (env.site / "demo/still.py").exists()
    if verb == "clean":
        assert gone == (mode == "symlink")

    if gone:
        with pytest.raises(AgentError) as caught:
            env.controller.pop()
        assert caught.value.word == "original-damaged"
        is_there(env.site, EVERYTHING)
    request, _ = env.controller.pop_request()
    pristine = [data for path, data in encoded().items() if path in EVERYTHING]
    done, _ = agent_lab.here(request, {protocol.sha256(data): data for data in pristine})

    if gone:
        for path in EVERYTHING.keys() & before.keys():
            assert (env.site / path).read_bytes() == encoded()[path]
            assert not (env.site / path).is_symlink()
            assert any(path in note for note in done["notes"])
        env.install("--reinstall")
        assert env.run("import demo.still, demo.a; print(demo.still.still, demo.a.x)") == "1 1"
    else:
        promised(before, env.site, done)
        assert holds(env.site) == before
    assert not (env.site / ".patchq/demo/originals").exists()
    form.count("stores", f"uv, {mode}", "cache cleared")


@pytest.mark.parametrize("mode", MODES)
def test_a_reinstall_while_a_patch_is_on_is_told_and_reaches_no_cache(uv, mode):
    env = uv.environment("env", mode)
    cached = uv.cached()
    env.controller.push(EVERYTHING)

    env.install("--reinstall")

    assert {p: f for p, f in uv.cached().items() if "archive-v" in p} == {
        p: f for p, f in cached.items() if "archive-v" in p
    }
    before, cached = holds(env.site), uv.cached()
    assert before["demo/a.py"]["bytes"] == b"x = 1\n"
    assert "demo/made/m.py" not in before
    assert "reinstalled" in env.controller.survey()["orphaned"]
    with pytest.raises(AgentError) as caught:
        env.controller.pop()
    assert caught.value.word == "orphaned"
    assert env.controller.recover()["outcome"] == "set aside"
    env.controller.push(EVERYTHING)
    promised(before, env.site, env.controller.pop())
    assert uv.cached() == cached
    form.count("stores", f"uv, {mode}", "reinstalled")


@pytest.fixture
def linked_world(world, tmp_path):
    """A world whose site is an environment that uv made of links into its cache."""
    uv = store_lab.Uv(tmp_path)
    worlds.wheel(uv.wheels, dict(worlds.FILES))
    return world, uv, uv.environment("env", "symlink")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["pop", "pop -a", "undo"])
def test_the_command_pops_what_the_cache_does_not_have_any_more(linked_world, how):
    """What is there without its patches is the original; no release was fetched."""
    world, uv, env = linked_world
    aim = ("--python", env.python, "--queue", world.queue)
    done = world.run("push", "-a", *aim)
    assert done.returncode == 0, done.stderr
    uv.run("cache", "clean", "-q")
    subprocess.run(["rm", "-r", str(world.root / "cache")], check=True)

    done = world.run(*how.split(), *aim)

    assert done.returncode == 0, done.stdout + done.stderr
    if how == "pop":
        done = world.run("pop", "-a", *aim)
        assert done.returncode == 0, done.stdout + done.stderr
    for path in ("demo/shapes.py", "demo/data.txt"):
        assert (env.site / path).read_bytes() == worlds.FILES[path].encode()
    assert not (env.site / "demo/more.py").exists()
    form.count("stores", "uv, symlink", "cache cleared")


@pytest.mark.slow
def test_the_command_says_how_each_original_is_kept(world, tmp_path):
    with store_lab.ext4(tmp_path) as disk:
        subprocess.run(["cp", "-a", world.site, disk / "site"], check=True)
        store_lab.fill(disk / "site/demo/shapes.py", disk / "names")
        aim = ("--target", disk / "site", "--queue", world.queue)
        assert world.run("push", "-a", *aim).returncode == 0

        said = world.run("status", "-v", *aim)
        popped = json.loads(world.run("pop", "-a", *aim, "--json").stdout)

    assert said.returncode == 0, said.stderr
    assert [line for line in said.stdout.splitlines() if "kept" in line] == [
        "original kept: inode: demo/data.txt",
        "original kept: none, it is new: demo/more.py",
        "original kept: copy: demo/shapes.py",
    ]
    assert popped["kept"]["demo/shapes.py"] == "copy"
    assert popped["kept"]["demo/data.txt"] == "inode"
    form.count("links", "an inode with 65000 names", "told")


# --- names run out


@only_root
@pytest.mark.parametrize(
    "path", form.some(["demo/a.py", "demo/tool.py", "demo/gone.py", RECORD], 2)
)
def test_an_inode_that_can_get_no_more_names_is_kept_as_a_copy(tmp_path, path):
    with store_lab.ext4(tmp_path) as disk:
        site = agent_lab.make_site(disk / "site", encoded())
        os.setxattr(site / path, "user.label", b"kept")
        store_lab.fill(site / path, disk / "names")
        before, store = holds(site), held(disk / "names/0")

        pushed = Controller(site).push(EVERYTHING)
        assert pushed["kept"][path] == "copy"
        is_there(site, EVERYTHING)
        assert held(disk / "names/0") == store
        popped = Controller(site).pop()

        assert same_but_inodes(holds(site)) == same_but_inodes(before)
        if path != RECORD:
            promised(before, site, popped)
            assert popped["kept"][path] == "copy"
        assert held(disk / "names/0") == store
    form.count("links", "an inode with 65000 names", "given back")


@only_root
def test_names_that_run_out_while_a_patch_is_on_give_a_copy_back(tmp_path):
    with store_lab.ext4(tmp_path) as disk:
        site = agent_lab.make_site(disk / "site", encoded())
        os.setxattr(site / "demo/gone.py", "user.label", b"kept")
        os.link(site / "demo/gone.py", disk / "store")
        before = holds(site)
        assert Controller(site).push(EVERYTHING)["kept"]["demo/gone.py"] == "inode"
        store_lab.fill(disk / "store", disk / "names")

        done = Controller(site).pop()

        assert done["kept"]["demo/gone.py"] == "copy"
        promised(before, site, done)
        assert held(disk / "store")["inode"] == before["demo/gone.py"]["inode"]
    form.count("links", "an inode with 65000 names", "given back")


# --- lower layers of an overlay


@only_root
@pytest.mark.parametrize("mode", MODES)
def test_a_lower_layer_is_never_written_and_the_promise_holds(tmp_path, mode):
    image = tmp_path / "image"
    uv = store_lab.Uv(image)
    env = uv.environment("env", mode)
    lower, cached = holds(env.site), uv.cached()
    if mode == "hardlink":
        assert (env.site / "demo/a.py").stat().st_nlink > 1

    with store_lab.overlay(tmp_path, image) as merged:
        site = merged / env.site.relative_to(image)
        if mode == "symlink":
            for path in [p for p in site.rglob("*") if p.is_symlink()]:
                # The links name the cache by where it was built; in the image they fit.
                target = os.readlink(path)
                path.unlink()
                path.symlink_to(target.replace(str(image), str(merged)))
        before = holds(site)
        pushed = Controller(site).push(EVERYTHING)
        is_there(site, EVERYTHING)
        popped = Controller(site).pop()

        promised(before, site, popped)
        assert {p: pushed["kept"][p] for p in popped["kept"] if p in pushed["kept"]} == {
            p: popped["kept"][p] for p in popped["kept"] if p in pushed["kept"]
        }
        inside = merged / uv.cache.relative_to(image)
        for name, facts in cached.items():
            if (inside / name).exists():
                assert (inside / name).read_bytes() == facts["bytes"]
    assert holds(env.site) == lower
    assert uv.cached() == cached
    form.count("stores", f"uv, {mode}", "lower layer")


# --- the promise where the kept inode is another now


def touch_all(path: Path, change: str) -> None:
    if change == "mode":
        path.chmod(0o755)
    elif change == "owner":
        os.chown(path, 4242, 4242)
    else:
        os.utime(path, ns=(10**18, 10**18))


@pytest.mark.parametrize("change", ["mode", "owner", "mtime"])
@pytest.mark.parametrize("path", ["demo/a.py", "demo/gone.py", "demo/tool.py"])
def test_what_changed_in_the_store_meanwhile_is_not_given_back(site, tmp_path, path, change):
    if change == "owner" and os.geteuid() != 0:
        pytest.skip("only root gives files away")
    os.link(site / path, tmp_path / "store")
    before = holds(site)
    Controller(site).push(EVERYTHING)
    touch_all(tmp_path / "store", change)
    store = held(tmp_path / "store")

    done = Controller(site).pop()

    promised(before, site, done)
    assert done["kept"][path] == "copy"
    assert any(note.startswith(path) for note in done["notes"])
    assert held(tmp_path / "store") == store
    form.count("links", f"an inode whose {change} changed in the store", "given back")


@pytest.mark.parametrize("path", ["demo/a.py", "demo/gone.py", "demo/tool.py"])
def test_the_attributes_of_a_copy_are_those_of_the_original(site, monkeypatch, path):
    """Where a prefix is in sight every original is given back as a copy."""
    before = holds(site)
    Controller(site).push(EVERYTHING)
    if (site / path).exists():
        os.setxattr(site / path, "user.other", b"of the patched file")
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", "/nowhere")

    done = Controller(site).pop()

    after = holds(site)
    for some in (before, after):
        for facts in some.values():
            facts["mtime"] = None
    assert same_but_inodes(after) == same_but_inodes(before)
    assert done["kept"][path] == "copy"
    assert done["receipt"]["kept"] == done["kept"]
    form.count("links", "an original with attributes, as a copy", "given back")


@pytest.mark.parametrize("bits", [0o644, 0o600, 0o4755, 0o444])
def test_a_copy_has_bytes_mode_owner_mtime_and_attributes(tmp_path, bits):
    source, name = tmp_path / "source", tmp_path / "copy"
    source.write_bytes(b"x = 1\n" * 1000)
    os.setxattr(source, "user.label", b"kept")
    source.chmod(bits)
    os.utime(source, ns=(1_000_000_007, 1_000_000_007))

    stage.copy(str(source), str(name))

    assert {**held(name), "inode": 0} == {**held(source), "inode": 0}


def test_a_copy_of_a_link_is_the_link_with_its_owner_and_mtime(tmp_path):
    (tmp_path / "source").symlink_to("nowhere")
    os.utime(tmp_path / "source", ns=(1_000_000_007, 1_000_000_007), follow_symlinks=False)

    stage.copy(str(tmp_path / "source"), str(tmp_path / "copy"))

    assert {**held(tmp_path / "copy"), "inode": 0} == {**held(tmp_path / "source"), "inode": 0}


# --- links inside the package


@pytest.mark.parametrize("target", ["data.json", "./data.json", "{site}/demo/data.json"])
@pytest.mark.parametrize("files", ["link", "target", "both"])
def test_a_link_inside_the_package_is_given_back_as_a_link(site, target, files):
    link = site / "demo/still.py"
    link.unlink()
    link.symlink_to(target.format(site=site))
    before = holds(site)
    wanted = {
        "link": {"demo/still.py": b"still = 2\n"},
        "target": {"demo/data.json": b"[]\n"},
        "both": {"demo/still.py": b"still = 2\n", "demo/data.json": b"[]\n"},
    }[files]

    Controller(site).push(wanted)
    is_there(site, wanted)
    if files == "link":
        assert (site / "demo/data.json").read_bytes() == b"{}\n"
    done = Controller(site).pop()

    promised(before, site, done)
    assert holds(site) == before
    form.count("links", "a link inside the package", "given back")


def test_a_link_to_a_link_is_given_back(site):
    (site / "demo/still.py").unlink()
    (site / "demo/still.py").symlink_to("middle.py")
    (site / "demo/middle.py").symlink_to("a.py")
    before = holds(site)

    Controller(site).push({"demo/still.py": b"still = 2\n"})
    promised(before, site, Controller(site).pop())

    assert holds(site) == before
    form.count("links", "a link inside the package", "given back")


def test_a_link_that_dangles_is_refused(site):
    (site / "demo/still.py").unlink()
    (site / "demo/still.py").symlink_to("nowhere.py")
    before = holds(site)

    survey = Controller(site).survey(["demo/still.py"])
    assert "dangling" in survey["files"]["demo/still.py"]["problem"]
    with pytest.raises(AgentError) as caught:
        Controller(site).push({"demo/still.py": b"still = 2\n"})

    assert caught.value.word in ("in-the-way", "changed")
    assert holds(site) == before
    form.count("links", "a link that dangles", "refused")


@pytest.mark.parametrize("kind", ["package", "sub", "absolute and back"])
def test_a_folder_that_leads_out_is_refused_and_nothing_there_is_touched(site, tmp_path, kind):
    folder = site / ("demo/sub" if kind == "sub" else "demo")
    if kind == "sub":
        folder.mkdir()
        (folder / "m.py").write_bytes(b"m = 1\n")
    folder.rename(tmp_path / "outside")
    if kind == "absolute and back":
        (tmp_path / "hop").symlink_to(tmp_path / "outside")
        folder.symlink_to(tmp_path / "hop")
    else:
        folder.symlink_to(tmp_path / "outside")
    path = "demo/sub/m.py" if kind == "sub" else "demo/a.py"
    before, outside = holds(site), holds(tmp_path / "outside")

    for files in ({path: b"x = 2\n"}, {os.path.dirname(path) + "/new.py": b""}, {path: None}):
        with pytest.raises(AgentError) as caught:
            Controller(site).push(files)
        assert caught.value.word == "in-the-way"
        assert "leads out" in caught.value.why
        form.count("links", "a folder that leads out", "refused")

    assert holds(site) == before
    assert holds(tmp_path / "outside") == outside
    assert not (site / ".patchq").exists()


def test_a_folder_that_is_a_link_inside_is_followed(site):
    (site / "demo/real").mkdir()
    (site / "demo/real/m.py").write_bytes(b"m = 1\n")
    (site / "demo/alias").symlink_to("real")
    before = holds(site)

    Controller(site).push({"demo/alias/m.py": b"m = 2\n"})
    assert (site / "demo/real/m.py").read_bytes() == b"m = 2\n"
    promised(before, site, Controller(site).pop())

    assert holds(site) == before
    form.count("links", "a folder that is a link inside", "given back")


def test_one_file_by_two_names_of_a_folder_is_refused_whole(site):
    (site / "demo/real").mkdir()
    (site / "demo/real/m.py").write_bytes(b"m = 1\n")
    (site / "demo/alias").symlink_to("real")
    before = holds(site)

    with pytest.raises(AgentError) as caught:
        Controller(site).push({"demo/alias/m.py": b"m = 2\n", "demo/real/m.py": b"m = 3\n"})

    assert caught.value.mend
    assert holds(site) == before
    assert Controller(site).recover()["outcome"] == "nothing"
    form.count("links", "one file by two names of a folder", "refused")


@pytest.mark.parametrize("files", ["one", "both", "one deleted", "both deleted"])
def test_a_hard_link_inside_the_package_keeps_both_names(site, files):
    (site / "demo/still.py").unlink()
    os.link(site / "demo/a.py", site / "demo/still.py")
    before = holds(site)
    wanted = {
        "one": {"demo/a.py": b"x = 2\n"},
        "both": {"demo/a.py": b"x = 2\n", "demo/still.py": b"x = 3\n"},
        "one deleted": {"demo/a.py": None},
        "both deleted": {"demo/a.py": None, "demo/still.py": None},
    }[files]

    Controller(site).push(wanted)
    is_there(site, wanted)
    if "both" not in files:
        assert held(site / "demo/still.py") == before["demo/still.py"]
    promised(before, site, Controller(site).pop())

    assert holds(site) == before
    assert os.path.samefile(site / "demo/a.py", site / "demo/still.py")
    form.count("links", "a hard link inside the package", "given back")
