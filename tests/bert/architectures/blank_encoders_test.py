"""Encoders that predict a word from both sides: no leak of the word, reach, symmetry, packing and padding."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert import architectures
from bert.architectures.convolution import DilatedConfig
from bert.architectures.recurrent import RecurrentConfig
from bert.errors import InputError
from bert.model.heads import Model, PretrainingHead

V, T = 23, 9
SMALL = {"embedding_size": 6, "hidden_size": 8, "initializer_range": 0.5}
CONFIGS = [
    RecurrentConfig(V, **SMALL, num_layers=1),
    RecurrentConfig(V, **SMALL, num_layers=3, cell="lstm", mix="mlp", mix_size=16),
    DilatedConfig(V, **SMALL, num_layers=3, kernel_size=2),
    DilatedConfig(V, **SMALL, num_layers=1, kernel_size=3),
]
every = pytest.mark.parametrize("config", CONFIGS, ids=lambda config: f"{config.model_type}-{config.num_layers}")


def batch_of(*examples, width=T):
    """A row with these examples, one after the other; all its positions are predicted."""
    ids = np.concatenate([np.full(len(words), number) for number, words in enumerate(examples, 1)])
    places = np.concatenate([np.arange(len(words)) for words in examples])
    pad = (0, width - len(ids))
    words = np.pad(np.concatenate(examples), pad)[None].astype(np.int32)
    batch = {"token_ids": words, "example_ids": np.pad(ids, pad)[None], "position_ids": np.pad(places, pad)[None]}
    batch |= {"masked_positions": np.arange(width)[None], "masked_ids": words}
    return {name: np.asarray(array, np.int32) for name, array in batch.items()}


@functools.cache
def model_and_params(config):
    model = Model(config, PretrainingHead(config, with_next_sentence=False))
    return model, jax.jit(model.init)(jax.random.key(0), batch_of(np.arange(5)))["params"]


@functools.cache
def compiled(config):
    model, _ = model_and_params(config)
    return jax.jit(lambda params, batch: model.apply({"params": params}, batch)["mlm_logits"])


def logits(config, *examples, width=T, params=None):
    model_params = model_and_params(config)[1] if params is None else params
    return np.asarray(compiled(config)(model_params, batch_of(*examples, width=width)))[0]


def reach(config):
    """How many words on either side a word is predicted from."""
    return config.receptive_field if isinstance(config, DilatedConfig) else T


@every
def test_a_word_has_no_influence_on_its_own_prediction_and_all_others_within_reach_have(config):
    """By the Jacobian of the states by the embeddings: nine different words, so a word's row is its input alone."""
    encoder, batch = architectures.build(config), batch_of(np.arange(T))
    encoder_params = model_and_params(config)[1]["encoder"]

    def states(table):
        params = {**encoder_params, "token": {"embedding": table}}
        return encoder.apply({"params": params}, batch, reads={"words": None})["words"][0]

    jacobian_TDVI = jax.jit(jax.jacobian(states))(encoder_params["token"]["embedding"])
    influence_TS = np.abs(jacobian_TDVI).sum((1, 3))[:, :T]
    distance_TS = np.abs(np.arange(T)[:, None] - np.arange(T))
    np.testing.assert_array_equal(influence_TS > 0, (distance_TS > 0) & (distance_TS <= reach(config)))


@every
def test_another_word_changes_all_predictions_but_its_own_bit_for_bit(config):
    words = np.arange(T)
    before, place = logits(config, words), 4
    words[place] = 17
    differs_T = (logits(config, words) != before).any(-1)
    assert not differs_T[place]
    near_T = np.abs(np.arange(T) - place) <= reach(config)
    assert differs_T.tolist() == (near_T & (np.arange(T) != place)).tolist()


def exchanged(config, params):
    """The parameters with both sides exchanged, also in the map that joins them."""
    names = {"forward": "backward", "backward": "forward", "left": "right", "right": "left"}
    names |= {"enter_left": "enter_right", "enter_right": "enter_left"}

    def other(name):
        stem, _, number = name.rpartition("_")
        return names[name] if name in names else f"{names[stem]}_{number}" if stem in names else name

    head = dict(params["head"]["mlm"])
    first = "hidden" if "hidden" in head else "mix"
    head[first] = {**head[first], "kernel": jnp.roll(head[first]["kernel"], config.hidden_size // 2, axis=0)}
    return {"encoder": {other(name): value for name, value in params["encoder"].items()}, "head": {"mlm": head}}


@pytest.mark.parametrize("config", CONFIGS[:2], ids=lambda config: f"{config.model_type}-{config.num_layers}")
def test_words_tokens_and_examples_are_read_of_one_run(config):
    """A loop over time for each layer and side, whatever is read of the last; and each is as if read alone."""
    encoder, batch = architectures.build(config), batch_of(np.arange(4), np.arange(3))
    params = {"params": model_and_params(config)[1]["encoder"]}
    reads = {"words": np.array([[2, 5, 2]]), "tokens": None, "examples": None}
    run = jax.jit(lambda params, names: encoder.apply(params, batch, reads={name: reads[name] for name in names}),
                  static_argnums=1)  # fmt: skip
    names = tuple(reads)
    assert run.lower(params, names).as_text().count("stablehlo.while") == 2 * config.num_layers
    together = run(params, names)
    for name in names:
        np.testing.assert_allclose(together[name], run(params, (name,))[name], atol=1e-6, err_msg=name)


@every
def test_a_reversed_sentence_with_exchanged_sides_has_reversed_predictions(config):
    words = np.random.default_rng(0).integers(0, V, T)
    there = logits(config, words)
    back = logits(config, words[::-1], params=exchanged(config, model_and_params(config)[1]))
    if isinstance(config, DilatedConfig):  # the taps of the two sides are in opposite orders
        params = exchanged(config, model_and_params(config)[1])
        flip = lambda path, x: x[::-1] if x.ndim == 3 else x  # noqa: E731
        back = logits(config, words[::-1], params=jax.tree_util.tree_map_with_path(flip, params))
    np.testing.assert_allclose(there, back[::-1], atol=1e-5)


@every
def test_examples_in_one_row_are_predicted_as_each_alone_whatever_the_padding(config):
    one, two, three = np.array([3, 1, 4, 1]), np.array([5]), np.array([9, 2, 6])
    packed = logits(config, one, two, three, width=12)
    alone = [logits(config, words, width=width)[: len(words)] for words, width in ((one, 4), (two, 12), (three, 9))]
    np.testing.assert_allclose(packed[:8], np.concatenate(alone), atol=1e-5)


@pytest.mark.slow
@every
def test_the_first_loss_is_that_of_guessing(config):
    """ln V within 2 %, at the default deviation of the embeddings and a real size."""
    config = dataclasses.replace(config, vocab_size=2000, embedding_size=128, hidden_size=128, initializer_range=0.1)
    model = Model(config, PretrainingHead(config, with_next_sentence=False))
    batch = batch_of(np.random.default_rng(0).integers(0, 2000, 32), width=32)
    outputs = jax.jit(lambda key: model.apply(model.init(key, batch), batch))(jax.random.key(1))
    assert outputs["mlm_cross_entropy"].mean() == pytest.approx(np.log(2000), rel=0.02)


def test_joint_stacks_read_the_word_itself_and_are_refused_for_blanks():
    """So blanks would be a lie: the second layer's state has read every word."""
    config = RecurrentConfig(V, **SMALL, num_layers=2, stacks="joint")
    assert architectures.objectives_of(config) == ("mlm",)
    with pytest.raises(InputError, match=r"'blank'.*'birnn'.*mlm"):
        architectures.check_objective(config, "blank")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (dict(hidden_size=7), "hidden_size is 7; it must be even"),
        (dict(cell="rnn"), "cell is 'rnn'.*gru"),
        (dict(mix_size=0), "mix_size is 0"),
        (dict(stacks="both"), "stacks is 'both'.*separate"),
    ],
)
def test_a_wrong_size_is_refused_in_a_line(wrong, said):
    with pytest.raises(InputError, match=said):
        RecurrentConfig(V, **wrong)
