"""Which tensor is which parameter: every spelling gives the same weights; the rest is reported or refused by name."""

import numpy as np
import pytest
import safetensors.numpy

from bert.interop import sources
from bert.interop.hugging_face import load_model_directory
from tests.bert.interop.every_head import assert_same_params
from tests.bert.refusals import refused

TABLE = "bert.embeddings.word_embeddings.weight"
DECODER, DECODER_BIAS, BIAS = (f"cls.predictions.{name}" for name in ("decoder.weight", "decoder.bias", "bias"))
NORM = "bert.encoder.layer.1.output.LayerNorm.weight"
KERNEL = "bert.encoder.layer.0.output.dense.weight"
GAMMA = "bert.encoder.layer.0.output.dense.gamma"
LATER = "bert.encoder.layer.5.output.dense.bias"
POOLER = ("bert.pooler.dense.weight", "bert.pooler.dense.bias")


def without(tensors, *names):
    return {name: tensor for name, tensor in tensors.items() if name not in names}


@pytest.mark.parametrize(("weight", "bias"), [("gamma", "beta"), ("scale", "bias"), ("weight", "bias")])
def test_layer_norms_under_each_of_their_names(tiny, tiny_tensors, write, weight, bias):
    renamed = {
        n.replace("LayerNorm.weight", f"LayerNorm.{weight}").replace("LayerNorm.bias", f"LayerNorm.{bias}"): tensor
        for n, tensor in tiny_tensors.items()
    }
    model = load_model_directory(write(renamed))
    assert_same_params(model.params, tiny.params)
    assert sorted(model.report.used) == sorted(renamed), "the report has the file's own names"


@pytest.mark.parametrize("prefix", ["", "module.", "model.", "module.model.", None])
@pytest.mark.parametrize("buffers", [False, True])
def test_prefixes_and_buffers(tiny, tiny_tensors, write, prefix, buffers):
    """With and without "bert.", with wrappers in front, with and without buffers: the same weights, all reported."""

    def spell(name):
        return name.removeprefix("bert.") if prefix is None else prefix + name

    tensors = {spell(name): tensor for name, tensor in tiny_tensors.items()}
    extra = [spell(f"bert.embeddings.{name}") for name in ("position_ids", "token_type_ids")] if buffers else []
    report = (model := load_model_directory(write(tensors | {name: np.arange(64)[None] for name in extra}))).report
    assert_same_params(model.params, tiny.params)
    assert (len(report.used), sorted(report.ignored), report.missing) == (46, extra, [])


@pytest.mark.parametrize(
    ("tensors", "metadata"),
    [
        ({TABLE: TABLE, DECODER: TABLE, BIAS: BIAS}, None),
        ({TABLE: TABLE, BIAS: BIAS}, {"format": "pt", DECODER: TABLE}),
        ({DECODER: TABLE, BIAS: BIAS}, {"format": "pt", TABLE: DECODER}),
        ({TABLE: TABLE, DECODER_BIAS: BIAS}, None),
        ({TABLE: TABLE, DECODER_BIAS: BIAS, BIAS: BIAS}, {"format": "pt"}),
    ],
)
def test_the_tied_output_layer_in_all_its_forms(tiny, tiny_tensors, write, tensors, metadata):
    """Absent, an equal copy, an alias in the metadata either way round, the bias under either name or both."""
    copies = {name: tiny_tensors[original] for name, original in tensors.items()}
    folder = write(without(tiny_tensors, TABLE, BIAS) | copies, metadata=metadata)
    assert_same_params(load_model_directory(folder).params, tiny.params)


def changed_table(tensors):
    table = tensors[TABLE].copy()
    table[5, 3] += 1e-3
    return {**tensors, DECODER: table}


TWIN = NORM.replace("weight", "gamma")
# name -> (change of the tiny model's tensors, changes of its config.json, words of the message)
REFUSED = {
    "a layer norm that is absent": (lambda t: without(t, NORM), {}, f"missing {NORM}"),
    # A scale that another model has beside its kernel is no weight of ours: neither taken for one, nor left out.
    "a gamma beside a kernel": (lambda t: {**t, GAMMA: np.ones(32, np.float32)}, {}, GAMMA, "among the model's"),
    "a gamma for a kernel": (lambda t: {**without(t, KERNEL), GAMMA: t[KERNEL]}, {}, f"missing {KERNEL}"),
    # A decoder or a second bias with values of its own would be lost silently.
    "another output layer": (changed_table, {}, f"{DECODER} differs from {TABLE}"),
    "another bias": (lambda t: {**t, DECODER_BIAS: np.ones(128, np.float32)}, {}, DECODER_BIAS, f"from {BIAS}"),
    "two tensors for a parameter": (lambda t: {**t, TWIN: t[NORM] + 1}, {}, NORM, TWIN, "one parameter"),
    # More layers in the file than in config.json would be dropped silently.
    "a layer too many": (dict, {"num_hidden_layers": 1}, "layer.1.", "config.json says num_hidden_layers 1"),
    "a layer too few": (dict, {"num_hidden_layers": 3}, "missing bert.encoder.layer.2.attention.self.query.weight"),
    "a later layer": (lambda t: {**t, LATER: np.zeros(32, np.float32)}, {}, LATER, "says num_hidden_layers 2"),
    **{
        f"weights of {prefix}": (
            lambda t, prefix=prefix: {name.replace("bert.", f"{prefix}.", 1): tensor for name, tensor in t.items()},
            {},
            f"'{prefix}'",
            "prefix",
        )
        for prefix in ("roberta", "electra", "distilbert", "question_encoder.bert_model")
    },
}


@pytest.mark.parametrize("fault", REFUSED)
def test_tensors_that_are_refused_by_name(tiny_tensors, write, fault):
    change, values, *words = REFUSED[fault]
    with refused(*words):
        load_model_directory(write(change(tiny_tensors), **values))


def test_equal_copies_of_a_tensor_are_one_parameter(tiny, tiny_tensors, write):
    assert_same_params(load_model_directory(write({**tiny_tensors, TWIN: tiny_tensors[NORM]})).params, tiny.params)


def test_heads_of_other_tasks_are_reported(tiny_tensors, write):
    report = load_model_directory(write({**tiny_tensors, "cls.species.weight": np.ones((2, 32), np.float32)})).report
    assert list(report.ignored) == ["cls.species.weight"]
    assert "ignored cls.species.weight: no part of the encoder" in str(report)


HEADS = {
    "tiny_seqcls": ("pooler", "sequence_classifier"),
    "tiny_regression": ("pooler", "sequence_classifier"),
    "tiny_tokcls": ("token_classifier",),
    "tiny_qa": ("span",),
}


@pytest.fixture
def tensors_of(golden):
    return lambda name: safetensors.numpy.load_file(golden / name / "model.safetensors")


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("named", [True, False])
def test_which_head_a_classifier_is(tensors_of, write, name, named):
    """As config.json says; where it says nothing, a pooler makes it one of sequences."""
    model = load_model_directory(write(tensors_of(name), base=name, **({} if named else {"architectures": None})))
    assert sorted(model.parts) == sorted(("encoder", *HEADS[name]))
    is_guess = not named and "sequence_classifier" in HEADS[name]
    assert [note.partition(" is")[0] for note in model.report.notes] == ["classifier.weight"] * is_guess
    assert len(model.report.used) == len(tensors_of(name))
    assert (model.report.ignored, model.report.missing) == ({}, [])


def test_a_classifier_of_tokens_beside_a_pooler_can_be_declared(tensors_of, write):
    """As old versions of transformers saved it: read as one of sequences, with the way out; then as declared."""
    tensors = tensors_of("tiny_seqcls")
    for changes in ({"architectures": None}, {"architectures": ["BertModel"]}, {"architectures": []}):
        (note,) = load_model_directory(write(tensors, f"{changes}", "tiny_seqcls", **changes)).report.notes
        assert note.endswith('write "architectures": ["BertForTokenClassification"] into config.json')
    model = load_model_directory(write(tensors, "tags", "tiny_seqcls", architectures=["BertForTokenClassification"]))
    assert (set(model.parts), model.report.notes) == ({"encoder", "pooler", "token_classifier"}, [])


def test_a_classifier_of_choices_is_not_taken_for_one_of_sequences(tensors_of, write):
    folder = write(tensors_of("tiny_regression"), base="tiny_regression", architectures=["BertForMultipleChoice"])
    model = load_model_directory(folder)
    assert model.parts == ("encoder", "pooler")
    assert sorted(model.report.ignored) == ["classifier.bias", "classifier.weight"]


@pytest.mark.parametrize(
    ("absent", "changes"), [(("classifier.weight",), {"architectures": None}), (POOLER, {})], ids=["kernel", "pooler"]
)
def test_a_classifier_is_read_with_all_that_it_needs(tensors_of, write, absent, changes):
    with refused(f"missing {', '.join(absent)}"):
        load_model_directory(write(without(tensors_of("tiny_seqcls"), *absent), base="tiny_seqcls", **changes))


def test_a_part_to_be_made_new_may_be_there_in_pieces(tiny, tiny_tensors, write):
    """Of the masked-word head a tensor is absent: refused, unless it is listed as new; the pieces are reported."""
    file = {f"module.{name}": tensor for name, tensor in without(tiny_tensors, BIAS).items()}
    folder = write(file)
    with refused(f"missing {BIAS}"):
        sources.read(folder, fresh=("pooler",))
    model = sources.read(folder, fresh=("mlm",))
    assert set(model.parts) == {"encoder", "pooler", "mlm", "next_sentence"}
    pieces = {name for name in file if name.startswith("module.cls.predictions.transform")}
    assert model.report.replaced == dict.fromkeys(pieces, "a piece of mlm, which is made new")
    assert (model.report.fresh, model.report.ignored, model.report.missing) == (["mlm"], {}, [])
    assert set(model.report.used) == set(file) - pieces
    old = tiny.params["head"]["mlm"]["transform"]["kernel"]
    assert not np.array_equal(model.params["head"]["mlm"]["transform"]["kernel"], old)
    assert_same_params(model.params["encoder"], tiny.params["encoder"])


def test_a_whole_part_is_kept_though_it_may_be_new(tiny, tiny_directory):
    model = sources.read(tiny_directory, fresh=("mlm", "pooler"))
    assert_same_params(model.params, tiny.params)
    assert (model.report.fresh, model.report.replaced) == ([], {})


def test_a_classifier_gets_the_new_pooler_that_it_lacks(tensors_of, write):
    tensors = tensors_of("tiny_seqcls")
    model = sources.read(write(without(tensors, *POOLER), base="tiny_seqcls"), fresh=("pooler",))
    assert set(model.parts) == {"encoder", "pooler", "sequence_classifier"}
    assert model.report.fresh == ["pooler"]
    np.testing.assert_array_equal(model.params["head"]["sequence_classifier"]["bias"], tensors["classifier.bias"])


def test_a_piece_of_the_other_classifier_is_no_hindrance(tensors_of, write):
    """A classifier of tokens without its bias, where one of sequences is new."""
    folder = write(without(tensors_of("tiny_tokcls"), "classifier.bias"), base="tiny_tokcls")
    model = sources.read(folder, fresh=("pooler", "sequence_classifier"), labels=("no", "yes"))
    assert set(model.parts) == {"encoder", "pooler", "sequence_classifier"}
    assert (list(model.report.replaced), model.labels) == (["classifier.weight"], ("no", "yes"))
