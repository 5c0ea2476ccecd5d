"""What is kept of the contents that hosts send."""

import pytest

from patchq.conversation import look, pool, view
from patchq.model import sha256
from tests.conversation.conftest import Talk


def blobs_of(*texts):
    return {sha256(text): text for text in texts}


def test_contents_that_nobody_asked_for_are_not_kept(talk):
    aim, came = talk.aim, blobs_of(b"asked", b"not asked")

    assert pool.keep(aim, came, [sha256(b"asked"), None, "0" * 64]) == blobs_of(b"asked")
    assert aim.shared.contents == blobs_of(b"asked")


@pytest.mark.parametrize("limit", ["ANSWER_LIMIT", "RUN_LIMIT"])
def test_what_there_is_no_room_for_serves_one_conversation_only(talk, monkeypatch, limit):
    monkeypatch.setattr(pool, limit, 10)
    aim, small, large = talk.aim, blobs_of(b"small"), blobs_of(b"larger than that")
    pool.keep(aim, small, small)

    assert dict(pool.keep(aim, large, large)) == {**small, **large}
    assert aim.shared.contents == small


def test_a_survey_without_contents_keeps_none(talk: Talk):
    aim = talk.aim
    want = view.Want(more=("patches",))
    locks = aim.locks(aim.queues[0]).values()
    talk.push("1")
    survey, reply = talk.hold(look.survey(aim, "demo", locks, want))

    assert reply.blobs
    assert aim.shared.contents == {}
    assert survey.files


def test_a_push_works_where_there_is_no_room_at_all(talk, monkeypatch):
    monkeypatch.setattr(pool, "RUN_LIMIT", 0)

    report = talk.push()

    assert report.document["patches"] == ["10-pi.patch", "20-foot.patch", "30-text.patch"]
