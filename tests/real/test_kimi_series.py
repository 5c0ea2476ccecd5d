"""The ready-made series on the real files of the five releases it is for, and of 0.18.0."""

import hashlib
import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from patchq.engine import apply, judge, sketch
from patchq.model import FileDiff, Patch
from patchq.queue import store
from patchq.releases.store import Store
from tests.real.conftest import QUEUE

pytestmark = pytest.mark.slow

# Each patch, and how many claims its sketch makes where it is needed.
CLAIMS = {
    "10-deepseek-v2-aux-states": 6,
    "20-kimi-k25-eagle3": 4,
    "30-speculative-kimi-k2": 1,
    "40-eagle-kimi-k25-image-token": 1,
    "50-eagle-bare-language-model": 2,
}
RELEASES = ("0.15.0", "0.15.1", "0.16.0", "0.17.0", "0.17.1")
STEPS = [(release, index) for release in RELEASES for index in range(5 if release < "0.16" else 4)]


def names(release: str) -> list[str]:
    """Return the patches of a release's series; the last is for 0.15 only."""
    return list(CLAIMS)[: 5 if release < "0.16" else 4]


def digests(tree: Path) -> dict[str, str]:
    return {
        str(path.relative_to(tree)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(tree.rglob("*"))
        if path.is_file() and not {".patchq", ".pc"} & set(path.parts)
    }


def target(tree: Path) -> tuple[str, ...]:
    return ("--target", str(tree), "--queue", str(QUEUE))


def words(real, tree: Path) -> dict[str, tuple[str, int, int]]:
    """Return what `check` says of each patch that is asked for this release."""
    document = json.loads(real.run("check", *target(tree), "--json").stdout)
    return {
        one["patch"]: (one["word"], one["held"], one["asked"])
        for one in document["patches"]
        if one["asked"]
    }


def test_the_locks_are_what_the_releases_give(real):
    for release in RELEASES:
        real.good("fetch", f"vllm=={release}")

    done = real.run("lint", "--queue", QUEUE)

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(": good, ") == len(STEPS)


def test_the_queue_is_for_the_five_releases(real):
    document = json.loads(real.good("queues", "-v", "--json", PATCHQ_QUEUES=QUEUE.parent))
    (queue,) = (one for one in document["queues"] if one["name"] == QUEUE.name)

    assert tuple(queue["releases"]) == RELEASES
    assert [one["patch"] for one in queue["patches"]] == list(CLAIMS)
    assert not any(one["missing"] for one in queue["patches"])
    assert queue["patches"][-1]["for"] == "<0.16"


@pytest.mark.parametrize("release", RELEASES)
def test_check_fails_below_for_each_patch_and_holds_after_the_push(real, pristine, release):
    tree = pristine(release)
    before = digests(tree)

    below = words(real, tree)
    real.good("push", "-a", *target(tree))
    above = words(real, tree)
    real.good("pop", "-a", *target(tree))

    assert below == {name: ("fails", 0, CLAIMS[name]) for name in names(release)}
    assert above == {name: ("holds", CLAIMS[name], CLAIMS[name]) for name in names(release)}
    assert digests(tree) == before


def test_upstreams_own_release_holds_in_words_of_its_own(real, pristine):
    tree = pristine("0.18.0")

    wanted = {**CLAIMS, "10-deepseek-v2-aux-states": 5}
    assert words(real, tree) == {
        name: ("holds", wanted[name], wanted[name]) for name in names("0.18.0")
    }
    done = real.run("push", "-a", *target(tree))
    assert done.returncode == 3
    assert "merged upstream: vllm 0.18.0 has of its own what queue" in done.stderr
    assert "claims of the queue's sketches hold on 0.18.0 as it is" in done.stderr


@pytest.mark.parametrize("release", RELEASES)
def test_quilt_itself_pushes_and_pops_to_the_same_bytes(real, pristine, release):
    tree = pristine(release)
    before = digests(tree)
    real.good("push", "-a", *target(tree))
    ours = {path: digest for path, digest in digests(tree).items() if "dist-info" not in path}
    real.good("pop", "-a", *target(tree))
    environ = {**os.environ, "QUILT_PATCHES": str(QUEUE / release)}

    subprocess.run(["quilt", "--quiltrc", "-", "push", "-a"], cwd=tree, env=environ, check=True)
    quilts = {path: digest for path, digest in digests(tree).items() if "dist-info" not in path}
    subprocess.run(["quilt", "--quiltrc", "-", "pop", "-a"], cwd=tree, env=environ, check=True)

    assert quilts == ours
    assert digests(tree) == before


@dataclass(frozen=True)
class Below:
    """A series, and its release's files with the first patches of it applied."""

    release: str
    patches: tuple[Patch, ...]
    read: Callable[[str], apply.File | None]

    def at(self, index: int) -> "Below":
        """Return the files as they are below patch number `index`."""
        tree: dict[str, apply.File | None] = {}
        for patch in self.patches[:index]:
            done = apply.apply_patch(patch, lambda path: tree.get(path) or self.read(path))
            assert isinstance(done, apply.PatchApplied), done
            tree.update(done.after)
        return Below(self.release, self.patches, lambda path: tree.get(path) or self.read(path))

    def judged(self, patch: Patch) -> judge.Verdict:
        """Judge a patch on these files."""
        done = apply.apply_patch(patch, self.read)
        assert isinstance(done, apply.PatchApplied), done

        def text(path: str) -> bytes | None:
            file = self.read(path)
            return file and file[0]

        return judge.judge(
            {path: text(path) for path in done.after},
            {path: file and file[0] for path, file in done.after.items()},
            sketch.load(patch.sketch, name=patch.sketch_name),
            self.release,
            text,
            diffs=patch.diffs,
        )


@pytest.fixture(scope="module")
def series(real):
    """A function that gives a release's series on its pristine files."""
    kept = Store("vllm", real.cache / "releases")

    def of(release: str) -> Below:
        real.good("fetch", f"vllm=={release}")
        patches = store.load(store.open(QUEUE), release).patches
        return Below(release, patches, lambda path: kept.read_many(release, [path]).get(path))

    with kept:
        yield of


@pytest.mark.parametrize(("release", "index"), STEPS)
def test_each_patch_leaves_a_valid_tree_on_top_of_those_below(series, release, index):
    below = series(release).at(index)

    verdict = below.judged(below.patches[index])

    assert verdict.holds
    assert not verdict.findings


@pytest.mark.parametrize("release", RELEASES)
def test_each_patch_of_the_first_four_alone_leaves_a_valid_tree(series, release):
    pristine = series(release)

    for patch in pristine.patches[:4]:
        assert pristine.judged(patch).holds, patch.name


def without(patch: Patch, index: int) -> Patch:
    """Return the patch with its hunk number `index` taken back."""
    diffs: list[FileDiff] = []
    seen = 0
    for diff in patch.diffs:
        hunks = tuple(h for at, h in enumerate(diff.hunks, seen) if at != index)
        seen += len(diff.hunks)
        if hunks:
            diffs.append(FileDiff(diff.old, diff.new, diff.old_mode, diff.new_mode, hunks))
    return replace(patch, diffs=tuple(diffs))


@pytest.mark.parametrize("release", RELEASES)
def test_no_hunk_can_be_taken_back_unnoticed(series, release):
    refused = total = 0
    for index, patch in enumerate(series(release).patches):
        below = series(release).at(index)
        for hunk in range(sum(len(diff.hunks) for diff in patch.diffs)):
            total += 1
            rest = without(patch, hunk)
            refused += not rest.diffs or not below.judged(rest).holds

    wanted = 14 if release < "0.16" else 12
    assert (refused, total) == (wanted, wanted)


@pytest.mark.parametrize("release", RELEASES)
def test_patches_hold_context_and_no_more(series, release):
    for patch in series(release).patches:
        for diff in patch.diffs:
            for hunk in diff.hunks:
                marks = "".join(mark for mark, _ in hunk.lines)
                assert len(marks.strip(" ")) + 6 >= len(marks), patch.name


@pytest.mark.parametrize("release", RELEASES)
def test_headers_say_what_and_why(series, release):
    from patchq.queue import patchfile

    for patch in series(release).patches:
        fields = patchfile.fields(patch.header)
        wanted = {"Description", "Author", "Last-Update", "Origin", "Applied-Upstream"}
        assert wanted <= set(fields), patch.name


@pytest.mark.parametrize("release", RELEASES)
def test_an_annotation_that_a_shell_once_ate_is_in_the_series(series, release):
    assert b"tuple[int, ...]" in series(release).patches[0].text
