"""What stands in brackets merged three ways: literals, arguments, parameters, names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from patchq.engine.structural import layout, order, sides
from patchq.engine.structural.elements import Elements, Merge, colon
from patchq.engine.structural.nodes import Element, Group, norm
from patchq.engine.structural.notes import Notes
from patchq.engine.structural.sequences import merged as sequence


def merged(base: Group, ours: Group, theirs: Group, notes: Notes, words: Merge) -> Group:
    """Return the brackets of a merge; `words` merges what stands in them. Raises: Conflict."""
    taken = sides.chosen((base,), (ours,), (theirs,))
    if taken is not None:
        assert isinstance(taken[0], Group)
        return taken[0]
    three = base, ours, theirs
    if all(len(one.elements) == 1 for one in three) and not any(map(_listed, three)):
        rules = Elements("one", notes, words)
        one = rules.merge(base.elements[0], ours.elements[0], theirs.elements[0])
        return replace(ours, elements=(one,))
    rules = Elements(_meaning(three), notes, words)
    flags = len(notes.flags)
    elements = sequence(base.elements, ours.elements, theirs.elements, rules)
    if rules.kind == "names":
        elements = _in_order(elements, ours.elements)
        if order.kept([one.norm for one in ours.elements]):
            del notes.flags[flags:]  # the order of ours says where each goes
    return layout.relaid(ours, theirs, base, elements)


def _in_order(elements: Sequence[Element], ours: Sequence[Element]) -> list[Element]:
    """Put new names where the order of ours has them, if it has one."""
    mine = {one.norm for one in ours}
    found = [one for one in elements if one.norm in mine]
    for at, one in enumerate(elements):
        if one.norm in mine:
            continue
        names = [x.norm for x in found]
        before = {x.norm for x in elements[:at]}
        near = next((n + 1 for n in range(len(found) - 1, -1, -1) if names[n] in before), 0)
        places = order.places(names, [], one.norm) if len(found) > 2 else set()
        found.insert(near if near in places or not places else min(places), one)
    return found


def _listed(group: Group) -> bool:
    return group.kind in ("names", "parameters", "bases") or group.elements[0].comma


def _meaning(three: tuple[Group, Group, Group]) -> str:
    """Return what the brackets hold."""
    if three[0].kind != "{":
        return three[0].kind
    parts = [one for side in three for one in side.elements]
    if all(colon(one) or norm(one.items[:1]) == "**" for one in parts):
        return "dict"
    return "set"
