"""Patches hold the pixels of their square, row by row, behind [CLS]."""

import numpy as np

from bert.data import encoded_pictures


def test_a_patch_is_the_square_at_its_place():
    picture = np.random.default_rng(0).random((2, 6, 4, 3), np.float32)
    patches_NTK = encoded_pictures.patches(picture, 2)
    assert patches_NTK.shape == (2, 6, 12)
    for row, column in np.ndindex(3, 2):
        square = picture[:, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2]
        np.testing.assert_array_equal(patches_NTK[:, 2 * row + column], square.reshape(2, -1))


def test_each_picture_is_an_example_of_cls_and_its_patches():
    picture = np.arange(32, dtype=np.float32).reshape(2, 4, 4, 1)
    encoded = encoded_pictures.encode(picture, 2, targets=np.eye(2))
    assert len(encoded) == 2
    assert encoded.length_N.tolist() == encoded.a_length_N.tolist() == [5, 5]
    np.testing.assert_array_equal(encoded.of_token["patches"][5:], [[0] * 4, *encoded_pictures.patches(picture, 2)[1]])
