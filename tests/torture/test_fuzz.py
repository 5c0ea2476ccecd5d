"""Every parser of patchq, and the wire in both directions, on bytes that somebody spoiled.

What comes out is a value or an error with three parts; never another exception, never
more than two seconds of processor time for 64 KiB, and no more than 1 GiB of memory.
"""

import contextlib
import copy
import io
import json
import random
import shutil
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import settings as budget
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))

import agent_lab

from patchq.agent import bytecode, protocol, serve
from patchq.agent.facts import RefusalError
from patchq.conversation import audit, commit, differing, ledger, move, names, undo, view
from patchq.conversation.diffform import Form
from patchq.conversation.goal import Upto
from patchq.engine import cquote, diff, sketch
from patchq.errors import PatchqError
from patchq.inventory import ansible, files, hostset
from patchq.inventory.values import Origin
from patchq.queue import lock, patchfile, series, store, table
from patchq.releases import names as release_names
from patchq.releases import pages, ranges, record, settings, wheel
from patchq.transport import hosts, knownlines, sshconfig
from patchq.transport.channel import Broken, Exchange
from tests import world as worlds
from tests.torture import form, mutation
from tests.torture.confinement import confined, timed
from tests.torture.telling import told

PAGE = "https://index.example/simple/demo/"
JSON = "application/vnd.pypi.simple.v1+json"
SOURCE = b"class A:\n    def f(self):\n        return [1, 2]\n"
NONCE = b"0123abcd"


def _sketch(data, folder):
    read = sketch.load(data, name="x.pyi")
    sketch.judge(read, "1.0", lambda path: SOURCE)
    sketch.givens(read, "1.0")
    sketch.leaves(read, "1.0", lambda path: SOURCE)


def _table(data, folder):
    path = folder / "q"
    path.mkdir(exist_ok=True)
    (path / "queue.toml").write_bytes(data)
    store.open(path)


def _record(data, folder):
    with contextlib.suppress(record.RecordError):  # the caller names the wheel
        record.parse(data)


def _pip(data, folder):
    path = folder / "pip.conf"
    path.write_bytes(data)
    settings.load({"PIP_CONFIG_FILE": str(path), "HOME": str(folder)}, prefix=folder)


def _known(data, folder):
    path = folder / "known_hosts"
    path.write_bytes(data)
    lines = knownlines.read(path)
    assert all(entry.names for name in ("host", "[h]:22") for entry in lines.about(name))


def _ssh(data, folder):
    path = folder / "config"
    path.write_bytes(data)
    read = sshconfig.read(path, None)
    assert read.names is not None
    read.options(sshconfig.Facts("host", "somebody", "me"))


def _hostset(data, folder):
    text = data.decode(errors="surrogateescape")
    for host in hostset.expand([text], ["gpu1", "gpu2"])[:50]:
        hosts.parse(host)


def _inventory(data, folder):
    path = folder / "fleet.toml"
    path.write_bytes(data)
    found = files.load(folder, {"PATH": ""}, folder / "none", [str(path)])
    for name in found.hosts[:50]:
        known = found.find(name)
        assert known.problem is not None or known.argv() != ()


def _listed(data, folder):
    document = None
    with contextlib.suppress(ValueError, RecursionError):  # the caller says that it is no JSON
        document = json.loads(data)
    ansible.read(document, Origin("inventory.ini"))


def _unquoted(data, folder):
    cquote.unquote(data.decode(errors="surrogateescape"))
    release_names.version(data.decode(errors="replace"))


def _range(data, folder):
    """A server's headers, as they come."""
    text = data.decode("latin-1")

    answer = SimpleNamespace(headers={"content-range": text, "etag": text}, url=PAGE, status=206)
    with contextlib.suppress(ranges.NoRangesError):
        ranges._content_range(answer)
    ranges._validator(answer)


def _header(data, folder):
    site = folder / "pyc"
    site.mkdir(exist_ok=True)
    (site / "m.pyc").write_bytes(data)
    bytecode.unchecked(str(site), "m.pyc")


def _frame(data, folder):
    with contextlib.suppress(protocol.ProtocolError):
        head, tail = protocol.lengths(data[:8])
        protocol.unpack(data[8 : 8 + head], data[8 + head : 8 + head + tail])


def _agent(data, folder):
    """The other end: an agent that gets nonsense leaves, and says why on stderr."""
    with contextlib.suppress(protocol.ProtocolError):
        serve.main(io.BytesIO(data), io.BytesIO(), b"n", deadline=0)


# Parser: what it is fed with, and texts that it takes.
PARSERS = {
    "diff": (
        lambda data, folder: diff.parse(data, name="x.patch"),
        [worlds.PI.encode(), worlds.FOOT.encode()],
    ),
    "series": (lambda data, folder: series.parse(data), [b"# c\na.patch -p1 # hi\nb.patch -R\n"]),
    "sketch": (
        _sketch,
        [
            *(text.encode() for text in worlds.SKETCHES.values()),
            b"# in a.py when >=1.0: note\nclass A:\n    def f(self):  # given\n"
            b"        return [1, ...]\n# absent\nx = _y_\n",
        ],
    ),
    "series.lock": (
        lambda data, folder: lock.parse(data),
        [
            b'{"schema":1,"distribution":"demo","release":"1.0","tree":"00","patches":[{"name":'
            b'"a.patch","options":"","patch":"' + b"0" * 64 + b'","sketch":null,"changes":'
            b'[["demo/a.py",["absent",false,null],["file",true,"' + b"1" * 64 + b'"]]],'
            b'"reads":{"demo/b.py":null}}]}'
        ],
    ),
    "DEP-3 header": (
        lambda data, folder: patchfile.fields(data),
        [
            b"Description: a\n b\n .\nAuthor: x\nBug: 1\n---\n",
            b"From 123456789 Mon\nFrom: x\nSubject: y\n\ntext\n",
        ],
    ),
    "queue.toml": (
        _table,
        [
            b'distribution = "demo"\nsummary = "x"\nupstream = ["a"]\n'
            b'[patches.10-pi]\nfor = "<2"\nupstream = "u"\n'
        ],
    ),
    "RECORD of a wheel": (
        _record,
        [b'demo/a.py,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\r\n"a,b",,\r\n'],
    ),
    "HTML page": (
        lambda data, folder: pages._parse(data, "text/html", PAGE, "demo", PAGE),
        [
            b'<html><base href="/x/"><a href="demo-1.0-py3-none-any.whl#sha256=00" '
            b'data-requires-python="&gt;=3" data-yanked="x">demo</a>'
        ],
    ),
    "JSON page": (
        lambda data, folder: pages._parse(data, JSON, PAGE, "demo", PAGE),
        [
            b'{"files":[{"filename":"demo-1.0-py3-none-any.whl","url":"a/demo.whl","hashes":'
            b'{"sha256":"00"},"requires-python":">=3","yanked":true}]}'
        ],
    ),
    "pip.conf": (
        _pip,
        [
            b"[global]\nindex-url = https://index.example/simple\nextra-index-url = a\n  b\n"
            b"timeout = 3\nretries = 2\n[install]\nno-index = true\nfind-links = /x\n"
        ],
    ),
    "known_hosts": (
        _known,
        [
            b"host,|1|F1E1KeoE/eEWhi10WpGv4OdiO6Y=|3988QV0VE8wmZL7suNrYQLITLCg= ssh-ed25519 "
            b"AAAAC3NzaC1lZDI1NTE5AAAAIJ\n@revoked *.x,!y ssh-rsa AAAA\n[h]:22 ssh-rsa AAAAB3\n"
        ],
    ),
    "ssh_config": (
        _ssh,
        [
            b'Host host *.x !y\n  HostName %h.z\n  Port 22\n  IdentityFile "~/.ssh/a b"\n'
            b'Match host "x*" user u,v\n  User = z\nMatch exec "true"\nInclude nothing/*\n'
        ],
    ),
    "hosts of -H": (
        _hostset,
        [
            b"gpu[01-64,70],!gpu07,u@db:2222,gpu*,[::1]:22",
            b'command:docker exec -i "a b" python',
        ],
    ),
    "hosts.toml": (
        _inventory,
        [
            b'[all]\nuser = "ops"\naddress = "{name}.x"\n[groups.g]\n'
            b'hosts = ["a[1-3]", "@h", "!a2"]\nwanted = ["q"]\nenvironment = "/opt/v"\n'
            b'[groups.h]\nhosts = ["b"]\n[hosts."a[2-3]"]\n'
            b'port = 22\ncommand = "docker exec {name} sh -c"\nbecome = true\ntarget = "/s"\n'
        ],
    ),
    "list of Ansible's": (
        _listed,
        [
            b'{"_meta":{"hostvars":{"a":{"ansible_host":"10.0.0.1","ansible_port":22,"ansible_become":'
            b'"yes","ansible_connection":"docker"}}},"all":{"children":["g"]},"g":{"hosts":["a"]}}'
        ],
    ),
    "C quotes": (_unquoted, [b'a/caf\\303\\251 \\"x\\".py', b"1.0rc1.post2+local"]),
    "Content-Range": (_range, [b"bytes 0-0/1234", b'W/"abc"']),
    "header of a .pyc": (_header, [b"\xa7\r\r\n" + bytes(12)]),
    "frame": (_frame, [protocol.pack({"ok": {"a": [1, None]}}, {protocol.sha256(b"x"): b"x"})]),
    "request": (_agent, [protocol.pack({"op": "records", "target": "/nowhere"})]),
}


# What once made a parser fail in another way, or took it too long.
FOUND = {
    "series": [b"a" + b" " * 65_000 + b"b\n", b"a.patch -" + b"9" * 65_000 + b"x\n"],
    "sketch": [b"# in a.py\nx = " + b"a," * 32_000, b"# in a.py\nx = 1\n" + b"\n" * 64_000],
    "HTML page": [b"<![x", b"<![CDATA <a>", b'<a href="// [x">demo</a>', b"<![" * 20_000],
    "JSON page": [b"[" * 65_000, b'{"files":' * 7_000],
    "pip.conf": [b"[global]\nx" + b"\v" * 65_000 + b"y", b"[global]\nretries = nan\n"],
    "hosts of -H": [b"," * 65_000, b"a*" + b"<![" * 21_000],
    "Content-Range": [b"bytes 0-" + b"9" * 5_000 + b"/7"],
}


def _judged(feed, data, folder):
    """Feed one text; what is raised is an error with three parts, in time."""
    try:
        timed(lambda: feed(data, folder))
    except (PatchqError, RefusalError) as error:
        told(error)
    except BaseException as error:
        raise AssertionError(f"{data[:100]!r} ... {data[-100:]!r} ({len(data)})") from error


def _fuzz(feed, seeds, folder, name, number, growing):
    chance = random.Random(name)
    for _ in range(number):
        _judged(feed, mutation.spoiled(chance.choice(seeds), chance), folder)
    for seed in seeds if growing else ():
        for data in form.some([*mutation.grown(seed)], 12):
            _judged(feed, data, folder)


@pytest.mark.parametrize("name", PARSERS)
def test_a_parser_gives_a_value_or_an_error_with_three_parts(name, tmp_path):
    feed, seeds = PARSERS[name]
    number = 20_000 if form.LONG else 60

    def work():
        for data in FOUND.get(name, ()):
            _judged(feed, data, tmp_path)
        _fuzz(feed, seeds, tmp_path, name, number, growing=True)

    assert confined(work, seconds=900) == ""
    form.count("fuzzed parsers", name, "spoiled texts", number)
    form.count("fuzzed parsers", name, "grown to 64 KiB", 3 * len(mutation.TOKENS) * len(seeds))


@given(st.binary(max_size=300))
@budget(max_examples=3_000 if form.LONG else 30, deadline=None)
def test_any_bytes_at_all_are_taken_or_told(tmp_path_factory, data):
    folder = tmp_path_factory.getbasetemp()
    for feed, _ in PARSERS.values():
        _judged(feed, data, folder)
    form.count("fuzzed parsers", "all", "any bytes", len(PARSERS))


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=9))
@budget(max_examples=500 if form.LONG else 20, deadline=None)
def test_a_queue_toml_of_any_values_is_taken_or_told(value):
    for key in ("distribution", "summary", "owner", "upstream", "patches", "x"):
        document = {"distribution": "demo", "summary": "x", key: value}
        try:
            table.read(document, source="queue.toml")
        except PatchqError as error:
            told(error)
    with pytest.raises(tomllib.TOMLDecodeError):
        tomllib.loads("= =")


def test_a_wheel_that_somebody_spoiled_is_read_or_refused(tmp_path):
    data = worlds.wheel(tmp_path, worlds.FILES).read_bytes()
    read = lambda data, folder: wheel.read(  # noqa: E731
        io.BytesIO(data), "demo-1.0-py3-none-any.whl", "demo"
    )
    directory = data.rindex(b"PK\1\2") - 200
    number = 20_000 if form.LONG else 150

    def work():
        _fuzz(read, [data], tmp_path, "wheel", number, form.LONG)
        chance = random.Random(8)
        for _ in range(number):
            tail = mutation.spoiled(data[directory:], chance)
            _judged(read, data[:directory] + tail, tmp_path)

    assert confined(work, seconds=900) == ""
    form.count("fuzzed parsers", "wheel", "spoiled texts", 2 * number)


# What patchq keeps in an environment, and what an installer does, by its path.
KEPT = (
    ".patchq/demo/state.json",
    ".patchq/demo/patches.json",
    ".patchq/demo/ledger.jsonl",
    ".patchq/demo/journal",
    ".patchq/demo/lock",
    "demo-1.0.dist-info/RECORD",
    "demo-1.0.dist-info/METADATA",
    "demo-1.0.dist-info/INSTALLER",
    "demo-1.0.dist-info/direct_url.json",
)


def _pushed(tmp_path):
    site = agent_lab.make_site(tmp_path / "site")
    controller = agent_lab.Controller(site)
    controller.push({"demo/a.py": b"x = 2\n", "demo/n.py": b"n = 1\n", "demo/b.py": None})
    (site / "demo-1.0.dist-info/direct_url.json").write_text(
        '{"url":"file:///x","dir_info":{"editable":false}}'
    )
    journal = {
        "schema": 1,
        **{"id": "a", "verb": "push", "since": "t", "who": "w", "generation": 1, "ledger": 0},
        "dist_info": {"name": "demo-1.0.dist-info", "metadata": None, "inode": [1, 2]},
        **{"modules": ["demo/a.py"], "drop": ["1-0"], "entries": []},
    }
    (tmp_path / "journal").write_text(json.dumps(journal))
    return site, controller


@pytest.mark.slow
@pytest.mark.parametrize("path", KEPT)
def test_what_is_kept_in_an_environment_is_read_or_told_by_every_verb(path, tmp_path):
    site, controller = _pushed(tmp_path)
    asked = {"paths": ["demo/a.py"], "originals": ["demo/a.py"], "known": [], "ledgers": True}
    asked["want"] = ["ledger", "patches", "records"]
    verbs = [(controller.message(op, **asked), {}) for op in ("survey", "read", "hash", "records")]
    verbs += [controller.pop_request(), (controller.message("recover"), {})]
    whole, pattern = tmp_path / "site", tmp_path / "pattern"
    shutil.copytree(whole, pattern, symlinks=True)
    seed = (tmp_path / "journal" if path.endswith("journal") else site / path).read_bytes()

    def feed(data, folder):
        shutil.rmtree(whole)
        shutil.copytree(pattern, whole, symlinks=True)
        (site / path).write_bytes(data)
        for message, blobs in verbs:
            answer, _ = serve.respond(copy.deepcopy(message), dict(blobs))
            if "error" in answer:
                error = answer["error"]
                assert error["word"] != "bug", error["why"]
                assert error["what"]
                assert error["why"]
                assert error["mend"]

    number = 4_000 if form.LONG else 25

    def work():
        _fuzz(feed, [seed or b"x"], tmp_path, path, number, form.LONG)
        for data in [b"[" * 65_000, *form.some([*mutation.grown(seed or b"x")], 6)]:
            _judged(feed, data, tmp_path)
        if path.endswith((".json", "journal")):
            chance = random.Random(path)
            for _ in range(number):
                document = mutation.values(json.loads(seed), chance)
                _judged(feed, json.dumps(document).encode(), tmp_path)

    assert confined(work, seconds=1_800) == ""
    form.count("fuzzed files of an environment", path, "spoiled texts", number)


def test_a_request_of_any_values_gets_an_answer(tmp_path):
    """Another controller's, or a damaged one; every operation."""
    site, controller = _pushed(tmp_path)
    push, blobs = controller.push_request({"demo/tool.py": b"#!x\n"}, "two")
    asked = {"paths": ["demo/a.py"], "originals": ["demo/a.py"], "known": []}
    asked |= {"want": ["ledger"]}
    asked |= {"skip": [".so"], "who": "w", "force": None}
    questions = [controller.message(op, **asked) for op in ("survey", "read", "hash", "recover")]
    questions += [push, controller.pop_request()[0]]
    questions.append({**push, "op": "settle", "id": "a1"})
    chance = random.Random(3)
    number = 20_000 if form.LONG else 250
    before = agent_lab.snapshot(tmp_path, inodes=False).keys()

    def work():
        for question in ({"op": op} for op in ("survey", "read", "hash", "commit", "settle", "x")):
            assert serve.respond(question, {})[0]["error"]["word"] != "bug"
        for _ in range(number):
            question = mutation.values(copy.deepcopy(chance.choice(questions)), chance)
            question["target"] = str(site) if "target" in question else str(tmp_path / "none")
            answer, _ = serve.respond(question, dict(blobs))
            error = answer.get("error")
            assert error is None or error["word"] != "bug", (question, error["why"])

    assert confined(work, seconds=600) == ""
    after = agent_lab.snapshot(tmp_path, inodes=False).keys()
    assert {name for name in after ^ before if not name.startswith("site/")} == set()
    form.count("fuzzed wire", "controller to agent", "requests", number)


def _hold(conversation, change):
    """Drive a conversation over the wire with an agent whose answers `change` spoils."""
    exchange = Exchange(conversation, NONCE, b"")
    sent = exchange.start()
    received = protocol.marker(NONCE)
    try:
        while not exchange.done and sent:
            head, _ = protocol.lengths(sent[:8])
            question, blobs = protocol.unpack(sent[8 : 8 + head], sent[8 + head :])
            received += change(*serve.respond(question, blobs))
            sent = exchange.feed(received)
            received = b""
    except Broken:
        pass
    except PatchqError as error:
        told(error)
    finally:
        exchange.close()


def _verbs(world):
    aim = view.Aim(
        (store.open(world.queue),), lambda: world.root / "cache", "q", str(world.site), True
    )
    ground = commit.Ground("somebody", "here")
    return {
        "push": lambda: move.push(aim, ground, Upto(None, True)),
        "status": lambda: names.status(aim),
        "log": lambda: ledger.log(aim),
        "diff": lambda: differing.diff(aim, differing.Ask(pending=True), Form()),
        "audit": lambda: audit.audit(aim),
        "audit --verify": lambda: audit.audit(aim, True),
        "pop": lambda: move.pop(aim, ground, Upto(None, True)),
        "undo": lambda: undo.undo(aim, ground),
        "recover": lambda: undo.recover(aim, ground, None),
    }


VERBS = ("push", "status", "log", "diff", "audit", "audit --verify", "pop", "undo", "recover")


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_a_hostile_host_makes_no_verb_fail_in_another_way_or_write(verb, world):
    """The controller's files are as they were, whatever the host answers."""
    _hold(_verbs(world)["push"](), lambda answer, blobs: protocol.pack(answer, blobs))
    chance = random.Random(verb)
    number = 3_000 if form.LONG else 40
    outside = {path: path.read_bytes() for path in _outside(world)}

    def lacking(answer, blobs):
        """What once made a verb fail: a key that may be null is not there, and odd receipts."""
        answer = copy.deepcopy(answer)
        answer.get("ok", {}).pop("record", None)
        for one in answer.get("ok", {}).get("ledger") or ():
            one["patches"] = {"push": 5}
        return protocol.pack(answer, blobs)

    def forgotten(answer, blobs):
        answer = copy.deepcopy(answer)
        if answer.get("ok", {}).get("state"):
            answer["ok"].update(orphaned="it is gone", state={"stack": [5, {"queue": []}]})
        return protocol.pack(answer, blobs)

    def change(answer, blobs):
        kind = chance.randrange(6)
        if kind < 2 and "python" in answer.get("ok", ()):
            answer["ok"]["orphaned"] = "it is gone"
        if kind < 4:
            answer = mutation.values(copy.deepcopy(answer), chance)
        frame = protocol.pack(answer if isinstance(answer, dict) else {"ok": answer}, blobs)
        return mutation.spoiled(frame, chance) if kind == 4 else frame * chance.choice((1, 1, 2))

    def work():
        for one in (lacking, forgotten, *[change] * number):
            _hold(_verbs(world)[verb](), one)

    assert confined(work, seconds=1_800) == ""
    assert {path: path.read_bytes() for path in _outside(world)} == outside
    form.count("fuzzed wire", "agent to controller", verb, number)


def _outside(world):
    """Yield every file of the world but those of the environment and kept verdicts."""
    for path in world.root.rglob("*"):
        inside = path.relative_to(world.root).parts
        if path.is_file() and inside[0] != "site" and "verdicts" not in inside:
            yield path
