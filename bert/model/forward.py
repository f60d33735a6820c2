"""Compiled forward passes: the requested outputs of a batch, or the attention of one layer.

Compiles once per batch shape and choice of outputs. Float32 products have full precision on every device (by default,
GPUs and TPUs round them).
Axes: as in blocks.py; L layer, P masked position.
"""

import functools
from collections.abc import Callable, Collection
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from bert import architectures
from bert.architectures import ModelConfig
from bert.errors import InputError
from bert.model import heads, matmul
from bert.model.blocks import pick
from bert.types import Batch, Params

# Outputs of heads: the parts that they need, and their leading axes, for cutting off padding.
_HEADS: dict[str, tuple[tuple[str, ...], str]] = {
    "pooled_output": (("pooler",), "B"),
    "nsp_logits": (("pooler", "next_sentence"), "B"),
    "sequence_logits": (("sequence_classifier",), "B"),
    "token_logits": (("token_classifier",), "BT"),
    "start_logits": (("span",), "BT"),
    "end_logits": (("span",), "BT"),
    "mlm_logits": (("mlm",), "BT"),
}
_AXES = {"sequence_output": "BT", "hidden_states": "LBT", "attentions": "LBNTS"}
_AXES |= {name: axes for name, (_, axes) in _HEADS.items()}


def _apply(module: nn.Module, params: Params, *inputs: Any, **options: Any) -> Any:
    return module.apply({"params": params}, *inputs, **options)


def outputs(params: Params, batch: Batch, *, config: ModelConfig, wanted: tuple[str, ...]) -> dict[str, Array]:
    """The wanted outputs, float32; what nobody wants is not computed (XLA drops it). Compiled.

    Args:
      params: ``{"encoder": ..., "head": ...}``, as trained or `by_layer`; the head holds any parts of
        bert/model/heads.py.
      batch: one example a row, or several where ``cls_positions`` [B, E] says where they begin (what is given per
        example is then [B, E, ...]); logits of masked words are at ``masked_positions`` where given, else everywhere.
      wanted: of ``sequence_output`` [B, T, D], ``cls`` [B, D] (at `heads.read_positions`), ``hidden_states``
        [L + 1, B, T, D] with ``attentions`` [L, B, N, T, S], and those of `head_outputs`.
    """
    return compiled_outputs(config.dtype)(params, batch, config=config, wanted=wanted)


@functools.cache
def compiled_outputs(dtype: str) -> Callable[..., dict[str, Array]]:
    """What compiles and runs `traced_outputs` for a configuration of that dtype."""
    options = matmul.inference_options(dtype)
    return jax.jit(traced_outputs, static_argnames=("config", "wanted"), compiler_options=options)


def traced_outputs(params: Params, batch: Batch, *, config: ModelConfig, wanted: tuple[str, ...]) -> dict[str, Array]:
    """As `outputs`, as part of a program that somebody else compiles."""
    first_BE, masked_BP = batch.get("cls_positions"), batch.get("masked_positions")
    architectures.check_packing(config, first_BE is not None and first_BE.shape[1] > 1)
    if absent := [name for name in architectures.inputs_of(config) if name not in batch]:
        raise InputError(f"a {config.model_type!r} encoder reads {absent[0]}, not token ids alone; use predict")
    with jax.default_matmul_precision("highest"):
        encoder = functools.partial(_apply, architectures.build(config), params["encoder"], batch)
        places_BE = heads.read_positions(config, batch)
        results: dict[str, Any] = {}
        if "hidden_states" not in wanted and not _reads_all(wanted, masked_BP):
            # Nothing else is read of the last block.
            places_BR = places_BE if masked_BP is None else jnp.concatenate([places_BE, masked_BP], axis=1)
            hidden_BTD = encoder(positions_BP=places_BR)
            first_BED, masked_BPD = jnp.split(hidden_BTD, [places_BE.shape[1]], axis=1)
        else:
            if "hidden_states" in wanted:
                check_looking_inside(config)
                states_LBTD, results["attentions"] = encoder(method="states")
                results["hidden_states"], hidden_BTD = states_LBTD, states_LBTD[-1]
            else:
                hidden_BTD = encoder()
            results["sequence_output"] = hidden_BTD
            first_BED = pick(hidden_BTD, places_BE)
            masked_BPD = hidden_BTD if masked_BP is None else pick(hidden_BTD, masked_BP)
        results["cls"] = example_BD = first_BED[:, 0] if first_BE is None else first_BED
        if hasattr(architectures.build(config), "summary"):
            summary_BED = encoder(method="summary")
            example_BD = summary_BED[:, 0] if first_BE is None else summary_BED
        if heads.reads_blanks(config):
            masked_BPD = encoder(positions_BP=masked_BP, method="blank")
        results |= _head_outputs(params, config, wanted, hidden_BTD, example_BD, masked_BPD)
        return {name: results[name].astype(jnp.float32) for name in wanted}


def _reads_all(wanted: Collection[str], masked_BP: Array | None) -> bool:
    """Whether any of these outputs is made of the hidden states at all positions."""
    words = {"mlm_logits"} if masked_BP is None else set()
    return bool({"sequence_output", "token_logits", "start_logits", "end_logits", *words} & set(wanted))


def check_looking_inside(config: ModelConfig, *, steps: bool = False) -> None:
    """Raises InputError where an encoder does not show its layers, or (``steps``) what its blocks compute."""
    encoder = architectures.build(config)
    if not hasattr(encoder, "states") or (steps and not hasattr(encoder.block_class, "steps")):
        raise InputError(
            f"a {config.model_type!r} encoder shows no hidden states or attention of its layers; leave them out"
        )


def head_outputs(parts: Collection[str]) -> tuple[str, ...]:
    """Names of the outputs that a head of these parts gives, in one order.

    ``pooled_output`` [B, D] (pooler), ``nsp_logits`` [B, 2] (pooler and next_sentence), ``sequence_logits`` [B, C]
    (sequence_classifier), ``token_logits`` [B, T, C] (token_classifier), ``start_logits`` and
    ``end_logits`` [B, T] (span), ``mlm_logits`` [B, P, V] (mlm).
    """
    return tuple(name for name, (needed, _) in _HEADS.items() if set(needed) <= set(parts))


def _head_outputs(
    params: Params,
    config: ModelConfig,
    wanted: Collection[str],
    hidden_BTD: Array,
    example_BD: Array,
    masked_BPD: Array,
) -> dict[str, Array]:
    head: Params = params.get("head", {})

    def run(name: str, *inputs: Array) -> Any:
        classes = head[name]["kernel"].shape[-1] if "kernel" in head[name] else 2
        return _apply(heads.part(name, config, classes), head[name], *inputs)

    def token_table() -> Array:
        return heads.lent_table(_apply(architectures.build(config), params["encoder"], method="token_table"))

    def pooled() -> Array:
        return heads.pooled(functools.partial(run, "pooler"), example_BD)

    compute: dict[str, Callable[[], Array]] = {
        "pooled_output": pooled,
        "nsp_logits": lambda: run("next_sentence", pooled()),
        "sequence_logits": lambda: run("sequence_classifier", pooled() if "pooler" in head else example_BD),
        "token_logits": lambda: run("token_classifier", hidden_BTD),
        "start_logits": lambda: heads.start_and_end(run("span", hidden_BTD))["start_logits"],
        "end_logits": lambda: heads.start_and_end(run("span", hidden_BTD))["end_logits"],
        "mlm_logits": lambda: run("mlm", masked_BPD, token_table()),
    }
    return {name: compute[name]() for name in head_outputs(head) if name in wanted}


@functools.partial(jax.jit, static_argnames=("config",))
def attention(params: Params, batch: Batch, layer: Array, *, config: ModelConfig) -> tuple[Array, Array]:
    """Scores before the softmax and weights after it, float32 [B, N, T, S], of one layer."""
    check_looking_inside(config)
    with jax.default_matmul_precision("highest"):
        scores_BNTS, weights_BNTS = _apply(
            architectures.build(config), params["encoder"], batch, layer, method="attention"
        )
        return scores_BNTS, weights_BNTS


@functools.partial(jax.jit, static_argnames=("config",))
def attention_steps(params: Params, batch: Batch, layers_K: Array, *, config: ModelConfig) -> dict[str, Array]:
    """What the blocks of these layers compute on their way, float32 [K, ...]; see `blocks.Block.steps`."""
    check_looking_inside(config, steps=True)
    with jax.default_matmul_precision("highest"):
        steps = _apply(architectures.build(config), params["encoder"], batch, layers_K, method="steps")
        return {name: value.astype(jnp.float32) for name, value in steps.items()}


def without_padding(name: str, value: Array, rows: int, positions: int) -> np.ndarray:
    """The output of that name as a NumPy array, its rows and positions cut to what was asked for."""
    sizes = {"B": rows, "T": positions, "S": positions}
    return np.asarray(value)[tuple(slice(sizes.get(axis)) for axis in _AXES[name])]
