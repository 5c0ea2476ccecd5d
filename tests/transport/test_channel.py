import json
import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from patchq.agent import protocol
from patchq.errors import ExitCode, HostError, PatchqError
from patchq.transport import channel, requests
from patchq.transport.channel import Exchange, Request

NONCE = b"0123abcd"
CONTENT = b"def f(x: tuple[int, ...]) -> None: ...\n"


def twice():
    first = yield Request({"op": "records"})
    second = yield Request({"op": "commit"}, first.blobs)
    return first.message["ok"]["records"], second.message["ok"]["receipt"]


def answer(ok, *contents):
    return protocol.pack({"ok": ok}, {protocol.sha256(data): data for data in contents})


ONE, TWO = {"records": ["demo"]}, {"receipt": {"id": "r1"}}


def begun(conversation=None):
    exchange = Exchange(conversation or twice(), NONCE, b"payload")
    exchange.start()
    return exchange


def test_payload_and_first_request_go_in_one_write():
    exchange = Exchange(twice(), NONCE, b"payload")

    assert exchange.start() == b"payload" + protocol.pack({"op": "records"})


def test_what_was_sent_is_known_again_where_a_shell_quotes_it():
    payload = b"exit 99 # patchq1\nfrom a import b\n\x9cabcdefghij\xb6k\x13\n"
    exchange = Exchange(twice(), NONCE, payload)
    exchange.start()

    assert exchange.echoed(b"fish: Missing end\n   from a import b\n   ^^\n")
    assert exchange.echoed("fish: oh\n\uf69cabcdefghij\uf6b6k\x13\n^".encode())
    assert not exchange.echoed(b"bash: line 1: exec: python3: not found\nimport\n")


def test_answer_may_take_as_long_as_the_bytes_of_its_request():
    exchange = begun()
    assert exchange.limit(channel.Deadlines(sync=7)) == 7

    exchange.feed(protocol.marker(NONCE) + answer(ONE, random.Random(1).randbytes(410_000)))

    assert exchange.limit(channel.Deadlines(request=300)) == 400
    assert "'commit' came within 400 s" in exchange.overdue(channel.Deadlines(request=300))


def test_conversation_goes_on_however_the_stream_is_cut():
    stream = b"Welcome!\n" + protocol.marker(NONCE) + answer(ONE, CONTENT) + answer(TWO)
    exchange = begun()

    sent = b"".join(exchange.feed(stream[at : at + 1]) for at in range(len(stream)))

    assert sent == protocol.pack({"op": "commit"}, {protocol.sha256(CONTENT): CONTENT})
    assert exchange.done
    assert exchange.result == (["demo"], {"id": "r1"})
    assert exchange.noise == b"Welcome!\n"


def test_noise_that_looks_like_a_marker_of_another_run_is_noise():
    exchange = begun()

    exchange.feed(protocol.marker(b"ffffffff") + protocol.marker(NONCE) + answer(ONE))

    assert exchange.synced
    assert exchange.noise == protocol.marker(b"ffffffff")


def test_noise_without_end_is_given_up():
    exchange = begun()

    exchange.feed(b"y\n" * (channel.NOISE_LIMIT // 2))
    with pytest.raises(channel.Broken, match="more than 1 MiB"):
        exchange.feed(b"y\n")

    assert exchange.noise.startswith(b"y\ny\n")
    assert len(exchange.noise) == channel.NOISE_LIMIT


@pytest.mark.parametrize(
    "frame",
    [
        b"\xff" * 8,
        protocol.HEADER.pack(4, 0) + b"oops",
        protocol.pack({"neither": 1}),
        protocol.pack({"ok": 1}, {protocol.sha256(b"other"): b"bytes"}),
    ],
    ids=["too large", "no JSON", "no answer", "damaged content"],
)
def test_frame_that_is_none_breaks_the_stream(frame):
    with pytest.raises(channel.Broken):
        begun().feed(protocol.marker(NONCE) + frame)


@pytest.mark.parametrize(
    ("word", "code"), [("changed", ExitCode.CONFLICT), ("locked", ExitCode.FAILED)]
)
def test_refusal_is_raised_where_the_verb_asked(word, code):
    refusal = protocol.pack({"error": {"word": word, "what": "no", "why": "so", "mend": "go"}})

    with pytest.raises(channel.AgentError) as caught:
        begun().feed(protocol.marker(NONCE) + refusal)

    error = caught.value
    assert (error.word, error.what, error.why, error.mend) == (word, "no", "so", "go")
    assert error.exit_code == code


def test_verb_may_go_on_after_a_refusal():
    def stubborn():
        try:
            yield Request({"op": "survey"})
        except channel.AgentError:
            reply = yield Request({"op": "records"})
        return reply.message["ok"]

    exchange = begun(stubborn())
    refusal = protocol.pack({"error": {"word": "locked"}})

    assert exchange.feed(protocol.marker(NONCE) + refusal) == protocol.pack({"op": "records"})
    exchange.feed(answer(ONE))
    assert exchange.result == ONE


def test_exchange_knows_while_a_change_is_not_answered():
    exchange = begun()
    assert not exchange.writing

    exchange.feed(protocol.marker(NONCE) + answer(ONE))
    assert exchange.writing

    exchange.feed(answer(TWO))
    assert not exchange.writing


def test_conversation_that_asks_nothing_sends_nothing():
    def nothing():
        return 7
        yield

    exchange = Exchange(nothing(), NONCE, b"payload")

    assert exchange.start() == b""
    assert exchange.result == 7


def test_closing_ends_the_verb():
    ended = []

    def careful():
        try:
            yield Request({"op": "survey"})
        finally:
            ended.append(True)

    begun(careful()).close()

    assert ended


ROOT = Path(__file__).parents[2]
# Stands where a shell of a host should: it says that it is an agent, and answers what it likes.
HOST = """\
import sys, zlib
sys.path.insert(0, %r)
from patchq.agent import protocol
nonce = sys.stdin.buffer.readline().split()[-2]
sys.stdout.buffer.write(protocol.marker(nonce))
def send(head, tail=b"", sizes=None):
    sys.stdout.buffer.write(protocol.HEADER.pack(*(sizes or (len(head), len(tail)))) + head + tail)
    sys.stdout.buffer.flush()
%s
sys.stdin.buffer.read()
"""
CONTROLLER = """\
import sys
from patchq.errors import PatchqError
from patchq.transport import command
from tests.transport import talk
try:
    command.converse([sys.executable, "-c", sys.argv[1]], None, talk.contents("/", "a"))
except PatchqError as error:
    print(int(error.exit_code), error.why, file=sys.stderr)
status = open("/proc/self/status").read()
print(int(status.partition("VmHWM:")[2].split()[0]) // 1000)
"""


def faced(answers):
    """Return what a controller of its own process told, and its peak of memory in MB."""
    done = subprocess.run(
        [sys.executable, "-c", CONTROLLER, HOST % (str(ROOT), answers)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=60,
        check=True,
    )
    return done.stderr, int(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ("send(b'', b'', (1 << 29, 1 << 29))", "536.9 MB of text; patchq takes at most 16.8 MB"),
        (
            "send(b'', b'', (0, 1 << 30)); sys.stdout.buffer.write(bytes(1 << 28))",
            "1073.7 MB of packed contents; patchq takes at most 33.6 MB",
        ),
        (
            'send(b\'{"ok":{},"blobs":[["%s",1073741824]]}\' % (b\'a\' * 64), zlib.compress('
            "bytes(1 << 28)))",
            "1073.7 MB of contents; patchq takes at most 41.9 MB",
        ),
        (
            "data = bytes(40 << 20); name = protocol.sha256(data).encode()\n"
            'send(b\'{"ok":{},"blobs":[["%s",%d]]}\' % (name, len(data)), zlib.compress(data))',
            "files is NoneType, not dict",
        ),
        ("send(b'{\"ok\":[' + b'[],' * 5500000 + b'0]}')", "values; patchq takes at most 786432"),
    ],
    ids=["a long frame", "a flood", "a zip bomb", "a bomb within the limit", "a JSON bomb"],
)
def test_no_host_makes_the_controller_take_200_megabytes(answers, reason):
    told, peak = faced(answers)

    assert told.startswith(f"{int(HostError.exit_code)} its answer is not taken: ")
    assert reason in told
    assert peak < 200


@pytest.mark.parametrize(
    "answer",
    [
        b'{"ok":' + b"[" * 200_000 + b"]" * 200_000 + b',"blobs":[]}',
        b'{"error":"boo","blobs":[]}',
        b'{"error":["boo"],"blobs":[]}',
        b'{"error":null,"blobs":[]}',
        b'{"ok":5,"blobs":[]}',
        b'{"ok":null,"blobs":[]}',
        b'{"ok":{},"blobs":[]}',
        b'{"ok":{"records":[{}]},"blobs":[]}',
        b'{"ok":{"records":[]},"blobs":[[{},5]]}',
        b'{"ok":{"records":[]},"blobs":[[["a"],0]]}',
        b'{"ok":{"records":[]},"blobs":[["a",Infinity]]}',
        b'{"ok":{"records":[]},"blobs":[["a",-1]]}',
        b"[]",
    ],
)
def test_answer_that_no_verb_can_read_breaks_the_stream(answer):
    frame = protocol.HEADER.pack(len(answer), 0) + answer

    with pytest.raises(channel.Broken, match="its answer is not taken") as caught:
        begun().feed(protocol.marker(NONCE) + frame)

    assert len(str(caught.value)) < 500


def test_change_that_is_answered_by_nonsense_has_no_known_outcome():
    exchange = begun()
    exchange.feed(protocol.marker(NONCE) + answer(ONE))

    with pytest.raises(channel.Broken, match="receipt is NoneType"):
        exchange.feed(answer({}))

    assert exchange.writing


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ({"word": 5, "what": 7}, ("5", "7", "it does not say", "patchq status")),
        ({"what": {"a": 1}, "why": []}, ("failed", "the agent refused", "it does not say", ...)),
        (
            dict.fromkeys(("word", "what", "why", "mend"), "x" * 100_000),
            ("x" * 100 + " ...", "x" * 2000 + " ...", "x" * 20_000 + " ...", "x" * 2000 + " ..."),
        ),
    ],
)
def test_refusal_is_text_of_some_length(error, told):
    with pytest.raises(channel.AgentError) as caught:
        begun().feed(protocol.marker(NONCE) + protocol.pack({"error": error}))

    found = caught.value.word, caught.value.what, caught.value.why, caught.value.mend
    assert found[:3] == told[:3]
    assert told[3] in (found[3], ...)


def test_what_follows_an_answer_is_kept():
    exchange = begun()
    two = answer(TWO)

    exchange.feed(protocol.marker(NONCE) + answer(ONE, CONTENT) + two[:10])
    exchange.feed(two[10:])

    assert exchange.result == (["demo"], {"id": "r1"})


def asking(request):
    yield request


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (Request({"op": "commit"}, {"a": bytes(50_000_000)}), "50.0 MB of contents"),
        (Request({"op": "commit", "paths": "x" * 20_000_000}), "20.0 MB of text"),
        (
            Request({"op": "commit"}, {"a": random.Random(1).randbytes(36_000_000)}),
            "36.0 MB of packed contents",
        ),
    ],
    ids=["contents", "text", "packed"],
)
@pytest.mark.slow
def test_request_that_no_agent_would_take_is_not_sent(request_, reason):
    exchange = Exchange(asking(request_), NONCE, b"payload")

    with pytest.raises(channel.TooLarge, match="'commit' is too large") as caught:
        exchange.start()

    assert isinstance(caught.value, PatchqError)
    assert reason in caught.value.why
    assert not exchange.writing


def test_push_of_a_thousand_patches_is_sent():
    state = ["file", False, protocol.sha256(b"")]
    change = ["demo/a/path/of/usual/length/module.py", state, state]
    patch = {"queue": "q", "patch": "0001-a-name-as-git-makes.patch", "changes": [change] * 10}
    entries = [{"path": change[0], "before": state, "after": state, "original": False}] * 10_000
    text = "\n".join(f"+    value_{n} = compute({n}, {n * 7919})" for n in range(250)).encode()
    blobs = {protocol.sha256(b"%d" % n): b"%d" % n + text for n in range(1000)}
    request = Request({"op": "commit", "stack": [patch] * 1000, "entries": entries}, blobs)

    assert Exchange(asking(request), NONCE, b"").start()


def test_any_damaged_answer_breaks_the_stream_or_is_taken():
    chance = random.Random(11)
    frame = answer({**ONE, "more": [1, {"a": None}, "text"]}, CONTENT)
    outcomes = set()
    for _ in range(300):
        data = bytearray(frame)
        for _ in range(chance.choice((1, 1, 3))):
            data[chance.randrange(len(data))] = chance.choice((0, 0xFF, *b'[]{},:"0', 0x41))
        exchange = begun()
        try:
            exchange.feed(protocol.marker(NONCE) + data)
            outcomes.add("taken")
        except (channel.Broken, PatchqError) as error:
            outcomes.add(type(error).__name__)
            json.dumps(str(error))

    assert {"taken", "Broken"} <= outcomes


def test_taking_and_advancing_are_two_steps():
    exchange = begun()
    stream = protocol.marker(NONCE) + answer(ONE, CONTENT)

    assert not exchange.take(stream[:-1])
    assert exchange.take(stream[-1:])
    assert exchange.waiting.message["op"] == "records"
    assert exchange.advance() == protocol.pack(
        {"op": "commit"}, {protocol.sha256(CONTENT): CONTENT}
    )
    assert exchange.advance() == b""


def test_first_bytes_are_sent_again_where_nothing_of_an_agent_came():
    exchange = Exchange(twice(), NONCE, b"payload")
    first = exchange.start()
    exchange.feed(b"rbash: exec: restricted")

    assert exchange.restart() == first
    assert exchange.noise == b""
    exchange.feed(protocol.marker(NONCE) + answer(ONE))
    assert exchange.noise == b""
    assert exchange.writing


def test_conversation_that_another_thread_runs_is_left_to_it():
    inside, go = threading.Event(), threading.Event()

    def slow():
        yield Request({"op": "records"})
        inside.set()
        go.wait(10)
        return 7

    exchange = begun(slow())
    exchange.take(protocol.marker(NONCE) + answer(ONE))
    thread = threading.Thread(target=exchange.advance)
    thread.start()
    inside.wait(10)

    exchange.close()
    go.set()
    thread.join()

    assert exchange.result == 7


def test_contents_of_a_run_are_packed_once():
    text = random.Random(5).randbytes(1000)
    request = Request({"op": "commit"}, {protocol.sha256(text): text})

    frames = {Exchange(asking(request), NONCE, b"").start() for _ in "ab"}

    assert frames == {protocol.pack(request.message, request.blobs)}
    assert requests.tail(request.blobs) is requests.tail(dict(request.blobs))


@pytest.mark.slow
def test_contents_that_are_kept_have_a_bound():
    for seed in range(6):
        text = random.Random(seed).randbytes(3 << 20)
        request = Request({"op": "commit"}, {protocol.sha256(text): text})
        frame = Exchange(asking(request), NONCE, b"").start()
        assert frame == protocol.pack(request.message, request.blobs)

    assert sum(map(len, requests.TAILS.values())) <= requests.TAILS_LIMIT


def test_answers_have_a_bound():
    def asking_on():
        while True:
            yield Request({"op": "records"})

    exchange = begun(asking_on())
    exchange.feed(protocol.marker(NONCE))

    with pytest.raises(channel.Broken, match="more than 2000 came"):
        exchange.feed(answer(ONE) * 2_001)


@pytest.mark.slow
def test_bytes_of_a_conversation_have_a_bound():
    def asking_on():
        while True:
            yield Request({"op": "records"})

    exchange = begun(asking_on())
    exchange.feed(protocol.marker(NONCE))
    frame = answer(ONE, random.Random(1).randbytes(30 << 20))
    for _ in range(8):
        exchange.feed(frame)

    with pytest.raises(channel.Broken, match="more than 256 MiB"):
        exchange.feed(frame)
