# in vllm/config/speculative.py
class SpeculativeConfig:
    def _verify_args(self):
        _supported_ = ["deepseek_v2", "deepseek_v3", "kimi_k2", "kimi_k25", ...]
        any(_m_ in self.target_model_config.hf_text_config.model_type for _m_ in _supported_)  # given: this list is the one that is asked
        # when <0.18: upstream lets it crash, from 0.22.0 on it works
        if _ and self.target_parallel_config.use_ubatching:
            raise ValueError(...)
