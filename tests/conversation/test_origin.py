"""`fetch --from-host`: what is installed as a release, where RECORD proves it."""

import re
import shutil

import pytest

from patchq.agent import serve
from patchq.conversation import origin
from patchq.conversation.audit import audit
from patchq.errors import PatchqError
from patchq.releases import fetch
from patchq.releases.store import Store
from patchq.transport.channel import Reply
from tests import world as worlds
from tests.conversation.test_audit import UNDECIDED, WITHIN, kill
from tests.conversation.test_verify import forge


@pytest.fixture
def installed(talk):
    """A talk about a tree as pip leaves it; no release was fetched."""
    info = next(talk.site.glob("demo-*.dist-info"))
    (info / "INSTALLER").write_text("pip\n")
    (info / "REQUESTED").touch()
    for name in ("INSTALLER", "REQUESTED"):
        forge(talk.site, f"{info.name}/{name}")
    rows = info / "RECORD"
    cached = "demo/__pycache__/shapes.cpython-311.pyc,,\n../../../bin/demo,sha256=AAAA,1\n"
    rows.write_text(rows.read_text() + cached)
    talk.store = talk.cache.parent / "taken"
    return talk


def take(talk):
    """Take what is installed, into a store of its own."""
    cache, talk.cache = talk.cache, talk.store
    try:
        return talk.hold(origin.take(talk.aim, "demo", "gpu1"))
    finally:
        talk.cache = cache


def store(talk):
    return Store("demo", talk.store / "releases")


def edit(talk, path="demo/units.py"):
    (talk.site / path).write_text("metre = 2\n")


def test_what_is_taken_is_what_the_wheel_has(installed):
    document = take(installed).document

    wheel = Store("demo", installed.cache / "releases")
    assert installed.asked == ["survey", "hash", "read", "survey"]
    assert document["tree"] == wheel.tree("1.0") == store(installed).tree("1.0")
    assert (document["release"], document["files"], document["verified"]) == ("1.0", 4, "host")
    assert document["already"] is False


def test_the_note_says_whose_record_was_believed(installed):
    take(installed)

    (note,) = store(installed).wheels("1.0")
    assert note.filename == "demo-1.0-py3-none-any.whl"
    assert note.origin.startswith("RECORD ")
    assert note.origin.endswith(f" in {installed.site} on gpu1")


def test_what_the_installer_added_is_not_kept(installed):
    take(installed)

    (note,) = store(installed).wheels("1.0")
    info = store(installed).dist_info(note)
    names = [path.partition("/")[2] for path in info]
    assert names == ["METADATA", "RECORD", "WHEEL"]
    wheel = Store("demo", installed.cache / "releases")
    assert store(installed).installed("1.0") == wheel.installed("1.0")


def test_another_installers_tree_is_pristine_against_what_was_taken(installed):
    take(installed)
    info = next(installed.site.glob("demo-*.dist-info"))
    (info / "INSTALLER").write_text("uv")
    forge(installed.site, f"{info.name}/INSTALLER")
    installed.cache = installed.store

    (row,) = installed.hold(audit(installed.aim, True)).document["rows"]

    assert (row["against"], row["edited"], row["added"]) == ("release store", [], [])


def test_a_file_that_is_not_as_in_record_is_refused_and_all_are_listed(installed):
    edit(installed)
    edit(installed, "demo/shapes.py")
    (installed.site / "demo/data.txt").unlink()
    rows = next(installed.site.glob("demo-*.dist-info/RECORD"))
    bare = [
        row.split(",")[0] + ",," if "__init__" in row else row
        for row in rows.read_text().split("\n")
    ]
    rows.write_text("\n".join(bare))

    with pytest.raises(PatchqError, match="is not as its RECORD says") as caught:
        take(installed)

    assert sorted(caught.value.why.split("\n")) == [
        "demo/__init__.py has no SHA-256 in RECORD",
        "demo/data.txt is missing",
        "demo/shapes.py differs",
        "demo/units.py differs",
    ]
    assert store(installed).releases() == ()


def test_more_files_than_fit_on_a_screen_are_counted(installed):
    for number in range(50):
        (installed.site / f"demo/m{number}.py").write_text("x = 1\n")
        forge(installed.site, f"demo/m{number}.py")
        edit(installed, f"demo/m{number}.py")

    with pytest.raises(PatchqError) as caught:
        take(installed)

    assert len(caught.value.why.split("\n")) == 41
    assert caught.value.why.endswith("\nand 10 more")


def test_where_patches_are_on_nothing_is_taken_until_they_are_off(installed):
    installed.push("1")

    with pytest.raises(PatchqError, match="is not as it was installed") as caught:
        take(installed)
    installed.pop()

    assert caught.value.why == "patches are on: 10-pi.patch"
    assert caught.value.mend == "patchq pop -a"
    assert take(installed).document["files"] == 4


def test_a_state_of_an_older_installation_is_in_the_way(installed):
    before = installed.site.with_name("before")
    shutil.copytree(installed.site, before)
    installed.push()
    for path in (installed.site / "demo", *installed.site.glob("*.dist-info")):
        shutil.rmtree(path)
    shutil.copytree(before, installed.site, dirs_exist_ok=True)

    with pytest.raises(PatchqError, match="is not as it was installed") as caught:
        take(installed)

    assert caught.value.mend == "patchq recover"


@pytest.mark.parametrize("last", [UNDECIDED, WITHIN])
def test_a_transaction_that_is_not_at_its_end_is_in_the_way(installed, last):
    kill(installed, *last)

    with pytest.raises(PatchqError, match="is not as it was installed") as caught:
        take(installed)

    assert caught.value.why == "a transaction is not at its end"
    assert caught.value.mend == "patchq recover"


def test_what_patchq_laid_out_is_no_origin(talk):
    talk.store = talk.cache.parent / "taken"

    with pytest.raises(PatchqError, match="is not as it was installed") as caught:
        take(talk)

    assert caught.value.why == "it was laid out by patchq"


def test_a_host_that_answers_of_another_distribution_does_not_open_its_store(installed):
    metadata = next(installed.site.glob("demo-*.dist-info/METADATA"))
    metadata.write_text("Metadata-Version: 2.1\nName: vllm\nVersion: 0.16.0\n")
    forge(installed.site, f"{metadata.parent.name}/METADATA")

    with pytest.raises(PatchqError, match="is not as it was installed") as caught:
        take(installed)

    assert caught.value.why == "its METADATA is of vllm"
    assert not (installed.store / "releases").exists()


def test_an_editable_installation_is_refused(installed):
    info = next(installed.site.glob("demo-*.dist-info"))
    (info / "direct_url.json").write_text('{"url": "file:///w", "dir_info": {"editable": true}}')

    with pytest.raises(PatchqError, match="editable"):
        take(installed)


def test_a_file_that_record_does_not_list_is_left_out_and_said(installed):
    (installed.site / "demo/mine.py").write_text("x = 1\n")

    done = take(installed)

    assert done.notes == ("left out, since RECORD does not list it: demo/mine.py",)
    assert "demo/mine.py" not in store(installed).listing("1.0")


def test_the_mode_of_a_program_is_kept(installed):
    (installed.site / "demo/units.py").chmod(0o755)

    take(installed)

    found = store(installed).read_many("1.0", ("demo/units.py", "demo/shapes.py"))
    assert {path: runs for path, (_, runs) in found.items()} == {
        "demo/units.py": True,
        "demo/shapes.py": False,
    }


def take_while(talk, change):
    """Take what is installed, and let `change` happen after it was hashed."""
    conversation = origin.take(talk.aim, "demo", "")
    request = next(conversation)
    while True:
        answer = Reply(*serve.respond(dict(request.message), {}))
        if request.message["op"] == "hash":
            change(talk)
        request = conversation.send(answer)


@pytest.mark.parametrize(
    "change", [edit, lambda talk: (talk.site / "demo/units.py").unlink()], ids=["edit", "unlink"]
)
def test_a_file_that_changes_meanwhile_is_found(installed, change):
    with pytest.raises(PatchqError, match="changed while it was read") as caught:
        take_while(installed, change)

    assert "demo/units.py" in caught.value.why


def test_a_push_that_came_meanwhile_is_found(installed):
    with pytest.raises(PatchqError, match="is not as it was installed"):
        take_while(installed, lambda talk: talk.push("1"))


def test_the_wheel_that_was_fetched_is_the_better_witness(installed):
    archive = next(installed.cache.parent.glob("*.whl"))
    fetch.fetch(str(archive), cache=installed.store / "releases")
    before = store(installed).wheels("1.0"), store(installed).dist_info

    done = take(installed)

    assert (done.document["already"], done.document["verified"]) == (True, "record")
    assert "was fetched before, and has this very text" in done.notes[0]
    assert store(installed).wheels("1.0") == before[0]


def test_another_text_of_the_same_wheel_is_refused(installed):
    archive = worlds.wheel(installed.site.parent / "cache", {"demo/__init__.py": "x = 1\n"})
    fetch.fetch(str(archive), cache=installed.store / "releases")

    with pytest.raises(PatchqError, match="is not what it was when it was first fetched"):
        take(installed)


def test_more_text_than_a_wheel_may_have_is_refused(installed):
    rows = next(installed.site.glob("demo-*.dist-info/RECORD"))
    for number in range(70):
        (installed.site / f"demo/m{number}.py").write_text("x = 1\n")
        forge(installed.site, f"demo/m{number}.py")
    lines = rows.read_text().split("\n")
    # 8 MiB each, and 560 together.
    rows.write_text("\n".join(re.sub(",6$", f",{8 << 20}", line) for line in lines))

    with pytest.raises(PatchqError, match="the text is too much to be kept"):
        take(installed)


@pytest.mark.slow
def test_text_that_no_single_answer_holds_comes_in_several(installed):
    for number in range(4):
        (installed.site / f"demo/big{number}.txt").write_bytes(b"%d\n" % number * (7 << 19))
        forge(installed.site, f"demo/big{number}.txt")

    done = take(installed)

    assert installed.asked == ["survey", "hash", "read", "survey", "survey"]
    assert done.document["files"] == 8
