"""A model as one file of StableHLO, weights included, for any process that has JAX and flatbuffers: bert is not needed.

The file is what `jax.export` serialises: one function of token_ids, type_ids and mask (0: padding), int32 [b, t] each
with any b and t (t at most the model's positions), that returns a dict of float32 arrays, named as in
bert/model/forward.py. It is lowered for every platform at once.
Not here: the arithmetic (bert/model/forward.py), formats for runtimes without JAX (onnx.py).

Source: JAX documentation, "Exporting and serializing staged-out computations" and "Shape polymorphism".
"""

import contextlib
import dataclasses
import functools
import pathlib
from collections.abc import Iterator, Sequence

import jax
import jax.numpy as jnp
from jax import Array, export

from bert.architectures.bert import BertConfig
from bert.interop.parameters import check_size
from bert.model import forward
from bert.types import Params


def write(
    path: pathlib.Path, config: BertConfig, params: Params, platforms: Sequence[str] = ("cpu", "cuda", "tpu")
) -> None:
    """Writes the model to the file ``path``; InputError, and no file, where the weights are too large.

    Takes several times the weights' size in memory while it runs (docs/weights.md has figures). Whoever loads the file
    compiles it at the first call of each shape [b, t], and holds a copy of the weights for each.

    Args:
      params: float32 arrays (NumPy or JAX); the outputs in the file are those that their heads allow.
      platforms: where the file can run, of "cpu", "cuda", "rocm", "tpu".
    """
    check_size(path, params, "a StableHLO file")
    # float32 whatever the training ran in. A scan has one block to compile wherever the file is loaded; unrolled, that
    # takes longer and more memory, for calls that are hardly faster.
    config = dataclasses.replace(config, dtype="float32", layer_loop="scan", remat=False)
    wanted = ("sequence_output", *forward.head_outputs(params.get("head", {})))

    # As a function of its own, so that a parameter is one constant of the file however often it is read.
    outputs = jax.jit(functools.partial(forward.traced_outputs, config=config, wanted=wanted))

    def run(token_ids: Array, type_ids: Array, mask: Array) -> dict[str, Array]:
        batch = {
            "token_ids": token_ids,
            "type_ids": type_ids,
            "position_ids": jnp.broadcast_to(jnp.arange(token_ids.shape[1], dtype=jnp.int32), token_ids.shape),
            "example_ids": (mask != 0).astype(jnp.int32),
        }
        return outputs(params, batch)

    shape = export.symbolic_shape("b, t", constraints=[f"t <= {config.max_position_embeddings}"])
    ids_BT = jax.ShapeDtypeStruct(shape, jnp.int32)
    with _settings_of_jax():
        exported = export.export(jax.jit(run), platforms=list(platforms))(ids_BT, ids_BT, ids_BT)
    path.write_bytes(exported.serialize())


@contextlib.contextmanager
def _settings_of_jax() -> Iterator[None]:
    """Within it, JAX notes no lines of source and does not warn of 2 GB of constants.

    So the file does not tell where on this machine its writer was installed, and is the same whoever calls.
    """
    within = {"jax_traceback_in_locations_limit": 0, "jax_captured_constants_warn_bytes": -1}
    before = {name: getattr(jax.config, name) for name in within}
    try:
        for name, value in within.items():
            jax.config.update(name, value)
        yield
    finally:
        for name, value in before.items():
            jax.config.update(name, value)
