"""Each word of an audit, made by real means: pip, git, sed, cp, a kill."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from patchq.agent import serve
from patchq.conversation import move
from patchq.conversation.audit import audit
from patchq.conversation.goal import Upto
from patchq.conversation.view import Aim
from patchq.errors import ExitCode, PatchqError
from patchq.queue import store
from patchq.transport.channel import Reply
from tests import world as worlds


def rows_of(talk, verifying=False):
    report = talk.hold(audit(talk.aim, verifying))
    return report, report.document["rows"]


def one_row(talk, verifying=False):
    report, (row,) = rows_of(talk, verifying)
    good = row["word"] in ("current", "upstream")
    assert report.exit_code == (ExitCode.DONE if good else ExitCode.FINDING)
    return row


def snapshot(folder):
    """Return everything that an audit might change: names, bytes, modes and times."""
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_mode,
            path.lstat().st_mtime_ns,
            path.read_bytes() if path.is_file() else None,
        )
        for path in sorted(folder.rglob("*"))
    }


def git(folder, *words):
    identity = "-c user.name=A -c user.email=a@example.org -c commit.gpgsign=false".split()
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def committed(world):
    """A world whose queues are a git repository."""
    git(world.queue.parent, "init", "-q")
    git(world.queue.parent, "add", ".")
    git(world.queue.parent, "commit", "-qm", "first")
    return world


def rewrite(world, text="four and a half"):
    """Let 30-text.patch write another line, and lock it."""
    path = world.series / "30-text.patch"
    path.write_text(path.read_text().replace("+four", f"+{text}"))
    done = world.run("lint", "--queue", world.queue, "--write")
    assert "written" in done.stdout, done.stdout + done.stderr


def test_a_pristine_site_is_missing_and_one_round_trip_says_so(talk):
    row = one_row(talk)

    assert (row["word"], row["release"], row["version"]) == ("missing", "1.0", "1.0")
    assert talk.asked == ["survey"]


def test_a_whole_stack_is_current_and_names_its_receipt(talk):
    talk.push()

    row = one_row(talk)

    assert row["word"] == "current"
    assert row["patches"] == ["10-pi.patch", "20-foot.patch", "30-text.patch"]
    assert (row["receipt"]["who"], row["receipt"]["verb"]) == ("somebody", "push")


def test_a_shorter_stack_is_partial_and_what_is_missing_is_named(talk):
    talk.push("2")

    row = one_row(talk)

    assert row["word"] == "partial"
    assert "30-text.patch" in row["why"]


def test_files_of_which_half_are_as_after_a_patch_are_partial(talk):
    (talk.site / "demo/data.txt").write_text("one\ntwo\nthree\nfour\n")

    row = one_row(talk)

    assert (row["word"], row["paths"]) == ("partial", ["demo/data.txt"])


def test_an_edit_of_a_patched_file_is_drift(talk):
    talk.push()
    subprocess.run(["sed", "-i", "1i # mine", talk.site / "demo/shapes.py"], check=True)

    row = one_row(talk)

    assert (row["word"], row["paths"]) == ("drifted", ["demo/shapes.py"])
    assert row["mend"] == "patchq diff -z"


def test_an_edit_where_nobody_pushed_is_unmanaged(talk):
    subprocess.run(["sed", "-i", "s/one/ONE/", talk.site / "demo/data.txt"], check=True)

    row = one_row(talk)

    assert (row["word"], row["paths"]) == ("unmanaged", ["demo/data.txt"])


def test_an_edited_neighbour_of_a_current_stack_is_told(talk):
    talk.push()
    units = talk.site / "demo/units.py"
    units.write_text(units.read_text() + "inch = 0.0254\n")

    row = one_row(talk)

    assert row["word"] == "current"
    assert "demo/units.py" in row["why"]


def kill(talk, name, what):
    """Push, and kill -9 the agent as it is about to call os.NAME on a path that has `what`."""
    conversation = move.push(talk.aim, talk.ground, Upto(None, True))
    asked = next(conversation)
    request = conversation.send(Reply(*serve.respond(dict(asked.message), {})))
    assert request.message["op"] == "commit"
    process = os.fork()
    if process == 0:
        call = getattr(os, name)

        def killed(source, target, **more):
            if what in str(target):
                os.kill(os.getpid(), signal.SIGKILL)
            return call(source, target, **more)

        try:
            setattr(os, name, killed)
            serve.respond(dict(request.message), dict(request.blobs))
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == -signal.SIGKILL
    conversation.close()


UNDECIDED, WITHIN = ("link", "journal.go"), ("rename", "demo/shapes.py")


@pytest.mark.parametrize("last", [UNDECIDED, WITHIN])
def test_a_push_that_is_killed_is_interrupted_and_an_audit_leaves_it_so(talk, last):
    kill(talk, *last)
    before = snapshot(talk.site)

    row = one_row(talk)
    one_row(talk, verifying=True)

    assert (row["word"], row["mend"]) == ("interrupted", "patchq recover")
    assert ("had passed" in row["why"]) is (last == WITHIN)
    assert snapshot(talk.site) == before


@pytest.mark.slow
def test_a_killed_push_whose_distribution_was_replaced_is_orphaned(talk, world):
    kill(talk, *UNDECIDED)
    files = dict(worlds.FILES) | {"demo/units.py": "metre = 1.0\nfoot = 0.3048\n"}
    reinstall(world, worlds.wheel(world.root, files, version="1.1"))

    assert one_row(talk)["word"] == "orphaned"


@pytest.mark.parametrize("verifying", [False, True])
def test_nothing_is_written_by_an_audit(talk, verifying):
    talk.push("2")
    before = snapshot(talk.site)

    rows_of(talk, verifying)

    assert snapshot(talk.site) == before


def test_files_copied_without_their_record_are_unrecorded(talk, world):
    talk.push("2")
    copy = world.root / "copy"
    shutil.copytree(world.site, copy, ignore=shutil.ignore_patterns(".patchq"))
    talk.site = copy

    row = one_row(talk)

    assert row["word"] == "unrecorded"
    assert "after 2 of 3 patches" in row["why"]
    assert set(row["paths"]) == {"demo/shapes.py", "demo/more.py"}


def test_a_record_that_is_gone_leaves_what_the_ledger_says(talk):
    talk.push("1")
    (talk.site / ".patchq/demo/state.json").unlink()

    assert "push by somebody from here" in one_row(talk)["why"]


@pytest.mark.slow
def test_a_commit_in_the_queue_leaves_hosts_behind(committed, talk):
    talk.push()
    rewrite(committed)
    git(committed.queue, "commit", "-qam", "second")
    (committed.queue.parent / "beside").write_text("no commit of the queue")
    git(committed.queue.parent, "add", "beside")
    git(committed.queue.parent, "commit", "-qm", "beside")

    row = one_row(talk)

    assert (row["word"], row["behind"]) == ("behind", 1)
    first = subprocess.run(
        ["git", "rev-list", "--max-parents=0", "HEAD"],
        cwd=committed.queue,
        capture_output=True,
        text=True,
        check=True,
    )
    assert row["commit"] == first.stdout.strip()


@pytest.mark.slow
def test_an_amended_commit_leaves_hosts_unknown(committed, talk):
    talk.push()
    held = talk.site / ".patchq/demo/state.json"
    rewrite(committed)
    git(committed.queue, "commit", "-qa", "--amend", "-m", "first")

    row = one_row(talk)

    assert row["word"] == "unknown"
    assert row["why"].split()[1] in held.read_text() or "effect" in row["why"]


@pytest.mark.slow
def test_uncommitted_edits_are_behind_by_none_and_said(committed, talk):
    talk.push()
    rewrite(committed)
    locked = one_row(talk)
    git(committed.queue, "checkout", "-q", ".")
    path = committed.series / "30-text.patch"
    path.write_text(path.read_text().replace("+four", "+five"))
    edited = one_row(talk)

    assert (locked["word"], locked["behind"]) == ("behind", 0)
    assert "uncommitted changes" in locked["why"]
    assert (edited["word"], edited["behind"]) == ("behind", 0)
    assert "30-text.patch was edited" in edited["why"]


def test_a_queue_in_no_repository_has_no_past(talk):
    talk.push("1")
    path = talk.site / ".patchq/demo/state.json"
    path.write_text(path.read_text().replace("10-pi.patch", "09-pi.patch"))

    # The same effect by another name is the series' own; a digest that nobody had is not.
    assert one_row(talk)["word"] == "partial"


def reinstall(world, wheel):
    """Do as pip does: take the old files away, put the new ones there."""
    for path in (world.site / "demo", *world.site.glob("demo-*.dist-info")):
        shutil.rmtree(path)
    fresh = world.root / "fresh"
    done = world.run("fetch", wheel, "--into", fresh)
    assert done.returncode == 0, done.stderr
    for path in fresh.iterdir():
        shutil.move(path, world.site / path.name)


@pytest.mark.slow
def test_a_release_that_has_it_all_is_upstream_and_one_that_has_not_has_no_series(talk, world):
    talk.push()
    done = {p: data.decode() for p, data in world.tree().items() if p.startswith("demo/")}
    talk.pop()
    done["demo/shapes.py"] = done["demo/shapes.py"].replace("class Circle", "# new\nclass Circle")
    reinstall(world, worlds.wheel(world.root, done, version="2.0"))
    upstream = one_row(talk)
    asked = list(talk.asked)
    reinstall(
        world, worlds.wheel(world.root, dict(worlds.FILES) | {"demo/a.py": ""}, version="3.0")
    )
    (talk.site / "demo/data.txt").write_text("one\ntwo\nthree\n")
    without = one_row(talk)

    assert upstream["word"] == "upstream"
    assert "claims" in upstream["why"]
    assert asked == ["survey", "read"]
    # The files are those of 1.0: content decides, whatever the version.
    assert without["word"] == "missing"


@pytest.mark.slow
def test_a_release_that_no_series_fits_has_no_series(talk, world):
    files = dict(worlds.FILES)
    files["demo/shapes.py"] = files["demo/shapes.py"].replace("3 *", "3.1 *")
    reinstall(world, worlds.wheel(world.root, files, version="2.0"))

    assert one_row(talk)["word"] == "no series"


def test_what_is_not_installed_is_absent(talk, tmp_path):
    (tmp_path / "empty").mkdir()
    talk.site = tmp_path / "empty"

    assert one_row(talk)["word"] == "absent"


def test_what_nobody_wants_may_be_missing_or_absent(talk, world, tmp_path):
    queues = (store.open(world.queue),)
    (tmp_path / "empty").mkdir()

    for site in (world.site, tmp_path / "empty"):
        aim = Aim(queues, lambda: talk.cache, None, str(site), True)
        assert talk.hold(audit(aim)).exit_code == ExitCode.DONE


def test_a_removed_distribution_with_patches_on_is_orphaned(talk):
    talk.push()
    for path in (talk.site / "demo", *talk.site.glob("demo-*.dist-info")):
        shutil.rmtree(path)

    row = one_row(talk)

    assert (row["word"], row["version"]) == ("orphaned", None)
    assert "by somebody from here" in row["why"]


def test_each_queue_on_the_stack_has_a_row_in_sight_or_not(talk, world):
    talk.push()
    aim = Aim((), lambda: talk.cache, None, str(world.site), True)

    report = talk.hold(audit(aim))

    (row,) = report.document["rows"]
    assert (row["queue"], row["word"]) == ("q", "unknown")
    assert "not in sight" in row["why"]


@pytest.mark.slow
def test_two_queues_on_one_stack_have_a_row_each(talk, world):
    other = world.queue.parent / "other"
    shutil.copytree(world.queue, other)
    (other / "1.0/series").write_text("30-text.patch\n")
    (world.queue / "1.0/series").write_text("10-pi.patch\n20-foot.patch\n")
    for queue in (other, world.queue):
        world.run("lint", "--queue", queue, "--write")
    mine = talk.queue
    talk.push()
    talk.queue = other
    talk.push()
    aim = Aim(
        (store.open(mine), store.open(other)), lambda: talk.cache, None, str(world.site), True
    )

    first = talk.hold(audit(aim)).document["rows"]
    (talk.site / "demo/data.txt").write_text("mine\n")
    second = talk.hold(audit(aim)).document["rows"]

    assert [(row["queue"], row["word"]) for row in first] == [
        ("q", "current"),
        ("other", "current"),
    ]
    assert [row["word"] for row in second] == ["current", "drifted"]
    assert second[1]["mend"] == "patchq diff --queue other -z"


def test_a_damaged_record_is_an_error_and_no_word(talk):
    talk.push()
    (talk.site / ".patchq/demo/state.json").write_text("{")

    with pytest.raises(PatchqError, match="damaged"):
        rows_of(talk)


def test_a_cut_ledger_is_told(talk):
    talk.push("1")
    talk.push()
    ledger = talk.site / ".patchq/demo/ledger.jsonl"
    lines = ledger.read_text().splitlines(keepends=True)
    found = []
    for text in ("".join(lines[:1]), "".join(lines[1:]), "".join(reversed(lines)), ""):
        ledger.write_text(text)
        report, (row,) = rows_of(talk)
        assert (row["word"], report.exit_code) == ("current", ExitCode.FINDING)
        found.append(row["ledger_broken"])
    ledger.write_text("".join(lines))

    assert all(found)
    assert one_row(talk)["ledger_broken"] is None


@pytest.mark.slow
def test_pip_that_upgrades_orphans_the_patches_and_pip_that_uninstalls_does_too(talk, world):
    subprocess.run([sys.executable, "-m", "venv", world.root / "venv"], check=True)
    python = world.root / "venv/bin/python"
    pip = [python, "-m", "pip", "--disable-pip-version-check", "-q"]
    first = worlds.wheel(world.root, dict(worlds.FILES))
    subprocess.run([*pip, "install", "--no-index", first], check=True)
    talk.site = next(Path(world.root / "venv/lib").glob("python*/site-packages"))
    talk.push()
    pushed = one_row(talk, verifying=True)
    files = dict(worlds.FILES) | {"demo/shapes.py": "class Circle:\n    pass\n"}
    second = worlds.wheel(world.root, files, version="1.1")

    subprocess.run([*pip, "install", "--no-index", second], check=True)
    upgraded = one_row(talk)
    subprocess.run([*pip, "uninstall", "-y", "demo"], check=True)
    removed = one_row(talk)

    assert pushed["word"] == "current"
    assert (pushed["edited"], pushed["missing"], pushed["added"]) == ([], [], [])
    assert (upgraded["word"], upgraded["version"]) == ("orphaned", "1.1")
    assert "by somebody from here" in upgraded["why"]
    assert (removed["word"], removed["version"]) == ("orphaned", None)


def test_a_record_that_does_not_list_what_was_pushed_is_no_good_end(talk):
    talk.push()
    record = next(talk.site.glob("demo-*.dist-info/RECORD"))
    whole = record.read_text()
    rows = whole.splitlines(keepends=True)
    found = []
    for text in ("", "\0\0\0", "".join(row for row in rows if "shapes" not in row)):
        record.write_text(text)
        report, (row,) = rows_of(talk)
        assert (row["word"], report.exit_code) == ("current", ExitCode.FINDING)
        found.append(row["record_broken"])
    record.write_text(whole)

    assert all(found)
    assert "demo/shapes.py" in found[-1]
    assert one_row(talk)["record_broken"] is None


def test_a_host_that_names_other_records_each_time_is_asked_about_the_first_ones(talk):
    conversation = audit(talk.aim)
    request, asked = next(conversation), 0
    while request is not None and asked < 9:
        answer, blobs = serve.respond(dict(request.message), dict(request.blobs))
        asked += 1
        answer["ok"]["records"] = [f"x{asked}"]
        with contextlib.suppress(StopIteration):
            request = conversation.send(Reply(answer, blobs))
            continue
        request = None

    assert asked == 2


def test_a_queue_that_only_a_host_names_gets_no_folder_of_this_machine(committed, talk):
    """A host cannot fill what is shared with nothing, under the name of a folder here."""
    shared = Aim(talk.aim.queues, lambda: talk.cache, None, str(talk.site), True)
    name = str(talk.queue)
    entry = {"queue": name, "patch": "p", "release": "1.0", "sha256": "0" * 64, "changes": []}
    conversation = audit(shared)
    request = next(conversation)
    answer, blobs = serve.respond(dict(request.message), dict(request.blobs))
    answer["ok"]["state"] = {"stack": [entry], "generation": 1, "environment": "e"}
    with pytest.raises(StopIteration):
        conversation.send(Reply(answer, blobs))

    assert shared.shared.once(("history", talk.queue), lambda: None).past("1.0")
    assert shared.locks(talk.aim.queues[0]).keys() == {"1.0"}
