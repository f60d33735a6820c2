"""The table of names: complete against the model itself, the same in both directions, right way round."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert.config import BertConfig
from bert.errors import InputError
from bert.interop import parameters, weight_names
from bert.interop.report import Report
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


def random_params(without: str = "token_classifier") -> dict:
    """Every parameter but those of one of the two classifiers, which have one name outside."""
    rng, params = np.random.default_rng(3), {}
    for path, shape in model_shapes().items():
        if not path.startswith(f"head/{without}/"):
            parameters.put(params, path, rng.standard_normal(shape).astype(np.float32))
    return params


def test_the_table_holds_every_parameter_of_the_model():
    """Paths and shapes are the model's own, none left out and none invented."""
    sizes = weight_names.axis_sizes(CONFIG, CLASSES)
    table = {
        w.path: (CONFIG.num_layers,) * w.stacked + tuple(sizes[axis] for axis in w.axes)
        for weights in weight_names.PARTS.values()
        for w in weights
    }
    assert table == model_shapes()


@pytest.mark.parametrize("format", ["hugging_face", "google"])
@pytest.mark.parametrize("kept", weight_names.WITH_CLASSES)
def test_out_and_in_again_is_the_same_bit_by_bit(format, kept):
    params = random_params(without=next(part for part in weight_names.WITH_CLASSES if part != kept))
    tensors = dict(parameters.from_params(params, CONFIG, format=format))
    parts = weight_names.parts_present(tensors, format, classifier=kept)
    back = parameters.to_params(tensors, CONFIG, parts, Report("file"), format=format, classes=CLASSES)
    want, got = dict(parameters.flatten(params)), dict(parameters.flatten(back))
    assert got.keys() == want.keys()
    for path in want:
        np.testing.assert_array_equal(got[path], want[path], err_msg=path)


def test_kernels_larger_than_a_square_are_turned_whole():
    """Kernels are turned in squares; one of several, and of no whole number of them, comes out as its transpose."""
    kernel = np.random.default_rng(0).standard_normal((140, 300)).astype(np.float32)
    ours = np.empty((300, 140), np.float32)
    parameters._fill(ours, kernel, "kernel", transposed=True, source="file")
    np.testing.assert_array_equal(ours, kernel.T)


def test_outside_a_kernel_lies_out_by_in_and_layers_are_apart():
    """Hugging Face keeps [out, in] and a tensor a layer; tables of embeddings are not transposed."""
    params = random_params()
    tensors = dict(parameters.from_params(params, CONFIG))
    up_LDF = params["encoder"]["blocks"]["feed_forward"]["up"]["kernel"]
    query_LDD = params["encoder"]["blocks"]["attention"]["query"]["kernel"]
    np.testing.assert_array_equal(tensors["bert.encoder.layer.2.intermediate.dense.weight"], up_LDF[2].T)
    np.testing.assert_array_equal(tensors["bert.encoder.layer.1.attention.self.query.weight"], query_LDD[1].T)
    np.testing.assert_array_equal(
        tensors["bert.embeddings.word_embeddings.weight"], params["encoder"]["embeddings"]["token"]["embedding"]
    )
    assert all(tensor.flags["C_CONTIGUOUS"] for tensor in tensors.values())


def test_the_names_are_those_of_a_file_that_transformers_wrote(tiny_tensors):
    names = {
        weight.hugging_face.name.format(layer=layer)
        for part, weights in weight_names.PARTS.items()
        if part in ("encoder", "pooler", "mlm", "next_sentence")
        for weight in weights
        for layer in range(2)
    }
    assert names == set(tiny_tensors)


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
    assert weight_names.canonical(name) == wanted


def test_parts_are_found_by_their_weights(tiny_tensors):
    assert set(weight_names.parts_present(tiny_tensors)) == {"encoder", "pooler", "mlm", "next_sentence"}
    only = [name for name in tiny_tensors if name.startswith(("bert.encoder", "bert.embeddings", "cls.predictions"))]
    assert weight_names.parts_present(only) == ("encoder", "mlm")


def test_a_tree_that_does_not_fit_the_table_is_refused():
    """A parameter without a name, a part that is not whole, another shape, two classifiers: each by its path."""
    with pytest.raises(InputError, match="both sequence_classifier and token_classifier"):
        dict(parameters.from_params(random_params(without="none"), CONFIG))
    params = random_params()
    parameters.put(params, "head/colour/kernel", np.zeros(3))
    with pytest.raises(InputError, match="head/colour/kernel has no name outside; known parts: encoder, pooler"):
        dict(parameters.from_params(params, CONFIG))
    params = random_params()
    del params["head"]["mlm"]["norm"]["bias"]
    with pytest.raises(InputError, match="parameter head/mlm/norm/bias is missing; mlm needs it"):
        dict(parameters.from_params(params, CONFIG))
    params = random_params()
    params["head"]["pooler"]["bias"] = np.zeros(7)
    with pytest.raises(InputError, match=r"head/pooler/bias has shape \(7,\), the config asks for \(6,\)"):
        dict(parameters.from_params(params, CONFIG))
