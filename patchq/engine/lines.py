"""Text as patchq has it: bytes, and lines that end in ``b"\\n"`` only.

`str.splitlines` breaks on form feeds and `bytes.splitlines` on a lone CR; here a
carriage return, a form feed or a NEL is a byte like any other. Joining what
`split` returns gives the bytes back, and so does encoding what `decode` returns.
"""

from __future__ import annotations


def split(data: bytes) -> list[bytes]:
    r"""Return the lines of `data`, each with its newline; the last may lack one.

    Example:
        >>> split(b"a\rb\n\nc")
        [b'a\rb\n', b'\n', b'c']
    """
    *whole, rest = data.split(b"\n")
    lines = [line + b"\n" for line in whole]
    if rest:
        lines.append(rest)
    return lines


def decode(data: bytes) -> str:
    r"""Return `data` as text; bytes that are not UTF-8 become surrogate escapes.

    Example:
        >>> decode(b"caf\xe9")
        'caf\udce9'
    """
    return data.decode("utf-8", "surrogateescape")


def encode(text: str) -> bytes:
    r"""Return the bytes that `decode` read.

    Example:
        >>> encode("caf\udce9")
        b'caf\xe9'
    """
    return text.encode("utf-8", "surrogateescape")


def shown(line: bytes) -> str:
    r"""Return a line for a message; what is not printable shows as an escape.

    Example:
        >>> print(shown(b"a\tb\r\n"), shown(b"c"))
        'a\tb\r' 'c' without a newline
    """
    text = repr(decode(line.removesuffix(b"\n")))
    return text if line.endswith(b"\n") else f"{text} without a newline"
