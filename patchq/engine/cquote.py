r"""File names as git writes them in patches: in C quotes where they must be.

`quote` and `unquote` are bytes-exact: names that are not UTF-8 travel as octal
escapes in a patch and as surrogate escapes in patchq.
"""

from __future__ import annotations

import re

from patchq.engine import lines

# A name in quotes at the start of a text; group 1 is its body.
QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r'\\([0-3][0-7]{2}|[abtnvfr"\\])')
_LETTERS = dict(zip('abtnvfr"\\', '\a\b\t\n\v\f\r"\\', strict=True))
_ESCAPED = {ord(char): f"\\{letter}" for letter, char in _LETTERS.items()}


def quote(path: str) -> str:
    r"""Return `path` as git writes it with its default `core.quotePath`.

    Example:
        >>> print(quote("a/1 2.py"), quote("a/caf\u00e9.py"))
        a/1 2.py "a/caf\303\251.py"
    """
    raw = lines.encode(path)
    body = "".join(
        _ESCAPED.get(byte) or (chr(byte) if 31 < byte < 127 else f"\\{byte:03o}") for byte in raw
    )
    return path if body == path else f'"{body}"'


def unquote(body: str) -> str:
    r"""Return the name whose quoted form has `body` between the quotes.

    What is not an escape of git's stays as it is.

    Example:
        >>> unquote("a/caf\\303\\251.py")
        'a/café.py'
    """
    raw, at = bytearray(), 0
    for match in _ESCAPE.finditer(body):
        raw += lines.encode(body[at : match.start()])
        escape = match[1]
        raw += bytes([int(escape, 8)]) if escape.isdigit() else _LETTERS[escape].encode()
        at = match.end()
    raw += lines.encode(body[at:])
    return lines.decode(bytes(raw))
