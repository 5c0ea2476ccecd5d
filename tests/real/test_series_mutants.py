"""Patches of the ready-made series with one thing wrong: each is refused, and it is said by what.

A mutant is an edit of a file as the patch leaves it, judged as the patch itself is.
"""

# ruff: noqa: E501 - a table, one mutant a line
import re

import pytest

from patchq.engine import apply, sketch, takeback
from patchq.queue import store
from patchq.releases.store import Store
from tests.real.conftest import QUEUE

pytestmark = pytest.mark.slow

DEEPSEEK, KIMI, SPECULATIVE, EAGLE = (
    "10-deepseek-v2-aux-states",
    "20-kimi-k25-eagle3",
    "30-speculative-kimi-k2",
    "40-eagle-kimi-k25-image-token",
)
BARE = "50-eagle-bare-language-model"
OLD, NEW = ("0.15.0", "0.15.1"), ("0.16.0", "0.17.0", "0.17.1")
ALL = (*OLD, *NEW)
FOUND = r"            if layer_idx in self\.aux_hidden_state_layers:\n(?:.*\n){4}"
AROUND = r"        if aux_hidden_states:\n            return hidden_states, aux_hidden_states\n"
NORM = r"        hidden_states, _ = self\.norm\(hidden_states, residual\)\n"
METHODS = r"    def set_aux_hidden_state_layers(?:.*\n){8}"
BRANCH = '== "KimiK25ForConditionalGeneration"'
SETTER = r"in \w+\.set_aux_hidden_state_layers"
GETTER = r"in \w+\.get_eagle3_aux_hidden_state_layers"

# patch, what is wrong, what is replaced by what, what refuses it, in which releases
MUTANTS = [
    (DEEPSEEK, "the name is left out of the import", r"    SupportsEagle3,\n    SupportsLoRA", "    SupportsLoRA", "import SupportsEagle3", ALL),
    (DEEPSEEK, "the base is missing", r"SupportsEagle,\n    SupportsEagle3,\n\):", "SupportsEagle,\n):", r"DeepseekV2ForCausalLM\(SupportsEagle3\)", ALL),
    (DEEPSEEK, "the setter is misspelt", "def set_aux_hidden_state_layers", "def set_aux_hidden_states_layers", SETTER, ALL),
    (DEEPSEEK, "the getter is misspelt", "def get_eagle3_aux", "def get_eagle_aux", GETTER, ALL),
    (DEEPSEEK, "the bare tensor is returned", "return hidden_states, aux_hidden_states", "return hidden_states", "return hidden_states, _aux_", ALL),
    (DEEPSEEK, "the tuple is returned before the final norm", f"({NORM})({AROUND})", r"\2\1", "def forward", ALL),
    (DEEPSEEK, "the tuple replaces the bare tensor", AROUND + "        return hidden_states\n", "        return hidden_states, aux_hidden_states\n", "def forward|return hidden_states`", ALL),
    (DEEPSEEK, "aux is taken after the layer runs", rf"({FOUND})(            hidden_states, residual = layer\((?:.*\n)*?            \)\n)", r"\2\1", "def forward", ALL),
    (DEEPSEEK, "aux is never taken", FOUND, "", r"_i_ in self|hidden_states \+ residual|_aux_", ALL),
    (DEEPSEEK, "layers are counted from 0", r"            start=self\.start_layer,\n", "", "for _i_, _ in|_i_ in self|hidden_states", ALL),
    (DEEPSEEK, "layer 0 has no residual", "hidden_states if residual is None else hidden_states", "hidden_states", "hidden_states if residual is None", ALL),
    (DEEPSEEK, "the residual is not added up", r"else hidden_states \+ residual", "else hidden_states", r"hidden_states \+ residual", ALL),
    (DEEPSEEK, "the default is missing", r"    aux_hidden_state_layers: tuple\[int, \.\.\.\] = \(\)\n", "", r"aux_hidden_state_layers = \.\.\.", ALL),
    (DEEPSEEK, "the default is set in __init__ only", r"    aux_hidden_state_layers: tuple\[int, \.\.\.\] = \(\)\n((?:.*\n){2}        super\(\).__init__\(\)\n)", r"\1        self.aux_hidden_state_layers = ()\n", r"aux_hidden_state_layers = \.\.\.", ALL),
    (DEEPSEEK, "the setter sets it on the wrong object", r"self\.model\.aux_hidden_state_layers = layers", "self.aux_hidden_state_layers = layers", "self.model.aux_hidden_state_layers = ...", ALL),
    (DEEPSEEK, "setter and getter are in the wrong class", rf"(class DeepseekV2Model\(.*\n)((?:.*\n)*?)({METHODS})", r"\1\3\2", SETTER, ALL),
    (DEEPSEEK, "the layers are others", "depth - 3", "depth - 1", "return 2, _n_ // 2, _n_ - 3", ALL),
    (DEEPSEEK, "a name is used that nothing defines", r"aux_hidden_states\.append", "aux_hidden_state.append", "always on|def forward", ALL),
    (DEEPSEEK, "an annotation ate the code behind it", r"tuple\[int, \.\.\.\]\) -> None:", "tuple[int", "always on, syntax", ALL),
    (KIMI, "the name is left out of the import", r"    SupportsEagle3,\n    SupportsMulti", "    SupportsMulti", "import SupportsEagle3", ALL),
    (KIMI, "an import of a name that is not there", r"(class KimiK25For)", r"from .deepseek_v2 import SupportsEagle4\n\n\n\1", "always on|SupportsEagle3", ALL),
    (KIMI, "the base is missing", r", SupportsEagle3\n\):", "\n):", r"Generation\(SupportsEagle3\)", ALL),
    (KIMI, "the setter is misspelt", "def set_aux_hidden_state_layers", "def set_aux_layers", SETTER, ALL),
    (KIMI, "the getter is misspelt", "def get_eagle3_aux", "def get_eagle_3_aux", GETTER, ALL),
    (KIMI, "the setter does not go on", r"self\.language_model\.(set_aux_hidden_state_layers\(layers\)|aux_hidden_state_layers = layers)", "pass", SETTER, ALL),
    (KIMI, "the getter does not go on", r"return self\.language_model\.get_eagle3.*", "return 2, 30, 58", GETTER, NEW),
    (KIMI, "the layers are another model's", r"len\(self\.language_model\.layers\)", "len(self.vision_tower.layers)", "_n_ = len", OLD),
    (KIMI, "setter and getter are in the wrong class", rf"(class KimiK25MultiModalProcessor\(.*\n)((?:.*\n)*?)({METHODS})", r"\1\3\2", SETTER, OLD),
    *(
        (SPECULATIVE, f"{name} is dropped from the list", rf'            "{name}",\n', "", "_supported_ =", ALL)
        for name in ("deepseek_v2", "deepseek_v3", "kimi_k2", "kimi_k25")
    ),
    (SPECULATIVE, "an element lost its comma", r'"kimi_k2",\n', '"kimi_k2"\n', "_supported_ =", ALL),
    (SPECULATIVE, "an element is misspelt", '            "deepseek_v3",\n', '            "deepseek-v3",\n', "_supported_ =", ALL),
    (SPECULATIVE, "the elements are in a list that nobody asks", r'( +)(\w*supported) = (\[[^\]]*"kimi_k25",\s+\])', r'\1others = \3\n\1\2 = ["llama"]', "def _verify_args", ALL),
    (EAGLE, "the class is another", BRANCH, '== "KimiK2ForConditionalGeneration"', "image_token_index = target_model", ALL),
    (EAGLE, "the attribute is misspelt", "media_placeholder_token_id", "media_placeholder_token", "media_placeholder_token_id", ALL),
    (EAGLE, "the value is put on the target", rf"({BRANCH}:\n.*\n +)self\.model\.config", r"\1target_model.config", "self.model.config.image_token_index", ALL),
    (EAGLE, "the branch does nothing", rf"({BRANCH}:\n)(.*\n){{4}}", r"\1                pass\n", "self.model.config.image_token_index", ALL),
    (BARE, "the import of SimpleNamespace is missing", r"from types import SimpleNamespace\n", "", "import SimpleNamespace", OLD),
    (BARE, "the model is left out", r"SimpleNamespace\(model=target_language_model\)", "SimpleNamespace()", "SimpleNamespace", OLD),
    (BARE, "the branch asks the opposite", 'if not hasattr\\(target_language_model, "model"', 'if hasattr(target_language_model, "model"', "if not hasattr|SimpleNamespace|lm_head", OLD),
    (BARE, "the lm_head is left out", r" +if hasattr\(target_model, \"lm_head\"\):\n +target_language_model\.lm_head = target_model\.lm_head\n", "", "target_model.lm_head", OLD),
]  # fmt: skip


class Judged:
    """The series of one release on its pristine text, patch by patch."""

    def __init__(self, release: str, kept: Store) -> None:
        self.backs: dict[str, tuple[takeback.Back, sketch.Sketch]] = {}
        tree: dict[str, apply.File | None] = {}
        for patch in store.load(store.open(QUEUE), release).patches:
            fresh = [path for path in patch.paths if path not in tree]
            tree.update(dict.fromkeys(fresh) | kept.read_many(release, fresh))
            below = dict(tree)

            def read(path: str, below=below) -> bytes | None:
                file = below.get(path)
                return kept.read(release, path) if path not in below else file and file[0]

            listing = kept.installed(release)
            back = takeback.Back(patch, below.get, release, read, listing=listing)
            assert not isinstance(back.whole, str), back.whole
            self.backs[patch.stem] = back, sketch.load(patch.sketch, name=patch.sketch_name)
            tree.update({path: text and (text, False) for path, text in back.whole.items()})


@pytest.fixture(scope="module")
def judged(real):
    known: dict[str, Judged] = {}
    for release in ALL:
        real.good("fetch", f"vllm=={release}")
    with Store("vllm", real.cache / "releases") as kept:

        def of(release: str) -> Judged:
            if release not in known:
                known[release] = Judged(release, kept)
            return known[release]

        yield of


@pytest.mark.parametrize("release", ALL)
def test_the_series_itself_is_not_refused(judged, release):
    for back, parsed in judged(release).backs.values():
        assert back.broken(back.patch, back.whole, parsed) == ""


@pytest.mark.parametrize("release", ALL)
def test_every_hunk_of_the_series_is_guarded(judged, release):
    for back, parsed in judged(release).backs.values():
        assert [str(one) for one in back.guards(parsed) if not one.by] == []


@pytest.mark.parametrize(
    ("release", "mutant"),
    [(release, one) for one in MUTANTS for release in one[-1]],
    ids=lambda value: value if isinstance(value, str) else f"{value[0][:2]}: {value[1]}",
)
def test_a_patch_with_one_thing_wrong_is_refused(judged, release, mutant):
    stem, _, old, new, by, _ = mutant
    back, parsed = judged(release).backs[stem]
    (path,) = back.whole
    text, count = re.subn(old, new, back.whole[path].decode(), count=1)
    assert count == 1, "the mutant is none"

    refused = back.broken(back.patch, {path: text.encode()}, parsed)

    assert re.search(by, refused), refused
