"""Tree objects of git, as bytes."""

from __future__ import annotations


def entries(tree: bytes) -> dict[str, tuple[int, str]]:
    """Return name -> (mode, id) of a tree object's bytes."""
    found: dict[str, tuple[int, str]] = {}
    at = 0
    while at < len(tree):
        space, end = tree.index(b" ", at), tree.index(b"\0", at)
        name = tree[space + 1 : end].decode(errors="surrogateescape")
        found[name] = (int(tree[at:space], 8), tree[end + 1 : end + 21].hex())
        at = end + 21
    return found
