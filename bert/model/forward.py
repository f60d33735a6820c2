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
from bert.model.reading import States, of_tokens
from bert.types import Batch, Params

# Outputs of heads: the parts that they need, and the states that these read (reading.py).
_HEADS: dict[str, tuple[tuple[str, ...], str]] = {
    "pooled_output": (("pooler",), "examples"),
    "nsp_logits": (("pooler", "next_sentence"), "examples"),
    "sequence_logits": (("sequence_classifier",), "examples"),
    "token_logits": (("token_classifier",), "tokens"),
    "start_logits": (("span",), "tokens"),
    "end_logits": (("span",), "tokens"),
    "mlm_logits": (("mlm",), "words"),
}
_READ = {"sequence_output": "tokens", "example_output": "examples"} | {name: read for name, (_, read) in _HEADS.items()}
# Leading axes, for cutting off padding.
_AXES = {name: "B" if read == "examples" else "BT" for name, read in _READ.items()}
_AXES |= {"hidden_states": "LBT", "attentions": "LBNTS"}


def _apply(module: nn.Module, params: Params, *inputs: Any, **options: Any) -> Any:
    return module.apply({"params": params}, *inputs, **options)


def outputs(params: Params, batch: Batch, *, config: ModelConfig, wanted: tuple[str, ...]) -> dict[str, Array]:
    """The wanted outputs, float32; what nobody wants is not computed (XLA drops it). Compiled.

    Args:
      params: ``{"encoder": ..., "head": ...}``, as trained or `by_layer`; the head holds any parts of
        bert/model/heads.py.
      batch: one example a row, or several where ``cls_positions`` [B, E] says where they begin (what is given per
        example is then [B, E, ...]); logits of masked words are at ``masked_positions`` where given, else everywhere.
      wanted: of ``sequence_output`` [B, T, D], ``example_output`` [B, D], ``hidden_states`` [L + 1, B, T, D] with
        ``attentions`` [L, B, N, T, S], and those of `head_outputs`.
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
    reads = {_READ[name]: masked_BP if _READ[name] == "words" else None for name in wanted if name in _READ}
    with jax.default_matmul_precision("highest"):
        encoder = functools.partial(_apply, architectures.build(config), params["encoder"], batch)
        results: dict[str, Any] = {}
        if "hidden_states" in wanted:
            check_looking_inside(config)
            states_LBTD, results["attentions"] = encoder(method="states")
            results["hidden_states"] = states_LBTD
            states = of_tokens(states_LBTD[-1], batch, reads, architectures.read_at(config))
        else:
            states = encoder(reads=reads)
        if "examples" in states and first_BE is None:
            states["examples"] = states["examples"][:, 0]
        results |= {"sequence_output": states.get("tokens"), "example_output": states.get("examples")}
        results |= _head_outputs(params, config, wanted, states)
        return {name: results[name].astype(jnp.float32) for name in wanted}


def check_looking_inside(config: ModelConfig, *, steps: bool = False) -> None:
    """Raises InputError where an encoder does not show its layers, or (``steps``) what its blocks compute."""
    encoder = architectures.build(config)
    if not hasattr(encoder, "states") or (steps and not hasattr(encoder.block_class, "steps")):
        what = f"a {config.model_type!r} encoder shows no hidden states or attention of its layers"
        raise InputError(f"{what}; take a Transformer, such as a 'bert' one, or ask for other outputs")


def head_outputs(parts: Collection[str]) -> tuple[str, ...]:
    """Names of the outputs that a head of these parts gives, in one order.

    ``pooled_output`` [B, D] (pooler), ``nsp_logits`` [B, 2] (pooler and next_sentence), ``sequence_logits`` [B, C]
    (sequence_classifier), ``token_logits`` [B, T, C] (token_classifier), ``start_logits`` and
    ``end_logits`` [B, T] (span), ``mlm_logits`` [B, P, V] (mlm).
    """
    return tuple(name for name, (needed, _) in _HEADS.items() if set(needed) <= set(parts))


def _head_outputs(params: Params, config: ModelConfig, wanted: Collection[str], states: States) -> dict[str, Array]:
    head: Params = params.get("head", {})

    def run(name: str, *inputs: Array) -> Any:
        classes = head[name]["kernel"].shape[-1] if "kernel" in head[name] else 2
        return _apply(heads.part(name, config, classes), head[name], *inputs)

    def token_table() -> Array:
        return heads.lent_table(_apply(architectures.build(config), params["encoder"], method="token_table"))

    def pooled() -> Array:
        return heads.pooled(functools.partial(run, "pooler"), states["examples"])

    compute: dict[str, Callable[[], Array]] = {
        "pooled_output": pooled,
        "nsp_logits": lambda: run("next_sentence", pooled()),
        "sequence_logits": lambda: run("sequence_classifier", pooled() if "pooler" in head else states["examples"]),
        "token_logits": lambda: run("token_classifier", states["tokens"]),
        "start_logits": lambda: heads.start_and_end(run("span", states["tokens"]))["start_logits"],
        "end_logits": lambda: heads.start_and_end(run("span", states["tokens"]))["end_logits"],
        "mlm_logits": lambda: run("mlm", states["words"], token_table()),
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
