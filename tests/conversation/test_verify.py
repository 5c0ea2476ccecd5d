"""`audit --verify`: what no survey sees, against the release store or RECORD."""

import base64
import hashlib
import shutil

import pytest

from patchq.conversation.audit import audit
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
