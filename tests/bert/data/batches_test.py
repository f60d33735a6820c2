"""Batch i depends on nothing but (store, settings, i), and no row is lost, repeated or left out."""

import dataclasses
import itertools
import json
import math
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from bert.data.batches import Batches, BatchSettings, EvaluationBatches
from bert.errors import InputError
from bert.store.manifest import sealed
from bert.store.reader import Store

CHECKOUT = pathlib.Path(__file__).resolve().parents[3]
SETTINGS = BatchSettings(batch_size=6, max_length=64, packed=False, seed=5)
PACKED = dataclasses.replace(SETTINGS, packed=True)
change = dataclasses.replace


def stack(batches):
    """The batches as one."""
    batches = list(batches)
    return {key: np.concatenate([batch[key] for batch in batches]) for key in batches[0]}


def equal(one, other):
    assert one.keys() == other.keys()
    for key in one:
        assert one[key].dtype == other[key].dtype
        np.testing.assert_array_equal(one[key], other[key], err_msg=key)


@pytest.mark.parametrize("whole_words", [False, True])
def test_packing_and_batch_size_change_no_example(store, one_epoch, examples_of, whole_words):
    """The examples of an epoch, masks included, are the same packed or not, in any batch size."""
    kinds = (SETTINGS, PACKED, change(PACKED, max_examples=3, batch_size=17), change(SETTINGS, batch_size=1))
    sets = [sorted(map(repr, examples_of(one_epoch(store, change(kind, whole_words=whole_words))))) for kind in kinds]
    for other in sets[1:]:
        assert sets[0] == other
    assert len(one_epoch(store, PACKED)["token_ids"]) < 0.8 * len(sets[0])


@pytest.mark.parametrize("settings", [SETTINGS, PACKED])
def test_all_but_padding_belongs_to_an_example(store, settings):
    """In every row, also the empty ones of the last batch, just the places that are not [PAD] have an example."""
    for batches in (Batches(store, settings), EvaluationBatches(store, change(settings, batch_size=100))):
        rows = stack(batches(i) for i in range(len(batches) if isinstance(batches, EvaluationBatches) else 20))
        tokens_B = (rows["token_ids"] != store.tokenizer.pad_id).sum(axis=1)
        np.testing.assert_array_equal((rows["example_ids"] > 0).sum(axis=1), tokens_B)
        assert 0 < tokens_B.max() <= 64


PLAN = """
import sys
from bert.data.batches import Batches, BatchSettings, EvaluationBatches
from bert.store.reader import Store
store = Store.open(sys.argv[1])
settings = BatchSettings(batch_size=4, max_length=64)
Batches(store, settings)(0), EvaluationBatches(store, settings)(0)
print([name for name in ("jax", "jaxlib", "torch") if name in sys.modules])
"""


def test_planning_and_batches_touch_no_device(store):
    """Plans, shuffles and masks of all sizes stay in the host's memory: JAX is not even imported."""
    program = [sys.executable, "-c", PLAN, str(store.directory)]
    done = subprocess.run(program, capture_output=True, text=True, check=True, cwd=CHECKOUT)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("settings", [SETTINGS, PACKED])
def test_a_batch_alone_equals_the_batch_in_sequence(store, settings):
    """Batch i of a fresh object, or asked for twice, is the one of the sequence, over epoch boundaries too."""
    settings = change(settings, batch_size=50)
    batches = Batches(store, settings)
    in_sequence = [batches(i) for i in range(int(2.5 * batches.steps_per_epoch))]
    for i in (len(in_sequence) - 1, 0, len(in_sequence) // 2):
        equal(Batches(store, settings)(i), in_sequence[i])
    for i in reversed(range(len(in_sequence))):
        equal(batches(i), in_sequence[i])


@pytest.mark.parametrize("settings", [SETTINGS, PACKED])
def test_hosts_rows_make_up_the_global_batch(store, settings):
    """Slices of rows, in any split, concatenate to the batch, where an epoch ends inside it as well."""
    settings = change(settings, batch_size=12)
    batches = Batches(store, settings)
    for i in (0, 1, int(batches.steps_per_epoch)):
        for bounds in ([0, 3, 6, 9, 12], [0, 1, 12], [0, 0, 7, 12]):
            parts = [batches(i, slice(low, high)) for low, high in itertools.pairwise(bounds)]
            equal(stack(parts), batches(i))
    with pytest.raises(ValueError, match="step 1"):
        batches(0, slice(0, 12, 2))


def test_epochs_follow_each_other_without_a_gap(store, examples_of):
    """The stream of two epochs holds all tokens of the store twice, and no row is empty, dropped or repeated."""
    batches = Batches(store, PACKED)
    steps = int(2 * batches.steps_per_epoch) + 3
    rows = stack(batches(i) for i in range(steps))
    assert (rows["example_ids"].max(axis=1) > 0).all()
    tokens = np.concatenate([shard.tokens for shard in store.shards])
    counts, wanted = np.zeros(600, int), 2 * np.bincount(tokens, minlength=600)
    for example in examples_of(rows):
        text = [token for token in example.text if token > 3 or token == 1]
        before = counts.copy()
        counts += np.bincount(text, minlength=600)
        if before.sum() == wanted.sum():
            break
    np.testing.assert_array_equal(before, wanted)


def test_epochs_differ(store, examples_of):
    """Second epoch: other order; the same text again has other masks in over 95 % of the cases."""
    batches = Batches(store, change(SETTINGS, objective="none", short_probability=0.0, max_length=512, batch_size=10))
    rows = stack(batches(i) for i in range(math.ceil(2 * batches.steps_per_epoch)))
    found = examples_of(rows)
    first, second = (found[n * batches.report.rows :][: batches.report.rows] for n in range(2))
    assert [example.text for example in first] != [example.text for example in second]
    masks = {example.text: example.masked for example in first}
    pairs = [
        (masks[example.text], example.masked) for example in second if len(example.text) > 60 and example.text in masks
    ]
    assert len(pairs) > 100
    assert np.mean([one != other for one, other in pairs]) > 0.95


def test_epochs_cut_and_pair_the_text_anew(store, examples_of):
    """Few examples of the second epoch hold the same text as one of the first."""
    batches = Batches(store, SETTINGS)
    found = [example.text for i in range(math.ceil(2 * batches.steps_per_epoch)) for example in examples_of(batches(i))]
    first, second = set(found[: batches.report.rows]), found[batches.report.rows :]
    assert np.mean([text in first for text in second]) < 0.5


def test_rows_are_shuffled(store, one_epoch):
    """Neighbouring rows come from all over the text, and not by length."""
    rows = one_epoch(store, SETTINGS)
    lengths = (rows["example_ids"] > 0).sum(axis=1)
    assert abs(np.corrcoef(lengths[1:], lengths[:-1])[0, 1]) < 0.15


def test_seeds(store):
    """Same seed: the same bytes. Another seed: another batch, in another order even where the examples are the same."""
    one, again, other = (Batches(store, change(PACKED, seed=seed))(0) for seed in (1, 1, 2))
    equal(one, again)
    assert (one["token_ids"] != other["token_ids"]).mean() > 0.5
    whole = change(SETTINGS, objective="none", max_length=4096, short_probability=0.0)
    one, other = (Batches(store, change(whole, seed=seed))(0) for seed in (1, 2))
    assert (one["example_ids"].sum(axis=1) != other["example_ids"].sum(axis=1)).any()


@pytest.mark.parametrize("settings", [SETTINGS, PACKED])
def test_evaluation_shows_each_row_once(store, examples_of, settings):
    """Every row in one batch, the last filled with empty rows; the same examples and masks in any batch size."""
    sets = []
    for batch_size in (1, 7, 1000):
        batches = EvaluationBatches(store, change(settings, batch_size=batch_size))
        assert len(batches) == -(-batches.report.rows // batch_size)
        rows = stack(batches(i) for i in range(len(batches)))
        assert len(rows["token_ids"]) == len(batches) * batch_size
        empty = rows["example_ids"].max(axis=1) == 0
        assert empty.sum() == len(batches) * batch_size - batches.report.rows
        assert not rows["masked_weights"][empty].any()
        assert not rows["next_sentence_weights"][empty].any()
        assert not rows["token_ids"][empty].any()
        sets.append([example for example in examples_of(rows)])
        halves = [batches(len(batches) - 1, part) for part in (slice(0, batch_size // 2), slice(batch_size // 2, None))]
        equal(stack(halves), batches(len(batches) - 1))
        with pytest.raises(IndexError):
            batches(len(batches))
    assert sets[0] == sets[1] == sets[2]
    assert sum(len(example.text) for example in sets[0]) == batches.report.tokens


def test_evaluation_of_one_document_has_no_pair_labels(make_store):
    """Text held out may be one document: masked words are scored, pairs are not."""
    store = make_store([[[6, 7, 8, 9]] * 9])
    batches = EvaluationBatches(store, SETTINGS)
    assert batches(0)["masked_weights"].any()
    assert not batches(0)["next_sentence_weights"].any()


def test_the_report_counts_what_the_rows_hold(store, one_epoch):
    """Steps an epoch and tokens are those of the rows that come out."""
    batches, rows = Batches(store, SETTINGS), one_epoch(store, SETTINGS)
    assert batches.steps_per_epoch == len(rows["token_ids"]) / SETTINGS.batch_size
    assert batches.report.tokens == (rows["example_ids"] > 0).sum()


def test_a_tiny_corpus_fills_a_large_batch(make_store):
    """One sentence: batches of 8 rows are 8 epochs of it, each with its own masks."""
    store = make_store([[list(range(6, 40))]])
    settings = BatchSettings(batch_size=8, max_length=512, objective="none", short_probability=0)
    batch = Batches(store, settings)(3)
    assert (batch["example_ids"].max(axis=1) == 1).all()
    assert len({tuple(row) for row in batch["masked_positions"].tolist()}) > 4


def test_two_plans_are_kept_at_most(store):
    """Memory does not grow with the epochs."""
    batches = Batches(store, PACKED)
    for i in range(int(5 * batches.steps_per_epoch)):
        batches(i)
    assert len(batches._plans) <= 2


def test_bad_stores_are_refused(make_store):
    """No tokens, no second sentence, no second document: an error that names the cause and the way out."""
    none = change(SETTINGS, objective="none")
    for documents, settings, message in (
        ([], none, "no tokens"),
        ([[[6, 7]]] * 6, SETTINGS, "6 of 6 documents have one sentence"),
        ([[[6, 7], [8]]], SETTINGS, "NSP needs two such documents"),
    ):
        with pytest.raises(InputError, match=message):
            Batches(make_store(documents), settings)
    with pytest.raises(InputError, match="no tokens"):
        EvaluationBatches(make_store([]), SETTINGS)


def test_the_other_label_convention_is_refused(make_store):
    """Data prepared with 0 for random is not read as if 0 were is_next."""
    folder = make_store([[[6, 7], [8]]]).directory
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["labels"]["next_sentence"]["0"] == "is_next"
    manifest["labels"]["next_sentence"]["0"] = "random"
    (folder / "manifest.json").write_text(json.dumps(sealed(manifest)))
    with pytest.raises(InputError, match="labels"):
        Store.open(folder)
