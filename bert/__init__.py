"""BERT in JAX: pretrain an encoder on your own text, fine-tune it, inspect it, exchange weights with other libraries.

    import bert
    model = bert.load("runs/base")                      # a run, a Hugging Face or a Google directory
    model.fill_mask("The capital of [MASK] is Paris.")  # for each mask: [(token, probability), ...]
    model.embed(["one sentence", "another"])            # float32 [N, D]
    model.predict([{"review": "Not bad."}])             # label and probabilities, of a fine-tuned model
    bert.save(model, "out/")                            # for transformers; format="stablehlo" or "onnx"

The pieces to build with: `BertConfig` (sizes), `Encoder` (a batch -> hidden states), the modules `heads` and `losses`,
and `from_params` (parameters -> a model); see docs/training_loop.md. Bad input raises `InputError`.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bert.architectures.bert import BertConfig
    from bert.architectures.bert_encoder import BertEncoder as Encoder
    from bert.errors import InputError
    from bert.inference import LoadedModel, from_params, load, save
    from bert.model import heads, losses
    from bert.query_key import merge_query_key, split_query_key

__all__ = [
    "BertConfig",
    "Encoder",
    "InputError",
    "LoadedModel",
    "from_params",
    "heads",
    "load",
    "losses",
    "merge_query_key",
    "save",
    "split_query_key",
]

# Resolved on first use: `import bert` itself imports neither JAX nor anything else that is slow to start.
_HOMES = {
    "BertConfig": "bert.architectures.bert:BertConfig",
    "Encoder": "bert.architectures.bert_encoder:BertEncoder",
    "InputError": "bert.errors:InputError",
    "LoadedModel": "bert.inference:LoadedModel",
    "from_params": "bert.inference:from_params",
    "heads": "bert.model.heads:",
    "load": "bert.inference:load",
    "losses": "bert.model.losses:",
    "merge_query_key": "bert.query_key:merge_query_key",
    "save": "bert.inference:save",
    "split_query_key": "bert.query_key:split_query_key",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'bert' has no attribute {name!r}; it has {', '.join(__all__)}")
    module, _, attribute = _HOMES[name].partition(":")
    home = importlib.import_module(module)
    return getattr(home, attribute) if attribute else home


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
