"""Kernels drawn by the number of their inputs, for layers without norms: recurrent cells and convolutions.

Source: Salimans & Kingma 2016, "Weight normalization".
"""

import math

import flax.linen as nn
import jax.numpy as jnp
from jax import Array

from bert.model.initializers import truncated_normal


class Weights(nn.Module):
    """A float32 kernel [..., out], and a bias [out], zeros at first; without ``bias``, always zeros.

    The kernel's deviation is ``gain / sqrt(inputs)``; inputs are the product of all axes but the last. With gain 1,
    outputs vary as much as inputs do. With ``weight_norm``, the kernel of each output is a direction, of which only the
    direction counts, times a ``scale`` [out], its length, which is learnt apart.
    """

    shape: tuple[int, ...]
    bias: bool = True
    gain: float = 1.0
    weight_norm: bool = False

    @nn.compact
    def __call__(self) -> tuple[Array, Array]:
        deviation = self.gain / math.sqrt(math.prod(self.shape[:-1]))
        kernel = self.param("kernel", truncated_normal(deviation), self.shape)
        if self.weight_norm:
            length = jnp.sqrt(jnp.square(kernel).sum(tuple(range(kernel.ndim - 1))))
            kernel = kernel * (self.param("scale", lambda key: length) / length)
        if not self.bias:
            return kernel, jnp.zeros(self.shape[-1:], jnp.float32)
        return kernel, self.param("bias", nn.initializers.zeros, self.shape[-1:], jnp.float32)
