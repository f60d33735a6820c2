"""What stands in a batch: the contract of each key, and masks that keep their rules in any row."""

import collections
import dataclasses

import numpy as np
import pytest

from bert.data.batches import Batches, BatchSettings
from bert.tokenizer.wordpiece import WordPiece

SETTINGS = BatchSettings(batch_size=6, max_length=64, packed=False, seed=5)
PACKED = dataclasses.replace(SETTINGS, packed=True)
change = dataclasses.replace


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("whole_words", [False, True])
@pytest.mark.parametrize("objective", ["nsp", "sop", "none"])
def test_rows_hold_what_the_contract_says(store, one_epoch, examples_of, objective, packed, whole_words):
    """[CLS] A [SEP] B [SEP]; types, positions, padding and weights as documented; an epoch's text is the store's."""
    settings = change(SETTINGS, objective=objective, packed=packed, whole_words=whole_words)
    batch = one_epoch(store, settings)
    text = collections.Counter()
    for example in examples_of(batch):
        assert example.positions == tuple(range(len(example.text)))
        assert example.text[0] == 2
        assert example.text[-1] == 3
        separators = [place for place, token in enumerate(example.text) if token == 3]
        assert len(separators) in ((1,) if objective == "none" else (1, 2))
        assert example.types == tuple(int(place > separators[0]) for place in range(len(example.text)))
        assert (example.label >= 0) == (len(separators) == 2)
        text.update(token for token in example.text if token > 3 or token == 1)
    tokens = np.concatenate([shard.tokens for shard in store.shards])
    assert text == collections.Counter(tokens.tolist())
    padding = batch["example_ids"] == 0
    for key in ("token_ids", "type_ids", "position_ids"):
        assert not batch[key][padding].any()
    assert (batch["example_ids"].max() > 2) == packed
    empty = batch["masked_weights"] == 0
    assert not batch["masked_positions"][empty].any()
    assert not batch["masked_ids"][empty].any()
    shapes = {key: (array.dtype.name, array.shape[1]) for key, array in batch.items()}
    wide, few, masks = 64, settings.examples_in_row, settings.masks_in_row
    assert shapes == {
        **{key: ("int32", wide) for key in ("token_ids", "type_ids", "position_ids", "example_ids")},
        **{key: ("int32", few) for key in ("cls_positions", "next_sentence_labels")},
        **{key: ("int32", masks) for key in ("masked_positions", "masked_ids")},
        "next_sentence_weights": ("float32", few),
        "masked_weights": ("float32", masks),
    }


@pytest.mark.parametrize("packed", [False, True])
def test_causal_rows_predict_each_next_token_but_the_first_of_an_example(store, one_epoch, packed):
    """The text stays as it is; [SEP] is predicted, [CLS] never, nothing across examples, nothing of padding."""
    batch = one_epoch(store, change(SETTINGS, objective="none", packed=packed, predicts="causal"))
    assert batch["masked_ids"].shape[1] == SETTINGS.max_length - 1
    tokens, ids, weights = batch["token_ids"], batch["example_ids"], batch["masked_weights"]
    assert not (tokens == 4).any()
    for row in range(len(tokens)):
        wanted = [i for i in range(63) if ids[row, i] and ids[row, i + 1] == ids[row, i]]
        used = weights[row] > 0
        assert batch["masked_positions"][row][used].tolist() == wanted
        assert batch["masked_ids"][row][used].tolist() == [tokens[row, i + 1] for i in wanted]
    assert (batch["masked_ids"][weights > 0] == 3).sum() == ids.max(1).sum()
    assert weights.sum() == (ids > 0).sum() - ids.max(1).sum()
    assert (ids.max(1) > 2).any() == packed


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("objective", ["nsp", "sop"])
def test_labels_belong_to_the_text_of_their_example(store, one_epoch, examples_of, objective, packed):
    """Label 0: B follows A in the store. Label 1: it does not, and with sop A follows B."""
    everything = "".join(map(chr, np.concatenate([shard.tokens for shard in store.shards])))
    seen = collections.Counter()
    for example in examples_of(one_epoch(store, change(SETTINGS, objective=objective, packed=packed))):
        if example.label >= 0:
            a, b, _ = "".join(map(chr, example.text[1:])).split(chr(3))
            if len(a) > 2 and len(b) > 2:  # shorter ones may meet by chance
                assert (a + b in everything) == (example.label == 0)
                assert objective == "nsp" or (b + a in everything) == (example.label == 1)
                seen[example.label] += 1
    assert min(seen.values()) > 100


@pytest.mark.parametrize("settings", [SETTINGS, PACKED, change(PACKED, whole_words=True)])
def test_specials_padding_and_unknown_tokens_are_never_masked(store, one_epoch, settings):
    """[CLS], [SEP], [PAD] and [UNK] are no targets, and no random replacement is a special or an unused entry."""
    rows = one_epoch(store, change(settings, mask_share=0.2, random_share=0.8))
    assert not np.isin(rows["masked_ids"][rows["masked_weights"] > 0], [0, 1, 2, 3, 4, 5]).any()
    at = np.take_along_axis(rows["token_ids"], rows["masked_positions"], axis=1)[rows["masked_weights"] > 0]
    assert (at[at != 4] > 5).all()
    assert (at != 4).mean() > 0.7


@pytest.mark.parametrize("packed", [False, True])
def test_masking_statistics(make_store, one_epoch, random_documents, packed):
    """100,000 tokens: 15 % chosen; 80 / 10 / 10 % masked, random, kept, and kept places weigh 1 as the others do."""
    store = make_store(random_documents(np.random.default_rng(0), 60, sentences=140))
    assert store.num_tokens > 90_000
    rows = one_epoch(store, change(SETTINGS, packed=packed, max_length=128, batch_size=64))
    weights = rows["masked_weights"]
    assert set(weights.ravel().tolist()) == {0.0, 1.0}
    assert 0.145 < weights.sum() / store.num_tokens < 0.155
    at = np.take_along_axis(rows["token_ids"], rows["masked_positions"], axis=1)[weights > 0]
    kept = at == rows["masked_ids"][weights > 0]
    assert 0.785 < (at == 4).mean() < 0.815
    assert 0.09 < kept.mean() < 0.115  # a random draw may give the token itself
    assert 0.085 < ((at != 4) & ~kept).mean() < 0.11


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("budget", [0, 1, 4, 30])
def test_the_budget_is_kept(store, one_epoch, packed, budget):
    """No row has more targets than slots; a smaller budget lowers the rate at random places; the report says so."""
    settings = change(SETTINGS, packed=packed, mask_budget=budget, max_length=128)
    batches = Batches(store, settings)
    rows = one_epoch(store, settings)
    in_row = rows["masked_weights"].sum(axis=1)
    assert rows["masked_weights"].shape[1] == (budget or 20)
    assert in_row.max() <= (budget or 20)
    assert (in_row >= 1).mean() > 0.95  # an example of unknown tokens only has no target
    assert in_row.sum() == pytest.approx(batches.report.masked, rel=0.05)  # [UNK] is 3 % of the text
    assert f"{batches.report.masked / store.num_tokens:.1%} of the tokens masked" in str(batches.report)
    if packed and budget != 1:
        assert batches.report.fill > (0.9 if budget == 4 else 0.97)
    if budget == 4 and not packed:
        full = (rows["example_ids"] > 0).sum(axis=1) == 128
        places = rows["masked_positions"][full].ravel()
        assert abs(np.histogram(places, bins=4, range=(0, 128))[0] / len(places) - 0.25).max() < 0.06


def test_slots_of_a_row_with_fewer_targets_than_its_budget(make_store):
    """Budget 4, two targets: weights 1, 1, 0, 0."""
    store = make_store([[list(range(6, 19))]])
    settings = BatchSettings(
        batch_size=1, max_length=32, packed=False, objective="none", mask_budget=4, short_probability=0
    )
    assert Batches(store, settings)(0)["masked_weights"].tolist() == [[1, 1, 0, 0]]


def test_words_are_masked_whole(store, one_epoch, examples_of):
    """A word of several pieces is a target in all its pieces or in none, and all of them are [MASK], or none is."""
    settings = change(PACKED, whole_words=True, max_length=40)
    words = 0
    for example in examples_of(one_epoch(store, settings)):
        text, masked = example.text, set(example.masked)
        for place, token in enumerate(text):
            if 406 <= token < 506 and text[place - 1] > 5:  # ## after a piece: the same word
                words += 1
                assert (place in masked) == (place - 1 in masked)
                if place in masked:
                    assert (example.read[place] == 4) == (example.read[place - 1] == 4)
    assert words > 3000


def test_given_word_boundaries_count(make_store, one_epoch, examples_of):
    """With boundaries, both characters of a Chinese word are targets together; without, characters are chosen alone."""
    documents = [[[506, 507] * 15] * 3] * 8
    flags = [[[False, True] * 15] * 3] * 8
    settings = change(SETTINGS, whole_words=True, objective="none", short_probability=0, max_length=92)
    together = collections.Counter()
    for given in (True, False):
        store = make_store(documents, continues=flags if given else None)
        for example in examples_of(one_epoch(store, settings)):
            assert len(example.text) == 92
            first = {place for place in example.masked if place % 2 == 1}
            together[given] += len(first)
            together[given] -= len([place for place in first if place + 1 in example.masked])
            if given:
                assert len(example.masked) % 2 == 0
    assert together[True] == 0
    assert together[False] > 20


def test_the_mask_symbol_of_the_vocabulary_is_used(make_store):
    """A vocabulary that calls its symbols otherwise, in another order."""
    names = {"pad": "<pad>", "unk": "<unk>", "cls": "<s>", "sep": "</s>", "mask": "<mask>"}
    words = [f"w{n}" for n in range(20)]
    tokenizer = WordPiece.from_vocab([*words, "<mask>", "</s>", "<s>", "<unk>", "<pad>"], special_tokens=names)
    store = make_store([[list(range(20))] * 3] * 4, tokenizer=tokenizer)
    batch = Batches(store, BatchSettings(batch_size=4, max_length=32, mask_share=1.0, random_share=0.0))(0)
    at = np.take_along_axis(batch["token_ids"], batch["masked_positions"], axis=1)[batch["masked_weights"] > 0]
    assert (at == 20).all()
    assert (batch["token_ids"][:, 0] == 22).all()
    assert (batch["token_ids"][batch["example_ids"] == 0] == 24).all()
