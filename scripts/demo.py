"""Walk through the main job, line by line; `scripts/demo` prepares and starts this.

Every command is run as printed, in a process of its own. A command that does not
end as expected ends the demo with status 1.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests import ssh_lab  # noqa: E402  (the checkout's own lab of loopback hosts)
from tests.field_fault import split_import  # noqa: E402

RELEASE = "vllm==0.16.0"
QUEUE = ROOT / "queues" / "kimi-k2.5-eagle3"
SPECULATIVE = "vllm/config/speculative.py"


class Demo:
    """The folder of the demo, and its way of telling what it does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environ = dict(os.environ)
        self.environ.pop("VIRTUAL_ENV", None)
        self.environ["PATH"] = f"{Path(sys.executable).parent}:{self.environ['PATH']}"

    def say(self, text: str) -> None:
        print(f"\n== {text}", flush=True)

    def run(self, line: str, expect: int = 0, **environ: str) -> None:
        """Print and run a command line; its end must be `expect`."""
        print(f"$ {line}", flush=True)
        done = subprocess.run(
            shlex.split(line), cwd=self.folder, env={**self.environ, **environ}, check=False
        )
        sys.stdout.flush()
        if done.returncode != expect:
            sys.exit(f"demo: expected exit code {expect}, got {done.returncode}")
        if expect:
            print(f"[exit code {expect}, as it should be]", flush=True)


def digests(tree: Path) -> dict[str, str]:
    """Return every file of a tree by digest, but for patchq's own state."""
    return {
        str(path.relative_to(tree)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(tree.rglob("*"))
        if path.is_file() and ".patchq" not in path.parts
    }


def identical(demo: Demo, tree: Path, before: dict[str, str]) -> None:
    """Say that a tree is what it was, or end the demo."""
    if digests(tree) != before:
        sys.exit(f"demo: {tree} is not what it was")
    print(f"all {len(before)} files of {tree.name} are byte-identical to the wheel's", flush=True)


def here(demo: Demo) -> dict[str, str]:
    """Push and pop in a tree on this machine; return its pristine digests."""
    demo.say(f"Read the pristine text of {RELEASE} by range requests, and lay it out as a tree")
    demo.run(f"patchq fetch {RELEASE} --into site")
    before = digests(demo.folder / "site")
    demo.say("What the patches are for does not hold yet: check fails for each of the four")
    demo.run("patchq check --target site", expect=1)
    demo.say("Push the series: planned, applied, judged, then all files in one transaction")
    demo.run("patchq push -a --target site")
    demo.run("patchq check --target site")
    demo.run("patchq status --target site")
    demo.say("What one patch changed in one file")
    demo.run(f"patchq diff -P 30-speculative-kimi-k2 {SPECULATIVE} --target site")
    return before


def over_ssh(demo: Demo, before: dict[str, str]) -> None:
    """Push and pop on a host: an SSH server on loopback whose user has zsh."""
    shell = "zsh" if shutil.which("zsh") else "sh"
    demo.say(f"The same over SSH: a server on loopback, host keys checked, login shell {shell}")
    with ssh_lab.folder() as folder:
        home = ssh_lab.Home(folder / "client")
        (folder / "remote").mkdir()
        with ssh_lab.embedded(folder / "remote", home.public, shell=shell) as server:
            home.add("gpu01", server)
            remote = demo.folder / "remote-site"
            demo.run(f"patchq fetch {RELEASE} --into {remote.name}")
            at = f"-H gpu01 --target {remote}"
            demo.run(f"patchq push -a {at}", HOME=str(home.path), PATCHQ_CACHE=cache(demo))
            demo.run(f"patchq status {at}", HOME=str(home.path), PATCHQ_CACHE=cache(demo))
            demo.run(f"patchq log {at}", HOME=str(home.path), PATCHQ_CACHE=cache(demo))
            audit = f"patchq audit --queue kimi-k2.5-eagle3 {at}"
            demo.say("Which host has which patches, in a word; nothing is written there")
            demo.run(audit, HOME=str(home.path), PATCHQ_CACHE=cache(demo))
            demo.run(f"patchq pop -a -q {at}", HOME=str(home.path), PATCHQ_CACHE=cache(demo))
            demo.run(audit, expect=5, HOME=str(home.path), PATCHQ_CACHE=cache(demo))
            identical(demo, remote, before)


def cache(demo: Demo) -> str:
    """Return the cache that the demo's commands share."""
    done = subprocess.run(
        [sys.executable, "-c", "from patchq.cli import places; print(places.cache())"],
        env=demo.environ,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def refusals(demo: Demo) -> None:
    """Show what must never become live: a broken patch, and an edit by hand."""
    demo.say("The fault from the field: sed split an import list, without parentheses")
    broken = demo.folder / "queues" / "broken"
    shutil.copytree(QUEUE, broken)
    split_import(broken / "0.16.0" / "10-deepseek-v2-aux-states.patch")
    demo.run("patchq lint --queue queues/broken --release 0.16.0 --write", expect=1)
    demo.run("patchq pop -a -q --queue kimi-k2.5-eagle3 --target site")
    demo.run("patchq push -a --queue queues/broken --target site", expect=3)
    demo.say("An edit by hand is drift: refused, shown, and not touched")
    edited = demo.folder / "site" / SPECULATIVE
    kept = edited.read_bytes()
    edited.write_bytes(kept.replace(b'"qwen"', b'"qwen", "mine"', 1))
    demo.run("patchq push -a --queue kimi-k2.5-eagle3 --target site", expect=3)
    edited.write_bytes(kept)


def main() -> None:
    """Run the demo in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="patchq-demo-") as name:
        demo = Demo(Path(name))
        before = here(demo)
        over_ssh(demo, before)
        refusals(demo)
        demo.say("Push once more and pop: every file is the wheel's again, RECORD included")
        demo.run("patchq push -a -q --queue kimi-k2.5-eagle3 --target site")
        demo.run("patchq pop -a -q --queue kimi-k2.5-eagle3 --target site")
        identical(demo, demo.folder / "site", before)
    print("\ndemo: done")


if __name__ == "__main__":
    main()
