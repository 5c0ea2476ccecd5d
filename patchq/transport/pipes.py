"""A conversation with a child process over its three pipes, with deadlines.

All three are served at once: a payload larger than a pipe is written while the
child already speaks, and its stderr is read all the time (its end is kept), so
that a talkative login shell never blocks the agent. No asyncio: this is the road
of every local verb, and must start in no time.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from patchq.transport import endings, regular
from patchq.transport.channel import DEADLINES, Broken, Deadlines, Exchange
from patchq.transport.endings import Ending, Place

T = TypeVar("T")

_CHUNK = 1 << 18
# How often a child that lingers is looked at, in seconds.
_TICK = 0.05


def converse(
    exchange: Exchange[T],
    tries: endings.Tries,
    hold: Callable[[bytes], Ending | None],
    pythons: Callable[[], tuple[str, ...]] = tuple,
) -> T:
    """Carry a conversation by commands that `hold` runs, as `tries` has them; return its result.

    `pythons` names the interpreters that are there, where that which was meant is not.

    Raises:
        PatchqError: what the conversation raised, or why no agent answered.
    """
    with contextlib.closing(exchange):
        first = exchange.start()
        ending = None if exchange.done else hold(first)
        while ending is not None and (again := tries.again(exchange, ending)) is not None:
            ending = hold(again)
        if ending is not None:
            if endings.is_without_python(tries.place, exchange, ending):
                ending = replace(ending, pythons=pythons())
            raise endings.failure(tries.place, exchange, tries.told(ending))
        return exchange.result


def hold(
    argv: Sequence[str],
    exchange: Exchange[T],
    first: bytes,
    place: Place,
    *,
    deadlines: Deadlines = DEADLINES,
    apart: bool = False,
    started: Callable[[subprocess.Popen[bytes]], None] | None = None,
) -> Ending | None:
    """Run `argv` and carry an exchange that begins with `first`; return how it broke, if so.

    `started` is given the process, which it may end.

    Raises:
        PatchqError: what the conversation raised, or that `argv` cannot be started.
    """
    reason = ""
    with _started(argv, place, apart, exchange.hear) as child:
        if started is not None:
            started(child.process)
        try:
            _serve(child, exchange, first, deadlines)
        except Broken as error:
            reason = str(error)
        finally:
            child.leave(deadlines.end)
        return None if exchange.done else child.ending(exchange.noise, reason)


def _serve(child: _Child, exchange: Exchange[T], first: bytes, deadlines: Deadlines) -> None:
    until = time.monotonic() + deadlines.sync
    child.send(first)
    while not exchange.done:
        data = child.receive(until)
        if not data:
            raise Broken("its output ended" if data is not None else exchange.overdue(deadlines))
        synced = exchange.synced
        out = exchange.feed(data)
        child.send(out)
        if out or synced != exchange.synced:
            until = time.monotonic() + exchange.limit(deadlines)


@contextlib.contextmanager
def _started(
    argv: Sequence[str], place: Place, apart: bool, hear: Callable[[bytes], bytes]
) -> Iterator[_Child]:
    pipe, group = subprocess.PIPE, 0 if apart else None
    try:
        with contextlib.ExitStack() as stack:
            poll = stack.enter_context(selectors.DefaultSelector())
            process = subprocess.Popen(
                argv, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, process_group=group
            )
            stack.pop_all()
    except OSError as error:
        if regular.is_exhausted(error):
            raise endings.exhausted(place, error) from error
        message = f"{argv[0]}: {error.strerror}".encode(errors="surrogateescape")
        raise endings.absent(place, argv[0], message) from error
    child = _Child(process, poll, hear)
    try:
        yield child
    finally:
        child.close()


class _Child:
    """A process and its pipes: bytes to send, bytes received, the end of its stderr.

    What `hear` returns for bytes of stderr is sent.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        poll: selectors.BaseSelector,
        hear: Callable[[bytes], bytes],
    ) -> None:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        self.process = process
        self._hear = hear
        self._pending = memoryview(b"")
        self._stdin = process.stdin.fileno()
        self._stdout = process.stdout.fileno()
        self._stderr = process.stderr.fileno()
        self._kept = bytearray()
        self._killed = False
        self._poll = poll
        for pipe in (self._stdin, self._stdout, self._stderr):
            os.set_blocking(pipe, False)
        self._poll.register(self._stdout, selectors.EVENT_READ)
        self._poll.register(self._stderr, selectors.EVENT_READ)

    def send(self, data: bytes) -> None:
        """Send `data`; what the pipe does not take goes while receiving."""
        if data:
            if not self._pending:
                self._poll.register(self._stdin, selectors.EVENT_WRITE)
            self._pending = memoryview(bytes(self._pending) + data)
            self._write()

    def receive(self, until: float) -> bytes | None:
        """Return what comes next on stdout: nothing at its end.

        None where nothing came before `until` on the monotonic clock.
        """
        while (left := until - time.monotonic()) > 0:
            ready = {key.fd for key, _ in self._poll.select(left)}
            if self._stdin in ready:
                self._write()
            if self._stderr in ready:
                self._keep()
            if self._stdout in ready:
                return os.read(self._stdout, _CHUNK)
        return None

    def leave(self, grace: float) -> None:
        """Close stdin, which ends an agent; one that stays longer than `grace` is killed."""
        self._stop_writing()
        self._hear = lambda stderr: b""
        until = time.monotonic() + grace
        while self.process.poll() is None and (now := time.monotonic()) < until:
            if self.receive(min(until, now + _TICK)) == b"":
                break
        try:
            self.process.wait(max(_TICK, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._killed = True
            self.process.kill()
            self.process.wait()
        self._keep()

    def ending(self, noise: bytes, reason: str) -> Ending:
        """Return what is known of the process once it has left."""
        status = None if self._killed else self.process.returncode
        return Ending(status, noise, bytes(self._kept), reason)

    def close(self) -> None:
        """Close the pipes."""
        self._poll.close()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe:
                pipe.close()

    def _write(self) -> None:
        try:
            sent = os.write(self._stdin, self._pending[:_CHUNK])
        except BlockingIOError:
            return
        except BrokenPipeError:
            # The end of stdout follows, and tells more.
            sent = len(self._pending)
        self._pending = self._pending[sent:]
        if not self._pending:
            self._poll.unregister(self._stdin)

    def _stop_writing(self) -> None:
        if self._pending:
            self._poll.unregister(self._stdin)
            self._pending = memoryview(b"")
        if self.process.stdin:
            self.process.stdin.close()

    def _keep(self) -> None:
        try:
            while data := os.read(self._stderr, _CHUNK):
                self._kept += data
                del self._kept[: -endings.STDERR_KEPT]
                self.send(self._hear(data))
        except BlockingIOError:
            return
        if self._stderr in self._poll.get_map():
            self._poll.unregister(self._stderr)
