"""Real trees that stand in the way: a push works rightly, or is refused and changes nothing."""

from __future__ import annotations

import os
import stat

import pytest

from tests.agent import agent_lab
from tests.torture import error_lab, form, tree_lab
from tests.torture.tree_lab import APPEND, IMMUTABLE, NOBODY, Ground, refused

PUSH = error_lab.PUSH
BIG = {"demo/a.py": b"# " + b"x" * 300_000, "demo/n/m.py": b"# " + b"y" * 300_000}
FULL = ("no-space",)
LONG = ("in-the-way", "path-too-long")


@pytest.fixture
def ground():
    made = Ground()
    yield made
    made.close()


def made(ground: Ground) -> agent_lab.Controller:
    """Install the distribution in `site`; return a controller of it."""
    agent_lab.make_site(ground.site)
    return ground.controller()


def works(controller: agent_lab.Controller, files: dict = PUSH) -> dict:
    """Push and pop: the new bytes come, and everything comes back; return the receipt."""
    site = controller.site
    before, modes = error_lab.plain(site), error_lab.attributes(site)
    done = controller.push(files)
    assert done["pending"] is None
    for path, wanted in files.items():
        data = wanted[0] if isinstance(wanted, tuple) else wanted
        assert (site / path).read_bytes() == data if data else not (site / path).exists()
    controller.pop()
    assert error_lab.plain(site) == before
    assert error_lab.attributes(site) == modes
    assert error_lab.left(site) == {"demo", "demo/lock", "demo/ledger.jsonl"}
    return done


def whole_or_refused(controller: agent_lab.Controller, files: dict, *words: str) -> str:
    """Push: either it is done, or refused with the old state; return which."""
    try:
        with refused(controller.site, *words):
            controller.push(files)
            raise Done
    except Done:
        controller.pop()
        return "done"
    return "refused"


class Done(Exception):
    """The push went through."""


# Full trees


@pytest.mark.parametrize("kind", ["tmpfs", "ext4", "ext4 as a user"])
def test_a_disk_that_fills_up_is_told_before_or_undone(ground, kind):
    if kind == "tmpfs":
        ground.tmpfs()
    else:
        ground.disk(size="16M", make="-m 0")
    made(ground)
    uid = NOBODY if kind.endswith("user") else 0
    tree_lab.own(ground.site, uid)
    controller = ground.controller(uid)
    levels = [4 << 20, 2_300_000, 2_200_000, 1_500_000, 1 << 20, 1 << 19, 65536, 4096, 0]

    ends = []
    for leave in form.some(levels, 5):
        tree_lab.fill(ground.site, leave)
        ends.append(whole_or_refused(controller, BIG, *FULL))
        form.count("trees", "full disk", ends[-1])
        if leave == 1 << 20:
            with refused(ground.site, *FULL) as told:
                controller.push(BIG)
            assert "are needed" in told[0].why

    assert (ends[0], ends[-1]) == ("done", "refused")
    (ground.site / "filler").unlink()
    works(controller, BIG)


@pytest.mark.parametrize("kind", ["tmpfs", "ext4"])
def test_a_disk_without_inodes_is_told_before(ground, kind):
    if kind == "tmpfs":
        ground.tmpfs(options="size=8m,nr_inodes=200")
    else:
        ground.disk(size="16M", make="-N 200")
    controller = made(ground)

    ends = []
    for leave in form.some([80, 27, 25, 22, 20, 15, 10, 5, 0], 3):
        tree_lab.fill_names(ground.site, leave)
        ends.append(whole_or_refused(controller, PUSH, *FULL))
        form.count("trees", "no inodes", ends[-1])
        if leave == 20:
            with refused(ground.site, *FULL) as told:
                controller.push(PUSH)
            assert "are needed" in told[0].why

    assert (ends[0], ends[-1]) == ("done", "refused")


# Trees that cannot be written


@pytest.mark.parametrize("part", [".", "demo", "demo-1.0.dist-info", "demo/a.py", ".patchq"])
def test_a_read_only_mount_over_a_part_of_the_tree_is_refused(ground, part):
    controller = made(ground)
    (ground.site / ".patchq").mkdir()
    path = ground.site / part
    ground.mount("--bind", path, path)
    tree_lab.run("mount", "-o", "remount,ro,bind", path)

    with refused(ground.site, "not-writable", "in-the-way") as told:
        controller.push(PUSH)
    assert str(path.resolve()) in f"{told[0]} {told[0].why}"
    form.count("trees", "read-only mount", "refused")


def test_a_disk_that_became_read_only_while_patches_are_on_gives_them_back_later(ground):
    point = ground.disk(size="16M")
    controller = made(ground)
    before = error_lab.whole(ground.site)
    controller.push(PUSH)
    tree_lab.run("mount", "-o", "remount,ro", point)

    with refused(ground.site, "not-writable"):
        controller.pop()
    tree_lab.run("mount", "-o", "remount,rw", point)
    controller.pop()

    assert error_lab.whole(ground.site) == before
    form.count("trees", "read-only mount", "refused")


@pytest.mark.parametrize(
    "part", ["demo/a.py", "demo/tool.py", "demo", "demo-1.0.dist-info", "RECORD", "."]
)
@pytest.mark.parametrize("flag", [IMMUTABLE, APPEND], ids=["immutable", "append-only"])
def test_what_chattr_protects_is_refused(ground, part, flag):
    controller = made(ground)
    part = "demo-1.0.dist-info/RECORD" if part == "RECORD" else part
    ground.protect(ground.site / part, flag)

    with refused(ground.site, "not-writable", "in-the-way") as told:
        controller.push(PUSH)
    assert "chattr" in str(told[0])
    ground.release()
    works(controller)
    form.count("trees", "immutable or append-only", "refused")


@pytest.mark.parametrize("part", ["", "state.json", "ledger.jsonl", "originals", "patches.json"])
@pytest.mark.parametrize("flag", [IMMUTABLE, APPEND], ids=["immutable", "append-only"])
def test_what_chattr_protects_of_the_state_is_told_and_undone(ground, part, flag):
    controller = made(ground)
    before = error_lab.whole(ground.site)
    controller.push(PUSH)
    ground.protect(ground.site / ".patchq/demo" / part, flag)

    with refused(ground.site, "not-writable", "in-the-way") as told:
        controller.pop()
    assert "chattr" in str(told[0])
    ground.release()
    controller.pop()
    assert error_lab.whole(ground.site) == before
    form.count("trees", "immutable or append-only state", "refused")


@pytest.mark.parametrize("flag", [IMMUTABLE, APPEND], ids=["immutable", "append-only"])
def test_bytecode_that_chattr_protects_is_no_obstacle(ground, flag):
    controller = made(ground)
    cache = ground.site / "demo/__pycache__"
    cache.mkdir()
    (cache / "a.cpython-311.pyc").write_bytes(b"\xa7\r\r\n" + bytes(12))
    ground.protect(cache, flag)

    works(controller)
    assert (cache / "a.cpython-311.pyc").exists()
    form.count("trees", "immutable bytecode", "done")


# Trees of other owners


@pytest.mark.parametrize("mode", [0o755, 0o777, 0o1777], ids=["closed", "open", "sticky"])
@pytest.mark.parametrize("whose", ["all of it", "one file", "a folder", "RECORD"])
def test_a_tree_of_another_owner_is_refused_to_a_user(ground, mode, whose):
    made(ground)
    tree_lab.own(ground.site, NOBODY)
    path = {
        "all of it": ground.site,
        "one file": ground.site / "demo/a.py",
        "a folder": ground.site / "demo",
        "RECORD": ground.site / "demo-1.0.dist-info/RECORD",
    }[whose]
    if whose == "all of it":
        tree_lab.own(path, 0)
    os.chown(path, 0, NOBODY)
    for folder in (ground.site, *ground.site.rglob("*")):
        if folder.is_dir():
            folder.chmod(mode)
    controller = ground.controller(NOBODY)

    with refused(ground.site, "not-writable", "in-the-way"):
        controller.push(PUSH)
    tree_lab.own(ground.site, NOBODY)
    works(controller)
    form.count("trees", "another owner", "refused")


def test_a_user_of_the_group_keeps_the_group_and_another_is_refused(ground):
    made(ground)
    tree_lab.own(ground.site, NOBODY)
    os.chown(ground.site / "demo/a.py", NOBODY, 4242)

    with refused(ground.site, "in-the-way") as told:
        ground.controller(NOBODY).push(PUSH)
    assert "group 4242" in told[0].why
    works(ground.controller(NOBODY, groups="4242"))
    form.count("trees", "another group", "refused")


def test_roots_push_on_a_users_tree_is_popped_by_the_user(ground):
    made(ground)
    tree_lab.own(ground.site, NOBODY)
    before = error_lab.whole(ground.site)

    ground.controller().push(PUSH)
    owners = {path.lstat().st_uid for path in ground.site.rglob("*")}
    ground.controller(NOBODY).pop()

    assert owners == {NOBODY}
    assert error_lab.whole(ground.site) == before
    form.count("trees", "another owner", "done")


# Mounts in the tree


@pytest.mark.parametrize("part", ["demo", "demo/a.py", "demo-1.0.dist-info/RECORD"])
def test_a_part_of_the_tree_that_is_a_mount_is_refused(ground, part):
    controller = made(ground)
    path, source = ground.site / part, ground.root / "source"
    path.rename(source)
    path.mkdir() if source.is_dir() else path.touch()
    ground.mount("--bind", source, path)

    with refused(ground.site, "in-the-way", "not-writable") as told:
        controller.push(PUSH)
    assert "mount point" in str(told[0])
    form.count("trees", "a mount in the tree", "refused")


@pytest.mark.parametrize("part", [".patchq", ".patchq/demo"])
def test_a_state_folder_on_another_disk_is_refused(ground, part):
    controller = made(ground)
    ground.tmpfs(f"site/{part}")

    with refused(ground.site, "not-writable") as told:
        controller.push(PUSH)
    assert "mount point" in str(told[0])
    form.count("trees", ".patchq on another disk", "refused")


@pytest.mark.parametrize("part", ["stage", "originals"])
def test_a_folder_of_the_state_on_another_disk_is_told_and_undone(ground, part):
    controller = made(ground)
    (ground.site / ".patchq/demo").mkdir(parents=True)
    ground.tmpfs(f"site/.patchq/demo/{part}")

    with refused(ground.site, "in-the-way") as told:
        controller.push(PUSH)
    assert "mount point" in str(told[0])
    form.count("trees", ".patchq on another disk", "refused")


def test_a_tree_that_is_a_mount_itself_works(ground):
    ground.tmpfs()

    works(made(ground))
    form.count("trees", "the whole tree is a mount", "done")


# Limits of names and links


@pytest.mark.slow
def test_a_file_with_all_the_links_that_a_disk_allows_is_kept_as_a_copy(ground):
    disk = ground.disk("disk", size="64M")
    ground.site = disk / "site"
    controller = made(ground)
    path, names = ground.site / "demo/a.py", disk / "names"
    names.mkdir()
    for number in range(65000 - 1):
        os.link(path, names / str(number))
    inode = path.stat().st_ino

    done = works(controller)

    assert done["kept"]["demo/a.py"] == "copy"
    assert done["kept"]["demo/data.json"] == "inode"
    assert (names / "0").stat().st_ino == inode
    assert (names / "0").read_bytes() == agent_lab.FILES["demo/a.py"]
    form.count("trees", "65000 links", "done")


def test_names_of_255_bytes_are_patched_made_and_given_back(ground):
    name, other = "demo/" + "n" * 252 + ".py", "demo/" + "m" * 252 + ".py"
    agent_lab.make_site(ground.site, {**agent_lab.FILES, name: b"n = 1\n"})

    works(ground.controller(), {name: b"n = 2\n", other: b"m = 1\n"})
    form.count("trees", "name of 255 bytes", "done")


def test_a_path_near_the_limit_works_or_is_refused(ground):
    ends = []
    for length in range(3990, 4067) if form.LONG else (3990, 4056, 4060, 4066):
        deep = ground.root / str(length)
        while (more := length - len(str(deep)) - 1) > 255:
            deep /= "d" * min(200, more - 2)
        ground.site = deep / ("d" * more)
        assert len(str(ground.site)) == length
        ends.append(whole_or_refused(made(ground), {"demo/a.py": b"x = 2\n"}, *LONG))
        form.count("trees", "path near 4096 bytes", ends[-1])

    assert (ends[0], ends[-1]) == ("done", "refused")


# Attributes, modes, masks


@pytest.mark.parametrize("umask", ["000", "022", "077", "777"])
def test_modes_owners_and_groups_are_kept_under_any_umask(ground, umask):
    made(ground)
    (ground.site / "demo").chmod(0o2775)
    (ground.site / "demo/a.py").chmod(0o6755)
    (ground.site / "demo/data.json").chmod(0o640)
    os.chown(ground.site / "demo", 1, 4242)
    controller = ground.controller(umask=umask)

    controller.push(PUSH)
    modes = {
        path: stat.S_IMODE((ground.site / path).stat().st_mode)
        for path in ("demo/a.py", "demo/data.json", "demo/n", "demo/n/m.py", ".patchq/demo")
    }
    group = {(ground.site / path).stat().st_gid for path in ("demo/n", "demo/n/m.py")}
    controller.pop()

    assert modes == {
        "demo/a.py": 0o6755,
        "demo/data.json": 0o750,
        "demo/n": 0o2775,
        "demo/n/m.py": 0o664,
        ".patchq/demo": 0o755,
    }
    assert group == {4242}
    works(controller)
    form.count("trees", f"umask {umask}", "done")


def test_extended_attributes_and_acls_are_kept_and_inherited(ground):
    controller = made(ground)
    demo, a = ground.site / "demo", ground.site / "demo/a.py"
    rights = ((1, 6, -1 & 0xFFFFFFFF), (2, 4, NOBODY), (4, 4, 0xFFFFFFFF))
    rest = ((0x10, 6, 0xFFFFFFFF), (0x20, 4, 0xFFFFFFFF))
    os.setxattr(a, "system.posix_acl_access", tree_lab.acl(*rights, *rest))
    os.setxattr(a, "user.origin", b"wheel")
    os.setxattr(demo, "system.posix_acl_default", tree_lab.acl(*rights, *rest))
    before = {name: os.getxattr(a, name) for name in os.listxattr(a)}
    (demo / "like").touch()
    like = os.getxattr(demo / "like", "system.posix_acl_access")
    (demo / "like").unlink()

    controller.push({**PUSH, "demo/new.py": b"n = 1\n"})

    assert {name: os.getxattr(a, name) for name in os.listxattr(a)} == before
    assert os.getxattr(demo / "new.py", "system.posix_acl_access") == like
    assert os.getxattr(demo / "n", "system.posix_acl_default") == os.getxattr(
        demo, "system.posix_acl_default"
    )
    controller.pop()
    works(controller)
    form.count("trees", "attributes and ACLs", "done")


def test_a_disk_without_extended_attributes_works(ground):
    ground.mount("-t", "ramfs", "-o", "mode=755", "none", ground.site)
    controller = made(ground)
    with pytest.raises(OSError, match="not supported"):
        os.setxattr(ground.site / "demo/a.py", "user.origin", b"wheel")

    works(controller)
    form.count("trees", "no extended attributes", "done")


# Layers


@pytest.mark.parametrize("disk", ["tmpfs", "ext4"])
@pytest.mark.parametrize("links", [1, 2])
def test_an_overlay_changes_only_its_upper_layer(ground, disk, links):
    lower = agent_lab.make_site(ground.root / "lower/site").parent
    if links > 1:
        for path in list(lower.rglob("*.py")):
            os.link(path, f"{lower}/{path.name}.cache")
    os.setxattr(lower / "site/demo/a.py", "user.origin", b"wheel")
    below = error_lab.whole(lower)
    upper = ground.tmpfs("layer") if disk == "tmpfs" else ground.disk("layer")
    ground.overlay(lower, upper)
    ground.site = ground.site / "site"
    controller = ground.controller()

    assert controller.survey()["ephemeral"]
    for _ in range(2):
        works(controller)
        assert error_lab.whole(lower) == below
    form.count("trees", "overlay", "done")


def test_a_full_upper_layer_is_told_before(ground):
    lower = agent_lab.make_site(ground.root / "lower/site").parent
    upper = ground.tmpfs("layer", "size=1m")
    ground.overlay(lower, upper)
    ground.site = ground.site / "site"

    with refused(ground.site, *FULL):
        ground.controller().push(BIG)
    form.count("trees", "overlay", "refused")
