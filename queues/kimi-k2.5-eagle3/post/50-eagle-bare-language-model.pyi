# in vllm/v1/spec_decode/eagle.py when <0.16
from types import SimpleNamespace


class SpecDecodeBaseProposer:
    def load_model(self, target_model):
        target_language_model = target_model.get_language_model()  # given
        if not hasattr(target_language_model, "model"):
            target_language_model = SimpleNamespace(..., model=target_language_model)
            target_model.lm_head
