"""Patches hold the pixels of their square, row by row, behind [CLS]."""

import numpy as np

from bert.data import encoded_pictures
from bert.data.encoded_examples import join
from bert.data.sequence_pairs import EncodedPairs


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


def test_pictures_as_sources_have_rows_of_their_own():
    """Each with its own target, whatever the length of that; scaled, without [CLS], and nothing in empty rows."""
    pictures = np.arange(3 * 4 * 6 * 1, dtype=np.uint8).reshape(3, 4, 6, 1)
    source = encoded_pictures.EncodedPictures(list(pictures), 2, mean=10.0, deviation=2.0)
    pairs = EncodedPairs(source, join([(ids, len(ids)) for ids in ([4, 2], [5, 6, 2], [7, 7, 7, 2])]))
    assert pairs.length_N.tolist() == [2, 3, 4]
    batch = pairs.take([2, 0]).assembled([np.array([1]), np.array([0])], 5, 3, 1)
    scaled_NSK = encoded_pictures.patches((pictures - np.float32(10)) / np.float32(2), 2)
    np.testing.assert_array_equal(batch["patches"][:2], scaled_NSK[[0, 2]])
    np.testing.assert_array_equal(batch["target_ids"][:2], [[4, 2, 0, 0, 0], [7, 7, 7, 2, 0]])
    np.testing.assert_array_equal(batch["example_ids"], [[1] * 6, [1] * 6, [0] * 6])
    np.testing.assert_array_equal(batch["position_ids"][1], range(6))
    assert not batch["patches"][2].any()
    assert batch["patches"].dtype == np.float32
