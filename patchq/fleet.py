"""One coroutine per host; a run has one host for now."""

from __future__ import annotations

import asyncio
import os
from typing import TypeVar

from patchq.transport import hosts, ssh
from patchq.transport.channel import Conversation

T = TypeVar("T")


def one(spec: str, python: str | None, conversation: Conversation[T], *, writing: bool) -> T:
    """Hold a conversation with the host that `spec` names; `python` is its interpreter."""
    host = hosts.parse(spec, python=python)
    settings = ssh.Settings.read(os.environ)
    return asyncio.run(ssh.converse(host, settings, conversation, writing=writing))
