"""Losses, as sums. They are divided once, by the summed weights of the whole global batch.

A mean of means is wrong if batches have unequal weights, so nothing here divides. Unequal shapes raise ValueError,
because broadcasting would compare every pair.
Axes: B row, T position, E example in a row, C class (or vocabulary entry).
"""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
from jax import Array


def cross_entropy(logits_C: Array, labels: Array) -> Array:
    """Cross-entropy in nats of whole-number labels, float32 with the shape of ``labels``.

    A negative label is ignored: its loss and its gradient are exactly 0. One of C or more has loss NaN, so that a
    training step with it is skipped and counted; whatever reads data refuses it before.
    """
    if jnp.shape(labels) != logits_C.shape[:-1]:
        raise ValueError(f"labels {jnp.shape(labels)} must have the shape {logits_C.shape[:-1]}, without the classes")
    logits_C = logits_C.astype(jnp.float32)
    classes = logits_C.shape[-1]
    # A comparison instead of an index: no scatter in the gradient, and no clamping of a wrong label.
    hit_C = labels[..., None] == jnp.arange(classes)
    picked = jnp.where(hit_C, logits_C, 0.0).sum(-1)
    values = jnp.where(labels < classes, jax.nn.logsumexp(logits_C, axis=-1) - picked, jnp.nan)
    return jnp.where(labels >= 0, values, 0.0)


def soft_cross_entropy(logits_C: Array, target_C: Array) -> Array:
    """Cross-entropy in nats of label distributions, ``-sum_c t_c log p_c``, float32 [...].

    Each row of ``target_C``, float [..., C], sums to 1 (a hard label is a row with one 1). A class of target 0 costs
    nothing, even where its logit is -inf.
    """
    _same_shape("logits", logits_C, target_C)
    log_C = jax.nn.log_softmax(logits_C.astype(jnp.float32), axis=-1)
    return -(target_C * jnp.where(target_C != 0, log_C, 0.0)).sum(-1)


def smoothed(target_C: Array, share: float) -> Array:
    """Label distributions, float [..., C], mixed with a share of the uniform one: ``(1 - share) t + share / C``.

    Source: Szegedy et al. 2016, section 7; as in optax.smooth_labels and torch.nn.CrossEntropyLoss.
    """
    return (1 - share) * target_C + share / target_C.shape[-1] if share else target_C


def position_cross_entropy(logits_BT: Array, own_BET: Array, position_BE: Array, smoothing: float = 0.0) -> Array:
    """Cross-entropy in nats of choosing one position among an example's own, float32 [B, E].

    ``own_BET``, bool, are the positions of each example; ``position_BE``, int, is the right one among them.
    ``smoothing``: the share of `smoothed`; the classes are the example's own positions.
    """
    logits_B1T = logits_BT.astype(jnp.float32)[:, None]
    hit_BET = position_BE[..., None] == jnp.arange(logits_BT.shape[-1])
    total_BE = jax.nn.logsumexp(logits_B1T, axis=-1, where=own_BET)
    right_BE = jnp.where(hit_BET, logits_B1T, 0.0).sum(-1)
    if not smoothing:
        return total_BE - right_BE
    mean_BE = ratio(jnp.where(own_BET, logits_B1T, 0.0).sum(-1), own_BET.sum(-1))
    return total_BE - (1 - smoothing) * right_BE - smoothing * mean_BE


def sigmoid_cross_entropy(logits_C: Array, target_C: Array) -> Array:
    """Cross-entropy in nats of labels that are judged one by one, the mean over them, float32 [...].

    ``target_C``: float [..., C], 1 where the label holds (or the share of those who say so).
    """
    _same_shape("logits", logits_C, target_C)
    logits_C = logits_C.astype(jnp.float32)
    return (jax.nn.softplus(logits_C) - target_C * logits_C).mean(-1)


def squared_error(predicted_C: Array, target_C: Array) -> Array:
    """Squared difference of numbers, the mean over the last axis, float32 [...]."""
    _same_shape("predictions", predicted_C, target_C)
    return jnp.square(predicted_C.astype(jnp.float32) - target_C).mean(-1)


def weighted_sum(values: Array, weights: Array) -> Array:
    """Float32 scalar: ``sum(values * weights)``, where weight 0 hides even a NaN."""
    return jnp.where(weights > 0, values * weights, 0.0).sum()


def ratio(total: Array, count: Array) -> Array:
    """``total / count``, and 0 (with gradient 0) where nothing was counted."""
    return jnp.where(count > 0, total / jnp.where(count > 0, count, 1.0), 0.0)


def total(sums: Mapping[str, Array], counts: Mapping[str, Array]) -> Array:
    """The loss that is trained: the sum over loss names of summed values / summed weight."""
    return jnp.asarray(sum(ratio(sums[name], count) for name, count in counts.items()))


def _same_shape(what: str, one: Array, target: Array) -> None:
    if one.shape != target.shape:
        raise ValueError(f"{what} {one.shape} and targets {target.shape} must have one shape")
