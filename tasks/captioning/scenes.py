"""Draws scenes of one to three objects with a caption and the box of each; NumPy alone, a pure function of the seed.

An object is a shape in a colour and a size. A caption names the small objects before the big ones, those of one size
from the upper left to the lower right, and how each stands to the next: "a small red circle left of a big blue square".
So a scene has one right caption. Some pairs of colour and shape are held out: only scenes of the part "held-out" have
them, an object each.
Axes: X row, Y column, C channel.
"""

import functools
import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from bert.errors import InputError, check_range

SIDE = 64  # pixels of a picture's side
SLOTS = 3  # objects stand in a square of so many places a side
SHAPES = ("circle", "square", "triangle", "diamond", "cross")
COLOURS = {
    "red": (220, 40, 40), "green": (40, 190, 70), "blue": (60, 90, 240), "yellow": (235, 220, 50),
    "purple": (170, 60, 200), "white": (235, 235, 235),
}  # fmt: skip
SIZES = {"small": 10, "big": 18}  # pixels of a side
HELD_OUT = tuple((colour, SHAPES[i % len(SHAPES)]) for i, colour in enumerate(COLOURS))
PARTS = {"train": 20_000, "validation": 1_000, "test": 1_000, "held-out": 1_000}  # part -> scenes
_PLACES = [(x, y) for x in range(SLOTS) for y in range(SLOTS)]


class Thing(NamedTuple):
    """An object of a scene; ``word``: the number of its noun, from 0, among the caption's words."""

    size: str
    colour: str
    shape: str
    box: tuple[int, int, int, int]  # first row, first column, and those behind the last, of its pixels
    word: int


class Scene(NamedTuple):
    """A picture, uint8 [X, Y, C], its caption, and its objects in the order of the caption."""

    picture: np.ndarray
    caption: str
    things: tuple[Thing, ...]


def scenes(part: str, count: int) -> Iterator[Scene]:
    """The first scenes of a part."""
    return (scene(part, number) for number in range(count))


def named(data: str) -> tuple[str, int]:
    """(part, number of scenes) of "scenes", "scenes:PART" or "scenes:PART:COUNT". Raises InputError for another."""
    _, _, rest = data.partition(":")
    part, _, count = rest.partition(":")
    part = part or "train"
    if part not in PARTS or (count and not count.isdecimal()):
        raise InputError(f"{data}: must be scenes:PART or scenes:PART:COUNT, with a PART of {', '.join(PARTS)}")
    scenes_of = int(count) if count else PARTS[part]
    check_range(f"the number of scenes in {data}", scenes_of, at_least=1)
    return part, scenes_of


def scene(part: str, number: int) -> Scene:
    """Scene ``number``, from 0, of a part of `PARTS`."""
    rng = np.random.default_rng((list(PARTS).index(part), number))
    count = int(rng.integers(1, 4))
    kinds = [_kind(rng, held_out=part == "held-out" and i == 0) for i in range(count)]
    while True:
        places = [_PLACES[i] for i in rng.choice(len(_PLACES), count, replace=False)]
        order = sorted(range(count), key=lambda i: (kinds[i][0] == "big", places[i]))
        placed = [(*kinds[i], *places[i]) for i in order]
        if all(_relation(a[3:], b[3:]) for a, b in itertools.pairwise(placed)):
            break
    picture = rng.normal(rng.integers(0, 60), 6, (SIDE, SIDE, 1)).repeat(3, -1)
    words, things = list[str](), list[Thing]()
    for i, (size, colour, shape, x, y) in enumerate(placed):
        if i:
            words += (_relation(placed[i - 1][3:], (x, y)) or "").split()
        words += ["a", size, colour, shape]
        things.append(Thing(size, colour, shape, _draw(rng, picture, size, colour, shape, x, y), len(words) - 1))
    return Scene(picture.clip(0, 255).astype(np.uint8), " ".join(words), tuple(things))


def _kind(rng: np.random.Generator, held_out: bool) -> tuple[str, str, str]:
    """Size, colour and shape."""
    size = list(SIZES)[rng.integers(len(SIZES))]
    while True:
        pair = (list(COLOURS)[rng.integers(len(COLOURS))], SHAPES[rng.integers(len(SHAPES))])
        if (pair in HELD_OUT) == held_out:
            return (size, *pair)


def _relation(one: tuple[int, int], other: tuple[int, int]) -> str | None:
    """How the first place stands to the other; None where they differ as much in both directions."""
    down, right = other[0] - one[0], other[1] - one[1]
    if abs(down) == abs(right):
        return None
    if abs(right) > abs(down):
        return "left of" if right > 0 else "right of"
    return "above" if down > 0 else "below"


def _draw(
    rng: np.random.Generator, picture: np.ndarray, size: str, colour: str, shape: str, x: int, y: int
) -> tuple[int, int, int, int]:
    """Draws an object somewhere in a place, and returns the box of its pixels."""
    side, room = SIZES[size], SIDE // SLOTS
    first_X, first_Y = (room * place + rng.integers(0, room - side + 1) for place in (x, y))
    mask = _mask(shape, side)
    shade = np.array(COLOURS[colour]) + rng.normal(0, 8, 3)
    inside = picture[first_X : first_X + side, first_Y : first_Y + side]
    inside[mask] = shade + rng.normal(0, 6, (int(mask.sum()), 1))
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    box = (first_X + rows[0], first_Y + columns[0], first_X + rows[-1] + 1, first_Y + columns[-1] + 1)
    return tuple(map(int, box))  # type: ignore[return-value]


@functools.cache
def _mask(shape: str, side: int) -> np.ndarray:
    """bool [side, side]: the pixels of a shape."""
    at = (np.arange(side) + 0.5) / side * 2 - 1  # centres of pixels, -1 to 1
    x, y = np.meshgrid(at, at, indexing="ij")
    masks = {
        "circle": x**2 + y**2 <= 1,
        "square": np.maximum(abs(x), abs(y)) <= 0.85,
        "triangle": 2 * abs(y) <= x + 1,
        "diamond": abs(x) + abs(y) <= 1,
        "cross": np.minimum(abs(x), abs(y)) <= 0.32,
    }
    return masks[shape]
