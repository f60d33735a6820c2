"""The share of a noun's attention inside the box of its object."""

import numpy as np

from tasks.captioning import looking
from tasks.captioning.scenes import Thing


def test_a_cell_counts_by_the_share_of_its_pixels():
    """Boxes of a picture of 8 x 8 pixels in cells of 4: one cell whole, and half of the one to its right."""
    np.testing.assert_allclose(looking.cells_inside((0, 0, 4, 6), (2, 2), 4), [[1, 0.5], [0, 0]])
    np.testing.assert_allclose(looking.cells_inside((0, 0, 8, 8), (2, 2), 4), 1)
    np.testing.assert_allclose(looking.cells_inside((5, 5, 6, 7), (2, 2), 4), [[0, 0], [0, 2 / 16]])


def test_nouns_are_scored_at_their_own_words():
    """Pieces 1 and 2 are the noun, whose map is their mean; even attention gives the area."""
    thing = Thing("big", "red", "circle", (0, 0, 4, 6), word=1)
    maps_UXY = np.array([[[0, 0], [0, 1]], [[1, 0], [0, 0]], [[0, 1], [0, 0]], [[0, 0], [1, 0]]], float)
    found = looking.scores([[thing]], [maps_UXY], [[0, 1, 1, 2]], 4)
    assert found["box_attention"].value == 0.75
    assert found["box_share"].value == 0.375
    even = looking.scores([[thing]], [np.full((4, 2, 2), 0.25)], [[0, 1, 1, 2]], 4)
    assert even["box_attention"].value == even["box_share"].value
    assert looking.scores([[]], [maps_UXY], [[0]], 4)["box_attention"].value is None
