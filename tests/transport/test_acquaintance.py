"""The agent as bytecode, sent where its interpreter is known, and what a wrong guess costs."""

import asyncio
import json
import os
import stat
import subprocess
import sys
from types import CodeType

import pytest

from patchq.transport import bootstrap, command, hosts, local, modules, ssh
from patchq.transport.acquaintance import Acquaintance
from patchq.transport.become import Become
from tests import ssh_lab
from tests.agent import agent_lab
from tests.transport import talk

# An interpreter that says that it is of another kind: not every machine has a second one.
CHANGED = f"""#!/bin/sh
shift
exec {sys.executable} -ISc '
import sys, _frozen_importlib_external as files
files.MAGIC_NUMBER = b"else"
exec(sys.argv[1])' "$@"
"""


def is_other(python):
    ask = "import importlib.util as u; print(u.MAGIC_NUMBER.hex())"
    done = subprocess.run([python, "-ISc", ask], capture_output=True, text=True, check=True)
    return done.stdout.strip() != modules.MAGIC.hex()


OTHERS = list(filter(is_other, agent_lab.interpreters()))


@pytest.fixture
def other(tmp_path):
    """An interpreter of another kind."""
    path = tmp_path / "other" / "python"
    path.parent.mkdir()
    path.write_text(CHANGED)
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "agents"


def names(folder):
    """Return where agents are known to be equal."""
    return json.loads((folder / f"equal-{modules.MAGIC.hex()}.json").read_text())


def believe(folder, where):
    """Have it believed that an interpreter is equal."""
    folder.mkdir(exist_ok=True)
    (folder / f"equal-{modules.MAGIC.hex()}.json").write_text(json.dumps([where]))
    return Acquaintance(folder)


def opened(known, where, **options):
    return known.opening(b"n0nce", where, **{"writing": True, **options})


def test_an_equal_interpreter_gets_bytecode_from_the_second_time_on(tmp_path, folder):
    (tmp_path / "m.py").write_bytes(b"1\n")
    source = len(bootstrap.payload(b"n0nce", writing=True))
    for times in range(3):
        known = Acquaintance(folder)
        opening = opened(known, sys.executable)
        assert (opening.source is not None) == (times > 0)
        assert (len(opening.payload) > 1.2 * source) == (times > 0)
        found = local.converse(sys.executable, talk.contents(tmp_path, "m.py"), known=known)
        known.keep()
        assert found == [b"1\n"]

    assert names(folder) == [sys.executable]


@pytest.mark.parametrize("python", ["changed", *OTHERS])
def test_another_interpreter_that_gets_bytecode_is_started_again_from_source(
    tmp_path, folder, other, python
):
    python = other if python == "changed" else python
    (tmp_path / "m.py").write_bytes(b"1\n")
    known = believe(folder, python)

    assert local.converse(python, talk.contents(tmp_path, "m.py"), known=known) == [b"1\n"]

    known.keep()
    assert names(folder) == []
    assert opened(Acquaintance(folder), python).source is None


def test_a_host_that_changed_its_interpreter_is_asked_anew(base, home, folder, other):
    (base / "remote" / "m.py").write_bytes(b"1\n")
    with ssh_lab.embedded(base / "remote", home.public, shell="sh") as server:
        home.add("gpu1", server)
        asked = []
        for python in (sys.executable, sys.executable, other, other):
            link = base / "remote" / "python"
            link.unlink(missing_ok=True)
            link.symlink_to(python)
            known = Acquaintance(folder)
            settings = ssh.Settings.read(home.environ, known=known)
            host = hosts.parse("gpu1", python=str(link))
            before = len(server.commands)
            found = asyncio.run(ssh.converse(host, settings, talk.contents(server.home, "m.py")))
            known.keep()
            asked.append((found, len(server.commands) - before, len(names(folder))))

    assert asked == [([b"1\n"], 1, 1), ([b"1\n"], 1, 1), ([b"1\n"], 2, 0), ([b"1\n"], 1, 0)]


@pytest.mark.parametrize("shell", ["sh", "rbash"])
def test_a_wrong_guess_behind_a_command_is_mended_for_restricted_shells_too(
    tmp_path, folder, other, shell, monkeypatch
):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to(other)
    for tool in ("sh", "rbash"):
        (tmp_path / "bin" / tool).symlink_to(ssh_lab.tool(tool))
    (tmp_path / "m.py").write_bytes(b"1\n")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    known = believe(folder, f"{shell} -c python3")

    found = command.converse([shell, "-c"], None, talk.contents(tmp_path, "m.py"), known=known)

    known.keep()
    assert found == [b"1\n"]
    assert names(folder) == []


def test_a_status_like_that_of_a_wrong_guess_is_tried_twice_and_no_more(tmp_path, folder):
    count = tmp_path / "count"
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\necho x >> {count}\nexit {bootstrap.OTHER}\n")
    python.chmod(0o755)
    known = believe(folder, str(python))

    with pytest.raises(Exception, match="no agent answered"):
        local.converse(str(python), talk.read(tmp_path), known=known)

    assert count.read_text() == "x\nx\n"


def test_who_is_asked_for_a_password_gets_what_every_interpreter_takes(folder):
    known = believe(folder, "ssh gpu1 python3 root")

    assert opened(known, "ssh gpu1 python3", become=Become()).source is not None
    assert opened(known, "ssh gpu1 python3", become=Become(password="secret")).source is None
    assert opened(known, "ssh gpu1 python3").source is None, "another user's is another"
    assert opened(known, "ssh gpu1 python3", become=Become("svc")).source is None


def test_a_verb_that_fails_has_met_its_interpreter_too(world):
    done = world.run("push", "-a", "--target", world.root / "no-site", "--queue", world.queue)
    assert done.returncode != 0
    (world.root / "no-site").mkdir()
    before = sorted((world.root / "cache" / "agents").glob("equal-*"))
    for each in before:
        each.unlink()

    done = world.run("push", "-a", "--target", world.root / "no-site", "--queue", world.queue)

    assert done.returncode != 0
    assert names(world.root / "cache" / "agents") == [sys.executable]


def test_bytecode_has_the_lines_of_its_source():
    def inner(code):
        yield code
        for each in code.co_consts:
            if isinstance(each, CodeType):
                yield from inner(each)

    count = 0
    for name, source in modules._sources(True):
        whole = compile(source, modules.named(name), "exec", optimize=2)
        for rich, lean in zip(inner(whole), inner(modules._lean(whole)), strict=True):
            assert modules._lines(rich) == modules._lines(lean)
            assert rich.co_code == lean.co_code
            assert {at[2] for at in lean.co_positions()} <= {None}, "columns were left"
            count += 1
    assert count > 500


def test_a_failure_names_its_lines_from_source_and_from_bytecode(tmp_path):
    text = b"def f(x):\n    return (x +\n            1 / x)\n\nf(0)\n"
    whole = compile(text, "<m>", "exec", optimize=2)
    traces = []
    for code in (whole, modules._lean(whole)):
        with pytest.raises(ZeroDivisionError) as caught:
            exec(code, {})
        traces.append([(at.path, at.lineno) for at in caught.traceback][1:])

    assert traces[0] == traces[1]
    assert [line for _, line in traces[0]] == [4, 2]  # as pytest counts, from 0


FORMS = [(writing, packed) for writing in (False, True) for packed in (False, True)]


@pytest.mark.parametrize(("writing", "packed"), FORMS)
def test_what_was_kept_is_what_was_made(folder, writing, packed):
    def made():
        return modules.body(writing=writing, packed=packed, compiled=True, folder=folder)

    first = made()
    (kept,) = folder.iterdir()
    stamp = kept.stat().st_ino

    assert made() == first == modules.body(writing=writing, packed=packed, compiled=True)
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert kept.stat().st_ino == stamp


def _sealed(name, data):
    return modules._seal(name, data) + data


DAMAGE = {
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "empty": lambda path: path.write_bytes(b""),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "another text": lambda path: path.write_bytes(path.read_bytes()[:32] + b"evil"),
    "anyone may write": lambda path: path.chmod(0o666),
    "the group may write": lambda path: path.chmod(0o660),
    "a link": lambda path: path.symlink_to(path.rename(path.with_name("elsewhere"))),
    "another's name": lambda path: path.write_bytes(_sealed("another", b"evil")),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "a pipe": lambda path: (path.unlink(), os.mkfifo(path)),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_was_kept_and_may_not_be_ours_is_made_anew(folder, damage):
    def made():
        return modules.body(writing=False, packed=True, compiled=True, folder=folder)

    first = made()
    (kept,) = folder.iterdir()
    DAMAGE[damage](kept)

    assert made() == first


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_what_another_user_kept_is_never_sent(folder):
    first = modules.body(writing=False, packed=True, compiled=True, folder=folder)
    (kept,) = folder.iterdir()
    evil = b"evil" * 100
    kept.write_bytes(_sealed(kept.name, evil))
    assert modules.body(writing=False, packed=True, compiled=True, folder=folder) == evil
    os.chown(kept, 65534, 65534)

    assert modules.body(writing=False, packed=True, compiled=True, folder=folder) == first


@pytest.mark.parametrize("text", ["", "[", "{}", "[[]]", "[1, null]", '"x"', "\0"])
def test_a_damaged_memory_is_none(folder, text):
    folder.mkdir()
    (folder / f"equal-{modules.MAGIC.hex()}.json").write_text(text)

    assert opened(Acquaintance(folder), "x").source is None


def test_a_cache_that_cannot_be_written_is_no_failure(tmp_path, folder):
    folder.write_text("a file")
    (tmp_path / "m.py").write_bytes(b"1\n")
    for _ in range(2):
        known = Acquaintance(folder)
        found = local.converse(sys.executable, talk.contents(tmp_path, "m.py"), known=known)
        known.keep()
        assert found == [b"1\n"]
    assert folder.read_text() == "a file"
