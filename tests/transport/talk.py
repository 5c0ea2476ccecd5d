"""What the tests of all transports say to the agent."""

from patchq.agent import protocol
from patchq.report import Report
from patchq.transport.channel import Request


def read(target, *paths):
    """Ask for files below `target` twice; return both replies."""
    first = yield _read(target, paths)
    second = yield _read(target, paths)
    return first, second


def contents(target, *paths):
    """Return the bytes of files below `target`, as the agent has them."""
    reply = yield _read(target, paths)
    files = reply.message["ok"]["files"]
    return [files[path] and reply.blobs[files[path]] for path in paths]


def carry(target, *texts):
    """Send texts along with a request; the agent checks each by its hash."""
    blobs = {protocol.sha256(text): text for text in texts}
    reply = yield Request(_read(target, ()).message, blobs)
    return reply.message["ok"]["files"]


def reported(target):
    """Ask for nothing in particular and report that there was an answer."""
    yield _read(target, ())
    return Report(("answered",))


def _read(target, paths):
    message = {"op": "read", "distribution": "demo", "target": str(target)}
    return Request({**message, "paths": list(paths), "originals": []})
