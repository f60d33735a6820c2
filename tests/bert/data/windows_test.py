"""Windows over a long text: none of its tokens is skipped, and each has one window in which it counts."""

import numpy as np
import pytest

from bert.data.windows import owners, windows
from bert.errors import InputError


def test_a_step_is_from_start_to_start():
    """157 tokens with room for 114: what is in two windows is the room less the step."""
    assert windows(157, 114, 64) == [(0, 114), (64, 157)]
    assert windows(157, 114, 114) == [(0, 114), (114, 157)]
    assert windows(114, 114, 1) == [(0, 114)]
    assert windows(115, 114, 114) == [(0, 114), (114, 115)]
    assert windows(0, 114, 64) == [(0, 0)], "a text without tokens still gets its prediction"


@pytest.mark.parametrize("step", [115, 0, -1])
def test_a_step_that_would_skip_tokens_is_refused(step):
    with pytest.raises(InputError, match=f"^window step {step} .*1 to 114"):
        windows(157, 114, step)


@pytest.mark.parametrize("room", [0, -3])
def test_windows_without_room_are_refused(room):
    with pytest.raises(InputError, match=r"no room.*raise max_length$"):
        windows(157, room, 1)


def random_sizes(number: int):
    rng = np.random.default_rng(0)
    for _ in range(number):
        count, room = int(rng.integers(0, 90)), int(rng.integers(1, 40))
        yield count, room, int(rng.integers(1, room + 1))


def test_the_union_of_the_windows_is_every_token():
    """Of 500 random lengths, rooms and steps; and no window comes after one that ends with the text."""
    for count, room, step in random_sizes(500):
        found = windows(count, room, step)
        assert {place for start, end in found for place in range(start, end)} == set(range(count))
        assert [start for start, _ in found] == [step * i for i in range(len(found))]
        assert all(0 <= end - start <= room for start, end in found)
        assert [end == count for _, end in found] == [False] * (len(found) - 1) + [True]


def test_a_token_counts_where_its_nearer_edge_is_farthest_away():
    """Of the windows (0, 114) and (64, 157) the first has tokens 0 to 88: 88 is 25 from its last and 24 from 64."""
    np.testing.assert_array_equal(owners(157, windows(157, 114, 64)), np.arange(157) > 88)
    for count, room, step in random_sizes(500):
        spans = windows(count, room, step)
        context = [[min(place - start, end - 1 - place) for start, end in spans] for place in range(count)]
        want = [row.index(max(row)) for row in context]
        assert owners(count, spans).tolist() == want
        assert all(spans[w][0] <= place < spans[w][1] for place, w in enumerate(want))


def test_a_book_takes_no_memory_for_each_pair_of_window_and_token():
    """A million tokens in 31,000 windows: a table of all pairs would take 250 GB."""
    spans = windows(1_000_000, 64, 32)
    found = owners(1_000_000, spans)
    assert (np.diff(found) >= 0).all()
    assert found[-1] == len(spans) - 1
