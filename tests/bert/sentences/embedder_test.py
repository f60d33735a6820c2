"""Vectors of many texts: in their order, packed or not, block by block."""

import dataclasses

import numpy as np
import pytest

import bert
from bert.architectures import bert_encoder
from bert.model.sentence_encoder import SentenceEncoder
from bert.sentences import embedder
from bert.tokenizer.wordpiece import WordPiece
from tests.bert.builders import SPECIAL
from tests.bert.interop.sentence_directory import TINY, random_texts
from tests.bert.refusals import refused


@pytest.fixture(scope="module")
def model():
    return bert.load(TINY)


def test_blocks_and_packing_change_nothing(model, monkeypatch):
    """Blocks of 20 texts, and one example a row, give what one block of packed rows gives; an iterator will do."""
    many, counted = random_texts(50), []
    want = model.embed(many, "mean", normalize=True)
    monkeypatch.setattr(embedder, "BLOCK", 20)
    blocks = list(model.embedder(normalize=True).blocks(iter(many), counted.append))
    assert [len(block) for block in blocks] == [20, 20, 10]
    assert sum(counted) == 50
    np.testing.assert_allclose(np.concatenate(blocks), want, rtol=0, atol=1e-6)
    monkeypatch.setattr(bert_encoder.BertEncoder, "packing", "refused")
    longest = [i for i, text in enumerate(many) if len(text.split()) > 14]  # of one length of rows
    np.testing.assert_allclose(
        model.embed([many[i] for i in longest], normalize=True), want[longest], rtol=0, atol=1e-6
    )


def test_short_texts_share_rows(model, monkeypatch):
    """100 texts of 3 tokens are rows of 64 with 16 of them each, instead of 100 rows."""
    seen = []
    monkeypatch.setattr(embedder.Embedder, "_vectors", lambda self, batch, skipped: seen.append(batch) or np.zeros(
        (*batch["cls_positions"].shape, self.width), np.float32))  # fmt: skip
    model.embed(["cat"] * 100)
    assert [batch["token_ids"].shape for batch in seen] == [(8, 64)]
    assert sorted(seen[0]["example_ids"].max(1)) == [0, 4, *[16] * 6]


def test_rows_of_longer_texts_have_few_slots(model):
    """Each slot is a vector, so hundreds of them in a row would fill the memory; every text has a place."""
    config = dataclasses.replace(model.config, max_position_embeddings=512)
    embedder = dataclasses.replace(model.embedder(), config=config)
    lengths = np.array([3, 32, 33, 64, 65, 128, 129, 256, 257, 512])
    shapes = {length: (lengths[chosen].tolist(), slots) for chosen, length, slots in embedder._shapes(lengths)}
    assert shapes == {48: ([3, 32], 12), 128: ([33, 64], 4), 256: ([65, 128], 4), 512: ([129, 256, 257, 512], 4)}


def test_texts_that_are_cut_are_counted(model, caplog):
    """62 of 64 positions are for tokens, 8 of a declared length of 10; a text that just fits is whole."""
    model.embed(["cat " * 62, "cat " * 63, "cat"])
    short = dataclasses.replace(model.embedder(), encoder=SentenceEncoder(max_length=10))
    list(short.blocks(["cat " * 8, "cat " * 9, "cat " * 10]))
    first, second = caplog.messages
    assert first.startswith("1 of 3 texts are longer than the model's 64 positions")
    assert second.startswith("2 of 3 texts are longer than the declared 10 tokens")


def test_lower_casing_knows_no_final_letters(model):
    """As in the `tokenizers` library, where the sigma at the end of a word is one like any other."""
    cased = WordPiece.from_vocab([*SPECIAL, "\u03b1\u03c2", "\u03b1\u03c3"], lower_case=False)
    embedder = dataclasses.replace(model.embedder(), tokenizer=cased, encoder=SentenceEncoder(lower_case=True))
    assert embedder._ids(["\u0391\u03a3"]) == [[len(SPECIAL) + 1]]


def test_texts_or_vectors_are_compared_and_searched(model):
    corpus = ["the cat sat", "who is the dog", "new york", "the cat"]
    vectors = model.embed(corpus)
    np.testing.assert_allclose(model.similarity(corpus, vectors).diagonal(), 1, rtol=0, atol=1e-6)
    (best, score), *_ = model.search("new york", vectors, top=2)
    assert (best, round(score, 5)) == (2, 1)
    assert model.search(vectors[3], vectors, 1)[0][0] == 3
    np.testing.assert_array_equal(model.embed(text for text in corpus), vectors)
    assert model.similarity([], corpus).shape == (0, 4)
    with refused("corpus", "[1, 4]", "model.embed"):
        model.search("new york", corpus)
