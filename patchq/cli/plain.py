"""Text for a terminal: what a host, a wheel or a patch says must not drive it."""

from __future__ import annotations

import re
import sys

import click

from patchq.errors import PatchqError

# C0 and C1 controls but for newline and tab, which a terminal may act on.
_CONTROLS = {
    code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if code not in (9, 10)
}
# What turns the direction of a line, or ends it, on some terminals: marks, embeddings, isolates.
_TURNS = {
    code: f"\\u{code:04x}"
    for code in (0x61C, *range(0x200E, 0x2010), *range(0x2028, 0x202F), *range(0x2066, 0x206A))
}
_SHOWN = _CONTROLS | _TURNS
_BREAKS = {9: "\\t", 10: "\\n"}
# Surrogates that stand for no byte (surrogateescape): no encoding can send them.
_LONE = re.compile("[\ud800-\udc7f\udd00-\udfff]")


def plain(text: str) -> str:
    """Return `text` with control characters, and what turns a line, shown instead of sent.

    Example:
        >>> plain("red\\x1b[31m")
        'red\\\\x1b[31m'
    """
    return _LONE.sub(lambda found: f"\\u{ord(found[0]):04x}", text.translate(_SHOWN))


def line(text: str) -> str:
    """Return `text` as one line: as `plain` has it, newlines and tabs shown, too.

    Example:
        >>> line("1.0\\nhonest: done")
        '1.0\\\\nhonest: done'
    """
    return plain(text.translate(_BREAKS))


def put(text: str) -> None:
    """Print an answer.

    Raises:
        PatchqError: stdout takes no more, as on a full disk.
    """
    try:
        click.echo(text, color=True)  # whoever made the text has settled its colours
    except BrokenPipeError:
        raise
    except OSError as error:
        sys.stdout = None  # or Python flushes it again at the end
        raise PatchqError(
            "the answer could not be written to stdout; what the verb did is done",
            why=error.strerror or str(error),
            mend="patchq status",
        ) from error
