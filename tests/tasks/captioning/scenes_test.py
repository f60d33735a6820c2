"""Drawn scenes: captions say what is there, boxes hold their pixels, held-out pairs stay apart."""

import itertools

import numpy as np
import pytest

from bert.errors import InputError
from tasks.captioning import scenes
from tasks.captioning.scenes import COLOURS, HELD_OUT, SHAPES, SIZES


def test_a_scene_is_a_function_of_its_part_and_number():
    one, again, other = scenes.scene("train", 7), scenes.scene("train", 7), scenes.scene("test", 7)
    np.testing.assert_array_equal(one.picture, again.picture)
    assert one[1:] == again[1:]
    assert one.picture.dtype == np.uint8
    assert one.picture.shape == (64, 64, 3)
    assert (one.picture != other.picture).any()


def test_boxes_hold_all_pixels_of_their_objects_and_no_more():
    """Objects are brighter than the ground; what lies outside of all boxes is ground, and each edge has a pixel."""
    for scene in scenes.scenes("train", 40):
        bright_XY = scene.picture.max(-1) > 130
        inside_XY = np.zeros((64, 64), bool)
        for thing in scene.things:
            first_X, first_Y, end_X, end_Y = thing.box
            part_XY = bright_XY[first_X:end_X, first_Y:end_Y]
            assert all(edge.any() for edge in (part_XY[0], part_XY[-1], part_XY[:, 0], part_XY[:, -1]))
            assert max(part_XY.shape) <= SIZES[thing.size]
            inside_XY[first_X:end_X, first_Y:end_Y] = True
        assert not bright_XY[~inside_XY].any()


def test_captions_say_what_is_there_and_how_it_stands():
    seen = set()
    for scene in scenes.scenes("train", 300):
        words = scene.caption.split()
        assert [words[thing.word - 3 : thing.word + 1] for thing in scene.things] == [
            ["a", thing.size, thing.colour, thing.shape] for thing in scene.things
        ]
        for one, other in itertools.pairwise(scene.things):
            relation = " ".join(words[one.word + 1 : other.word - 3])
            down, right = (np.add(other.box[:2], other.box[2:]) - np.add(one.box[:2], one.box[2:])) / 2
            sign = {"above": down, "below": -down, "left of": right, "right of": -right}[relation]
            seen.add(relation)
            assert sign > 0
        sizes = [thing.size == "big" for thing in scene.things]
        assert sizes == sorted(sizes)
    assert seen == {"above", "below", "left of", "right of"}


def test_held_out_pairs_are_in_one_part_only():
    """Each object of the part without them is another pair; each scene of the part has one."""
    pairs = {part: [[(t.colour, t.shape) for t in scene.things] for scene in scenes.scenes(part, 150)]
             for part in ("train", "held-out")}  # fmt: skip
    seen = set(itertools.chain(*pairs["train"]))
    assert not seen & set(HELD_OUT)
    assert seen == set(itertools.product(COLOURS, SHAPES)) - set(HELD_OUT)
    assert all(len(set(of_scene) & set(HELD_OUT)) == 1 for of_scene in pairs["held-out"])
    # Each colour and each shape alone is known.
    assert {colour for colour, _ in seen} == set(COLOURS)
    assert {shape for _, shape in seen} == set(SHAPES)


def test_names_of_parts():
    assert scenes.named("scenes") == ("train", 20_000)
    assert scenes.named("scenes:held-out") == ("held-out", 1_000)
    assert scenes.named("scenes:test:5") == ("test", 5)
    for name in ("scenes:all", "scenes:test:five"):
        with pytest.raises(InputError, match=rf"{name}: .*held-out"):
            scenes.named(name)
    with pytest.raises(InputError, match=r"scenes:test:0 is 0"):
        scenes.named("scenes:test:0")
