"""Killed, and then no recovery but an uninstall: nothing of the package is left."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.torture import form, installer_lab, kill_calls, kill_check, kill_lab
from tests.torture.kill_check import Case

VERBS = ["push", "pop", "undo"]
PIPS = ["pip 23.0.1", "pip 25.0", "pip newest"]
_VERSION = "import importlib.metadata as m; print(m.version('demo'))"


@pytest.fixture(scope="module")
def lab():
    with kill_lab.place() as folder:
        made = kill_lab.lab(folder)
        made.put(made.verbs["push"].before)
        yield made


class Installer:
    """pip of some age or uv, at work on the lab's environment."""

    def __init__(self, lab, name):
        self.lab, self.name = lab, name

    def __call__(self, verb, *arguments):
        python, wheels = self.lab.world.python, self.lab.world.root
        environ = {key: text for key, text in os.environ.items() if key != "VIRTUAL_ENV"}
        if self.name == "uv":
            beside = Path(sys.executable).with_name("uv")
            tool = beside if beside.exists() else "uv"
            environ.update(UV_OFFLINE="1", UV_CACHE_DIR=str(self.lab.work / "cache"))
            command = [tool, "pip", verb, "--python", python, *arguments]
        else:
            sure = ["-y"] if verb == "uninstall" else ["--no-index", "--no-deps"]
            command = [python, self.pip(), verb, *sure, *arguments]
        done = subprocess.run(
            [str(part) for part in command],
            cwd=wheels,
            capture_output=True,
            text=True,
            env=environ,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def pip(self):
        """Return the folder of this pip: one of the index, or that of the tests' own venv."""
        if self.name != "pip own":
            return installer_lab.pip(self.name.removeprefix("pip ")) / "pip"
        own = importlib.util.find_spec("pip")
        assert own, "pip is needed beside pytest: python -m ensurepip"
        return Path(own.origin).parent

    def uninstall(self):
        self("uninstall", "demo")

    def install(self):
        self("install", next(self.lab.world.root.glob("*.whl")))

    def leaves(self, tree):
        """Return what it leaves of a tree that patchq never saw."""
        self.lab.put(tree)
        self.uninstall()
        return left(self.lab.site)


def left(site):
    """Return what is in a site but patchq's own folder."""
    return {
        str(path.relative_to(site))
        for path in site.rglob("*")
        if path.relative_to(site).parts[0] != ".patchq"
    }


def version(lab):
    argv = [lab.world.python, "-I", "-c", _VERSION]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    return done.stdout.strip() or done.stderr.split()[-1]


def gone(lab, installer, control):
    """Uninstall, and assert that it is as if patchq had never been there."""
    installer.uninstall()
    found = left(lab.site)
    assert found <= control, found - control
    assert not list(lab.site.glob("*.dist-info"))
    assert version(lab) == "demo"  # PackageNotFoundError: demo


def works_again(lab):
    """Assert that patchq is usable on a reinstalled tree, whatever it still has to tell."""
    done = lab.world.here("push", "-a")
    assert done.returncode in (0, 2), done.stderr
    assert lab.world.json("status")["applied"] == list(kill_lab.CHANGES)
    assert version(lab) == "1.0"
    done = lab.world.here("pop", "-a")
    assert done.returncode == 0, done.stderr
    for path, text in kill_lab.FIRST.items():
        assert (lab.site / path).read_text() == text
    assert {path.name for path in lab.home.iterdir()} <= {"lock", "ledger.jsonl", "aside"}


def uninstalled(lab, name, installer, number):
    """Kill a verb at `number` of its calls, uninstall; then recover, install and push."""
    verb = lab.verbs[name]
    control = installer.leaves(lab.verbs["push"].before)
    for at, kill in enumerate(form.some(verb.kills(), number)):
        Case(lab, verb)
        assert lab.run(verb.tape.play(), kill.call)[0] is None
        gone(lab, installer, control)
        if form.LONG or at == number // 2:
            answer = lab.recovered()
            assert answer["ok"]["outcome"] in ("nothing", "set aside")
            assert left(lab.site) <= control
            assert lab.recovered()["ok"]["outcome"] == "nothing"
        if at % 10 == 1:
            installer.install()
            works_again(lab)
        form.count("killed, then uninstalled", kill_calls.step(kill.of), installer.name)


@pytest.mark.parametrize("name", VERBS)
def test_uv_takes_all_of_the_package_away_wherever_a_verb_was_killed(lab, name):
    uninstalled(lab, name, Installer(lab, "uv"), 4)


@pytest.mark.parametrize("name", VERBS)
def test_uv_finds_no_empty_folder_around_the_renames(lab, name):
    """RECORD lists no folders: one without its files would be left."""
    verb, uv = lab.verbs[name], Installer(lab, "uv")
    control = uv.leaves(lab.verbs["push"].before)
    folder = f"{lab.site}/demo/fresh"
    kills = [kill for kill in verb.kills() if kill.of.name in ("rename", "unlink", "rmdir")]
    kills = [kill for kill in kills if folder in kill.of.text]
    assert kills
    for kill in kills:
        Case(lab, verb)
        assert lab.run(verb.tape.play(), kill.call)[0] is None
        gone(lab, uv, control)
        form.count("killed, then uninstalled", kill_calls.step(kill.of), uv.name)


def test_a_folder_in_a_lower_layer_goes_file_by_file(lab):
    """An image that was built with patches: overlayfs does not rename a folder of it (EXDEV)."""
    verb = lab.verbs["pop"]
    lab.put(verb.before)
    upper = lab.work / "upper"
    for name in ("files", "work"):
        (upper / name).mkdir(parents=True)
    options = f"lowerdir={lab.site},upperdir={upper}/files,workdir={upper}/work"
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, lab.site], check=True)
    try:
        assert "ok" in lab.untraced(verb.tape.play())
        assert kill_check.contents(lab.site) == kill_check.contents(verb.after)
        assert {path.name for path in lab.home.iterdir()} == {"lock", "ledger.jsonl"}
    finally:
        subprocess.run(["umount", lab.site], check=True)
        shutil.rmtree(upper)


def test_pip_takes_all_of_the_package_away_wherever_a_push_was_killed(lab):
    uninstalled(lab, "push", Installer(lab, "pip own"), 3)


@pytest.mark.slow
@pytest.mark.parametrize("pip", PIPS)
@pytest.mark.parametrize("name", VERBS)
def test_every_pip_takes_all_of_the_package_away(lab, name, pip):
    uninstalled(lab, name, Installer(lab, pip), 4)


@pytest.mark.slow
@pytest.mark.parametrize("name", VERBS)
def test_a_reinstall_in_place_of_recovery_leaves_an_environment_that_works(lab, name):
    """Nobody recovers: the next is an installer, then patchq's next verb."""
    verb, installer = lab.verbs[name], Installer(lab, "uv")
    for kill in form.some(verb.kills()[:: 4 if form.LONG else 1], 2):
        Case(lab, verb)
        assert lab.run(verb.tape.play(), kill.call)[0] is None
        installer.uninstall()
        installer.install()
        works_again(lab)
        form.count("killed, then reinstalled", kill_calls.step(kill.of), installer.name)


@pytest.mark.slow
@pytest.mark.parametrize("name", VERBS)
def test_setting_aside_killed_anywhere_is_done_by_the_next(lab, name):
    """Recovery of an uninstalled package is killed as well; then it is installed again."""
    verb, installer = lab.verbs[name], Installer(lab, "uv")
    kills = [kill for kill in verb.kills() if kill.when == "before"]
    renames = [kill for kill in kills if kill_calls.step(kill.of) == "renames"]
    for first in form.some([renames[len(renames) // 2], kills[len(kills) // 3], kills[-3]], 1):
        Case(lab, verb)
        assert lab.run(verb.tape.play(), first.call)[0] is None
        installer.uninstall()
        tree = kill_lab.clone(lab.site, lab.work / f"gone-{name}-{first.of.number}")
        kills = kill_calls.kills(lab.calls(lab.recover))
        if not form.LONG:
            kills = [kill for kill in kills if kill.of.name == "rename"]
        for at, kill in enumerate(form.some(kills, 3)):
            lab.put(tree)
            assert lab.recovered(kill) is None
            if at % 3 == 2:
                assert "ok" in lab.recovered()
            if at % 2:  # to the byte what was there before, RECORD too
                kill_lab.clone(lab.verbs["push"].before, lab.site)
            else:
                installer.install()
            works_again(lab)
            form.count("setting aside killed", kill_calls.step(kill.of), name)
