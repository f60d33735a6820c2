"""Forward passes as compiled functions: the wanted outputs of a batch, or one layer's attention.

One compilation a shape of batch and choice of outputs. Float32 products run at full precision on every device (GPUs and
TPUs would round them otherwise).
Axes: as in layers.py; L layer, P masked position.
"""

import functools
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from bert.config import BertConfig
from bert.model.encoder import Encoder, pick
from bert.model.heads import MaskedWords, PretrainingHead
from bert.model.layers import Array, SelfAttention

Params = dict[str, Any]

# Outputs that may come back from padded batches, with their leading axes.
_AXES = {
    "sequence_output": "BT",
    "mlm_logits": "BT",
    "pooled_output": "B",
    "nsp_logits": "B",
    "hidden_states": "LBT",
    "attentions": "LBNTS",
}


def _apply(module: nn.Module, params: Params, *inputs: Any, **options: Any) -> Any:
    return module.apply({"params": params}, *inputs, **options)


@functools.partial(jax.jit, static_argnames=("config", "wanted"))
def outputs(
    params: Params, batch: dict[str, Array], *, config: BertConfig, wanted: tuple[str, ...]
) -> dict[str, Array]:
    """The wanted outputs, float32; what nobody wants is not computed (XLA drops it).

    Args:
      params: ``{"encoder": ..., "head": ...}``; the head holds any of pooler, next_sentence and mlm.
      batch: one example a row; logits of masked words are at ``masked_positions`` where given, else at every position.
      wanted: of ``sequence_output`` [B, T, D], ``cls`` and ``mean`` [B, D], ``hidden_states`` [L + 1, B, T, D] with
        ``attentions`` [L, B, N, T, S], and, as far as the head has their parameters, ``pooled_output`` [B, D],
        ``nsp_logits`` [B, 2], ``mlm_logits`` [B, P, V].
    """
    head: Params = params.get("head", {})
    found: dict[str, Any] = {}
    with jax.default_matmul_precision("highest"):
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
        if "pooler" in head:
            pooled_BD = _apply(PretrainingHead(config), head, hidden_BTD[:, 0], method="pooled")
            found["pooled_output"] = pooled_BD
            if "next_sentence" in head:
                found["nsp_logits"] = _apply(PretrainingHead(config), head, pooled_BD, method="next_sentence_logits")
        if "mlm" in head:
            places_BP = batch.get("masked_positions")
            picked_BPD = hidden_BTD if places_BP is None else pick(hidden_BTD, places_BP)
            table_VD = params["encoder"]["embeddings"]["token"]["embedding"]
            found["mlm_logits"] = _apply(MaskedWords(config), head["mlm"], picked_BPD, table_VD)
        return {name: found[name].astype(jnp.float32) for name in wanted}


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
