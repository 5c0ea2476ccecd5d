"""The snapshot of a plain tree: ``.patchq/tree/snapshot.json``, format 1.

    {"schema": 1, "files": {path: [base64 of the bytes, executable] | null where there is none}}

It has the files that patches had when it was taken. There is one at a time, as with quilt.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path

from patchq.errors import PatchqError
from patchq.queue import reading, writing

SCHEMA = 1
File = tuple[bytes, bool]


def load(root: Path) -> dict[str, File | None] | None:
    """Return the files of a tree's snapshot, None where there is none.

    Raises:
        PatchqError: it is damaged, or of a newer patchq.
    """
    path = _place(root)
    text = reading.read(path)
    if text is None:
        return None
    try:
        document = json.loads(text)
        if document["schema"] != SCHEMA:
            raise ValueError(f"its schema is {document['schema']}, and {SCHEMA} is known")
        return {
            str(name): None if file is None else (base64.b64decode(file[0]), bool(file[1]))
            for name, file in document["files"].items()
        }
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise PatchqError(
            f"{path} can not be read", why=str(error), mend="patchq snapshot -d --tree ."
        ) from error


def save(root: Path, files: Mapping[str, File | None]) -> None:
    """Put a snapshot in the place of the one that there is."""
    path = _place(root)
    path.parent.mkdir(parents=True, exist_ok=True)
    packed = {
        name: None if file is None else [base64.b64encode(file[0]).decode(), file[1]]
        for name, file in files.items()
    }
    writing.write(path, json.dumps({"schema": SCHEMA, "files": packed}).encode())


def drop(root: Path) -> bool:
    """Take a tree's snapshot away; return whether there was one."""
    path = _place(root)
    there = path.exists()
    path.unlink(missing_ok=True)
    return there


def _place(root: Path) -> Path:
    return root / ".patchq" / "tree" / "snapshot.json"
