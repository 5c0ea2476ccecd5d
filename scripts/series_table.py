"""Write docs/series.md: every patch of the ready-made series on every release, by running it.

Run it as ``.venv/bin/python scripts/series_table.py`` (10 minutes on an idle machine with two
cores, and the environment that scripts/behaviour makes). ``--quick`` prints the columns that
need no run of vLLM.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import behaviour

from patchq.engine import apply, judge, sketch, unasked
from patchq.model import Patch
from patchq.queue import store
from patchq.releases.store import Store

PAGE = Path(__file__).parents[1] / "docs" / "series.md"
UPSTREAM = "0.18.0"
INTRO = """\
# The ready-made series, release by release

Made by `scripts/series_table.py`, which ran all of it; edit that. The queue's
[README](../queues/kimi-k2.5-eagle3/README.md) says what it is for and what its limits are.

- **applies**: hunks, each at its exact place, on the pristine text with the patches below it.
- **fails before**, **holds after**: claims of the patch's sketch that are true without it, and
  with it.
- **imports resolve**: so do all imports of the file within vLLM.
- **behaviour**: with the whole series, vLLM's own code does as it should with tiny DeepSeek-V3
  and Kimi-K2.5 models on the CPU: a tensor without layers and a pair with them, each auxiliary
  state bit for bit what enters its layer, final states unchanged, the configuration accepted, a
  real drafter loaded that shares embeddings and head. Then: what it does without this one patch.

| release | patch | applies | fails before | holds after | imports resolve | behaviour |
|---|---|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Row:
    """One patch of one release, as far as no run of vLLM is needed."""

    release: str
    patch: str
    hunks: int
    claims: int
    below: int
    above: int
    imports: bool

    def cells(self) -> list[str]:
        """Return the columns before behaviour."""
        return [
            self.release,
            f"`{self.patch}`",
            f"{self.hunks} of {self.hunks}",
            f"{self.below} of {self.claims} true",
            f"{self.above} of {self.claims} true",
            "yes" if self.imports else "NO",
        ]


def rows(release: str, kept: Store) -> Iterator[Row]:
    """Apply and judge a release's series; a patch that does not apply is an error."""
    tree: dict[str, apply.File | None] = {}

    def read(path: str) -> apply.File | None:
        return tree[path] if path in tree else kept.read_many(release, [path]).get(path)

    listing = kept.installed(release)
    for patch in store.load(store.open(behaviour.QUEUE), release).patches:
        done = apply.apply_patch(patch, read)
        if isinstance(done, apply.PatchRejected):
            raise SystemExit(f"{release}: {patch.name} does not apply: {done.message}")
        yield _row(release, patch, done, read, listing)
        tree.update(done.after)


def _row(
    release: str,
    patch: Patch,
    done: apply.PatchApplied,
    read: Callable[[str], apply.File | None],
    listing: frozenset[str],
) -> Row:
    def text(path: str) -> bytes | None:
        file = read(path)
        return file and file[0]

    assert patch.sketch is not None
    verdict = judge.judge(
        {path: text(path) for path in done.after},
        {path: file and file[0] for path, file in done.after.items()},
        sketch.load(patch.sketch, name=patch.sketch_name),
        release,
        text,
        diffs=patch.diffs,
        listing=listing,
    )
    hunks = sum(len(diff.hunks) for diff in patch.diffs)
    below = sum(claim.held for claim in verdict.below)
    above = sum(claim.held for claim in verdict.above)
    sound = not any(one.kind == "import" for one in verdict.findings)
    name = patch.name.removesuffix(".patch")
    return Row(release, name, hunks, len(verdict.above), below, above, sound)


def upstreams(kept: Store) -> Iterator[str]:
    """Yield the lines about the release that has it all: what holds, what is not asked."""
    queue = store.open(behaviour.QUEUE)
    for path in sorted((queue.folder / store.SHARED).glob("*.pyi")):
        if not queue.needs(path.stem, UPSTREAM):
            yield f"| `{path.stem}` | not asked | `for` of queue.toml |"
            continue
        parsed = sketch.load(path.read_bytes(), name=path.name)
        claims = sketch.judge(parsed, UPSTREAM, lambda name: kept.read(UPSTREAM, name))
        held = sum(claim.held for claim in claims)
        left = [f"`{one.code}`" for one in unasked.unasked(parsed, UPSTREAM) if "0.18" in one.when]
        yield f"| `{path.stem}` | {held} of {len(claims)} true | {'; '.join(left)} |"


def alone(release: str, patch: str) -> str:
    """Return what vLLM does without one patch, as a cell shows it."""
    scene, message = behaviour.control(release, patch)
    error = behaviour.look(release, [scene], patch)[scene].get("error", "no error")
    word = "" if message in error else "NOT EXPECTED: "
    shown = error.split(" [type=")[0].replace("1 validation error for SpeculativeConfig ", "")
    return f"without it: {word}`{shown if len(shown) < 120 else f'{shown[:117]}...'}`"


def run(pool: ThreadPoolExecutor) -> Callable[[Row], str]:
    """Start every run of vLLM; return what gives the last cell of a row."""
    whole = {one: pool.submit(behaviour.look, one) for one in behaviour.RELEASES}
    without = {
        (release, patch): pool.submit(alone, release, patch)
        for release in behaviour.RELEASES
        for patch in behaviour.patches(release)
    }

    def cell(row: Row) -> str:
        faults = behaviour.faults(whole[row.release].result())
        word = "NOT as it should" if faults else "as it should"
        return f"{word}; {without[row.release, row.patch].result()}"

    return cell


def main() -> int:
    """Write the page, or print its quick columns; 1 where something is not as it should be."""
    quick = "--quick" in sys.argv[1:]
    for release in (*behaviour.RELEASES, UPSTREAM):
        behaviour.patchq("fetch", f"vllm=={release}")
    lines = []
    with (
        Store("vllm", behaviour.cache() / "releases") as kept,
        ThreadPoolExecutor(os.cpu_count()) as pool,
    ):
        cell = (lambda row: "") if quick else run(pool)
        for release in behaviour.RELEASES:
            for row in rows(release, kept):
                lines.append(f"| {' | '.join([*row.cells(), cell(row)])} |")
                print(lines[-1], flush=True)
        outro = [
            "",
            f"Pristine {UPSTREAM} has it all in words of its own; there the same sketches say:",
            "",
            "| sketch | claims | lines that are not asked there |",
            "|---|---|---|",
            *upstreams(kept),
        ]
    if not quick:
        PAGE.write_text(INTRO + "\n".join([*lines, *outro]) + "\n")
    print("\n".join(outro))
    return int("NO" in "".join(lines))


if __name__ == "__main__":
    sys.exit(main())
