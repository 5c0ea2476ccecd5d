"""Which processes run on an environment: real ones, as /proc tells of them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import venv

import pytest

from patchq.agent import environment, processes, sought
from tests.agent import agent_lab, process_lab
from tests.agent.process_lab import WAIT, server, started


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """One environment for tests that change nothing of it."""
    return process_lab.Home(tmp_path_factory.mktemp("home") / "venv")


def proofs(found, pids):
    return [found[pid]["proof"] if pid in found else None for pid in pids]


def test_a_server_its_engine_and_its_workers_are_found_by_script_and_parent(home):
    with server(home) as pids:
        found = home.found()

    assert proofs(found, pids) == ["command", "child", "child", "child"]
    top, engine, *_ = pids
    assert [found[pid]["name"] for pid in pids] == [
        "demo-serve",
        "VLLM::EngineCore",
        "VLLM::Worker_TP0",
        "VLLM::Worker_TP1",
    ]
    assert [found[pid]["parent"] for pid in pids] == [None, top, engine, engine]
    # What multiprocessing starts for itself has no code of the distribution.
    assert set(found) == {*pids}


def test_what_was_forked_is_told_from_what_runs_a_program_of_its_own(home):
    with server(home, "fork") as forked, server(home, "spawn") as spawned:
        found = home.found()

    assert [found[pid]["forked"] for pid in forked] == [False, True, True, True]
    assert [found[pid]["forked"] for pid in spawned] == [False] * 4


def test_a_mapped_file_of_the_distribution_proves_a_process_without_words(tmp_path):
    home = process_lab.Home(tmp_path / "venv")
    library = home.library("demo/_speed.so")
    code = f"import ctypes; ctypes.CDLL({str(library)!r}); {WAIT}"
    with started(home.python, "-c", code) as own, started(sys.executable, "-ISc", code) as other:
        found = home.found()

    assert proofs(found, [own.pid, other.pid]) == ["mapped", "mapped"]


def test_a_mapped_file_that_is_beside_the_distribution_proves_the_environment(tmp_path):
    home = process_lab.Home(tmp_path / "venv")
    library = home.library("demo/_speed.so")
    beside = home.site / "other.so"
    library.rename(beside)
    code = f"import ctypes; ctypes.CDLL({str(beside)!r}); {WAIT}"
    with started(sys.executable, "-ISc", code) as process:
        found = home.found()

    assert proofs(found, [process.pid]) == ["environment"]


def test_a_file_of_that_name_in_another_mount_namespace_is_another_file(tmp_path):
    home = process_lab.Home(tmp_path / "venv")
    library = home.library("demo/_speed.so")
    other = tmp_path / "other"
    other.mkdir()
    (other / library.name).write_bytes(library.read_bytes())
    code = f"import ctypes; ctypes.CDLL({str(library)!r}); {WAIT}"
    bind = f'mount --bind {other} {library.parent} && exec "$@"'
    within = ["unshare", "-m", "sh", "-c", bind, "sh", sys.executable, "-ISc", code]
    same = ["unshare", "-m", sys.executable, "-ISc", code]
    with started(*within) as foreign, started(*same) as own:
        found = home.found()

    assert proofs(found, [foreign.pid, own.pid]) == [None, "mapped"]


@pytest.mark.parametrize(
    ("words", "proof"),
    [
        (["-c", WAIT], "environment"),
        (["-c", f"import demo; {WAIT}"], "command"),
        (["-uBc", f"from demo import a; {WAIT}"], "command"),
        (["-m", "demo.wait"], "command"),
        (["-Xutf8", "-W", "ignore", "-m", "demo.wait"], "command"),
        (["-S", "-c", WAIT], None),
    ],
)
def test_a_command_line_that_names_the_package_proves_it(tmp_path, words, proof):
    files = {**agent_lab.FILES, "demo/wait.py": WAIT.encode()}
    home = process_lab.Home(tmp_path / "venv", files)
    with started(home.python, *words) as process:
        found = home.found()

    assert proofs(found, [process.pid]) == [proof]


def test_an_interpreter_is_known_however_it_is_named(home, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(home.root)
    ways = [
        ([link / "bin/python"], {}),
        (["bin/python"], {"cwd": home.root}),
        (["python"], {"env": {"PATH": f"{home.root}/bin:/usr/bin"}}),
        ([f"/{home.python}"], {}),
    ]
    for argv, options in ways:
        with started(*argv, "-c", f"import demo; {WAIT}", **options) as process:
            assert proofs(home.found(), [process.pid]) == ["command"]


def test_other_interpreters_and_environments_are_not_named(home, tmp_path):
    venv.EnvBuilder(symlinks=True).create(tmp_path / "other")
    code = f"import time; demo = 1; {WAIT}"
    with (
        started(tmp_path / "other/bin/python", "-c", code) as other,
        started(os.path.realpath(home.python), "-c", code) as base,
        started("sh", "-c", "echo up; sleep 60; : bin/python -m demo") as shell,
    ):
        found = home.found()

    assert proofs(found, [other.pid, base.pid, shell.pid]) == [None] * 3


def test_a_target_folder_is_known_by_pythonpath_and_the_current_folder(tmp_path):
    site = agent_lab.make_site(tmp_path / "site")
    code = f"import demo; {WAIT}"
    environ = {**os.environ, "PYTHONPATH": f"/nowhere:{site}"}
    with (
        started(sys.executable, "-c", code, env=environ) as path,
        started(sys.executable, "-c", code, cwd=site) as folder,
        started(sys.executable, "-c", WAIT) as neither,
    ):
        found = agent_lab.Controller(site).survey(want=["running"])["running"]

    found = {one["pid"]: one for one in found["processes"]}
    assert proofs(found, [path.pid, folder.pid, neither.pid]) == ["command", "command", None]


def test_processes_of_other_users_are_found_by_their_words_and_else_counted(home):
    os.chmod(home.root.parent, 0o755)
    for folder in home.root.parents:
        if folder.stat().st_mode & 0o005 != 0o005 and folder != home.root:
            os.chmod(folder, folder.stat().st_mode | 0o005)
    nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    with server(home) as pids, started(sys.executable, "-c", WAIT) as other:
        found = process_lab.asked(home.site, nobody)["running"]
        told = {one["pid"]: one for one in found["processes"]}
        alone = home.running()

    assert proofs(told, pids) == ["command", "child", "child", "child"]
    assert other.pid not in told
    assert found["unreadable"] >= 1
    assert alone["unreadable"] == 0


NOBODY = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")


@pytest.fixture
def open_home(home):
    """The environment, where every user can read it."""
    for folder in (home.root.parent, *home.root.parents):
        if folder.stat().st_mode & 0o005 != 0o005:
            os.chmod(folder, folder.stat().st_mode | 0o005)
    return home


@pytest.mark.parametrize(
    ("method", "forked"), [("fork", [False, True, True, True]), ("spawn", [False] * 4)]
)
def test_who_may_not_look_into_a_server_knows_what_it_forked(open_home, method, forked):
    with server(open_home, method) as pids:
        found = process_lab.asked(open_home.site, NOBODY)["running"]

    told = {one["pid"]: one["forked"] for one in found["processes"]}
    assert [told[pid] for pid in pids] == forked


@pytest.mark.parametrize("title", ["api-server", "a title that is longer than the arguments" * 40])
def test_another_users_title_is_counted_and_named(open_home, title):
    code = process_lab.SERVER.decode() + f"\nretitle({title!r})\n{WAIT}"
    with started(os.path.realpath(open_home.python), "-c", code) as process:
        found = process_lab.asked(open_home.site, NOBODY)["running"]

    told = dict(found["unread"])
    assert found["unreadable"] >= len(told) >= 1
    assert title.startswith(told[process.pid].removesuffix("..."))


def test_programs_in_c_that_wrote_a_title_are_not_counted(open_home):
    """As a real shell is named by who starts it, and as sshd and systemd name themselves."""
    rename = "import ctypes; ctypes.CDLL(None).prctl(15, NAME, 0, 0, 0)"
    code = process_lab.SERVER.decode() + f"\nretitle('(sd-pam)')\n{WAIT}"
    other = process_lab.SERVER.decode() + f"\nretitle('sshd: me@notty')\n{rename}\n{WAIT}"
    base = os.path.realpath(open_home.python)
    with (
        started(base, "-c", code) as systemd,
        started(base, "-c", other.replace("NAME", "b'sshd'")) as sshd,
        started("sh", "-c", "echo up; sleep 60") as shell,
    ):
        found = process_lab.asked(open_home.site, NOBODY)["running"]

    assert not {systemd.pid, sshd.pid, shell.pid} & set(dict(found["unread"]))


@pytest.mark.parametrize(
    ("mode", "user"), [("1", NOBODY), ("2", NOBODY), ("2", ()), ("0", NOBODY)]
)
def test_whether_proc_hides_others_is_told(open_home, mode, user):
    hide = f'mount -o remount,hidepid={mode} /proc; "$@"; exit $?'  # the first is root's
    within = ["unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", hide, "sh"]

    found = process_lab.asked(open_home.site, [*within, *user])["running"]

    assert found["hidden"] is (mode != "0" and bool(user))


def test_proc_that_hides_is_told_where_the_first_process_is_ones_own(open_home):
    hide = 'mount -o remount,hidepid=2 /proc && exec "$@"'
    within = ["unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", hide, "sh"]

    assert process_lab.asked(open_home.site, [*within, *NOBODY])["running"]["hidden"] is True
    assert process_lab.asked(open_home.site, within)["running"]["hidden"] is False


def test_processes_that_end_meanwhile_are_no_matter(home):
    stop = threading.Event()

    def storm():
        while not stop.is_set():
            subprocess.run([home.python, "-ISc", ""], check=True)

    threads = [threading.Thread(target=storm) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        with started(home.python, "-c", f"import demo; {WAIT}") as process:
            for _ in range(20):
                found = home.found()
                assert proofs(found, [process.pid]) == ["command"]
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_a_number_of_a_process_that_is_gone_says_nothing(home):
    ended = subprocess.Popen([home.python, "-c", ""])
    ended.wait()
    scan = processes._Scan(locate(home))
    scan._look(ended.pid, str(home.python))

    assert not scan.found
    assert not scan.waiting


def test_a_zombie_runs_nothing(home):
    ended = subprocess.Popen([home.python, "-c", "import demo"])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    found = home.found()
    ended.wait()

    assert ended.pid not in found


def test_looking_ends_when_its_time_is_over_and_says_how_many_are_left(home):
    with started(home.python, "-c", f"import demo; {WAIT}"):
        scan = processes._Scan(locate(home))
        scan.until = 0
        scan.run()

    assert scan.answer()["unseen"] >= 2
    assert not scan.answer()["processes"]


def test_no_argument_that_may_be_a_key_is_told(home):
    secret = "sk-0123456789"
    with started(home.script, "spawn", "--api-key", secret) as process:
        found = home.found()
        assert found[process.pid]["name"] == "demo-serve"
    with started(home.python, "-c", f"import demo; key = {secret!r}; {WAIT}", secret):
        assert secret not in str(home.running())


def test_an_interpreter_that_all_share_names_only_who_is_proven(home):
    here = locate(home)
    shared = sought.of(here)._replace(dedicated=False)
    with (
        started(home.python, "-c", WAIT) as unproven,
        started(home.python, "-c", f"import demo; {WAIT}") as proven,
    ):
        scan = processes._Scan(here)
        scan.sought = shared
        scan.run()

    assert proven.pid in scan.found
    assert unproven.pid not in scan.found
    assert scan.others >= 1


def test_a_title_alone_proves_nothing(home):
    code = process_lab.SERVER.decode() + f"\nretitle('VLLM::EngineCore')\n{WAIT}"
    with started(os.path.realpath(home.python), "-c", code) as process:
        found = home.found()

    assert process.pid not in found


def test_nothing_is_said_of_what_is_not_installed(tmp_path):
    site = tmp_path / "site"
    site.mkdir()

    assert agent_lab.Controller(site).survey(want=["running"])["running"] is None


def test_root_looks_as_root_also_where_it_works_as_the_owner(tmp_path):
    home = process_lab.Home(tmp_path / "venv")
    library = home.library("demo/_speed.so")
    for path in [home.root, *home.root.rglob("*")]:
        os.chown(path, 65534, 65534, follow_symlinks=False)
    for folder in (tmp_path, *tmp_path.parents[:3]):
        os.chmod(folder, folder.stat().st_mode | 0o005)
    code = f"import ctypes; ctypes.CDLL({str(library)!r}); {WAIT}"
    with started(sys.executable, "-ISc", code) as process:  # nobody could not look into it
        found = home.found()

    assert proofs(found, [process.pid]) == ["mapped"]
    assert os.geteuid() == 0


PARENT = """\
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE)
child.stdout.readline()  # exec(2) ends before the kernel shows the environment
exec(sys.argv[1])
"""


def test_a_child_of_one_that_is_not_proven_is_not_proven_either(home):
    with started(home.python, "-c", PARENT, WAIT) as parent:
        found = home.found()

    child = next(pid for pid, one in found.items() if one["parent"] == parent.pid)
    assert proofs(found, [parent.pid, child]) == ["environment", "environment"]


def locate(home):
    request = {"distribution": "demo", "target": str(home.site), "paths": []}
    return environment.locate(request)


def test_the_clock_is_the_one_by_which_proc_counts(home):
    now = processes.clock()
    with started(home.python, "-c", f"import demo; {WAIT}") as process:
        start = home.found()[process.pid]["start"] * 10**9 // os.sysconf("SC_CLK_TCK")

    later = processes.clock()
    assert now["boot"] == later["boot"] != ""
    assert now["up"] - 10**8 < start < later["up"]
