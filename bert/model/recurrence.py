"""A loop over time whose kernels get their gradient behind the loop, in one product over all steps.

`jax.lax.scan` sums the gradient of a kernel step by step, which reads and writes all of it in each.
Axes: T step, B row, K width in, N width out.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import jax
import jax.numpy as jnp
from jax import Array

from bert.model import matmul


class Times(Protocol):
    """``times(name, x)``: float32 [B, N], x [B, K] times the kernel of that name, once in each step."""

    def __call__(self, name: str, x: Array, /) -> Array: ...


# (times, constants, carry, x) -> (carry, y); as that of `jax.lax.scan`, with arrays only in its arguments.
Step = Callable[[Times, Any, Any, Any], tuple[Any, Any]]


def times(kernels: Mapping[str, Array], dtype: str) -> Times:
    """Of these kernels, see `scan`."""
    operands = {name: matmul.operand(kernel, dtype) for name, kernel in kernels.items()}

    def product(name: str, x_BK: Array) -> Array:
        rows = ((0,), (0,)) if operands[name].ndim == 3 else ((), ())
        contracted = ((1,), (operands[name].ndim - 2,))
        return matmul.dot(matmul.operand(x_BK, dtype), operands[name], contracted, rows, result="float32")

    return product


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1, 2))
def scan(
    step: Step, dtype: str, reverse: bool, kernels: Mapping[str, Array], constants: Any, carry: Any, steps: Any
) -> tuple[Any, Any]:
    """(carry, ys) of `jax.lax.scan` over the leading axis of ``steps``, of a step that multiplies with kernels.

    Args:
      step: see `Step`. It closes over no array; those that all steps read are ``constants``.
      dtype: of the products' operands; their results are float32.
      reverse: from the last step to the first.
      kernels: float32 [K, N], or [B, K, N] for one of each row.
      carry: float32 arrays [B, ...].
    """
    product = times(kernels, dtype)
    return jax.lax.scan(lambda carry, x: step(product, constants, carry, x), carry, steps, reverse=reverse)


def _forward(
    step: Step, dtype: str, reverse: bool, kernels: Mapping[str, Array], constants: Any, carry: Any, steps: Any
) -> tuple[Any, Any]:
    product = times(kernels, dtype)

    def run(zeros: Mapping[str, Array], constants: Any, carry: Any, steps: Any) -> tuple[Any, Any]:
        def one(carry: Any, now: Any) -> tuple[Any, Any]:
            zeros, x = now
            read: dict[str, Array] = {}

            def noted(name: str, x_BK: Array) -> Array:
                read[name] = matmul.operand(x_BK, dtype)
                return _tapped(product(name, read[name]), zeros[name])

            carry, y = step(noted, constants, carry, x)
            return carry, (y, read)

        carry, (ys, read) = jax.lax.scan(one, carry, (zeros, steps), reverse=reverse)
        return (carry, ys), read

    count, rows = len(jax.tree.leaves(steps)[0]), len(jax.tree.leaves(carry)[0])
    zeros = {name: jnp.zeros((count, rows, kernel.shape[-1])) for name, kernel in kernels.items()}
    result, gradient, read = jax.vjp(run, zeros, constants, carry, steps, has_aux=True)
    return result, (gradient, read, kernels)


@jax.custom_vjp
def _tapped(product: Array, zero: Array) -> Array:
    """The product; the gradient of ``zero``, which nothing reads, is that of the product."""
    return product


_tapped.defvjp(lambda product, zero: (product, None), lambda _, gradient: (gradient, gradient))


def _backward(step: Step, dtype: str, reverse: bool, saved: Any, results: Any) -> tuple[Any, ...]:
    gradient, read, kernels = saved
    products, *others = gradient(results)
    summed = {
        name: _summed(read[name], matmul.operand(products[name], dtype), kernel.ndim == 3)
        for name, kernel in kernels.items()
    }
    return summed, *others


def _summed(x_TBK: Array, dy_TBN: Array, by_row: bool) -> Array:
    contracted, rows = (((0,), (0,)), ((1,), (1,))) if by_row else (((0, 1), (0, 1)), ((), ()))
    return matmul.dot(x_TBK, dy_TBN, contracted, rows, result="float32")


scan.defvjp(_forward, _backward)
