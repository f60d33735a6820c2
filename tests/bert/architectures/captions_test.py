"""Models that write captions: steps equal one pass, what a cell sees, and what a decoder reads of the cells."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert import architectures
from bert.architectures.captions import PictureRecurrentConfig, PictureTransformerConfig
from bert.data.encoded_examples import join
from bert.data.encoded_pictures import EncodedPictures
from bert.data.sequence_pairs import EncodedPairs
from bert.errors import InputError
from bert.model.decoders import words_before
from bert.model.teacher_forcing import TeacherForced

TINY = {"vocab_size": 11, "hidden_size": 16, "num_layers": 1, "num_heads": 2, "intermediate_size": 16,
        "initializer_range": 0.3, "height": 8, "width": 12, "patch_size": 4}  # fmt: skip
RECURRENT = {"vocab_size": 11, "embedding_size": 8, "hidden_size": 16, "decoder_size": 24, "output_size": 8,
             "attention_size": 8, "initializer_range": 0.5, "height": 8, "width": 12, "patch_size": 4}  # fmt: skip
CONFIGS: dict[str, Any] = {
    "convolutions": PictureTransformerConfig(**TINY),
    "more convolutions": PictureTransformerConfig(**TINY, cell_layers=1),
    "patches": PictureTransformerConfig(**TINY, cells="patches", cell_positions="sinusoidal", norm="pre"),
    "linear": PictureTransformerConfig(**TINY, cells="linear", cell_positions="none"),
    "bilinear": PictureRecurrentConfig(**RECURRENT, score="bilinear", output="linear", reset="after"),
    "additive": PictureRecurrentConfig(**RECURRENT, cell="lstm", tied=False),
}
TARGETS = [[4, 4, 2], [5, 9, 6, 7, 2]]
PICTURES = np.random.default_rng(0).integers(0, 256, (2, 8, 12, 3), np.uint8)


def batch_of(pictures=PICTURES, targets=TARGETS, length: int = 5) -> dict[str, np.ndarray]:
    encoded = EncodedPictures(list(pictures), 4, 127.0, 70.0)
    pairs = EncodedPairs(encoded, join([(ids, len(ids)) for ids in targets]))
    return pairs.assembled([np.array([0]), np.array([1])], length, 2, 1)


@functools.cache
def drawn(config):
    """Parameters of the encoder-decoder."""
    return jax.jit(TeacherForced(config).init)(jax.random.key(0), batch_of())["params"]["encoder"]


def call(config, params, *inputs, method):
    return architectures.build(config).apply({"params": params}, *inputs, method=method)


def states(config, params, batch):
    return call(config, params, call(config, params, batch, method="memory"), batch, method="teacher_forced")


@pytest.mark.parametrize("name", CONFIGS)
def test_steps_with_a_cache_equal_one_pass(name):
    """Two hypotheses a picture, of which the first is the target; and the weights sum to 1 over the 2 x 3 cells."""
    config, batch = CONFIGS[name], batch_of()
    words_BU = np.asarray(words_before(batch, config.start_id))

    @jax.jit
    def whole(params):
        memory = call(config, params, batch, method="memory")
        state = call(config, params, memory, 4, 5, method="begin")
        weights = call(config, params, memory, batch, method="attention")
        return states(config, params, batch), state, weights

    hidden_BUD, state, weights_BAUS = whole(drawn(config))
    step = jax.jit(functools.partial(call, config, method="step"))
    for u in range(5):
        ids_R = np.stack([words_BU[:, u], words_BU[::-1, u]], axis=1).reshape(-1)
        hidden_RD, state = step(drawn(config), state, ids_R, u)
        for row, target in enumerate(TARGETS):
            if u < len(target):
                np.testing.assert_allclose(hidden_RD[2 * row], hidden_BUD[row, u], rtol=0, atol=1e-5)
    assert weights_BAUS.shape == (2, 1 if name in ("bilinear", "additive") else 2, 5, 6)
    np.testing.assert_allclose(weights_BAUS[1].sum(-1), 1, atol=1e-6)
    assert np.ptp(weights_BAUS[1], axis=-1).max() > 1e-3


@pytest.mark.parametrize(("name", "before", "after"), [("convolutions", 3, 0), ("more convolutions", 7, 4)])
def test_a_cell_sees_its_patch_and_some_pixels_around_it(name, before, after):
    """The Jacobian of the states by the patches, of convolutions down to 4 x 4 pixels a cell, in both directions."""
    config, batch = CONFIGS[name], batch_of()
    weights_D = jnp.array(np.random.default_rng(0).standard_normal(16))

    def cells(patches_BSK):
        memory = call(config, drawn(config), batch | {"patches": patches_BSK}, method="memory")
        return memory.hidden_BSD[0] @ weights_D

    seen = np.abs(jax.jit(jax.jacobian(cells))(jnp.array(batch["patches"]))[:, 0]).reshape(2, 3, 2, 3, 4, 4, 3)
    seen_XYXY = seen.sum(-1).swapaxes(3, 4).reshape(2, 3, 8, 12) > 0
    for x in range(2):
        for y in range(3):
            expected = np.zeros((8, 12), bool)
            expected[max(0, 4 * x - before) : 4 * x + 4 + after, max(0, 4 * y - before) : 4 * y + 4 + after] = True
            np.testing.assert_array_equal(seen_XYXY[x, y], expected)


def changed(config, other_pictures) -> float:
    """The largest difference that other pictures make to what the words are scored by."""
    run = jax.jit(functools.partial(states, config))
    one, other = (np.asarray(run(drawn(config), batch_of(pictures))) for pictures in (PICTURES, other_pictures))
    return float(np.abs(one - other)[batch_of()["target_example_ids"] > 0].max())


def test_cells_without_places_may_change_their_order():
    """The picture's right third on its left: nothing changes without places, and much with them."""
    moved = np.roll(PICTURES, 4, axis=2)
    placed = PictureTransformerConfig(**TINY, cells="linear")
    assert changed(CONFIGS["linear"], moved) < 1e-5
    assert changed(placed, moved) > 1e-2
    assert changed(PictureTransformerConfig(**TINY, cells="linear", cell_positions="none", reads="mean"), moved) < 1e-5


def test_a_recurrent_decoder_knows_no_order_of_cells():
    """S1's model: cells that change places with what they hold change nothing; another picture does."""
    sizes = RECURRENT | {"cells": "linear", "cell_positions": "none", "score": "bilinear"}
    assert changed(PictureRecurrentConfig(**sizes), np.roll(PICTURES, 4, axis=2)) < 1e-5
    assert changed(PictureRecurrentConfig(**sizes), PICTURES[::-1]) > 1e-2


def test_a_decoder_without_the_picture_reads_nothing_of_it():
    assert changed(PictureTransformerConfig(**TINY, reads="none"), PICTURES[::-1]) == 0
    assert changed(PictureTransformerConfig(**TINY, reads="mean"), PICTURES[::-1]) > 1e-2


@pytest.mark.parametrize("name", ["linear", "additive", "bilinear"])
def test_words_that_are_dropped_are_start_tokens_in_training_alone(name):
    """Where nearly all are dropped, other words before change nothing; the first word reads the start token anyway."""
    config = dataclasses.replace(CONFIGS[name], word_dropout=1 - 1e-9, hidden_dropout=0.0)
    params, one, other = drawn(CONFIGS[name]), batch_of(), batch_of(targets=[[8, 9, 2], [3, 3, 3, 3, 2]])

    @functools.partial(jax.jit, static_argnames="train")
    def run(batch, train):
        module, variables = architectures.build(config), {"params": params}
        memory = module.apply(variables, batch, method="memory")
        key = {"dropout": jax.random.key(0)}
        return module.apply(variables, memory, batch, train=train, rngs=key, method="teacher_forced")

    def difference(train):
        return np.abs(run(one, train=train) - run(other, train=train))[:, 1:3].max()

    assert difference(train=True) == 0
    assert difference(train=False) > 1e-3
    same = jax.jit(functools.partial(states, CONFIGS[name]))(params, one)
    np.testing.assert_allclose(run(one, train=False), same, rtol=0, atol=1e-5)


def test_a_configuration_comes_back_and_needs_a_tokenizer():
    config = PictureTransformerConfig(**TINY, cells="patches", reads="mean")
    assert architectures.config_from_json(config.to_json()) == config
    assert architectures.has_tokenizer(config)
    assert architectures.inputs_of(config) == {"patches": (48,)}
    with pytest.raises(InputError, match=r"packed is True.*one example"):
        architectures.check_packing(config, True)
    with pytest.raises(InputError, match=r"pictures with captions.*captioning"):
        architectures.check_objective(config, "mlm")


@pytest.mark.parametrize(("values", "said"), [
    ({"patch_size": 3}, "8 x 12 pixels, no multiple of patch_size 3"),
    ({"patch_size": 1}, "patch_size is 1; with cells='convolutions' .*power of 2.*linear"),
    ({"cells": "resnet"}, "cells is 'resnet'"),
    ({"cells": "linear", "cell_layers": 1}, "cell_layers is 1, but cells is 'linear'"),
    ({"word_dropout": 1.0}, "word_dropout is 1.0"),
    ({"reads": "all"}, "reads is 'all'"),
    ({"hidden_size": 18, "cell_positions": "sinusoidal"}, "hidden_size is 18; with sinusoidal .*multiple of 4"),
])  # fmt: skip
def test_what_does_not_go_together_is_refused(values, said):
    with pytest.raises(InputError, match=said):
        PictureTransformerConfig(**TINY | values)


def test_recurrent_decoders_have_attention_but_no_blocks():
    with pytest.raises(InputError, match=r"cells is 'patches'.*convolutions"):
        PictureRecurrentConfig(**RECURRENT, cells="patches")
    with pytest.raises(InputError, match=r"score is 'none'.*reads='mean'"):
        PictureRecurrentConfig(**RECURRENT, score="none")
