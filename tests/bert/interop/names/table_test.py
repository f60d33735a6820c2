"""Tables of names with merged and stacked tensors, and the table of an architecture that has none of its own."""

import dataclasses
import types
from typing import ClassVar

import flax.linen as nn
import jax
import numpy as np
import pytest

from bert import architectures
from bert.errors import InputError
from bert.interop import names, parameters
from bert.interop.load_report import LoadReport
from bert.interop.names.table import NameTable, Weight, merged
from tests.bert.interop.every_head import assert_same_params

# No two sizes alike, so that a wrong axis cannot fit by accident. F is twice in Wi [2F, D].
CONFIG = types.SimpleNamespace(hidden_size=4, intermediate_size=5, num_layers=3)
LAYER = "layers.{layer}."
ATTENTION = [f"encoder/blocks/attention/{part}" for part in ("query", "key", "value")]
FEED_FORWARD = [f"encoder/blocks/feed_forward/{part}/kernel" for part in ("up", "gate")]
TABLE = NameTable(
    sizes={"D": "hidden_size", "F": "intermediate_size"},
    parts={
        "encoder": (
            *merged(LAYER + "attn.Wqkv.weight", [f"{p}/kernel" for p in ATTENTION], ["DD"] * 3, transposed=True),
            *merged(LAYER + "attn.Wqkv.bias", [f"{p}/bias" for p in ATTENTION], ["D"] * 3),
            *merged(LAYER + "mlp.Wi.weight", FEED_FORWARD, ["DF"] * 2, transposed=True),
            Weight("encoder/blocks/feed_forward/down/kernel", "FD", LAYER + "mlp.Wo.weight", transposed=True),
            Weight("encoder/blocks/norm/scale", "LD", "norms"),
            Weight("encoder/blocks/mixer/kernel", "LDF", "mixers", transposed=True),
            *merged("joined", ["encoder/left/kernel", "encoder/right/kernel"], ["DF", "DD"]),
        ),
        "sequence_classifier": (Weight("head/sequence_classifier/bias", "C", "scores"),),
        "token_classifier": (Weight("head/token_classifier/bias", "C", "tags"),),
    },
)


@pytest.fixture
def params() -> dict:
    rng, tree = np.random.default_rng(0), {"head": {}}
    for weight in TABLE.parts["encoder"]:
        shape = (CONFIG.num_layers,) * weight.by_layer + weight.shape(TABLE.axis_sizes(CONFIG))
        parameters.put(tree, weight.path, rng.standard_normal(shape, np.float32))
    return tree


@pytest.fixture
def tensors(params) -> dict[str, np.ndarray]:
    return dict(parameters.from_params(params, CONFIG, TABLE))


def read(tensors: dict) -> tuple[dict, LoadReport]:
    report = LoadReport("file")
    return parameters.to_params(tensors, TABLE, CONFIG, ("encoder",), report), report


def test_merged_and_stacked_tensors_are_written_and_read_back(params, tensors):
    """Queries, keys and values are rows of one tensor in this order; each name is in the report once."""
    blocks = params["encoder"]["blocks"]
    pieces = [blocks["attention"][part]["kernel"][1].T for part in ("query", "key", "value")]
    np.testing.assert_array_equal(tensors["layers.1.attn.Wqkv.weight"], np.concatenate(pieces))
    np.testing.assert_array_equal(tensors["layers.2.mlp.Wi.weight"][5:], blocks["feed_forward"]["gate"]["kernel"][2].T)
    np.testing.assert_array_equal(tensors["mixers"], blocks["mixer"]["kernel"].transpose(0, 2, 1))
    assert {name: tensor.shape for name, tensor in tensors.items() if "0" in name or "." not in name} == {
        "layers.0.attn.Wqkv.weight": (12, 4), "layers.0.attn.Wqkv.bias": (12,), "layers.0.mlp.Wi.weight": (10, 4),
        "layers.0.mlp.Wo.weight": (4, 5), "norms": (3, 4), "mixers": (3, 5, 4), "joined": (4, 9),
    }  # fmt: skip
    assert all(tensor.flags["C_CONTIGUOUS"] for tensor in tensors.values())
    back, report = read(tensors)
    assert_same_params(back, params)
    assert sorted(report.used) == sorted(tensors)


def test_a_missing_merged_tensor_is_named_once(tensors):
    del tensors["layers.1.attn.Wqkv.weight"]
    with pytest.raises(InputError) as caught:
        read(tensors)
    assert str(caught.value).count("layers.1.attn.Wqkv.weight") == 1


@pytest.mark.parametrize("name", ["layers.2.attn.Wqkv.weight", "layers.2.mlp.Wi.weight", "joined", "mixers"])
def test_a_merged_tensor_of_another_shape_is_refused(tensors, name):
    """The shape of the whole tensor is compared, not that of a piece."""
    shape, tensors[name] = tensors[name].shape, tensors[name][..., :-1, :]
    with pytest.raises(InputError) as caught:
        read(tensors)
    for words in (name, f"shape {list(tensors[name].shape)}", f"for {list(shape)}"):
        assert words in str(caught.value)


PLACES = {"layers.1.attn.Wqkv.weight": (7, 2), "layers.0.attn.Wqkv.bias": (9,), "joined": (2, 6), "mixers": (2, 4, 1)}


@pytest.mark.parametrize(("name", "place"), PLACES.items())
def test_a_value_that_is_not_finite_is_refused_at_its_place_in_the_file(tensors, name, place):
    tensors[name][place] = np.nan
    with pytest.raises(InputError, match=name) as caught:
        read(tensors)
    assert f"nan at {list(place)}" in str(caught.value)


def test_a_merged_tensor_is_written_only_when_whole(params):
    del params["encoder"]["blocks"]["attention"]["key"]["kernel"]
    with pytest.raises(InputError, match="attention/key/kernel is missing"):
        dict(parameters.from_params(params, CONFIG, TABLE))


def test_classifiers_with_names_of_their_own_are_told_apart():
    assert not TABLE.one_classifier_name
    assert TABLE.parts_present(["tags"], None) == ("encoder", "token_classifier")


@dataclasses.dataclass(frozen=True)
class BagConfig:
    model_type: ClassVar[str] = "bag"
    vocab_size: int = 11
    hidden_size: int = 4
    num_layers: int = 1
    hidden_act: str = "gelu"
    layer_norm_eps: float = 1e-12
    initializer_range: float = 0.02
    dtype: str = "float32"

    def to_json(self) -> dict:
        return {"model_type": self.model_type, **dataclasses.asdict(self)}


class Bag(nn.Module):
    """One dense layer over embeddings."""

    config: BagConfig

    @nn.compact
    def __call__(self, batch, *, train=False):
        x_BTD = nn.Embed(self.config.vocab_size, self.config.hidden_size, name="token")(batch["token_ids"])
        return nn.Dense(self.config.hidden_size, name="dense")(x_BTD) * self.param("scale", nn.initializers.ones, ())


@pytest.fixture
def bag(monkeypatch) -> BagConfig:
    monkeypatch.setitem(architectures.REGISTRY, "bag", (BagConfig, Bag))
    return BagConfig()


def test_an_architecture_without_names_is_saved_under_its_own_paths(bag):
    """Its tensors are named like its parameters, in our shapes, scalars too; another shape is refused."""
    table, ids = names.table(bag), {"token_ids": np.zeros((1, 1), np.int32)}
    params = {"encoder": Bag(bag).init(jax.random.key(0), ids)["params"]}
    params["head"] = {"token_classifier": {"kernel": np.ones((4, 3), np.float32), "bias": np.arange(3.0)}}
    tensors = dict(parameters.from_params(params, bag))
    assert {name: tensor.shape for name, tensor in tensors.items()} == {
        "encoder.token.embedding": (11, 4), "encoder.dense.kernel": (4, 4), "encoder.dense.bias": (4,),
        "encoder.scale": (),
        "head.token_classifier.kernel": (4, 3), "head.token_classifier.bias": (3,),
    }  # fmt: skip
    parts = table.parts_present(tensors, None)
    assert (parts, table.classes_of(tensors, parts)) == (("encoder", "token_classifier"), 3)
    back = parameters.to_params(tensors, table, bag, parts, LoadReport("file"), classes=3)
    assert_same_params(back, jax.tree.map(lambda leaf: np.asarray(leaf, np.float32), params))
    shapes = {path: np.shape(value) for path, value in parameters.flatten(params)}
    parameters.check_shapes(shapes, bag, "run")
    with pytest.raises(InputError, match=r"encoder/dense/bias .* \[5\]"):
        parameters.check_shapes({**shapes, "encoder/dense/bias": (5,)}, bag, "run")
    with pytest.raises(InputError, match="head/colour/bias"):
        parameters.check_shapes({**shapes, "head/colour/bias": (5,)}, bag, "run")
    with pytest.raises(InputError, match=r"encoder.scale holds nan at \[\]"):
        parameters.to_params({**tensors, "encoder.scale": np.float32(np.nan)}, table, bag, parts, LoadReport("file"))
