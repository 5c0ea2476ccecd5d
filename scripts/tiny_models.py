"""Models of every kind that the EAGLE-3 series is about, so small that a CPU runs them.

A config.json each; there is no checkpoint. `scripts/tiny_engine.py` runs them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

LAYERS = 8
CHOSEN = (1, 3, 5)
TEXT = {
    "architectures": ["DeepseekV3ForCausalLM"],
    "model_type": "deepseek_v3",
    "vocab_size": 512,
    "hidden_size": 64,
    "intermediate_size": 128,
    "moe_intermediate_size": 32,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "n_shared_experts": 1,
    "n_routed_experts": 4,
    "routed_scaling_factor": 1.0,
    "kv_lora_rank": 16,
    "q_lora_rank": 24,
    "qk_rope_head_dim": 16,
    "v_head_dim": 16,
    "qk_nope_head_dim": 16,
    "topk_method": "noaux_tc",
    "n_group": 1,
    "topk_group": 1,
    "num_experts_per_tok": 2,
    "moe_layer_freq": 1,
    "first_k_dense_replace": 1,
    "norm_topk_prob": True,
    "scoring_func": "sigmoid",
    "hidden_act": "silu",
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "attention_bias": False,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
    "num_nextn_predict_layers": 0,
}
VISION = {
    "model_type": "kimi_k25_vision",
    "patch_size": 14,
    "init_pos_emb_height": 8,
    "init_pos_emb_width": 8,
    "init_pos_emb_time": 4,
    "num_attention_heads": 2,
    "num_hidden_layers": 1,
    "hidden_size": 32,
    "intermediate_size": 64,
    "merge_kernel_size": [2, 2],
    "text_hidden_size": 64,
    "mm_hidden_size": 32,
    "vt_hidden_size": 32,
    "vt_num_attention_heads": 2,
    "vt_num_hidden_layers": 1,
    "vt_intermediate_size": 64,
}
DRAFTER = {
    "architectures": ["LlamaForCausalLMEagle3"],
    "model_type": "llama",
    "vocab_size": 512,
    "draft_vocab_size": 512,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "hidden_act": "silu",
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "torch_dtype": "bfloat16",
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
    "tie_word_embeddings": False,
    "eagle_aux_hidden_state_layer_ids": list(CHOSEN),
}
MODELS: dict[str, dict[str, Any]] = {
    "deepseek": TEXT,
    "kimi": {
        "architectures": ["KimiK25ForConditionalGeneration"],
        "model_type": "kimi_k25",
        "media_placeholder_token_id": 505,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "torch_dtype": "bfloat16",
        "text_config": {**TEXT, "model_type": "kimi_k2"},
        "use_unified_vision_chunk": True,
        "vision_config": VISION,
    },
    "drafter": DRAFTER,
    "mla-drafter": {
        **TEXT,
        "architectures": ["Eagle3DeepseekV2ForCausalLM"],
        "num_hidden_layers": 1,
        "eagle_aux_hidden_state_layer_ids": list(CHOSEN),
    },
}


def write_models(folder: Path) -> None:
    """Write each model's config.json; that is all there is of a checkpoint."""
    for name, config in MODELS.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "config.json").write_text(json.dumps(config, indent=1))
