# in vllm/model_executor/models/deepseek_v2.py
from .interfaces import SupportsEagle3


class DeepseekV2Model:
    # when <0.18: upstream sets it in __init__ only; EagleMistralLarge3Model, which skips that, breaks there
    aux_hidden_state_layers = ...

    def forward(self):
        for _i_, _ in enumerate(islice(self.layers, ...), start=self.start_layer):
            if _i_ in self.aux_hidden_state_layers:
                # when <0.18: layer 0 has no residual (upstream raises)
                hidden_states if residual is None else hidden_states + residual
                hidden_states + residual
                _aux_.append(_)
            hidden_states, residual = _(...)  # given: aux is taken before the layer runs
        hidden_states, _ = self.norm(hidden_states, residual)  # given: aux leaves after the final norm
        return hidden_states, _aux_
        return hidden_states  # given: the bare tensor stays the default


class DeepseekV2ForCausalLM(SupportsEagle3):
    def set_aux_hidden_state_layers(self, layers):
        self.model.aux_hidden_state_layers = ...

    def get_eagle3_aux_hidden_state_layers(self):
        return 2, _n_ // 2, _n_ - 3
