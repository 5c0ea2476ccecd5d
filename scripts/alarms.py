"""What the always-on checks say of pristine releases, where nearly all is right.

Each file is judged as if a patch had created it, with the wheel's own list of
installed paths: whatever is found is a fault of the release, or a false alarm.
Run it as ``python scripts/alarms.py [--sample 300] [--seed 0] [--all] [PACKAGE ...]``;
a PACKAGE is a requirement, as `patchq fetch` takes it.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from patchq.engine import definitions, judge, modules
from patchq.engine.outlines import Outline
from patchq.engine.verdict import Finding
from patchq.queue import store as queues
from patchq.releases import fetch
from patchq.releases.store import Store

PACKAGES = ("vllm==0.16.0", "sglang", "transformers")
QUEUES = Path(__file__).parents[1] / "queues"


def main() -> None:
    """Judge the releases that the command line names, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("packages", nargs="*", default=PACKAGES)
    parser.add_argument("--sample", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--all", action="store_true", help="every file, not a sample")
    options = parser.parse_args()
    for package in options.packages:
        fetched = fetch.fetch(package)
        with Store(fetched.distribution) as store:
            texts = sorted(path for path in store.listing(fetched.release) if _module(path))
            near = sorted(set(_neighbourhood(store, fetched.distribution, fetched.release)))
            count = len(texts) if options.all else min(options.sample, len(texts))
            sample = random.Random(options.seed).sample(texts, count)
            title = f"{fetched.distribution} {fetched.release}"
            if near:
                _report(f"{title}, around the series", store, fetched.release, near)
            _report(f"{title}, sample", store, fetched.release, sorted(sample))


def _module(path: str) -> bool:
    return path.endswith(".py") and "-" not in path.split("/", 1)[0]


def _neighbourhood(store: Store, distribution: str, release: str) -> Iterable[str]:
    """The files that a ready-made series touches, and those that they import."""
    for folder in (path.parent for path in QUEUES.glob("*/queue.toml")):
        queue = queues.open(folder)
        if queue.distribution != distribution or release not in queue.releases:
            continue
        touched = {path for patch in queues.load(queue, release).patches for path in patch.paths}
        for path, (data, _) in store.read_many(release, touched).items():
            yield path
            outline = definitions.outline(data)
            imports = outline.imports if isinstance(outline, Outline) else ()
            named = {
                file
                for one in imports
                if (module := modules.absolute(path, one.level, one.module))
                for file in modules.files(module)
            }
            yield from store.read_many(release, named)


def _report(title: str, store: Store, release: str, paths: Iterable[str]) -> None:
    listing = store.installed(release)
    found: list[Finding] = []
    files, begun = 0, time.monotonic()
    for path, (data, _) in store.read_many(release, paths).items():
        files += 1
        found += judge.judge(
            {path: None},
            {path: data},
            None,
            release,
            lambda other: store.read(release, other),
            listing=listing,
        ).findings
    kinds = Counter(one.kind for one in found)
    said = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())) or "nothing"
    took = time.monotonic() - begun
    sys.stdout.write(f"{title}: {files} files, found {said} ({took:.0f} s)\n")
    for one in found:
        sys.stdout.write(f"    {one.kind}: {one}; {one.why} [{one.where}]\n")


if __name__ == "__main__":
    main()
