"""The ready-made series on the real files of vLLM 0.16.0 and 0.18.0."""

import hashlib
import json
import os
import subprocess
from pathlib import Path

import pytest

from patchq.engine import apply, judge, sketch
from patchq.model import FileDiff, Patch
from patchq.queue import store
from patchq.releases.store import Store
from tests.real.conftest import QUEUE

pytestmark = pytest.mark.slow

NAMES = (
    "10-deepseek-v2-aux-states",
    "20-kimi-k25-eagle3",
    "30-speculative-kimi-k2",
    "40-eagle-kimi-k25-image-token",
)


def digests(tree: Path) -> dict[str, str]:
    return {
        str(path.relative_to(tree)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(tree.rglob("*"))
        if path.is_file() and not {".patchq", ".pc"} & set(path.parts)
    }


def target(tree: Path) -> tuple[str, ...]:
    return ("--target", str(tree), "--queue", str(QUEUE))


def words(real, tree: Path) -> dict[str, tuple[str, int, int]]:
    document = json.loads(real.run("check", *target(tree), "--json").stdout)
    return {one["patch"]: (one["word"], one["held"], one["asked"]) for one in document["patches"]}


def test_the_lock_is_what_the_release_gives(real):
    real.good("fetch", "vllm==0.16.0")

    done = real.run("lint", "--queue", QUEUE)

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(": good, ") == 4


def test_check_fails_below_for_each_patch_and_holds_after_the_push(real, pristine):
    tree = pristine("0.16.0")
    before = digests(tree)

    below = words(real, tree)
    real.good("push", "-a", *target(tree))
    above = words(real, tree)
    real.good("pop", "-a", *target(tree))

    assert below == dict(zip(NAMES, [("fails", 0, n) for n in (6, 4, 1, 1)], strict=True))
    assert above == dict(zip(NAMES, [("holds", n, n) for n in (6, 4, 1, 1)], strict=True))
    assert digests(tree) == before


def test_upstreams_own_release_holds_in_words_of_its_own(real, pristine):
    tree = pristine("0.18.0")

    assert words(real, tree) == dict(
        zip(NAMES, [("holds", n, n) for n in (5, 4, 1, 1)], strict=True)
    )
    done = real.run("push", "-a", *target(tree))
    assert done.returncode == 1
    assert "no series of queue kimi-k2.5-eagle3 fits vllm 0.18.0" in done.stderr


def test_quilt_itself_pushes_and_pops_to_the_same_bytes(real, pristine):
    tree = pristine("0.16.0")
    before = digests(tree)
    real.good("push", "-a", *target(tree))
    ours = {path: digest for path, digest in digests(tree).items() if "dist-info" not in path}
    real.good("pop", "-a", *target(tree))
    environ = {**os.environ, "QUILT_PATCHES": str(QUEUE / "0.16.0")}

    subprocess.run(["quilt", "--quiltrc", "-", "push", "-a"], cwd=tree, env=environ, check=True)
    quilts = {path: digest for path, digest in digests(tree).items() if "dist-info" not in path}
    subprocess.run(["quilt", "--quiltrc", "-", "pop", "-a"], cwd=tree, env=environ, check=True)

    assert quilts == ours
    assert digests(tree) == before


@pytest.fixture(scope="module")
def series():
    return store.load(store.open(QUEUE), "0.16.0")


@pytest.fixture(scope="module")
def read(real):
    real.good("fetch", "vllm==0.16.0")
    with Store("vllm", real.cache / "releases") as kept:

        def file(path: str) -> apply.File | None:
            return kept.read_many("0.16.0", [path]).get(path)

        yield file


def judged(patch: Patch, read) -> judge.Verdict:
    done = apply.apply_patch(patch, read)
    assert isinstance(done, apply.PatchApplied), done

    def text(path: str) -> bytes | None:
        file = read(path)
        return file and file[0]

    return judge.judge(
        {path: text(path) for path in done.after},
        {path: file and file[0] for path, file in done.after.items()},
        sketch.load(patch.sketch, name=patch.sketch_name),
        "0.16.0",
        text,
        diffs=patch.diffs,
    )


@pytest.mark.parametrize("index", range(4), ids=NAMES)
def test_each_patch_alone_leaves_a_valid_tree(series, read, index):
    verdict = judged(series.patches[index], read)

    assert verdict.holds
    assert not verdict.findings


def without(patch: Patch, index: int) -> Patch:
    """Return the patch with its hunk number `index` taken back."""
    diffs: list[FileDiff] = []
    seen = 0
    for diff in patch.diffs:
        hunks = tuple(h for at, h in enumerate(diff.hunks, seen) if at != index)
        seen += len(diff.hunks)
        if hunks:
            diffs.append(FileDiff(diff.old, diff.new, diff.old_mode, diff.new_mode, hunks))
    return Patch(
        patch.name,
        patch.text,
        patch.header,
        tuple(diffs),
        sketch=patch.sketch,
        sketch_name=patch.sketch_name,
    )


def test_no_hunk_can_be_taken_back_unnoticed(series, read):
    refused = total = 0
    for patch in series.patches:
        for index in range(sum(len(diff.hunks) for diff in patch.diffs)):
            total += 1
            rest = without(patch, index)
            refused += not rest.diffs or not judged(rest, read).holds

    assert (refused, total) == (11, 11)


def test_patches_hold_context_and_no_more(series):
    for patch in series.patches:
        for diff in patch.diffs:
            for hunk in diff.hunks:
                marks = "".join(mark for mark, _ in hunk.lines)
                assert len(marks.strip(" ")) + 6 >= len(marks), patch.name


def test_headers_say_what_and_why(series):
    from patchq.queue import patchfile

    for patch in series.patches:
        fields = patchfile.fields(patch.header)
        assert {"Description", "Author", "Last-Update"} <= set(fields), patch.name


def test_an_annotation_that_a_shell_once_ate_is_in_the_series(series):
    assert b"tuple[int, ...]" in series.patches[0].text
