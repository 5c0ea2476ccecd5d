"""`hosts --discover`: which interpreters of a host have a distribution. Nothing is run there."""

from __future__ import annotations

from collections.abc import Sequence

from patchq.conversation.view import Aim
from patchq.errors import ExitCode
from patchq.report import Report
from patchq.transport.channel import Conversation


def discover(aim: Aim, distributions: Sequence[str]) -> Conversation[Report]:
    """Name the interpreters that have one of these distributions, those that run first."""
    reply = yield aim.request("discover", "", distributions=list(distributions))
    ok = reply.message["ok"]
    found = ok["found"]
    lines = tuple(
        f"{one['distribution']} {one['version']}  {one['python']}  {one['site']}" for one in found
    )
    notes = []
    if number := ok["elsewhere"]:
        told = "1 Python process is" if number == 1 else f"{number} Python processes are"
        notes.append(f"{told} in containers; ask there by -H 'command:docker exec -i NAME sh -c'")
    if ok["cut"]:
        notes.append(f"not all was looked at: it ended {ok['cut']}")
    if not found:
        notes.append(f"no interpreter with {' or '.join(distributions)} was found")
    document = {"verb": "hosts", "found": found, "elsewhere": ok["elsewhere"], "cut": ok["cut"]}
    code = ExitCode.DONE if found else ExitCode.NOTHING_TO_DO
    return Report(lines, tuple(notes), document, code)
