"""Which interpreters a host has, for the error that says that one is missing."""

from __future__ import annotations

import re

# How many are named at most.
MOST = 10
_NAMES = ("python3", *(f"python3.{minor}" for minor in range(15, 7, -1)))
_PATHS = (
    "/usr/bin/python3*",
    "/usr/local/bin/python3*",
    "/opt/*/bin/python3",
    '"$HOME"/.venv/bin/python3',
    '"$HOME"/venv/bin/python3',
    '"$HOME"/miniconda3/bin/python3',
    "/opt/conda/bin/python3",
    "/usr/libexec/platform-python",
)
_INTERPRETER = re.compile(rb"/.*/(python3(\.\d+)?|platform-python)")


def line(nonce: bytes) -> str:
    """Return the line for a login shell that lists interpreters between two marks."""
    mark = nonce.decode()
    return (
        f"sh -c 'echo; echo {mark}-begin; "
        f"for p in {' '.join(_NAMES)}; do command -v $p; done 2>/dev/null; "
        f'for p in {" ".join(_PATHS)}; do test -x "$p" && echo "$p"; done; '
        f"echo {mark}-end'"
    )


def listed(stdout: bytes, nonce: bytes) -> tuple[str, ...]:
    """Return the paths that came between the marks, each once."""
    lines = stdout.split(b"\n")
    begin, end = nonce + b"-begin", nonce + b"-end"
    if begin not in lines or end not in lines:
        return ()
    inside = lines[lines.index(begin) + 1 : lines.index(end)]
    paths = [path.decode(errors="replace") for path in inside if _INTERPRETER.fullmatch(path)]
    return tuple(dict.fromkeys(paths))[:MOST]
