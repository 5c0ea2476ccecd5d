r"""The header of a patch file, edited: all above the first diff, which stays as it is.

Pure: bytes in, bytes out. What a header says is `patchq.queue.patchfile.fields`' and
`patchq.queue.dep3`'s.
"""

from __future__ import annotations

import re

from patchq.engine import cuts, diff, lines
from patchq.errors import PatchqError, UsageError
from patchq.model import UnsafePath

# quilt(1), --strip-diffstat: a file's line, and the sum below them (scripts/patchfns).
_COUNT = re.compile(rb"#? .* \| ")
_SUM = re.compile(rb"#? .* files? changed(, .* insertions?\(\+\))?(, .* deletions?\(-\))?")


def split(text: bytes, *, name: str, strip: int = 1) -> tuple[bytes, bytes]:
    r"""Return header and body of a patch; of a text without a diff all is header.

    `name` is for messages, `strip` the patch's ``-pN``. A patch that cannot be read whole has
    a header, too.

    Raises:
        PatchFormatError: nobody could say where it ends.

    Example:
        >>> split(b"why\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n", name="x.patch")[0]
        b'why\n'
    """
    header = _read(text, name, strip)
    if isinstance(header, PatchqError):
        rows = lines.split(text)
        found = cuts.cut(rows, source=name)
        if not found:
            raise header
        header = b"".join(rows[: found[0].start])
    return header, text[len(header) :]


def joined(header: bytes, body: bytes, *, name: str, strip: int = 1) -> bytes:
    r"""Return a patch of a new header and the body of an old one; the names are as in `split`.

    A last line without a newline gets one, as quilt does it.

    Raises:
        UsageError: the header holds what reads as the begin of a diff.

    Example:
        >>> joined(b"why", b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n", name="x.patch")[:8]
        b'why\n--- '
    """
    if header and not header.endswith(b"\n"):
        header += b"\n"
    text = header + body
    found = _read(header, name, strip)
    if found == header:
        found = _read(text, name, strip)
        if isinstance(found, PatchqError) and isinstance(_read(body, name, strip), PatchqError):
            found = split(text, name=name, strip=strip)[0]  # it could not be read before, either
    if found == header:
        return text
    why = (
        f"line {len(lines.split(found)) + 1} of it begins a diff"
        if isinstance(found, bytes)
        else f"{found.what}: {found.why}"
    )
    raise UsageError(
        f"the new header of patch {name} would not be a header",
        why=why,
        mend="put a blank before each line of the header that looks like a diff's",
    )


def _read(text: bytes, name: str, strip: int) -> bytes | PatchqError:
    """Return the header of a patch that can be read whole, or why it can not."""
    try:
        return diff.parse(text, name=name, strip=strip)[0]
    except (diff.PatchFormatError, UnsafePath) as error:
        return error


def without_diffstat(header: bytes) -> bytes:
    r"""Return a header without the diffstats in it, as quilt's ``--strip-diffstat`` does it.

    Example:
        >>> without_diffstat(b"why\n x | 2 +-\n 1 file changed, 1 insertion(+)\nend\n")
        b'why\nend\n'
    """
    out: list[bytes] = []
    counts: list[bytes] = []
    for line in lines.split(header):
        if _COUNT.search(line):
            counts.append(line)
        elif _SUM.match(line):
            counts = []
        else:
            out += [*counts, line]
            counts = []
    return b"".join([*out, *counts])


def without_trailing(header: bytes) -> bytes:
    r"""Return a header without blanks and tabs at the ends of its lines.

    Example:
        >>> without_trailing(b"a \nb\t\n")
        b'a\nb\n'
    """
    return re.sub(rb"[ \t]+(?=\n|\Z)", b"", header)


def with_diffstat(header: bytes, rows: list[str]) -> bytes:
    r"""Return a header with a diffstat: in the place of an old one, else below it, behind ``---``.

    Example:
        >>> with_diffstat(b"why\n---\n x | 1 +\n 1 file changed, 1 insertion(+)\n\n", [" y | 1 -"])
        b'why\n---\n y | 1 -\n\n'
        >>> with_diffstat(b"", [" y | 1 -"])
        b'---\n y | 1 -\n\n'
    """
    new = lines.encode("".join(f"{row}\n" for row in rows))
    old = lines.split(header)
    at = next((number for number, line in enumerate(old) if _SUM.match(line)), None)
    if at is None:
        gap = b"" if not header or header.endswith(b"\n") else b"\n"
        return header + gap + b"---\n" + new + b"\n"
    start = at
    while start and _COUNT.search(old[start - 1]):
        start -= 1
    return b"".join(old[:start]) + new + b"".join(old[at + 1 :])
