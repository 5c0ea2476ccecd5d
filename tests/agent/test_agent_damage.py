"""What patchq kept is damaged, or somebody's work: it is told, and nothing is touched."""

import base64
import json
import os
import zlib

import agent_lab
import crash_lab
import pytest
from agent_lab import AgentError, left_in_state, snapshot

from patchq.agent import forms, holder, protocol

PUSH = {"demo/a.py": b"x = 2\n", "demo/b.py": b"y = 2\n", "demo/new/n.py": b"n = 1\n"}
DEEP = b'{"schema":1,"x":' + b"[" * 200_000 + b"]" * 200_000 + b"}"
SHA = "0" * 64


def short(data):
    return repr(data[:16])


def edited(path, change):
    """Rewrite a JSON document; `change` gets it, and may return another."""
    document = json.loads(path.read_text())
    path.write_text(json.dumps(change(document) or document))


def setting(*keys_and_value):
    """Return an edit that sets one value, wherever it is; "*" is the first key there."""
    *keys, value = keys_and_value

    def change(document):
        for key in keys[:-1]:
            document = document[next(iter(document)) if key == "*" else key]
        document[next(iter(document)) if keys[-1] == "*" else keys[-1]] = value

    return change


def without(*keys):
    def change(document):
        for key in keys[:-1]:
            document = document[key]
        del document[keys[-1]]

    return change


def renaming(name):
    """Return an edit that calls the first original otherwise."""

    def change(document):
        kept = document["originals"]
        kept[name] = kept.pop(next(iter(kept)))

    return change


STATES = {
    "schema alone": lambda _: {"schema": 1},
    "a list": lambda _: [1],
    "schema of text": setting("schema", "1"),
    "no originals": setting("originals", None),
    "no dist-info": setting("dist_info", None),
    "a dist-info elsewhere": setting("dist_info", "name", "../demo-1.0.dist-info"),
    "folders of numbers": setting("folders", [5]),
    "bytecode without keys": setting("bytecode", {"demo/a.pyc": {}}),
    "generation of text": setting("generation", "1"),
    "generation true": setting("generation", True),
    "mode of text": setting("originals", "*", "mode", "x"),
    "mode with a kind": setting("originals", "*", "mode", 0o104755),
    "uid below zero": setting("originals", "*", "uid", -1),
    "an mtime for no clock": setting("originals", "*", "mtime_ns", 1 << 70),
    "name a list": setting("originals", "*", "name", []),
    "name with NUL": setting("originals", "*", "name", "1\0"),
    "name ..": setting("originals", "*", "name", ".."),
    "name absolute": setting("originals", "*", "name", "/etc/passwd"),
    "sha256 short": setting("originals", "*", "sha256", "abc"),
    "kind unknown": setting("originals", "*", "kind", "pipe"),
    "path outside": renaming("../a.py"),
    "path with NUL": renaming("demo/\0.py"),
    "path that is no text": renaming("demo/\ud800.py"),
    "stack null": setting("stack", None),
    "stack without changes": without("stack", 0, "changes"),
    "a change of one": setting("stack", 0, "changes", [["demo/a.py"]]),
    "a patch that is no text": setting("stack", 0, "patch", "\ud800"),
    "a key that is no text": setting("more", "\ud800"),
}


def bad_journal(change):
    return lambda path: edited(path, change)


JOURNALS = {
    "schema alone": lambda path: path.write_bytes(b'{"schema":1}'),
    "deep": lambda path: path.write_bytes(DEEP),
    "not UTF-8": lambda path: path.write_bytes(b"\xff"),
    "no entries": bad_journal(without("entries")),
    "entries null": bad_journal(setting("entries", None)),
    "an entry without after": bad_journal(without("entries", 0, "after")),
    "a mode of text": bad_journal(setting("entries", 0, "after", "mode", "x")),
    "a uid of text": bad_journal(setting("entries", 0, "after", "uid", "0")),
    "a kind unknown": bad_journal(setting("entries", 0, "before", "kind", 7)),
    "a role unknown": bad_journal(setting("entries", 0, "role", "any")),
    "new ..": bad_journal(setting("entries", 0, "new", "..")),
    "old .": bad_journal(setting("entries", 0, "old", ".")),
    "keep absolute": bad_journal(setting("entries", 0, "keep", "/tmp/x")),
    "gives empty": bad_journal(setting("entries", 0, "gives", "")),
    "drop ..": bad_journal(setting("drop", [".."])),
    "an id with a path": bad_journal(setting("id", "../../x")),
    "a module outside": bad_journal(setting("modules", ["../m.py"])),
    "a module of numbers": bad_journal(setting("modules", [1])),
    "a path outside": bad_journal(setting("entries", 0, "path", "../n.py")),
    "a dist-info elsewhere": bad_journal(setting("dist_info", "name", "../x.dist-info")),
    "an inode of text": bad_journal(setting("dist_info", "inode", ["a", 1])),
    "a ledger of text": bad_journal(setting("ledger", "0")),
}


def told(call, word="damaged-state"):
    """Return the error of a call; it must say what, why and what to do, and no more."""
    with pytest.raises(AgentError) as caught:
        call()
    assert caught.value.word == word
    assert caught.value.what
    assert caught.value.why
    assert "Traceback" not in caught.value.why
    assert caught.value.mend
    return caught.value


def everything(site):
    """Return the tree and the state, but the lock's text."""
    own = {
        path: (site / ".patchq" / path).read_bytes()
        for path in left_in_state(site)
        if (site / ".patchq" / path).is_file() and not path.endswith("lock")
    }
    return snapshot(site), own


def interrupt(controller, *, decided=True):
    """Push in a process that dies right before the first file's rename, or the decision."""

    def last(name, first, second):
        if not decided:
            return name == "link" and "journal.go" in second
        return name == "rename" and first.endswith(".new") and "/stage/" in first

    request, blobs = controller.push_request(PUSH)
    assert crash_lab.stopped_at(lambda: agent_lab.here(request, blobs), last) == crash_lab.KILLED


@pytest.mark.parametrize("change", STATES.values(), ids=STATES)
def test_a_damaged_state_is_told_by_every_verb_and_nothing_is_touched(site, controller, change):
    controller.push(PUSH)
    pop, push = controller.pop_request(), controller.push_request({"demo/tool.py": b"#!x\n"})
    path = site / ".patchq/demo/state.json"
    edited(path, change)
    before = everything(site)

    assert controller.survey()["refusal"]["word"] == "damaged-state"
    for call in (
        lambda: agent_lab.here(*pop),
        lambda: agent_lab.here(*push),
        controller.recover,
    ):
        assert str(path) in told(call).what
    assert everything(site) == before


@pytest.mark.parametrize("data", [DEEP, b"", b"\xff", b"junk", b"null"], ids=short)
def test_a_state_that_is_no_document_is_told(site, controller, data):
    controller.push(PUSH)
    (site / ".patchq/demo/state.json").write_bytes(data)

    assert controller.survey()["refusal"]["word"] == "damaged-state"
    told(controller.recover)


@pytest.mark.parametrize("decided", [True, False])
@pytest.mark.parametrize("damage", JOURNALS.values(), ids=JOURNALS)
def test_a_damaged_journal_is_told_and_nothing_is_touched(site, controller, damage, decided):
    interrupt(controller, decided=decided)
    damage(site / ".patchq/demo/journal")
    before = everything(site)

    for force in (None, "old", "new"):
        error = told(lambda force=force: controller.recover(force))
        assert str(site / ".patchq/demo/journal") in error.what
    assert everything(site) == before


def test_a_state_that_is_damaged_while_a_transaction_is_interrupted_is_undone(site, controller):
    """The journal knows all that recovery needs."""
    before = snapshot(site)
    interrupt(controller, decided=False)
    (site / ".patchq/demo/state.json").write_bytes(b"junk")

    assert controller.recover()["outcome"] == "undone"
    assert snapshot(site) == before
    told(controller.recover)


def packed(text):
    return base64.b64encode(zlib.compress(text)).decode()


@pytest.mark.parametrize(
    "texts",
    [None, [], {SHA: 5}, {"x": packed(b"")}, {SHA: "junk"}, {SHA: "é"}, {SHA: packed(b"other")}],
    ids=repr,
)
def test_damaged_texts_of_patches_are_told(site, controller, texts):
    controller.push(PUSH)
    path = site / ".patchq/demo/patches.json"
    path.write_text(json.dumps({"schema": 1, "patches": texts}))

    assert controller.survey()["refusal"] is None
    assert str(path) in told(lambda: controller.survey(want=["patches"])).what


def test_a_text_that_is_gone_is_told_before_anything_changes(site, controller):
    controller.push(PUSH)
    request, blobs = controller.push_request({"demo/tool.py": b"#!x\n"}, "second")
    (site / ".patchq/demo/patches.json").unlink()

    assert "patches.json" in told(lambda: agent_lab.here(request, blobs)).what


@pytest.mark.parametrize(
    "line", [b"junk", b"\xff\xfe", b"[]", b'{"prev":""}', DEEP, b'{"id":"\\ud800"}'], ids=short
)
def test_what_is_no_receipt_is_left_out_of_the_log_and_stops_no_verb(site, controller, line):
    first = controller.push(PUSH)["receipt"]
    ledger = site / ".patchq/demo/ledger.jsonl"
    with ledger.open("ab") as file:
        file.write(line + b"\n")

    second = controller.pop()["receipt"]

    survey = controller.survey(want=["ledger"])
    assert survey["ledger"] == [first, second]
    assert survey["ledger_broken"] == "line 2 is no receipt"
    assert second["prev"] == protocol.sha256(line)


@pytest.mark.parametrize("text", [b"junk", b"[]", b'{"pid":"x"}', DEEP], ids=short)
def test_a_lock_whose_text_says_nothing_is_a_lock(site, controller, text):
    import fcntl

    controller.push(PUSH)
    path = site / ".patchq/demo/lock"
    path.write_bytes(text)
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)

        assert (
            told(controller.pop, "locked").what == "another patchq is writing to this environment"
        )
        assert holder.writer(str(path.parent)) in ({}, {"pid": "x"})


def linked(site, outside, folder="demo/link"):
    outside.mkdir()
    (outside / "victim.py").write_bytes(b"precious\n")
    (outside / "__pycache__").mkdir()
    (outside / "__pycache__/victim.cpython-311.pyc").write_bytes(b"precious")
    (site / folder).symlink_to(outside)
    return lambda: {p: p.read_bytes() if p.is_file() else None for p in outside.rglob("*")}


ENTRIES = {
    "a file": setting("entries", 1, "path", "demo/link/victim.py"),
    "a module": setting("modules", ["demo/link/victim.py"]),
    "a folder": setting("entries", 0, "path", "demo/link/sub"),
    "the link as a folder": setting("entries", 0, "path", "demo/link"),
    "bytecode": lambda document: document["entries"][1].update(
        path="demo/link/victim.py", role="bytecode"
    ),
}


@pytest.mark.parametrize("force", [None, "old", "new"])
@pytest.mark.parametrize("decided", [True, False])
@pytest.mark.parametrize("change", ENTRIES.values(), ids=ENTRIES)
def test_recovery_never_writes_through_a_folder_that_leads_out(
    site, controller, tmp_path, change, decided, force
):
    interrupt(controller, decided=decided)
    content = linked(site, tmp_path / "outside")
    victims, mode = content(), (tmp_path / "outside").stat()
    edited(site / ".patchq/demo/journal", change)
    before = everything(site)

    assert "leads out" in told(lambda: controller.recover(force), "in-the-way").why

    assert content() == victims
    now = (tmp_path / "outside").stat()
    assert (now.st_mode, now.st_uid, now.st_mtime_ns) == (
        mode.st_mode,
        mode.st_uid,
        mode.st_mtime_ns,
    )
    assert everything(site) == before


@pytest.mark.parametrize("verb", ["push", "recover"])
def test_clearing_up_a_finished_transaction_sweeps_nothing_outside(
    site, controller, tmp_path, verb
):
    interrupt(controller)
    content = linked(site, tmp_path / "outside")
    victims = content()
    edited(site / ".patchq/demo/journal", setting("modules", ["demo/link/victim.py"]))
    (site / ".patchq/demo/journal.go").unlink()
    (site / ".patchq/demo/journal").rename(site / ".patchq/demo/journal.go")

    call = controller.recover if verb == "recover" else lambda: controller.push({"demo/c.py": b""})
    told(call, "in-the-way")

    assert content() == victims


@pytest.mark.parametrize("folder", ["stage", "originals"])
@pytest.mark.parametrize("verb", ["push", "recover"])
def test_a_folder_of_the_state_that_is_a_link_is_not_emptied(
    site, controller, tmp_path, folder, verb
):
    controller.push(PUSH)
    own = site / ".patchq/demo" / folder
    if own.exists():
        own.rename(tmp_path / "moved")
    content = linked(site, tmp_path / "outside", f".patchq/demo/{folder}")
    victims = content()

    call = controller.recover if verb == "recover" else lambda: controller.push({"demo/c.py": b""})
    assert "symbolic link" in told(call, "in-the-way").what

    assert content() == victims


def test_a_pop_gives_no_bytecode_back_through_a_link(site, controller, tmp_path):
    pyc = site / "demo/__pycache__/a.cpython-311.pyc"
    pyc.parent.mkdir()
    pyc.write_bytes(b"listed")
    record = site / "demo-1.0.dist-info/RECORD"
    record.write_bytes(record.read_bytes() + f"{pyc.relative_to(site)},,\r\n".encode())
    controller.push({"demo/a.py": b"x = 2\n"})
    pyc.parent.rmdir()
    content = linked(site, tmp_path / "outside", "demo/__pycache__")
    victims = content()

    done = controller.pop()

    assert content() == victims
    assert "demo/__pycache__ is a link" in done["notes"][0]
    assert (site / "demo/a.py").read_bytes() == b"x = 1\n"
    assert (site / "demo/__pycache__").is_symlink()


def test_a_dist_info_that_leads_out_is_not_written(site, controller, tmp_path):
    (site / "demo-1.0.dist-info").rename(tmp_path / "info")
    (site / "demo-1.0.dist-info").symlink_to(tmp_path / "info")
    record = (tmp_path / "info/RECORD").read_bytes()

    told(lambda: controller.push(PUSH), "in-the-way")

    assert (tmp_path / "info/RECORD").read_bytes() == record


@pytest.mark.parametrize(
    "name", ["de\0mo", "", "..", "../x", "a/b", "-demo", "demo-", "dem\u00f6", "demo\n", 5, None]
)
@pytest.mark.parametrize("op", ["survey", "read", "commit", "recover"])
def test_a_name_that_no_distribution_can_have_is_refused(site, controller, op, name):
    request = dict(controller.message(op, paths=[], entries=[]), distribution=name)

    assert "PEP 503" in told(lambda: agent_lab.here(request), "unsafe-name").why
    assert not (site / ".patchq").exists()


@pytest.mark.parametrize("name", ["demo", "Demo_1.x", "a", "zope.interface", "7"])
def test_names_of_distributions_are_taken(name):
    assert forms.distribution(name) is None


@pytest.mark.parametrize("path", ["demo/\ud800.py", "\udfff"])
def test_a_path_with_half_a_character_is_no_text(site, controller, path):
    assert protocol.unsafe(path) == "it is not text"
    told(lambda: controller.survey([path]), "unsafe-path")


def test_a_path_that_is_not_utf8_is_text():
    assert protocol.unsafe(os.fsdecode(b"demo/\xff.py")) is None


@pytest.mark.parametrize(
    "change",
    [
        setting("receipt", None),
        setting("receipt", "patches", ["p"]),
        setting("receipt", "who", "\ud800"),
        setting("stack", 0, "patch", None),
        setting("patches", ["x"]),
        setting("entries", 0, "after", []),
    ],
    ids=["no receipt", "list", "no text", "patch", "digest", "after"],
)
def test_what_could_not_be_read_again_is_not_written(site, controller, change):
    request, blobs = controller.push_request(PUSH)
    change(request)

    with pytest.raises(AgentError) as caught:
        agent_lab.here(request, blobs)

    assert caught.value.word == "bad-request"
    assert not (site / ".patchq").exists()
