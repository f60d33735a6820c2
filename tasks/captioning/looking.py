"""How much of a noun's attention lies inside the box of its object, where boxes are known, as those of drawn scenes.

Axes: U piece of a caption, X row of cells, Y column.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tasks.captioning.scenes import Thing
from tasks.metrics.score import Score

NAMES = ("box_attention", "box_share")


def last_maps(config: Any) -> int:
    """How many maps the last layer that reads the picture has: its heads."""
    return int(getattr(config, "num_heads", 1))


def scores(
    things: Sequence[Sequence[Thing]], maps: Sequence[np.ndarray], words: Sequence[Sequence[int]], patch_size: int
) -> dict[str, Score]:
    """box_attention, the mean share of a noun's attention that lies in its object's box, and box_share, the mean share
    of the picture that the boxes take, which is what even attention gives.

    A cell's weight is spread evenly over its pixels. ``maps``: float [U, X, Y] of each caption, the attention of the
    state that predicts each piece; ``words``: the word of each piece.
    """
    inside, areas = list[float](), list[float]()
    for of_picture, map_UXY, word_U in zip(things, maps, words, strict=True):
        for thing in of_picture:
            share_XY = cells_inside(thing.box, map_UXY.shape[1:], patch_size)
            map_XY = map_UXY[np.flatnonzero(np.asarray(word_U) == thing.word)].mean(0)
            inside.append(float((map_XY * share_XY).sum()))
            areas.append(float(share_XY.mean()))
    means = {"box_attention": inside, "box_share": areas}
    return {name: Score(float(np.mean(values)) if values else None) for name, values in means.items()}


def cells_inside(box: tuple[int, int, int, int], grid: Sequence[int], patch_size: int) -> np.ndarray:
    """[X, Y]: the share of each cell's pixels that lies in a box."""
    first_X, first_Y, end_X, end_Y = box

    def along(first: int, end: int, cells: int) -> np.ndarray:
        starts = np.arange(cells) * patch_size
        overlap: np.ndarray = np.minimum(end, starts + patch_size) - np.maximum(first, starts)
        return overlap.clip(0) / patch_size

    return np.outer(along(first_X, end_X, grid[0]), along(first_Y, end_Y, grid[1]))
