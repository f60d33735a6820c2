"""Forward passes as compiled functions: the wanted outputs of a batch, or one layer's attention.

One compilation a shape of batch and choice of outputs. Float32 products run at full precision on every device (GPUs and
TPUs would round them otherwise).
Axes: as in layers.py; L layer, P masked position.
"""

import functools
from collections.abc import Collection
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from bert.config import BertConfig
from bert.model import heads
from bert.model.encoder import Encoder, pick
from bert.model.layers import Array, SelfAttention

Params = dict[str, Any]

# Outputs that may come back from padded batches, with their leading axes.
_AXES = {
    "sequence_output": "BT",
    "mlm_logits": "BT",
    "pooled_output": "B",
    "nsp_logits": "B",
    "sequence_logits": "B",
    "token_logits": "BT",
    "start_logits": "BT",
    "end_logits": "BT",
    "hidden_states": "LBT",
    "attentions": "LBNTS",
}

_NEEDED_PARTS = {
    "pooled_output": ("pooler",),
    "nsp_logits": ("pooler", "next_sentence"),
    "sequence_logits": ("pooler", "sequence_classifier"),
    "token_logits": ("token_classifier",),
    "start_logits": ("span",),
    "end_logits": ("span",),
    "mlm_logits": ("mlm",),
}


def _apply(module: nn.Module, params: Params, *inputs: Any, **options: Any) -> Any:
    return module.apply({"params": params}, *inputs, **options)


@functools.partial(jax.jit, static_argnames=("config", "wanted"))
def outputs(
    params: Params, batch: dict[str, Array], *, config: BertConfig, wanted: tuple[str, ...]
) -> dict[str, Array]:
    """The wanted outputs, float32; what nobody wants is not computed (XLA drops it).

    Args:
      params: ``{"encoder": ..., "head": ...}``; the head holds any parts of bert/model/heads.py.
      batch: one example a row; logits of masked words are at ``masked_positions`` where given, else at every position.
      wanted: of ``sequence_output`` [B, T, D], ``cls`` and ``mean`` [B, D], ``hidden_states`` [L + 1, B, T, D] with
        ``attentions`` [L, B, N, T, S], and those of `head_outputs`.
    """
    with jax.default_matmul_precision("highest"):
        found: dict[str, Any] = {}
        if "hidden_states" in wanted:
            states_LBTD, weights_LBNTS = _apply(Encoder(config), params["encoder"], batch, method="states")
            found |= {"hidden_states": states_LBTD, "attentions": weights_LBNTS}
            hidden_BTD = states_LBTD[-1]
        else:
            hidden_BTD = _apply(Encoder(config), params["encoder"], batch)
        real_BT1 = (batch["example_ids"] != 0)[..., None]
        found |= {
            "sequence_output": hidden_BTD,
            "cls": hidden_BTD[:, 0],
            "mean": jnp.where(real_BT1, hidden_BTD, 0.0).sum(1) / jnp.maximum(real_BT1.sum(1), 1),
        }
        found |= _head_outputs(params, config, hidden_BTD, batch.get("masked_positions"))
        return {name: found[name].astype(jnp.float32) for name in wanted}


def head_outputs(parts: Collection[str]) -> tuple[str, ...]:
    """Names of the outputs that a head of these parts gives, in one order.

    ``pooled_output`` [B, D] (pooler), ``nsp_logits`` [B, 2] (pooler and next_sentence), ``sequence_logits`` [B, C]
    (pooler and sequence_classifier), ``token_logits`` [B, T, C] (token_classifier), ``start_logits`` and
    ``end_logits`` [B, T] (span), ``mlm_logits`` [B, P, V] (mlm).
    """
    return tuple(name for name, needed in _NEEDED_PARTS.items() if set(needed) <= set(parts))


def _head_outputs(params: Params, config: BertConfig, hidden_BTD: Array, places_BP: Array | None) -> dict[str, Array]:
    head: Params = params.get("head", {})

    def run(name: str, *inputs: Array) -> Array:
        classes = head[name]["bias"].shape[0]  # of the masked words: V, which their module does not ask for
        return _apply(heads.part(name, config, classes), head[name], *inputs)

    found: dict[str, Array] = {}
    if "pooler" in head:
        found["pooled_output"] = heads.pooled(functools.partial(run, "pooler"), hidden_BTD[:, 0])
        for name, output in (("next_sentence", "nsp_logits"), ("sequence_classifier", "sequence_logits")):
            if name in head:
                found[output] = run(name, found["pooled_output"])
    if "token_classifier" in head:
        found["token_logits"] = run("token_classifier", hidden_BTD)
    if "span" in head:
        found |= heads.start_and_end(run("span", hidden_BTD))
    if "mlm" in head:
        picked_BPD = hidden_BTD if places_BP is None else pick(hidden_BTD, places_BP)
        found["mlm_logits"] = run("mlm", picked_BPD, params["encoder"]["embeddings"]["token"]["embedding"])
    return found


@functools.partial(jax.jit, static_argnames=("config",))
def attention(params: Params, batch: dict[str, Array], layer: Array, *, config: BertConfig) -> tuple[Array, Array]:
    """Scores before the softmax and weights after it, float32 [B, N, T, S], of one layer."""
    with jax.default_matmul_precision("highest"):
        inputs_LBTD, weights_LBNTS = _apply(Encoder(config), params["encoder"], batch, method="states")
        own = jax.tree.map(lambda stacked: stacked[layer], params["encoder"]["blocks"]["attention"])
        scores_BNTS = _apply(SelfAttention(config), own, inputs_LBTD[layer], method="scores")
        return scores_BNTS, weights_LBNTS[layer]


def without_padding(name: str, value: Array, rows: int, positions: int) -> np.ndarray:
    """The output of that name as a NumPy array, its rows and positions cut to what was asked for."""
    sizes = {"B": rows, "T": positions, "S": positions}
    return np.asarray(value)[tuple(slice(sizes.get(axis)) for axis in _AXES[name])]
