"""The ready-made series, carried from release to release of vLLM by `patchq rebase`."""

import json
import shutil
from pathlib import Path

import pytest

from patchq.queue import store as queues
from patchq.rebase.tree import Tree
from patchq.releases.store import Store
from tests.real.conftest import QUEUE

pytestmark = pytest.mark.slow

KIMI = "vllm/model_executor/models/kimi_k25.py"
RELEASES = ("0.15.0", "0.15.1", "0.16.0", "0.17.0", "0.17.1", "0.18.0")


class Carrier:
    """A copy of the queue that has the series for some releases only."""

    def __init__(self, real, root: Path) -> None:
        self.real, self.queue = real, root / "kimi"
        self.environ = {"PATCHQ_STATE": str(root / "state")}
        for release in RELEASES:
            real.good("fetch", f"vllm=={release}")

    def only(self, *releases: str) -> None:
        """Have the hand-made series of these releases, and no other."""
        shutil.rmtree(self.queue, ignore_errors=True)
        shutil.copytree(QUEUE, self.queue)
        for release in RELEASES:
            if release not in releases:
                shutil.rmtree(self.queue / release, ignore_errors=True)

    def rebase(self, *args: str) -> dict[str, object]:
        """Run the verb; return its document."""
        said = self.real.run("rebase", *args, "--queue", self.queue, "--json", **self.environ)
        document = json.loads(said.stdout)
        assert isinstance(document, dict)
        return document

    def resolve(self, release: str) -> None:
        """Put the file that the hand-made series gives into the work tree."""
        (work,) = (Path(self.environ["PATCHQ_STATE"]) / "rebase").glob("*/work")
        (work / KIMI).write_bytes(self.given(QUEUE, release)[KIMI])

    def given(self, folder: Path, release: str) -> dict[str, bytes | None]:
        """Return the files that a series gives on its release."""
        queue = queues.open(folder)
        with Store("vllm", self.real.cache / "releases") as store:
            tree = Tree(store, release)
            series = queues.load(queue, release)
            for patch in series.patches:
                tree.put(patch)
            return {path: tree.read(path) for patch in series.patches for path in patch.paths}

    def equal(self, release: str) -> bool:
        """True where the carried series gives the files of the hand-made one."""
        return self.given(self.queue, release) == self.given(QUEUE, release)


def words(document):
    return [step["word"] for step in document["steps"]]


@pytest.fixture
def carrier(real, tmp_path):
    return Carrier(real, tmp_path)


def test_one_series_is_carried_through_all_releases_and_ends_upstream(carrier):
    carrier.only("0.15.0")

    assert words(carrier.rebase("--onto", "0.15.1")) == [
        "exact",
        "exact",
        "moved",
        "exact",
        "exact",
    ]
    assert carrier.equal("0.15.1")

    stopped = carrier.rebase("--onto", "0.16.0")
    assert words(stopped) == ["exact", "conflict"]
    assert stopped["steps"][1]["reasons"] == [
        f"{KIMI}: line 309: both sides put bases at one place: `SupportsEagle3`"
    ]
    carrier.resolve("0.16.0")
    done = carrier.rebase("--continue")
    assert words(done) == ["exact", "resolved", "structural", "moved", "not needed"]
    assert all("deepseek" in f or "kimi" in f for f in done["steps"][2]["flags"])
    assert carrier.equal("0.16.0")

    assert words(carrier.rebase("--onto", "0.17.0")) == ["moved", "merged", "structural", "moved"]
    assert carrier.equal("0.17.0")

    assert words(carrier.rebase("--onto", "0.17.1")) == ["exact"] * 4
    assert carrier.equal("0.17.1")

    end = carrier.rebase("--onto", "0.18.0")
    assert words(end) == ["upstream"] * 4
    assert end["series"] is None
    unasked = [one for step in end["steps"] for one in step["unasked"] if "<0.18" in one]
    assert [one.split("`")[1] for one in unasked] == [
        "aux_hidden_state_layers = ...",
        "hidden_states if residual is None else hidden_states + residual",
        "if _ and self.target_parallel_config.use_ubatching:",
    ]

    for release in RELEASES[:-1]:
        said = carrier.real.good("lint", "--queue", carrier.queue, "--release", release)
        assert "fault" not in said


def test_what_was_resolved_once_is_remembered_from_another_release(carrier):
    carrier.only("0.15.0", "0.15.1")
    carrier.rebase("--onto", "0.16.0")
    carrier.resolve("0.16.0")
    carrier.rebase("--continue")
    shutil.rmtree(carrier.queue / "0.16.0")

    again = carrier.rebase("--onto", "0.16.0", "--from", "0.15.0")

    assert words(again) == ["exact", "remembered", "structural", "moved", "not needed"]
    assert carrier.equal("0.16.0")


def test_a_patch_that_fits_an_older_release_and_is_wrong_there_is_refused(carrier):
    """On 0.15 the language model is a bare decoder: what 0.16 asks of it is not there."""
    carrier.only("0.16.0")

    lacking = carrier.rebase("--onto", "0.15.1")
    assert lacking["error"]["what"].startswith("the series for 0.16.0 lacks 50-eagle-bare")

    forced = carrier.rebase("--onto", "0.15.1", "--force")
    assert words(forced) == ["exact", "conflict"]
    reasons = forced["steps"][1]["reasons"]
    assert reasons[0] == "as structural, it is wrong:"
    assert "def set_aux_hidden_state_layers(self, layers):" in reasons[1]
