"""Text for a terminal: what a host, a wheel or a patch says must not drive it."""

from __future__ import annotations

import re

# C0 and C1 controls but for newline and tab, which a terminal may act on.
_CONTROLS = {
    code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if code not in (9, 10)
}
# Surrogates that stand for no byte (surrogateescape): no encoding can send them.
_LONE = re.compile("[\ud800-\udc7f\udd00-\udfff]")


def plain(text: str) -> str:
    """Return `text` with control characters shown instead of sent.

    Example:
        >>> plain("red\\x1b[31m")
        'red\\\\x1b[31m'
    """
    return _LONE.sub(lambda found: f"\\u{ord(found[0]):04x}", text.translate(_CONTROLS))
