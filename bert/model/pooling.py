"""Vectors of texts: hidden states pooled over the tokens of each example, then the layers behind (dense, normalize).

All of it is computed on the device in float32, from rows with one example or with several.
Axes: as in blocks.py; E example in a row, K width of what is pooled (D for each mode), or of the vectors.

Source: sentence_transformers ``Pooling``, ``Dense`` and ``Normalize``.
"""

import functools
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jax import Array

from bert import architectures
from bert.architectures import ModelConfig
from bert.model import forward, matmul
from bert.model.blocks import ACTIVATION_FUNCTIONS, pick
from bert.model.pattern import members
from bert.model.sentence_encoder import NORMALIZE, POOLER
from bert.types import Batch, Params

_SMALLEST_NORM = 1e-12  # torch.nn.functional.normalize
_ACTIVATIONS = ACTIVATION_FUNCTIONS | {"identity": lambda x: x, "sigmoid": jax.nn.sigmoid}


def vectors(
    params: Params,
    batch: Batch,
    skipped: int | None = None,
    *,
    config: ModelConfig,
    pooling: tuple[str, ...],
    layers: tuple[str, ...] = (),
) -> Array:
    """float32 [B, E, K], the vector of each example; that of a slot without an example means nothing. Compiled.

    Args:
      params: as of `forward.outputs`, and ``dense`` as in `SentenceEncoder`.
      batch: as of `forward.outputs`; one example a row (E = 1) where it has no ``cls_positions``.
      skipped: so many tokens at the beginning of each example are not pooled; the pooler reads [CLS] all the same.
      pooling, layers: as in `SentenceEncoder`.
    """
    run = compiled_vectors(config.dtype)
    return run(params, batch, skipped, config=config, pooling=pooling, layers=layers)


@functools.cache
def compiled_vectors(dtype: str) -> Callable[..., Array]:
    """What compiles and runs `vectors` for a configuration of that dtype."""
    options = matmul.inference_options(dtype)
    return jax.jit(_vectors, static_argnames=("config", "pooling", "layers"), compiler_options=options)


def _vectors(
    params: Params,
    batch: Batch,
    skipped: Array | None,
    *,
    config: ModelConfig,
    pooling: tuple[str, ...],
    layers: tuple[str, ...],
) -> Array:
    # Of one token an example the last block computes that token alone.
    name = "pooled_output" if pooling == (POOLER,) else "sequence_output"
    if pooling == ("cls",) and skipped is None and architectures.read_at(config) == "first":
        name = "example_output"
    x = forward.traced_outputs(params, batch, config=config, wanted=(name,))[name]
    with jax.default_matmul_precision("highest"):
        x_BEK = (
            pooled(x, batch, pooling, 0 if skipped is None else skipped)
            if name == "sequence_output"
            else x.reshape(len(x), -1, x.shape[-1])
        )
        dense = iter(params["dense"])
        for layer in layers:
            x_BEK = normalized(x_BEK) if layer == NORMALIZE else _dense(x_BEK, next(dense), layer)
    return x_BEK


def pooled(hidden_BTD: Array, batch: Batch, pooling: Sequence[str], skipped: Array | int = 0) -> Array:
    """float32 [B, E, K]: the states of each example pooled by each mode, one after the other.

    cls: the first token. lasttoken: the last. max: the largest value. mean. mean_sqrt_len_tokens: the sum over the root
    of the number of tokens. weightedmean: token i of an example, from 1, weighs i.
    """
    ids_BT, position_BT = batch["example_ids"], batch["position_ids"]
    member_BET = members(batch) & (position_BT[:, None] >= skipped)
    hidden_BTD = jnp.where((ids_BT != 0)[..., None], hidden_BTD.astype(jnp.float32), 0.0)
    one_BET = member_BET.astype(jnp.float32)
    rank_BET = one_BET * (position_BT[:, None] + 1)

    def mean(weight_BET: Array, power: float = 1.0) -> Array:
        total_BE1 = jnp.maximum(weight_BET.sum(-1, keepdims=True), 1.0)
        return weight_BET @ hidden_BTD / total_BE1**power

    compute: dict[str, Callable[[], Array]] = {
        "cls": lambda: pick(hidden_BTD, member_BET.argmax(-1)),
        "max": lambda: jnp.where(member_BET[..., None], hidden_BTD[:, None], -jnp.inf).max(2),
        "mean": lambda: mean(one_BET),
        "mean_sqrt_len_tokens": lambda: mean(one_BET, 0.5),
        "weightedmean": lambda: mean(rank_BET),
        "lasttoken": lambda: pick(hidden_BTD, member_BET.shape[-1] - 1 - member_BET[..., ::-1].argmax(-1)),
    }
    return jnp.concatenate([compute[mode]() for mode in pooling], axis=-1)


def normalized(x_BEK: Array) -> Array:
    """The vectors over their lengths."""
    return x_BEK / jnp.maximum(jnp.linalg.norm(x_BEK, axis=-1, keepdims=True), _SMALLEST_NORM)


def _dense(x_BEK: Array, layer: Params, activation: str) -> Array:
    return _ACTIVATIONS[activation](matmul.dense(x_BEK, layer["kernel"], layer["bias"], "float32", "float32"))
