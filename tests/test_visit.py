"""A conversation whose link is lost within a change goes on over the next one."""

import os
import threading

import pytest

from patchq.agent import serve
from patchq.conversation import move, trying, undo
from patchq.conversation.goal import Upto
from patchq.outcome import NotDone
from patchq.transport.channel import AgentError, Reply
from patchq.visit import Visit
from tests.conversation.conftest import Talk


@pytest.fixture
def talk(world):
    return Talk(world.site, world.queue, world.root / "cache")


@pytest.fixture
def visit(talk):
    return Visit(move.push(talk.aim, talk.ground, Upto(None, True)), threading.Lock())


def lost(visit, *, delivered):
    """Carry a visit up to its commit; the answer is lost, or the request was."""
    link = visit.talk()
    request = next(link)
    while request.message["op"] != "commit":
        request = link.send(Reply(*serve.respond(dict(request.message), dict(request.blobs))))
    if delivered:
        serve.respond(dict(request.message), dict(request.blobs))
    link.close()
    assert visit.writing
    return request


def killed_at_its_first_link(request):
    """Commit in a process that ends, without a word, once its journal is written."""
    pid = os.fork()
    if pid == 0:
        os.link = lambda *_, **__: os._exit(0)
        serve.respond(dict(request.message), dict(request.blobs))
        os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0


def test_a_change_that_was_done_is_reported_as_if_the_link_had_held(world, talk, visit):
    lost(visit, delivered=True)

    report = talk.hold(visit.settle())

    assert talk.asked == ["settle"]
    assert report.document["top"] == "30-text.patch"
    assert report.document["receipt"]["patches"]["push"]
    assert report.lines[-1] == "Now at patch 30-text.patch"
    assert not visit.writing


def test_a_change_that_was_not_done_says_so_and_cannot_come_late(world, talk, visit):
    before = world.tree()
    request = lost(visit, delivered=False)

    with pytest.raises(NotDone) as caught:
        talk.hold(visit.settle())

    assert "nothing was changed" in caught.value.what
    answer, _ = serve.respond(dict(request.message), dict(request.blobs))
    assert answer["error"]["word"] == "settled"
    assert world.tree() == before
    assert talk.push().document["top"] == "30-text.patch"


def test_a_second_lost_link_is_settled_like_the_first(talk, visit):
    lost(visit, delivered=True)
    link = visit.settle()
    next(link)
    link.close()

    assert talk.hold(visit.settle()).document["top"] == "30-text.patch"


def test_a_lost_recovery_is_asked_for_again_and_the_push_goes_on(world, talk, visit):
    request = lost(
        Visit(move.push(talk.aim, talk.ground, Upto()), threading.Lock()), delivered=False
    )
    killed_at_its_first_link(request)
    link = visit.talk()
    request = next(link)
    while request.message["op"] != "recover":
        request = link.send(Reply(*serve.respond(dict(request.message), dict(request.blobs))))
    link.close()

    assert talk.hold(visit.settle()).document["top"] == "30-text.patch"
    assert talk.asked[0] == "recover"


def test_an_agent_that_refuses_is_heard_by_the_conversation(visit):
    link = visit.talk()
    next(link)
    with pytest.raises(AgentError):
        link.throw(AgentError("locked", "another is at it", why="since noon", mend="wait"))


def answered(link, request, until):
    """Let the agent answer until the conversation asks for another thing."""
    while request.message["op"] != until:
        request = link.send(Reply(*serve.respond(dict(request.message), dict(request.blobs))))
    return request


def test_a_change_that_was_made_is_followed_to_its_end(talk):
    def push():
        return move.push(talk.aim, talk.ground, Upto(None, True))

    visit = Visit(trying.tried(talk.aim, talk.ground, push, ("demo",)), threading.Lock())
    link = visit.talk()
    request = answered(link, next(link), "import")

    assert not visit.stop()
    with pytest.raises(StopIteration) as caught:
        link.send(Reply(*serve.respond(dict(request.message), dict(request.blobs))))
    assert caught.value.value.document["import"]["imported"] == ["demo"]
    assert not visit.writing
    assert not visit.stop()


def test_a_link_that_is_lost_within_an_import_asks_for_it_again(talk):
    def push():
        return move.push(talk.aim, talk.ground, Upto(None, True))

    visit = Visit(trying.tried(talk.aim, talk.ground, push, ("demo",)), threading.Lock())
    link = visit.talk()
    answered(link, next(link), "import")
    link.close()

    assert visit.writing
    assert talk.hold(visit.settle()).document["import"]["imported"] == ["demo"]
    assert talk.asked == ["import"]


def test_what_is_held_anyway_is_not_stopped(talk):
    visit = Visit(undo.undo(talk.aim, talk.ground), threading.Lock(), anyway=True)

    assert not visit.stop()
    assert talk.hold(visit.talk()).document["message"] == "No receipt to undo"
