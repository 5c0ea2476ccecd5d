"""Which commit each queue is at, asked of git while an environment is being reached."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from patchq.queue import store


class Heads:
    """The commits of some queues, looked up in a thread from the start on.

    Asking git takes as long as an SSH handshake; neither needs the other.
    """

    def __init__(self, queues: Iterable[store.Queue]) -> None:
        pool = ThreadPoolExecutor(1)
        self._asked = {queue.folder: pool.submit(store.commit, queue) for queue in queues}
        pool.shutdown(wait=False)

    def of(self, queue: store.Queue) -> tuple[str | None, bool]:
        """Return a queue's commit and whether it has changes beside it; waits if it must."""
        return self._asked[queue.folder].result()
