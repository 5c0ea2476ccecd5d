"""Another user swaps names of a tree for links while root works in it: nothing leads out.

The tree is that user's own, as a virtual environment in a home folder is, and root pushes
into it. A hostile process of the user puts a link to root's own folder in the place of a
folder or a file, and takes it away again, as fast as it can. What root's folder holds must
never be read into an answer or the state, and never be written. A FIFO, a folder, a link to
a device in the place of a file must not make anybody wait.
"""

import contextlib
import itertools
import os
import shutil
import signal
import stat
import sys
import tempfile
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))

import agent_lab
from agent_lab import AgentError

from patchq.agent import guise
from tests.torture import form
from tests.torture.telling import told

SECRET = b"SECRET = 'of root alone'\n"
USER = 65533
PUSH = {"demo/a.py": b"x = 2\n", "demo/b.py": None, "demo/new/n.py": b"n = 1\n"}
# What is swapped: a path of the tree, and what a link in its place leads to.
SWAPS = {
    "the package": ("demo", "demo"),
    "a file": ("demo/a.py", "demo/a.py"),
    "a new folder": ("demo/new", "demo"),
    "bytecode": ("demo/__pycache__", "demo/__pycache__"),
    "the dist-info": ("demo-1.0.dist-info", "demo-1.0.dist-info"),
    "RECORD": ("demo-1.0.dist-info/RECORD", "demo-1.0.dist-info/RECORD"),
    "METADATA": ("demo-1.0.dist-info/METADATA", "demo/a.py"),
    ".patchq": (".patchq", "state"),
    "the state": (".patchq/demo", "state/demo"),
    "stage": (".patchq/demo/stage", "demo"),
    "originals": (".patchq/demo/originals", "demo"),
    "the lock": (".patchq/demo/lock", "demo/a.py"),
    "the ledger": (".patchq/demo/ledger.jsonl", "demo/a.py"),
    "state.json": (".patchq/demo/state.json", "demo/a.py"),
    "the journal": (".patchq/demo/journal", "demo/a.py"),
}
KINDS = ("a FIFO", "a folder", "a link to /dev/zero", "a link to itself", "a link to /proc")

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can be another user")


class Ground:
    """A user's tree beside a folder of root's with the same names in it."""

    def __init__(self, root: Path) -> None:
        self.root, self.site, self.own = root, root / "user/site", root / "own"
        root.chmod(0o755)
        agent_lab.make_site(self.site)
        agent_lab.make_site(self.own)
        for folder in (self.site / "demo/__pycache__", self.own / "demo/__pycache__"):
            folder.mkdir()
            (folder / "a.cpython-311.pyc").write_bytes(SECRET)
        for name in ("stage", "originals"):
            (self.own / "state/demo" / name).mkdir(parents=True)
        for path in (*self.own.rglob("*.py"), self.own / "demo-1.0.dist-info/RECORD"):
            path.write_bytes(SECRET + path.read_bytes())
        for path in (self.own, *self.own.rglob("*")):
            path.chmod(0o700 if path.is_dir() else 0o600)
        for path in (root / "user", self.site, *self.site.rglob("*")):
            os.chown(path, USER, USER)
        self.ours = self.look()

    def look(self) -> dict[str, object]:
        """Return all of root's folder, with times and inodes."""
        found = {}
        for path in (self.own, *sorted(self.own.rglob("*"))):
            info = path.lstat()
            data = path.read_bytes() if path.is_file() else None
            found[str(path)] = (
                info.st_mode,
                info.st_uid,
                info.st_ino,
                info.st_nlink,
                info.st_mtime_ns,
                data,
            )
        return found

    def leaked(self) -> list[str]:
        """Return the files of the user's tree that hold what is root's alone."""
        return [
            str(path.relative_to(self.site))
            for path in self.site.rglob("*")
            if path.is_file() and not path.is_symlink() and path.suffix != ".pyc"
            if SECRET in path.read_bytes()
        ]

    def fresh(self) -> None:
        """Put the user's tree back as it was at first."""
        shutil.rmtree(self.root / "user")
        agent_lab.make_site(self.site)
        (self.site / "demo/__pycache__").mkdir()
        (self.site / "demo/__pycache__/a.cpython-311.pyc").write_bytes(b"old")
        for path in (self.root / "user", self.site, *self.site.rglob("*")):
            os.chown(path, USER, USER)


@pytest.fixture
def ground():
    """A ground that every user can reach, which pytest's own folders are not."""
    root = Path(tempfile.mkdtemp(prefix="patchq-race-", dir="/tmp"))
    try:
        yield Ground(root)
    finally:
        shutil.rmtree(root)


@contextlib.contextmanager
def swapping(path: Path, target: Path):
    """Swap `path` for a link to `target` and back without end, as the other user."""
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setresgid(USER, USER, USER)
            os.setresuid(USER, USER, USER)
            _swap(str(path), str(target))
        finally:
            os._exit(0)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _swap(path: str, target: str) -> None:
    aside = os.path.join(os.path.dirname(os.path.dirname(path)) or "/", ".aside")
    aside = path + ".aside" if not os.access(os.path.dirname(aside), os.W_OK) else aside
    while True:
        with contextlib.suppress(OSError):
            os.rename(path, aside)
        with contextlib.suppress(OSError):
            os.symlink(target, path)
        with contextlib.suppress(OSError):
            os.unlink(path)
        with contextlib.suppress(OSError):
            os.rename(aside, path)


def _verbs(controller, answers):
    """Do all that root may do there; return how many verbs went through."""
    done = 0
    for verb in (
        lambda: controller.survey([*PUSH, "demo/tool.py"], known=[], want=["ledger", "patches"]),
        lambda: controller.ask(controller.message("read", paths=["demo/a.py"], originals=[])),
        lambda: controller.ask(controller.message("hash", known=[])),
        lambda: controller.push(PUSH),
        controller.recover,
        lambda: controller.ask(
            controller.message("read", paths=["demo/a.py"], originals=["demo/a.py"])
        ),
        controller.pop,
        controller.recover,
    ):
        try:
            verb()
            done += 1
        except AgentError as error:
            told(error)
        except (KeyError, TypeError):
            pass  # the little controller takes for granted that there is a state
        except FileNotFoundError:
            pass  # and looks at files itself
    return done


@pytest.mark.slow
@pytest.mark.parametrize("name", form.some(list(SWAPS), 6))
def test_what_another_user_swaps_for_a_link_leads_root_nowhere(ground, name):
    path, target = SWAPS[name]
    blobs = []

    def ask(message, contents=None):
        answer, found = agent_lab.here(message, contents)
        blobs.extend(found.values())
        return answer, found

    rounds = 60 if form.LONG else 12
    done = 0
    for _ in range(rounds):
        with swapping(ground.site / path, ground.own / target):
            done += _verbs(agent_lab.Controller(ground.site, ask), blobs)
        assert ground.look() == ground.ours
        assert not ground.leaked()
        assert not [data for data in blobs if SECRET in data]
        assert os.geteuid() == 0
        if not (ground.site / "demo/a.py").is_file() or not done % 7:
            ground.fresh()
    form.count("hostile input", "a name swapped for a link to root's own", name, rounds)


def test_root_acts_as_the_owner_of_a_tree_and_is_root_again(ground, monkeypatch):
    seen = []
    chown = os.fchmod

    def noted(*args):
        seen.append((os.geteuid(), os.getegid(), os.getgroups()))
        return chown(*args)

    monkeypatch.setattr(os, "fchmod", noted)
    controller = agent_lab.Controller(ground.site)

    receipt = controller.push(PUSH)["receipt"]

    assert seen
    assert {one[0] for one in seen} == {USER}
    assert {one[1] for one in seen} == {USER}
    assert not any(0 in one[2] for one in seen)
    assert (os.geteuid(), os.getegid()) == (0, 0)
    assert receipt["uid"] == 0
    controller.pop()
    assert os.geteuid() == 0


@pytest.mark.parametrize("path", ["demo/a.py", "demo", "demo-1.0.dist-info/RECORD"])
def test_where_owners_are_mixed_root_is_root_and_keeps_them(ground, path):
    os.chown(ground.site / path, 0, 0)
    before = agent_lab.snapshot(ground.site)
    controller = agent_lab.Controller(ground.site)

    controller.push({"demo/a.py": b"x = 2\n"})
    assert (ground.site / path).stat().st_uid == 0
    controller.pop()

    assert agent_lab.snapshot(ground.site) == before


def test_a_tree_that_its_owner_cannot_reach_is_roots_work(ground):
    (ground.root / "shut").mkdir(mode=0o700)
    (ground.root / "user").rename(ground.root / "shut/user")
    site = ground.root / "shut/user/site"

    controller = agent_lab.Controller(site)
    controller.push(PUSH)
    controller.pop()

    assert (site / "demo/a.py").stat().st_uid == USER


def test_a_link_on_the_way_never_makes_root_itself_again(ground):
    """What is behind it is root's, which is no reason to act as root."""
    (ground.site / "demo").rename(ground.site / "aside")
    (ground.site / "demo").symlink_to(ground.own / "demo")
    os.lchown(ground.site / "demo", USER, USER)
    try:
        assert guise.take([str(ground.site)])
        assert guise.fits(str(ground.site), ["demo/a.py", "demo/new/n.py", ".patchq/demo"])
    finally:
        guise.regain()

    controller = agent_lab.Controller(ground.site)
    for op in ("survey", "read"):
        with pytest.raises(AgentError) as caught:
            controller.ask(controller.message(op, paths=["demo/a.py"], known=[]))
        assert caught.value.word == "not-permitted"
    assert ground.look() == ground.ours


def _put(path: Path, kind: str) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "a FIFO":
        os.mkfifo(path)
    elif kind == "a folder":
        path.mkdir()
    else:
        targets = {"a link to /dev/zero": "/dev/zero", "a link to itself": path.name}
        path.symlink_to(targets.get(kind, "/proc/self/pagemap"))


PLACES = (
    "demo/a.py",
    "demo/__pycache__",
    "demo-1.0.dist-info/RECORD",
    "demo-1.0.dist-info/METADATA",
    "demo-1.0.dist-info/INSTALLER",
    "demo-1.0.dist-info/direct_url.json",
    "other-1.0.dist-info/RECORD",
    ".patchq/demo/lock",
    ".patchq/demo/state.json",
    ".patchq/demo/patches.json",
    ".patchq/demo/ledger.jsonl",
    ".patchq/demo/journal",
    ".patchq/demo/journal.go",
    ".patchq/demo/journal.new",
    ".patchq/demo/stage",
    ".patchq/demo/originals",
    ".patchq/demo",
    ".patchq",
)
ALL = list(itertools.product(PLACES, KINDS))


@pytest.mark.parametrize(("place", "kind"), form.some(ALL, 30))
def test_what_is_no_file_in_the_place_of_a_file_makes_nobody_wait(tmp_path, place, kind):
    site = agent_lab.make_site(tmp_path / "site")
    controller = agent_lab.Controller(site)
    controller.push(PUSH)
    _put(site / place, kind)
    requests = [
        controller.message(op, paths=["demo/a.py"], originals=["demo/a.py"], want=["ledger"])
        for op in ("survey", "read", "hash", "records", "recover")
    ]
    kept = {stat.S_IFMT(os.stat("/dev/zero").st_mode), stat.S_IFCHR}

    signal.signal(signal.SIGALRM, _waited)
    signal.alarm(20)
    try:
        for request in requests:
            with contextlib.suppress(AgentError):
                agent_lab.here(request)
        for change in (
            lambda: controller.push({"demo/data.json": b"[]\n"}, "two"),
            controller.pop,
        ):
            try:
                change()
            except AgentError as error:
                told(error)
            except (KeyError, TypeError, OSError):
                pass  # the little controller reads the tree itself
    finally:
        signal.alarm(0)

    assert kept == {stat.S_IFCHR}
    form.count("hostile input", "no file in the place of a file", kind)


def _waited(*_: object) -> None:
    raise AssertionError("it waits for ever")


def test_a_writer_at_the_other_end_of_a_pipe_is_not_waited_for(tmp_path):
    """A FIFO that somebody holds open gives no end of file."""
    site = agent_lab.make_site(tmp_path / "site")
    path = site / "demo-1.0.dist-info/METADATA"
    _put(path, "a FIFO")
    handle = os.open(path, os.O_RDWR)
    began = time.monotonic()
    try:
        with pytest.raises(AgentError) as caught:
            agent_lab.Controller(site).survey(["demo/a.py"])
    finally:
        os.close(handle)

    assert caught.value.why.startswith("it is no regular file")
    assert time.monotonic() - began < 60
