# in vllm/config/speculative.py
class SpeculativeConfig:
    def _verify_args(self):
        _supported_ = ["deepseek_v2", "deepseek_v3", "kimi_k2", "kimi_k25", ...]
        any(_m_ in self.target_model_config.hf_text_config.model_type for _m_ in _supported_)  # given: this list is the one that is asked
