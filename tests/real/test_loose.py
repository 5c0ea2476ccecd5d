"""The longest def of a real release, and sketches that name nothing: a few trials each."""

import pytest
from packaging.version import Version

from patchq.engine import claims, sections, trees
from patchq.releases.store import Store

pytestmark = pytest.mark.slow

PATH = "vllm/v1/worker/gpu_model_runner.py"


@pytest.fixture(scope="module")
def tree(real):
    real.good("fetch", "vllm==0.16.0")
    found = trees.tree(Store("vllm", real.cache / "releases").read("0.16.0", PATH))
    assert isinstance(found, trees.Tree)
    return found


@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("loose", ["_ = _", "_x{n}_ = _", "_(...)", "if _:\n            _ = _"])
def test_loose_statements_cost_a_few_trials(tree, loose, count):
    """Naive backtracking took 96 seconds for four: each way was tried with each other."""
    lines = [loose.format(n=n) for n in range(count)]
    # It is there, above the first of the others.
    last = "if self.execute_model_state is not None:\n            ..."
    body = "\n        ".join([*lines, last])
    said = f"# in {PATH}\nclass GPUModelRunner:\n    def execute_model(self):\n        {body}\n"
    (section,) = sections.parse(said.encode(), name="s.pyi")
    judge = claims.Judge(section, tree, Version("0.16.0"), explain=False)

    (claim,) = judge.claims()

    assert not claim.held
    assert claims._LONG * judge.limit - judge._left < 20_000
