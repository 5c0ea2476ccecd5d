"""What patchq remembers in an environment: ``.patchq/<distribution>/``, format 1.

The folder lies in the site-packages folder that holds the distribution; the
name is normalised (PEP 503). Nothing else of patchq is anywhere in the
environment. All files are whole or absent (renamed into place), UTF-8 JSON with
file names that are not UTF-8 as lone surrogates. No name ends in ``.py``.

``state.json`` exists while a patch is applied::

    {"schema": 1, "distribution": "vllm",
     "environment": random id of the environment, made at the first push,
     "generation": number of transactions since the stack was empty,
     "dist_info": {"name": folder, "version", "metadata": sha256 of METADATA,
                   "record": sha256 of RECORD as it was written, null without one,
                   "record_before": sha256 of RECORD before the first push,
                   "original": name in originals/ of RECORD's own inode},
     "stack": [AppliedPatch.to_json(), ...], bottom first,
     "originals": {path: {"kind": "file" | "link" | "absent", "sha256", "executable",
                          "mode", "uid", "gid", "mtime_ns", "size",
                          "kept": "inode" | "copy" | "pristine" | null, "name": in originals/}},
     "bytecode": {path of a .pyc that RECORD lists: {"name", "module", "mode", ...}},
     "folders": [folders that patchq made]}

``patches.json``: ``{"schema": 1, "patches": {sha256: base64 of the zlib of the text}}``
for the stack, so that a pop never needs the queue.

``ledger.jsonl``: one receipt a line, kept after the last pop. ``prev`` is the
sha256 of the line before (without its newline), "" for the first. Keys: ``id time
verb who whence uid host python queue commit dirty release chosen patches
distribution version environment generation changes effect kept mtime applied
notes prev``; ``changes`` is ``[[path, before, after], ...]``, ``effect`` is
``{"before", "after"}`` (`effect`), ``applied`` names the stack that it left.
What recovery set aside is told by a receipt of the verb ``recover``, with
``outcome`` ("set aside") and ``where``; it moves no patch.

``journal`` and ``journal.go``: see `patchq.agent.journal`. ``lock``: see
`patchq.agent.lock`. ``originals/``: files that were replaced, by the names that
state.json has; nobody reads through a link in it. ``stage/``: only within a
transaction. ``aside/``: what recovery set aside because its distribution was gone.
"""

from __future__ import annotations

import binascii
import hashlib
import json
import os
import re
import zlib
from typing import Any, Dict, List, Mapping, Optional, Tuple

from patchq.agent import facts, forms, protocol
from patchq.agent.facts import RefusalError

SCHEMA = 1
FOLDER = ".patchq"
# A patch is far smaller; what unpacks to more is none.
_TEXT_LIMIT = 1 << 26
# Digits; none of ours has more than 20.
_DIGITS = 100


def normalise(name: str) -> str:
    """Return a distribution's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def home(distribution: str) -> str:
    """Return the state's folder, relative to site-packages."""
    return FOLDER + "/" + normalise(distribution)


def load(folder: str) -> Optional[Dict[str, Any]]:
    """Return state.json of a state folder, None where there is none.

    Raises:
        RefusalError: a newer patchq wrote it, or it is damaged.
    """
    return _document(os.path.join(folder, "state.json"), forms.STATE)


def patches(folder: str) -> Dict[str, bytes]:
    """Return the texts of the applied patches by sha256.

    Raises:
        RefusalError: a newer patchq wrote them, or one is damaged.
    """
    path = os.path.join(folder, "patches.json")
    document = _document(path, forms.PATCHES)
    found = {}
    for name, text in (document or {"patches": {}})["patches"].items():
        try:
            packed = binascii.a2b_base64(text)
            found[name] = zlib.decompressobj().decompress(packed, _TEXT_LIMIT)
        except (ValueError, zlib.error) as error:
            raise damaged(path, "the text of %s: %s" % (name, error)) from error
        if protocol.sha256(found[name]) != name:
            raise damaged(path, "the text of %s is another one" % name)
    return found


def pack_patches(texts: Mapping[str, bytes]) -> bytes:
    """Return patches.json for these texts."""
    packed = {
        name: binascii.b2a_base64(zlib.compress(text, 6), newline=False).decode()
        for name, text in texts.items()
    }
    return dump({"schema": SCHEMA, "patches": packed})


def ledger(folder: str) -> bytes:
    """Return the whole lines of ledger.jsonl; a torn last line is no receipt."""
    data = facts.optional(os.path.join(folder, "ledger.jsonl")) or b""
    return data[: data.rfind(b"\n") + 1]


def receipts(folder: str) -> Tuple[List[Dict[str, Any]], Optional[str]]:
    """Return the receipts, oldest first, and where their chain is broken, None if nowhere."""
    found: List[Dict[str, Any]] = []
    broken, last = None, b""
    for number, line in enumerate(ledger(folder).split(b"\n")[:-1], 1):
        receipt = receipt_of(line)
        if receipt is None:
            broken = broken or "line %d is no receipt" % number
        elif receipt.get("prev") != (protocol.sha256(last) if last else ""):
            broken = broken or "line %d does not follow the line before it" % number
        if receipt is not None:
            found.append(receipt)
        last = line
    return found, broken


def receipt_of(line: bytes) -> Optional[Dict[str, Any]]:
    """Return one line of the ledger, None where it is no receipt."""
    try:
        found = decoded(line)
    except ValueError:
        return None
    return dict(found) if forms.RECEIPT(found) is None else None


def said(data: bytes) -> Dict[str, Any]:
    """Return what a lock's text says of its holder, nothing where it is no such text."""
    try:
        found = decoded(data)
    except ValueError:
        return {}
    return dict(found) if isinstance(found, dict) else {}


def dump(document: Mapping[str, Any]) -> bytes:
    """Return a document as it is stored: one line, ASCII."""
    return json.dumps(document, separators=(",", ":")).encode() + b"\n"


def effect(stack: List[Dict[str, Any]]) -> str:
    """Return the id by which environments are compared (`model.effect_id` of all changes)."""
    digest = hashlib.sha256()
    for patch in stack:
        for path, before, after in patch["changes"]:
            digest.update(repr((path, before, after)).encode(errors="surrogateescape"))
    return digest.hexdigest()


def interrupted(folder: str) -> Optional[Dict[str, Any]]:
    """Return what a journal says of an unfinished transaction, None where there is none."""
    name = os.path.join(folder, "journal")
    go = facts.exists(name + ".go")
    found = _document(name, forms.INTERRUPTED)
    if found is None and go:
        found = _document(name + ".go", forms.INTERRUPTED)
    if found is None:
        return None
    said = {key: found[key] for key in ("id", "verb", "since")}
    return dict(said, go=go, dist_info=found.get("dist_info"))


def damaged(path: str, why: str) -> RefusalError:
    """Return the error for a file of the state that patchq did not write like this."""
    return RefusalError(
        "damaged-state",
        "patchq's own file %s is damaged" % path,
        why,
        "reinstall the distribution, then remove %s" % os.path.dirname(path),
    )


def decoded(data: bytes) -> Any:
    """Return a JSON document; raises `ValueError` for what no document of ours can be."""
    try:
        found = json.loads(data.decode(), parse_int=_whole)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
    reason = forms.lossless(found)
    if reason is not None:
        raise ValueError(reason)
    return found


def _whole(digits: str) -> int:
    """Return a number; Python before 3.11 takes hours for one of some million digits."""
    if len(digits) > _DIGITS:
        raise ValueError("a number has %d digits" % len(digits))
    return int(digits)


def parse(path: str, data: bytes, form: forms.Check) -> Dict[str, Any]:
    """Return a document of the state; refuses a newer schema and damage."""
    try:
        found = decoded(data)
        schema = found["schema"]
    except (ValueError, KeyError, TypeError) as error:
        raise damaged(path, "it is not JSON that patchq wrote: %s" % error) from error
    if not isinstance(schema, int):
        raise damaged(path, "its schema is %.80r" % (schema,))
    if schema != SCHEMA:
        raise RefusalError(
            "newer-state",
            "a newer patchq keeps the state of this environment",
            "%s has schema %s, this agent reads %d" % (path, schema, SCHEMA),
            "pip install --upgrade patchq",
        )
    reason = form(found)
    if reason is not None:
        raise damaged(path, reason)
    return dict(found)


def _document(path: str, form: forms.Check) -> Optional[Dict[str, Any]]:
    data = facts.optional(path)
    return None if data is None else parse(path, data, form)
