"""Attention of states to a memory by a score of each pair, of one head: dot, bilinear or additive.

The memory may be a sentence, a grid of cells, or anything else of S places: nothing here reads their order.
Axes: B row, K state of a row, S place of the memory, J width of a state, C width of the memory, A width of the keys.

Source: Bahdanau et al. 2015, appendix A.1.2 (additive); Luong et al. 2015, section 3.1 (dot, general).
"""

from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from bert.model import matmul
from bert.model.weights import Weights


class Additive(NamedTuple):
    """The parameters of a score ``vector . tanh(state kernel + bias + key)``."""

    kernel_JA: Array
    bias_A: Array
    vector_A1: Array


class ScoredAttention(nn.Module):
    """The parameters of a score: what makes the keys of a memory, once, and scores a state with each.

    ``score``: ``dot``, the product of both, of one width; ``bilinear``, state . kernel memory; ``additive``, see
    `Additive`, whose hidden layer has the width ``keys``.
    """

    score: str
    states: int  # J
    memory: int  # C
    keys: int  # A, of additive scores
    dtype: str

    def setup(self) -> None:
        if self.score == "bilinear":
            self.key = Weights((self.memory, self.states), bias=False)
        elif self.score == "additive":
            self.key, self.query = Weights((self.memory, self.keys), bias=False), Weights((self.states, self.keys))
            self.vector = Weights((self.keys, 1), bias=False)

    def of_memory(self, memory_BSC: Array) -> Array:
        """The keys, float32 [B, S, A]; A = J unless scores are additive."""
        if self.score == "dot":
            return memory_BSC.astype(jnp.float32)
        return matmul.dense(memory_BSC, *self.key(), self.dtype, "float32")

    def additive(self) -> Additive | None:
        """None: scores are the products of states and keys."""
        return Additive(*self.query(), self.vector()[0]) if self.score == "additive" else None


def weights(state_BKJ: Array, keys_BSA: Array, allowed_BKS: Array, additive: Additive | None, dtype: str) -> Array:
    """float32 [B, K, S]: how each state divides its attention over the places that it may read.

    A row sums to 1, and is 0 where ``allowed_BKS``, bool, is False; where it is so everywhere, all are 0.
    """
    score_BKS = jnp.where(allowed_BKS, _scores(state_BKJ, keys_BSA, additive, dtype), -jnp.inf)
    high_BK1 = score_BKS.max(-1, keepdims=True, initial=-3e38)  # finite where nothing is allowed, too
    share_BKS = jnp.exp(score_BKS - jax.lax.stop_gradient(high_BK1))
    return share_BKS / jnp.maximum(share_BKS.sum(-1, keepdims=True), 1e-37)


def _scores(state_BKJ: Array, keys_BSA: Array, additive: Additive | None, dtype: str) -> Array:
    if additive is None:
        operands = matmul.operand(state_BKJ, dtype), matmul.operand(keys_BSA, dtype)
        return matmul.dot(*operands, ((2,), (2,)), ((0,), (0,)), result="float32")
    query_BKA = matmul.dense(state_BKJ, additive.kernel_JA, additive.bias_A, dtype, "float32")
    # Computed again in the backward pass: the array has A numbers for each pair, in a recurrence at each step.
    return _sum_of_tanh(query_BKA, keys_BSA, additive.vector_A1[:, 0])


@jax.checkpoint
def _sum_of_tanh(query_BKA: Array, keys_BSA: Array, vector_A: Array) -> Array:
    return jnp.einsum("BKSA,A->BKS", jnp.tanh(query_BKA[:, :, None] + keys_BSA[:, None]), vector_A)


def mixed(weights_BKS: Array, memory_BSC: Array, dtype: str) -> Array:
    """float32 [B, K, C]: the means of the memory by these weights, which are the contexts."""
    operands = matmul.operand(weights_BKS, dtype), matmul.operand(memory_BSC, dtype)
    return matmul.dot(*operands, ((2,), (1,)), ((0,), (0,)), result="float32")
