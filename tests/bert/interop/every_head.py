"""A small model with every head, and inputs for it: what the tests of exports write, and how they compare."""

from typing import Any

import jax
import numpy as np

from bert.architectures.bert import BertConfig
from bert.architectures.bert_encoder import BertEncoder
from bert.interop import parameters
from bert.interop.export import save_model_directory
from bert.model import forward, heads

CLASSES = {"pooler": 0, "mlm": 0, "next_sentence": 2, "sequence_classifier": 3, "token_classifier": 5, "span": 2}
OUTPUTS = (
    "sequence_output", "pooled_output", "nsp_logits", "sequence_logits", "token_logits", "start_logits", "end_logits",
    "mlm_logits",
)  # fmt: skip
SHAPES = [(rows, length) for rows in (1, 2, 5) for length in (1, 7, 24)]
# What a file holds follows from the heads. One alone shows that it needs no other.
ALONE = {
    (): (),
    ("pooler",): ("pooled_output",),
    ("pooler", "next_sentence"): ("pooled_output", "nsp_logits"),
    ("pooler", "sequence_classifier"): ("pooled_output", "sequence_logits"),
    ("next_sentence", "sequence_classifier"): ("sequence_logits",),  # without a pooler, it reads the first state
    ("token_classifier",): ("token_logits",),
    ("span",): ("start_logits", "end_logits"),
    ("mlm",): ("mlm_logits",),
}


def config(**changes: Any) -> BertConfig:
    sizes = {"hidden_size": 32, "num_layers": 3, "num_heads": 4, "intermediate_size": 48, "max_position_embeddings": 24}
    loop = {"layer_loop": "scan"}  # compiles faster
    return BertConfig(**{"vocab_size": 61, "type_vocab_size": 3, **sizes, **loop, **changes})


def params(config: BertConfig, parts: tuple[str, ...] = tuple(CLASSES)) -> dict:
    """Random parameters, float32 NumPy arrays, large enough that attention is far from uniform."""
    shape_BTD, ids_BT = (1, 2, config.hidden_size), np.zeros((1, 2), np.int32)
    batch = dict.fromkeys(("token_ids", "type_ids", "position_ids", "example_ids"), ids_BT)
    table_VD = np.zeros((config.vocab_size, config.hidden_size), np.float32)
    key, x_BTD = jax.random.key(0), np.zeros(shape_BTD, np.float32)

    def shapes() -> dict:
        head = {}
        for part in parts:
            inputs = (x_BTD, table_VD) if part == "mlm" else (x_BTD,)
            head[part] = heads.part(part, config, CLASSES[part]).init(key, *inputs)["params"]
        return {"encoder": BertEncoder(config).init(key, batch)["params"], "head": head}

    rng = np.random.default_rng(3)
    return jax.tree.map(lambda leaf: 0.3 * rng.standard_normal(leaf.shape, np.float32), jax.eval_shape(shapes))


def inputs(config: BertConfig, rows: int, length: int) -> dict[str, np.ndarray]:
    """token_ids, type_ids and mask, int32 [B, T]: padding at the end of every second row, the last one all padding."""
    rng = np.random.default_rng((rows, length))
    mask_BT = np.ones((rows, length), np.int32)
    mask_BT[1::2, (length + 1) // 2 :] = 0
    if rows > 2:
        mask_BT[-1] = 0
    return {
        "token_ids": rng.integers(0, config.vocab_size, (rows, length)).astype(np.int32),
        "type_ids": rng.integers(0, config.type_vocab_size, (rows, length)).astype(np.int32),
        "mask": mask_BT,
    }


def expected(config: BertConfig, params: dict, given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What the library itself computes."""
    positions_BT = np.broadcast_to(np.arange(given["mask"].shape[1], dtype=np.int32), given["mask"].shape)
    batch = {"token_ids": given["token_ids"], "type_ids": given["type_ids"], "example_ids": given["mask"]}
    wanted = ("sequence_output", *forward.head_outputs(params["head"]))
    found = forward.outputs(params, batch | {"position_ids": positions_BT}, config=config, wanted=wanted)
    return {name: np.asarray(value) for name, value in found.items()}


def assert_close(got: dict[str, Any], want: dict[str, np.ndarray], atol: float) -> None:
    """The same names, shapes and dtypes; each array within the tolerance and finite."""
    assert sorted(got) == sorted(want)
    for name, value in want.items():
        assert (np.asarray(got[name]).dtype, np.shape(got[name])) == (np.float32, value.shape), name
        np.testing.assert_allclose(got[name], value, rtol=0, atol=atol, err_msg=name)
        assert np.isfinite(got[name]).all(), name


def assert_same_params(got: dict, want: dict) -> None:
    """The same names, and float32 arrays that are equal bit by bit."""
    found, wanted = dict(parameters.flatten(got)), dict(parameters.flatten(want))
    assert found.keys() == wanted.keys()
    for path, value in wanted.items():
        assert found[path].dtype == np.float32
        np.testing.assert_array_equal(found[path], value, err_msg=path)


def save(found, folder, **changes):
    """Exports a model that was loaded, with other parameters, tokenizer, settings or options where they are given."""
    arguments = {"params": found.params, "tokenizer": found.tokenizer, "extra": found.extra, **changes}
    return save_model_directory(folder, found.config, **arguments)
