"""What a release of vLLM does with tiny models; scripts/behaviour.py runs it, in an environment.

``PYTHONPATH=TREE python scripts/tiny_engine.py OUT.json FOLDER [SCENE...]``. Every scene is the
release's own code on seeded weights, on the CPU: models that have a config and no checkpoint,
one sequence of ten tokens, attention without a KV cache. What a scene finds goes to OUT.json
under its name; an error goes there as ``{"error": "Type: message"}``.
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
import sys
import tempfile
import textwrap
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stand_ins import fit_to_the_cpu
from tiny_models import CHOSEN, LAYERS, write_models

os.environ.update(
    VLLM_MLA_DISABLE="1",  # MLA has no CPU kernel; the layers around it are the same
    VLLM_LOGGING_LEVEL="ERROR",
    HF_HUB_OFFLINE="1",
    VLLM_CPU_KVCACHE_SPACE="1",
    VLLM_USE_AOT_COMPILE="0",
    VLLM_NO_USAGE_STATS="1",
)

TOKENS = 10


def engine_config(folder: Path, name: str, drafter: str = "", **more: Any) -> Any:
    """Return the VllmConfig that the real EngineArgs make for a model."""
    from vllm.engine.arg_utils import EngineArgs

    if name == "kimi":
        more["limit_mm_per_prompt"] = {"image": 0, "video": 0, "vision_chunk": 0}
    if drafter:
        model = str(folder / drafter)
        more["speculative_config"] = {"method": "eagle3", "model": model}
        more["speculative_config"]["num_speculative_tokens"] = 2
    return EngineArgs(
        model=str(folder / name),
        skip_tokenizer_init=True,
        load_format="dummy",
        enforce_eager=True,
        dtype="float32",
        max_model_len=128,
        max_num_batched_tokens=128,
        max_num_seqs=4,
        **more,
    ).create_engine_config()


@contextlib.contextmanager
def working(config: Any) -> Iterator[None]:
    """Run a model under its configuration."""
    import torch
    from vllm.config import set_current_vllm_config
    from vllm.forward_context import set_forward_context

    with (
        set_current_vllm_config(config),
        set_forward_context(None, config, num_tokens=TOKENS),
        torch.inference_mode(),
    ):
        yield


def load(config: Any) -> Any:
    """Return the target model of a configuration, with seeded weights."""
    import torch
    from vllm.config import set_current_vllm_config
    from vllm.distributed import (
        ensure_model_parallel_initialized,
        init_distributed_environment,
    )
    from vllm.model_executor.model_loader import get_model

    with set_current_vllm_config(config):
        meet = f"file://{tempfile.mkdtemp()}/meet"
        init_distributed_environment(1, 0, meet, 0, "gloo")
        ensure_model_parallel_initialized(1, 1)
        model = get_model(vllm_config=config)
    seed(model)
    assert torch.isfinite(next(model.parameters())).all()
    return model


def seed(model: Any) -> None:
    """Give every weight a value that does not depend on the release."""
    import torch

    source = torch.Generator().manual_seed(0)
    for name, weight in model.named_parameters():
        if weight.dtype.is_floating_point:
            values = torch.randn(weight.shape, generator=source) * 0.08
            if "norm" in name and weight.dim() == 1:
                values = torch.ones(weight.shape)
            weight.data.copy_(values.to(weight.dtype))


def stack(model: Any) -> Any:
    """Return the decoder, however deep a model holds it."""
    (found,) = (part for part in model.modules() if type(part).__name__ == "DeepseekV2Model")
    return found


def run(config: Any, model: Any) -> Any:
    """Return what one forward gives for the ten tokens."""
    import torch

    with working(config):
        return model(torch.arange(3, 3 + TOKENS), torch.arange(TOKENS))


def as_the_runner_asks(config: Any, model: Any, drafter: bool = True) -> tuple[int, ...]:
    """Set the model's layers by the very statements of this release's gpu_model_runner.

    They are cut out of its `load_model`, since the module itself wants a GPU.
    Without a drafter the release asks the model for its own choice.
    """
    import vllm
    from vllm.model_executor.models.interfaces import supports_eagle3

    path = Path(vllm.__file__).parent / "v1" / "worker" / "gpu_model_runner.py"
    tree = ast.parse(path.read_text())
    defs = {one.name: one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)}
    block = next(
        ast.unparse(one)
        for one in ast.walk(defs["load_model"])
        if isinstance(one, ast.If) and ast.unparse(one.test) == "self.use_aux_hidden_state_outputs"
    )
    from_config = ast.unparse(defs["_get_eagle3_aux_layers_from_config"])
    logger = types.SimpleNamespace(info=lambda *args: None)
    names: dict[str, Any] = {"supports_eagle3": supports_eagle3, "logger": logger}
    exec(f"{from_config}\ndef ask(self):\n{textwrap.indent(block, '    ')}\n", names)
    runner = types.SimpleNamespace(
        use_aux_hidden_state_outputs=True,
        model=model,
        get_model=lambda: model,
        speculative_config=config.speculative_config if drafter else None,
    )
    runner._get_eagle3_aux_layers_from_config = lambda: names[
        "_get_eagle3_aux_layers_from_config"
    ](runner)
    names["ask"](runner)
    return tuple(stack(model).aux_hidden_state_layers)


def states(folder: Path, name: str) -> dict[str, Any]:
    """Compare a model's auxiliary states with what hooks see in its layers."""
    import torch

    config = engine_config(folder, name)
    model = load(config)
    decoder = stack(model)
    seen: dict[int, Any] = {}

    def entering(index: int) -> Any:
        def hook(layer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            hidden, residual = args[1], args[2]
            seen[index] = hidden.clone() if residual is None else hidden + residual

        return hook

    for index, layer in enumerate(decoder.layers):
        layer.register_forward_pre_hook(entering(index), with_kwargs=True)
    left: dict[int, Any] = {}
    for index, layer in enumerate(decoder.layers):
        layer.register_forward_hook(
            lambda _, args, out, index=index: left.__setitem__(index, out[0] + out[1])
        )
    plain = run(config, model)
    assert torch.isfinite(plain).all()
    assert plain.abs().sum() > 0
    found: dict[str, Any] = {"plain": type(plain).__name__}
    found["default layers"] = as_the_runner_asks(config, model, drafter=False)
    for layers in (CHOSEN, (0, LAYERS - 1)):
        model.set_aux_hidden_state_layers(layers)
        seen.clear(), left.clear()
        out = run(config, model)
        kept, aux = out  # the runner's own statement
        found[str(layers)] = {
            "type": type(out).__name__,
            "states": len(aux),
            "entering": all(torch.equal(a, seen[k]) for a, k in zip(aux, layers, strict=True)),
            "left": all(
                torch.equal(a, left[k - 1]) for a, k in zip(aux, layers, strict=True) if k
            ),
            "embedding first": bool(
                layers[0] or torch.equal(aux[0], decoder.embed_tokens(torch.arange(3, 13)))
            ),
            "distinct": not torch.equal(aux[0], aux[1]),
            "final unchanged": torch.equal(kept, plain),
            "logits": list(model.compute_logits(kept).shape),
        }
    model.set_aux_hidden_state_layers(())
    again = run(config, model)
    found["restored"] = type(again).__name__ == "Tensor" and torch.equal(again, plain)
    return found


def accepted(folder: Path, name: str, drafter: str = "drafter", **more: Any) -> dict[str, Any]:
    """Construct the real configuration with a drafter."""
    config = engine_config(folder, name, drafter, **more)
    text = config.model_config.hf_text_config.model_type
    return {"method": config.speculative_config.method, "text model_type": text}


def drafting(folder: Path) -> dict[str, Any]:
    """Load a real drafter beside a real Kimi-K2.5, by the release's own proposer."""
    import torch
    from vllm.config import set_current_vllm_config
    from vllm.v1.spec_decode.eagle import EagleProposer

    config = engine_config(folder, "kimi", "drafter")
    model = load(config)
    proposer = EagleProposer(config, torch.device("cpu"))
    with set_current_vllm_config(config):
        proposer.load_model(model)
    draft = proposer.model
    layers = as_the_runner_asks(config, model)
    _, aux = run(config, model)
    with working(config):
        width = draft.combine_hidden_states(torch.cat(aux, dim=-1)).shape[-1]
    head = getattr(model, "lm_head", None) or model.language_model.lm_head
    return {
        "image_token_index": draft.config.image_token_index,
        "layers": layers,
        "combined": width,
        "embeddings shared": draft.model.embed_tokens is stack(model).embed_tokens,
        "lm_head shared": draft.lm_head is head,
    }


def skipped_init() -> dict[str, Any]:
    """Return the layers of the subclass that skips DeepseekV2Model.__init__."""
    import torch
    from vllm.model_executor.models import mistral_large_3_eagle

    bare = torch.nn.Module.__new__(mistral_large_3_eagle.EagleMistralLarge3Model)
    torch.nn.Module.__init__(bare)
    return {"layers": bare.aux_hidden_state_layers}


SCENES = {
    "deepseek": lambda folder: states(folder, "deepseek"),
    "kimi": lambda folder: states(folder, "kimi"),
    "deepseek config": lambda folder: accepted(folder, "deepseek"),
    "kimi config": lambda folder: accepted(folder, "kimi"),
    "pipeline": lambda folder: accepted(folder, "kimi", pipeline_parallel_size=2),
    "microbatches": lambda folder: accepted(folder, "kimi", ubatch_size=2),
    "mla drafter": lambda folder: accepted(folder, "kimi", "mla-drafter"),
    "drafting": drafting,
    "mistral eagle": lambda folder: skipped_init(),
}


def main(out: Path, folder: Path, scenes: list[str]) -> None:
    """Run the scenes that are named, all of them without a name."""
    import traceback

    write_models(folder)
    fit_to_the_cpu()
    found: dict[str, Any] = {}
    for name in scenes or SCENES:
        try:
            found[name] = SCENES[name](folder)
        except Exception as error:  # whatever a user would meet is what is asked
            words = " ".join(str(error).split())
            found[name] = {"error": f"{type(error).__name__}: {words}"}
            traceback.print_exc()
        out.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
