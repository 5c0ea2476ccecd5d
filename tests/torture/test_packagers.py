"""Installers work on patched trees as on trees that were never patched.

Each tree has a control: the same path, the same commands, without patchq. What the two differ
in is `.patchq/` alone, and the audit then says what happened.
"""

import itertools
import shutil
import subprocess
import sys

import pytest

from tests.torture import form, installer_lab, packager_lab
from tests.torture.installer_lab import ACTIONS, PIPS, STATES, Pip, Uv, fresh
from tests.torture.packager_lab import differing, holds, patched, quiet, run, snapshot

TOOLS = (*(Pip(version) for version in PIPS), Uv())
WORDS = {"uninstall": "absent", "upgrade": "missing", "downgrade": "no series"}


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    return packager_lab.make(tmp_path_factory.mktemp("packagers"))


def control(lab, key, work):
    """Return what `work` leaves of a tree that was never patched, and what it says; once."""
    if key not in lab.controls:
        lab.controls[key] = work()
    return lab.controls[key]


def judged(lab, action, state):
    """Check the words, and what the next push does."""
    applied, word = STATES[state], WORDS.get(action, "missing")
    words = lab.words()
    for queue in packager_lab.QUEUES:
        expected = "orphaned" if queue in applied else word
        # Beside a queue that has something to tell, an absent distribution has nothing.
        assert words.get(queue, "absent") == expected
    before = snapshot(lab.place)
    pushed = lab.patchq("push", "-a", "--queue", lab.queue("q"), check=False)
    if action in ("upgrade", "reinstall"):
        assert pushed.returncode == 0, pushed.stderr
        holds(lab, "q", version="1.1" if action == "upgrade" else "1.0")
        return
    assert pushed.returncode == 1
    said = "no series of queue q fits demo 0.9" if action == "downgrade" else "not installed"
    assert said in pushed.stderr
    assert "why: " in pushed.stderr
    assert "mend: patchq" in pushed.stderr
    assert not differing(before, snapshot(lab.place))


def compare(lab, origin, tool, action, state):
    def through():
        ACTIONS[action](tool, lab)
        return snapshot(lab.place), lab.version(), tool.told(lab)

    def never_patched():
        fresh(lab, origin)
        return through()

    expected = control(lab, (origin, tool, action), never_patched)
    fresh(lab, origin, state)

    found = through()

    assert not differing(expected[0], found[0])
    assert found[1:] == expected[1:]
    judged(lab, action, state)
    if action == "uninstall":  # and it can be installed and patched again
        tool.install(lab, "1.0")
        lab.push("q")
        holds(lab, "q")
        assert lab.words()["q"] == "current"
    form.count("packagers", f"{tool.name}: {action}", state)


@pytest.mark.parametrize(
    ("action", "state"), form.some(list(itertools.product(ACTIONS, STATES)), 6)
)
def test_uv_leaves_what_it_leaves_of_a_tree_that_was_never_patched(lab, action, state):
    compare(lab, Uv(), Uv(), action, state)


OTHERS = [
    case
    for case in itertools.product((Pip("newest"), Uv()), TOOLS, ACTIONS, STATES)
    if case[:2] != (Uv(), Uv())
]


@pytest.mark.slow
@pytest.mark.parametrize(("origin", "tool", "action", "state"), form.some(OTHERS, 17))
def test_every_packager_leaves_what_it_leaves_of_a_tree_that_was_never_patched(
    lab, origin, tool, action, state
):
    compare(lab, origin, tool, action, state)


def into(lab, tool, version):
    """Run ``install --target --upgrade``; the folder is the environment's own."""
    where = ("--target", lab.site, "--upgrade")
    tool.install(lab, version, *where)


TARGETS = list(itertools.product(TOOLS, ("1.0", "1.1"), STATES))


@pytest.mark.slow
@pytest.mark.parametrize(("tool", "version", "state"), form.some(TARGETS, 9))
def test_install_target_upgrade_leaves_no_more_than_without_patches(lab, tool, version, state):
    def through():
        into(lab, tool, version)
        return snapshot(lab.place), lab.version()

    def never_patched():
        fresh(lab, Pip("newest"))
        return through()

    expected, installed = control(lab, (tool, version, "target"), never_patched)
    fresh(lab, Pip("newest"), state)

    found, now = through()

    mine = ("--target", lab.site)
    stays = "uv" in tool.name and version == "1.0"  # it is there already, says uv
    if not stays:
        # pip replaces what a wheel has at its top, and takes nothing else away: RECORD of the
        # older version stays, and what a patch created outside of the package's folder.
        more = {path for path in differing(expected, found) if not path.endswith("RECORD")}
        assert {path.rpartition("/")[2] for path in more} <= {"demo_more.py"}
        assert now == installed
    words = lab.words(*mine, aim=False)
    for queue in packager_lab.QUEUES:
        gone = "current" if stays else "orphaned"
        assert words[queue] == (gone if queue in STATES[state] else "missing")
    _push_into(lab, version, twice=len(list(lab.site.glob("demo-*.dist-info"))) > 1)
    form.count("packagers", f"{tool.name}: --target --upgrade to {version}", state)


def _push_into(lab, version, twice):
    push = ("push", "-a", "--queue", lab.queue("q"), "--target", lab.site)
    done = lab.patchq(*push, check=False, aim=False)
    if twice:
        old = lab.site / "demo-1.0.dist-info"
        assert "installed twice" in done.stderr
        assert f"mend: rm -r {old}" in done.stderr
        shutil.rmtree(old)
        done = lab.patchq(*push, aim=False)
    assert done.returncode in (0, 2), done.stderr
    queues = ("q", "r") if lab.words("--target", lab.site, aim=False)["r"] == "current" else ("q",)
    holds(lab, *queues, version=version)


def unpacked(lab, version):
    folder = lab.root / f"unpacked-{version}"
    if not folder.is_dir():
        run(sys.executable, "-m", "zipfile", "-e", lab.wheel(version), folder)
        shutil.rmtree(folder / f"demo-{version}.data")
    return folder


def tar(lab, version):
    with subprocess.Popen(
        ["tar", "-C", unpacked(lab, version), "-c", "."], stdout=subprocess.PIPE
    ) as packing:
        run("tar", "-C", lab.site, "-x", stdin=packing.stdout)


COPIES = {
    "cp -r": lambda lab, version: run("cp", "-r", f"{unpacked(lab, version)}/.", lab.site),
    "cp -a of new files": lambda lab, version: run(
        "cp", "-a", "--remove-destination", f"{unpacked(lab, version)}/.", lab.site
    ),
    "tar -x": tar,
    "unzip": lambda lab, version: run(
        sys.executable, "-m", "zipfile", "-e", lab.wheel(version), lab.site
    ),
}


@pytest.mark.parametrize(
    ("copy", "state"), form.some(list(itertools.product(COPIES, STATES)), 5), ids=str
)
def test_a_wheel_copied_over_a_patched_tree_is_noticed_and_what_it_left_goes(lab, copy, state):
    def never_patched():
        fresh(lab, Uv())
        COPIES[copy](lab, "1.0")
        return snapshot(lab.place)

    expected = control(lab, copy, never_patched)
    fresh(lab, Uv(), state)
    COPIES[copy](lab, "1.0")
    words = lab.words()

    assert lab.version() == "1.0"
    for queue in packager_lab.QUEUES:
        assert words[queue] == ("orphaned" if queue in STATES[state] else "missing")
    recovered = lab.patchq("recover", check=False)

    # A copy takes nothing away; what the patches created goes with their record.
    assert not differing(expected, snapshot(lab.place))
    assert recovered.returncode == (0 if STATES[state] else 2)
    if STATES[state]:
        assert "Removing demo/new/n.py, which no installer took away" in recovered.stdout
    lab.push("q")
    holds(lab, "q")
    form.count("packagers", f"{copy} over the tree", state)


@pytest.mark.parametrize("state", list(STATES)[:2])
def test_a_push_after_a_copy_needs_no_recover(lab, state):
    fresh(lab, Uv(), state)
    COPIES["cp -r"](lab, "1.0")

    pushed = lab.patchq("push", "-a", "--queue", lab.queue("q"))

    assert "The patches recorded before are gone" in pushed.stderr
    holds(lab, "q")
    lab.pop("q")
    holds(lab)
    form.count("packagers", "cp -r over the tree", f"{state}, then push")


def test_what_a_patch_created_and_somebody_changed_is_not_taken_away(lab):
    fresh(lab, Uv(), "after push")
    COPIES["cp -r"](lab, "1.0")
    (lab.site / "demo_more.py").write_text("mine = 1\n")
    (lab.site / "demo/new/mine.txt").write_text("mine\n")

    lab.patchq("recover")

    assert (lab.site / "demo_more.py").read_text() == "mine = 1\n"
    assert [path.name for path in (lab.site / "demo/new").iterdir()] == ["mine.txt"]
    form.count("packagers", "cp -r over the tree", "files of somebody else")


def test_what_a_patch_created_and_another_distribution_owns_now_is_not_taken_away(lab):
    fresh(lab, Uv(), "after push")
    COPIES["cp -r"](lab, "1.0")
    record = lab.site / "other-1.0.dist-info/RECORD"
    record.write_text(record.read_text() + "demo_more.py,,\n")

    lab.patchq("recover")

    assert (lab.site / "demo_more.py").read_text() == "more = 1\n"
    form.count("packagers", "cp -r over the tree", "files of somebody else")


def test_a_created_file_is_not_taken_away_through_a_folder_that_leads_out(lab):
    fresh(lab, Uv(), "after push")
    COPIES["cp -r"](lab, "1.0")
    outside = lab.root / "outside"
    (lab.site / "demo/new").rename(outside)
    (lab.site / "demo/new").symlink_to(outside)

    lab.patchq("recover")

    assert (outside / "n.py").read_text() == "n = 1\n"
    form.count("packagers", "cp -r over the tree", "files of somebody else")


def test_patches_of_which_one_file_is_still_on_are_drifted_not_gone(lab):
    fresh(lab, Uv(), "after push")
    text = (lab.site / "demo/a.py").read_text()
    COPIES["cp -r"](lab, "1.0")
    (lab.site / "demo/a.py").write_text(text)

    assert lab.words()["q"] == "drifted"
    assert lab.patchq("recover", check=False).returncode == 2
    assert (lab.site / "demo_more.py").exists()
    form.count("packagers", "cp -r over the tree", "but for one file")


def test_a_tree_in_place_of_the_whole_site_packages_has_no_patches(lab):
    """rsync --delete, or a layer of an image: our folder goes, too."""
    fresh(lab, Uv())
    kept = lab.root / "site"
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(lab.site, kept, symlinks=True)
    fresh(lab, Uv(), "after push")
    site = lab.site
    shutil.rmtree(site)
    shutil.copytree(kept, site, symlinks=True)

    assert lab.words() == {"q": "missing", "r": "missing"}
    lab.push("q")
    holds(lab, "q")
    form.count("packagers", "rsync --delete", "after push")


def compile_all(lab):
    """Compile at every level, with the environment's own interpreter."""
    for level in ([], ["-O"], ["-OO"]):
        run(lab.python, *level, "-m", "compileall", "-q", lab.site, env=quiet())


def test_compileall_finds_nothing_in_our_folder_and_a_pop_leaves_none_of_it(lab):
    def never_patched():
        fresh(lab, Uv())
        compile_all(lab)
        return snapshot(lab.place)

    control(lab, "compileall", never_patched)
    fresh(lab, Uv())
    compile_all(lab)
    lab.push("q", "r")
    compile_all(lab)

    assert not list((lab.site / ".patchq").rglob("*.pyc"))
    assert lab.words() == {"q": "current", "r": "current"}
    code = "import demo.a as a, demo.new.n as n, demo_more as m; print(a.x, a.y, n.n, m.more)"
    for level in ([], ["-O"], ["-OO"]):
        assert run(lab.python, *level, "-c", code, env=quiet()).stdout == "2 2 1 1\n"
    lab.pop("r", "q")
    compile_all(lab)
    assert not differing(lab.controls["compileall"], snapshot(lab.place))
    code = "import demo.a as a; print(a.x, a.y)"
    assert run(lab.python, "-O", "-c", code, env=quiet()).stdout == "1 1\n"
    form.count("packagers", "compileall", "after push and pop")


@pytest.mark.parametrize("tool", [Uv(), pytest.param(Pip("newest"), marks=pytest.mark.slow)])
def test_a_compiled_tree_is_uninstalled_as_if_it_were_never_patched(lab, tool):
    def through():
        run(lab.python, "-m", "compileall", "-q", lab.site, env=quiet())
        tool.uninstall(lab)
        return snapshot(lab.place)

    fresh(lab, tool)
    expected = through()
    fresh(lab, tool, "after push of two queues")

    left = {path.rpartition("/")[2] for path in differing(expected, through())}
    # uv leaves the bytecode of modules that are in no folder of their own, of any package.
    lone = any("demo_top" in path for path in expected)
    assert left == ({f"demo_more.{sys.implementation.cache_tag}.pyc"} if lone else set())
    form.count("packagers", "compileall", "uninstall after push")


def test_uv_compiles_over_a_patched_tree(lab):
    fresh(lab, Uv(), "after push of two queues")

    Uv().install(lab, "1.0", "--compile-bytecode", "--reinstall-package", "other", "other")

    assert not list((lab.site / ".patchq").rglob("*.pyc"))
    assert lab.words() == {"q": "current", "r": "current"}
    lab.pop("r", "q")
    Uv().uninstall(lab)
    assert not [path for path in snapshot(lab.site) if path.startswith("demo")]
    form.count("packagers", "uv --compile-bytecode", "after push")


def test_a_copied_environment_and_the_first_are_popped_each_for_itself(lab):
    fresh(lab, Uv())
    before = snapshot(lab.place)
    fresh(lab, Uv(), "after push of two queues")
    first = lab.root / "first"
    shutil.rmtree(first, ignore_errors=True)
    run("cp", "-a", lab.place, first)

    lab.pop("r", "q")
    assert not differing(before, snapshot(lab.place))
    shutil.rmtree(lab.place)
    first.rename(lab.place)
    assert lab.words() == {"q": "current", "r": "current"}
    lab.pop("r", "q")

    assert not differing(before, snapshot(lab.place))
    form.count("packagers", "cp -a of an environment", "after push")


def test_a_moved_environment_is_read_and_popped_at_its_new_place(lab):
    fresh(lab, Uv(), "after push")
    other = lab.root / "moved"
    shutil.rmtree(other, ignore_errors=True)
    lab.place.rename(other)
    try:
        there = packager_lab.Lab(lab.root, moved="moved")
        assert there.words() == {"q": "current", "r": "missing"}
        there.push("r")
        there.pop("r", "q")
        holds(there)
    finally:
        shutil.rmtree(other)
    form.count("packagers", "a moved environment", "after push")


def test_venv_made_again_over_a_patched_environment_changes_nothing(lab):
    fresh(lab, Uv(), "after push")
    before = snapshot(lab.place)

    run(sys.executable, "-m", "venv", "--without-pip", lab.place)

    assert not differing(before, snapshot(lab.place))
    assert lab.words()["q"] == "current"
    lab.pop("q")
    holds(lab)
    form.count("packagers", "python -m venv over it", "after push")


@pytest.mark.slow
def test_virtualenv_clone_makes_an_environment_that_is_popped_for_itself(lab, tmp_path):
    tool = tmp_path / "clone"
    wanted = "virtualenv-clone==0.5.7"
    run(sys.executable, "-m", "pip", "install", "-q", "--target", tool, wanted)
    fresh(lab, Uv(), "after push")
    other = lab.root / "moved"
    shutil.rmtree(other, ignore_errors=True)
    try:
        code = "import clonevirtualenv as c; c.main()"
        run(sys.executable, "-c", code, lab.place, other, env=quiet(PYTHONPATH=str(tool)))
        there = packager_lab.Lab(lab.root, moved="moved")
        assert there.words()["q"] == "current"
        there.pop("q")
        holds(there)
        holds(lab, "q")
    finally:
        shutil.rmtree(other, ignore_errors=True)
    form.count("packagers", "virtualenv-clone", "after push")


def test_the_lab_names_every_form_of_change():
    """New, deleted, emptied, mode-only and renamed files are in every push above."""
    before, after = packager_lab.files("1.0"), patched("1.0", "q")

    assert after.keys() - before.keys() == {
        "demo/new/n.py",
        "demo_more.py",
        "demo/new, too.txt",
        "demo/sub/d.py",
    }
    assert before.keys() - after.keys() == {"demo/b.py", "demo/c.py"}
    assert after["demo/notes.txt"] == ("", False)
    assert after["demo/tool.py"] == (before["demo/tool.py"][0], True)
    assert installer_lab.ACTIONS.keys() == {"uninstall", "upgrade", "downgrade", "reinstall"}
