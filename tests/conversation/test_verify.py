"""`audit --verify`: what no survey sees, against the release store or RECORD."""

import base64
import hashlib
import json
import shutil

import pytest

from patchq.agent import serve
from patchq.conversation.audit import audit
from patchq.releases.store import Store, StoreError
from patchq.transport.channel import Reply
from tests import world as worlds


@pytest.fixture
def verified(talk):
    """Return the row of an audit that hashes everything."""

    def look():
        return talk.hold(audit(talk.aim, True)).document["rows"][0]

    return look


def forge(site, path):
    """Write the row of RECORD anew for a file as it is now, as one who hides an edit would."""
    record = next(site.glob("demo-*.dist-info/RECORD"))
    data = (site / path).read_bytes()
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    rows = [row for row in record.read_text().splitlines() if not row.startswith(f"{path},")]
    record.write_text("\n".join([*rows, f"{path},sha256={digest},{len(data)}"]) + "\n")


def test_a_pristine_tree_is_as_in_the_release_store(talk, verified):
    row = verified()

    assert row["word"] == "missing"
    assert (row["against"], row["against_release"]) == ("release store", "1.0")
    assert (row["edited"], row["missing"], row["added"]) == ([], [], [])
    assert talk.asked == ["survey", "hash"]


@pytest.mark.parametrize("upto", ["1", None])
def test_a_pushed_tree_is_what_its_stack_says(talk, verified, upto):
    talk.push(upto)

    row = verified()

    assert row["word"] == ("partial" if upto else "current")
    assert (row["edited"], row["missing"], row["added"]) == ([], [], [])


def test_after_a_pop_all_is_as_released(talk, verified):
    talk.push()
    talk.pop()

    assert verified()["edited"] == []


@pytest.mark.parametrize("pushed", [False, True])
def test_an_edit_with_a_forged_record_is_found_against_the_store(talk, verified, pushed):
    if pushed:
        talk.push()
    path = talk.site / "demo/__init__.py"
    path.write_text(path.read_text() + "import os\n")
    forge(talk.site, "demo/__init__.py")

    row = verified()

    assert row["word"] == ("drifted" if pushed else "unmanaged")
    assert row["edited"] == ["demo/__init__.py"]
    assert "against release store 1.0" in row["why"]


def test_without_the_release_the_row_says_that_record_was_believed(talk, verified):
    talk.cache = talk.cache.parent / "empty"
    path = talk.site / "demo/__init__.py"
    path.write_text(path.read_text() + "import os\n")
    edited = verified()
    forge(talk.site, "demo/__init__.py")
    forged = verified()

    assert (edited["word"], edited["against"]) == ("unmanaged", "RECORD")
    assert edited["edited"] == ["demo/__init__.py"]
    assert (forged["word"], forged["against"]) == ("missing", "RECORD")
    assert "verified against RECORD" in forged["why"]


def test_files_that_were_added_or_removed_are_named(talk, verified):
    (talk.site / "demo/extra").mkdir()
    (talk.site / "demo/extra/deep.py").write_text("x = 1\n")
    (talk.site / "demo/__pycache__").mkdir(exist_ok=True)
    (talk.site / "demo/__pycache__/shapes.cpython-311.pyc").write_bytes(b"")
    (talk.site / "demo/__init__.py").unlink()

    row = verified()

    assert row["word"] == "unmanaged"
    assert row["added"] == ["demo/extra/deep.py"]
    assert row["missing"] == ["demo/__init__.py"]


def test_a_file_that_only_a_forged_record_lists_was_added(talk, verified):
    (talk.site / "demo/late.py").write_text("x = 1\n")
    forge(talk.site, "demo/late.py")

    assert verified()["added"] == ["demo/late.py"]


def test_files_of_another_distribution_in_the_same_folder_are_not_added(talk, verified):
    (talk.site / "demo/plugin.py").write_text("x = 1\n")
    info = talk.site / "demo_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: demo-plugin\nVersion: 1.0\n")
    (info / "RECORD").write_text("demo/plugin.py,,\n")

    assert verified()["added"] == []


def test_a_drifted_file_is_named_once(talk, verified):
    talk.push()
    path = talk.site / "demo/data.txt"
    path.write_text("mine\n")

    row = verified()

    assert (row["word"], row["paths"]) == ("drifted", ["demo/data.txt"])
    assert row["why"].count("demo/data.txt") == 1


def test_what_is_copied_without_a_record_stays_unrecorded(talk, verified):
    talk.push()
    shutil.rmtree(talk.site / ".patchq")

    row = verified()

    assert row["word"] == "unrecorded"
    assert set(row["paths"]) == {"demo/shapes.py", "demo/more.py", "demo/data.txt"}


@pytest.mark.slow
def test_of_two_builds_of_a_version_the_nearer_one_is_compared(talk, world, verified):
    files = dict(worlds.FILES) | {"demo/__init__.py": "from .shapes import Square\n"}
    archive = worlds.wheel(world.root, files)
    second = archive.rename(world.root / "demo-1.0-1-py3-none-any.whl")
    done = world.run("fetch", second)
    assert done.returncode == 0, done.stderr

    pristine = verified()
    (talk.site / "demo/__init__.py").write_text(files["demo/__init__.py"])
    other = verified()

    assert (pristine["word"], pristine["against_release"]) == ("missing", "1.0")
    assert other["against_release"] == "1.0-1"
    assert other["edited"] == []


def record_says(site, change):
    """Let state.json say something else."""
    path = site / ".patchq/demo/state.json"
    state = json.loads(path.read_text())
    for patch in state["stack"]:
        change(patch)
    path.write_text(json.dumps(state, separators=(",", ":")) + "\n")


@pytest.mark.parametrize("verifying", [False, True])
def test_a_record_that_was_made_to_fit_an_edit_is_drift(talk, verifying):
    talk.push()
    (talk.site / "demo/data.txt").write_text("evil\n")
    forge(talk.site, "demo/data.txt")
    digest = hashlib.sha256(b"evil\n").hexdigest()

    def forged(patch):
        for path, _, after in patch["changes"]:
            if path == "demo/data.txt":
                after[2] = digest

    record_says(talk.site, forged)

    row = talk.hold(audit(talk.aim, verifying)).document["rows"][0]

    assert (row["word"], row["paths"]) == ("drifted", ["demo/data.txt"])
    assert "recorded sha256 " + digest[:12] in row["why"]
    assert not verifying or row["edited"] == ["demo/data.txt"]


@pytest.mark.parametrize("verifying", [False, True])
def test_a_record_of_patches_that_change_nothing_is_drift(talk, verifying):
    pristine = {path: path.read_bytes() for path in talk.site.glob("demo/*") if path.is_file()}
    talk.push()
    for path, data in pristine.items():
        path.write_bytes(data)
    (talk.site / "demo/more.py").unlink()
    record_says(talk.site, lambda patch: patch.update(changes=[]))

    row = talk.hold(audit(talk.aim, verifying)).document["rows"][0]

    assert row["word"] == "drifted"
    assert not verifying or set(row["edited"]) == {"demo/data.txt", "demo/shapes.py"}


@pytest.mark.parametrize("digest", ["", "sha512=AAAA"])
def test_without_the_release_a_row_without_a_digest_hides_nothing(talk, verified, digest):
    talk.push()
    (talk.site / "demo/__init__.py").write_text("evil = 1\n")
    record = next(talk.site.glob("demo-*.dist-info/RECORD"))
    rows = [row for row in record.read_text().splitlines() if "demo/__init__.py" not in row]
    record.write_text("\n".join([*rows, f"demo/__init__.py,{digest},"]) + "\n")
    against_store = verified()
    talk.cache = talk.cache.parent / "empty"
    row = verified()

    assert (against_store["word"], against_store["edited"]) == ("drifted", ["demo/__init__.py"])
    assert (row["word"], row["unproven"]) == ("drifted", ["demo/__init__.py"])
    assert "RECORD has no digest of demo/__init__.py" in row["why"]


def test_files_that_there_was_no_room_to_name_are_never_current(talk, verified, monkeypatch):
    talk.push()
    monkeypatch.setattr("patchq.agent.hashes._MOST", 0)
    (talk.site / "demo/__init__.py").write_text("evil = 1\n")

    row = verified()

    assert (row["word"], row["more"], row["edited"]) == ("drifted", 1, [])
    assert row["mend"]


def test_a_package_in_the_place_of_a_module_was_added(talk, verified):
    talk.push()
    (talk.site / "demo/units").mkdir()
    (talk.site / "demo/units/__init__.py").write_text("metre = 666\n")
    record = next(talk.site.glob("demo-*.dist-info/RECORD"))
    record.write_text(record.read_text() + "demo/units/__init__.py,,\n")

    row = verified()

    assert (row["word"], row["added"]) == ("drifted", ["demo/units/__init__.py"])


def test_the_store_that_is_opened_is_of_the_distribution_that_was_asked_for(talk, tmp_path):
    def renamed():
        """Hold an audit with a host that calls the distribution something else."""
        conversation = audit(talk.aim, True)
        request = next(conversation)
        while True:
            answer, blobs = serve.respond(dict(request.message), dict(request.blobs))
            if request.message["op"] == "survey":
                answer["ok"]["installed"]["name"] = str(tmp_path / "foreign")
            try:
                request = conversation.send(Reply(answer, blobs))
            except StopIteration as stop:
                return stop.value

    (row,) = renamed().document["rows"]

    assert (row["distribution"], row["against"]) == ("demo", "release store")


@pytest.mark.parametrize("name", ["/tmp/x", "../demo", "", "-x", "a\nb", "demo.", "x/y"])
def test_a_store_of_what_is_no_distribution_is_refused(tmp_path, name):
    with pytest.raises(StoreError):
        Store(name, tmp_path)
