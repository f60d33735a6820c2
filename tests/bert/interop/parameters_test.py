"""Arrays between our tree and named tensors: the same in both directions, right way round, faults by their path."""

import contextlib

import numpy as np
import pytest

from bert.architectures.bert import BertConfig
from bert.errors import InputError
from bert.interop import parameters
from bert.interop.load_report import LoadReport
from bert.interop.names import bert
from bert.interop.names.table import WITH_CLASSES, Weight
from tests.bert.interop import every_head
from tests.bert.refusals import refused

# No two sizes alike, so that a wrong axis cannot fit by accident.
CONFIG = BertConfig(
    vocab_size=23, hidden_size=6, num_layers=3, num_heads=2, intermediate_size=10, max_position_embeddings=17,
    type_vocab_size=4,
)  # fmt: skip


def random_params(without: str = "token_classifier") -> dict:
    """Every parameter but those of one of the two classifiers, which have one name outside."""
    return every_head.params(CONFIG, tuple(part for part in every_head.CLASSES if part != without))


@pytest.mark.parametrize("table", [bert.HUGGING_FACE, bert.GOOGLE], ids=["hugging_face", "google"])
@pytest.mark.parametrize("kept", WITH_CLASSES)
def test_out_and_in_again_is_the_same_bit_by_bit(table, kept):
    params = random_params(without=next(part for part in WITH_CLASSES if part != kept))
    tensors = dict(parameters.from_params(params, CONFIG, table))
    parts = table.parts_present(tensors, kept)
    classes = table.classes_of(tensors, parts)
    assert classes == every_head.CLASSES[kept]
    back = parameters.to_params(tensors, table, CONFIG, parts, LoadReport("file"), classes=classes)
    every_head.assert_same_params(back, params)


def test_kernels_larger_than_a_square_are_turned_whole():
    """Kernels are turned in squares; one of several, and of no whole number of them, comes out as its transpose."""
    kernel = np.random.default_rng(0).standard_normal((140, 300)).astype(np.float32)
    ours = np.empty((300, 140), np.float32)
    weight = Weight("kernel", "DF", "kernel", transposed=True)
    parameters._fill(ours, kernel, "kernel", weight, {"D": 300, "F": 140}, "file")
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


def test_a_tree_that_does_not_fit_the_table_is_refused():
    """A parameter without a name, a part that is not whole, another shape, two classifiers, one without its pooler."""
    with refused("sequence_classifier and token_classifier"):
        dict(parameters.from_params(random_params(without="none"), CONFIG))
    params = random_params()
    parameters.put(params, "head/colour/kernel", np.zeros(3))
    with refused("head/colour/kernel", "encoder, pooler"):
        dict(parameters.from_params(params, CONFIG))
    for part in ("sequence_classifier", "next_sentence"):
        params = random_params()
        params["head"] = {part: params["head"][part]}
        with refused(part, "no pooler"):
            dict(parameters.from_params(params, CONFIG))
    params = random_params()
    del params["head"]["mlm"]["norm"]["bias"]
    with refused("head/mlm/norm/bias", "missing"):
        dict(parameters.from_params(params, CONFIG))
    params = random_params()
    params["head"]["pooler"]["bias"] = np.zeros(7)
    with refused("head/pooler/bias", "(7,)", "(6,)"):
        dict(parameters.from_params(params, CONFIG))


def test_where_the_first_number_that_is_none_stands():
    """Also where every number is finite and their sum is not."""
    array = np.full((2, 3), 3e38, np.float32)
    assert parameters.first_not_finite(array) is None
    array[1, 0], array[1, 2] = np.inf, np.nan
    assert parameters.first_not_finite(array) == (1, 0)
    assert parameters.first_not_finite(np.float32(np.nan)) == ()


def test_weights_beyond_two_gigabytes_are_refused(tmp_path):
    """By their sizes alone: the large array is never touched."""
    for rows, is_large in ((2**20, True), (2**19, False)):
        params = {"head": {"span": {"kernel": np.broadcast_to(np.float32(0), (rows, 512))}}}
        with pytest.raises(InputError, match=r"x: .* 2\.1 GB") if is_large else contextlib.nullcontext():
            parameters.check_size(tmp_path / "x", params, "a file")
