"""How an encoder's depth and reach grow with the text: after how many layers the last state has read the first word,
and how long the longest chain of dependent operations is."""

import dataclasses

import jax
import numpy as np
import pytest

from bert import architectures
from bert.architectures.bert import BertConfig
from bert.architectures.convolution import DilatedConfig, StridedConfig
from bert.architectures.gpt import GPT2Config, GPTConfig
from bert.architectures.recurrent import RecurrentConfig
from bert.depth import longest_chain
from bert.model.convolutions import GatedBlock

LONGEST = 1024
TRANSFORMER = {"hidden_size": 8, "num_layers": 1, "num_heads": 2, "intermediate_size": 32, "initializer_range": 0.5}
OTHER = {"embedding_size": 4, "hidden_size": 8, "max_length": LONGEST}
BERT = BertConfig(LONGEST, **TRANSFORMER, max_position_embeddings=LONGEST)
GPT, GPT2 = (kind(LONGEST, **TRANSFORMER, max_position_embeddings=LONGEST) for kind in (GPTConfig, GPT2Config))
RNN = RecurrentConfig(LONGEST, **OTHER)
DILATED = DilatedConfig(LONGEST, **OTHER, num_layers=7)
STRIDED = StridedConfig(LONGEST, **OTHER, num_layers=10, activation="tanh")


def words(length):
    """A row of different words, so that the embedding of each is that of its place."""
    places = np.arange(length, dtype=np.int32)[None]
    return {"token_ids": places, "position_ids": places, "example_ids": np.ones_like(places),
            "type_ids": np.zeros_like(places)}  # fmt: skip


def influence(config, length):
    """float [length]: how much each word's embedding changes the last state (of ``strided`` the one vector)."""
    encoder, batch = architectures.build(config), words(length)
    params = jax.jit(encoder.init)(jax.random.key(0), batch)["params"]

    def total(params):
        name = "examples" if config.model_type == "strided" else "tokens"
        states_BPD = encoder.apply({"params": params}, batch, reads={name: None})[name]
        return states_BPD[0, -1] @ jax.random.normal(jax.random.key(1), states_BPD.shape[2:])

    gradients = jax.tree.leaves_with_path(jax.jit(jax.grad(total))(params))
    (table_VD,) = (leaf for path, leaf in gradients if "'token'" in jax.tree_util.keystr(path))
    return np.abs(table_VD[:length]).sum(-1)


def reads_all(config, length, layers):
    """Whether the last of ``length`` words' states has read the first word; of ``strided`` the first vector both."""
    limit = {"max_length": 2**layers} if config is STRIDED else {}  # which the configuration compares with the levels
    influence_T = influence(dataclasses.replace(config, num_layers=layers, **limit), length)
    return influence_T[0] > 0 and influence_T[-1] > 0


@pytest.mark.slow
@pytest.mark.parametrize(("config", "layers"), [(BERT, 1), (GPT, 1), (GPT2, 1), (RNN, 1), (DILATED, 7), (STRIDED, 7)])
def test_the_layers_until_the_last_state_has_read_the_first_of_128_words(config, layers):
    """One of attention and of a recurrence; log T of strided or dilated convolutions with three taps."""
    assert reads_all(config, 128, layers)
    assert layers == 1 or not reads_all(config, 128, layers - 1)


@pytest.mark.slow
@pytest.mark.parametrize(("taps", "length", "layers"), [(3, 128, 64), (5, 32, 8)])
def test_plain_convolutions_need_a_layer_for_each_k_minus_1_words(taps, length, layers):
    """ceil((T - 1) / (k - 1))."""
    assert layers == -(-(length - 1) // (taps - 1))
    block, batch = GatedBlock(DILATED, 8, tuple(range(1 - taps, 1))), words(length)
    x_BTD = jax.random.normal(jax.random.key(0), (1, length, 8))
    init = jax.vmap(lambda key: block.init(key, x_BTD, batch))
    params_L = jax.tree.map(lambda x: x * 3, init(jax.random.split(jax.random.key(1), layers)))  # does not shrink to 0

    def last(x_BTD, params_L):
        return jax.lax.scan(lambda x, params: (block.apply(params, x, batch), None), x_BTD, params_L)[0][0, -1].sum()

    influence = jax.jit(jax.grad(last))
    assert np.abs(influence(x_BTD, params_L)[0, 0]).sum() > 0
    fewer = jax.tree.map(lambda x: x[1:], params_L)
    assert np.abs(influence(x_BTD, fewer)[0, 0]).sum() == 0


@pytest.mark.parametrize("config", [BERT, GPT], ids=["bert", "gpt"])
def test_bert_reads_both_sides_and_gpt_what_stands_before(config):
    """By the Jacobian of all states by all embeddings; of BERT also the first state, [CLS], has read every word."""
    T = 9
    encoder, batch = architectures.build(config), words(T)
    params = jax.jit(encoder.init)(jax.random.key(0), batch)["params"]

    def states(table_VD):
        embeddings = params["embeddings"] | {"token": {"embedding": table_VD}}
        return encoder.apply({"params": params | {"embeddings": embeddings}}, batch)["tokens"][0]

    jacobian_TDVD = jax.jit(jax.jacobian(states))(params["embeddings"]["token"]["embedding"])
    influence_TS = np.abs(jacobian_TDVD).sum((1, 3))[:, :T] > 0
    np.testing.assert_array_equal(influence_TS, np.tri(T, dtype=bool) if config.causal else np.ones((T, T), bool))


def chain(config, length):
    batch, encoder = words(length), architectures.build(config)
    params = jax.eval_shape(encoder.init, jax.random.key(0), batch)["params"]
    return longest_chain(lambda params: encoder.apply({"params": params}, batch), params)


@pytest.mark.parametrize(
    "config", [BERT, GPT2, dataclasses.replace(DILATED, num_layers=5)], ids=["bert", "gpt2", "dilated"]
)
def test_the_longest_chain_of_attention_and_convolutions_does_not_grow_with_the_text(config):
    assert chain(config, 64) == chain(config, LONGEST) < 200


def test_it_grows_with_the_layers():
    one, two, three = (chain(dataclasses.replace(BERT, num_layers=layers), 64) for layers in (1, 2, 3))
    assert three - two == two - one > 0


def test_of_strided_convolutions_it_grows_with_the_levels():
    """As many as halvings of the text; each adds the same on the way up and back."""
    chains = [
        chain(dataclasses.replace(STRIDED, num_layers=6 + more, max_length=64 << more), 64 << more) for more in range(5)
    ]
    assert len(set(np.diff(chains))) == 1
    assert 0 < chains[1] - chains[0] < 50


def test_of_a_recurrence_it_grows_with_every_word():
    short, longer, longest = (chain(RNN, length) for length in (64, 128, LONGEST))
    assert (longest - longer) / (longer - short) == (LONGEST - 128) / 64
    assert longest > 3 * LONGEST
