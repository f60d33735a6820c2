"""The contract of decoders, for every architecture that has one: what a target reads, and that steps equal one pass."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert import architectures
from bert.architectures.bert2bert import BertToBertConfig
from bert.architectures.convs2s import ConvS2SConfig
from bert.architectures.encoder_decoder import EncoderDecoderConfig
from bert.architectures.recurrent_decoder import RecurrentDecoderConfig
from bert.data.encoded_examples import ExampleSettings, prediction_batches
from bert.data.sequence_pairs import join
from bert.errors import InputError
from bert.model import stack
from bert.model.decoders import words_before
from bert.model.teacher_forcing import TeacherForced

_TRANSFORMER = dict(
    vocab_size=11, hidden_size=16, num_layers=2, num_heads=2, intermediate_size=24, initializer_range=0.3
)
_RECURRENT = dict(
    vocab_size=11, embedding_size=16, hidden_size=16, decoder_size=24, attention_size=8, output_size=16,
    initializer_range=1.0,
)  # fmt: skip
CONFIGS: dict[str, Any] = {
    "post-norm": EncoderDecoderConfig(**_TRANSFORMER),
    "pre-norm": EncoderDecoderConfig(**_TRANSFORMER, norm="pre"),
    "rnn": RecurrentDecoderConfig(**_RECURRENT, score="none"),
    "bahdanau": RecurrentDecoderConfig(**_RECURRENT),
    "bilinear": RecurrentDecoderConfig(**_RECURRENT, score="bilinear", output="linear", cell="lstm", num_layers=2),
    "dot": RecurrentDecoderConfig(**_RECURRENT | {"decoder_size": 16}, score="dot", reset="after"),
    "convs2s": ConvS2SConfig(11, 16, 24, 2, 16, initializer_range=0.3, weight_norm=True),
    "bert2bert": BertToBertConfig(**_TRANSFORMER, max_position_embeddings=16, tied=False, start_id=1),
    "bertshare": BertToBertConfig(**_TRANSFORMER, max_position_embeddings=16, share=True, start_id=1),
}
SOURCES = [[3, 4, 5, 2], [6, 7, 2], [8, 9, 10, 3, 4, 2]]
TARGETS = [[4, 4, 2], [5, 9, 6, 7, 2], [10, 2]]


def batch_of(rows: list[list[int]], length: int, sources=SOURCES) -> dict[str, np.ndarray]:
    """The pairs of these numbers, a row each list."""
    return join(sources, TARGETS).assembled([np.array(row) for row in rows], length, len(rows), 3)


@pytest.fixture(scope="module", params=CONFIGS)
def model(request):
    """(config, parameters, compiled batch -> nats [B, U])."""
    config = CONFIGS[request.param]
    module = TeacherForced(config)
    batch = batch_of([[0], [1], [2]], 6)
    params = jax.jit(module.init)(jax.random.key(0), batch)["params"]
    return config, params, jax.jit(lambda batch: module.apply({"params": params}, batch)["nats"])


def encoder_call(config, params, *inputs, method):
    return architectures.build(config).apply({"params": params["encoder"]}, *inputs, method=method)


def test_steps_with_a_cache_equal_one_pass(model):
    """Two hypotheses a row, of which the first is the target; the parameters in either form (`stack.by_layer`)."""
    config, params, _ = model
    batch = batch_of([[0], [1], [2]], 6)
    words_BU = np.asarray(words_before(batch, config.start_id))

    @jax.jit
    def begun(params):
        memory = encoder_call(config, params, batch, method="memory")
        state = encoder_call(config, params, memory, 6, 5, method="begin")
        return encoder_call(config, params, memory, batch, method="teacher_forced"), state

    whole_BUD, state = begun(params)
    layered = stack.by_layer(params, config)
    assert not hasattr(config, "layer_loop") or isinstance(layered["encoder"]["decoder"]["blocks"], tuple)
    step = jax.jit(lambda params, state, ids, u: encoder_call(config, params, state, ids, u, method="step"))
    for u in range(5):
        ids_R = np.stack([words_BU[:, u], words_BU[::-1, u]], axis=1).reshape(-1)
        hidden_RD, state = step(params if u == 4 else layered, state, ids_R, u)
        for row, target in enumerate(TARGETS):
            if u < len(target):
                np.testing.assert_allclose(hidden_RD[2 * row], whole_BUD[row, u], rtol=0, atol=1e-5)


def test_packing_padding_and_neighbours_change_nothing(model):
    _, _, nats = model
    values_BU = np.asarray(nats(batch_of([[2, 1], [0]], 16)))
    starts = {2: (0, 0), 1: (0, len(TARGETS[2])), 0: (1, 0)}
    for i, (row, start) in starts.items():
        alone_U = np.asarray(nats(batch_of([[i]], 12)))[0, : len(TARGETS[i])]
        np.testing.assert_allclose(values_BU[row, start : start + len(alone_U)], alone_U, rtol=0, atol=1e-5)


def test_another_source_changes_its_own_target_only(model):
    _, _, nats = model
    before = np.asarray(nats(batch_of([[0, 1]], 12)))[0]
    after = np.asarray(nats(batch_of([[0, 1]], 12, [SOURCES[0], [6, 8, 2], SOURCES[2]])))[0]
    np.testing.assert_array_equal(after[:3], before[:3])
    assert (np.abs(after[3:8] - before[3:8]) > 1e-4).all()


def test_no_word_is_read_where_it_is_predicted(model):
    """The Jacobian of the states by the embedded words: 0 at the word itself and later ones, else not."""
    config, params, _ = model
    batch = batch_of([[1]], 5)
    width = architectures.table_width(config)
    weights_D = np.random.default_rng(0).standard_normal(width)  # norms make the plain sum a constant

    def states(table_VD):
        memory = encoder_call(config, params, batch, method="memory")
        changed = jax.tree_util.tree_map_with_path(lambda path, x: table_VD if is_table(path) else x, params)
        return encoder_call(config, changed, memory, batch, method="teacher_forced")[0] @ weights_D

    # Words 5, 9, 6, 7, 2: each is an entry of its own, so the entry's gradient is that of the word.
    is_table = lambda path: jax.tree_util.keystr(path, simple=True, separator="/").endswith("token/embedding")  # noqa: E731
    # The first is the decoder's, where it has one.
    table_VD = next(x for path, x in jax.tree.leaves_with_path(params) if is_table(path))
    reads_UV = np.abs(np.asarray(jax.jit(jax.jacobian(states))(table_VD))).max(-1)
    for u in range(5):
        for position, word in enumerate(TARGETS[1]):
            assert (reads_UV[u, word] > 0) == (position < u)


def test_a_word_reads_the_source_of_its_own_pair(model):
    """The maps are float32, sum to 1 over that source, and do not depend on what shares the row; else they are 0."""
    config, params, _ = model

    @jax.jit
    def weights(batch):
        memory = encoder_call(config, params, batch, method="memory")
        return encoder_call(config, params, memory, batch, method="attention")

    if getattr(config, "score", "") == "none":
        with pytest.raises(InputError, match=r"score is 'none'.*no attention"):
            weights(batch_of([[0]], 6))
        return
    packed, alone = batch_of([[2, 1], [0]], 16), batch_of([[0], [1], [2]], 6)
    packed_BAUS, alone_BAUS = (np.asarray(weights(batch)) for batch in (packed, alone))
    assert packed_BAUS.dtype == np.float32
    assert packed_BAUS.shape == (2, alone_BAUS.shape[1], 16, 16)
    pairs_BUS = packed["target_example_ids"][:, :, None] == packed["example_ids"][:, None]
    reads_BUS = pairs_BUS & (packed["target_example_ids"] > 0)[:, :, None]
    np.testing.assert_array_equal(packed_BAUS[~np.broadcast_to(reads_BUS[:, None], packed_BAUS.shape)], 0)
    real_BU = packed["target_example_ids"] > 0
    np.testing.assert_allclose(packed_BAUS.sum(-1), np.broadcast_to(real_BU[:, None], packed_BAUS.shape[:3]), atol=1e-6)
    starts = {2: (0, 0, 0), 1: (0, len(TARGETS[2]), len(SOURCES[2])), 0: (1, 0, 0)}
    for i, (row, u, s) in starts.items():
        U, S = len(TARGETS[i]), len(SOURCES[i])
        own_AUS = packed_BAUS[row, :, u : u + U, s : s + S]
        np.testing.assert_allclose(own_AUS, alone_BAUS[i, :, :U, :S], rtol=0, atol=1e-5)
        assert np.ptp(own_AUS, axis=1).max() > 1e-3  # one word reads otherwise than another


def test_batches_hold_each_pair_once():
    pairs = join(SOURCES, TARGETS)
    settings = ExampleSettings(2, 8, packed=False)
    seen = [i for _, index_BE in prediction_batches(pairs, settings) for i in index_BE.ravel() if i >= 0]
    assert sorted(seen) == [0, 1, 2]
    batch = batch_of([[2, 1], [0]], 16)
    assert batch["target_ids"][0, :7].tolist() == TARGETS[2] + TARGETS[1]
    assert batch["target_weights"].sum() == sum(map(len, TARGETS))
    assert np.asarray(words_before(batch, 1))[0, :7].tolist() == [1, 10, 1, 5, 9, 6, 7]


def test_parameters_are_those_of_the_published_sizes():
    """Of Multi30k's tiny Transformer; the paper's base has 63,082,496 with a table of 37,000."""
    for sizes, count in (((4, 128, 4, 256, 10_000), 2_605_056), ((6, 512, 8, 2048, 37_000), 63_082_496)):
        layers, width, heads, inner, words = sizes
        config = EncoderDecoderConfig(words, width, layers, heads, inner)
        shapes = jax.eval_shape(TeacherForced(config).init, jax.random.key(0), batch_of([[0]], 4))["params"]
        assert sum(leaf.size for leaf in jax.tree.leaves(shapes)) == count


def test_depths_run_from_the_embeddings_to_the_decoders_last_block():
    config = dataclasses.replace(CONFIGS["pre-norm"], norm="pre")
    depth = TeacherForced(config).depth_of
    assert depth(("encoder", "source", "embeddings", "token", "embedding")) == 0
    assert list(depth(("encoder", "source", "blocks", "attention"))) == [1, 2]
    assert list(depth(("encoder", "decoder", "blocks", "attention"))) == [3, 4]
    assert depth(("encoder", "decoder", "output_norm", "scale")) == 4
    assert jnp.ndim(depth(("encoder", "source", "output_norm", "scale"))) == 0
