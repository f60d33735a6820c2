"""Writes a model with its weights as one StableHLO file, which runs with JAX and flatbuffers, without this library.

The file is what `jax.export` serialises: a function of token_ids, type_ids and mask (0: padding), int32 [b, t] with
any b and t (t at most the model's positions), that returns a dict of float32 arrays, named as in bert/model/forward.py.
It is lowered for every platform at once. onnx.py writes for runtimes without JAX.

Source: JAX documentation, "Exporting and serializing staged-out computations" and "Shape polymorphism".
"""

import contextlib
import functools
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, export

from bert import architectures
from bert.architectures import ModelConfig
from bert.errors import InputError
from bert.interop.parameters import check_size
from bert.model import forward
from bert.types import Params


def write(
    path: pathlib.Path, config: ModelConfig, params: Params, platforms: Sequence[str] = ("cpu", "cuda", "tpu")
) -> None:
    """Writes a model, float32 arrays (NumPy or JAX), to the file ``path``, with the outputs that its heads allow.

    Takes several times the weights' size in memory while it runs (docs/weights.md has figures). A program that loads
    the file compiles it at the first call of each shape [b, t], and holds a copy of the weights for each. The file can
    run on the ``platforms``, of "cpu", "cuda", "rocm", "tpu". InputError where the weights are too large, and for an
    encoder-decoder.
    """
    check_size(path, params, "a StableHLO file")
    if architectures.is_encoder_decoder(config):
        what = f"no StableHLO program for model_type {config.model_type!r}, whose decoder needs a search"
        raise InputError(f"{path}: {what}; export huggingface")
    # float32 whatever the training ran in. A scan has one block to compile wherever the file is loaded; unrolled, that
    # takes longer and more memory, for calls that are hardly faster.
    config = architectures.with_settings(config, {"dtype": "float32", "layer_loop": "scan", "remat": False})
    wanted = ("sequence_output", *forward.head_outputs(params.get("head", {})))

    # A function of its own, so that a parameter is one constant of the file even if it is used twice.
    outputs = jax.jit(functools.partial(forward.traced_outputs, config=config, wanted=wanted))

    def run(token_ids: Array, type_ids: Array, mask: Array) -> Any:
        batch = {
            "token_ids": token_ids,
            "type_ids": type_ids,
            "position_ids": jnp.broadcast_to(jnp.arange(token_ids.shape[1], dtype=jnp.int32), token_ids.shape),
            "example_ids": (mask != 0).astype(jnp.int32),
        }
        return outputs(params, batch)

    ids_BT, constraints = np.zeros((1, 1), np.int32), [f"t <= {config.max_length}"]
    inputs = export.symbolic_args_specs([ids_BT] * 3, "b, t", constraints=constraints)
    with _jax_settings():
        exported = export.export(jax.jit(run), platforms=list(platforms))(*inputs)
    path.write_bytes(exported.serialize())


@contextlib.contextmanager
def _jax_settings() -> Iterator[None]:
    """Within it, JAX records no source lines and does not warn of 2 GB of constants.

    So the file does not show where its writer was installed, and is the same whoever calls.
    """
    config: Any = jax.config
    settings = {"jax_traceback_in_locations_limit": 0, "jax_captured_constants_warn_bytes": -1}
    before = {name: getattr(config, name) for name in settings}
    try:
        for name, value in settings.items():
            config.update(name, value)
        yield
    finally:
        for name, value in before.items():
            config.update(name, value)
