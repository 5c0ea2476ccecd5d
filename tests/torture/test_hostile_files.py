"""Files made to escape or to exhaust: nothing outside is written, and everything has an end.

Names in every spelling, wherever a name can stand: in patches, series, sketches, locks,
wheels, RECORDs, state, journals, requests and answers. Counts, sizes and depths without
measure. Masks, owners and modes that would let another user in.
"""

import base64
import contextlib
import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))

import agent_lab
from agent_lab import AgentError

from patchq.agent import protocol, serve, state
from patchq.conversation import answers
from patchq.engine import cquote, diff, sketch
from patchq.errors import PatchqError
from patchq.queue import lock, series
from patchq.releases import wheel
from patchq.transport.channel import Reply
from tests import world as worlds
from tests.torture import form
from tests.torture.confinement import confined
from tests.torture.telling import told

# No patch may name these, in any spelling that some system takes for them.
REFUSED = (
    *("../x.py", "..", "demo/..", "demo/../../x.py", "demo/../x.py", "../../../../etc/x.py"),
    *("/etc/x.py", "//etc/x.py", "/", "demo//x.py", "./x.py", "demo/./x.py", "demo/x.py/."),
    *("demo\\..\\..\\x.py", "..\\x.py", "\\\\host\\share\\x.py", "C:\\x.py"),
    *("demo/x\0.py", "demo/x\n.py", "demo/x\r.py", "demo/\x1b[2J.py", "demo/\x07.py", "\x7f.py"),
    *(".git/config", "demo/.git/hooks/x.py", ".GIT/config", ".git./config", ".git /config"),
    *("git~1/config", "GIT~1/config", ".g\u200cit/config", ".\uff47it/config", ".git::$INDEX/x"),
    *(".patchq/demo/state.json", ".PATCHQ/x.py", ".patchq./x.py", ".patchq /x.py"),
    *(".p\u200datchq/x.py", ".\uff50atchq/x.py", "demo/.patchq/x.py", ".patchq"),
    *("demo-1.0.dist-info/RECORD", "demo-1.0.dist-info/METADATA", "DEMO-1.0.DIST-INFO/RECORD"),
    *("other-2.dist-info/RECORD", "demo-1.0.dist-info./RECORD", "demo-1.0.dist-info /RECORD"),
    *("demo-1.0.dist\u200c-info/RECORD", "demo-1.0.dist-in\ufb01/RECORD".replace("\ufb01", "fo")),
    *("demo.egg-info/PKG-INFO", "demo.EGG-INFO/x.py", "demo/x.dist-info/RECORD"),
    *("demo/\ud800.py", "demo/\udfff.py"),
)
# These are names like any other on Linux: the very file, and no other, is made.
PLAIN = (
    *("demo/%2e%2e/x.py", "demo/..%2fx.py", "demo/.../x.py", "demo/x.py.", "demo/x.py "),
    *("demo/ x.py", "demo/.. /x.py", "demo/\u2024\u2024/x.py", "demo/\u2025/x.py"),
    *("demo/\u2215etc\u2215x.py", "demo/\uff0e\uff0e/x.py", "demo/e\u0301.py", "demo/\u00e9.py"),
    *("demo/CON.py", "Demo/A.py", "demo/-rf", "demo/$(touch x).py", "demo/`id`.py", "demo/;x.py"),
    *("demo/\udcff.py", "demo/\u202egpj.py", 'demo/"x".py', "demo/x,y.py", "demo/.gitignore"),
    *("demo/" + "n" * 240 + ".py", "d/" * 60 + "x.py", "demo/~", "demo/dist-info/x.py"),
)
MANY = 100_000 if form.LONG else 10_000
LONG = ("demo/" + "n" * 300 + ".py", "d/" * 2_100 + "x.py", "n" * 70_000)
OLD, NEW = b"x = 1\n", b"x = 2\n"
SHA = protocol.sha256(NEW)


def quoted(name):
    return cquote.quote(name) if "\ud800" not in name and "\udfff" not in name else name


def encoded(text):
    return text.encode(
        "utf-8", "surrogatepass" if re.search("[\ud800\udfff]", text) else "surrogateescape"
    )


def raw_plain(name):
    return encoded(f"--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-x = 1\n+x = 2\n")


def quoted_git(name):
    both = f"{quoted('a/' + name)} {quoted('b/' + name)}"
    marks = f"--- {quoted('a/' + name)}\n+++ {quoted('b/' + name)}\n"
    return encoded(f"diff --git {both}\n{marks}@@ -1 +1 @@\n-x = 1\n+x = 2\n")


def created(name):
    both = f"{quoted('a/' + name)} {quoted('b/' + name)}"
    return encoded(
        f"diff --git {both}\nnew file mode 100644\n--- /dev/null\n+++ {quoted('b/' + name)}\n"
        "@@ -0,0 +1 @@\n+x = 2\n"
    )


def renamed(name, word="rename", back=False):
    ends = (name, "demo/a.py") if back else ("demo/a.py", name)
    return encoded(
        f"diff --git {quoted('a/' + ends[0])} {quoted('b/' + ends[1])}\nsimilarity index 100%\n"
        f"{word} from {quoted(ends[0])}\n{word} to {quoted(ends[1])}\n"
    )


PATCHES = {
    "---/+++": raw_plain,
    "diff --git": quoted_git,
    "new file": created,
    "rename to": renamed,
    "rename from": lambda name: renamed(name, back=True),
    "copy to": lambda name: renamed(name, "copy"),
}


@pytest.mark.parametrize("carrier", PATCHES)
def test_no_patch_names_a_file_that_is_not_the_packages(carrier):
    """Whatever is read of the patch is inside; most are refused as they are read."""
    refused: set[str] = set()
    for name in (*REFUSED, *PLAIN, *LONG):
        try:
            _, diffs = diff.parse(PATCHES[carrier](name), name="x.patch")
        except PatchqError as error:
            told(error)
            refused.add(name)
            continue
        named = [path for one in diffs for path in (one.old, one.new) if path is not None]
        assert not {name} & {*REFUSED} & {*named}
        assert all(protocol.unsafe(path) is None for path in named)
        form.count("hostile names", carrier, "taken as they are")
    assert carrier in ("---/+++", "copy to") or not refused & {*PLAIN}
    form.count("hostile names", carrier, "refused", len(REFUSED))


def series_of(name):
    return series.parse(encoded(name) + b"\n").entries


def sketch_of(name):
    return sketch.load(encoded(f"# in {name}.py\nx = 2\n"), name="x.pyi").paths


def locked(name, where):
    patch = {"name": "a.patch", "options": "", "patch": SHA, "sketch": None}
    change = [name, ["absent", False, None], ["file", False, SHA]]
    patch |= {"changes": [change] if where == "changes" else [], "reads": {}}
    patch |= {"reads": {name: SHA}} if where == "reads" else {}
    patch |= {"name": name} if where == "name" else {}
    head = {"schema": 1, "distribution": "demo", "release": "1.0", "tree": "0" * 40}
    return lock.parse(json.dumps({**head, "patches": [patch]}).encode())


def survey_with(name):
    """What a host says of its state."""
    change = [name, ["absent", False, None], ["file", False, SHA]]
    patch = {"queue": "q", "patch": "p", "release": "1", "sha256": SHA, "changes": [change]}
    ok = {"python": {"version": "3", "executable": "/p"}, "site": "/s", "installed": None}
    return answers.survey_of(Reply({"ok": {**ok, "files": {}, "state": {"stack": [patch]}}}))


QUEUES = {
    "series": series_of,
    "sketch": sketch_of,
    "lock: changes": lambda name: locked(name, "changes"),
    "lock: reads": lambda name: locked(name, "reads"),
    "lock: name": lambda name: locked(name, "name"),
    "a host's state": survey_with,
}


@pytest.mark.parametrize("carrier", QUEUES)
def test_no_file_of_a_queue_and_no_answer_names_what_is_not_the_packages(carrier):
    for name in REFUSED:
        try:
            found = QUEUES[carrier](name)
        except PatchqError as error:
            told(error)
            continue
        # A comment, a blank, an option: the name stands for something else here.
        assert repr(name) not in repr(found), name
    form.count("hostile names", carrier, "refused", len(REFUSED))


def test_no_wheel_brings_a_file_that_is_not_the_packages(tmp_path):
    for name in REFUSED:
        if name == "demo/x\0.py" or re.search("[\ud800-\udfff]", name):
            continue  # zip itself knows no such names; tests/releases has the NUL
        if name.startswith("demo-1.0.dist-info/") or name == "demo/x.dist-info/RECORD":
            continue  # a wheel's own, and a vendored package's
        path = worlds.wheel(tmp_path, {**worlds.FILES, name: "x = 2\n"})
        try:
            text = wheel.read(io.BytesIO(path.read_bytes()), path.name, "demo")
        except PatchqError as error:
            told(error)
        else:
            assert all(protocol.unsafe(one) is None for one, _, _ in text.files), name
    form.count("hostile names", "wheel", "refused", len(REFUSED))


@pytest.fixture
def ground(tmp_path):
    """A site between canaries, and a function that says that nothing around it changed."""
    root = tmp_path / "ground"
    for path in ("etc/x.py", "x.py", "site-packages/x.py", "etc/canary"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(b"canary\n")
    site = agent_lab.make_site(root / "deep/er/site")
    agent_lab.make_site(site, {"other/o.py": b"o = 1\n"}, name="other")
    foreign = {"other", "other-1.0.dist-info"}
    before = agent_lab.snapshot(root)

    def intact(*but):
        now = agent_lab.snapshot(root)
        changed = {
            path for path in before.keys() | now.keys() if before.get(path) != now.get(path)
        }
        assert {path for path in changed if path.startswith("deep/er/site/")} == changed
        inside = {path.removeprefix("deep/er/site/") for path in changed}
        assert not {path for path in inside if path.split("/")[0] in foreign}
        assert inside <= set(but), inside - set(but)

    return site, intact


def test_no_request_names_a_file_that_is_not_the_packages(ground):
    site, intact = ground
    controller = agent_lab.Controller(site)
    request, blobs = controller.push_request({"demo/a.py": NEW})
    for name in (*REFUSED, ""):
        entry = {"path": name, "before": ["absent", False, None], "after": ["file", False, SHA]}
        for asked in (
            dict(request, entries=[entry]),
            controller.message("survey", paths=[name]),
            controller.message("read", paths=[name]),
            controller.message("hash", paths=[name]),
        ):
            answer, contents = serve.respond(dict(asked), {SHA: NEW, **blobs})
            assert answer["error"]["word"] == "unsafe-path", (name, asked["op"])
            assert not contents
        survey = controller.ask(controller.message("read", paths=[], originals=[name]))
        assert survey[0]["originals"] == {name: None}
    intact()
    assert not (site / ".patchq").exists()
    form.count("hostile names", "request", "refused", 4 * len(REFUSED))


@pytest.mark.parametrize("name", PLAIN)
def test_a_name_that_only_looks_like_a_way_out_is_that_very_file(ground, name):
    site, intact = ground
    controller = agent_lab.Controller(site)
    before = agent_lab.snapshot(site)

    controller.push({name: NEW})

    assert (
        Path(
            os.fsdecode(os.fsencode(site) + b"/" + name.encode("utf-8", "surrogateescape"))
        ).read_bytes()
        == NEW
    )
    made = [name, *(str(parent) for parent in Path(name).parents)]
    intact(*made, "demo-1.0.dist-info", "demo-1.0.dist-info/RECORD", "demo")
    controller.pop()
    after = agent_lab.snapshot(site)
    assert after == before
    form.count("hostile names", "plain names", "made and taken back")


@pytest.mark.parametrize("name", LONG, ids=("file", "folders", "text"))
def test_a_name_that_no_file_system_takes_is_told(ground, name):
    site, intact = ground
    controller = agent_lab.Controller(site)
    request, blobs = controller.push_request({"demo/new.py": NEW})
    request["entries"][0]["path"] = request["stack"][0]["changes"][0][0] = name

    for asked in (request, controller.message("survey", paths=[name])):
        answer, _ = serve.respond(asked, blobs)
        error = answer.get("error")
        assert error is None or (error["word"] != "bug" and error["why"]), error
        assert error is not None or asked is not request
    intact()


def forged_state(site, name):
    path = site / ".patchq/demo/state.json"
    document = json.loads(path.read_text())
    kept = document["originals"]
    kept[name] = kept.pop("demo/a.py")
    path.write_text(json.dumps(document))


def forged_journal(site, name, role, key="path"):
    kept = {"kind": "absent", "sha256": None, "mode": 0, "uid": 0, "gid": 0}
    entry = {"path": "demo/a.py", "role": role, "before": kept, "after": kept}
    entry |= {"new": None, "old": None, "keep": None, "gives": None, "plus": None, key: name}
    journal = {"schema": 1, "id": "a", "verb": "push", "since": "t", "who": "w", "generation": 1}
    info = {"name": "demo-1.0.dist-info", "metadata": None, "inode": [1, 2]}
    journal |= {"dist_info": info, "ledger": 0, "modules": [], "drop": [], "entries": [entry]}
    if role == "module":
        journal |= {"modules": [name], "entries": []}
    if role == "drop":
        journal |= {"drop": [name], "entries": []}
    (site / ".patchq/demo/journal").write_text(json.dumps(journal))


FORGED = {
    "state: original": forged_state,
    **{
        f"journal: {role}": lambda site, name, role=role: forged_journal(site, name, role)
        for role in ("file", "folder", "bytecode", "record", "own", "module", "drop")
    },
    **{
        f"journal: {key}": lambda site, name, key=key: forged_journal(site, name, "file", key)
        for key in ("new", "old", "keep", "gives")
    },
}


@pytest.mark.parametrize("carrier", FORGED)
def test_no_state_and_no_journal_leads_out(ground, carrier):
    site, intact = ground
    controller = agent_lab.Controller(site)
    controller.push({"demo/a.py": NEW})
    pop, blobs = controller.pop_request()
    shutil.copytree(site / ".patchq", site.parent / "kept")
    own = {
        "journal: record": "demo-1.0.dist-info/RECORD",
        "journal: own": ".patchq/demo/state.json",
    }
    for name in form.some([name for name in REFUSED if name != own.get(carrier)], 24):
        shutil.rmtree(site / ".patchq")
        shutil.copytree(site.parent / "kept", site / ".patchq")
        FORGED[carrier](site, name)
        for asked in (
            *(controller.message("recover", force=force) for force in (None, "old", "new")),
            pop,
            controller.message("read", paths=[], originals=[name]),
        ):
            answer, contents = serve.respond(dict(asked), dict(blobs))
            assert b"canary\n" not in contents.values()
            if asked["op"] != "read":
                assert "error" in answer, (name, asked["op"], answer)
                assert answer["error"]["word"] not in ("bug", "third-content")
    shutil.rmtree(site.parent / "kept")
    intact("demo", "demo/a.py", "demo-1.0.dist-info", "demo-1.0.dist-info/RECORD")
    form.count("hostile names", carrier, "refused", len(form.some(REFUSED, 24)))


def test_rows_of_record_that_lead_out_are_never_followed(ground):
    site, intact = ground
    path = site / "demo-1.0.dist-info/RECORD"
    rows = io.StringIO(newline="")
    names = [name for name in (*REFUSED, *LONG) if "\n" not in name and "\r" not in name]
    for name in names:
        csv.writer(rows).writerow([name, "sha256=" + "A" * 43, "1000000000"])
    whole = path.read_bytes() + rows.getvalue().encode("utf-8", "surrogatepass")
    path.write_bytes(whole)
    controller = agent_lab.Controller(site)

    answer, _ = serve.respond(controller.message("hash"), {})
    try:
        controller.push({"demo/a.py": NEW, "demo/new.py": NEW})
    except AgentError as error:
        told(error)
    else:
        controller.pop()

    said = answer.get("ok", {}).get("differs", {})
    assert not [name for name in said if name.startswith("/") or ".." in name.split("/")]
    assert path.read_bytes() == whole
    intact("demo", "demo-1.0.dist-info", "demo-1.0.dist-info/RECORD", "demo/a.py")


# Calls that change what a name leads to; -yy would tell descriptors' paths as well.
WRITES = (
    "open,openat,creat,rename,renameat,renameat2,link,linkat,symlink,symlinkat,unlink,unlinkat,"
    "mkdir,mkdirat,rmdir,mknod,mknodat,chmod,fchmodat,chown,lchown,fchownat,truncate,utimensat,"
    "setxattr,lsetxattr,removexattr,lremovexattr"
)


def test_every_path_that_the_agent_writes_is_below_the_site(tmp_path):
    """The real agent, told by the kernel."""
    tracer = shutil.which("strace")
    assert tracer is not None, "apt-get install strace"
    site = agent_lab.make_site(tmp_path / "site")
    trace, python = tmp_path / "trace", tmp_path / "python"
    line = f'exec {tracer} -f -qq -s 4096 -e trace={WRITES} -o {trace} {sys.executable} "$@"'
    python.write_text(f"#!/bin/sh\n{line}\n")
    python.chmod(0o755)

    with agent_lab.Process(str(python)) as process:
        controller = agent_lab.Controller(site, process.ask)
        controller.push({"demo/a.py": NEW, "demo/n/m.py": NEW, "demo/b.py": None})
        controller.push({"demo/tool.py": (b"#!x\n", False)}, "two")
        controller.pop()
        controller.recover()

    written, allowed = set(), (f"{site}/", f"{site}")
    for call in trace.read_text(errors="replace").splitlines():
        name = re.sub(r"^\d+ +", "", call).partition("(")[0]
        if name in ("open", "openat") and not re.search("O_WRONLY|O_RDWR|O_CREAT|O_TRUNC", call):
            continue
        written |= set(re.findall(r'"((?:[^"\\]|\\.)*)"', call))
    assert len(written) > 30
    assert [path for path in sorted(written) if not path.startswith(allowed)] == []
    form.count("paths written by the agent", "push, pop, recover", "below the site", len(written))


def bomb(size):
    """Return zlib of so many zeros, without having them."""
    deflate, parts = zlib.compressobj(9), []
    for _ in range(size >> 20):
        parts.append(deflate.compress(bytes(1 << 20)))
    return b"".join([*parts, deflate.flush()])


def huge_site(folder):
    site = agent_lab.make_site(folder / "site")
    controller = agent_lab.Controller(site)
    controller.push({"demo/a.py": NEW})
    return site, controller


def ask_all(controller, *ops, error=None):
    """Ask; every answer is one or an error with three parts, of the word `error` if given."""
    asked = {"paths": ["demo/a.py"], "originals": ["demo/a.py"], "known": []}
    asked["want"] = ["ledger", "patches", "records"]
    for op in ops or ("survey", "read", "hash", "recover"):
        answer, _ = serve.respond(controller.message(op, **asked), {})
        if "error" in answer:
            assert answer["error"]["word"] != "bug", answer["error"]["why"]
            assert all(answer["error"].values())
        if error:
            assert answer["error"]["word"] == error, answer


def sparse(path):
    with path.open("r+b") as file:
        file.truncate(1 << 30)


def many_receipts(folder):
    site, controller = huge_site(folder)
    path = site / ".patchq/demo/ledger.jsonl"
    line, last = json.loads(path.read_bytes()), b""
    with path.open("wb") as file:
        for number in range(MANY):
            line |= {"prev": protocol.sha256(last) if last else "", "id": f"r{number}"}
            last = json.dumps(line).encode()
            file.write(last + b"\n")
    ask_all(controller, "survey", "recover")
    # A push on top of it goes through.
    controller.push({"demo/data.json": b"[]\n"}, "two")


def many_entries(folder):
    site, controller = huge_site(folder)
    forged_journal(site, "demo/a.py", "file")
    path = site / ".patchq/demo/journal"
    journal = json.loads(path.read_bytes())
    (one,) = journal["entries"]
    journal["entries"] = [dict(one, path=f"demo/n{n}.py") for n in range(MANY)]
    path.write_text(json.dumps(journal))
    ask_all(controller, "survey", "recover")


def many_originals(folder):
    site, controller = huge_site(folder)
    path = site / ".patchq/demo/state.json"
    document = json.loads(path.read_bytes())
    one = document["originals"]["demo/a.py"]
    document["originals"] |= {f"demo/n{n}.py": one for n in range(MANY // 5)}
    path.write_text(json.dumps(document))
    ask_all(controller)


def state_of(text):
    def work(folder):
        site, controller = huge_site(folder)
        (site / ".patchq/demo/state.json").write_text(text)
        answer, _ = serve.respond(controller.message("survey", paths=["demo/a.py"]), {})
        assert answer["ok"]["refusal"]["word"] == "damaged-state"
        ask_all(controller)

    return work


def of_a_gigabyte(name):
    def work(folder):
        site, controller = huge_site(folder)
        sparse(site / name)
        asked = controller.message("survey", paths=["demo/a.py"], want=["ledger"])
        answer, _ = serve.respond(asked, {})
        assert name.endswith("lock") or "it has more than" in answer["error"]["why"]
        ask_all(controller)

    return work


def without_end(folder):
    """/proc has files that are regular, of no size, and of more bytes than any memory."""
    site, controller = huge_site(folder)
    path = site / "demo-1.0.dist-info/METADATA"
    path.unlink()
    path.symlink_to("/proc/self/pagemap")
    ask_all(controller, "survey", error="os-error")


def packed_text(folder):
    site, controller = huge_site(folder)
    text = base64.b64encode(bomb(1 << 30)).decode()
    document = {"schema": 1, "patches": {"0" * 64: text, "1" * 64: text}}
    (site / ".patchq/demo/patches.json").write_text(json.dumps(document))
    ask_all(controller)


def refused_by(call):
    def work(folder):
        try:
            call(folder)
        except PatchqError as error:
            told(error)

    return work


def many_members(folder):
    """One member's bytes, listed a hundred thousand times: nobody unpacks them."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("demo/a.py", bytes(1 << 20))
        (one,) = archive.filelist
        for number in range(MANY):
            other = zipfile.ZipInfo(f"demo/n{number}.py")
            for key in ("CRC", "compress_size", "file_size", "header_offset", "compress_type"):
                setattr(other, key, getattr(one, key))
            archive.filelist.append(other)
        archive.writestr("demo-1.0.dist-info/RECORD", b"")
    with pytest.raises(PatchqError) as caught:
        wheel.read(data, "demo-1.0-py3-none-any.whl", "demo")
    told(caught.value)


def hunks(count):
    lines = (f"@@ -{3 * n + 1} +{3 * n + 1} @@\n-a\n+b\n" for n in range(count))
    return ("--- a/demo/a.py\n+++ b/demo/a.py\n" + "".join(lines)).encode()


def files(count):
    return b"".join(raw_plain(f"demo/n{number}.py") for number in range(count))


HUGE = {
    "1,000,000 hunks": refused_by(lambda _: diff.parse(hunks(1_000_000), name="x.patch")),
    "100,000 files in a patch": refused_by(lambda _: diff.parse(files(100_000), name="x.patch")),
    "a hunk of 10^18 lines": refused_by(
        lambda _: diff.parse(
            b"--- a/x\n+++ b/x\n@@ -1,%d +1,%d @@\n-a\n+b\n" % (10**18, 10**18), name="x.patch"
        )
    ),
    "1,000,000 lines of a series": refused_by(
        lambda _: series.parse(b"".join(b"%d.patch\n" % n for n in range(1_000_000)))
    ),
    "a lock nested 100,000 deep": refused_by(lambda _: lock.parse(b"[" * 100_000)),
    "a lock of 1,000,000 paths": refused_by(
        lambda _: lock.parse(
            json.dumps(
                {"schema": 1, "patches": [{"reads": {str(n): 0 for n in range(10**6)}}]}
            ).encode()
        )
    ),
    "a sketch of brackets": refused_by(
        lambda _: sketch.load(b"# in a.py\nx = " + b"(" * 90_000 + b")" * 90_000, name="x.pyi")
    ),
    "a sketch of blocks": refused_by(
        lambda _: sketch.load(
            b"# in a.py\n" + b"".join(b" " * n + b"if 1:\n" for n in range(500)), name="x.pyi"
        )
    ),
    f"a wheel of {MANY:,} members in one": many_members,
    f"{MANY:,} receipts": many_receipts,
    f"{MANY:,} entries of a journal": many_entries,
    f"{MANY // 5:,} originals": many_originals,
    "2 patches of 1 GiB, packed": packed_text,
    "a file of /proc without end": without_end,
    **{
        f"1 GiB: {name}": of_a_gigabyte(name)
        for name in (
            *(".patchq/demo/state.json", ".patchq/demo/ledger.jsonl", ".patchq/demo/lock"),
            *("demo-1.0.dist-info/RECORD", "demo-1.0.dist-info/METADATA", "demo/a.py"),
        )
    },
    "a number of 10,000,000 digits": state_of(
        '{"schema":1,"generation":' + "9" * 10_000_000 + "}"
    ),
    "NaN": state_of('{"schema":1,"generation":NaN}'),
    "a number beyond all floats": state_of('{"schema":1,"generation":1e999}'),
    "a schema twice": state_of('{"schema":1,"schema":[]}'),
    "a lone surrogate": state_of('{"schema":1,"distribution":"\\ud800"}'),
    "objects nested 100,000 deep": state_of('{"schema":' * 100_000),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HUGE)
def test_what_has_no_measure_costs_neither_time_nor_memory_without_end(name, tmp_path):
    assert confined(lambda: HUGE[name](tmp_path), seconds=60, memory=1 << 10) == ""
    form.count("without measure", name, "60 s and 1 GiB at most")


@pytest.mark.parametrize("digits", [101, 100_000])
def test_a_number_of_many_digits_is_refused_whatever_python_does_with_it(digits):
    with pytest.raises(ValueError, match=f"a number has {digits} digits"):
        state.decoded(b"9" * digits)


@pytest.mark.parametrize(
    ("read", "why"),
    [
        (lambda: diff.parse(hunks(50_001), name="x.patch"), "50,000 hunks and files"),
        (lambda: series.parse(b"".join(b"%d.patch\n" % n for n in range(10_001))), "10,000"),
    ],
    ids=("hunks", "patches"),
)
def test_more_than_anybody_could_review_is_refused_by_its_count(read, why):
    with pytest.raises(PatchqError) as caught:
        read()
    told(caught.value)
    assert why in caught.value.what + caught.value.why


@contextlib.contextmanager
def masked(mask):
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def modes(site):
    """Return the modes of all that patchq made."""
    return {
        str(path.relative_to(site)): path.lstat().st_mode & 0o7777
        for path in sorted(site.rglob("*"))
        if ".patchq" in path.parts or "n" in path.parts
    }


@pytest.mark.parametrize(("folder", "file"), [(0o755, 0o644), (0o700, 0o600), (0o2775, 0o664)])
def test_modes_are_those_of_the_folder_under_any_mask(tmp_path, folder, file):
    found = []
    for mask in (0o000, 0o022, 0o077, 0o777):
        site = agent_lab.make_site(tmp_path / f"site{mask}")
        for path in (site, site / "demo"):
            path.chmod(folder)
        with masked(mask):
            controller = agent_lab.Controller(site)
            controller.push({"demo/a.py": NEW, "demo/n/m.py": NEW, "demo/b.py": None})
        found.append(modes(site))
        assert (site / "demo/a.py").stat().st_mode & 0o7777 == 0o644
        with masked(mask):
            controller.pop()
        assert not [path for path, mode in modes(site).items() if mode & 0o002]
    assert all(one.keys() == found[0].keys() for one in found)
    assert [one for one in found if one != found[0]] == []
    own = {m for path, m in found[0].items() if not path.startswith(".patchq/demo/originals/")}
    assert own == {folder, file}
    form.count("masks and modes", f"folders of mode {folder:o}", "same modes", 4)


def test_the_state_in_a_folder_that_anybody_can_write_is_not_anybodys(tmp_path):
    site = agent_lab.make_site(tmp_path / "site")
    site.chmod(0o1777)

    controller = agent_lab.Controller(site)
    controller.push({"demo/a.py": NEW})

    own = {path: mode for path, mode in modes(site).items() if "/originals/" not in path}
    assert not [path for path, mode in own.items() if mode & 0o002]
    controller.pop()


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("name", [".patchq", ".patchq/demo"])
@pytest.mark.parametrize("kind", ["another user's", "anybody's"])
def test_a_state_that_another_user_could_write_is_refused(tmp_path, name, kind):
    site = agent_lab.make_site(tmp_path / "site")
    controller = agent_lab.Controller(site)
    controller.push({"demo/a.py": NEW})
    if kind == "anybody's":
        (site / name).chmod(0o777)
    else:
        os.chown(site / name, 65533, 65533)
    before = agent_lab.snapshot(site)

    for change in (
        controller.pop,
        controller.recover,
        lambda: controller.push({"demo/b.py": NEW}),
    ):
        with pytest.raises(AgentError) as caught:
            change()
        assert caught.value.word == "not-writable"
        assert "not safe" in caught.value.what
        assert "chmod" in caught.value.mend
    assert agent_lab.snapshot(site) == before
    form.count("masks and modes", f"a state that is {kind}", "refused")


@pytest.mark.slow
@pytest.mark.parametrize("name", form.some([n for n in REFUSED if "\0" not in n], 4))
@pytest.mark.parametrize("carrier", ["diff --git", "rename to"])
def test_a_hostile_patch_is_told_on_a_terminal_in_plain_text(world, name, carrier):
    """What a name holds is shown, never sent: no escape, no other line, no other direction."""
    (world.series / "30-text.patch").write_bytes(PATCHES[carrier](name))
    before = agent_lab.snapshot(world.root)

    for args in (
        ("lint", "--queue", world.queue),
        ("push", "-a", "--target", world.site, "--queue", world.queue),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "patchq", *map(str, args)],
            capture_output=True,
            cwd=world.root,
            env=os.environ | {"PATCHQ_CACHE": str(world.root / "cache"), "HOME": str(world.root)},
        )
        said = (done.stdout + done.stderr).decode(errors="surrogateescape")
        assert done.returncode not in (0, 70), said
        assert "mend: " in said
        assert not re.search(
            "[\0-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]", said
        )
    after = agent_lab.snapshot(world.root)
    assert {p for p in before.keys() ^ after.keys() if not p.startswith("cache/")} == set()
    form.count("hostile names", f"patchq push: {carrier}", "told in plain text")
