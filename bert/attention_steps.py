"""Attention of one text in numbers: the weights of all heads of a layer, or each step of one head and of its block.

Axes: K layer asked for, T query position, S key position, N head, H head width, D hidden width.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from bert.architectures import ModelConfig
from bert.data.padding import bucket_length, one_example_a_row
from bert.errors import InputError
from bert.model import forward
from bert.types import Params

# The vectors of a block, in the order of computing.
VECTORS = (
    "input",
    "heads",
    "projected",
    "attention_sum",
    "attention_norm",
    "feed_forward",
    "feed_forward_sum",
    "output",
)


class Attention(NamedTuple):
    """One layer's attention on one text.

    pieces: the T tokens, [CLS] and [SEP] included. scores: float32 [N, T, T], ``q . k / sqrt(H)``, queries first.
    weights: float32 [N, T, T], their softmax over the keys (the last axis).
    """

    pieces: list[str]
    scores: np.ndarray
    weights: np.ndarray


class AttentionSteps(NamedTuple):
    """Each step of one head on one text, and the vectors between it and the next block; all arrays are float32.

    pieces: the T tokens, [CLS] and [SEP] included. q, k, v: [T, H]. scores: [T, T], ``q . k``, queries first.
    scaled: [T, T], ``scores / sqrt(H)``. weights: [T, T], their softmax over the keys. mixture: [T, H], the values
    averaged by the weights.
    vectors: name -> [T, D], in the order of computing. ``input``: of the block; ``heads``: the mixtures of all heads
    side by side; ``projected``: after the output projection; ``attention_sum``: with the input added (residual);
    ``attention_norm``: after layer norm; ``feed_forward``: its result; ``feed_forward_sum``: with ``attention_norm``
    added; ``output``: after layer norm, the input of the next block.
    """

    pieces: list[str]
    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    scores: np.ndarray
    scaled: np.ndarray
    weights: np.ndarray
    mixture: np.ndarray
    vectors: dict[str, np.ndarray]

    def norms(self) -> dict[str, np.ndarray]:
        """Name -> [T]: the Euclidean length of each token's vector, in the order of computing."""
        return {name: np.linalg.norm(vector_TD, axis=-1) for name, vector_TD in self.vectors.items()}


def of_layers(
    params: Params, config: ModelConfig, ids: Sequence[int], type_ids: Sequence[int], layers: Sequence[int]
) -> dict[str, np.ndarray]:
    """The steps of the blocks of some layers for one example, without padding.

    ``q``, ``k``, ``v``, ``mixture`` [K, N, T, H]; ``scaled``, ``weights`` [K, N, T, S]; ``allowed`` [K, 1, T, S], 1
    where a query may attend to a key; the `VECTORS` [K, T, D]. Raises InputError for a layer that is not there, and
    for an encoder that does not show its layers.
    """
    for layer in layers:
        check(config, layer)
    batch = one_example_a_row([ids], bucket_length(len(ids), config.max_length), 1, [type_ids])
    steps = forward.attention_steps(params, batch, jnp.asarray(layers, jnp.int32), config=config)
    T, arrays = len(ids), {name: np.asarray(value)[:, 0] for name, value in steps.items()}
    for name in ("scaled", "weights", "allowed"):
        arrays[name] = arrays[name][:, :, :T, :T]
    for name in ("q", "k", "v", "mixture"):
        arrays[name] = arrays[name][:, :T].swapaxes(1, 2)
    return arrays | {name: arrays[name][:, :T] for name in VECTORS}


def of_head(
    params: Params,
    config: ModelConfig,
    ids: Sequence[int],
    type_ids: Sequence[int],
    pieces: list[str],
    layer: int,
    head: int,
) -> AttentionSteps:
    """The steps of one head. Raises InputError as `of_layers` does, and for a head that is not there."""
    check(config, layer, head)
    steps = {name: value[0] for name, value in of_layers(params, config, ids, type_ids, [layer]).items()}
    q, k, v, scaled, weights, mixture = (steps[n][head] for n in ("q", "k", "v", "scaled", "weights", "mixture"))
    return AttentionSteps(pieces, q, k, v, q @ k.T, scaled, weights, mixture, {name: steps[name] for name in VECTORS})


def check(config: ModelConfig, layer: int, head: int = 0) -> None:
    """Raises InputError where the encoder does not show its layers, or has no such layer or head."""
    forward.check_looking_inside(config, steps=True)
    for name, number, count in (("layer", layer, config.num_layers), ("head", head, head_count(config))):
        if number not in range(count):
            raise InputError(f"{name} is {number}; the model has {name}s 0 to {count - 1}")


def head_count(config: ModelConfig) -> int:
    """Heads of a layer; every encoder that shows its layers has that setting."""
    return int(config.num_heads)  # type: ignore[attr-defined]
