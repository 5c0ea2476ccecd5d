"""Who holds the writer's lock, and whether that process can still be there.

A lock's text is judged only by the kernel and in the pid namespace where it was written:
of another's processes nobody here can tell, and such a lock is never called a dead one's.
"""

from __future__ import annotations

import os
from typing import Any, Dict, List, Mapping, Optional

from patchq.agent import facts, state


def me() -> Dict[str, str]:
    """Return what tells this process from all others: ``boot namespace start``."""
    return {"boot": _boot(), "namespace": _namespace(), "start": _start(os.getpid())}


def gone(found: Optional[Mapping[str, Any]]) -> bool:
    """Return whether a holder is known to be gone: same boot, same pid namespace, no process."""
    mine = me()
    if not found or not all(mine.values()) or not found.get("start"):
        return False
    if any(found.get(key) != mine[key] for key in ("boot", "namespace")):
        return False
    pid = found.get("pid")
    if not isinstance(pid, int) or not 0 < pid < 1 << 31:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass  # another user's; a /proc that hides it (hidepid) does not make it gone
    start = _start(pid)
    return bool(start) and start != found["start"]


def held(home: str) -> Optional[Dict[str, Any]]:
    """Return who holds ``lock.held``, None where nobody does that still can be there."""
    found = told(os.path.join(home, "lock.held"))
    return None if gone(found) else found


def told(path: str) -> Optional[Dict[str, Any]]:
    """Return what a lock's text says of its holder, None where it says nothing."""
    try:
        return state.said(facts.optional(path) or b"") or None
    except OSError:
        return None


def writer(home: str) -> Optional[Dict[str, Any]]:
    """Return who holds the writer's lock at this moment, None where nobody does."""
    import fcntl

    linked = held(home)
    try:
        handle = os.open(
            os.path.join(home, "lock"), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        )
    except OSError:
        return linked
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return state.said(os.read(handle, 1 << 16))
    except OSError:
        return linked
    finally:
        os.close(handle)
    return linked


def _boot() -> str:
    return (facts.optional("/proc/sys/kernel/random/boot_id") or b"").decode().strip()


def _namespace() -> str:
    """Return the pid namespace, "" where /proc is another's and tells of other processes."""
    try:
        if os.readlink("/proc/self") == str(os.getpid()):
            return os.readlink("/proc/self/ns/pid")
    except OSError:
        pass
    return ""


def _start(pid: int) -> str:
    """Return when a process started, "ended" where it only waits for its parent to look."""
    data = facts.optional("/proc/%d/stat" % pid) or b""
    fields: List[bytes] = data.rpartition(b")")[2].split()
    if len(fields) < 20:
        return ""
    return "ended" if fields[0] in (b"Z", b"X") else fields[19].decode()
