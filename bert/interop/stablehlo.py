"""A model as one file of StableHLO, weights included, for any process that has JAX and flatbuffers: bert is not needed.

The file is what `jax.export` serialises: one function of token_ids, type_ids and mask (0: padding), int32 [b, t] each
with any b and t (t at most the model's positions), that returns a dict of float32 arrays, named as in
bert/model/forward.py. It is lowered for every platform at once.
Not here: the arithmetic (bert/model/forward.py), formats for runtimes without JAX (onnx.py).

Source: JAX documentation, "Exporting and serializing staged-out computations" and "Shape polymorphism".
"""

import contextlib
import dataclasses
import pathlib
from collections.abc import Iterator, Sequence

import jax
import jax.numpy as jnp
from jax import export

from bert.config import BertConfig
from bert.errors import InputError
from bert.model import forward
from bert.model.forward import Params
from bert.model.layers import Array

_LARGEST = 2**31 - 2**22  # bytes of weights in a flatbuffer of 2 GiB; 4 MiB are left for the function


def write(
    path: pathlib.Path, config: BertConfig, params: Params, platforms: Sequence[str] = ("cpu", "cuda", "tpu")
) -> None:
    """Writes the model to the file ``path``; nothing is written where it raises.

    Takes up to six times the weights' size in memory while it runs. Whoever loads the file compiles it at the first
    call of each shape [b, t], and holds a copy of the weights for each.

    Args:
      params: float32 arrays (NumPy or JAX); the outputs in the file are those that their heads allow.
      platforms: where the file can run, of "cpu", "cuda", "rocm", "tpu".

    Raises:
      InputError: the weights do not fit in one file.
    """
    size = sum(leaf.nbytes for leaf in jax.tree.leaves(params))
    if size > _LARGEST:
        raise InputError(
            f"{path}: the weights take {size / 1e9:.1f} GB and a StableHLO file holds at most 2; "
            "export safetensors, or a smaller model"
        )
    # float32 whatever the training ran in. A scan has one block to compile wherever the file is loaded: base takes 9 s
    # and 2.6 GB on two CPU cores, unrolled 16 s and 3.3 GB, for calls that are 5 % faster.
    config = dataclasses.replace(config, dtype="float32", layer_loop="scan", remat=False)
    wanted = ("sequence_output", *forward.head_outputs(params.get("head", {})))

    def run(token_ids: Array, type_ids: Array, mask: Array) -> dict[str, Array]:
        batch = {
            "token_ids": token_ids,
            "type_ids": type_ids,
            "position_ids": jnp.broadcast_to(jnp.arange(token_ids.shape[1], dtype=jnp.int32), token_ids.shape),
            "example_ids": (mask != 0).astype(jnp.int32),
        }
        return forward.outputs(params, batch, config=config, wanted=wanted)

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
