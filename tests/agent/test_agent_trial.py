"""The agent's import: a fresh process that ends whatever it runs, as the tree's owner."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import agent_lab
import pytest
from agent_lab import AgentError

from patchq.agent import trial

NOBODY = 65534
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: another owner")


@pytest.fixture
def run(site):
    """Import modules of the folder, one of which holds `text`."""

    def run(text="", modules=("demo.a",), **more):
        (site / "demo/a.py").write_text(text)
        request = {"op": "import", "distribution": "demo", "target": str(site)}
        answer, blobs = trial.answer({**request, "modules": list(modules)}, **more)
        assert blobs == {}
        return answer

    return run


def test_modules_are_imported_in_their_order(run):
    assert run("x = 1", ["demo.b", "demo.a", "demo"]) == {
        "imported": ["demo.b", "demo.a", "demo"],
        "failed": None,
        "printed": "",
    }


def test_an_error_is_told_with_its_traceback_and_ends_it(run):
    found = run("print('loading')\nimport nothing_of_that_name", ["demo", "demo.b"])

    assert found["imported"] == []
    failed = found["failed"]
    assert (failed["module"], failed["error"]) == ("demo", "ModuleNotFoundError")
    assert failed["text"] == "No module named 'nothing_of_that_name'"
    assert "demo/a.py" in failed["trace"]
    assert found["printed"] == "loading\n"


def test_what_was_imported_before_an_error_is_told(run):
    found = run("1 / 0", ["json", "demo.a", "demo.b"])

    assert found["imported"] == ["json"]
    assert found["failed"]["error"] == "ZeroDivisionError"


def test_a_module_that_hangs_is_ended(run, site):
    text = f"import os, time\nopen({str(site / 'pid')!r}, 'w').write(str(os.getpid()))\n"

    found = run(text + "time.sleep(600)", deadline=1.0)

    assert found["failed"]["text"] == "no end after 1 s"
    assert not Path("/proc", (site / "pid").read_text()).exists()


def test_a_module_that_prints_for_ever_is_ended_and_told_in_part(run):
    found = run("while True:\n    print('x' * 1000)", deadline=1.0)

    assert found["failed"]["text"] == "no end after 1 s"
    assert 1000 < len(found["printed"]) <= 2000


def test_a_module_that_prints_much_is_imported(run):
    assert run("print('x' * 50_000_000)")["failed"] is None


@pytest.mark.parametrize(
    ("text", "error", "told"),
    [
        ("import os\nos._exit(3)", "ended", "the process ended with 3"),
        ("import os\nos.kill(os.getpid(), 9)", "ended", "the process was ended by signal 9"),
        ("import sys\nsys.exit('enough')", "SystemExit", "enough"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt", ""),
        ("import os\nos.closerange(0, 100)", "ended", "the process ended with 1"),
    ],
)
def test_a_module_that_ends_the_process_has_failed(run, text, error, told):
    failed = run(text)["failed"]

    assert (failed["module"], failed["error"], failed["text"]) == ("demo.a", error, told)


def test_a_module_that_forks_is_imported_once_and_its_child_ends(run, site):
    text = f"import os, time\npid = os.fork()\nif pid:\n    open({str(site / 'pid')!r}, 'w')"
    found = run(f"{text}.write(str(pid))\nelse:\n    time.sleep(600)\n", ["demo.a", "demo.b"])

    assert found == {"imported": ["demo.a", "demo.b"], "failed": None, "printed": ""}
    gone((site / "pid").read_text())


def test_a_forked_copy_does_not_go_on_with_the_modules(run, site):
    text = f"import os\nos.fork()\nopen({str(site / 'who')!r}, 'a').write('%d ' % os.getpid())\n"
    (site / "demo/b.py").write_text(text)

    assert run("import os\nos.fork()", ["demo.a", "demo.b"])["imported"] == ["demo.a", "demo.b"]
    assert len((site / "who").read_text().split()) <= 2


def test_a_daemon_that_keeps_the_pipes_is_not_waited_for(run, site):
    text = f"""
import os, time
if os.fork() == 0:
    os.setsid()
    open({str(site / "pid")!r}, "w").write(str(os.getpid()))
    time.sleep(600)
while not os.path.exists({str(site / "pid")!r}) or not os.stat({str(site / "pid")!r}).st_size:
    time.sleep(0.01)
"""
    try:
        assert run(text, deadline=60.0)["failed"] is None
    finally:
        os.kill(int((site / "pid").read_text()), 9)


LIAR = """
import os
for number in range(3, 30):
    try:
        os.write(number, b'["demo.b", null]\\nnonsense\\n[1]\\n["other", null]\\n["demo.b", 5]\\n')
    except OSError:
        pass
os._exit(0)
"""


def test_what_a_module_writes_to_the_private_pipe_is_no_answer(run):
    found = run(LIAR, ["demo.a", "demo.b"])

    assert found["failed"]["module"] == "demo.a"
    assert set(found["imported"]) <= {"demo.b"}


def test_no_bytecode_is_written_and_nothing_of_the_agent_is_seen(run, site):
    text = "import sys\nassert not [name for name in sys.modules if name.startswith('patchq')]\n"

    assert run(text + "assert sys.argv == ['-c'] and sys.stdin.read() == ''")["failed"] is None
    assert not list(site.rglob("*.pyc"))


def test_a_target_tree_comes_before_what_is_installed(run, site):
    (site / "colorsys.py").write_text("mine = True\n")

    assert run("import colorsys\nassert colorsys.mine")["failed"] is None


def test_a_distribution_that_is_not_there_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()

    with pytest.raises(AgentError) as caught:
        asked(tmp_path / "empty", ["demo"])

    assert caught.value.word == "not-installed"


def test_a_venv_is_its_own_interpreters(tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "v"], check=True)
    python = tmp_path / "v/bin/python"
    (packages,) = (tmp_path / "v/lib").glob("python*/site-packages")
    agent_lab.make_site(packages)
    (packages / "demo/a.py").write_text(
        f"import sys\nassert sys.prefix == {str(tmp_path / 'v')!r}\n"
        "assert not sys.flags.isolated and not sys.flags.no_site\n"
    )
    (packages / "on_path.pth").write_text("import os; os.environ['FROM_PTH'] = 'yes'\n")
    (packages / "demo/b.py").write_text("import os\nassert os.environ['FROM_PTH']\n")
    request = {"op": "import", "distribution": "demo", "target": None, "explicit": True}

    with agent_lab.Process(str(python)) as agent:
        answer, _ = agent.ask({**request, "modules": ["demo.a", "demo.b"]})

    assert answer["imported"] == ["demo.a", "demo.b"], answer


@pytest.fixture
def theirs():
    """A tree of another user's, in a folder that this one may enter."""
    root = Path(tempfile.mkdtemp(prefix="patchq-trial-"))
    root.chmod(0o755)
    site = agent_lab.make_site(root / "site")
    (site / "demo/a.py").write_text(
        "import os\n"
        f"assert os.getresuid() == ({NOBODY},) * 3, os.getresuid()\n"
        f"assert os.getresgid() == ({NOBODY},) * 3, os.getresgid()\n"
        "assert 0 not in os.getgroups(), os.getgroups()\n"
        "assert os.environ['USER'] == 'nobody' and os.environ['HOME'] != '/root'\n"
        "try:\n    os.seteuid(0)\nexcept PermissionError:\n    pass\n"
        "else:\n    raise AssertionError('root again')\n"
    )
    for path in (site, *site.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    yield site
    shutil.rmtree(root)


@only_root
def test_root_runs_another_users_tree_as_that_user_for_good(theirs):
    controller = agent_lab.Controller(theirs)
    with agent_lab.Process("/usr/bin/python3") as agent:
        for _ in range(2):  # and the agent is root again in between
            answer, _ = agent.ask(controller.message("import", modules=["demo.a"]))
            assert answer["failed"] is None, answer


@only_root
def test_root_runs_no_tree_that_another_can_write_in_part(theirs):
    (theirs / "demo-1.0.dist-info/RECORD").chmod(0o644)
    os.chown(theirs / "demo-1.0.dist-info/RECORD", 0, 0)

    with pytest.raises(AgentError, match="root does not run what another user can write"):
        asked(theirs, ["demo.b"])


@only_root
def test_root_runs_no_tree_of_its_own_in_which_another_has_a_package(site):
    os.chown(site / "demo", NOBODY, NOBODY)

    with pytest.raises(AgentError, match=f"{site}/demo is nobody's"):
        asked(site, ["demo.b"])


def asked(site, modules):
    """Ask the agent in this process, as a request that came over a wire."""
    controller = agent_lab.Controller(site)
    return controller.ask(controller.message("import", modules=modules))[0]


def gone(pid: str) -> None:
    """Wait until a process has ended; who adopts it may take a moment to reap it."""
    for _ in range(200):
        try:
            if Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return
        except (FileNotFoundError, ProcessLookupError):
            return
        time.sleep(0.02)
    raise AssertionError(f"{pid} still runs")
