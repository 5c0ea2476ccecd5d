import ast
import subprocess
import sys
from pathlib import Path

import pytest

from patchq import agent
from patchq.errors import UsageError
from patchq.transport import bootstrap, command
from tests import ssh_lab
from tests.transport import talk

ODD = 'it\'s "a" $HOME/py thon!\\n(é)~#&;*%`id`'


@pytest.mark.parametrize("shell", ssh_lab.SHELLS)
@pytest.mark.parametrize("python", [None, "python3", "absolute", "odd", "home"])
def test_line_starts_the_agent_in_every_shell(tmp_path, shell, python, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", ssh_lab.PATH)
    folder = tmp_path / ODD
    folder.mkdir(parents=True)
    for name in ("python!", "absolute"):
        (folder / name).symlink_to(sys.executable)
    (tmp_path / "env").symlink_to(folder)
    (tmp_path / "m.py").write_bytes(b"1\n")
    paths = {
        "absolute": sys.executable,
        "odd": str(folder / "python!"),
        "home": "~/env/python!",
    }

    found = command.converse(
        [ssh_lab.tool(shell), "-c"], paths.get(python, python), talk.contents(tmp_path, "m.py")
    )

    assert found == [b"1\n"]


def test_line_holds_nothing_that_a_shell_reads_in_its_own_way():
    line = bootstrap.command(None)

    assert not set(line) & set('!$`\\"\n')
    assert line.count("'") == 2
    assert len(line) < 130


def test_path_of_an_interpreter_is_never_written_plainly():
    line = bootstrap.command("/opt/ev il;id/python")

    assert ";id" not in line
    assert "0040" in line


@pytest.mark.parametrize(
    "python", ["", "-m", "bin/python", "../python", "~other/python", "/a\nb", "a b"]
)
def test_interpreter_that_is_none_is_a_usage_error(python):
    with pytest.raises(UsageError, match="does not name an interpreter"):
        bootstrap.command(python)


def test_first_line_makes_a_shell_leave_before_it_runs_anything(tmp_path):
    canary = tmp_path / "canary"
    first, _, rest = bootstrap.payload(b"nonce", writing=True).partition(b"\n")
    script = first + b"\ntouch " + bytes(canary) + b"\n" + rest

    for shell in ("sh", "bash", "zsh", "tcsh", "dash"):
        done = subprocess.run([ssh_lab.tool(shell)], input=script, capture_output=True)

        assert done.returncode == bootstrap.HIJACKED, shell
    assert not canary.exists()


def test_reading_ships_less_than_writing():
    reading = bootstrap.payload(b"nonce", writing=False)
    writing = bootstrap.payload(b"nonce", writing=True)

    assert len(reading) < len(writing)
    assert b"patchq.agent.transact" in writing
    assert b"patchq.agent.transact" not in reading
    assert len(bootstrap.payload(b"nonce", writing=True, packed=True)) < len(writing) / 2


def test_every_module_of_the_agent_is_shipped_once():
    folder = Path(agent.__file__).parent

    assert sorted(agent.WRITING) == sorted(
        path.stem for path in folder.glob("*.py") if path.stem != "__init__"
    )


def test_agent_is_read_from_a_zip_too(tmp_path):
    root = Path(agent.__file__).parents[2]
    subprocess.run(
        [sys.executable, "-m", "zipfile", "-c", tmp_path / "p.zip", root / "patchq"], check=True
    )
    code = (
        "from patchq.transport import bootstrap;"
        "print(bootstrap.__file__, len(bootstrap.payload(b'n', writing=True)))"
    )

    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PYTHONPATH": str(tmp_path / "p.zip")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )

    assert "p.zip" in done.stdout, done.stderr
    assert done.stdout.split()[-1] == str(len(bootstrap.payload(b"n", writing=True)))


def test_traceback_of_the_agent_shows_its_source():
    payload = bootstrap.payload(bootstrap.nonce(), writing=False)
    served, broken = (
        b"serve.main(b, sys.stdout.buffer, n, equal=equal)",
        b"print(serve.respond(0,{}),flush=1)",
    )
    assert payload.count(served) == 1

    done = subprocess.run(
        bootstrap.argv(sys.executable),
        input=payload.replace(served, broken.ljust(len(served))),
        capture_output=True,
        timeout=60,
    )

    error = ast.literal_eval(done.stdout.decode())[0]["error"]
    assert error["word"] == "bug"
    assert 'File "<patchq>/patchq/agent/serve.py"' in error["why"]
    assert '\n    op = request.get("op")' in error["why"]
