"""Small prepared folders, as the data tests use them."""

import dataclasses
import math

import numpy as np
import pytest

from bert.data.batches import Batches
from bert.store.reader import Store
from bert.tokenizer.wordpiece import WordPiece
from tests.bert.builders import write_store

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = 400  # ids 6 to 405; the pieces that continue a word come after them
VOCABULARY = [*SPECIALS, "[unused0]", *(f"w{n}" for n in range(WORDS)), *(f"##p{n}" for n in range(100)), "中", "国"]


def make_documents(rng, number, *, sentences=8.0, tokens=12.0, unknown=0.0, pieces=0.2):
    """Documents of sentences of ids: geometric numbers of sentences and of tokens, shares of [UNK] and of ## pieces."""

    def sentence():
        length = rng.geometric(1 / tokens)
        ids = np.where(rng.random(length) < pieces, rng.integers(406, 506, length), rng.integers(6, 406, length))
        ids = np.where(rng.random(length) < unknown, 1, ids)
        return ids.tolist()

    return [[sentence() for _ in range(rng.geometric(1 / sentences))] for _ in range(number)]


@pytest.fixture(scope="session")
def tokenizer():
    return WordPiece.from_vocab(VOCABULARY)


@pytest.fixture(scope="session")
def random_documents():
    return make_documents


@pytest.fixture(scope="session")
def make_store(tokenizer, tmp_path_factory):
    """make_store(documents, tokenizer=..., continues=..., shard_tokens=...) -> the train split of a prepared folder."""

    def make(documents, *, tokenizer=tokenizer, continues=None, shard_tokens=1 << 26):
        folder = tmp_path_factory.mktemp("prepared")
        flags = None if continues is None else {"train": continues}
        write_store(folder, tokenizer, {"train": documents}, continues=flags, shard_tokens=shard_tokens)
        return Store.open(folder)

    return make


@pytest.fixture(scope="session")
def store(make_store):
    """300 documents over several shards, with some [UNK] and words of several pieces."""
    documents = make_documents(np.random.default_rng(7), 300, unknown=0.03)
    store = make_store(documents, shard_tokens=8000)
    assert len(store.shards) > 2
    return store


@pytest.fixture(scope="session")
def one_epoch():
    """one_epoch(store, settings) -> the rows of the first training epoch as one batch."""

    def rows_of(store, settings):
        batches = Batches(store, settings)
        steps = [batches(i) for i in range(math.ceil(batches.steps_per_epoch))]
        return {key: np.concatenate([batch[key] for batch in steps])[: batches.report.rows] for key in steps[0]}

    return rows_of


@dataclasses.dataclass(frozen=True)
class OneExample:
    """An example as it stood in a batch; places count from its [CLS]."""

    text: tuple[int, ...]  # before masking
    read: tuple[int, ...]  # as the model reads it
    types: tuple[int, ...]
    positions: tuple[int, ...]
    masked: tuple[int, ...]
    label: int  # -1: none


@pytest.fixture(scope="session")
def examples_of():
    """examples_of(batch) -> the examples of its rows, in order, with the masks undone."""

    def split(batch):
        found = []
        for row in range(len(batch["token_ids"])):
            used = batch["masked_weights"][row] > 0
            masked = batch["masked_positions"][row][used]
            original = batch["token_ids"][row].copy()
            original[masked] = batch["masked_ids"][row][used]
            for number in range(1, batch["example_ids"][row].max() + 1):
                places = np.flatnonzero(batch["example_ids"][row] == number)
                assert (np.diff(places) == 1).all()
                assert batch["cls_positions"][row, number - 1] == places[0]
                weight = batch["next_sentence_weights"][row, number - 1]
                inside = masked[np.isin(masked, places)] - places[0]
                fields = (original, batch["token_ids"][row], batch["type_ids"][row], batch["position_ids"][row])
                text, read, types, positions = (tuple(array[places].tolist()) for array in fields)
                label = int(batch["next_sentence_labels"][row, number - 1]) if weight else -1
                found.append(OneExample(text, read, types, positions, tuple(inside.tolist()), label))
        return found

    return split
