"""The table of names: complete against the model itself, the same in both directions, right way round."""

import jax
import jax.numpy as jnp
import pytest

from bert.architectures.bert import BertConfig
from bert.interop import names, parameters
from bert.interop.names.bert import GOOGLE, HUGGING_FACE
from bert.model.heads import Model, PretrainingHead, SequenceHead, SpanHead, TokenHead

# No two sizes alike, so that a wrong axis cannot fit by accident.
CONFIG = BertConfig(
    vocab_size=23, hidden_size=6, num_layers=3, num_heads=2, intermediate_size=10, max_position_embeddings=17,
    type_vocab_size=4,
)  # fmt: skip


CLASSES = 5


def model_shapes() -> dict[str, tuple[int, ...]]:
    """Path -> shape of every parameter that the model and its heads make."""
    ids = jnp.zeros((1, 4), jnp.int32)
    keys = ("token_ids", "type_ids", "position_ids", "example_ids", "masked_positions", "cls_positions")
    tree: dict = {"head": {}}
    for head in (PretrainingHead(CONFIG), SequenceHead(CONFIG, CLASSES), TokenHead(CONFIG, CLASSES), SpanHead(CONFIG)):
        made = jax.eval_shape(Model(CONFIG, head).init, jax.random.key(0), dict.fromkeys(keys, ids))["params"]
        tree = {"encoder": made["encoder"], "head": {**tree["head"], **made["head"]}}
    return {path: leaf.shape for path, leaf in parameters.flatten(tree)}


def test_the_table_holds_every_parameter_of_the_model():
    """Paths and shapes are the model's own, none left out and none invented."""
    for table in names.tables(CONFIG):
        sizes, weights = table.axis_sizes(CONFIG, CLASSES), table.weights(table.parts)
        assert {w.path: (CONFIG.num_layers,) * w.by_layer + w.shape(sizes) for w in weights} == model_shapes()


def test_the_names_are_those_of_a_file_that_transformers_wrote(tiny_tensors):
    weights = HUGGING_FACE.weights(("encoder", "pooler", "mlm", "next_sentence"))
    assert {name for weight in weights for name in weight.names(2)} == set(tiny_tensors)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("module.bert.embeddings.LayerNorm.gamma", "bert.embeddings.LayerNorm.weight"),
        ("model.bert.pooler.dense.bias", "bert.pooler.dense.bias"),
        ("module.model.encoder.layer.0.output.LayerNorm.beta", "bert.encoder.layer.0.output.LayerNorm.bias"),
        ("_orig_mod.embeddings.word_embeddings.weight", "bert.embeddings.word_embeddings.weight"),
        ("cls.predictions.transform.LayerNorm.scale", "cls.predictions.transform.LayerNorm.weight"),
        ("bert.encoder.layer.0.output.dense.gamma", "bert.encoder.layer.0.output.dense.gamma"),
        ("bert.encoder.layer.0.output.MyLayerNorm.gamma", "bert.encoder.layer.0.output.MyLayerNorm.gamma"),
        ("classifier.weight", "classifier.weight"),
    ],
)
def test_spellings_of_one_name(name, wanted):
    """Wrappers fall off, "bert." is added, gamma and beta are renamed inside a LayerNorm and nowhere else."""
    assert HUGGING_FACE.canonical(name) == wanted


def test_parts_are_found_by_their_weights(tiny_tensors):
    assert set(HUGGING_FACE.parts_present(tiny_tensors, None)) == {"encoder", "pooler", "mlm", "next_sentence"}
    only = [name for name in tiny_tensors if name.startswith(("bert.encoder", "bert.embeddings", "cls.predictions"))]
    assert HUGGING_FACE.parts_present(only, None) == ("encoder", "mlm")


def test_a_part_comes_with_what_it_reads(tiny_tensors):
    """A classifier of sequences or a next-sentence head reads the pooler's output: a file without it lacks it."""
    pairs = [name for name in tiny_tensors if not name.startswith(("bert.pooler", "cls.predictions"))]
    assert HUGGING_FACE.parts_present(pairs, None) == ("encoder", "pooler", "next_sentence")
    for kind, parts in (("sequence_classifier", ("pooler", "sequence_classifier")), ("token_classifier", None)):
        parts = parts or (kind,)
        assert HUGGING_FACE.parts_present(["classifier.bias"], kind) == ("encoder", *parts)
    assert HUGGING_FACE.parts_present(["classifier.bias"], None) == ("encoder",)


@pytest.mark.parametrize(
    ("name", "table", "layer"),
    [
        ("bert.encoder.layer.11.output.dense.bias", HUGGING_FACE, 11),
        ("bert/encoder/layer_11/output/dense/bias/adam_m", GOOGLE, 11),
        ("bert.encoder.layer.1x.output.dense.bias", HUGGING_FACE, None),
        ("bert.encoder.layer.9999999999.output.dense.bias", HUGGING_FACE, None),
        ("bert.encoder.layer", HUGGING_FACE, None),
        ("bert/encoder/layer_1/output", HUGGING_FACE, None),
        ("x.bert.encoder.layer.1.output", HUGGING_FACE, None),
    ],
)
def test_the_layer_of_a_tensor(name, table, layer):
    assert table.layer_of(name) == layer
