"""Answer requests until the stream ends; the agent's one entry point.

Results go to a private copy of stdout, so that a stray print of anything else
lands on stderr. The agent ends itself when no byte of a frame came for `DEADLINE`
seconds, or none of an answer went: an orphan behind a dead link holds nothing (its
lock is the kernel's).
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
from typing import Any, BinaryIO, Callable, Dict, Optional, Tuple

from patchq.agent import forms, guise, protocol, scan
from patchq.agent.facts import RefusalError

DEADLINE = 120
_CHUNK = 1 << 20
# An answer goes in parts of this size, each of which has the whole deadline: 64 KiB in two
# minutes is slower than any link that is of use.
_PART = 1 << 16
_OS_WORDS = {
    errno.ENOSPC: ("no-space", "make room on that file system, then run it again"),
    errno.EDQUOT: ("no-space", "raise the quota or remove files, then run it again"),
    errno.EFBIG: ("no-space", "raise the limit on file sizes, then run it again"),
    errno.EROFS: ("read-only", "mount it writable, or change the image it comes from"),
    errno.EACCES: ("not-permitted", "run patchq as the user that owns the environment"),
    errno.EPERM: ("not-permitted", "run patchq as the user that owns the environment"),
    errno.EIO: ("disk", "look after that disk (dmesg), then run it again"),
    errno.ENOMEM: ("no-memory", "free some memory, then run it again"),
    errno.EMFILE: ("too-many-files", "raise the limit (ulimit -n), then run it again"),
    errno.EXDEV: ("another-disk", "put that folder on the disk of its environment"),
    errno.ENAMETOOLONG: ("path-too-long", "move the environment to a shorter path"),
    errno.ENFILE: ("too-many-files", "close some files of that machine, then run it again"),
}

_OPS = ("survey", "read", "records", "hash", "discover", "commit", "recover", "settle", "import")

Answer = Tuple[Dict[str, Any], Dict[str, bytes]]


def main(
    read: BinaryIO, write: BinaryIO, nonce: bytes, deadline: int = DEADLINE, equal: bool = False
) -> None:
    """Serve one conversation; returns at the end of the stream.

    `equal`: this interpreter takes the other side's bytecode, which it is told.

    `deadline`: seconds to wait for the next byte of a request, and for a part of an answer
    to go, 0 for ever.
    """
    out = _private(write)
    _send(out, protocol.marker(nonce, equal), deadline)
    while True:
        frame = _receive(read, deadline)
        if frame is None:
            return
        answer, blobs = respond(*frame)
        _send(out, protocol.pack(answer, blobs), deadline)
        _prepare()


def _prepare() -> None:
    """Load what writes while the other side thinks, where it was sent at all."""
    with contextlib.suppress(ImportError):
        from patchq.agent import recover, settle, transact  # noqa: F401


def answer(request: Dict[str, Any], blobs: Dict[str, bytes]) -> Answer:
    """Return the answer to one request; raises `RefusalError`."""
    op = request.get("op")
    if op not in _OPS:
        raise RefusalError(
            "unknown-op", "the agent does not know %r" % op, "it is older", "use one patchq"
        )
    reason = forms.request(request)
    if reason is not None:
        raise RefusalError("bad-request", "this is no request", reason, "report a bug")
    if op == "survey":
        return scan.survey(request)
    if op == "read":
        return scan.read(request)
    if op == "records":
        return scan.records(request)
    if op == "hash":
        from patchq.agent import hashes

        return hashes.answer(request)
    if op == "discover":
        from patchq.agent import discover

        return discover.answer(request)
    try:
        from patchq.agent import recover, settle, transact
    except ImportError as error:
        raise RefusalError(
            "read-only-agent", "this agent only reads", str(error), "report a bug"
        ) from error
    if op == "commit":
        return transact.commit(request, blobs), {}
    if op == "import":
        from patchq.agent import trial

        return trial.answer(request)
    if op == "settle":
        return settle.settle(request), {}
    return recover.recover(request), {}


def respond(request: Dict[str, Any], blobs: Dict[str, bytes]) -> Answer:
    """Return the answer as it is sent: ``ok``, or an ``error`` with word, what, why, mend."""
    try:
        try:
            done, contents = answer(request, blobs)
        finally:
            guise.regain()
        return {"ok": done}, contents
    except RefusalError as refusal:
        return {"error": refusal.to_json()}, {}
    except OSError as error:
        return {"error": _of_os(error).to_json()}, {}
    except MemoryError:
        return {"error": _of_os(OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))).to_json()}, {}
    except Exception as error:
        # One bad request must not take the conversation along; the text travels to a report file.
        import traceback

        trace = traceback.format_exc()
        return {
            "error": RefusalError(
                "bug", "the agent failed: %r" % error, trace, "report a bug"
            ).to_json()
        }, {}


def _of_os(error: OSError) -> RefusalError:
    """Return a failed system call as an error; a commit has been undone by then."""
    word, mend = _OS_WORDS.get(error.errno or 0, ("os-error", "see to it, then run it again"))
    return RefusalError(
        word,
        "%s could not be read or written" % (error.filename or "a file of the environment"),
        "%s (errno %s)" % (error.strerror, error.errno),
        mend,
    )


def _private(write: BinaryIO) -> BinaryIO:
    """Return a stream that only the protocol writes; the real stdout becomes stderr."""
    try:
        number: Optional[int] = write.fileno()
    except (OSError, AttributeError, ValueError):
        number = None
    if number != 1:
        return write
    write.flush()
    private = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return open(private, "wb")


def _receive(read: BinaryIO, deadline: int) -> Optional[Tuple[Dict[str, Any], Dict[str, bytes]]]:
    header = _exactly(read, protocol.HEADER.size, deadline)
    if not header:
        return None
    head, tail = protocol.lengths(header)
    data = _exactly(read, head + tail, deadline)
    if len(data) != head + tail:
        raise protocol.ProtocolError("the stream ended inside a frame")
    return protocol.unpack(data[:head], data[head:])


def _send(write: BinaryIO, data: bytes, deadline: int) -> None:
    alarm, left = _alarm(), memoryview(data)
    while left:
        alarm(deadline)
        write.write(left[:_PART])
        write.flush()
        left = left[_PART:]
    alarm(0)


def _exactly(read: BinaryIO, size: int, deadline: int) -> bytes:
    parts, missing = [], size
    alarm = _alarm()
    some = getattr(read, "read1", read.read)  # what has come is progress
    while missing:
        alarm(deadline)
        part = some(min(missing, _CHUNK))
        alarm(0)
        if not part:
            break
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


def _alarm() -> Callable[[int], object]:
    """Return signal.alarm with a quiet end, or a no-op outside the main thread (tests)."""
    try:
        signal.signal(signal.SIGALRM, _expired)
    except ValueError:
        return lambda seconds: None
    return signal.alarm


def _expired(*_: object) -> None:
    os.set_blocking(2, False)  # who takes no answer may take no complaint either
    with contextlib.suppress(OSError):
        os.write(2, b"patchq agent: no request in time, or no answer taken; leaving\n")
    os._exit(75)
