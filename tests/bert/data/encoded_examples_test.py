"""Batches of encoded examples: each example once an epoch, whole, in its place, however the rows are made."""

import numpy as np
import pytest

from bert.data import encoded_examples
from bert.data.encoded_examples import EncodedExamples, ExampleSettings, TrainingBatches, prediction_batches
from bert.errors import InputError


@pytest.fixture(scope="module")
def encoded() -> EncodedExamples:
    """53 examples of 3 to 40 tokens; each token id tells its example, each target, too."""
    rng = np.random.default_rng(0)
    length_N = rng.integers(3, 41, 53)
    sequences = [([100 + i] * n, int(rng.integers(1, n + 1))) for i, n in enumerate(length_N)]
    return encoded_examples.join(
        sequences, targets=np.arange(53, dtype=np.float32)[:, None], target_weights=np.ones(53)
    )


def settings(**changes) -> ExampleSettings:
    return ExampleSettings(**({"batch_size": 8, "max_length": 64} | changes))


def members(batch, encoded) -> list[int]:
    """The examples in a batch, each checked to be there whole: tokens, segments, positions, [CLS] and target."""
    found = []
    for row in range(len(batch["token_ids"])):
        ids = batch["example_ids"][row]
        for slot in range(ids.max()):
            at = np.flatnonzero(ids == slot + 1)
            i = int(batch["token_ids"][row, at[0]]) - 100
            n, first = int(encoded.length_N[i]), int(encoded.a_length_N[i])
            np.testing.assert_array_equal(at, np.arange(at[0], at[0] + n))
            np.testing.assert_array_equal(batch["token_ids"][row, at], 100 + i)
            np.testing.assert_array_equal(batch["type_ids"][row, at], np.arange(n) >= first)
            np.testing.assert_array_equal(batch["position_ids"][row, at], np.arange(n))
            assert batch["cls_positions"][row, slot] == at[0]
            if "targets" in batch:
                assert (batch["targets"][row, slot], batch["target_weights"][row, slot]) == (i, 1)
            found.append(i)
    padding = batch["example_ids"] == 0
    for name in ("token_ids", "type_ids", "position_ids"):
        assert not batch[name][padding].any(), "padding is 0"
    return found


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("row_unit", [1, 8])
def test_an_epoch_has_each_example_once_in_an_order_of_its_own(encoded, packed, row_unit):
    batches = TrainingBatches(encoded, settings(packed=packed, row_unit=row_unit))
    assert batches.steps_per_epoch == 7
    epochs = []
    for epoch in range(2):
        made = [batches(epoch * 7 + i) for i in range(7)]
        held = [members(batch, encoded) for batch in made]
        assert [len(one) for one in held] == [8, 8, 8, 8, 8, 8, 5]
        assert sum(batch["target_weights"].sum() for batch in made) == 53
        assert all(len(batch["token_ids"]) % row_unit == 0 for batch in made)
        epochs.append([i for one in held for i in one])
        assert sorted(epochs[-1]) == list(range(53))
    assert epochs[0] != epochs[1]


def test_packing_changes_rows_and_not_which_examples_are_in_a_batch(encoded):
    packed, apart = (TrainingBatches(encoded, settings(packed=packed)) for packed in (True, False))
    for number in range(7):
        a, b = packed(number), apart(number)
        assert sorted(members(a, encoded)) == sorted(members(b, encoded))
        assert a["token_ids"].shape[0] < b["token_ids"].shape[0]


def test_a_batch_is_a_function_of_its_number(encoded):
    """In any order, from a fresh start, the same bits; another seed gives another order."""
    one, other = TrainingBatches(encoded, settings()), TrainingBatches(encoded, settings())
    first = one(9)
    other(3)
    for name, value in other(9).items():
        np.testing.assert_array_equal(value, first[name])
    assert members(TrainingBatches(encoded, settings(seed=1))(9), encoded) != members(first, encoded)


def of_lengths(length_N) -> EncodedExamples:
    return encoded_examples.join([([100 + i] * n, n) for i, n in enumerate(length_N)])


@pytest.mark.parametrize(
    "length_N",
    [
        np.random.default_rng(0).gamma(1.2, 9, 2017).astype(int).clip(3, 66),  # sentences
        np.random.default_rng(0).normal(53, 15, 2015).astype(int).clip(19, 103),  # pairs of sentences
    ],
)
def test_packed_rows_have_one_shape(length_N):
    """The train step compiles once: three epochs of batches of the same shape, hardly larger than the tokens need."""
    batches = TrainingBatches(of_lengths(length_N), settings(batch_size=32, max_length=128))
    shapes = {batches(i)["token_ids"].shape for i in range(3 * batches.steps_per_epoch)}
    assert len(shapes) == 1
    B, T = shapes.pop()
    tokens = 32 * length_N.mean()
    assert tokens > B * T / 1.2


def test_a_batch_that_needs_more_rows_than_the_first_ones_has_a_row_for_each_example():
    """Two examples of 16 tokens share a row of 32, but not with the one of 17, which is in one of 400 batches."""
    encoded = of_lengths([16] * 1599 + [17])
    batches = TrainingBatches(encoded, settings(batch_size=4, seed=1))
    made = [batches(i) for i in range(400)]
    assert sorted(batch["token_ids"].shape for batch in made) == [(2, 32)] * 399 + [(4, 32)]
    assert sorted(i for batch in made for i in members(batch, encoded)) == list(range(1600))
    assert [len(batch["token_ids"]) for batch in made[:64]] == [2] * 64, "choose a seed with which it comes later"


@pytest.mark.parametrize(("count", "batch_size"), [(60, 6), (64, 6), (65, 6), (5, 6), (6, 6), (7, 1), (0, 6)])
def test_a_batch_has_an_example_of_each_part_of_the_lengths(count, batch_size):
    """The shortest sixth gives one, the next sixth one, and so on; the last, smaller batch is spread as widely."""
    length_N = np.random.default_rng(0).permutation(count)
    order_N = encoded_examples.epoch_order(length_N, batch_size, 0)
    np.testing.assert_array_equal(np.sort(order_N), np.arange(count))
    full = count // batch_size
    rest = np.sort(length_N[order_N[full * batch_size :]])
    assert len(rest) < 2 or set(np.diff(rest)) <= {count // len(rest), count // len(rest) + 1}
    rank = np.searchsorted(np.delete(np.arange(count), rest), length_N[order_N[: full * batch_size]])
    for batch in rank.reshape(full, batch_size):
        np.testing.assert_array_equal(np.sort(batch) // max(full, 1), np.arange(batch_size))


def test_the_longest_example_is_where_the_others_are_short():
    """So the tokens of batches differ less than one example of each part would make them."""
    length_N = np.random.default_rng(0).gamma(1.2, 9, 3200).astype(int)
    tokens = length_N[encoded_examples.epoch_order(length_N, 32, 0)].reshape(-1, 32)
    longest = tokens.max(1)
    assert tokens.sum(1).std() < 0.8 * longest.std()
    assert np.corrcoef(longest, tokens.sum(1) - longest)[0, 1] < -0.8


def test_any_batch_may_hold_any_example():
    """Over many seeds, each example is in each batch and meets each of another part but the last equally often."""
    held, together = np.zeros((4, 24)), np.zeros((24, 24))
    for seed in range(1000):
        for batch, chosen in enumerate(encoded_examples.epoch_order(np.arange(24), 6, seed).reshape(4, 6)):
            held[batch, chosen] += 1
            together[np.ix_(chosen, chosen)] += 1
    assert np.abs(held / 1000 - 1 / 4).max() < 0.06
    part = np.arange(20) // 4
    assert np.abs(together[:20, :20][part[:, None] != part] / 1000 - 1 / 4).max() < 0.06


@pytest.mark.parametrize("batch_size", [1, 7, 32])
@pytest.mark.parametrize("packed", [True, False])
def test_predictions_are_asked_for_once_for_each_example(encoded, batch_size, packed):
    seen = []
    for batch, index_BE in prediction_batches(encoded, settings(batch_size=batch_size, packed=packed)):
        held = [int(i) for i in index_BE[index_BE >= 0]]
        assert sorted(members(batch, encoded)) == sorted(held)
        for row, slot in np.argwhere(index_BE >= 0):
            at = batch["cls_positions"][row, slot]
            assert batch["token_ids"][row, at] == 100 + index_BE[row, slot]
        seen += held
    assert sorted(seen) == list(range(53))


def test_nothing_to_predict_is_no_batch():
    assert list(prediction_batches(encoded_examples.join([]), settings())) == []


def test_arrays_of_tokens_lie_beside_their_tokens(encoded):
    """What is given for each token, such as its tag, moves with it."""
    tags = np.arange(len(encoded.token_ids), dtype=np.float32)
    batch = TrainingBatches(
        EncodedExamples(encoded.token_ids, encoded.starts, encoded.a_length_N, {}, {"tags": tags}), settings()
    )(0)
    for row, position in np.argwhere(batch["example_ids"] > 0):
        i = int(batch["token_ids"][row, position]) - 100
        assert batch["tags"][row, position] == encoded.starts[i] + batch["position_ids"][row, position]


def test_sizes_below_one_are_refused():
    for name in ("batch_size", "max_length", "row_unit"):
        with pytest.raises(InputError, match=f"{name} is 0; .* at least 1"):
            settings(**{name: 0})


@pytest.mark.parametrize("chosen", [[7, 2, 2, 52], np.array([0]), list(range(53))[::-1], []])
def test_chosen_examples_keep_all_that_is_theirs(encoded, chosen):
    """Tokens, segments and arrays, in the order asked for."""
    tags_K2 = np.arange(2 * len(encoded.token_ids)).reshape(-1, 2)
    whole = EncodedExamples(
        encoded.token_ids, encoded.starts, encoded.a_length_N, encoded.of_example, {"tags": tags_K2}
    )
    found = whole.take(chosen)
    assert len(found) == len(chosen)
    assert found.token_ids.dtype == encoded.token_ids.dtype
    np.testing.assert_array_equal(found.of_example["targets"][:, 0], chosen)
    for i, source in enumerate(chosen):
        at, there = slice(*found.starts[i : i + 2]), slice(*encoded.starts[source : source + 2])
        np.testing.assert_array_equal(found.token_ids[at], encoded.token_ids[there])
        np.testing.assert_array_equal(found.of_token["tags"][at], tags_K2[there])
        assert found.a_length_N[i] == encoded.a_length_N[source]
