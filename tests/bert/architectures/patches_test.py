"""The encoder of pictures: its sizes, and that neighbours in a row and padding change nothing."""

import jax
import numpy as np
import pytest

from bert import architectures
from bert.architectures.patches import PicturesConfig
from bert.data import encoded_examples, encoded_pictures
from bert.errors import InputError

SMALL = {"hidden_size": 8, "num_layers": 1, "num_heads": 2, "intermediate_size": 16, "initializer_range": 0.3}


def test_its_configuration_comes_back_from_json():
    config = PicturesConfig(height=6, width=4, channels=3, patch_size=2, positions="sinusoidal", **SMALL)
    assert (config.grid, config.max_length) == ((3, 2), 7)
    assert architectures.config_from_json(config.to_json()) == config
    assert architectures.inputs_of(config) == {"patches": (12,)}


@pytest.mark.parametrize(("fields", "said"), [
    ({"height": 7}, "pictures have 7 x 8 pixels, no multiple of patch_size 2"),
    ({"patch_size": 0}, "patch_size is 0; it must be a whole number, at least 1"),
    ({"positions": "rotary"}, "positions is 'rotary'; it must be one of learned, sinusoidal, none"),
    ({"positions": "sinusoidal", "hidden_size": 6, "num_heads": 1}, "hidden_size is 6.*multiple of 4"),
])  # fmt: skip
def test_sizes_that_do_not_fit_are_refused(fields, said):
    with pytest.raises(InputError, match=said):
        PicturesConfig(**SMALL | fields)


def test_a_picture_s_states_do_not_depend_on_its_neighbours_or_on_padding():
    """Alone in a row, behind another picture in it, and with padding; the pixels of another picture do matter."""
    config = PicturesConfig(height=4, width=4, **SMALL)
    encoder = architectures.build(config)
    encoded = encoded_pictures.encode(np.random.default_rng(0).standard_normal((3, 4, 4, 1)), config.patch_size)

    def batch(members, length, slots):
        return encoded_examples.assemble(encoded, [np.array(row) for row in members], length, len(members), slots)

    params = jax.jit(encoder.init)(jax.random.key(0), batch([[0]], 5, 1))
    run = jax.jit(lambda params, batch: encoder.apply(params, batch)["tokens"])
    alone, packed, padded = (
        np.asarray(run(params, batch(*how)))
        for how in (([[0], [1], [2]], 5, 1), ([[0, 1], [2]], 10, 2), ([[1], [2]], 9, 1))
    )
    np.testing.assert_allclose(packed[0, 5:], alone[1], atol=1e-5)
    np.testing.assert_allclose(packed[1, :5], alone[2], atol=1e-5)
    np.testing.assert_allclose(padded[:, :5], alone[1:], atol=1e-5)
    assert np.abs(alone[0, 0] - alone[1, 0]).max() > 0.01, "[CLS] has read the pixels"
