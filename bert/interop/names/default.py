"""Tensor names of an architecture without a table: its parameter paths, with dots.

Only this library reads such files. Tensors keep their shapes; layers are stacked if the module stacks them.
"""

import functools

import jax
import numpy as np

from bert import architectures
from bert.architectures import ModelConfig
from bert.interop.names.table import HEAD_PARTS, WITH_CLASSES, NameTable, Weight


@functools.lru_cache(maxsize=8)
def table(config: ModelConfig) -> NameTable:
    """The table made from the shapes of the parameters of the encoder and of all heads; nothing is computed."""
    from bert.model import heads  # Linen is slow to import, and a BERT's table does without it

    key = jax.random.key(0)
    hidden_BTD = np.zeros((1, 1, config.hidden_size), np.float32)
    token_table_VD = np.zeros((config.vocab_size, architectures.table_width(config)), np.float32)
    ids_BT = np.zeros((1, 1), np.int32)
    batch = dict.fromkeys(("token_ids", "type_ids", "position_ids", "example_ids"), ids_BT)
    batch |= {name: np.zeros((1, 1, *shape), np.float32) for name, shape in architectures.inputs_of(config).items()}

    def part(name: str) -> tuple[Weight, ...]:
        if name == "encoder":
            shapes, prefix = jax.eval_shape(architectures.build(config).init, key, batch), "encoder"
        else:
            inputs = [hidden_BTD, token_table_VD][: 2 if name == "mlm" else 1]
            shapes, prefix = jax.eval_shape(heads.part(name, config).init, key, *inputs), f"head/{name}"
        weights = []
        for keys, leaf in jax.tree.leaves_with_path(shapes["params"]):
            path = f"{prefix}/{jax.tree_util.keystr(keys, simple=True, separator='/')}"
            axes = (*leaf.shape[:-1], "C") if name in WITH_CLASSES else leaf.shape
            weights.append(Weight(path, axes, path.replace("/", ".")))
        return tuple(weights)

    heads_of_kind = () if architectures.is_encoder_decoder(config) else HEAD_PARTS
    return NameTable(parts={name: part(name) for name in ("encoder", *heads_of_kind)}, sizes={})
