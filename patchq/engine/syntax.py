"""The tree of a text as the running Python has it, also where only libcst reads the text.

The always-on checks walk these trees: `ast` reads a file in a tenth of the time,
and what is newer than the running Python comes from `patchq.engine.newer`.
"""

from __future__ import annotations

import ast
import functools

from patchq.engine import trees
from patchq.engine.trees import Fault


@functools.lru_cache(maxsize=8)
def parsed(data: bytes) -> ast.Module | Fault | None:
    """Return the tree of a text, or why it is not Python.

    None: it is Python, and nobody here can walk it: it is nested too deeply for that.
    """
    own = trees.python(data)
    if isinstance(own, ast.Module):
        return own
    tree = trees.tree(data)
    if isinstance(tree, Fault):
        return tree
    from patchq.engine import newer

    try:
        return newer.lowered(tree)
    except (RecursionError, SyntaxError):  # libcst's own checks raise the latter
        return None
