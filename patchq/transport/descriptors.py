"""How many connections the limit of open files allows."""

from __future__ import annotations

import contextlib
import os
import resource

# More are of no use; where there is no limit, some systems refuse a larger number.
_MOST = 10_240
# What one connection has open at most: a command's three pipes with both ends while it
# starts, and what watches them; one by SSH has less, with its SSH agent or ProxyCommand.
_EACH = 8
# For files, name look-ups, Git and the loop itself.
_RESERVE = 24


def room() -> int:
    """Return how many hosts may be connected at once, at least one.

    The soft limit of open files is raised towards the hard one first, as ssh-keyscan(1) does.

    Example:
        >>> room() >= 1
        True
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST if hard == resource.RLIM_INFINITY else min(_MOST, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            soft = most
    limit = _MOST if soft == resource.RLIM_INFINITY else min(_MOST, soft)
    return max(1, (limit - _open_now() - _RESERVE) // _EACH)


def _open_now() -> int:
    """Return how many files this process has open, as far as the system tells."""
    with contextlib.suppress(OSError):
        return len(os.listdir("/dev/fd"))
    return _RESERVE
