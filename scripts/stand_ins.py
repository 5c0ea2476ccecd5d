"""What stands in for a GPU, compiled kernels and an image processor where tiny models run."""

from __future__ import annotations

from typing import Any


def fit_to_the_cpu() -> None:
    """Stand in for what this torch, or a machine without a GPU, does not have.

    No line of a patched file is replaced.
    """
    import torch
    import torch.nn.functional as functional

    if not hasattr(torch._C._cpu, "_is_avx512_supported"):  # gone from torch 2.13; 0.17 asks
        torch._C._cpu._is_avx512_supported = lambda: False
    if not torch.cuda.is_available():
        torch.cuda.current_device = lambda: "cpu"  # 0.15's Kimi-K2.5 asks CUDA whatever runs it
    import vllm.model_executor.models.registry as registry

    registry._run_in_subprocess = lambda function: function()  # a fresh process each is slow
    import vllm.model_executor.layers.activation as activation
    import vllm.model_executor.layers.layernorm as layernorm
    import vllm.model_executor.layers.rotary_embedding.base as rotary

    for module in (rotary, activation, layernorm):  # compiled ops have their twins in torch
        for layer in vars(module).values():
            if not isinstance(layer, type) or layer.__name__ == "CustomOp":
                continue
            if "forward_cpu" in vars(layer) and hasattr(layer, "forward_native"):
                layer.forward_cpu = layer.forward_native
    try:
        from vllm.model_executor.layers.attention.attention import Attention
    except ImportError:
        from vllm.attention.layer import Attention

    def attend(self: Any, query: Any, key: Any, value: Any, output_shape: Any = None) -> Any:
        count = query.shape[0]
        heads = (self.num_heads, self.num_kv_heads, self.num_kv_heads)
        q, k, v = (
            one.view(count, number, -1).transpose(0, 1)
            for one, number in zip((query, key, value), heads, strict=True)
        )
        k, v = (one.repeat_interleave(q.shape[0] // one.shape[0], 0) for one in (k, v))
        out = functional.scaled_dot_product_attention(
            q, k, v, is_causal=True, scale=self.impl.scale
        )
        return out.transpose(0, 1).reshape(count, -1)

    Attention.forward = attend
    from vllm.multimodal import MULTIMODAL_REGISTRY

    # No images are asked for, and a tiny checkpoint has no image processor to say so.
    MULTIMODAL_REGISTRY.supports_multimodal_inputs = lambda *args, **kwargs: False
