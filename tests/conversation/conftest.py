"""Conversations driven by hand: the real agent, in this process, without a transport."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from patchq.agent import serve
from patchq.conversation import commit, move, view
from patchq.conversation.goal import Upto
from patchq.queue import store
from patchq.queue.heads import Heads
from patchq.report import Report
from patchq.transport.channel import AgentError, Reply


@dataclass
class Talk:
    """Drives conversations about one world, and remembers what was asked."""

    site: Path
    queue: Path
    cache: Path
    dry_run: bool = False

    def __post_init__(self):
        self.asked: list[str] = []

    @property
    def aim(self) -> view.Aim:
        return view.Aim(
            (store.open(self.queue),), lambda: self.cache, self.queue.name, str(self.site), True
        )

    @property
    def ground(self) -> commit.Ground:
        return commit.Ground("somebody", "here", Heads(self.aim.queues), self.dry_run)

    def hold(self, conversation) -> Report:
        """Drive a conversation to its end."""
        self.asked = []
        try:
            request = next(conversation)
            while True:
                self.asked.append(request.message["op"])
                answer, blobs = serve.respond(dict(request.message), dict(request.blobs))
                if "error" in answer:
                    error = answer["error"]
                    request = conversation.throw(
                        AgentError(
                            error["word"], error["what"], why=error["why"], mend=error["mend"]
                        )
                    )
                else:
                    request = conversation.send(Reply(answer, blobs))
        except StopIteration as stop:
            return stop.value

    def push(self, word: str | None = None) -> Report:
        return self.hold(move.push(self.aim, self.ground, Upto(word, word is None)))

    def pop(self, word: str | None = None) -> Report:
        return self.hold(move.pop(self.aim, self.ground, Upto(word, word is None)))


@pytest.fixture
def talk(world):
    """A talk about a world of one's own, whose verdicts are known from the lint."""
    return Talk(world.site, world.queue, world.root / "cache")
