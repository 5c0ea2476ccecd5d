# in vllm/model_executor/models/kimi_k25.py
from vllm.model_executor.models.interfaces import SupportsEagle3


class KimiK25ForConditionalGeneration(SupportsEagle3):
    # when >=0.16
    def set_aux_hidden_state_layers(self, layers):
        self.language_model.set_aux_hidden_state_layers(layers)

    # when >=0.16
    def get_eagle3_aux_hidden_state_layers(self):
        return self.language_model.get_eagle3_aux_hidden_state_layers()

    # when <0.16: language_model is the bare decoder stack
    def set_aux_hidden_state_layers(self, layers):
        self.language_model.aux_hidden_state_layers = ...

    # when <0.16
    def get_eagle3_aux_hidden_state_layers(self):
        _n_ = len(self.language_model.layers)
        return 2, _n_ // 2, _n_ - 3
