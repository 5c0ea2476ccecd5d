"""shell: whatever a command changes in a copy of the files goes live, and into the top patch."""

import json
import os
import signal
import subprocess
import sys

import pytest

from patchq.errors import ExitCode
from tests import fleet_lab
from tests.world import FILES

pytestmark = pytest.mark.slow

SED = ("sed", "-i", "s/foot = 0.3048/foot = 0.305/", "demo/units.py")
FORMATTER = (
    "import pathlib, sys\n"
    "for name in sys.argv[1:]:\n"
    "    path = pathlib.Path(name)\n"
    "    path.write_text(path.read_text().replace(' * metre', '*metre'))\n"
)


@pytest.fixture
def begun(world):
    """A world in which a patch of its own is on top of the first one."""
    world.here("push", "10-pi")
    made = world.here("new", "15-mine.patch")
    assert made.returncode == 0, made.stderr
    return world


def shell(world, *words, **more):
    """Run `patchq shell` with the command `words` on the world's site."""
    return world.run("shell", "--target", world.site, "--queue", world.queue, *words, **more)


def test_what_sed_changes_is_in_the_patch_and_live_and_pop_gives_it_back(begun):
    before = begun.tree()

    done = shell(begun, *SED)

    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        "File demo/units.py added to patch 15-mine.patch\nRefreshed patch 15-mine.patch\n"
    )
    assert (begun.site / "demo/units.py").read_text() == "metre = 1\nfoot = 0.305\n"
    assert "+foot = 0.305\n" in (begun.series / "15-mine.patch").read_text()
    assert begun.here("status").returncode == 0
    assert begun.here("refresh").stdout == "Patch 15-mine.patch is unchanged\n"
    assert begun.here("pop").returncode == 0
    assert {**begun.tree(), "demo-1.0.dist-info/RECORD": b""} == {
        **before,
        "demo-1.0.dist-info/RECORD": b"",
    }


def test_a_formatter_a_new_file_and_a_removed_one_are_one_change(begun):
    script = begun.root / "formatter.py"
    script.write_text(FORMATTER)
    line = (
        f"{sys.executable} {script} demo/shapes.py && echo 'x = 1' > demo/extra.py"
        " && rm demo/data.txt && chmod +x demo/units.py"
    )

    done = shell(begun, "sh", "-c", line)
    receipts = begun.json("log")["receipts"]

    assert done.returncode == 0, done.stderr
    assert receipts[-1]["verb"] == "shell"
    assert len([one for one in receipts if one["verb"] == "shell"]) == 1
    assert "pi * self.radius**2*metre" in (begun.site / "demo/shapes.py").read_text()
    assert (begun.site / "demo/extra.py").read_text() == "x = 1\n"
    assert not (begun.site / "demo/data.txt").exists()
    assert os.access(begun.site / "demo/units.py", os.X_OK)
    assert begun.here("files").stdout.split() == [
        "demo/data.txt",
        "demo/extra.py",
        "demo/shapes.py",
        "demo/units.py",
    ]
    text = (begun.series / "15-mine.patch").read_text()
    assert "new file mode 100644" in text
    assert "deleted file mode 100644" in text
    assert "new mode 100755" in text
    here = begun.tree()
    assert begun.here("pop").returncode == 0
    assert begun.here("push").returncode == 0
    assert begun.tree() == here


def test_a_command_that_fails_gives_its_exit_code_and_what_it_changed_is_kept(begun):
    done = shell(begun, "sh", "-c", f"{' '.join(SED[:2])} '{SED[2]}' {SED[3]}; exit 7")
    killed = shell(begun, "sh", "-c", "kill -TERM $$")

    assert done.returncode == 7
    assert "sh ended with 7; what it changed is kept\n" in done.stderr
    assert "foot = 0.305" in (begun.site / "demo/units.py").read_text()
    assert killed.returncode == 128 + signal.SIGTERM
    assert killed.stderr == "Nothing was changed\n"


def test_nothing_changed_is_said_and_no_transaction_is_made(begun):
    receipts = begun.json("log")["receipts"]

    done = shell(begun, "true")

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "Nothing was changed\n")
    assert begun.json("log")["receipts"] == receipts


def test_no_cache_that_an_installer_linked_is_written_to(begun):
    path = begun.site / "demo/units.py"
    twin = begun.root / "cache.py"
    os.link(path, twin)
    inode = path.stat().st_ino

    done = shell(begun, "sh", "-c", "echo 'inch = 1' >> demo/units.py")

    assert done.returncode == 0, done.stderr
    assert twin.read_text() == FILES["demo/units.py"]
    assert begun.here("pop").returncode == 0
    assert path.stat().st_ino == inode


def test_an_edit_before_the_command_is_no_part_of_the_original(begun):
    (begun.site / "demo/units.py").write_text("metre = 1\nfoot = 0.3048\nmine = 1\n")

    done = shell(begun, *SED)

    assert done.returncode == 0, done.stderr
    text = (begun.series / "15-mine.patch").read_text()
    assert "+foot = 0.305\n+mine = 1\n" in text
    assert begun.here("pop").returncode == 0
    assert (begun.site / "demo/units.py").read_text() == FILES["demo/units.py"]


def test_a_dry_run_says_what_would_change_and_changes_nothing(begun):
    before = begun.tree()

    done = shell(
        begun, "-n", "sh", "-c", "echo > demo/new.py; rm demo/data.txt; echo >> demo/units.py"
    )

    assert done.stdout == (
        "Would make demo/new.py\nWould change demo/units.py\nWould remove demo/data.txt\n"
    )
    assert begun.tree() == before
    assert begun.here("files").stdout == ""


def test_the_command_knows_of_which_patch_it_is_and_sees_only_text_of_the_distribution(begun):
    (begun.site / "other.py").write_text("not the distribution's\n")

    done = shell(
        begun,
        "sh",
        "-c",
        "echo $PATCHQ_PATCH $PATCHQ_QUEUE $PATCHQ_RELEASE $PATCHQ_SITE; find . -type f | sort",
    )

    lines = done.stdout.split("\n")
    assert lines[0] == f"15-mine.patch q 1.0 {begun.site}"
    assert lines[1:-1] == [f"./{name}" for name in sorted(FILES)]


def test_json_is_one_document_and_the_commands_output_is_beside_it(begun):
    done = shell(begun, "--json", "sh", "-c", "echo loud; echo >> demo/units.py; exit 3")

    document = json.loads(done.stdout)
    assert document["exit_code"] == done.returncode == 3
    assert document["files"] == document["added"] == ["demo/units.py"]
    assert "loud\n" in done.stderr


def test_a_file_that_somebody_changed_meanwhile_is_not_overwritten_and_nothing_is_lost(begun):
    live = begun.site / "demo/units.py"

    done = shell(begun, "sh", "-c", f"echo >> demo/units.py; echo 'theirs = 1' > {live}")

    assert done.returncode == ExitCode.FAILED
    assert "demo/units.py was changed in" in done.stderr
    assert live.read_text() == "theirs = 1\n"
    copy = done.stderr.partition("made is in ")[2].split("\n")[0]
    with open(f"{copy}/demo/units.py") as file:
        assert file.read() == FILES["demo/units.py"] + "\n"
    subprocess.run(["rm", "-r", copy], check=True)


def test_what_no_patch_can_hold_is_refused_or_left_out(begun):
    left = shell(
        begun,
        "sh",
        "-c",
        "printf x > demo/a.so; mkdir demo/__pycache__; echo > demo/__pycache__/m.pyc",
    )
    nul = shell(begun, "sh", "-c", "printf '\\000' >> demo/units.py")
    link = shell(begun, "ln", "-sf", "data.txt", "demo/units.py")

    assert left.stderr == "File demo/a.so is left out: it is no text\nNothing was changed\n"
    assert "Diff failed on file 'demo/units.py'" in nul.stderr
    assert "demo/units.py is a link now" in link.stderr
    for one in (nul, link):
        assert one.returncode == ExitCode.FAILED
        copy = one.stderr.partition("made is in ")[2].split("\n")[0]
        subprocess.run(["rm", "-r", copy], check=True)
    assert (begun.site / "demo/units.py").read_text() == FILES["demo/units.py"]


def test_without_a_patch_or_a_command_that_is_there_nothing_runs(world):
    empty = shell(world, "touch", world.root / "ran")
    world.here("new", "05-mine.patch")
    unknown = shell(world, "no-such-command", "-x")

    assert "No patches applied" in empty.stderr
    assert not (world.root / "ran").exists()
    assert unknown.returncode == ExitCode.USAGE
    assert "no-such-command -x can not be run" in unknown.stderr
    assert "No such file or directory" in unknown.stderr


def test_a_shell_reads_its_commands_and_says_where_it_is(begun):
    done = subprocess.run(
        [sys.executable, "-m", "patchq", "shell", "--target", begun.site, "--queue", begun.queue],
        input="echo 'inch = 1' >> demo/units.py\n",
        capture_output=True,
        text=True,
        env={**os.environ, "SHELL": "/bin/sh", "PATCHQ_CACHE": str(begun.root / "cache")},
    )

    assert done.returncode == 0, done.stderr
    assert "goes into 15-mine.patch when this shell ends\n" in done.stderr
    assert "Refreshed patch 15-mine.patch\n" in done.stdout


def test_on_a_plain_tree_as_with_quilt(tmp_path):
    tree = tmp_path / "tree"
    (tree / "src").mkdir(parents=True)
    (tree / "src/a.c").write_text("one\n")
    (tree / "run.sh").write_text("#!/bin/sh\n")
    (tree / ".git").mkdir()
    (tree / ".git/HEAD").write_text("ref\n")
    environ = {**os.environ, "PATCHQ_CACHE": str(tmp_path / "cache")}

    def patchq(*words):
        return subprocess.run(
            [sys.executable, "-m", "patchq", *words],
            cwd=tree / "src",
            env=environ,
            capture_output=True,
            text=True,
        )

    (tree / "patches").mkdir()
    patchq("new", "--tree", ".", "one.diff")
    done = patchq(
        "shell",
        "--tree",
        ".",
        "sh",
        "-c",
        "echo two >> a.c; echo new > b.c; rm ../run.sh; ls -A ..; touch ../.git-ok; mkdir ../.git",
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[0] == "src"
    assert (tree / "src/a.c").read_text() == "one\ntwo\n"
    assert not (tree / "run.sh").exists()
    assert (tree / ".git/HEAD").read_text() == "ref\n"
    assert sorted(patchq("files", "--tree", ".").stdout.split()) == [
        ".git-ok",
        "run.sh",
        "src/a.c",
        "src/b.c",
    ]
    quilt = subprocess.run(
        ["quilt", "--quiltrc", "-", "series"], cwd=tree, capture_output=True, text=True
    )
    assert quilt.stdout == "one.diff\n"
    assert patchq("pop", "-a", "--tree", ".").returncode == 0
    assert (tree / "src/a.c").read_text() == "one\n"
    assert (tree / "run.sh").read_text() == "#!/bin/sh\n"


def test_on_a_host_the_files_are_brought_here_and_put_back(world):
    with fleet_lab.fleet(1, world.site) as lab:
        environ = {**lab.home.environ, "PATH": os.environ["PATH"]}

        def there(verb, *words):
            return world.run(
                verb,
                "-H",
                "h0001",
                "--target",
                fleet_lab.SITE,
                "--queue",
                world.queue,
                *words,
                environ=environ,
            )

        made = there("new", "05-mine.patch")
        done = there("shell", *SED)
        live = (lab.hosts["h0001"].tree / "demo/units.py").read_text()
        popped = there("pop")
        back = (lab.hosts["h0001"].tree / "demo/units.py").read_text()

    assert made.returncode == 0, made.stderr
    assert done.returncode == 0, done.stderr
    assert live == "metre = 1\nfoot = 0.305\n"
    assert "+foot = 0.305\n" in (world.series / "05-mine.patch").read_text()
    assert popped.returncode == 0, popped.stderr
    assert back == FILES["demo/units.py"]
