"""Arithmetic (FLOPs) that a training step needs, and the peak rate of the devices."""

import os
import time

import jax
import jax.numpy as jnp
from absl import logging

from bert import architectures
from bert.architectures import ModelConfig

# Dense bf16 peaks in FLOP/s of one device, from the vendors' data sheets, by the start of jax's device_kind.
_PEAKS = {
    **{"NVIDIA H200": 989e12, "NVIDIA H100 PCIe": 756e12, "NVIDIA H100": 989e12, "NVIDIA A100": 312e12},
    **{"NVIDIA L4": 121e12, "NVIDIA RTX A6000": 155e12, "Tesla V100": 125e12, "Tesla T4": 65e12},
    **{"TPU v4": 275e12, "TPU v5 lite": 197e12, "TPU v5e": 197e12, "TPU v5p": 459e12, "TPU v5": 459e12},
    **{"TPU v6": 918e12},
}


def training_flops_per_token(config: ModelConfig, length: int, predictions: int) -> float:
    """Arithmetic that a pretraining step needs for one token: forward, and twice that backward.

    Of a row of ``length`` tokens only the masked positions, ``predictions``, meet the vocabulary.
    """
    width = architectures.table_width(config)
    head = 2.0 * predictions / length * width * (config.hidden_size + config.vocab_size)
    return 3.0 * (config.matmul_flops_per_token(length) + head)


def bf16_peak(kind: str) -> float | None:
    """Dense bf16 FLOP/s of one device by its name, from the vendor's data sheet; None where it is not listed."""
    known = next((name for name in sorted(_PEAKS, key=len, reverse=True) if kind.startswith(name)), None)
    return _PEAKS[known] if known else None


def peak_flops(dtype: str) -> float | None:
    """FLOP/s of all devices together: measured on a CPU, from data sheets (bf16) elsewhere, None where unknown."""
    device = jax.devices()[0]
    if device.platform != "cpu":
        peak = bf16_peak(device.device_kind)
        return peak * jax.device_count() if peak else None
    # Virtual CPU devices share the same cores, so one measurement is the peak of all of them in this process.
    side, best = 2048 if (os.cpu_count() or 1) > 1 else 1024, 0.0
    x = jnp.ones((side, side), dtype)
    product = jax.jit(lambda a, b: jnp.matmul(a, b, preferred_element_type=jnp.float32))
    product(x, x).block_until_ready()
    for _ in range(3):
        start = time.perf_counter()
        product(x, x).block_until_ready()
        best = max(best, 2.0 * side**3 / (time.perf_counter() - start))
    logging.vlog(1, "matrix peak measured: %.0f GFLOP/s", best / 1e9)
    return float(best * jax.process_count())  # all measure now, so those of one host share its cores here, too
