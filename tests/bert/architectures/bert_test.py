"""BertConfig: what it refuses and how it says so, the released sizes, and every spelling of config.json."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import pytest

from bert.architectures.bert import BertConfig
from bert.architectures.bert_encoder import BertEncoder
from bert.architectures.transformer import SIZES
from bert.errors import InputError

TINY = {"vocab_size": 100, "hidden_size": 32, "num_layers": 2, "num_heads": 4, "intermediate_size": 64}
TINY_JSON = {"vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("vocab_size", 0, "at least 1"),
        ("hidden_size", 32.0, "whole"),
        ("num_layers", True, "whole"),
        ("num_heads", "4", "whole"),
        ("intermediate_size", -1, "at least 1"),
        ("max_position_embeddings", 0, "at least 1"),
        ("type_vocab_size", 0, "at least 1"),
        ("hidden_dropout", 1.0, "below 1"),
        ("attention_dropout", -0.1, "at least 0"),
        ("attention_dropout", float("nan"), "at least 0"),
        ("hidden_dropout", "0.1", "a number"),
        ("layer_norm_eps", None, "a number"),
        ("layer_norm_eps", 0, "above 0"),
        ("initializer_range", float("inf"), "below 3e+38"),
        ("initializer_range", 1e39, "below 3e+38"),
        ("hidden_act", "gelo", "'gelu'"),
        ("dtype", "float16", "'bfloat16'"),
        ("layer_loop", "loop", "unroll"),
        ("attention", "fuse", "'fused'"),
    ],
)
def test_refused_values(name, value, rule):
    """One line that names the setting, its value and the rule."""
    with pytest.raises(InputError) as error:
        BertConfig(**TINY | {name: value})
    assert str(error.value).startswith(f"{name} is {value!r}; ")
    assert rule in str(error.value)


@pytest.mark.parametrize(("width", "nearest"), [(770, 768), (3, 12)])
def test_a_width_that_heads_do_not_divide_names_the_nearest(width, nearest):
    with pytest.raises(InputError, match=rf"hidden_size {width} .* 12; .* {nearest}$"):
        BertConfig(**TINY | {"hidden_size": width, "num_heads": 12})


def test_unknown_size_names_the_nearest():
    with pytest.raises(InputError, match=r"size is 'bases'.* 'base'"):
        BertConfig.of_size("bases", vocab_size=100)


@pytest.mark.parametrize(
    "model",
    ["bert-tiny", "bert-mini", "bert-base-uncased", "bert-base-cased", "bert-large-uncased", "bert-large-cased"],
)
def test_sizes_are_those_of_the_released_models(shared, model):
    """of_size gives the numbers in the configuration files that came with the released weights."""
    folder = shared / "data" / "bert_vocab_config" / model
    file = next(folder.glob("*config.json"))
    released = BertConfig.from_json(json.loads(file.read_text()), source=file.name)
    assert BertConfig.of_size(model.split("-")[1], vocab_size=released.vocab_size) == released


@pytest.mark.parametrize(
    ("size", "millions"),
    [("tiny", 4.386), ("mini", 11.171), ("small", 28.764), ("medium", 41.373), ("base", 109.482), ("large", 335.142)],
)
def test_released_models_have_these_many_parameters(size, millions):
    """Encoder and pooler with the English uncased vocabulary, as the papers and model cards count them."""
    config = BertConfig.of_size(size, vocab_size=30522)
    batch = {k: jnp.zeros((1, 8), jnp.int32) for k in ("token_ids", "type_ids", "position_ids", "example_ids")}
    encoder = jax.eval_shape(BertEncoder(config).init, jax.random.key(0), batch)
    pooler = config.hidden_size**2 + config.hidden_size
    assert sum(x.size for x in jax.tree.leaves(encoder)) + pooler == pytest.approx(1e6 * millions, abs=500)


@pytest.mark.parametrize("size", SIZES)
def test_every_head_is_64_wide_and_the_feed_forward_four_times_the_hidden_width(size):
    """What the released sizes have in common."""
    config = BertConfig.of_size(size, vocab_size=30522)
    assert config.hidden_size // config.num_heads == 64
    assert config.intermediate_size == 4 * config.hidden_size


def test_of_size_takes_changes():
    config = BertConfig.of_size("mini", vocab_size=100, num_layers=3, dtype="bfloat16")
    assert (config.num_layers, config.dtype, config.hidden_size) == (3, "bfloat16", 256)


def test_from_json_of_google():
    """Google's bert_config.json has no model_type and no layer_norm_eps; some have fields of an unused pooler."""
    values = TINY_JSON | {
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.2,
        "attention_probs_dropout_prob": 0.3,
        "initializer_range": 0.01,
        "intermediate_size": 48,
        "max_position_embeddings": 128,
        "type_vocab_size": 3,
        "directionality": "bidi",
        "pooler_fc_size": 768,
        "pooler_type": "first_token_transform",
    }
    shared = {name: values[name] for name in ("initializer_range", "max_position_embeddings", "type_vocab_size")}
    rates = {"hidden_dropout": 0.2, "attention_dropout": 0.3}
    assert BertConfig.from_json(values) == BertConfig(
        **TINY | shared | rates | {"intermediate_size": 48, "layer_norm_eps": 1e-12}
    )


def test_from_json_of_transformers():
    """Keys of a task, of a tokenizer and of the library that wrote the file are left alone; null means the default."""
    values = TINY_JSON | {
        "model_type": "bert",
        "layer_norm_eps": 1e-5,
        "hidden_act": "gelu_new",
        "position_embedding_type": "absolute",
        "is_decoder": False,
        "classifier_dropout": None,
        "initializer_range": None,
        "id2label": {"0": "no", "1": "yes"},
        "pad_token_id": 0,
        "dtype": "float16",  # of the weights in the file
        "transformers_version": "5.24.0",
    }
    config = BertConfig.from_json(values)
    assert config == BertConfig(**TINY | {"intermediate_size": 128, "layer_norm_eps": 1e-5, "hidden_act": "gelu_new"})


def test_another_name_for_the_same_activation():
    """transformers' gelu_python is gelu, computed in Python; it is no tanh form, however like their names are."""
    for given, meant in (("gelu_python", "gelu"), ("gelu_python_tanh", "gelu_pytorch_tanh")):
        config = BertConfig.from_json(TINY_JSON | {"hidden_act": given})
        assert config == BertConfig.from_json(TINY_JSON | {"hidden_act": meant})
        assert config.to_json()["hidden_act"] == meant
        assert BertConfig.of_size("tiny", vocab_size=9, hidden_act=given).hidden_act == meant
    with pytest.raises(InputError, match=r"hidden_act is \['gelu'\]"):
        BertConfig.from_json(TINY_JSON | {"hidden_act": ["gelu"]})


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"vocab_size": 100, "num_hidden_layers": None}, "hidden_size, num_hidden_layers, num_attention_heads missing"),
        (TINY_JSON | {"num_attention_heads": 5}, "hidden_size 32 .* num_attention_heads 5"),
        (TINY_JSON | {"hidden_size": "32"}, "hidden_size is '32'"),
        (TINY_JSON | {"num_hidden_layers": 0}, "num_hidden_layers is 0"),
    ],
)
def test_from_json_refuses(values, words):
    """By the file's own names. Models of other kinds: config_keys_test.py."""
    with pytest.raises(InputError, match=f"^my.json: {words}"):
        BertConfig.from_json(values, source="my.json")


def test_json_round_trip():
    """Through text and back, every field of the encoder's shape and numbers survives, none at its default."""
    config = BertConfig(
        **TINY,
        max_position_embeddings=40,
        type_vocab_size=3,
        hidden_act="relu",
        layer_norm_eps=1e-6,
        hidden_dropout=0.2,
        attention_dropout=0.3,
        initializer_range=0.01,
    )
    assert BertConfig.from_json(json.loads(json.dumps(config.to_json()))) == config


def test_json_does_not_say_how_to_compute():
    """dtype, loop, recomputation and kernel belong to a run, not to a model: a loaded model has their defaults."""
    config = BertConfig(**TINY, dtype="bfloat16", layer_loop="scan", remat=True, attention="fused")
    assert not {"dtype", "layer_loop", "remat", "attention"} & set(config.to_json())
    assert BertConfig.from_json(config.to_json()) == BertConfig(**TINY)


@pytest.mark.parametrize(("how", "rate"), [("core", 0.1), ("core", 0.0), ("fused", 0.0)])
def test_what_can_be_trained(how, rate):
    BertConfig(**TINY, attention=how, attention_dropout=rate).check_training()


def test_fused_attention_is_not_trained_with_dropout_on_weights():
    """Such a configuration can be made, for inference drops nothing."""
    config = BertConfig(**TINY, attention="fused", attention_dropout=0.1)
    with pytest.raises(InputError, match=r"attention is 'fused'.* attention_dropout=0"):
        config.check_training()


def test_config_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        BertConfig(**TINY).num_layers = 3


def test_flops_agree_with_the_compiler():
    """XLA counts at most 3 % more operations for the same encoder: what is not a matrix product."""
    config = BertConfig.of_size("mini", vocab_size=100, num_layers=2, hidden_act="relu", layer_loop="unroll")
    batch = {k: jnp.zeros((1, 128), jnp.int32) for k in ("token_ids", "type_ids", "position_ids", "example_ids")}
    encoder = BertEncoder(config)
    params = jax.eval_shape(encoder.init, jax.random.key(0), batch)
    counted = jax.jit(encoder.apply).lower(params, batch).cost_analysis()["flops"]
    assert 1.0 < counted / (128 * config.matmul_flops_per_token(128)) < 1.03
