"""One coroutine per host; a host that fails never takes another along.

Every host ends in exactly one `Word`. Where a link is lost after a change was asked for,
the host is reached again and asked what became of it; the conversation goes on from the
answer, so that "unknown" is left only for hosts that stay away. A ^C stops what has not
been asked for, and waits for what has.

All conversations of a run are advanced one at a time, off the network's thread: what they
share needs no lock of its own, and judging never keeps the network waiting.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import random
import shlex
import signal
import subprocess
import threading
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from patchq.errors import HostError, PatchqError
from patchq.outcome import NotDone, Outcome, Run, Stopped, Word, word_for, word_of
from patchq.report import Report
from patchq.transport import command, descriptors, hosts
from patchq.transport.become import Become, WrongPassword
from patchq.transport.channel import AgentError, Conversation
from patchq.transport.endings import UnknownOutcome
from patchq.transport.hostset import COMMAND
from patchq.visit import Visit, stopped

if TYPE_CHECKING:  # asyncssh comes with it: only for runs that need it
    from patchq.transport import ssh

T = TypeVar("T")

# How long a lost host is looked for, in seconds, and the first pause between two looks.
SETTLE = 60.0
_PAUSE = 1.0
# How long a command may take to end when it is told to, in seconds.
_GRACE = 3.0


@dataclass(frozen=True, slots=True)
class Options:
    """How to reach the hosts of a run: `python` there, as whom, `jobs` at a time.

    `settle`: seconds to look for a host that was lost within a change.
    """

    python: str | None = None
    jobs: int = 32
    writing: bool = True
    become: Become | None = None
    accept_new: bool = False
    settle: float = SETTLE


def hold(
    specs: Sequence[str],
    make: Callable[[], Conversation[Report]],
    options: Options,
    tell: Callable[[Outcome], None] = lambda outcome: None,
) -> Run:
    """Hold one conversation with every host; `tell` is called as each one ends."""
    return asyncio.run(_Fleet(make, options, tell).run(specs))


@dataclass
class _Fleet:
    """A run: its hosts, what they share, and the way to stop them."""

    make: Callable[[], Conversation[Report]]
    options: Options
    tell: Callable[[Outcome], None]
    turn: threading.Lock = field(default_factory=threading.Lock)
    visits: dict[asyncio.Task[Outcome], Visit] = field(default_factory=dict)
    children: dict[Visit, subprocess.Popen[bytes]] = field(default_factory=dict)
    stops: int = 0
    wrong: WrongPassword | None = None

    async def run(self, specs: Sequence[str]) -> Run:
        """Hold all conversations, `jobs` of them at a time."""
        loop = asyncio.get_running_loop()
        with contextlib.suppress(ValueError, RuntimeError):  # not in the main thread (tests)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                loop.add_signal_handler(number, self._stop)
        jobs = min(self.options.jobs, descriptors.room())
        self.gate = asyncio.Semaphore(jobs)
        async with contextlib.AsyncExitStack() as stack:
            self.thinking = stack.enter_context(ThreadPoolExecutor(1))
            self.waiting = stack.enter_context(ThreadPoolExecutor(jobs))
            self.settings: ssh.Settings | None = None
            if not all(spec.startswith(COMMAND) for spec in specs):
                from patchq.transport import ssh

                self.settings = await stack.enter_async_context(
                    ssh.Settings.read(
                        os.environ,
                        become=self.options.become,
                        accept_new=self.options.accept_new,
                    )
                )
            become = self.options.become
            tried = become is None or become.password is None
            for spec in specs:
                visit = Visit(self.make(), self.turn)
                task = loop.create_task(self._host(spec, visit))
                self.visits[task] = visit
                if not tried:  # a wrong one must not be tried on every host: accounts get locked
                    tried = not isinstance((await task).error, HostError) or self.wrong is not None
            outcomes = await asyncio.gather(*self.visits)
        notes = tuple(self.settings.notes) if self.settings else ()
        return Run(tuple(outcomes), notes, self.stops > 0)

    async def _host(self, spec: str, visit: Visit) -> Outcome:
        try:
            async with self.gate:
                report = await self._reach(spec, visit)
            outcome = Outcome(spec, word_of(report), report)
        except asyncio.CancelledError:
            outcome = _failed(spec, _left(spec) if visit.writing else stopped())
        except PatchqError as error:
            outcome = _failed(spec, error)
            self.wrong = error if isinstance(error, WrongPassword) else self.wrong
        except Exception as error:  # a bug: of this host alone
            why = f"{error!r}\n{traceback.format_exc()}"
            bug = PatchqError("a bug in patchq", why=why, mend="send that text to us")
            outcome = Outcome(spec, Word.UNKNOWN if visit.writing else Word.FAILED, None, bug)
        await asyncio.get_running_loop().run_in_executor(self.thinking, visit.close)
        try:
            self.tell(outcome)
        except Exception:  # who listens has gone; the outcomes are told at the end
            self.tell = lambda outcome: None
        return outcome

    async def _reach(self, spec: str, visit: Visit) -> Report:
        if self.wrong is not None:
            raise Stopped(
                f"{spec} was not tried, since {self.wrong.what}",
                why=self.wrong.why,
                mend=self.wrong.mend,
            )
        try:
            return await self._once(spec, visit, visit.talk())
        except UnknownOutcome as error:
            lost = error
        loop = asyncio.get_running_loop()
        until, pause = loop.time() + self.options.settle, _PAUSE
        then: dict[str, None] = {}
        while loop.time() < until and self.stops < 2:
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(2 * pause, 10)
            try:
                async with asyncio.timeout_at(until):
                    return await self._once(spec, visit, visit.settle())
            except TimeoutError:
                then["it was reached, and did not answer in time"] = None
            except NotDone:
                raise
            except (HostError, AgentError) as error:
                then[error.what] = None
                # "locked": the agent that was lost is still at it.
                if isinstance(error, AgentError) and error.word != "locked":
                    break
        lost.why = "; then: ".join((lost.why, *then))
        raise lost

    async def _once(self, spec: str, visit: Visit, conversation: Conversation[Report]) -> Report:
        """Carry a conversation over one link."""
        options = self.options
        if spec.startswith(COMMAND):
            step = functools.partial(
                command.converse,
                shlex.split(spec.removeprefix(COMMAND)),
                options.python,
                conversation,
                writing=options.writing,
                become=options.become,
                started=functools.partial(self.children.__setitem__, visit),
            )
            done = asyncio.get_running_loop().run_in_executor(self.waiting, step)
            try:
                return await asyncio.shield(done)
            except asyncio.CancelledError:  # the word is given when nothing can change any more
                await self._end(visit, done)
                raise
        from patchq.transport import ssh

        assert self.settings is not None
        host = hosts.parse(spec, python=options.python)
        think = self._think if len(self.visits) > 1 else ssh.directly
        return await ssh.converse(
            host, self.settings, conversation, writing=options.writing, think=think
        )

    async def _think(self, step: Callable[[], T]) -> T:
        """Run a step of a conversation in the one thread for them, to its end."""
        done = asyncio.get_running_loop().run_in_executor(self.thinking, step)
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            await asyncio.wait([done])
            _taken(done)
            raise

    async def _end(self, visit: Visit, done: asyncio.Future[Report]) -> None:
        """End the command that carries a visit, and wait for it."""
        child = self.children.get(visit)
        for end in (child.terminate, child.kill) if child else ():
            end()
            await asyncio.wait([done], timeout=_GRACE)
            if done.done():
                _taken(done)
                break

    def _stop(self) -> None:
        """Stop what changes nothing; at the second ^C what does, too."""
        self.stops += 1
        for task, visit in self.visits.items():
            if visit.stop() or self.stops > 1:
                task.cancel()


def _taken(done: asyncio.Future[T]) -> None:
    """Look at how a step ended that nobody waits for any more."""
    if not done.cancelled():
        done.exception()


def _failed(spec: str, error: PatchqError) -> Outcome:
    return Outcome(spec, word_for(error), None, error)


def _left(spec: str) -> PatchqError:
    return UnknownOutcome(
        f"{spec} was left within a change; its outcome is not known",
        why="^C came twice; what was asked for is done whole, or not at all",
        mend="patchq status",
    )
