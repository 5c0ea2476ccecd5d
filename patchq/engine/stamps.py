"""Time stamps behind the names of a plain diff, as GNU diff writes them."""

from __future__ import annotations

import re

_EPOCH = re.compile(
    r"(1969-12-31|1970-01-01) (\d\d):(\d\d):00(?:\.0+)? ([-+])(\d\d):?(\d\d)", re.ASCII
)
# What GNU diff puts behind a name and a tab: since 2.8 ISO 8601, before that as ctime(3) has it.
_DATE = re.compile(
    r"\s(\d{4}-\d\d-\d\d(\s+\d\d:\d\d\S*(\s+[-+]\d{4})?)?"
    r"|[A-Z][a-z]{2}\s+[A-Z][a-z]{2}\s+\d\d?\s+\d\d:\d\d:\d\d\s(\S+\s)?\d{4})\s*$",
    re.ASCII,
)


def is_epoch(stamp: str) -> bool:
    """Return whether a time stamp is second 0, by which GNU diff -N says "not there"."""
    match = _EPOCH.fullmatch(stamp)
    if match is None:
        return False
    day, hour, minute, sign, off_hour, off_minute = match.groups()
    local = int(hour) * 60 + int(minute) - (24 * 60 if day == "1969-12-31" else 0)
    offset = int(off_hour) * 60 + int(off_minute)
    return local == (offset if sign == "+" else -offset)


def behind(name: str) -> str | None:
    """Return the date in which a name ends, as it does where the tab between them was lost.

    Example:
        >>> behind("b/x.py   2026-11-30 19:30:00.04 +0000"), behind("b/2026-11-30.py")
        ('2026-11-30 19:30:00.04 +0000', None)
    """
    found = _DATE.search(name)
    return found[0].strip() if found else None
