"""What `patchq sketch` drafts for the ready-made series, their own sketches taken away."""

import json
import shutil

import pytest

from tests.real.conftest import QUEUE

pytestmark = pytest.mark.slow

PATCHES = sorted(path.stem for path in (QUEUE / "0.16.0").glob("*.patch"))


def test_a_draft_for_each_patch_is_what_lint_asks_for(real, tmp_path):
    real.good("fetch", "vllm==0.16.0")
    queue = tmp_path / "bare"
    shutil.copytree(QUEUE, queue, ignore=shutil.ignore_patterns("post", "0.15*", "0.17*", "*.pyi"))

    for stem in PATCHES:
        real.good("sketch", stem, "--queue", queue, "--write")
    document = json.loads(real.run("lint", "--queue", queue, "--json").stdout)

    assert [one["patch"] for one in document["patches"]] == [f"{stem}.patch" for stem in PATCHES]
    for one in document["patches"]:
        assert one["faults"] == []
        assert one["claims"] > 0
        assert {hunk["word"] for hunk in one["hunks"]} == {"guarded"}
        assert all(hunk["by"].startswith("post/") for hunk in one["hunks"])
        path = queue / "post" / f"{one['patch'].removesuffix('.patch')}.pyi"
        assert path.read_text().startswith("# Drafted by `patchq sketch` from 0.16.0/")


def test_a_draft_for_the_text_model_says_what_the_patch_brings(real):
    real.good("fetch", "vllm==0.16.0")

    text = real.good("sketch", PATCHES[0], "--queue", QUEUE, "--release", "0.16.0")

    assert text.split("\n", 1)[1] == (
        "# in vllm/model_executor/models/deepseek_v2.py\n"
        "from .interfaces import SupportsEagle3\n\n\n"
        "class DeepseekV2Model:\n"
        "    aux_hidden_state_layers = ...\n\n"
        "    def forward(self):\n"
        "        for _layer_idx_, _layer_ in enumerate(_, start=_):\n"
        "            if _layer_idx_ in self.aux_hidden_state_layers:\n"
        "                _aux_hidden_states_.append(_hidden_states_ if _residual_ is None "
        "else _hidden_states_ + _residual_)\n"
        "        if _aux_hidden_states_:\n"
        "            return (_hidden_states_, _aux_hidden_states_)\n\n\n"
        "class DeepseekV2ForCausalLM(SupportsEagle3):\n"
        "    def set_aux_hidden_state_layers(self, layers):\n"
        "        self.model.aux_hidden_state_layers = layers\n\n"
        "    def get_eagle3_aux_hidden_state_layers(self):\n"
        "        _depth_ = len(self.model.layers)\n"
        "        return (2, _depth_ // 2, _depth_ - 3)\n"
    )
