"""The encoder: scan equals unrolled equals recomputed, padding and neighbours never leak, initial values, dropout."""

import dataclasses
import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert.architectures.bert import BertConfig
from bert.architectures.bert_encoder import BertEncoder
from bert.model import attention, dropout
from bert.model.blocks import pick
from bert.model.pattern import within_examples


@pytest.mark.long
@pytest.mark.parametrize(
    "way",
    [
        pytest.param({"layer_loop": "unroll"}, marks=pytest.mark.slow),
        {"layer_loop": "unroll", "remat": True},
        pytest.param({"layer_loop": "scan", "remat": True}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_every_way_of_running_the_blocks_gives_the_same(tiny, make_batch, examples, assert_trees_close, way):
    """Loss and all gradients, with dropout on: which loop runs the blocks, and what it keeps, changes nothing."""
    batch, key = make_batch([examples[:3], examples[3:4], [], []], 32), jax.random.key(5)
    assert tiny.config.layer_loop == "scan"
    assert_trees_close(tiny.loss_and_gradients(batch, key=key, **way), tiny.loss_and_gradients(batch, key=key), 1e-5)


@pytest.mark.long
@pytest.mark.parametrize("layers", [pytest.param(1, marks=pytest.mark.slow), 2])
@pytest.mark.parametrize(
    "way", [{"layer_loop": "unroll"}, {"layer_loop": "scan"}, {"layer_loop": "scan", "remat": True}], ids=str
)
def test_reading_some_positions_equals_reading_all(tiny, make_batch, examples, assert_trees_close, way, layers):
    """Hidden states and the gradients of all parameters: packed, padded and empty rows, a position asked for twice."""
    batch = make_batch([examples[:3], examples[3:4], [], examples[4:6]], 32)
    positions_BP = np.array([[0, 12, 30, 12, 5]] * 4, np.int32)
    encoder = BertEncoder(dataclasses.replace(tiny.config, num_layers=layers, **way))
    blocks = jax.tree.map(lambda x: x[:layers], tiny.params["encoder"]["blocks"])
    weights_BPD = np.random.default_rng(3).standard_normal((*positions_BP.shape, 16), np.float32)

    def weighed(params, some: bool):
        hidden = encoder.apply({"params": params}, batch, reads={"tokens": positions_BP if some else None})["tokens"]
        picked_BPD = hidden if some else pick(hidden, positions_BP)
        real_BP1 = np.take_along_axis(batch["example_ids"], positions_BP, axis=1)[..., None] > 0
        return (jnp.where(real_BP1, picked_BPD, 0.0) * weights_BPD).sum(), picked_BPD

    both = jax.jit(lambda params: [jax.value_and_grad(weighed, has_aux=True)(params, some) for some in (True, False)])
    assert_trees_close(*both(tiny.params["encoder"] | {"blocks": blocks}), 1e-5)


def test_the_last_block_computes_what_is_read_alone(tiny, make_batch):
    """The products of the feed-forward part, unrolled: all 4 x 32 positions in the first block, 4 x 5 in the last."""
    encoder = BertEncoder(dataclasses.replace(tiny.config, layer_loop="unroll"))
    positions_BP = np.zeros((4, 5), np.int32)
    reads, batch = {"words": positions_BP}, make_batch([[]] * 4, 32)
    run = jax.jit(lambda params: encoder.apply({"params": params}, batch, reads=reads)["words"])
    program = run.lower(tiny.params["encoder"]).compile().as_text()
    wide = re.findall(r"= f32\[(\d+),32\]\S* dot\(", program)
    assert sorted(wide, key=int) == ["20", "128"]


@pytest.mark.parametrize(("way", "loops"), [("scan", 1), ("unroll", 0)])
def test_unrolled_means_no_loop(tiny, make_batch, way, loops):
    """The program has one loop over blocks when scanned, none when unrolled."""
    encoder = BertEncoder(dataclasses.replace(tiny.config, layer_loop=way))
    program = jax.jit(encoder.apply).lower({"params": tiny.params["encoder"]}, make_batch([[[2, 9, 3]]], 16)).as_text()
    assert program.count("stablehlo.while") == loops


@pytest.mark.long
def test_recomputing_keeps_less(tiny, make_batch):
    """With remat, a scanned backward pass needs well below half the memory for temporaries."""
    config = dataclasses.replace(tiny.config, layer_loop="scan", num_layers=8, max_position_embeddings=128)
    batch = make_batch([[[2] * 128]] * 4, 128)

    def bytes_needed(remat: bool) -> int:
        encoder = BertEncoder(dataclasses.replace(config, remat=remat))
        params = jax.eval_shape(encoder.init, jax.random.key(0), batch)
        step = jax.jit(jax.grad(lambda params: encoder.apply(params, batch)["tokens"].sum()))
        return step.lower(params).compile().memory_analysis().temp_size_in_bytes

    assert bytes_needed(remat=True) < 0.5 * bytes_needed(remat=False)


def test_padding_changes_nothing(tiny, make_batch, examples, assert_trees_close):
    """Rows of 16 filled up to 32 and to 48: equal outputs at real positions, equal loss, equal gradients."""
    rows = [[e] for e in examples[:4]]
    short, *longer = (make_batch(rows, length) for length in (16, 32, 48))
    want = tiny.outputs(short)
    for long in longer:
        got = tiny.outputs(long)
        assert_trees_close(*(_at_real_positions(o, b) for o, b in ((got, long), (want, short))), 1e-5)
    assert_trees_close(tiny.loss_and_gradients(longer[0]), tiny.loss_and_gradients(short), 1e-5)


def _at_real_positions(outputs: dict, batch: dict) -> dict:
    """Hidden states of tokens, scores and costs of masked words, answers of labelled pairs: what is read, in order."""
    read = {"hidden": "example_ids", "mlm_logits": "masked_weights", "mlm_cross_entropy": "masked_weights"}
    read |= {"nsp_logits": "next_sentence_weights"}
    return {name: np.asarray(outputs[name])[batch[where] > 0] for name, where in read.items()}


def test_what_lies_in_padding_is_never_read(tiny, make_batch, examples):
    """Other token, type and position ids in the padding: not one bit of loss or gradient differs."""
    batch = make_batch([[e] for e in examples[:4]], 16)
    other = dict(batch)
    for name, value in (("token_ids", 63), ("type_ids", 1), ("position_ids", 40)):
        other[name] = np.where(batch["example_ids"] == 0, value, batch[name])
    real = batch["example_ids"] > 0
    np.testing.assert_array_equal(tiny.hidden(batch)[real], tiny.hidden(other)[real])
    (loss, gradients), (other_loss, other_gradients) = map(tiny.loss_and_gradients, (batch, other))
    assert loss == other_loss
    jax.tree.map(np.testing.assert_array_equal, gradients, other_gradients)


def test_batch_size_changes_nothing(tiny, make_batch, examples):
    """One example alone, or with three or seven others, at the start or the end of the batch."""
    first, *others = [[e] for e in examples]
    n = len(first[0])
    alone = tiny.hidden(make_batch([first], 16))[0, :n]
    for size in (4, 8):
        ends = tiny.hidden(make_batch([first, *others[: size - 2], first], 16))[[0, -1], :n]
        np.testing.assert_allclose(ends, np.stack([alone, alone]), rtol=0, atol=1e-5)


def test_packed_equals_one_example_a_row(tiny, make_batch, examples, assert_trees_close):
    """Four examples in two rows or in four: equal hidden states, scores, loss and gradients."""
    packed = make_batch([examples[:3], examples[3:4], [], []], 32)
    single = make_batch([[e] for e in examples[:4]], 16)
    assert_trees_close(*(_at_real_positions(tiny.outputs(b), b) for b in (packed, single)), 1e-5)
    assert_trees_close(tiny.loss_and_gradients(packed), tiny.loss_and_gradients(single), 1e-5)


@pytest.mark.long
def test_packed_and_padded_rows_in_bfloat16(tiny, make_batch, examples):
    """Rows of another length may round elsewhere: loss within 1/256, gradients within 1/64 of their largest entry."""
    packed = make_batch([examples[:3], examples[3:4], [], []], 32)
    single, padded = (make_batch([[e] for e in examples[:4]], length) for length in (16, 32))
    want_loss, want = tiny.loss_and_gradients(single, dtype="bfloat16")
    for batch in (packed, padded):
        loss, gradients = tiny.loss_and_gradients(batch, dtype="bfloat16")
        assert float(loss) == pytest.approx(float(want_loss), rel=2**-8)
        for g, w in zip(jax.tree.leaves(gradients), jax.tree.leaves(want), strict=True):
            np.testing.assert_allclose(g, w, rtol=0, atol=np.abs(w).max() / 64)


def test_a_neighbour_in_the_row_is_never_read(tiny, make_batch, examples):
    """The second example of a row replaced by another: not one bit of the first one's hidden states differs."""
    first, second, other = examples[0], examples[1], examples[5] + [9]
    assert len(second) == len(other)
    here, there = (tiny.hidden(make_batch([[first, e], [], [], []], 32))[0] for e in (second, other))
    np.testing.assert_array_equal(here[: len(first)], there[: len(first)])
    assert np.abs(here - there)[len(first) : len(first) + len(second)].max() > 0.1


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_rows_of_padding_only(tiny, make_batch, examples, assert_trees_close, dtype):
    """Filler rows give finite outputs, loss and gradients, and the real rows do not notice them."""
    rows = [[e] for e in examples[:2]]
    real, filled = make_batch(rows, 16), make_batch([*rows, [], []], 16)
    loss, gradients = tiny.loss_and_gradients(filled, dtype=dtype)
    outputs = tiny.outputs(filled, dtype=dtype)
    assert all(bool(jnp.isfinite(x).all()) for x in jax.tree.leaves([loss, gradients, outputs]))
    if dtype == "float32":
        assert_trees_close((loss, gradients), tiny.loss_and_gradients(real), 1e-5)
        assert_trees_close({name: x[:2] for name, x in outputs.items()}, tiny.outputs(real), 1e-5)


def test_a_batch_of_nothing(tiny, make_batch):
    """Only padding: loss 0, every gradient 0."""
    loss, gradients = tiny.loss_and_gradients(make_batch([[], [], [], []], 16))
    assert float(loss) == 0.0
    for x in jax.tree.leaves(gradients):
        np.testing.assert_array_equal(x, 0)


@pytest.mark.long
def test_bfloat16_is_close_to_float32(tiny, make_batch, examples):
    """Products in bfloat16 (8 bits): hidden states of size 1 within 0.1, loss within 1 %, gradient direction kept."""
    batch = make_batch([[e] for e in examples[:4]], 16)
    real = batch["example_ids"] > 0
    hidden, low_hidden = (tiny.hidden(batch, dtype=t)[real] for t in ("float32", "bfloat16"))
    assert np.abs(hidden - low_hidden).max() < 0.1
    (loss, gradients), (low_loss, low_gradients) = (
        tiny.loss_and_gradients(batch, dtype=t) for t in ("float32", "bfloat16")
    )
    assert float(low_loss) == pytest.approx(float(loss), rel=0.01)
    assert {x.dtype for x in jax.tree.leaves(low_gradients)} == {jnp.dtype("float32")}
    a, b = (np.concatenate([np.ravel(x) for x in jax.tree.leaves(g)]) for g in (gradients, low_gradients))
    assert a @ b / (np.linalg.norm(a) * np.linalg.norm(b)) > 0.999


def test_order_of_words_matters_only_through_positions(tiny, make_batch, examples):
    """Tokens, types and positions permuted together permute the hidden states; without positions, they change."""
    batch = make_batch([[e] for e in examples[:4]], 16)
    order = np.random.default_rng(0).permutation(16)
    moved = batch | {k: batch[k][:, order] for k in ("token_ids", "type_ids", "position_ids", "example_ids")}
    np.testing.assert_allclose(tiny.hidden(moved), tiny.hidden(batch)[:, order], rtol=0, atol=1e-5)
    unplaced = moved | {"position_ids": batch["position_ids"]}
    assert np.abs(tiny.hidden(unplaced) - tiny.hidden(batch)[:, order]).max() > 0.1


@pytest.mark.parametrize("name", ["token_ids", "position_ids", "type_ids"])
def test_ids_out_of_range_are_loud(tiny, make_batch, examples, name):
    """An id beyond its table gives NaN there; clamped to the last row it would go unnoticed."""
    batch = make_batch([[e] for e in examples[:4]], 16)
    batch[name][0, 1] = 64
    assert np.isnan(tiny.hidden(batch)[0, 1]).all()
    batch[name][0, 1] = -1  # no row from the end of the table
    assert np.isnan(tiny.hidden(batch)[0, 1]).all()
    assert np.isfinite(tiny.hidden(batch)[1]).all()


def test_states_are_what_the_encoder_goes_through(tiny, make_batch, examples):
    """Embeddings first, the result last, one more than blocks; each row of weights sums to 1 over allowed keys."""
    batch = make_batch([examples[:3], examples[3:4], [], []], 32)
    states = jax.jit(functools.partial(BertEncoder(tiny.config).apply, method="states"))
    hidden_LBTD, weights_LBNTS = states({"params": tiny.params["encoder"]}, batch)
    assert hidden_LBTD.shape == (3, 4, 32, 16)
    assert weights_LBNTS.shape == (2, 4, 2, 32, 32)
    np.testing.assert_allclose(hidden_LBTD[-1], tiny.hidden(batch), rtol=0, atol=1e-6)
    np.testing.assert_allclose(weights_LBNTS.sum(-1), 1.0, atol=1e-6)
    forbidden = ~np.broadcast_to(within_examples(jax.tree.map(jnp.asarray, batch)).allowed(), weights_LBNTS.shape)
    assert (np.asarray(weights_LBNTS)[:, :2][forbidden[:, :2]] == 0).all()  # the last two rows have no key at all


def test_pick():
    hidden_BTD = jnp.arange(24).reshape(2, 4, 3)
    np.testing.assert_array_equal(pick(hidden_BTD, jnp.array([[3, 0], [1, 1]]))[:, :, 0], [[9, 0], [15, 15]])


def test_initial_values(make_batch):
    """As in BERT's first release: normal of 0.02 cut at two standard deviations (deviation 0.0176 after the cut),
    biases 0, norms 1; and no two blocks alike."""
    config = BertConfig.of_size("tiny", vocab_size=2000)
    params = jax.jit(BertEncoder(config).init)(jax.random.key(0), make_batch([[]], 16))["params"]
    for path, value in jax.tree_util.tree_leaves_with_path(params):
        name = jax.tree_util.keystr(path, simple=True, separator="/")
        if name.endswith(("bias", "scale")):
            np.testing.assert_array_equal(value, 1.0 if name.endswith("scale") else 0.0, err_msg=name)
            continue
        assert np.abs(value).max() <= 0.04, name
        # The deviation of n draws from this distribution has a standard error of 0.55 / sqrt(n) of itself.
        assert float(value.std()) == pytest.approx(0.0176, rel=3 * 0.55 / value.size**0.5 + 0.001), name
        assert float(value.mean()) == pytest.approx(0.0, abs=4 * 0.0176 / value.size**0.5), name
        if name.startswith("blocks/"):
            correlation = np.corrcoef(np.ravel(value[0]), np.ravel(value[1]))[0, 1]
            assert abs(correlation) < 4 / value[0].size ** 0.5, name


def test_every_dropout_has_its_own_key(tiny, make_batch, monkeypatch):
    """One mask for the embeddings, and for each block three: attention weights, attention, feed-forward."""
    keys = []

    def spy(key, shape, rate):
        assert rate == 0.1
        jax.debug.callback(lambda data: keys.append(tuple(data.tolist())), jax.random.key_data(key))
        return jnp.ones(shape, bool)

    for module in (attention, dropout):
        monkeypatch.setattr(module, "kept", spy)
    run = jax.jit(functools.partial(BertEncoder(tiny.config).apply, train=True))
    run({"params": tiny.params["encoder"]}, make_batch([[]], 16), rngs={"dropout": jax.random.key(0)})
    jax.effects_barrier()
    assert len(keys) == len(set(keys)) == 1 + 3 * tiny.config.num_layers


@pytest.mark.long
def test_dropout_differs_between_rows_and_steps(tiny, make_batch, examples):
    """Two equal rows get different masks; another key gives others; the same key the same, bit by bit."""
    batch = make_batch([[examples[0]]] * 4, 16)
    first, again, other = (tiny.hidden(batch, key=jax.random.key(k)) for k in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first[0] - first[1]).max() > 0.1
    assert np.abs(first - other).max() > 0.1


def test_no_dropout_outside_training(tiny, make_batch, examples):
    """Without ``train`` no key is needed, and the configured rates change nothing."""
    batch = make_batch([[examples[0]]] * 4, 16)
    off = {"hidden_dropout": 0.0, "attention_dropout": 0.0}
    np.testing.assert_allclose(tiny.hidden(batch, key=jax.random.key(0), **off), tiny.hidden(batch), rtol=0, atol=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["hidden_dropout", "attention_dropout"])
def test_each_rate_is_used(tiny, make_batch, examples, kind):
    """Switching off one of the two rates leaves the other at work."""
    batch = make_batch([[examples[0]]] * 4, 16)
    only = {"hidden_dropout": 0.0, "attention_dropout": 0.0} | {kind: 0.5}
    assert np.abs(tiny.hidden(batch, key=jax.random.key(0), **only) - tiny.hidden(batch)).max() > 0.1
