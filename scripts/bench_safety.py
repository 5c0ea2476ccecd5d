"""What the transaction costs beside plain writing of the same files; `scripts/bench safety`.

The agent's commit, from the request to its answer, in this process, against a loop in the
same Python that writes each file beside its place, fsyncs it and renames it. The loop keeps
nothing for a pop, and a crash leaves some files old and some new. Contestants take turns on
ext4 (or what the temporary folder is on) and on tmpfs; CPU is the process's own.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts"), str(ROOT / "tests" / "agent")]

import agent_lab  # noqa: E402  (the tests' own small controller)

from patchq.agent import serve  # noqa: E402

RELEASE = "0.16.0"
QUEUE = ROOT / "queues" / "kimi-k2.5-eagle3"
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "5"))
AGAINST = "write, fsync, rename each"

Files = Mapping[str, bytes]


@dataclass(frozen=True)
class Case:
    """One set of files: what is installed, what shall be there; the dist-info, if not made up."""

    name: str
    before: Files
    after: Files
    info: Files | None = None


def safety() -> None:
    """Measure each set of files on each kind of file system."""
    cases = [_small(9), _small(100), _small(1000)]
    with contextlib.suppress(subprocess.CalledProcessError):  # no index: the series is left out
        cases.insert(0, _series())
    with contextlib.ExitStack() as stack:
        places = [Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="patchq-bench-")))]
        if os.path.isdir("/dev/shm"):
            shared = tempfile.TemporaryDirectory(prefix="patchq-bench-", dir="/dev/shm")
            places.append(Path(stack.enter_context(shared)))
        for place in places:
            for case in cases:
                _table(case, place, _race(case, place))


def _small(count: int) -> Case:
    """Return so many modules of 2 kB, fifty to a folder."""
    before = {
        f"demo/p{number // 50}/m{number}.py": f"value_{number} = {number}\n".encode() * 110
        for number in range(count)
    }
    after = {path: data.replace(b" = ", b" = 1") for path, data in before.items()}
    return Case(f"{count} modules of 2 kB", before, after)


def _series() -> Case:
    """Return the files of the ready-made series, as the release and as the push has them."""
    with tempfile.TemporaryDirectory(prefix="patchq-bench-") as name:
        site = Path(name) / "site"
        patchq = Path(sys.executable).parent / "patchq"
        run = {"check": True, "stdout": subprocess.DEVNULL}
        subprocess.run([patchq, "fetch", f"vllm=={RELEASE}", "--into", site], **run)
        texts = sorted((QUEUE / RELEASE).glob("*.patch"))
        paths = [
            line.split(" b/")[1]
            for text in texts
            for line in text.read_text().splitlines()
            if line.startswith("diff --git ")
        ]
        before = {path: (site / path).read_bytes() for path in paths}
        info = {
            str(path.relative_to(site)): path.read_bytes()
            for path in site.glob("*.dist-info/*")
            if path.is_file()
        }
        whole = b"".join(text.read_bytes() for text in texts)
        subprocess.run(["patch", "-s", "-p1", "-d", site], input=whole, check=True)
        after = {path: (site / path).read_bytes() for path in paths}
    size = sum(map(len, after.values())) // 1000
    return Case(f"the EAGLE-3 series ({len(after)} files, {size} kB)", before, after, info)


def _race(case: Case, place: Path) -> dict[str, tuple[float, float]]:
    """Return the medians of wall and CPU seconds of each contestant, in turn."""
    times: dict[str, list[tuple[float, float]]] = {}
    site = place / "site"

    def timed(name: str, action: Callable[[], None]) -> None:
        os.sync()
        wall, cpu = time.perf_counter(), time.process_time()
        action()
        spent = time.perf_counter() - wall, time.process_time() - cpu
        times.setdefault(name, []).append(spent)

    for _ in range(ROUNDS):
        for name, careful in (("write, rename each", False), (AGAINST, True)):
            _install(case, site)
            timed(name, lambda careful=careful: _plain(site, case.after, careful))
        for name, compiles in (("push", False), ("push, and new modules compile", True)):
            _install(case, site)
            controller = agent_lab.Controller(site, distribution="vllm" if case.info else "demo")
            push = controller.push_request(case.after, compile=compiles)
            timed(name, lambda push=push: _commit(*push))
            pop = controller.pop_request()
            timed("pop", lambda pop=pop: _commit(*pop))
        shutil.rmtree(site)
    return {
        name: (statistics.median(w for w, _ in some), statistics.median(c for _, c in some))
        for name, some in times.items()
    }


def _install(case: Case, site: Path) -> None:
    shutil.rmtree(site, ignore_errors=True)
    if case.info is None:
        agent_lab.make_site(site, case.before)
        return
    for path, data in {**case.before, **case.info}.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_bytes(data)


def _plain(site: Path, files: Files, careful: bool) -> None:
    for path, data in files.items():
        live = f"{site}/{path}"
        handle = os.open(live + ".new", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        os.write(handle, data)
        if careful:
            os.fsync(handle)
        os.close(handle)
        os.rename(live + ".new", live)


def _commit(message: dict[str, object], blobs: dict[str, bytes]) -> None:
    answer, _ = serve.respond(message, blobs)
    if "ok" not in answer:
        sys.exit(f"bench: {answer}")


def _table(case: Case, place: Path, medians: Mapping[str, tuple[float, float]]) -> None:
    argv = ["df", "--output=fstype", place]
    kind = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()[-1]
    print(f"\n### {case.name}, {kind} (load {os.getloadavg()[0]:.1f})\n")
    print("| what | wall | x | CPU | x |\n|---|---|---|---|---|")
    first = medians[AGAINST]
    for name, (wall, cpu) in medians.items():
        print(
            f"| {name} | {1000 * wall:.1f} ms | {wall / first[0]:.2f} "
            f"| {1000 * cpu:.1f} ms | {cpu / first[1]:.2f} |"
        )
    sys.stdout.flush()


if __name__ == "__main__":
    safety()
