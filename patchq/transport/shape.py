"""The form that an agent's answer must have before a verb reads it.

A host is not trusted: its answer may be any JSON. What a verb takes for granted is
checked here, once, so that a wrong answer is an error of the host's and never a
failure in the middle of a verb: that the keys are there, and that every path and content
that was asked for came. The state of an environment is a file that a user may have
damaged; `patchq.conversation.answers` judges that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_QUOTED = 200
# Distributions with a record in one environment; each is asked about.
_RECORDS = 100
# Environments that one host names; each is shown.
_FOUND = 200
_CONTROL = re.compile("[\0-\x1f\x7f-\x9f\u2028\u2029]")
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True)
class Each:
    """An object whose keys are free, or a list; every value has the form."""

    form: Form
    kind: type = dict


@dataclass(frozen=True, slots=True)
class Maybe:
    """The form, or null, or not there."""

    form: Form


# A type; an object that has these keys, and may have others; or one of the above.
Form = type | dict[str, "Form"] | Each | Maybe

_SURVEY: Form = {
    "python": {"version": str, "executable": str},
    "site": Maybe(str),
    "installed": Maybe(
        {
            "name": str,
            "version": str,
            "dist_info": str,
            "record": Maybe(str),
            "installer": Maybe(str),
        }
    ),
    "files": Each(
        {
            "kind": str,
            "sha256": Maybe(str),
            "executable": Maybe(bool),
            "recorded": Maybe(str),
            "problem": Maybe(str),
        }
    ),
    "state": Maybe(dict),
    "orphaned": Maybe(str),
    "interrupted": Maybe(dict),
    "busy": Maybe(dict),
    "ledger_broken": Maybe(str),
    "records": Maybe(Each(str, list)),
    "refusal": Maybe({"what": str, "why": str, "mend": str}),
}
FORMS: dict[str, Form] = {
    "survey": _SURVEY,
    "read": {"files": Each(Maybe(str)), "originals": Each(Maybe(str))},
    "records": {"records": Each(str, list)},
    "commit": {"receipt": dict, "pending": Maybe(str), "kept": Maybe(dict)},
    "hash": {
        "record": Maybe(str),
        "differs": Each(Maybe(str)),
        "added": Each(Maybe(str)),
        "blank": Each(Maybe(str)),
        "hashed": int,
        "more": int,
    },
    "discover": {
        "found": Each(
            {
                "python": str,
                "site": str,
                "distribution": str,
                "version": str,
                "processes": Each(int, list),
            },
            list,
        ),
        "elsewhere": int,
        "cut": Maybe(str),
    },
    "settle": {
        "receipt": Maybe({"id": str, "verb": str, "kept": dict, "patches": dict}),
        "last": bool,
    },
    "recover": {"outcome": str, "paths": Each(str, list), "where": Maybe(str)},
}


def fault(
    question: Mapping[str, Any], ok: Mapping[str, Any], blobs: Mapping[str, bytes]
) -> str | None:
    """Return why `ok` does not answer the question, None where it does.

    Example:
    >>> fault({"op": "records"}, {"records": ["demo", 5]}, {})
    'records.1 is int, not str'
    """
    operation = question.get("op")
    form = FORMS.get(str(operation))
    reason = None if form is None else _differs(form, ok, "")
    if reason is None and operation == "survey":
        reason = _broken_line(ok)
    if reason is None and operation in ("survey", "records"):
        reason = _named(ok.get("records") or ())
    if reason is None and operation == "survey":
        reason = _survey_lacks(question, ok, blobs)
    if reason is None and operation == "discover":
        reason = _many_found(ok["found"])
    if reason is None and operation == "settle":
        receipt = ok["receipt"]
        other = receipt is not None and receipt["id"] != question.get("id")
        reason = "its receipt is of another commit" if other else None
    if reason is None and operation == "read":
        reason = _read_lacks(question, ok, blobs)
    return None if reason is None else reason[:_QUOTED]


def _differs(form: Form, value: Any, at: str) -> str | None:
    """Return where a value has another form, None if nowhere."""
    if isinstance(form, Maybe):
        return None if value is None else _differs(form.form, value, at)
    kind = form.kind if isinstance(form, Each) else dict if isinstance(form, dict) else form
    if type(value) is not kind:
        return f"{at} is {type(value).__name__}, not {kind.__name__}"
    reasons = (
        _differs(each, found, f"{at}.{name}".lstrip(".")) for each, found, name in _in(form, value)
    )
    return next((reason for reason in reasons if reason is not None), None)


def _in(form: Form, value: Any) -> Iterator[tuple[Form, Any, object]]:
    """Yield what is in a value of the form: form, value and name of each."""
    if isinstance(form, Each):
        for name, each in value.items() if form.kind is dict else enumerate(value):
            yield form.form, each, name
    elif isinstance(form, dict):
        for name, one in form.items():
            yield one, value.get(name), name


def _broken_line(ok: Mapping[str, Any]) -> str | None:
    """Return which name has a newline or another control character in it, None where none."""
    have, python = ok.get("installed") or {}, ok["python"]
    names = {
        "site": ok.get("site"),
        **{f"python.{key}": python[key] for key in ("version", "executable")},
        **{f"installed.{key}": have.get(key) for key in ("name", "version", "dist_info")},
    }
    odd = [key for key, name in names.items() if name and _CONTROL.search(name)]
    return f"{odd[0]} is {names[odd[0]]!r}, which is no line of text" if odd else None


def _named(records: Sequence[str]) -> str | None:
    """Return why what is said to have a record can not be asked about, None where it can."""
    if len(records) > _RECORDS:
        return f"it has records of {len(records)} distributions, more than {_RECORDS}"
    odd = [name for name in records if _NAME.fullmatch(name) is None]
    return f"no distribution is called {odd[0]!r}" if odd else None


def _many_found(found: Sequence[Mapping[str, Any]]) -> str | None:
    """Return why what was found can not be shown, None where it can."""
    if len(found) > _FOUND:
        return f"it found {len(found)} environments, more than {_FOUND}"
    names = ("python", "site", "distribution", "version")
    odd = [key for one in found for key in names if _CONTROL.search(one[key])]
    return f"found.{odd[0]} is no line of text" if odd else None


def _survey_lacks(
    question: Mapping[str, Any], ok: Mapping[str, Any], blobs: Mapping[str, bytes]
) -> str | None:
    files, known = ok["files"], question.get("known")
    if ok.get("site"):
        for path in question.get("paths") or ():
            if path not in files:
                return f"it does not say what is at {path!r}"
    if known is not None:
        known = frozenset(known)
        return _unsent({path: facts.get("sha256") for path, facts in files.items()}, blobs, known)
    return None


def _read_lacks(
    question: Mapping[str, Any], ok: Mapping[str, Any], blobs: Mapping[str, bytes]
) -> str | None:
    for key in ("files", "originals"):
        asked = set(question.get(key.replace("files", "paths")) or ())
        if asked != ok[key].keys():
            return f"{key} has other paths than were asked for"
        reason = _unsent(ok[key], blobs, frozenset(question.get("known") or ()))
        if reason is not None:
            return reason
    return None


def _unsent(
    named: Mapping[str, str | None],
    blobs: Mapping[str, bytes],
    known: frozenset[str] = frozenset(),
) -> str | None:
    """Return the path whose content is named and did not come along, None if all did."""
    for path, digest in named.items():
        if digest and digest not in blobs and digest not in known:
            return f"the content of {path!r} did not come along"
    return None
