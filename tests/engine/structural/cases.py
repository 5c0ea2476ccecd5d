"""Asks the structural merge about three short texts."""

from __future__ import annotations

import textwrap

from patchq.engine import structural


def text(said: str) -> str:
    """Return a text written with an indentation of its own."""
    return textwrap.dedent(said).lstrip("\n")


def merged(base: str, ours: str, theirs: str) -> structural.Result:
    """Merge three texts."""
    return structural.merge(text(base), text(ours), text(theirs))


def forced(base: str, ours: str, theirs: str) -> str:
    """Return the text of a merge that leaves nothing open, both ways round."""
    found, back = merged(base, ours, theirs), merged(base, theirs, ours)
    assert found.text is not None, found.reasons
    assert found.flags == ()
    assert back.text is not None, back.reasons
    assert back.flags == ()
    return found.text


def flagged(base: str, ours: str, theirs: str, *said: str) -> str:
    """Return the text of a merge, whose flags say all this."""
    found = merged(base, ours, theirs)
    assert found.text is not None, found.reasons
    assert found.flags
    for words in said:
        assert any(words in flag for flag in found.flags), found.flags
    return found.text


def refused(base: str, ours: str, theirs: str) -> str:
    """Return why there is no merge, in both directions one."""
    found, back = merged(base, ours, theirs), merged(base, theirs, ours)
    assert found.text is None
    assert back.text is None
    assert found.reasons
    assert back.reasons
    return "; ".join(found.reasons)
