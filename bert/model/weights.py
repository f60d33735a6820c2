"""Kernels drawn by the number of their inputs, for layers without norms: recurrent cells and convolutions."""

import math

import flax.linen as nn
import jax.numpy as jnp
from jax import Array

from bert.model.initializers import truncated_normal


class Weights(nn.Module):
    """A float32 kernel [..., out], and a bias [out], zeros at first; without ``bias``, always zeros.

    The kernel's deviation is ``gain / sqrt(inputs)``; inputs are the product of all axes but the last. With gain 1,
    outputs vary as much as inputs do.
    """

    shape: tuple[int, ...]
    bias: bool = True
    gain: float = 1.0

    @nn.compact
    def __call__(self) -> tuple[Array, Array]:
        deviation = self.gain / math.sqrt(math.prod(self.shape[:-1]))
        kernel = self.param("kernel", truncated_normal(deviation), self.shape)
        if not self.bias:
            return kernel, jnp.zeros(self.shape[-1:], jnp.float32)
        return kernel, self.param("bias", nn.initializers.zeros, self.shape[-1:], jnp.float32)
