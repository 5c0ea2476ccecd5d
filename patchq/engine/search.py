"""The lines of a sketch sought in a scope of a file: R6, R7, R13.

The search remembers, per line of the sketch and bindings still in use, from
where on nothing fitted: fewer places fit no better, so a failure at one place
holds for all later ones. That makes it linear in practice; where it is not, the
budget ends it.
"""

from __future__ import annotations

import bisect
import contextlib
from collections.abc import Iterator, Sequence

import libcst as cst
from packaging.version import Version

from patchq.engine import budget, fitting, match, names, sections, sites
from patchq.engine.budget import Budget
from patchq.engine.fitting import Line, Reach
from patchq.engine.match import Bindings
from patchq.engine.runs import Run, Step
from patchq.engine.sections import Section
from patchq.engine.sites import Site
from patchq.engine.trees import Tree

TRIALS = 100_000
_REACH = 5_000


class Search:
    """One question: does a statement of a sketch hold in a scope of a file?

    `keep`: the only statements of the sketch that count, None for all.
    """

    def __init__(
        self,
        tree: Tree,
        section: Section,
        release: Version,
        *,
        keep: frozenset[int] | None = None,
        explain: bool = True,
        limit: int = TRIALS,
    ) -> None:
        self.tree, self.section, self.release = tree, section, release
        self.keep, self.explain = keep, explain
        self.budget = Budget(limit)
        self.fitter = fitting.Fitter(self, self.budget, section.path)
        self._lines: dict[int, tuple[Line, ...]] = {}
        self._failed: dict[tuple[object, ...], list[Reach]] = {}
        self._hopes: dict[tuple[int, int], int | None] = {}
        self._sites: dict[tuple[int, int], tuple[Site, ...]] = {}
        self._last: dict[str, int] = {}
        self._ends: dict[int, int] = {}
        self.runs: dict[tuple[int, int], Run] = {}

    def ask(self, node: cst.CSTNode, places: Sequence[Site]) -> Iterator[tuple[Site, Bindings]]:
        """Yield the sites that a statement of class or module level fits."""
        self._last.clear()
        self._ends.clear()
        self._number(node)
        for site in places:
            for env, _ in self.fitter.fit(node, site, {}):
                yield site, env

    def lines(self, body: cst.CSTNode) -> tuple[Line, ...]:
        """Return what a block of the sketch says, in the order in which it is asked.

        `# absent` lines come last, when the holes that they share are bound.
        """
        found = self._lines.get(id(body))
        if found is None:
            said = [
                Line(node, marks.given, marks.absent, self._over(node))
                for node, marks in self.section.statements(body, self.release, self.keep)
            ]
            found = tuple(sorted(said, key=lambda line: line.absent))
            self._lines[id(body)] = found
        return found

    def places(self, target: cst.CSTNode) -> tuple[Site, ...]:
        """Return where in a block of the file a line may fit."""
        return sites.sites(self.tree, target)

    def block(self, body: cst.CSTNode, target: cst.CSTNode, env: Bindings) -> Iterator[Bindings]:
        """Yield the bindings under which a block holds in another, each once (R7)."""
        run = Run(self.lines(body), self.places(target))
        best = self.runs.setdefault((id(body), id(target)), run)
        hopeless = self._hopeless(run)
        if hopeless is not None:
            if self.explain and best is run:
                self._reach(run, hopeless, env)
            return
        seen: set[object] = set()
        try:
            for bound in self._sequence(run, len(run.lines), env):
                key = _key(bound, None)
                if key not in seen:
                    seen.add(key)
                    yield bound
        finally:
            best.note(run.left - best.short, run.reach, run.env)

    def _hopeless(self, run: Run) -> int | None:
        """The first line that fits nowhere in the block, whatever the holes are."""
        key = id(run.lines), id(run.places)
        if key not in self._hopes:
            numbers = (
                number
                for number, line in enumerate(run.lines)
                if not line.absent and not self._open(line, run.places)
            )
            self._hopes[key] = next(numbers, None)
        return self._hopes[key]

    def _reach(self, run: Run, hopeless: int, env: Bindings) -> None:
        """Note how far the lines before a hopeless one come, within a budget of their own."""
        spent, run.short = self.budget.spent, len(run.lines) - hopeless
        self.budget.spent = self.budget.limit - _REACH
        with contextlib.suppress(budget.TooLoose):
            next(self._sequence(run, hopeless, env), None)
        self.budget.spent = spent

    def _open(self, line: Line, places: tuple[Site, ...]) -> tuple[Site, ...]:
        """The sites where a line may fit for some bindings."""
        key = id(line), id(places)
        if isinstance(line.node, cst.Import | cst.ImportFrom):
            return places if self._imports(line, places) else ()
        if key not in self._sites:
            self._sites[key] = tuple(
                site for site in places if self.fitter.may_fit(line.node, site)
            )
        return self._sites[key]

    def _imports(self, line: Line, places: Sequence[Site]) -> bool:
        """R12: each name is brought by some site, or none where the line is `# absent`."""
        path = self.section.path
        there = {name for site in places for name in names.imported(site.node, path)}
        wanted = set(names.imported(line.node, path))
        return wanted.isdisjoint(there) if line.absent else wanted <= there

    def _sequence(self, run: Run, count: int, env: Bindings) -> Iterator[Bindings]:
        """Yield the bindings under which the first `count` lines hold in their order.

        Depth first, on a list: a block may have more lines than Python has frames.
        """
        steps: list[Step] = []
        reach, bound = Reach(), env
        while True:
            self.budget.spend()
            run.note(count - len(steps), reach, bound)
            held = len(steps) == count
            if held:
                yield bound
            else:
                step = self._step(run, count, len(steps), reach, bound)
                known = self._known(run, step)
                if known is None:
                    steps.append(step)
                held = bool(known)
            while steps:
                steps[-1].held = steps[-1].held or held
                way = next(steps[-1].ways, None)
                if way is not None:
                    bound, reach = way
                    break
                held = self._ended(run, steps.pop())
            else:
                return

    def _step(self, run: Run, count: int, number: int, reach: Reach, env: Bindings) -> Step:
        line = run.lines[number]
        live = run.live(count)[number]
        return Step(
            reach,
            # Whatever began here was tried to its end, or failed with the same bindings.
            tried=(count - number, _key(env, None)),
            dead=(id(line), id(run.places), _key(env, live)),
            ways=self.next(line, run.places, reach, env),
        )

    def _known(self, run: Run, step: Step) -> bool | None:
        """Whether a step holds, where an earlier one tells."""
        for known, held in run.done.get(step.tried, ()):
            if known.covers(step.reach):
                return held
        dead = self._failed.get(step.dead, ())
        return False if any(known.covers(step.reach) for known in dead) else None

    def _ended(self, run: Run, step: Step) -> bool:
        """Remember how a step came out, and return it."""
        run.done.setdefault(step.tried, []).append((step.reach, step.held))
        if not step.held:
            self._failed.setdefault(step.dead, []).append(step.reach)
        return step.held

    def next(
        self, line: Line, places: tuple[Site, ...], reach: Reach, env: Bindings
    ) -> Iterator[tuple[Bindings, Reach]]:
        """Yield each way in which a line fits within a reach, and what it leaves."""
        if isinstance(line.node, cst.Import | cst.ImportFrom):
            # R12: the names may come one by one, in any order.
            if self._imports(line, places):
                yield env, reach
            return
        if line.absent:
            if not any(True for site in places for _ in self.fitter.fit(line.node, site, env)):
                yield _without(env, line.over), reach
            return
        first = reach.look if isinstance(line.node, cst.Expr) else reach.after
        opened = self._open(line, places)
        for number in range(bisect.bisect_left(opened, first, key=_low), len(opened)):
            site = opened[number]
            self.budget.spend()
            seen: set[object] = set()
            for bound, further in self.fitter.fit(line.node, site, env):
                left = _without(bound, line.over)
                key = (_key(left, None), further)
                if key not in seen:
                    seen.add(key)
                    yield left, Reach(max(reach.after, further.after), further.look)

    def says(self, clause: cst.CSTNode) -> bool:
        """Return False for a clause of which `keep` leaves nothing."""
        if self.keep is None or id(clause) in self.keep:
            return True
        return any(
            bool(self.lines(part)) if isinstance(part, cst.BaseSuite) else self.says(part)
            for part in sites.parts(clause)
        )

    def _over(self, node: cst.CSTNode) -> frozenset[str]:
        end = self._ends.get(id(node))
        if end is None:
            return frozenset()
        return frozenset(name for name in match.holes(node) if self._last.get(name, -1) <= end)

    def _number(self, node: cst.CSTNode) -> None:
        """Note in which statement each hole is last used, in the order of asking."""
        parts = [] if isinstance(node, cst.BaseSmallStatement) else list(sites.parts(node))
        inner = {id(part) for part in parts}
        for child in node.children:
            if id(child) not in inner:
                self._last.update(dict.fromkeys(match.holes(child), len(self._ends)))
        for part in parts:
            below = [part]
            if isinstance(part, cst.BaseSuite):
                said = sections.small(part)
                below = sorted(said, key=lambda one: self.section.marked(one).absent)
            for child in below:
                if self.keep is None or id(child) in self.keep or child is part:
                    self._number(child)
        self._ends[id(node)] = len(self._ends)


def _low(site: Site) -> int:
    return site.low


def _key(env: Bindings, names: frozenset[str] | None) -> object:
    if names is None:
        return tuple(sorted(env.items(), key=lambda pair: pair[0]))
    return tuple((name, env[name]) for name in sorted(names & env.keys()))


def _without(env: Bindings, names: frozenset[str]) -> Bindings:
    return {key: value for key, value in env.items() if key not in names} if names else env
