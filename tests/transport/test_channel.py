import pytest

from patchq.agent import protocol
from patchq.errors import ExitCode
from patchq.transport import channel
from patchq.transport.channel import Exchange, Request

NONCE = b"0123abcd"
CONTENT = b"def f(x: tuple[int, ...]) -> None: ...\n"


def twice():
    first = yield Request({"op": "survey"})
    second = yield Request({"op": "commit"}, first.blobs)
    return first.message["ok"], second.message["ok"]


def answer(ok, *contents):
    return protocol.pack({"ok": ok}, {protocol.sha256(data): data for data in contents})


def begun(conversation=None):
    exchange = Exchange(conversation or twice(), NONCE, b"payload")
    exchange.start()
    return exchange


def test_payload_and_first_request_go_in_one_write():
    exchange = Exchange(twice(), NONCE, b"payload")

    assert exchange.start() == b"payload" + protocol.pack({"op": "survey"})


def test_conversation_goes_on_however_the_stream_is_cut():
    stream = b"Welcome!\n" + protocol.marker(NONCE) + answer("one", CONTENT) + answer("two")
    exchange = begun()

    sent = b"".join(exchange.feed(stream[at : at + 1]) for at in range(len(stream)))

    assert sent == protocol.pack({"op": "commit"}, {protocol.sha256(CONTENT): CONTENT})
    assert exchange.done
    assert exchange.result == ("one", "two")
    assert exchange.noise == b"Welcome!\n"


def test_noise_that_looks_like_a_marker_of_another_run_is_noise():
    exchange = begun()

    exchange.feed(protocol.marker(b"ffffffff") + protocol.marker(NONCE) + answer("one"))

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
            reply = yield Request({"op": "read"})
        return reply.message["ok"]

    exchange = begun(stubborn())
    refusal = protocol.pack({"error": {"word": "locked"}})

    assert exchange.feed(protocol.marker(NONCE) + refusal) == protocol.pack({"op": "read"})
    exchange.feed(answer("fine"))
    assert exchange.result == "fine"


def test_exchange_knows_while_a_change_is_not_answered():
    exchange = begun()
    assert not exchange.writing

    exchange.feed(protocol.marker(NONCE) + answer("one"))
    assert exchange.writing

    exchange.feed(answer("two"))
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
