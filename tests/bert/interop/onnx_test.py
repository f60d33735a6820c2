"""ONNX files, run by onnxruntime: equal to the library at any shape, each weight once, loud about wrong input."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import onnx as onnx_package
import onnxruntime
import pytest

from bert.architectures.transformer import ACTIVATIONS
from bert.errors import InputError
from bert.interop import onnx
from tests.bert.interop import every_head
from tests.bert.refusals import refused


@pytest.fixture(scope="module")
def path(config, params, tmp_path_factory):
    path = tmp_path_factory.mktemp("onnx") / "model.onnx"
    onnx.write(path, config, params)
    return path


def open_session(path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # what tests provoke is raised; no need to print it
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


@pytest.fixture(scope="module")
def session(path):
    return open_session(path)


def run(session, given: dict[str, np.ndarray], parts=tuple(every_head.CLASSES)) -> dict[str, np.ndarray]:
    """The outputs of a file with a head of these parts, under our names."""
    names = {"input_ids": "token_ids", "token_type_ids": "type_ids", "attention_mask": "mask"}
    fed = {theirs: given[ours].astype(np.int64) for theirs, ours in names.items()}
    got = dict(zip([value.name for value in session.get_outputs()], session.run(None, fed), strict=True))
    theirs = onnx.output_names(parts)
    assert set(got) == set(theirs.values())
    return {name: got[theirs[name]] for name in theirs}


@pytest.mark.parametrize(("rows", "length"), every_head.SHAPES)
def test_one_session_gives_what_the_library_gives_at_any_shape(session, config, params, rows, length):
    given = every_head.inputs(config, rows, length)
    got = run(session, given)
    assert set(got) == set(every_head.OUTPUTS)
    every_head.assert_close(got, every_head.expected(config, params, given), atol=1e-5)


@pytest.mark.parametrize("changes", [{"layer_norm_eps": 0.5}, *({"hidden_act": name} for name in ACTIVATIONS)], ids=str)
def test_every_activation_and_another_epsilon(tmp_path, changes):
    config = every_head.config(num_layers=1, **changes)
    params, given = every_head.params(config, ("mlm",)), every_head.inputs(config, 2, 7)
    onnx.write(tmp_path / "model.onnx", config, params)
    got = run(open_session(tmp_path / "model.onnx"), given, ("mlm",))
    every_head.assert_close(got, every_head.expected(config, params, given), atol=1e-5)


@pytest.mark.parametrize("parts", every_head.ALONE, ids="-".join)
def test_the_outputs_follow_from_the_heads(config, tmp_path, parts):
    onnx.write(tmp_path / "model.onnx", config, every_head.params(config, parts))
    got = run(open_session(tmp_path / "model.onnx"), every_head.inputs(config, 2, 7), parts)
    assert set(got) == {"sequence_output", *every_head.ALONE[parts]}


# Parts of a head -> the outputs that the class of optimum for it reads, and transformers' names of the others.
READ_BY_OPTIMUM = [
    ((), {"sequence_output": "last_hidden_state"}),  # ORTModelForFeatureExtraction
    (("pooler",), {"sequence_output": "last_hidden_state", "pooled_output": "pooler_output"}),
    (("mlm",), {"mlm_logits": "logits"}),  # ORTModelForMaskedLM
    (("pooler", "mlm", "next_sentence"), {"mlm_logits": "logits", "nsp_logits": "seq_relationship_logits"}),
    (("pooler", "next_sentence"), {"nsp_logits": "logits"}),
    (("pooler", "sequence_classifier"), {"sequence_logits": "logits"}),  # ORTModelForSequenceClassification
    (("pooler", "sequence_classifier", "mlm"), {"sequence_logits": "logits", "mlm_logits": "mlm_logits"}),
    (("token_classifier",), {"token_logits": "logits"}),  # ORTModelForTokenClassification
    (("span",), {"start_logits": "start_logits", "end_logits": "end_logits"}),  # ORTModelForQuestionAnswering
]


@pytest.mark.parametrize(("parts", "read"), READ_BY_OPTIMUM, ids=lambda value: "-".join(value))
def test_outputs_are_called_as_optimum_reads_them(parts, read):
    names = onnx.output_names(parts)
    assert names | read == names
    assert len(set(names.values())) == len(names)


def test_parameters_on_a_device_and_no_head_at_all(config, params, tmp_path):
    onnx.write(tmp_path / "model.onnx", config, {"encoder": jax.tree.map(jnp.asarray, params["encoder"])})
    got = run(open_session(tmp_path / "model.onnx"), given := every_head.inputs(config, 2, 7), ())
    want = every_head.expected(config, params | {"head": {}}, given)
    every_head.assert_close(got, want, atol=1e-5)


def test_padding_changes_nothing_at_real_positions(session, config):
    """Other tokens under the mask leave every real position as it was; any value but 0 is real."""
    given = every_head.inputs(config, 2, 7)
    other = given | {"token_ids": np.where(given["mask"], given["token_ids"], 60), "mask": 3 * given["mask"]}
    assert (other["token_ids"] != given["token_ids"]).any()
    got, want = run(session, other), run(session, given)
    for name in every_head.OUTPUTS:
        real = given["mask"] != 0 if got[name].shape[1:2] == (7,) else slice(None)
        np.testing.assert_array_equal(got[name][real], want[name][real], err_msg=name)


def test_the_file_is_valid_and_what_other_tools_expect(path):
    """The checker infers every shape anew; names and order of inputs are those of Hugging Face's exports."""
    onnx_package.checker.check_model(path, full_check=True)
    model = onnx_package.load(path)
    assert (model.ir_version, [(it.domain, it.version) for it in model.opset_import]) == (8, [("", 17)])
    assert [it.name for it in model.graph.input] == ["input_ids", "attention_mask", "token_type_ids"]
    assert [axis.dim_param for axis in model.graph.input[0].type.tensor_type.shape.dim] == [
        "batch_size",
        "sequence_length",
    ]
    names = {node.name for node in model.graph.node}
    assert {"encoder/layer_0/attention/query", "encoder/layer_2/feed_forward_norm", "head/mlm"} <= names


def test_every_weight_is_there_once(path, params):
    """The vocabulary projection reads the token table itself."""
    stored = onnx_package.load(path).graph.initializer
    weights = sum(leaf.nbytes for leaf in jax.tree.leaves(params))
    assert 0 < sum(len(it.raw_data) for it in stored) - weights < 500  # a few numbers and shapes
    (kernel,) = (it for it in stored if it.name == "encoder/layer_1/attention/key/kernel")
    want = params["encoder"]["blocks"]["attention"]["key"]["kernel"][1]
    np.testing.assert_array_equal(onnx_package.numpy_helper.to_array(kernel), want)


def test_more_tokens_than_positions_fail(session, config):
    with pytest.raises(Exception, match=r"encoder/embeddings/token_and_position.*24 by 25"):
        run(session, every_head.inputs(config, 2, 25))


def test_a_single_position_is_refused(tmp_path):
    """One row of the table would be repeated for any length, where all other tables make the sum fail."""
    config = every_head.config(max_position_embeddings=1)
    with refused("model.onnx", "max_position_embeddings is 1"):
        onnx.write(tmp_path / "model.onnx", config, every_head.params(config, ()))
    assert list(tmp_path.iterdir()) == []


def test_a_token_beyond_the_vocabulary_fails(session, config):
    given = every_head.inputs(config, 1, 7)
    given["token_ids"][0, 3] = config.vocab_size
    with pytest.raises(Exception, match=r"encoder/embeddings/token.*idx=61"):
        run(session, given)


def test_without_the_package_one_line_says_what_to_install(config, params, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(InputError, match=r"model\.onnx.*pip install onnx"):
        onnx.write(tmp_path / "model.onnx", config, params)
    assert list(tmp_path.iterdir()) == []
