"""Sinusoidal and rotary positions against reference values, offsets, and what each kind adds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert.architectures.bert import BertConfig
from bert.errors import InputError
from bert.model import positions
from bert.model.blocks import MultiHeadAttention
from bert.model.pattern import within_examples
from bert.model.positions import rotate, sinusoidal

CONFIG = BertConfig(vocab_size=9, hidden_size=16, num_layers=1, num_heads=2, max_position_embeddings=8)


@pytest.fixture(scope="module")
def reference(shared):
    return np.load(shared / "golden2" / "positions" / "positions.npz")


@pytest.mark.parametrize(("length", "width"), [(16, 8), (64, 32)])
def test_sinusoids(reference, length, width):
    """Sines and cosines in turn; the reference is float64."""
    got = sinusoidal(jnp.arange(length)[None], width)[0]
    np.testing.assert_allclose(got, reference[f"interleaved_{length}x{width}"], rtol=0, atol=1e-5)


@pytest.mark.parametrize("base", [1000, 10000, 160000, 250000])
def test_rotary(reference, base):
    x_TH, places_T = reference["rope_x"], reference["rope_positions"]
    got = rotate(jnp.asarray(x_TH, jnp.float32)[None, :, None], jnp.asarray(places_T)[None], float(base))
    assert got.shape == (1, len(places_T), 1, x_TH.shape[-1])
    np.testing.assert_allclose(got[0, :, 0], reference[f"rope_theta_{base}"], rtol=0, atol=1e-5)


def test_rotary_attention_depends_on_distances_alone():
    """Weights of an example that begins at position 0 or 40 are equal; without the positions they are others."""
    x_BTD = jax.random.normal(jax.random.key(0), (1, 5, 16)) * 3
    ids_BT = jnp.ones((1, 5), int)

    def weights(base, start):
        batch = {"example_ids": ids_BT, "position_ids": jnp.arange(5)[None] + start}
        module = MultiHeadAttention(CONFIG, rotary_base=base)
        pattern = within_examples(batch, positions=base is not None)
        params = MultiHeadAttention(CONFIG).init(jax.random.key(1), x_BTD, x_BTD, within_examples(batch))
        params = jax.tree.map(lambda x: x * 20, params)
        return module.apply(params, x_BTD, x_BTD, pattern, method="scores_and_weights")[1]

    np.testing.assert_allclose(weights(10_000.0, 0), weights(10_000.0, 40), rtol=0, atol=1e-5)
    assert np.abs(weights(10_000.0, 0) - weights(None, 0)).max() > 0.05


def test_two_words_in_either_order_have_the_same_states_where_all_stand_at_one_position(tiny, make_batch):
    """ "machine translating" and "translating machine": what tells them apart is the position."""
    machine, translating = 7, 8
    there, back = (make_batch([[[2, *pair, 3]]], 16) for pair in ((machine, translating), (translating, machine)))
    flat = {name: np.zeros((1, 16), np.int32) for name in ("position_ids", "type_ids")}
    exchanged = [0, 2, 1, 3]
    hidden = [tiny.hidden(batch | flat)[0, :4] for batch in (there, back)]
    np.testing.assert_allclose(hidden[0], hidden[1][exchanged], rtol=0, atol=1e-5)
    placed = [tiny.hidden(batch | {"type_ids": flat["type_ids"]})[0, :4] for batch in (there, back)]
    assert np.abs(placed[0] - placed[1][exchanged]).max() > 0.1


def test_an_offset_moves_the_first_position():
    """RoBERTa's table has two rows before that of the first token."""
    ids_BT = jnp.arange(8)[None]
    table = positions.embedding(CONFIG, "learned", offset=2)
    params = table.init(jax.random.key(0), ids_BT)  # type: ignore[attr-defined]
    assert params["params"]["embedding"].shape == (10, 16)
    np.testing.assert_array_equal(table.apply(params, ids_BT)[0], params["params"]["embedding"][2:])  # type: ignore[attr-defined]
    assert np.isnan(table.apply(params, ids_BT - 1)[0, 0]).all(), "a negative position is out of range"  # type: ignore[attr-defined]
    np.testing.assert_array_equal(positions.embedding(CONFIG, "sinusoidal", 3)(ids_BT), sinusoidal(ids_BT + 3, 16))


@pytest.mark.parametrize("kind", ["rotary", "none"])
def test_what_adds_nothing(kind):
    x_BTD = jnp.ones((1, 8, 16))
    np.testing.assert_array_equal(x_BTD + positions.embedding(CONFIG, kind)(jnp.arange(8)[None]), x_BTD)


def test_an_unknown_kind_is_refused():
    with pytest.raises(InputError, match="rotery"):
        positions.embedding(CONFIG, "rotery")
