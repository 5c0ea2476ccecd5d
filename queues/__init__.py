"""The ready-made queues; data only, found by `patchq.queue.store`."""
