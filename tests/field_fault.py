"""The edit that once kept a model server from starting, for the test and the demo."""

from pathlib import Path


def split_import(patch: Path) -> None:
    """Take the parentheses from the import list that the patch writes, as sed once did."""
    lines = patch.read_text().split("\n")
    at = lines.index("+from .interfaces import (")
    lines[at : at + 2] = [lines[at].replace("(", lines[at + 1].lstrip("+ "))]
    del lines[lines.index("+)", at)]
    counts = next(i for i in range(at, -1, -1) if lines[i].startswith("@@ "))
    start, count = lines[counts].split(" ")[2].split(",")
    lines[counts] = lines[counts].replace(f"{start},{count} ", f"{start},{int(count) - 2} ")
    patch.write_text("\n".join(lines))
