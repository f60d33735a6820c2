"""Which tensor is which parameter: every spelling gives the same weights, and what is left over is told by name."""

import numpy as np
import pytest
import safetensors.numpy

from bert.errors import InputError
from bert.interop import sources
from bert.interop.hugging_face import load_model_directory
from tests.bert.interop.every_head import assert_same_params
from tests.bert.refusals import refused

TABLE = "bert.embeddings.word_embeddings.weight"
DECODER = "cls.predictions.decoder.weight"
NORM = "bert.encoder.layer.1.output.LayerNorm.weight"


def without_bert(name):
    return name.removeprefix("bert.")


NORM_SPELLINGS = {
    "gamma and beta": ("gamma", "beta"),
    "scale and bias": ("scale", "bias"),
    "weight and bias": ("weight", "bias"),
}


@pytest.mark.parametrize("spelling", NORM_SPELLINGS)
def test_layer_norms_under_each_of_their_names(tiny, tiny_tensors, write, spelling):
    weight, bias = NORM_SPELLINGS[spelling]
    renamed = {
        n.replace("LayerNorm.weight", f"LayerNorm.{weight}").replace("LayerNorm.bias", f"LayerNorm.{bias}"): tensor
        for n, tensor in tiny_tensors.items()
    }
    found = load_model_directory(write(renamed))
    assert_same_params(found.params, tiny.params)
    assert sorted(found.report.used) == sorted(renamed), "the report speaks in the file's own names"


@pytest.mark.parametrize("prefix", ["", "module.", "model.", "module.model.", None])
@pytest.mark.parametrize("buffers", [False, True])
def test_prefixes_and_buffers(tiny, tiny_tensors, write, prefix, buffers):
    """With and without "bert.", with wrappers in front, with and without buffers: the same weights, all reported."""
    spell = without_bert if prefix is None else lambda name: prefix + name
    tensors = {spell(name): tensor for name, tensor in tiny_tensors.items()}
    extra = [spell(f"bert.embeddings.{name}") for name in ("position_ids", "token_type_ids")] if buffers else []
    tensors |= {name: np.arange(64)[None] for name in extra}
    found = load_model_directory(write(tensors))
    assert_same_params(found.params, tiny.params)
    assert (len(found.report.used), sorted(found.report.ignored), found.report.missing) == (46, extra, [])


def test_a_layer_norm_that_is_absent_is_refused_by_name(tiny_tensors, write):
    tensors = {name: tensor for name, tensor in tiny_tensors.items() if name != NORM}
    with pytest.raises(InputError, match=f"missing {NORM}"):
        load_model_directory(write(tensors))


def test_gamma_outside_a_layer_norm_keeps_its_name(tiny_tensors, write):
    """A scale that another model has beside its kernel is no weight of ours: never taken for one, nor left out."""
    gamma = "bert.encoder.layer.0.output.dense.gamma"
    with refused(gamma, "among the model's weights"):
        load_model_directory(write({**tiny_tensors, gamma: np.ones(32, np.float32)}))
    kernel = gamma.replace("gamma", "weight")
    renamed = {gamma if name == kernel else name: tensor for name, tensor in tiny_tensors.items()}
    with pytest.raises(InputError, match=f"missing {kernel}"):
        load_model_directory(write(renamed, name="renamed"))


def test_the_tied_output_layer_in_all_its_forms(tiny, tiny_tensors, write):
    """Absent, an equal copy, an alias in the metadata either way round, the bias under either name or both."""
    rest = {name: tensor for name, tensor in tiny_tensors.items() if name not in (TABLE, "cls.predictions.bias")}
    table, bias = tiny_tensors[TABLE], tiny_tensors["cls.predictions.bias"]
    second = "cls.predictions.decoder.bias"
    forms = [
        ({TABLE: table, DECODER: table, "cls.predictions.bias": bias}, None),
        ({TABLE: table, "cls.predictions.bias": bias}, {"format": "pt", DECODER: TABLE}),
        ({DECODER: table, "cls.predictions.bias": bias}, {"format": "pt", TABLE: DECODER}),
        ({TABLE: table, second: bias}, None),
        ({TABLE: table, second: bias, "cls.predictions.bias": bias}, {"format": "pt"}),
    ]
    for i, (tensors, metadata) in enumerate(forms):
        found = load_model_directory(write(rest | tensors, name=f"form{i}", metadata=metadata))
        assert_same_params(found.params, tiny.params)


def test_an_output_layer_that_is_not_tied_is_refused(tiny_tensors, write):
    """A decoder matrix or a second bias with values of its own would be lost without a word."""
    other = tiny_tensors[TABLE].copy()
    other[5, 3] += 1e-3
    with pytest.raises(InputError, match=f"{DECODER} differs from {TABLE}"):
        load_model_directory(write({**tiny_tensors, DECODER: other}))
    bias = "cls.predictions.decoder.bias"
    with refused(bias, "differs from cls.predictions.bias"):
        load_model_directory(write({**tiny_tensors, bias: np.ones(128, np.float32)}, name="bias"))


def test_two_tensors_for_one_parameter(tiny, tiny_tensors, write):
    """Equal copies are one parameter; different ones are refused, both named."""
    twin = NORM.replace("weight", "gamma")
    found = load_model_directory(write({**tiny_tensors, twin: tiny_tensors[NORM]}))
    assert_same_params(found.params, tiny.params)
    with pytest.raises(InputError, match="are one parameter") as caught:
        load_model_directory(write({**tiny_tensors, twin: tiny_tensors[NORM] + 1}, name="other"))
    assert NORM in str(caught.value)
    assert twin in str(caught.value)


def test_heads_of_other_tasks_are_reported(tiny_tensors, write):
    found = load_model_directory(write({**tiny_tensors, "cls.species.weight": np.ones((2, 32), np.float32)}))
    assert list(found.report.ignored) == ["cls.species.weight"]
    assert "ignored cls.species.weight: no part of the encoder" in str(found.report)


@pytest.mark.parametrize("prefix", ["roberta", "electra", "distilbert", "question_encoder.bert_model"])
def test_weights_of_other_models_are_refused_by_their_prefix(tiny_tensors, write, prefix):
    """Nothing is taken from a model of another kind, whatever its config.json says or does not say."""
    tensors = {name.replace("bert.", f"{prefix}.", 1): tensor for name, tensor in tiny_tensors.items()}
    with refused(f"'{prefix}'", "prefix"):
        load_model_directory(write(tensors))


HEADS = {
    "tiny_seqcls": ("pooler", "sequence_classifier"),
    "tiny_regression": ("pooler", "sequence_classifier"),
    "tiny_tokcls": ("token_classifier",),
    "tiny_qa": ("span",),
}


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("told", [True, False])
def test_which_head_a_classifier_is(golden, write, name, told):
    """As config.json says; where it says nothing, a pooler makes it one of sequences."""
    tensors = safetensors.numpy.load_file(golden / name / "model.safetensors")
    found = load_model_directory(write(tensors, base=name, **({} if told else {"architectures": None})))
    assert sorted(found.parts) == sorted(("encoder", *HEADS[name]))
    guessed = not told and "sequence_classifier" in HEADS[name]
    assert ["classifier.weight is taken for a classifier of sequences" in note for note in found.report.notes] == (
        [True] if guessed else []
    )
    assert len(found.report.used) == len(tensors)
    assert (found.report.ignored, found.report.missing) == ({}, [])


def test_a_classifier_of_tokens_beside_a_pooler_can_be_told(golden, write):
    """As old versions of transformers saved it: taken for one of sequences, with the way out; then as it is."""
    tensors = safetensors.numpy.load_file(golden / "tiny_seqcls" / "model.safetensors")
    for changes in ({"architectures": None}, {"architectures": ["BertModel"]}, {"architectures": []}):
        (note,) = load_model_directory(write(tensors, f"{changes}", "tiny_seqcls", **changes)).report.notes
        assert note.endswith('write "architectures": ["BertForTokenClassification"] into config.json')
    told = load_model_directory(write(tensors, "told", "tiny_seqcls", architectures=["BertForTokenClassification"]))
    assert (set(told.parts), told.report.notes) == ({"encoder", "pooler", "token_classifier"}, [])
    del tensors["classifier.weight"]
    with pytest.raises(InputError, match=r"missing classifier\.weight"):
        load_model_directory(write(tensors, "half", "tiny_seqcls", architectures=None))


def test_a_classifier_of_sequences_needs_its_pooler(golden, write):
    tensors = safetensors.numpy.load_file(golden / "tiny_seqcls" / "model.safetensors")
    del tensors["bert.pooler.dense.weight"], tensors["bert.pooler.dense.bias"]
    with refused("missing bert.pooler.dense.weight, bert.pooler.dense.bias"):
        load_model_directory(write(tensors, base="tiny_seqcls"))


def test_a_classifier_of_choices_is_not_taken_for_one_of_sequences(golden, write):
    tensors = safetensors.numpy.load_file(golden / "tiny_regression" / "model.safetensors")
    found = load_model_directory(write(tensors, base="tiny_regression", architectures=["BertForMultipleChoice"]))
    assert found.parts == ("encoder", "pooler")
    assert sorted(found.report.ignored) == ["classifier.bias", "classifier.weight"]


def test_another_number_of_layers_is_refused(tiny_tensors, write):
    """More layers in the file than in config.json would be dropped in silence; fewer are missing."""
    with refused("layer.1.", "config.json says num_hidden_layers 1"):
        load_model_directory(write(tiny_tensors, num_hidden_layers=1))
    with refused("missing bert.encoder.layer.2.attention.self.query.weight"):
        load_model_directory(write(tiny_tensors, name="more", num_hidden_layers=3))
    later = "bert.encoder.layer.5.output.dense.bias"
    with refused(later, "config.json says num_hidden_layers 2"):
        load_model_directory(write({**tiny_tensors, later: np.zeros(32, np.float32)}, name="later"))


def test_a_part_to_be_made_new_may_be_there_in_pieces(tiny, tiny_tensors, write):
    """Of the masked-word head a tensor is absent: refused, unless it is asked for as new; the pieces are told."""
    lacks = "cls.predictions.bias"
    folder = write({f"module.{name}": tensor for name, tensor in tiny_tensors.items() if name != lacks})
    with pytest.raises(InputError, match=f"missing {lacks}"):
        sources.read(folder, fresh=("pooler",))
    found = sources.read(folder, fresh=("mlm",))
    assert set(found.parts) == {"encoder", "pooler", "mlm", "next_sentence"}
    pieces = {f"module.{name}" for name in tiny_tensors if name.startswith("cls.predictions.transform")}
    assert found.report.replaced == dict.fromkeys(pieces, "a piece of mlm, which is made new")
    assert (found.report.fresh, found.report.ignored, found.report.missing) == (["mlm"], {}, [])
    assert set(found.report.used) == {f"module.{name}" for name in tiny_tensors if name != lacks} - pieces
    old = tiny.params["head"]["mlm"]["transform"]["kernel"]
    assert not np.array_equal(found.params["head"]["mlm"]["transform"]["kernel"], old)
    assert_same_params(found.params["encoder"], tiny.params["encoder"])


def test_a_whole_part_is_kept_though_it_may_be_new(tiny, tiny_directory):
    found = sources.read(tiny_directory, fresh=("mlm", "pooler"))
    assert_same_params(found.params, tiny.params)
    assert (found.report.fresh, found.report.replaced) == ([], {})


def test_a_classifier_gets_the_new_pooler_that_it_lacks(golden, write):
    tensors = safetensors.numpy.load_file(golden / "tiny_seqcls" / "model.safetensors")
    found = sources.read(
        write({n: t for n, t in tensors.items() if "pooler" not in n}, base="tiny_seqcls"), fresh=("pooler",)
    )
    assert set(found.parts) == {"encoder", "pooler", "sequence_classifier"}
    assert found.report.fresh == ["pooler"]
    np.testing.assert_array_equal(found.params["head"]["sequence_classifier"]["bias"], tensors["classifier.bias"])


def test_a_piece_of_the_other_classifier_is_no_hindrance(golden, write):
    """A classifier of tokens without its bias, where one of sequences is made new."""
    tensors = safetensors.numpy.load_file(golden / "tiny_tokcls" / "model.safetensors")
    folder = write({n: t for n, t in tensors.items() if n != "classifier.bias"}, base="tiny_tokcls")
    found = sources.read(folder, fresh=("pooler", "sequence_classifier"), labels=("no", "yes"))
    assert set(found.parts) == {"encoder", "pooler", "sequence_classifier"}
    assert list(found.report.replaced) == ["classifier.weight"]
    assert found.labels == ("no", "yes")
