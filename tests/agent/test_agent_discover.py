"""Which interpreters of a machine have a distribution: found, and nothing of them run."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import agent_lab
import pytest
from agent_lab import Process

# No environment of this machine has these, nor one of a test in another process.
DEMO, OTHER = f"patchq.lab-Demo{os.getpid()}", f"patchq-lab-other{os.getpid()}"
SPELLED = f"patchq_lab_demo{os.getpid()}"
# Would tell that it was run, whatever it was asked.
LOUD = '#!/bin/sh\necho "$0" >> "{}"\n'


@pytest.fixture
def home(tmp_path):
    """A home, and in it a place where a program that is run would leave its name."""
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def discover(home):
    """Ask an agent whose user has this home."""

    def ask(*names, python=sys.executable, **more):
        environ = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
        with Process(python, env=environ) as process:
            answer, _ = process.ask({"op": "discover", "distributions": list(names or [DEMO])})
        assert process.stderr == b""
        assert not (home / "ran").exists(), (home / "ran").read_text()
        return answer

    return ask


@pytest.fixture
def lay(home):
    """Lay out environments by hand; an interpreter that is run leaves its name in ``ran``."""

    def lay(path, *, venv=True, library="lib/python3.12", dist=f"{SPELLED}-1.0", python="python"):
        prefix = home / path
        (prefix / "bin").mkdir(parents=True, exist_ok=True)
        (prefix / "bin" / python).write_text(LOUD.format(home / "ran"))
        (prefix / "bin" / python).chmod(0o755)
        if venv:
            (prefix / "pyvenv.cfg").write_text("home = /usr/bin\n")
        site = Path(os.path.normpath(prefix)) / library / "site-packages"
        (site / f"{dist}.dist-info").mkdir(parents=True)
        return site

    return lay


PLACES = [
    "venv",
    ".venv",
    "project/.venv",
    "project/venv",
    ".virtualenvs/x",
    ".local/share/uv/tools/vllm",
    ".local/share/pipx/venvs/vllm",
]
PREFIXES = [
    "miniconda3",
    "miniforge3/envs/vllm",
    ".conda/envs/x",
    ".pyenv/versions/3.12.1",
    ".local/share/uv/python/cpython-3.12.1-linux-x86_64-gnu",
]


def test_virtual_environments_are_found_where_they_usually_are(discover, lay, home):
    sites = {place: str(lay(place)) for place in PLACES}

    found = {one["python"]: one for one in discover()["found"]}

    assert found == {
        str(home / place / "bin/python"): {
            "python": str(home / place / "bin/python"),
            "site": site,
            "distribution": DEMO,
            "version": "1.0",
            "processes": [],
        }
        for place, site in sites.items()
    }


def test_prefixes_are_found_with_the_interpreter_of_their_version(discover, lay, home):
    for place in PREFIXES:
        lay(place, venv=False, python="python3.12")
        lay(place, venv=False, python="python3.13", library="lib/python3.13", dist="x-1.0")

    found = {one["python"] for one in discover()["found"]}

    assert found == {str(home / place / "bin/python3.12") for place in PREFIXES}


def test_an_environment_that_conda_lists_is_found(discover, lay, home, tmp_path):
    lay("../elsewhere/env", venv=False, python="python3.12")
    (home / ".conda").mkdir()
    (home / ".conda/environments.txt").write_text(f"{tmp_path}/elsewhere/env\nno path\n\n/gone\n")

    (one,) = discover()["found"]

    assert one["python"] == f"{tmp_path}/elsewhere/env/bin/python3.12"


def test_names_are_compared_as_pep_503_has_it_and_as_a_whole(discover, lay):
    site = lay("venv", dist=f"Patchq_Lab.Demo{os.getpid()}-2.0+cu130")
    for name in (
        f"{SPELLED}_extra-1.0.dist-info",
        f"{OTHER.replace('-', '_')}-3.0.dist-info",
        "x",
    ):
        (site / name).mkdir()

    found = discover(DEMO, OTHER)["found"]

    versions = {one["distribution"]: one["version"] for one in found}
    assert versions == {DEMO: "2.0+cu130", OTHER: "3.0"}


def test_an_environment_that_reads_the_systems_packages_has_them(discover, lay, home):
    base = lay("../base", venv=False, python="python3.12")
    (home / "venv/bin").mkdir(parents=True)
    (home / "venv/bin/python").symlink_to(home / "../base/bin/python3.12")
    settings = f"home = {home.parent}/base/bin\ninclude-system-site-packages = TRUE\n"
    (home / "venv/pyvenv.cfg").write_text(settings)

    (one,) = discover()["found"]

    assert one["python"] == str(home / "venv/bin/python")
    assert os.path.samefile(one["site"], base)


def test_links_to_one_environment_are_told_once(discover, lay, home):
    lay("venv")
    (home / ".venv").symlink_to("venv")
    (home / "venv/lib64").symlink_to("lib")

    assert len(discover()["found"]) == 1


def test_what_cannot_be_read_is_passed_over(discover, lay, home):
    lay("venv")
    os.mkfifo(home / "a")
    (home / ".venv").mkdir()
    os.mkfifo(home / ".venv/pyvenv.cfg")
    (home / "b").symlink_to("b")
    (home / "c").mkdir()
    (home / "c/venv").symlink_to("../c/venv")
    (home / "d/.venv/lib/python3.12/site-packages").mkdir(parents=True)  # no interpreter
    (home / f"d/.venv/lib/python3.12/site-packages/{SPELLED}-9.dist-info").mkdir()
    (home / ".conda").mkdir()
    os.mkfifo(home / ".conda/environments.txt")

    assert [one["version"] for one in discover()["found"]] == ["1.0"]


def test_what_is_no_line_of_text_is_passed_over(discover, lay):
    site = lay("venv")
    (site / f"{SPELLED}-2\n[hosts.evil].dist-info").mkdir()
    lay("odd\nname/.venv")
    lay("odd\udcff/.venv")

    assert [one["version"] for one in discover()["found"]] == ["1.0"]


def test_nothing_is_found_where_nothing_is(discover):
    answer = discover()

    assert (answer["found"], answer["cut"]) == ([], None)


@contextlib.contextmanager
def running(*argv, **options):
    """Keep a process that has said that it runs."""
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stdin=subprocess.PIPE, **options) as child:
        try:
            assert child.stdout.readline() == b"up\n"
            yield child.pid
        finally:
            child.kill()


UP = "import sys; print('up', flush=True); sys.stdin.read()"
# What setproctitle does: the command line and the program's own name are gone.
MAPPED = "import mmap, sys; f = open(sys.argv[1]); m = mmap.mmap(f.fileno(), 0, access=1);" + UP


def test_what_runs_is_found_wherever_it_is_and_comes_first(discover, lay, home, tmp_path):
    lay("venv")
    site = lay("../odd place/env")
    python = tmp_path / "odd place/env/bin/python"
    python.unlink()
    python.symlink_to(sys.executable)

    with running(str(python), "-c", UP) as pid:
        found = discover()["found"]

    assert [one["processes"] for one in found] == [[pid], []]
    assert found[0]["python"] == str(python)
    assert found[0]["site"] == str(site)


def test_a_process_is_known_by_what_is_mapped_where_its_name_is_a_title(discover, lay, tmp_path):
    site = lay("../odd/env")
    (site / "c.so").write_bytes(b"x" * 4096)

    real = os.path.realpath(sys.executable)
    with running("VLLM::EngineCore", "-c", MAPPED, str(site / "c.so"), executable=real) as pid:
        (one,) = discover()["found"]

    assert one["processes"] == [pid]
    assert one["python"] == f"{tmp_path}/odd/env/bin/python"


def test_a_bare_name_is_of_the_environment_that_is_active(discover, lay, tmp_path):
    lay("../odd/env")

    environ = {"VIRTUAL_ENV": f"{tmp_path}/odd/env"}
    with running("python", "-c", UP, executable=sys.executable, env=environ) as pid:
        (one,) = discover()["found"]

    assert one["processes"] == [pid]


@pytest.mark.slow
@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a mount namespace")
def test_a_process_in_a_container_is_counted_and_its_paths_are_not_looked_at(discover, lay, home):
    lay("../odd/env")
    python = home.parent / "odd/env/bin/python"
    python.unlink()
    python.symlink_to(sys.executable)

    with running("unshare", "-m", str(python), "-c", UP):
        answer = discover()

    assert answer["found"] == []
    assert answer["elsewhere"] >= 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "python", agent_lab.interpreters(), ids=lambda path: path.strip("/").replace("/", "-")
)
def test_every_python_can_look(discover, lay, python):
    lay("venv")

    assert len(discover(python=python)["found"]) == 1


@pytest.mark.parametrize("names", [None, "demo", [5], ["../x"]])
def test_a_request_of_another_form_is_refused(names):
    with pytest.raises(agent_lab.AgentError, match="bad-request"):
        agent_lab.here({"op": "discover", "distributions": names})


def test_an_answer_has_bounds(discover, lay):
    for number in range(230):
        lay(f".virtualenvs/{number}")

    answer = discover()

    assert len(answer["found"]) == 200
    assert "after" in answer["cut"]
