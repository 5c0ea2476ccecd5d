"""Bad input gets what, why and mend, the right exit code, and changes nothing."""

import json
import os
import subprocess
import sys

import pytest

from patchq.errors import ExitCode
from tests import world as worlds

pytestmark = pytest.mark.slow


def three_parts(done, code: ExitCode, *words: str) -> None:
    assert done.returncode == code, done.stdout + done.stderr
    assert done.stderr.startswith("patchq: "), done.stderr
    assert "\n  why: " in done.stderr
    assert "\n  mend: " in done.stderr
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr


def faulted(done, *words: str) -> None:
    """A fault of one patch, which lint tells beside the others, with what to type."""
    assert done.returncode == ExitCode.FAILED, done.stdout + done.stderr
    assert "mend: " in done.stdout
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stdout


def test_unknown_release(world):
    index = world.root / "index" / "demo"
    index.mkdir(parents=True)
    (index / "index.html").write_text("<a href='demo-1.0-py3-none-any.whl'>demo</a>")
    done = world.run("fetch", "demo==7.7", environ={"PIP_INDEX_URL": index.parent.as_uri()})

    three_parts(done, ExitCode.FAILED, "demo")


@pytest.mark.parametrize("wanted", ["demo", "demo==", "../demo", "nothing.whl", "demo=1"])
def test_a_release_that_is_none(world, wanted):
    done = world.run("fetch", wanted, environ={"PIP_INDEX_URL": world.root.as_uri()})

    assert done.returncode in (ExitCode.USAGE, ExitCode.FAILED)
    assert "\n  mend: " in done.stderr
    assert "a bug in patchq" not in done.stderr


@pytest.mark.parametrize("python", ["/no/such/python", "/etc/passwd", "/bin/false"])
def test_unknown_interpreter(world, python):
    done = world.run("top", "--python", python, "--queue", world.queue)

    assert done.returncode in (ExitCode.USAGE, ExitCode.FAILED)
    three_parts(done, ExitCode(done.returncode), python)


def test_unknown_host(world):
    done = world.run("top", "-H", "no-such-host.invalid", "--queue", world.queue)

    three_parts(done, ExitCode.HOST_FAILED, "no-such-host.invalid")


@pytest.mark.parametrize("spec", ["", "a b", "-oProxyCommand=x", "h:99999", "x;y"])
def test_a_host_that_is_no_name(world, spec):
    done = world.run("top", f"--host={spec}", "--queue", world.queue)

    three_parts(done, ExitCode.USAGE)


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("command:false", ExitCode.HOST_FAILED),
        ("command:echo garbage #", ExitCode.HOST_FAILED),
        ("command:/no/such/command", ExitCode.USAGE),
        ("command:", ExitCode.USAGE),
    ],
)
def test_a_command_that_is_no_way_to_an_agent(world, command, code):
    done = world.run("top", "-H", command, "--queue", world.queue)

    three_parts(done, code)


@pytest.mark.parametrize(
    "path",
    [
        "../outside.py",
        "/etc/passwd",
        "demo/../../outside.py",
        ".git/config",
        ".GIT/config",
        "demo/.git./hooks",
        "git~1/config",
        ".patchq/demo/state.json",
        "demo-1.0.dist-info/RECORD",
    ],
)
def test_a_path_that_leads_out_of_the_package(world, path):
    patch = f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-one\n+uno\n"
    (world.series / "30-text.patch").write_text(patch)
    before = world.tree()

    lint = world.run("lint", "--queue", world.queue, "--write")
    push = world.here("push", "-a")

    faulted(lint, "30-text.patch", "a path must stay inside the package's own files")
    three_parts(push, ExitCode(push.returncode), "30-text.patch")
    assert push.returncode
    assert world.tree() == before


def test_a_folder_of_the_environment_that_is_a_link_out_of_it(world):
    outside = world.root / "outside"
    (world.site / "demo").rename(outside)
    (world.site / "demo").symlink_to(outside)
    before = (outside / "shapes.py").read_bytes()

    done = world.here("push", "-a")

    assert done.returncode in (ExitCode.FAILED, ExitCode.CONFLICT)
    assert (outside / "shapes.py").read_bytes() == before


@pytest.mark.parametrize("lines", range(3, 13))
def test_a_truncated_patch(world, lines):
    path = world.series / "10-pi.patch"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:lines]))
    before = world.tree()

    done = world.here("push", "-a")

    assert done.returncode in (ExitCode.USAGE, ExitCode.FAILED)
    three_parts(done, ExitCode(done.returncode), "10-pi.patch")
    assert world.tree() == before


def test_a_binary_patch(world):
    text = "diff --git a/demo/x.so b/demo/x.so\nGIT binary patch\nliteral 0\nHcmV?d00001\n\n"
    (world.series / "30-text.patch").write_text(text)

    done = world.run("lint", "--queue", world.queue)

    faulted(done, "30-text.patch", "binary")


@pytest.mark.parametrize("text", ["distribution = 3\n", "distribushun = 'x'\n", "= =\n", ""])
def test_a_queue_toml_that_is_wrong(world, text):
    (world.queue / "queue.toml").write_text(text)

    three_parts(world.here("push", "-a"), ExitCode.USAGE, "queue.toml")


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"schema": 99}', "not json"])
def test_a_series_lock_that_is_wrong(world, text):
    (world.series / "series.lock").write_text(text)
    before = world.tree()

    done = world.here("push", "-a")

    three_parts(done, ExitCode(done.returncode), "series.lock")
    assert world.tree() == before


def test_a_missing_lock(world):
    (world.series / "series.lock").unlink()

    three_parts(world.here("push", "-a"), ExitCode.FAILED, "lint --write")


def test_a_sketch_that_is_not_python(world):
    (world.queue / "post" / "10-pi.pyi").write_text("# in demo/shapes.py\nclass :\n")

    done = world.run("lint", "--queue", world.queue)

    faulted(done, "10-pi.pyi")


def test_a_target_that_is_no_folder(world):
    done = world.run("top", "--target", "nowhere", "--queue", world.queue)

    three_parts(done, ExitCode.USAGE, "nowhere")


def test_a_series_that_names_a_missing_patch(world):
    with (world.series / "series").open("a") as file:
        file.write("99-none.patch\n")

    three_parts(world.here("push", "-a"), ExitCode.USAGE, "99-none.patch")


@pytest.fixture
def mounted(world, tmp_path):
    """A function that mounts something over the world's site, for root only in name."""
    mounts = []

    def mount(*args: str) -> None:
        subprocess.run(["mount", *args, str(world.site)], check=True)
        mounts.append(world.site)

    yield mount
    for path in reversed(mounts):
        subprocess.run(["umount", str(path)], check=True)


@pytest.mark.skipif(os.getuid() != 0, reason="mounting is root's; chmod is tried without it")
def test_a_read_only_tree(world, mounted):
    mounted("--bind", str(world.site))
    subprocess.run(["mount", "-o", "remount,ro,bind", str(world.site)], check=True)
    before = world.tree()

    done = world.here("push", "-a")

    assert done.returncode, done.stdout
    three_parts(done, ExitCode(done.returncode), "read-only")
    assert world.tree() == before


@pytest.mark.skipif(os.getuid() != 0, reason="mounting is root's")
def test_a_full_disk(world, mounted):
    kept = world.tree()
    mounted("-t", "tmpfs", "-o", "size=100k", "none")
    for path, data in kept.items():
        (world.site / path).parent.mkdir(parents=True, exist_ok=True)
        (world.site / path).write_bytes(data)
    size = os.statvfs(world.site)
    (world.site / "ballast").write_bytes(b"x" * (size.f_bavail * size.f_bsize - 8192))
    before = world.tree()

    done = world.here("push", "-a")

    assert done.returncode, done.stdout
    three_parts(done, ExitCode(done.returncode), "is full")
    assert world.tree() == before


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere: see the mounts above")
def test_a_tree_of_somebody_else(world):
    (world.site / "demo").chmod(0o555)

    three_parts(world.here("push", "-a"), ExitCode.FAILED)


def test_errors_are_json_too(world):
    (world.series / "series.lock").write_text("{}")

    done = world.here("push", "-a", "--json")

    document = json.loads(done.stdout)
    assert document["schema"] == 1
    assert set(document["error"]) == {"what", "why", "mend"}
    assert document["exit_code"] == done.returncode


def test_two_wheels_of_one_name_are_told_apart(world):
    folder = world.root / "other"
    folder.mkdir()
    other = worlds.wheel(folder, {**worlds.FILES, "demo/units.py": "metre = 2\n"})

    done = world.run("fetch", other)

    three_parts(done, ExitCode.FAILED, "demo")


def test_a_mend_means_the_same_environment(world):
    world.here("push")
    path = world.site / "demo" / "shapes.py"
    path.write_text(path.read_text() + "# by hand\n")

    done = world.here("pop")

    here = f"--target {world.site} --queue {world.queue}"
    assert f"  mend: patchq refresh {here} 10-pi.patch   # keeps the edit there; " in done.stderr
    assert f"; patchq diff {here} -z | patch -R -p1 -d {world.site}" in done.stderr
    mend = done.stderr.split("keeps the edit there; ")[1].split("   #")[0]
    subprocess.run(
        ["sh", "-c", mend.replace("patchq", f"{sys.executable} -m patchq")],
        check=True,
        env={**os.environ, "PATCHQ_QUEUES": str(world.queue.parent)},
        cwd=world.root,
    )
    assert world.here("pop").returncode == 0


def test_all_and_a_patch_do_not_go_together(world):
    three_parts(world.here("push", "-a", "10-pi"), ExitCode.USAGE)


def test_push_0_is_nothing_to_do(world):
    assert world.here("push", "0").returncode == ExitCode.NOTHING_TO_DO


def test_a_relative_target_on_a_host_is_refused(world):
    done = world.run("top", "-H", "h", "--target", "site", "--queue", world.queue)

    three_parts(done, ExitCode.USAGE, "absolute")


def test_a_lock_of_another_tree_is_told(world):
    path = world.series / "series.lock"
    lock = json.loads(path.read_text())
    was = lock["tree"]
    path.write_text(path.read_text().replace(was, "0" * 40))

    done = world.run("lint", "--queue", world.queue)

    assert f"series.lock is stale: it has tree {'0' * 40}, found {was}" in done.stderr


def lock_with(world, **changes) -> None:
    path = world.series / "series.lock"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"patches": []},
        {"release": "2.0"},
        {"release": "../../x"},
        {"distribution": "other"},
        {"distribution": "\ud800"},
    ],
)
def test_a_lock_of_something_else_is_never_nothing_to_do(world, changes):
    lock_with(world, **changes)
    before = world.tree()

    done = world.here("push", "-a")

    three_parts(done, ExitCode(done.returncode), "lint --write")
    assert done.returncode in (ExitCode.FAILED, ExitCode.USAGE)
    assert world.tree() == before


def test_a_lock_that_lacks_the_patch_that_was_added_is_stale(world):
    world.here("push", "-a")
    (world.series / "40-new.patch").write_text(worlds.TEXT.replace("four", "five"))
    with (world.series / "series").open("a") as file:
        file.write("40-new.patch\n")

    three_parts(world.here("push", "-a"), ExitCode.FAILED, "is stale")


def test_a_release_folder_that_was_renamed_is_told_by_its_lock(world):
    world.here("push", "1")
    world.series.rename(world.queue / "2.0")

    for verb in ("push", "status", "check", "series"):
        done = world.here(verb)
        assert done.returncode not in (0, ExitCode.BUG), done.stdout + done.stderr


@pytest.mark.parametrize(
    "name", ["queue.toml", "1.0/series.lock", "1.0/10-pi.patch", "post/10-pi.pyi"]
)
@pytest.mark.parametrize("kind", ["folder", "loop", "fifo", "dangling"])
def test_a_queue_file_that_is_no_file(world, name, kind):
    path = world.queue / name
    path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to(path.name if kind == "loop" else "nowhere")

    for args in (("push", "-a"), ("check",)):
        done = world.here(*args)
        assert done.returncode != ExitCode.BUG, done.stderr
    lint = world.run("lint", "--queue", world.queue)
    assert lint.returncode not in (0, ExitCode.BUG), lint.stderr


def test_names_that_no_file_system_has(world):
    (world.series / "series").write_text("x" * 300 + ".patch\n")

    faulted(world.run("lint", "--queue", world.queue), "File name too long")


def test_toml_that_is_nested_without_end(world):
    (world.queue / "queue.toml").write_text("x = " + "[" * 5000)

    three_parts(world.here("push"), ExitCode.USAGE, "queue.toml")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("state.json", '{"schema": 1}'),
        ("state.json", "[]"),
        ("state.json", '{"schema": 99, "stack": []}'),
        ("state.json", "[" * 100_000),
        ("patches.json", "{}"),
        ("patches.json", '{"a": "not base64"}'),
        ("ledger.jsonl", '{"prev": ""}\n'),
        ("ledger.jsonl", "nonsense\n\xff\n"),
    ],
)
@pytest.mark.parametrize(
    "args", [("status",), ("log",), ("diff", "-P", "10-pi"), ("pop",), ("undo",)]
)
def test_a_record_that_somebody_spoiled(world, name, text, args):
    world.here("push", "2")
    path = world.site / ".patchq" / "demo" / name
    path.write_text(text, errors="surrogateescape")
    before = world.tree()

    done = world.here(*args)

    assert done.returncode != ExitCode.BUG, done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    if done.returncode not in (0, ExitCode.FINDING, ExitCode.NOTHING_TO_DO):
        three_parts(done, ExitCode(done.returncode))
        assert world.tree() == before


def test_a_stack_that_somebody_spoiled(world):
    world.here("push", "2")
    path = world.site / ".patchq" / "demo" / "state.json"
    state = json.loads(path.read_text())
    for stack in (None, "x", [3], [{"queue": "q"}], [{**state["stack"][0], "changes": "no"}]):
        path.write_text(json.dumps({**state, "stack": stack}))
        for verb in ("status", "pop", "top", "push"):
            done = world.here(verb)
            assert done.returncode not in (0, ExitCode.BUG), (stack, verb, done.stderr)
