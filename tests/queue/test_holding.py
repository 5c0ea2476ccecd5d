"""Who may write a queue's files: one at a time, and never those that came with patchq."""

from pathlib import Path

import pytest

import patchq
from patchq.errors import PatchqError
from patchq.queue import editing, store
from patchq.queue.holding import Holds


def test_a_queue_is_held_by_one_run_until_it_lets_go(tmp_path):
    mine, other = Holds(), Holds()
    mine.take(tmp_path)
    mine.take(tmp_path)

    with pytest.raises(PatchqError, match="another patchq edits the queue"):
        other.take(tmp_path, 0.0)
    mine.release()
    other.take(tmp_path, 0.0)
    other.release()


def test_a_queue_that_came_with_patchq_is_not_edited():
    folder = Path(patchq.__file__).parent / "queues" / "eagle"
    queue = store.Queue("eagle", folder, "vllm", "what it is for", releases=("0.16.0",))

    with pytest.raises(PatchqError, match="came with patchq") as raised:
        editing.check(queue, "0.16.0")

    assert raised.value.mend == f"mkdir -p queues, then: cp -r {folder} queues/eagle"
