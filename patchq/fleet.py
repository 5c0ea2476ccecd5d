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
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from patchq.errors import HostError, PatchqError
from patchq.inventory.hostset import COMMAND
from patchq.outcome import NotDone, Outcome, Run, Stopped, Word, word_for, word_of
from patchq.report import Report
from patchq.transport import command, descriptors, hosts
from patchq.transport.acquaintance import STRANGER, Acquaintance
from patchq.transport.become import Become, WrongPassword
from patchq.transport.channel import AgentError, Conversation
from patchq.transport.endings import UnknownOutcome
from patchq.transport.hosts import Host, Way
from patchq.visit import Visit, left, lost_after, stopped

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

    `settle`: seconds to look for a host that was lost within a change. `ways` are the hosts
    of an inventory, by the run's names for them; `known` tells of their interpreters.
    """

    python: str | None = None
    jobs: int = 32
    writing: bool = True
    become: Become | None = None
    accept_new: bool = False
    settle: float = SETTLE
    ways: Mapping[str, Way] = field(default_factory=dict)
    known: Acquaintance = STRANGER

    def way(self, spec: str) -> Way:
        """Return how a host is reached.

        Raises:
            UsageError: its name is none.
        """
        if spec in self.ways:
            return self.ways[spec]
        argv = shlex.split(spec.removeprefix(COMMAND)) if spec.startswith(COMMAND) else None
        host = hosts.parse(spec, python=self.python) if argv is None else Host(spec)
        return Way(host, None if argv is None else tuple(argv), self.python, self.become)

    def is_command(self, spec: str) -> bool:
        """Return whether a host is reached by a command in the place of SSH."""
        way = self.ways.get(spec)
        return spec.startswith(COMMAND) if way is None else way.argv is not None

    def password(self, spec: str) -> str | None:
        """Return the password for sudo on a host, None where none is needed."""
        become = self.ways[spec].become if spec in self.ways else self.become
        return become.password if become else None


def hold(
    specs: Sequence[str],
    make: Callable[[str], Conversation[Report]],
    options: Options,
    tell: Callable[[Outcome], None] = lambda outcome: None,
) -> Run:
    """Hold with every host what `make` makes of its name; `tell` is called as each ends."""
    return asyncio.run(_hold(Fleet(options, tell), specs, make))


async def _hold(
    fleet: Fleet, specs: Sequence[str], make: Callable[[str], Conversation[Report]]
) -> Run:
    async with fleet.opened(specs):
        outcomes = await fleet.each(specs, lambda spec: fleet.visit(spec, make(spec)))
    return Run(outcomes, fleet.notes, fleet.stops > 0)


@dataclass
class Fleet:
    """A run: its hosts, what they share, and the way to stop them.

    `stops` counts the user's ^C. A run may go over its hosts several times while `opened`.
    """

    options: Options
    tell: Callable[[Outcome], None] = lambda outcome: None
    turn: threading.Lock = field(default_factory=threading.Lock)
    visits: dict[asyncio.Task[Outcome], Visit] = field(default_factory=dict)
    children: dict[Visit, subprocess.Popen[bytes]] = field(default_factory=dict)
    stops: int = 0
    wrong: WrongPassword | None = None
    several: bool = False
    tried: bool = False

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be told of how hosts were reached."""
        return tuple(self.settings.notes) if self.settings else ()

    @contextlib.asynccontextmanager
    async def opened(self, specs: Sequence[str]) -> AsyncIterator[None]:
        """Have at hand what all hosts share: settings, threads, connections of jump hosts."""
        loop = asyncio.get_running_loop()
        with contextlib.suppress(ValueError, RuntimeError):  # not in the main thread (tests)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                loop.add_signal_handler(number, self._stop)
        jobs = min(self.options.jobs, descriptors.room())
        self.gate = asyncio.Semaphore(jobs)
        self.several = len(specs) > 1
        async with contextlib.AsyncExitStack() as stack:
            stack.callback(self.options.known.keep)
            self.thinking = stack.enter_context(ThreadPoolExecutor(1))
            self.waiting = stack.enter_context(ThreadPoolExecutor(jobs))
            self.settings: ssh.Settings | None = None
            if not all(map(self.options.is_command, specs)):
                from patchq.transport import ssh

                settings = ssh.Settings.read(
                    os.environ, accept_new=self.options.accept_new, known=self.options.known
                )
                self.settings = await stack.enter_async_context(settings)
            yield

    async def each(
        self, specs: Sequence[str], one: Callable[[str], Coroutine[Any, Any, Outcome]]
    ) -> tuple[Outcome, ...]:
        """Do one thing with every host, `jobs` conversations at a time."""
        tasks = []
        for spec in specs:
            task = asyncio.get_running_loop().create_task(one(spec))
            tasks.append(task)
            # A wrong one must not be tried on every host: accounts get locked.
            if not self.tried and self.options.password(spec):
                alone = await task
                self.tried = not isinstance(alone.error, HostError) or self.wrong is not None
        return tuple(await asyncio.gather(*tasks))

    async def visit(
        self, spec: str, conversation: Conversation[Report], *, anyway: bool = False
    ) -> Outcome:
        """Hold one conversation with a host; after a ^C only where it is held `anyway`."""
        visit = Visit(conversation, self.turn, anyway=anyway)
        if self.stops:
            visit.stop()
        task = asyncio.get_running_loop().create_task(self._host(spec, visit))
        self.visits[task] = visit
        try:
            return await task
        except asyncio.CancelledError:  # before it began
            return _failed(spec, stopped())
        finally:
            del self.visits[task]

    async def _host(self, spec: str, visit: Visit) -> Outcome:
        try:
            async with self.gate:
                report = await self._reach(spec, visit)
            outcome = Outcome(spec, word_of(report), report)
        except asyncio.CancelledError:
            outcome = _failed(spec, left(spec) if visit.writing or visit.changed else stopped())
        except PatchqError as error:
            if visit.changed and isinstance(error, HostError):
                error = lost_after(spec, error)
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
        way, writing = self.options.way(spec), self.options.writing
        if way.argv is not None:
            step = functools.partial(
                command.converse,
                way.argv,
                way.python,
                conversation,
                writing=writing,
                become=way.become,
                started=functools.partial(self.children.__setitem__, visit),
                called=way.host.called,
                known=self.options.known,
            )
            done = asyncio.get_running_loop().run_in_executor(self.waiting, step)
            try:
                return await asyncio.shield(done)
            except asyncio.CancelledError:  # the word is given when nothing can change any more
                await self._end(visit, done)
                raise
        from patchq.transport import ssh

        assert self.settings is not None
        settings = replace(self.settings, become=way.become)
        think = self._think if self.several else ssh.directly
        return await ssh.converse(way.host, settings, conversation, writing=writing, think=think)

    async def _think(self, step: Callable[[], T]) -> T:
        """Run a step of a conversation in the one thread for them, to its end."""
        done = asyncio.get_running_loop().run_in_executor(self.thinking, step)
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            await asyncio.gather(done, return_exceptions=True)  # nobody else looks how it ends
            raise

    async def _end(self, visit: Visit, done: asyncio.Future[Report]) -> None:
        """End the command that carries a visit, and wait for it."""
        child = self.children.get(visit)
        for end in (child.terminate, child.kill) if child else ():
            end()
            await asyncio.wait([done], timeout=_GRACE)
            if done.done():
                await asyncio.gather(done, return_exceptions=True)
                break

    def _stop(self) -> None:
        """Stop what changes nothing; at the second ^C what does, too."""
        self.stops += 1
        for task, visit in self.visits.items():
            if visit.stop() or self.stops > 1:
                task.cancel()


def _failed(spec: str, error: PatchqError) -> Outcome:
    return Outcome(spec, word_for(error), None, error)
