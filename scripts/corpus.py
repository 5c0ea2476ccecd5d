"""Score patchq's merge, and what people use today, on real backports with known truth.

A case has `base`, `theirs` (base with the patch), `target` (the other release) and
`truth` (what its maintainers made of it). `scripts/corpus` starts this. Right is
what `corpus_judge` grades exact, tree or order; silently wrong is counted twice:
by the narrow grades (exact or tree), and in brackets by the wide ones.
"""

from __future__ import annotations

import argparse
import json
import lzma
import multiprocessing
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent)]

import corpus_judge  # noqa: E402

from patchq.engine import merging  # noqa: E402  (the checkout's own)

# Strata that the three inputs decide, by how often they are among all mined pairs.
NATURAL = {"clean": 3623, "conflict": 370, "silent-wrong": 4}
UPSTREAM = ("same-change", "later-version", "vllm-micro-release")
COLUMNS = "right", "right, flagged", "silently wrong", "(wide)", "wrong, flagged", "conflict"
Case = dict[str, str]


@dataclass(frozen=True)
class Answer:
    """What one tool made of one case; no text is a conflict."""

    text: str | None
    word: str = ""
    flags: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True)
class Score:
    """One answer, graded. `gone`: comments of theirs or of the target that are lost."""

    case: str
    stratum: str
    tool: str
    answer: Answer
    grade: str
    kept: bool
    gone: tuple[str, ...]


def patchq(case: Case) -> Answer:
    """Ask this checkout."""
    texts = [case[key].encode("utf-8", "surrogateescape") for key in ("base", "target", "theirs")]
    began = time.process_time()
    out = merging.merge(*texts, path=case["path"])
    spent = time.process_time() - began
    text = None if out.text is None else out.text.decode("utf-8", "surrogateescape")
    return Answer(text, out.word, out.flags, out.reasons, spent)


def rival(*argv: str, diff: bool = False) -> Callable[[Case], Answer]:
    """Return what asks a command: its stdout where it exits 0."""

    def ask(case: Case) -> Answer:
        with tempfile.TemporaryDirectory(prefix="corpus-") as name:
            folder = Path(name)
            for key in ("base", "theirs", "target"):
                (folder / key).write_bytes(case[key].encode("utf-8", "surrogateescape"))
            if diff:
                made = ["git", "diff", "--no-index", "--no-color", "base", "theirs"]
                done = subprocess.run(made, cwd=folder, capture_output=True)
                (folder / "diff").write_bytes(done.stdout)
            done = subprocess.run(argv, cwd=folder, capture_output=True)
            good = done.returncode == 0
            return Answer(done.stdout.decode("utf-8", "surrogateescape") if good else None)

    return ask


_PATCH = "patch -s -f -N -F2 -r /dev/null -o out target diff && cat out"
TOOLS: dict[str, Callable[[Case], Answer]] = {
    "patchq": patchq,
    "git merge-file": rival("git", "merge-file", "-p", "target", "base", "theirs"),
    "wiggle": rival("wiggle", "--merge", "target", "base", "theirs"),
    "patch -F2 (quilt)": rival("sh", "-c", _PATCH, diff=True),
}


def judged(task: tuple[Case, tuple[str, ...]]) -> list[Score]:
    """Ask every tool about one case."""
    case, tools = task
    found = []
    for tool in tools:
        answer = TOOLS[tool](case)
        grade, kept, gone = "conflict", False, ()
        if answer.text is not None:
            grade = corpus_judge.grade(answer.text, case["truth"])
            kept = corpus_judge.grade(answer.text, case["target"]) in ("exact", "tree")
            gone = lost(case, answer.text)
        found.append(Score(case["id"], case["stratum"], tool, answer, grade, kept, gone))
    return found


def lost(case: Case, text: str) -> tuple[str, ...]:
    """Return the comments that one side added, or both kept, and that are not in the result."""
    base, theirs, target, have = (
        Counter(re.findall(r"(?m)(?<=[\s,(\[{:])#.*|^#.*", one))
        for one in (case["base"], case["theirs"], case["target"], text)
    )
    kept = base - (base - theirs) - (base - target)
    wanted = kept | (theirs - base) | (target - base)
    return tuple(wanted - have)


def counts(scores: Iterable[Score]) -> Counter[str]:
    """Return how many scores fall in each column."""
    found: Counter[str] = Counter()
    for one in scores:
        flagged = bool(one.answer.flags)
        if one.grade == "conflict":
            found["conflict"] += 1
            continue
        right = one.grade != "wrong"
        if right:
            found["right, flagged" if flagged else "right"] += 1
        elif flagged:
            found["wrong, flagged"] += 1
        if not flagged and one.grade not in ("exact", "tree"):
            found["silently wrong"] += 1
            found["(wide)"] += not right
    return found


def table(scores: list[Score]) -> Iterable[str]:
    """Yield the lines of the tables, as Markdown."""
    strata = list(dict.fromkeys(one.stratum for one in scores))
    for tool in dict.fromkeys(one.tool for one in scores):
        yield f"\n### {tool}\n"
        yield f"| stratum | cases | {' | '.join(COLUMNS)} |"
        yield "|---" * (len(COLUMNS) + 2) + "|"
        mine = [one for one in scores if one.tool == tool]
        shares = {}
        for stratum in strata:
            part = [one for one in mine if one.stratum == stratum]
            if stratum in UPSTREAM:
                continue
            found = counts(part)
            shares[stratum] = {key: found[key] / len(part) for key in found}
            cells = " | ".join(f"{found[key]}" for key in COLUMNS)
            yield f"| {stratum} | {len(part)} | {cells} |"
        yield from natural(shares)
        yield from upstream(mine)


def natural(shares: dict[str, dict[str, float]]) -> Iterable[str]:
    """Yield the columns weighted by how often each stratum occurs."""
    known = {stratum: weight for stratum, weight in NATURAL.items() if stratum in shares}
    if len(known) == len(NATURAL):
        total = sum(known.values())
        cells = [
            100 * sum(weight * shares[name].get(key, 0) for name, weight in known.items()) / total
            for key in COLUMNS
        ]
        yield f"| natural, % | {total} | {' | '.join(f'{cell:.2f}' for cell in cells)} |"


def upstream(scores: list[Score]) -> Iterable[str]:
    """Yield how well a patch that is there already is known, and how often falsely."""
    there = [one for one in scores if one.stratum in UPSTREAM]
    if there:
        kept = sum(one.kept for one in there)
        conflicts = sum(one.grade == "conflict" for one in there)
        others = [one for one in scores if one.stratum not in UPSTREAM]
        false = sum(one.kept and one.grade == "wrong" for one in others)
        yield (
            f"\nalready upstream: {kept} of {len(there)} known, {conflicts} conflict, "
            f"{len(there) - kept - conflicts} re-applied or damaged; "
            f"false among the other {len(others)}: {false}"
        )


def main() -> int:
    """Score a corpus file."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("file", type=Path, help="one JSON object a line, plain or .xz")
    options.add_argument("-v", "--verbose", action="store_true", help="one line a case")
    options.add_argument("--only", action="append", help="a stratum, or the id of a case")
    options.add_argument("--no-rivals", action="store_true")
    chosen = options.parse_args()
    opened = lzma.open if chosen.file.suffix == ".xz" else open
    with opened(chosen.file, "rt", encoding="utf-8") as lines:
        cases = [json.loads(line) for line in lines]
    if chosen.only:
        cases = [case for case in cases if {case["stratum"], case["id"]} & set(chosen.only)]
    tools = ("patchq",) if chosen.no_rivals else tuple(TOOLS)
    with multiprocessing.Pool(2) as pool:
        tasks = [(case, tools) for case in cases]
        scores = [one for part in pool.imap(judged, tasks, chunksize=4) for one in part]
    if chosen.verbose:
        for one in scores:
            told = "; ".join((*one.answer.flags, *one.answer.reasons))
            lost_ = f" LOST {list(one.gone)}" if one.gone else ""
            word = one.answer.word or "-"
            print(f"{one.stratum} {one.case} {one.tool}: {one.grade} {word}{lost_} {told}")
    print("\n".join(table(scores)))
    mine = [one for one in scores if one.tool == "patchq"]
    slow = max(mine, key=lambda one: one.answer.seconds)
    spent = sum(one.answer.seconds for one in mine)
    print(f"\nCPU: {spent:.1f} s for {len(mine)} cases, at most {slow.answer.seconds:.2f} s")
    gone = [one for one in mine if one.gone]
    print(f"results that lost a comment: {len(gone)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
