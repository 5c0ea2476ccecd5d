"""One host's conversation, which may outlive the link that carried it."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable

from patchq.outcome import NotDone
from patchq.report import Report
from patchq.transport.channel import AgentError, Conversation, Reply, Request


class Visit:
    """One host's conversation, apart from the links that carry it.

    `asked` is the request that waits for an answer. A link that is lost closes what
    `talk` returned and leaves the conversation as it is; `settle` goes on with it.
    """

    def __init__(self, conversation: Conversation[Report], turn: threading.Lock) -> None:
        self._inner, self._turn = conversation, turn
        self.asked: Request | None = None

    @property
    def writing(self) -> bool:
        """True while a change is asked for and not answered."""
        return self.asked is not None and self.asked.writes

    def talk(self) -> Conversation[Report]:
        """Return the conversation for a first link."""
        return self._on(functools.partial(next, self._inner))

    def settle(self) -> Conversation[Report]:
        """Return a conversation that asks what became of the lost request, and goes on."""
        assert self.asked is not None
        lost = self.asked.message
        if lost["op"] != "commit":  # recovering twice is recovering once
            reply = yield self.asked
            return (yield from self._on(functools.partial(self._inner.send, reply)))
        keys = ("distribution", "target", "explicit", "id", "receipt")
        reply = yield Request({"op": "settle", **{key: lost[key] for key in keys}})
        receipt = reply.message["ok"]["receipt"]
        if receipt is None:
            error = NotDone(
                "the link was lost before the change began; nothing was changed",
                why="the host was asked again, and will not do it any more",
                mend="run it again",
            )
            return (yield from self._on(functools.partial(self._inner.throw, error)))
        answer = {"receipt": receipt, "kept": receipt["kept"], "pending": None}
        return (yield from self._on(functools.partial(self._inner.send, Reply({"ok": answer}))))

    def close(self) -> None:
        """End a conversation that nobody will go on with."""
        with self._turn:
            self._inner.close()

    def _on(self, step: Callable[[], Request]) -> Conversation[Report]:
        while True:
            try:
                with self._turn:
                    request = step()
            except StopIteration as stop:
                self.asked = None
                report: Report = stop.value
                return report
            self.asked = request
            try:
                reply = yield request
            except AgentError as error:
                step = functools.partial(self._inner.throw, error)
            else:
                step = functools.partial(self._inner.send, reply)
