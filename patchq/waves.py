"""A rollout: wave by wave, each host through its gate, what fails it taken back.

A host's gate is that its conversation ends well, and that the user's command says it is well
(`patchq.health`). Who fails is taken back to where it was before this run, by the receipt of
this run and by no other; so is who moves together with it. What a run did not change, it does
not take back. A ^C begins nothing more: what is asked for is waited for, and of hosts that
move together none is left new where another is still old.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from patchq import health, rollout
from patchq.errors import ExitCode, HostError
from patchq.fleet import Fleet, Options
from patchq.outcome import Outcome, Run, Stopped, Word
from patchq.report import Report
from patchq.rollout import Order, Wave
from patchq.transport import descriptors
from patchq.transport.channel import Conversation

# More hosts are not asked at once whether they are well.
_ASKED = 200
_GOOD = (Word.DONE, Word.NOTHING)


@dataclass(frozen=True, slots=True)
class Part:
    """What a rollout does with a host: `push` it, take `back` what came of that, `check` it.

    `begin` is called as a wave begins, with its number from 1 and how many there are; `tell`
    as a host has its last word.
    """

    push: Callable[[str], Conversation[Report]]
    back: Callable[[str, Report], Conversation[Report]]
    check: Callable[[str], health.Check | None]
    begin: Callable[[Wave, int, int], None]
    tell: Callable[[Outcome], None]


def hold(specs: Sequence[str], order: Order, part: Part, options: Options) -> Run:
    """Roll out; return how each host ended, in the order in which they were named."""
    return asyncio.run(_Rollout(tuple(specs), order, part, Fleet(options)).run())


@dataclass
class _Rollout:
    """A rollout under way: how each host has ended, and what its gate said."""

    specs: tuple[str, ...]
    order: Order
    part: Part
    fleet: Fleet
    ended: dict[str, Outcome] = field(default_factory=dict)
    asked: dict[str, health.Answer] = field(default_factory=dict)
    makers: dict[str, str] = field(default_factory=dict)  # hosts by the receipts of this run
    told: set[str] = field(default_factory=set)
    failed: int = 0

    async def run(self) -> Run:
        """Move wave after wave."""
        waves = rollout.waves(self.specs, self.order)
        self.units = {host: unit for wave in waves for unit in wave.units for host in unit}
        cause = ""
        with ThreadPoolExecutor(_room(self.fleet.options.jobs)) as self.asking:
            async with self.fleet.opened(self.specs):
                for number, wave in enumerate(waves, 1):
                    if not cause and self.fleet.stops:
                        cause = "^C"
                    if cause:
                        found = [_not_begun(host, cause) for host in wave.hosts]
                    else:
                        self.part.begin(wave, number, len(waves))
                        found, cause = await self._wave(wave)
                    for one in found:
                        self._tell(replace(one, wave=number) if one.wave is None else one)
        outcomes = tuple(self.ended[host] for host in self.specs)
        return Run(outcomes, self.fleet.notes, self.fleet.stops > 0)

    async def _wave(self, wave: Wave) -> tuple[list[Outcome], str]:
        """Move a wave; return how hosts ended, and why no further one begins, "" for no reason."""
        found = {one.host: one for one in await self.fleet.each(wave.hosts, self._host)}
        bad = {host: why for host, one in found.items() if (why := self._bad(one))}
        self.ended |= found
        self.makers |= {key: host for host, one in found.items() if (key := _receipt(one))}
        fallen = self._fallen(wave, bad)
        mine = [host for host in fallen if _pushed(self.ended[host])]
        taken = {one.host: one for one in await self.fleet.each(mine, self._back)}
        last = {host: self._fell(host, bad, taken.get(host), fallen) for host in fallen}
        failed = [host for host in bad if last[host].word is not Word.NOT_BEGUN]
        before, self.failed = self.failed, self.failed + len(failed)
        total = len(self.specs)
        cause = ""
        if rollout.stops(self.order, wave, failed=len(failed), before=before, total=total):
            more = f" and {len(failed) - 1} more" if len(failed) > 1 else ""
            limit = "a canary" if wave.canary else f"the limit is {self.order.fail_limit}"
            cause = f"{failed[0]}{more} failed ({limit})"
        return list((found | last).values()), cause

    async def _host(self, host: str) -> Outcome:
        """Push to a host and ask whether it is well, also where there was nothing to do."""
        one = await self.fleet.visit(host, self.part.push(host))
        if isinstance(one.error, Stopped):
            return _not_begun(host, "^C" if self.fleet.stops else one.error.what)
        check = self.part.check(host)
        if one.word in _GOOD and check is not None:
            loop = asyncio.get_running_loop()
            said = await loop.run_in_executor(
                self.asking, health.ask, check, lambda: self.fleet.stops > 0
            )
            self.asked[host] = said
            one = _noted(one, said)
        if len(self.units[host]) == 1 and not self._bad(one):
            self.told.add(host)
            self.part.tell(one)
        return one

    def _bad(self, one: Outcome) -> str:
        """Return what speaks against a host, "" for nothing."""
        said = self.asked.get(one.host)
        if said is not None and said.good is False:
            tries = f", {said.tries} times" if said.tries > 1 else ""
            return f"not healthy: {said.ended}{tries}"
        if one.word in _GOOD:
            return ""
        why = one.report.document.get("why") if one.report else None
        return str(why or one.word.value)

    def _fallen(self, wave: Wave, bad: Mapping[str, str]) -> tuple[str, ...]:
        """Return who is not to stay: the bad, who moves with one, who has the same tree."""
        shared = [
            {host, *self.units[maker]} for host in wave.hosts if (maker := self._maker(host))
        ]
        hosts = tuple(dict.fromkeys((*(one for some in shared for one in some), *wave.hosts)))
        return rollout.fallen(bad, rollout.units(hosts, [*map(set, wave.units), *shared]))

    def _maker(self, host: str) -> str | None:
        """Return the host through which this run changed the tree that this host has, too."""
        report = self.ended[host].report
        return self.makers.get(str(report.document.get("same_as"))) if report else None

    async def _back(self, host: str) -> Outcome:
        report = self.ended[host].report
        assert report is not None
        return await self.fleet.visit(host, self.part.back(host, report), anyway=True)

    def _fell(
        self, host: str, bad: Mapping[str, str], taken: Outcome | None, fallen: Sequence[str]
    ) -> Outcome:
        """Return how a host ends that was not to stay."""
        one = self.ended[host]
        cause = next(other for other in fallen if other in bad)
        why = bad.get(host) or f"moves together with {cause}: {bad[cause]}"
        printed = self.asked[host].printed if host in bad and host in self.asked else ()
        if taken is not None:
            return _taken_back(one, taken, why, printed)
        maker = self._maker(host)
        if maker is not None:
            return _same(one, maker, why)
        return _unwell(one, why, printed) if one.word is Word.NOTHING and host in bad else one

    def _tell(self, one: Outcome) -> None:
        """Keep a host's last word, and tell it once."""
        known = self.ended.get(one.host)
        if one.host not in self.told or known is None or known.word is not one.word:
            self.part.tell(one)
        self.told.add(one.host)
        self.ended[one.host] = one


def _room(jobs: int) -> int:
    """Return how many commands may run at once beside the links to `jobs` hosts.

    A link has room for eight open files, a command needs four.
    """
    return max(1, min(_ASKED, 2 * (descriptors.room() - jobs)))


def _receipt(one: Outcome) -> str:
    """Return the id of the receipt that a host's change has, "" where there is none."""
    receipt = one.report.document.get("receipt") if one.report else None
    return str(receipt["id"]) if isinstance(receipt, dict) else ""


def _pushed(one: Outcome) -> bool:
    """Return whether what this run changed on a host is still there."""
    return one.word in (Word.DONE, Word.FAILED) and bool(_receipt(one))


def _noted(one: Outcome, said: health.Answer) -> Outcome:
    """Return an outcome with what the user's command said."""
    assert one.report is not None
    notes, document = one.report.notes, {**one.report.document, "health": said.to_json()}
    if said.good is None:
        document["why"] = why = "not asked to the end whether it is healthy: ^C"
        notes = (why, *notes)
    return replace(one, report=replace(one.report, notes=notes, document=document))


def _not_begun(host: str, cause: str) -> Outcome:
    what = f"the run stopped before it: {cause}"
    why = "a wave begins when all of the last one is well, and not after ^C"
    mend = "mend what failed, then type the same command again"
    return Outcome(host, Word.NOT_BEGUN, None, HostError(what, why=why, mend=mend))


def _taken_back(one: Outcome, taken: Outcome, why: str, printed: tuple[str, ...]) -> Outcome:
    """Return the outcome of a host that was to be taken back; `taken` says whether it was."""
    assert one.report is not None
    if taken.word is not Word.DONE or taken.report is None:
        error, notes = taken.error, taken.report.notes if taken.report else ()
        said = f"{error.what}: {error.why}" if error else "; ".join(notes) or taken.word.value
        word = Word.UNKNOWN if taken.word is Word.UNKNOWN else Word.FAILED
        failed = HostError(f"{why}; it was not taken back", why=said, mend="patchq undo")
        return Outcome(one.host, word, None, failed, one.wave)
    patches = taken.report.document.get("patches")
    count = len(patches) if isinstance(patches, list) else 0
    back = f"Taken back to where it was before this run ({count} patches)."
    notes = (f"patchq: {why}", *(f"    {line}" for line in printed), back, *taken.report.notes)
    document = {
        **taken.report.document,
        "verb": one.report.document.get("verb"),
        "why": why,
        "health": one.report.document.get("health"),
        "taken_back": _receipt(one),
    }
    report = Report(taken.report.lines, notes, document, ExitCode.FAILED)
    return Outcome(one.host, Word.TAKEN_BACK, report, None, one.wave)


def _same(one: Outcome, maker: str, why: str) -> Outcome:
    """Return the outcome of a host whose tree was taken back through another host."""
    assert one.report is not None
    why = f"same environment as {maker}; {why}"
    document = {**one.report.document, "why": why, "same_as": maker}
    report = Report((), (f"patchq: {why}",), document, ExitCode.FAILED)
    return Outcome(one.host, Word.TAKEN_BACK, report, None, one.wave)


def _unwell(one: Outcome, why: str, printed: tuple[str, ...]) -> Outcome:
    """Return the outcome of a host that is at its goal since before this run, and not healthy."""
    said = "this run did not change it, so nothing is taken back"
    error = HostError(
        f"{why}; it was at the goal before",
        why="\n".join((said, *printed)),
        mend="patchq undo   # takes its last change back",
    )
    return Outcome(one.host, Word.FAILED, None, error, one.wave)
