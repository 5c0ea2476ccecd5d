"""The forms of what patchq keeps in an environment, checked before it is used.

Whoever can write the state's folder can write anything into it, and a disk can
lose some of it. So every document is looked through once, as it is loaded: no
later step then meets a text where it needs a number, or a name that leads
elsewhere. A check returns what is wrong with a value, None where nothing is.
"""

from __future__ import annotations

import json
import re
import reprlib
from typing import Any, Callable, Optional

from patchq.agent import protocol

Check = Callable[[Any], Optional[str]]

_DIGEST = re.compile("[0-9a-f]{64}")
_NAME = re.compile("[0-9A-Za-z][0-9A-Za-z._-]*")
# What a distribution may be called: PEP 508, the names that PEP 503 normalises.
_DISTRIBUTION = re.compile("[0-9A-Za-z]([0-9A-Za-z._-]*[0-9A-Za-z])?")


def text(value: Any) -> Optional[str]:
    """Check that it is text."""
    return None if isinstance(value, str) else _not("text", value)


def lossless(document: Any) -> Optional[str]:
    """Check that a JSON document can be stored, and read again as it was.

    Of the surrogates only those are text that stand for bytes that are not UTF-8.
    """
    try:
        json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogateescape")
    except RecursionError:
        return "it is nested too deep"
    except UnicodeEncodeError as error:
        return "it holds what is not text: %s" % error
    return None


def flag(value: Any) -> Optional[str]:
    """Check that it is true or false."""
    return None if isinstance(value, bool) else _not("true or false", value)


def count(value: Any) -> Optional[str]:
    """Check that it is a whole number, as large as the kernel's largest."""
    return None if _between(value, 0, 1 << 64) else _not("a number", value)


def moment(value: Any) -> Optional[str]:
    """Check that it is nanoseconds since 1970, or before."""
    return None if _between(value, -(1 << 63), 1 << 63) else _not("a time", value)


def mode(value: Any) -> Optional[str]:
    """Check that it is the mode of a file, without its kind."""
    return None if _between(value, 0, 1 << 12) else _not("a mode", value)


def owner(value: Any) -> Optional[str]:
    """Check that it is the number of a user or a group."""
    return None if _between(value, 0, (1 << 32) - 1) else _not("a user or group", value)


def digest(value: Any) -> Optional[str]:
    """Check that it is a SHA-256 in hexadecimal."""
    return None if _matches(_DIGEST, value) else _not("a sha256", value)


def name(value: Any) -> Optional[str]:
    """Check that it is a bare name as patchq gives them: it leads nowhere."""
    return None if _matches(_NAME, value) else _not("a name", value)


def distribution(value: Any) -> Optional[str]:
    """Check that a distribution may be called so."""
    return None if _matches(_DISTRIBUTION, value) else _not("a distribution's name", value)


def path(value: Any) -> Optional[str]:
    """Check that it is a path that a transaction may touch."""
    if not isinstance(value, str):
        return _not("a path", value)
    reason = protocol.unsafe(value)
    return None if reason is None else "%s is no path for a patch: %s" % (_short(value), reason)


def one_of(*names: str) -> Check:
    """Return the check that a text is one of `names`."""
    return lambda value: (
        None
        if isinstance(value, str) and value in names
        else _not("one of " + ", ".join(names), value)
    )


def maybe(check: Check) -> Check:
    """Return the check that allows null beside what `check` allows."""
    return lambda value: None if value is None else check(value)


def every(check: Check) -> Check:
    """Return the check of a list, item by item."""

    def of_list(value: Any) -> Optional[str]:
        if not isinstance(value, list):
            return _not("a list", value)
        return next(filter(None, map(check, value)), None)

    return of_list


def each(key: Check, check: Check) -> Check:
    """Return the check of a mapping, key by key and value by value."""

    def of_mapping(value: Any) -> Optional[str]:
        if not isinstance(value, dict):
            return _not("a mapping", value)
        for one, item in value.items():
            reason = key(one) or _of(one, check(item))
            if reason is not None:
                return reason
        return None

    return of_mapping


def record(**keys: Check) -> Check:
    """Return the check of a mapping that has these keys; others may be there, too."""

    def of_record(value: Any) -> Optional[str]:
        if not isinstance(value, dict):
            return _not("a mapping", value)
        for key, check in keys.items():
            reason = _of(key, check(value[key])) if key in value else "there is no %r" % key
            if reason is not None:
                return reason
        return None

    return of_record


def change(value: Any) -> Optional[str]:
    """Check that it is ``[path, before, after]`` with two file states."""
    if not isinstance(value, list) or len(value) != 3:
        return _not("a change", value)
    return path(value[0]) or _of(value[0], file_state(value[1]) or file_state(value[2]))


def dist_info(value: Any) -> Optional[str]:
    """Check that it is the name of a dist-info folder; patchq's own stands for a tree's."""
    if value == ".patchq":
        return None
    if isinstance(value, str) and value.endswith(".dist-info"):
        return _not("a dist-info", value) if "/" in value or "\0" in value else None
    return _not("a dist-info", value)


def file_state(value: Any) -> Optional[str]:
    """Check that it is ``[kind, executable, sha256]``."""
    if not isinstance(value, list) or len(value) != 3:
        return _not("a file's state", value)
    return _KIND(value[0]) or flag(value[1]) or maybe(digest)(value[2])


def _between(value: Any, start: int, end: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and start <= value < end


def _matches(pattern: re.Pattern[str], value: Any) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _of(where: str, reason: Optional[str]) -> Optional[str]:
    return None if reason is None else "%s: %s" % (_short(where).strip("'\""), reason)


def _not(what: str, value: Any) -> str:
    return "%s is not %s" % (_short(value), what)


def _short(value: Any) -> str:
    return ascii(value) if isinstance(value, str) and len(value) < 80 else reprlib.repr(value)


_KIND = one_of("file", "absent")
_OWNED = {"sha256": maybe(digest), "mode": mode, "uid": owner, "gid": owner}
_ANY_KIND = one_of("file", "link", "absent", "folder", "other")
_SIDE = record(kind=_ANY_KIND, **_OWNED)

_STACK = every(record(queue=text, patch=text, release=text, sha256=digest, changes=every(change)))

STATE = record(
    distribution=distribution,
    environment=text,
    generation=count,
    dist_info=record(
        name=dist_info,
        version=text,
        metadata=maybe(digest),
        record=maybe(digest),
        record_before=maybe(digest),
        original=maybe(name),
    ),
    stack=_STACK,
    originals=each(
        path,
        record(
            kind=one_of("file", "link", "absent"),
            executable=flag,
            mtime_ns=moment,
            size=count,
            name=maybe(name),
            **_OWNED,
        ),
    ),
    bytecode=each(path, record(kind=one_of("file"), name=name, module=path, **_OWNED)),
    folders=every(path),
)
PATCHES = record(patches=each(digest, text))
INTERRUPTED = record(id=name, verb=text, since=text)
JOURNAL = record(
    id=name,
    verb=text,
    since=text,
    who=text,
    generation=count,
    dist_info=record(name=dist_info, metadata=maybe(digest), inode=every(count)),
    ledger=count,
    modules=every(path),
    drop=every(name),
    entries=every(
        record(
            path=text,  # `patchq.agent.journal` knows which role may have which
            role=one_of("folder", "file", "bytecode", "record", "own"),
            before=_SIDE,
            after=_SIDE,
            new=maybe(name),
            old=maybe(name),
            keep=maybe(name),
            gives=maybe(name),
            plus=maybe(digest),
        )
    ),
)
_MOVED = each(text, every(record(patch=text, sha256=text)))
COMMIT = record(
    entries=every(record(path=path, before=file_state, after=file_state)),
    stack=_STACK,
    patches=every(digest),
    expect=record(),
    receipt=record(verb=text, queue=text, patches=_MOVED),
)
RECEIPT = record(
    id=text, time=text, verb=text, queue=text, patches=_MOVED, environment=maybe(text)
)


def _anything(_: Any) -> Optional[str]:
    return None


_ASKED = {
    "op": text,
    "target": maybe(text),
    **dict.fromkeys(("tree", "info"), maybe(flag)),
    "paths": maybe(every(_anything)),  # `environment.locate` says what is wrong with one
    **dict.fromkeys(("originals", "known", "want", "skip"), maybe(every(text))),
    "distributions": every(distribution),
    "entries": every(record(path=_anything)),
    "expect": record(),
    "receipt": record(),
    "force": maybe(one_of("old", "new")),
    "modules": every(text),
}
_NEEDED = {
    "import": ("op", "distribution", "modules"),
    "records": ("op",),
    "survey": ("op", "distribution", "paths"),
    "discover": ("op", "distributions"),
}


def request(value: Any) -> Optional[str]:
    """Check that a request says what the operation needs, and nothing of another kind."""
    for key in _NEEDED.get(str(value.get("op")), ("op", "distribution")):
        if key not in value:
            return "there is no %r" % key
    for key in value:
        reason = _of(key, _ASKED.get(key, _anything)(value[key]))
        if reason is not None:
            return reason
    return None
