"""One host's conversation, which may outlive the link that carried it."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable

from patchq.errors import HostError
from patchq.outcome import NotDone, Stopped
from patchq.report import Report
from patchq.transport.channel import AgentError, Conversation, Reply, Request
from patchq.transport.endings import UnknownOutcome


class Visit:
    """One host's conversation, apart from the links that carry it.

    `asked` is the request that waits for an answer. A link that is lost closes what
    `talk` returned and leaves the conversation as it is; `settle` goes on with it. `changed`
    is true once a change was made, `anyway` where it is not to be stopped before, either.
    """

    def __init__(
        self, conversation: Conversation[Report], turn: threading.Lock, *, anyway: bool = False
    ) -> None:
        self._inner, self._turn, self._anyway = conversation, turn, anyway
        self._asking = threading.Lock()
        self._stopped = self.changed = False
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
        if lost["op"] != "commit":  # recovering twice is recovering once; so is importing
            reply = yield self.asked
            return (yield from self._on(functools.partial(self._inner.send, reply)))
        keys = ("distribution", "target", "explicit", "id", "receipt", "expect")
        reply = yield Request({"op": "settle", **{key: lost[key] for key in keys}})
        receipt, last = (reply.message["ok"][key] for key in ("receipt", "last"))
        if receipt is None:
            error = NotDone(
                "the link was lost before the change began; nothing was changed",
                why="the host was asked again, and will not do it any more",
                mend="run it again",
            )
            return (yield from self._on(functools.partial(self._inner.throw, error)))
        since = None if last else "done, and changed again since; see: patchq log"
        answer = {"receipt": receipt, "kept": receipt["kept"], "pending": since}
        self.changed = True
        return (yield from self._on(functools.partial(self._inner.send, Reply({"ok": answer}))))

    def stop(self) -> bool:
        """Let nothing more be asked; False where a change is asked for already, or was made."""
        with self._asking:
            self._stopped = not (self.writing or self.changed or self._anyway)
            return self._stopped

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
            with self._asking:
                if self._stopped:
                    raise stopped()
                self.asked = request
            try:
                reply = yield request
            except AgentError as error:
                step = functools.partial(self._inner.throw, error)
            else:
                step = functools.partial(self._inner.send, reply)
                self.changed |= request.message["op"] == "commit"
            self.asked = None


def stopped() -> Stopped:
    """Return the error for a host that was asked for no change when the user stopped the run."""
    return Stopped(
        "it was not changed",
        why="the run was stopped before this host was asked to change anything",
        mend="run it again",
    )


def lost_after(host: str, error: HostError) -> UnknownOutcome:
    """Return the error for a host that was lost after one change, and before the next."""
    return UnknownOutcome(
        f"{host} was lost after a change; whether that stayed is not known",
        why=f"{error.what}: {error.why}",
        mend="patchq status",
    )


def left(host: str) -> UnknownOutcome:
    """Return the error for a host that the user would not wait for."""
    return UnknownOutcome(
        f"{host} was left within a change; its outcome is not known",
        why="^C came twice; what was asked for is done whole, or not at all",
        mend="patchq status",
    )
