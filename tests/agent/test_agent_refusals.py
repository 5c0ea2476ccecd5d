"""What the agent will not do: it says why, and nothing has changed."""

import contextlib
import fcntl
import json
import os
import resource
import struct
import subprocess
import sys

import agent_lab
import pytest
from agent_lab import AgentError, Controller, snapshot

from patchq import agent
from patchq.agent import protocol

NOBODY = 65534
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: mounts, owners, chattr")


@contextlib.contextmanager
def refused(word, *, site, saying=""):
    """Check that the body is refused with `word` and leaves the tree as it was."""
    before = snapshot(site)
    with pytest.raises(AgentError) as caught:
        yield
    assert caught.value.word == word, caught.value
    assert saying in f"{caught.value.what} {caught.value.why} {caught.value.mend}"
    assert snapshot(site) == before
    assert not (site / ".patchq/demo/stage").exists()
    assert not (site / ".patchq/demo/journal").exists()


@contextlib.contextmanager
def mounted(*arguments):
    subprocess.run(["mount", *map(str, arguments)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(arguments[-1])], check=True)


@contextlib.contextmanager
def chattr(path, flag):
    def set_flags(change):
        handle = os.open(path, os.O_RDONLY)
        now = struct.unpack("l", fcntl.ioctl(handle, 0x80086601, bytes(8)))[0]  # FS_IOC_GETFLAGS
        fcntl.ioctl(handle, 0x40086602, struct.pack("l", change(now)))  # FS_IOC_SETFLAGS
        os.close(handle)

    set_flags(lambda now: now | flag)
    try:
        yield
    finally:
        set_flags(lambda now: now & ~flag)


def as_user(uid, work):
    """Run `work` in a forked process of another user; return what it returned, as JSON has it."""
    import pwd  # noqa: F401  (before the other user loses sight of the files)

    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            try:
                answer = ["ok", work()]
            except AgentError as error:
                told = {key: getattr(error, key) for key in ("word", "what", "why", "mend")}
                answer = ["error", told]
            os.write(write, json.dumps(answer).encode())
        finally:
            os._exit(0)
    os.close(write)
    os.waitpid(pid, 0)
    with open(read, "rb") as file:
        kind, answer = json.loads(file.read())
    if kind == "error":
        raise AgentError(answer)
    return answer


def own(site, uid):
    for folder, _, files in os.walk(site):
        for path in [folder, *(os.path.join(folder, name) for name in files)]:
            os.chown(path, uid, uid, follow_symlinks=False)


@pytest.fixture
def open_tmp(tmp_path):
    """A folder that other users reach."""
    path = tmp_path
    while path != path.parent and path.stat().st_uid == os.getuid() and path.name:
        with contextlib.suppress(PermissionError):
            path.chmod(path.stat().st_mode | 0o755)
        path = path.parent
    return tmp_path


def test_a_file_that_changed_since_the_survey(site, controller):
    request, blobs = controller.push_request({"demo/a.py": b"x = 2\n"})
    (site / "demo/a.py").write_bytes(b"x = 3\n")

    with refused("changed", site=site, saying="demo/a.py"):
        agent_lab.here(request, blobs)
    assert not (site / ".patchq").exists()


def test_a_file_that_a_patch_would_create_and_that_is_there(site, controller):
    request, blobs = controller.push_request({"demo/n.py": b"x = 2\n"})
    (site / "demo/n.py").write_bytes(b"mine\n")

    with refused("changed", site=site, saying="demo/n.py"):
        agent_lab.here(request, blobs)


@pytest.mark.parametrize("key", ["dist_info", "record", "generation"])
def test_an_environment_that_is_not_the_one_that_was_surveyed(site, controller, key):
    request, blobs = controller.push_request({"demo/a.py": b"x = 2\n"})
    request["expect"][key] = "other"

    with refused("changed", site=site, saying=key):
        agent_lab.here(request, blobs)


def test_text_that_does_not_compile_names_file_line_and_python(site, controller):
    split = b"from demo import a,\n    b\n"

    with refused("does-not-compile", site=site, saying="line 1") as _:
        controller.push({"demo/a.py": b"x = 2\n", "demo/b.py": split})
    with pytest.raises(AgentError) as caught:
        controller.push({"demo/b.py": split})
    assert "demo/b.py" in caught.value.what
    assert f"Python {sys.version_info[0]}.{sys.version_info[1]}" in caught.value.why
    assert "from demo import a," in caught.value.why
    assert "does-not-compile" in agent.CONFLICTS


def test_a_template_that_never_compiled_may_be_patched(tmp_path):
    site = agent_lab.make_site(tmp_path / "s", {"demo/t.py": b"{{ name }} = =\n"})

    Controller(site).push({"demo/t.py": b"{{ other }} = =\n"})

    assert (site / "demo/t.py").read_bytes() == b"{{ other }} = =\n"


@pytest.mark.parametrize(
    "path",
    ["../x.py", "/etc/x.py", "demo/.git/x", "demo/\0.py", ".patchq/x", "demo-1.0.dist-info/x"],
)
def test_a_path_that_is_not_the_packages(site, controller, path):
    absent, data = agent_lab.state_of(None), b"x\n"
    request, _ = controller.push_request({"demo/a.py": b"x = 2\n"})
    request["entries"][0].update(path=path, before=absent, after=agent_lab.state_of((data, False)))

    with refused("unsafe-path", site=site):
        agent_lab.here(request, {protocol.sha256(data): data})


def test_a_folder_that_leads_out_of_the_environment(site, controller):
    outside = site.parent / "outside"
    (site / "demo").rename(outside)
    (site / "demo").symlink_to(outside)

    with refused("in-the-way", site=site, saying="leads out"):
        controller.push({"demo/a.py": b"x = 2\n"})
    assert (outside / "a.py").read_bytes() == b"x = 1\n"


def test_a_compiled_twin(site, controller):
    import importlib.machinery

    twin = "demo/a" + importlib.machinery.EXTENSION_SUFFIXES[0]
    (site / twin).write_bytes(b"")

    assert "compiled twin" in controller.survey(["demo/a.py"])["files"]["demo/a.py"]["problem"]
    with refused("in-the-way", site=site, saying="compiled twin"):
        controller.push({"demo/a.py": b"x = 2\n"})


def test_an_editable_install(site, controller):
    direct = site / "demo-1.0.dist-info/direct_url.json"
    direct.write_text('{"url": "file:///w", "dir_info": {"editable": true}}')

    assert controller.survey()["refusal"]["word"] == "editable"
    with refused("editable", site=site):
        controller.push({"demo/a.py": b"x = 2\n"})


def test_a_distribution_without_record(site, controller):
    (site / "demo-1.0.dist-info/RECORD").unlink()

    with refused("no-record", site=site):
        controller.push({"demo/a.py": b"x = 2\n"})


def test_an_egg_is_told_from_nothing(tmp_path):
    (tmp_path / "demo-1.0.egg-info").mkdir()
    site = Controller(tmp_path)
    assert site.survey()["refusal"]["word"] == "no-record"

    other = Controller(tmp_path, distribution="other")
    assert other.survey()["refusal"]["word"] == "not-installed"
    assert other.survey()["installed"] is None


def test_installed_twice(site, controller):
    agent_lab.make_site(site, name="Demo", version="0.9")
    (site / "Demo-0.9.dist-info/RECORD").write_bytes(b"")

    with refused("installed-twice", site=site, saying="0.9"):
        controller.push({"demo/a.py": b"x = 2\n"})


def test_two_owners_of_one_path(site, controller):
    agent_lab.make_site(site, {"demo/a.py": b"x = 1\n"}, name="other")

    with refused("in-the-way", site=site, saying="RECORD of other-1.0.dist-info lists it too"):
        controller.push({"demo/a.py": b"x = 2\n"})
    controller.push({"demo/b.py": b"y = 2\n"})


@pytest.mark.parametrize("installer", ["conda", "debian", ""])
def test_a_tree_of_another_installer_unless_it_is_named(venv_like, installer):
    site, ask = venv_like
    (site / "demo-1.0.dist-info/INSTALLER").write_text(installer)
    message = {"op": "survey", "distribution": "demo", "target": None, "paths": ["demo/a.py"]}

    assert ask(message)["refusal"]["word"] == "foreign-installer"
    assert ask({**message, "explicit": True})["refusal"] is None


def test_a_tree_that_conda_lists_unless_it_is_named(venv_like):
    site, ask = venv_like
    meta = site.parents[2] / "conda-meta"
    meta.mkdir()
    listed = "lib/python3/site-packages/demo-1.0.dist-info/METADATA"
    (meta / "demo-1.0-py_0.json").write_text(json.dumps({"files": [listed]}))
    message = {"op": "survey", "distribution": "demo", "target": None, "paths": ["demo/a.py"]}

    assert "conda (demo-1.0-py_0)" in ask(message)["refusal"]["what"]
    assert ask({**message, "explicit": True})["refusal"] is None


@pytest.fixture
def venv_like(tmp_path):
    """An environment made of links, whose interpreter the agent runs in."""
    root = tmp_path / "env"
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    site = agent_lab.make_site(root / "lib" / version / "site-packages")
    (root / "bin").mkdir()
    (root / "bin/python").symlink_to(os.path.realpath(sys.executable))
    (root / "pyvenv.cfg").write_text(
        f"home = {os.path.dirname(os.path.realpath(sys.executable))}\n"
    )

    def ask(message):
        with agent_lab.Process(str(root / "bin/python")) as process:
            return process.ask(message)[0]

    return site, ask


def test_a_state_of_a_newer_patchq(site, controller):
    controller.push({"demo/a.py": b"x = 2\n"})
    state = site / ".patchq/demo/state.json"
    state.write_text(json.dumps({**json.loads(state.read_text()), "schema": 2}))

    assert controller.survey()["refusal"]["word"] == "newer-state"
    request, blobs = controller.push_request({"demo/b.py": b"y = 2\n"})
    with refused("newer-state", site=site, saying="pip install --upgrade patchq"):
        agent_lab.here(request, blobs)


@pytest.mark.parametrize("name", [".patchq", ".patchq/demo"])
def test_a_state_folder_that_is_a_link(site, controller, name):
    (site / name).parent.mkdir(exist_ok=True)
    (site / name).symlink_to(site.parent)

    with refused("not-writable", site=site, saying="symbolic link"):
        controller.push({"demo/a.py": b"x = 2\n"})


def test_unchecked_bytecode_that_cannot_go_would_win(site, controller):
    cache = site / "demo/__pycache__"
    cache.mkdir()
    pyc = cache / "a.cpython-311.pyc"
    pyc.write_bytes(b"\xa7\r\r\n\x01\0\0\0" + b"\0" * 8)
    if os.geteuid() != 0:
        cache.chmod(0o555)
        guard = contextlib.nullcontext()
    else:
        guard = chattr(pyc, 0x10)

    with guard, refused("in-the-way", site=site, saying="unchecked-hash"):
        controller.push({"demo/a.py": b"x = 2\n"})
    cache.chmod(0o755)


@pytest.mark.parametrize(("size", "name"), [(30000, "stage/0.new"), (400, "journal.new")])
def test_a_file_that_grows_over_the_limit_of_the_process(site, controller, size, name):
    request, blobs = controller.push_request({"demo/a.py": b"# " + b"x" * 40000, "demo/b.py": b""})

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    named = f".patchq/demo/{name} could not be read or written"
    with (
        refused("no-space", site=site, saying=named),
        agent_lab.Process(preexec_fn=limited) as process,
    ):
        process.ask(request, blobs)
    controller.push({"demo/a.py": b"x = 2\n"})


@only_root
def test_a_full_disk(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    with mounted("-t", "tmpfs", "-o", "size=1500k", "none", disk):
        site = agent_lab.make_site(disk / "site")
        controller = Controller(site)
        with refused("no-space", site=site, saying="free"):
            controller.push({"demo/data.json": os.urandom(700_000)})
        controller.push({"demo/a.py": b"x = 2\n"})


@only_root
def test_a_disk_without_inodes(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    with mounted("-t", "tmpfs", "-o", "size=9m,nr_inodes=40", "none", disk):
        site = agent_lab.make_site(disk / "site")
        for number in range(11):
            (disk / f"filler{number}").touch()
        with refused("no-space", site=site, saying="names"):
            Controller(site).push({"demo/a.py": b"x = 2\n"})


@only_root
def test_a_tree_that_is_mounted_read_only(site, controller):
    with mounted("--bind", site, site):
        subprocess.run(["mount", "-o", "remount,ro,bind", str(site)], check=True)
        with refused("not-writable", site=site, saying="read-only"):
            controller.push({"demo/a.py": b"x = 2\n"})


@only_root
def test_a_file_that_is_a_mount_point(site, controller):
    (site.parent / "mine.py").write_bytes(b"x = 1\n")
    with (
        mounted("--bind", site.parent / "mine.py", site / "demo/a.py"),
        refused("in-the-way", site=site, saying="mount point"),
    ):
        controller.push({"demo/a.py": b"x = 2\n"})


@only_root
def test_a_package_folder_that_is_a_mount_point(site, controller):
    (site / "demo").rename(site.parent / "src")
    (site / "demo").mkdir()
    with (
        mounted("--bind", site.parent / "src", site / "demo"),
        refused("in-the-way", site=site, saying="mount point"),
    ):
        controller.push({"demo/a.py": b"x = 2\n"})


@only_root
@pytest.mark.parametrize("flag", [0x10, 0x20], ids=["immutable", "append-only"])
@pytest.mark.parametrize("name", ["demo/a.py", "demo", "demo-1.0.dist-info/RECORD", "."])
def test_what_chattr_protects(site, controller, flag, name):
    with chattr(site / name, flag), pytest.raises(AgentError) as caught:
        controller.push({"demo/a.py": b"x = 2\n"})
    assert caught.value.word in ("in-the-way", "not-writable")
    assert "chattr" in caught.value.why
    assert not (site / ".patchq").exists()


@only_root
def test_files_of_another_user_whose_owner_could_not_be_kept(open_tmp):
    site = agent_lab.make_site(open_tmp / "site")
    own(site, NOBODY)
    os.chown(site / "demo/a.py", 0, 0)

    with refused("in-the-way", site=site, saying="belongs to uid 0"):
        as_user(NOBODY, lambda: Controller(site).push({"demo/a.py": b"x = 2\n"}))


@only_root
def test_site_packages_that_cannot_be_written_name_the_mend_that_helps(open_tmp):
    site = agent_lab.make_site(open_tmp / "site")
    own(site, NOBODY)
    os.chown(site, 0, 0)
    controller = Controller(site)

    with refused("not-writable", site=site, saying="install -d"):
        as_user(NOBODY, lambda: controller.push({"demo/a.py": b"x = 2\n"}))
    (site / ".patchq").mkdir()
    os.chown(site / ".patchq", NOBODY, NOBODY)
    as_user(NOBODY, lambda: controller.push({"demo/a.py": b"x = 2\n"}))

    assert (site / "demo/a.py").read_bytes() == b"x = 2\n"


@only_root
def test_roots_push_can_be_popped_by_the_owner(open_tmp):
    site = agent_lab.make_site(open_tmp / "site")
    own(site, NOBODY)
    before = snapshot(site)
    controller = Controller(site)

    controller.push({"demo/a.py": b"x = 2\n", "demo/n/m.py": b"m = 1\n"})
    assert {path.lstat().st_uid for path in site.rglob("*")} == {NOBODY}
    as_user(NOBODY, controller.pop)

    assert snapshot(site) == before
