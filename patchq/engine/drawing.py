"""A graph of patches on paper: in the language of dot(1), as quilt writes it, and as a tree."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from patchq.engine.graph import Edge


def dot(
    names: Sequence[str],
    edges: Sequence[Edge],
    *,
    selected: int | None = None,
    files: bool = False,
) -> list[str]:
    r"""Return the lines of a digraph whose arrows lead to the patch that needs the other.

    Patches that have no edge are left out, but for the `selected` one, which is bold. With
    `files` the edges have the names of the files. Lengths are for neato(1).

    Example:
        >>> print("\n".join(dot(["a", "b"], [Edge(1, 0, ("f",))], files=True)).expandtabs(1))
        digraph dependencies {
         n0 [label="a"];
         n1 [label="b"];
         n0 -> n1 [label="f",len="1.39"];
        }
    """
    used = {place for edge in edges for place in (edge.above, edge.below)}
    out = ["digraph dependencies {"]
    for place, name in enumerate(names):
        if place in used or place == selected:
            style = "style=bold," if place == selected else ""
            style += "" if place in used else "color=grey,"
            out.append(f"\tn{place} [{style}label={_quoted(name)}];")
    for edge in edges:
        label = f"label={_quoted(chr(10).join(edge.files))}," if files else ""
        length = math.log(edge.above - edge.below + 3)
        out.append(f'\tn{edge.below} -> n{edge.above} [{label}len="{length:.2f}"];')
    return [*out, "}"]


def tree(
    names: Sequence[str], edges: Sequence[Edge], shown: Sequence[int], *, files: bool = False
) -> list[str]:
    """Return the lines of a tree: under each patch those that it needs, nearest first.

    First come the patches of `shown` that no other one needs, topmost first. What was drawn
    with all that is under it is not drawn again: "(above)".

    Example:
        >>> print("\\n".join(tree(["a", "b"], [Edge(1, 0, ("f",))], [0, 1])))
        b
        `-- a
    """
    needed = {edge.below for edge in edges}
    under: dict[int, list[Edge]] = {}
    for edge in edges:
        under.setdefault(edge.above, []).insert(0, edge)
    done: set[int] = set()
    out: list[str] = []
    for place in sorted(set(shown) - needed, reverse=True):
        out += [names[place], *_branches(names, under, place, done, files)]
    return out


def _branches(
    names: Sequence[str],
    under: dict[int, list[Edge]],
    place: int,
    done: set[int],
    files: bool,
) -> Iterator[str]:
    """Yield the lines below a patch; a stack of its own, since a series may be deep."""
    todo = [("", edge, edge is under[place][-1]) for edge in reversed(under.get(place, ()))]
    while todo:
        indent, edge, last = todo.pop()
        label = f"  ({', '.join(edge.files)})" if files else ""
        below = under.get(edge.below, [])
        again = below and edge.below in done
        yield f"{indent}{'`-- ' if last else '|-- '}{names[edge.below]}{label}" + (
            "  (above)" if again else ""
        )
        done.add(edge.below)
        if not again:
            deeper = indent + ("    " if last else "|   ")
            todo += [(deeper, one, one is below[-1]) for one in reversed(below)]


def _quoted(text: str) -> str:
    """Return a string of dot's; a newline in it breaks the line of a label."""
    body = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{body}"'
