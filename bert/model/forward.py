"""Forward passes as compiled functions: the wanted outputs of a batch, or one layer's attention.

One compilation a shape of batch and choice of outputs. Float32 products run at full precision on every device (GPUs and
TPUs would round them otherwise).
Axes: as in blocks.py; L layer, P masked position.
"""

import functools
from collections.abc import Callable, Collection, Mapping
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from bert.architectures.bert import BertConfig
from bert.model import encoder, heads, matmul
from bert.model.blocks import SelfAttention, pick
from bert.model.encoder import Encoder
from bert.types import Params

# Outputs of heads: the parts that they need, and their leading axes, for cutting off padding.
_HEADS: dict[str, tuple[tuple[str, ...], str]] = {
    "pooled_output": (("pooler",), "B"),
    "nsp_logits": (("pooler", "next_sentence"), "B"),
    "sequence_logits": (("pooler", "sequence_classifier"), "B"),
    "token_logits": (("token_classifier",), "BT"),
    "start_logits": (("span",), "BT"),
    "end_logits": (("span",), "BT"),
    "mlm_logits": (("mlm",), "BT"),
}
_AXES = {"sequence_output": "BT", "hidden_states": "LBT", "attentions": "LBNTS"}
_AXES |= {name: axes for name, (_, axes) in _HEADS.items()}


def _apply(module: nn.Module, params: Params, *inputs: Any, **options: Any) -> Any:
    return module.apply({"params": params}, *inputs, **options)


def by_layer(params: Params, config: BertConfig) -> Params:
    """The same parameters, for many forward passes: see `encoder.by_layer`."""
    return {**params, "encoder": encoder.by_layer(params["encoder"], config)}


def outputs(
    params: Params, batch: Mapping[str, Any], *, config: BertConfig, wanted: tuple[str, ...]
) -> dict[str, Array]:
    """The wanted outputs, float32; what nobody wants is not computed (XLA drops it). Compiled.

    Args:
      params: ``{"encoder": ..., "head": ...}``, as trained or `by_layer`; the head holds any parts of
        bert/model/heads.py.
      batch: one example a row, or several where ``cls_positions`` [B, E] says where they begin (what is given per
        example is then [B, E, ...]); logits of masked words are at ``masked_positions`` where given, else everywhere.
      wanted: of ``sequence_output`` [B, T, D], ``cls`` and ``mean`` [B, D], ``hidden_states`` [L + 1, B, T, D] with
        ``attentions`` [L, B, N, T, S], and those of `head_outputs`.
    """
    return compiled_outputs(config.dtype)(params, batch, config=config, wanted=wanted)


@functools.cache
def compiled_outputs(dtype: str) -> Callable[..., dict[str, Array]]:
    """What compiles and runs `traced_outputs` for a configuration of that dtype."""
    options = matmul.inference_options(dtype)
    return jax.jit(traced_outputs, static_argnames=("config", "wanted"), compiler_options=options)


def traced_outputs(
    params: Params, batch: Mapping[str, Any], *, config: BertConfig, wanted: tuple[str, ...]
) -> dict[str, Array]:
    """As `outputs`, as part of a program that somebody else compiles."""
    with jax.default_matmul_precision("highest"):
        encoder_of = functools.partial(_apply, Encoder(config), params["encoder"], batch)
        first_BE, masked_BP = batch.get("cls_positions"), batch.get("masked_positions")
        places_BE = jnp.zeros_like(batch["token_ids"][:, :1]) if first_BE is None else first_BE
        found: dict[str, Any] = {}
        if "hidden_states" not in wanted and not _reads_all(wanted, masked_BP):
            # Nothing else is read of the last block.
            places_BR = places_BE if masked_BP is None else jnp.concatenate([places_BE, masked_BP], axis=1)
            hidden_BTD = encoder_of(positions_BP=places_BR)
            first_BED, masked_BPD = jnp.split(hidden_BTD, [places_BE.shape[1]], axis=1)
        else:
            if "hidden_states" in wanted:
                states_LBTD, found["attentions"] = encoder_of(method="states")
                found["hidden_states"], hidden_BTD = states_LBTD, states_LBTD[-1]
            else:
                hidden_BTD = encoder_of()
            real_BT1 = (batch["example_ids"] != 0)[..., None]
            found["mean"] = jnp.where(real_BT1, hidden_BTD, 0.0).sum(1) / jnp.maximum(real_BT1.sum(1), 1)
            found["sequence_output"] = hidden_BTD
            first_BED = hidden_BTD[:, :1] if first_BE is None else pick(hidden_BTD, first_BE)
            masked_BPD = hidden_BTD if masked_BP is None else pick(hidden_BTD, masked_BP)
        found["cls"] = first_BED[:, 0] if first_BE is None else first_BED
        found |= _head_outputs(params, config, wanted, hidden_BTD, found["cls"], masked_BPD)
        return {name: found[name].astype(jnp.float32) for name in wanted}


def _reads_all(wanted: Collection[str], masked_BP: Array | None) -> bool:
    """Is any of these outputs made of the hidden states at all positions?"""
    words = {"mlm_logits"} if masked_BP is None else set()
    return bool({"sequence_output", "mean", "token_logits", "start_logits", "end_logits", *words} & set(wanted))


def head_outputs(parts: Collection[str]) -> tuple[str, ...]:
    """Names of the outputs that a head of these parts gives, in one order.

    ``pooled_output`` [B, D] (pooler), ``nsp_logits`` [B, 2] (pooler and next_sentence), ``sequence_logits`` [B, C]
    (pooler and sequence_classifier), ``token_logits`` [B, T, C] (token_classifier), ``start_logits`` and
    ``end_logits`` [B, T] (span), ``mlm_logits`` [B, P, V] (mlm).
    """
    return tuple(name for name, (needed, _) in _HEADS.items() if set(needed) <= set(parts))


def _head_outputs(
    params: Params, config: BertConfig, wanted: Collection[str], hidden_BTD: Array, first_BD: Array, masked_BPD: Array
) -> dict[str, Array]:
    head: Params = params.get("head", {})

    def run(name: str, *inputs: Array) -> Array:
        return _apply(heads.part(name, config, head[name]["bias"].shape[0]), head[name], *inputs)

    def pooled() -> Array:
        return heads.pooled(functools.partial(run, "pooler"), first_BD)

    compute: dict[str, Callable[[], Array]] = {
        "pooled_output": pooled,
        "nsp_logits": lambda: run("next_sentence", pooled()),
        "sequence_logits": lambda: run("sequence_classifier", pooled()),
        "token_logits": lambda: run("token_classifier", hidden_BTD),
        "start_logits": lambda: heads.start_and_end(run("span", hidden_BTD))["start_logits"],
        "end_logits": lambda: heads.start_and_end(run("span", hidden_BTD))["end_logits"],
        "mlm_logits": lambda: run("mlm", masked_BPD, params["encoder"]["embeddings"]["token"]["embedding"]),
    }
    return {name: compute[name]() for name in head_outputs(head) if name in wanted}


@functools.partial(jax.jit, static_argnames=("config",))
def attention(params: Params, batch: dict[str, Array], layer: Array, *, config: BertConfig) -> tuple[Array, Array]:
    """Scores before the softmax and weights after it, float32 [B, N, T, S], of one layer."""
    with jax.default_matmul_precision("highest"):
        inputs_LBTD, weights_LBNTS = _apply(Encoder(config), params["encoder"], batch, method="states")
        blocks = params["encoder"]["blocks"]
        if isinstance(blocks, tuple):
            blocks = jax.tree.map(lambda *of_layers: jnp.stack(of_layers), *blocks)
        own = jax.tree.map(lambda stacked: stacked[layer], blocks["attention"])
        scores_BNTS = _apply(SelfAttention(config), own, inputs_LBTD[layer], method="scores")
        return scores_BNTS, weights_LBNTS[layer]


def without_padding(name: str, value: Array, rows: int, positions: int) -> np.ndarray:
    """The output of that name as a NumPy array, its rows and positions cut to what was asked for."""
    sizes = {"B": rows, "T": positions, "S": positions}
    return np.asarray(value)[tuple(slice(sizes.get(axis)) for axis in _AXES[name])]
