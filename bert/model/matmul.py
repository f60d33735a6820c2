"""Matrix products with float32 accumulation, and their gradients. The only module with code for a single backend.

The plain form of a product is correct on every backend; on CPUs, another form can be twice as fast. Gradients are
explicit: sums stay float32, which autodiff would round to the compute dtype. On CPUs, this also keeps activations out
of the loops of the products that read them, and uses the native bfloat16 kernel.
Axes: M all leading axes as one, K in, N out; G rows and heads as one.
"""

import functools
import pathlib
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

Arrays = tuple[Array, ...]


@functools.cache
def on_cpu() -> bool:
    return jax.default_backend() == "cpu"


@functools.cache
def _native_bfloat16() -> bool:
    """Whether this CPU multiplies bfloat16. Where it does not, float32 operands are faster, with equal sums."""
    cpuinfo = pathlib.Path("/proc/cpuinfo")
    flags = cpuinfo.read_text("utf-8", "replace").partition("flags")[2].partition("\n")[0] if cpuinfo.exists() else ""
    return "avx512_bf16" in flags or "amx_bf16" in flags


def inference_options(dtype: str) -> dict[str, str] | None:
    """Compiler options of forward passes without a gradient whose products run in ``dtype``; None for none.

    On CPUs XLA lets a library (YNNPACK) run the whole feed-forward part of a small model as one piece, which takes
    longer than product after product. Training keeps what lies between them, has no such piece, and is faster with it.
    """
    options = {"xla_cpu_experimental_ynn_fusion_type": ""}
    return options if dtype == "float32" and on_cpu() and _compiler_has(*options) else None


@functools.cache
def _compiler_has(option: str) -> bool:
    """Options come and go with versions of XLA."""
    try:
        jax.jit(lambda: 0, compiler_options={option: ""}).lower().compile()
    except jax.errors.JaxRuntimeError:
        return False
    return True


def operand(x: Array, dtype: str) -> Array:
    """``x`` rounded to the compute dtype, in the dtype in which it is multiplied."""
    x = x.astype(dtype)
    return x.astype(jnp.float32) if dtype == "bfloat16" and on_cpu() and not _native_bfloat16() else x


def dot(x: Array, y: Array, contracted: tuple[Any, ...], batch: tuple[Any, ...] = ((), ()), *, result: str) -> Array:
    """`jax.lax.dot_general` with sums in float32, as ``result`` where the backend can give it, else float32."""
    # CPUs have no kernel that gives bfloat16; elsewhere the sums are float32 inside, and the result is rounded once.
    wanted = "float32" if on_cpu() else result
    return jax.lax.dot_general(x, y, (contracted, batch), preferred_element_type=wanted)


def batched_dot(x: Array, y: Array, contracted: tuple[int, int], *, result: str) -> Array:
    """Products of matrices [B, N, ., .], one for each row and head: `dot` over one axis of each, 2 or 3."""
    axes = tuple((axis,) for axis in contracted)
    if not on_cpu():  # rows and heads stay two axes, which may be split over devices
        return dot(x, y, axes, ((0, 1), (0, 1)), result=result)
    if x.dtype == jnp.bfloat16 and contracted == (2, 2):  # the native kernel sums over the last axis of the first
        return batched_dot(y.swapaxes(2, 3), x, (3, 2), result=result).swapaxes(2, 3)
    # CPUs multiply matrices that follow each other in memory.
    x_G, y_G = (z.reshape(-1, *z.shape[2:]) for z in (x, y))
    product_G = dot(x_G, y_G, tuple((axis - 1,) for axis in contracted), ((0,), (0,)), result=result)
    return product_G.reshape(*x.shape[:2], *product_G.shape[1:])


@functools.partial(jax.custom_vjp, nondiff_argnums=(3, 4))
def dense(x: Array, kernel_KN: Array, bias_N: Array, dtype: str, result: str) -> Array:
    """``x @ kernel + bias``, [..., K] -> [..., N]; x of any float dtype, the others float32, and so their gradients.

    ``dtype`` is that of the product's operands, ``result`` that of what is returned.
    """
    x_MK = x.reshape(-1, x.shape[-1])
    product_MN = dot(operand(x_MK, dtype), operand(kernel_KN, dtype), ((1,), (0,)), result=result)
    y_MN = (product_MN + bias_N.astype(product_MN.dtype)).astype(result)
    return y_MN.reshape(*x.shape[:-1], -1)


def _dense_forward(x: Array, kernel_KN: Array, bias_N: Array, dtype: str, result: str) -> tuple[Array, Arrays]:
    return dense(x, kernel_KN, bias_N, dtype, result), (x, kernel_KN)


def _dense_backward(dtype: str, result: str, saved: Arrays, dy: Array) -> Arrays:
    x, kernel_KN = saved
    dy_operand = operand(dy, dtype)
    dx = dot(dy_operand, operand(kernel_KN, dtype), ((dy.ndim - 1,), (1,)), result=x.dtype.name).astype(x.dtype)
    return dx, _weight_gradient(operand(x, dtype), dy_operand), column_sums(dy)


def column_sums(x: Array) -> Array:
    """float32 [N]: ``x`` [..., N] summed over all leading axes."""
    x_MN = x.reshape(-1, x.shape[-1]).astype(jnp.float32)
    if not on_cpu():
        return x_MN.sum(0)
    return dot(jnp.ones(len(x_MN)), x_MN, ((0,), (0,)), result="float32")  # ten times faster than a sum there


def _weight_gradient(x: Array, dy: Array) -> Array:
    """float32 [K, N]: ``x^T dy`` summed over all leading axes."""
    if x.dtype == jnp.float32:
        x, dy = x.reshape(-1, x.shape[-1]), dy.reshape(-1, dy.shape[-1])
    # With two leading axes CPUs take their native bfloat16 kernel, with one they widen both operands.
    leading = tuple(range(x.ndim - 1))
    return dot(x, dy, (leading, leading), result="float32")


dense.defvjp(_dense_forward, _dense_backward)
