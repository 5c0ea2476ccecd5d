"""What patchq costs beside what people use today; `scripts/bench` starts this.

Each comparison is measured in one run, the contestants in turn, and told as the
ratio of medians, since machines differ and are busy. Whole processes are timed
from outside, but for "connect to receipt", which is timed inside one.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

import bench_fleet  # noqa: E402
import bench_safety  # noqa: E402

from tests import ssh_lab, world  # noqa: E402  (the checkout's own lab and wheel maker)

BIN = Path(sys.executable).parent
PATCHQ = str(BIN / "patchq")
QUEUE = ROOT / "queues" / "kimi-k2.5-eagle3"
LINES_A_FILE, PATCHES_A_FILE = 200, 10

Contestants = dict[str, Callable[[], None]]


def run(*argv: str | Path, cwd: Path | None = None, **environ: str) -> None:
    """Run a command to its good end."""
    done = subprocess.run(
        [str(word) for word in argv],
        cwd=cwd,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        sys.exit(f"bench: {argv} ended with {done.returncode}\n{done.stdout}{done.stderr}")


def seconds(action: Callable[[], None]) -> float:
    """Return the wall time of one action."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def race(contestants: Contestants, rounds: int) -> dict[str, float]:
    """Run the contestants in turn and return the median seconds of each."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, action in contestants.items():
            times[name].append(seconds(action))
    return {name: statistics.median(values) for name, values in times.items()}


def table(title: str, medians: dict[str, float], against: str) -> None:
    """Print a table of medians, and ratios to one of the contestants."""
    print(f"\n### {title}\n\n| what | median | ratio |\n|---|---|---|")
    for name, value in medians.items():
        print(f"| {name} | {1000 * value:.0f} ms | {value / medians[against]:.2f} |")
    sys.stdout.flush()


def generated(folder: Path, count: int) -> tuple[Path, Path]:
    """Make a tree and a locked queue of `count` patches, ten to a file; return both."""
    files = max(1, count // PATCHES_A_FILE)
    texts = {
        f"demo/m{number}.py": "".join(f"value_{n} = {n}\n" for n in range(LINES_A_FILE))
        for number in range(files)
    }
    wheel = world.wheel(folder, {"demo/__init__.py": "", **texts})
    site, queue = folder / "site", folder / "queues" / "bench"
    run(PATCHQ, "fetch", wheel, "--into", site, PATCHQ_CACHE=str(folder / "cache"))
    series = queue / "1.0"
    series.mkdir(parents=True)
    (queue / "queue.toml").write_text('distribution = "demo"\nsummary = "bench"\n')
    names = []
    for index in range(count):
        path, line = f"demo/m{index % files}.py", 5 + 12 * (index // files)
        context = [f" value_{n} = {n}\n" for n in range(line - 3, line + 4)]
        context[3:4] = [f"-value_{line} = {line}\n", f"+value_{line} = {-line}\n"]
        text = f"--- a/{path}\n+++ b/{path}\n@@ -{line - 2},7 +{line - 2},7 @@\n"
        names.append(f"{index:04}.patch")
        (series / names[-1]).write_text(text + "".join(context))
    (series / "series").write_text("\n".join(names) + "\n")
    subprocess.run(  # no sketches: the lint says so, and writes the lock
        [PATCHQ, "lint", "--queue", str(queue), "--write"],
        env={**os.environ, "PATCHQ_CACHE": str(folder / "cache")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return site, queue


def local(sizes: list[int]) -> None:
    """Push and pop generated series here, against quilt."""
    for count in sizes:
        with tempfile.TemporaryDirectory(prefix="patchq-bench-") as name:
            folder = Path(name)
            site, queue = generated(folder, count)
            quilts = folder / "quilt"
            shutil.copytree(site, quilts)
            mine = {"PATCHQ_CACHE": str(folder / "cache")}
            theirs = {"QUILT_PATCHES": str(queue / "1.0")}
            at = ("--target", site, "--queue", queue)

            def patchq(verb: str, cold: bool = False, at=at, mine=mine, folder=folder) -> None:
                if cold:
                    shutil.rmtree(folder / "cache" / "verdicts", ignore_errors=True)
                run(PATCHQ, verb, "-a", "-q", *at, **mine)

            def quilt(verb: str, quilts=quilts, theirs=theirs) -> None:
                run("quilt", "--quiltrc", "-", verb, "-a", "-q", cwd=quilts, **theirs)

            contestants: Contestants = {
                "patchq push -a, judged anew": lambda: patchq("push", cold=True),
                "patchq pop -a": lambda: patchq("pop"),
                "patchq push -a, verdicts known": lambda: patchq("push"),
                "patchq pop -a, again": lambda: patchq("pop"),
                "quilt push -a": lambda: quilt("push"),
                "quilt pop -a": lambda: quilt("pop"),
            }
            medians = race(contestants, 5 if count <= 100 else 1)
            table(f"{count} patches, local", medians, "patchq push -a, verdicts known")
            for verb, name in (("push", "patchq push -a, judged anew"), ("pop", "patchq pop -a")):
                print(f"\n{verb}: quilt takes {medians[f'quilt {verb} -a'] / medians[name]:.1f}x")


def start() -> None:
    """Start-up: --help and top against a bare interpreter."""
    with tempfile.TemporaryDirectory(prefix="patchq-bench-") as name:
        site, queue = generated(Path(name), 10)
        python = str(BIN / "python3")
        medians = race(
            {
                "python3 -c pass": lambda: run(python, "-c", "pass"),
                "python3 -c 'import click'": lambda: run(python, "-c", "import click"),
                "patchq --help": lambda: run(PATCHQ, "--help"),
                "patchq series": lambda: run(PATCHQ, "series", "--target", site, "--queue", queue),
                "patchq applied (top)": lambda: subprocess.run(
                    [PATCHQ, "top", "--target", str(site), "--queue", str(queue)],
                    capture_output=True,
                ),
            },
            15,
        )
        table("Start-up", medians, "python3 -c pass")


def fetch() -> None:
    """A release's text against the whole wheel."""
    import json

    with tempfile.TemporaryDirectory(prefix="patchq-bench-") as name:
        folder = Path(name)
        caches = iter(folder / f"cache-{n}" for n in range(100))
        medians = race(
            {
                "patchq fetch vllm==0.16.0": lambda: run(
                    PATCHQ, "fetch", "vllm==0.16.0", PATCHQ_CACHE=str(next(caches))
                )
            },
            3,
        )
        argv = (str(BIN / "pip"), "download", "-q", "--no-deps", "--no-cache-dir")
        medians["pip download vllm==0.16.0"] = seconds(
            lambda: run(*argv, "-d", folder / "pip", "vllm==0.16.0")
        )
        done = subprocess.run(
            [PATCHQ, "fetch", "vllm==0.16.0", "--json"],
            env={**os.environ, "PATCHQ_CACHE": str(next(caches))},
            capture_output=True,
            check=True,
        )
        facts = json.loads(done.stdout)
        table("A release's text", medians, "patchq fetch vllm==0.16.0")
        share = 100 * facts["bytes_read"] / facts["wheel_size"]
        print(
            f"\n{facts['bytes_read'] / 1e6:.1f} MB in {facts['requests']} requests: "
            f"{share:.1f} % of the wheel's {facts['wheel_size'] / 1e6:.0f} MB"
        )


# Runs in a process of its own: all imports first, then the time from connect to receipt.
RECEIPT = """
import asyncio, os, sys, time
from pathlib import Path
from patchq.cli import places
from patchq.conversation import commit, move, view
from patchq.conversation.goal import Upto
from patchq import fleet
from patchq.queue import store
from patchq.queue.heads import Heads
import git, platformdirs, patchq.engine.apply, patchq.engine.diff, patchq.queue.patchfile
verb, queue, target = sys.argv[1:]
aim = view.Aim((store.open(Path(queue)),), places.cache, Path(queue).name, target, True)
verb = {"push": move.push, "pop": move.pop}[verb]
start = time.perf_counter()
ground = commit.Ground("bench", "bench", Heads(aim.queues))
run = fleet.hold(["bench"], lambda host: verb(aim, ground, Upto(None, True)), fleet.Options())
print(time.perf_counter() - start, int(run.outcomes[0].report.exit_code))
"""


def ssh() -> None:
    """Push over SSH against ``ssh host true``, on a real sshd on loopback."""
    with ssh_lab.folder() as base, tempfile.TemporaryDirectory() as cache:
        home = ssh_lab.Home(base / "client")
        with ssh_lab.sshd(base, home.public, shell="sh") as server:
            home.add("bench", server)
            site = base / "site"
            run(PATCHQ, "fetch", "vllm==0.16.0", "--into", site, PATCHQ_CACHE=cache)
            run("chown", "-R", f"{server.user}:", site)  # and his group
            environ = {"HOME": str(home.path), "PATCHQ_CACHE": cache}
            at = ("-q", "-H", "bench", "--target", site, "--queue", QUEUE)
            receipts: dict[str, list[float]] = {"push": [], "pop": []}

            def receipt(verb: str) -> None:
                done = subprocess.run(
                    [sys.executable, "-c", RECEIPT, verb, str(QUEUE), str(site)],
                    env={**os.environ, **environ},
                    capture_output=True,
                    text=True,
                )
                if done.returncode or done.stdout.split()[-1] != "0":
                    sys.exit(f"bench: {done.stdout}{done.stderr}")
                receipts[verb].append(float(done.stdout.split()[0]))

            run(PATCHQ, "push", "-a", *at, **environ)
            run(PATCHQ, "pop", "-a", *at, **environ)
            medians = race(
                {
                    "ssh host true": lambda: run(*home.ssh_argv("bench"), "true"),
                    "patchq push -a, whole process": lambda: run(
                        PATCHQ, "push", "-a", *at, **environ
                    ),
                    "patchq pop -a, whole process": lambda: run(
                        PATCHQ, "pop", "-a", *at, **environ
                    ),
                    "(push)": lambda: receipt("push"),
                    "(pop)": lambda: receipt("pop"),
                },
                9,
            )
            shown = {name: value for name, value in medians.items() if name[0] != "("}
            for verb, values in receipts.items():
                shown[f"patchq {verb} -a, connect to receipt"] = statistics.median(values)
            table("EAGLE-3 series (4 files, 280 KB) over SSH", shown, "ssh host true")


def main() -> None:
    """Run the named benchmarks, or all."""
    every = {"local": local, "start": start, "fetch": fetch, "ssh": ssh}
    every |= {"slope": bench_fleet.slope, "fleet": bench_fleet.fleet}
    every |= {"safety": bench_safety.safety}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *every])
    parser.add_argument("--sizes", default="10,100,1000")
    options = parser.parse_args()
    for name in options.names or every:
        if name == "local":
            local([int(size) for size in options.sizes.split(",")])
        else:
            every[name]()


if __name__ == "__main__":
    main()
