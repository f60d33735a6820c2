"""A model that gains tokens: new rows by hand, all else as it was, and the same after saving and loading."""

import dataclasses

import numpy as np
import pytest

import bert
from bert import inference
from bert.errors import InputError
from bert.interop import added_rows
from bert.interop.hugging_face import load_model_directory
from bert.tokenizer.added_words import words_of


@pytest.fixture(scope="module")
def tiny(request):
    return load_model_directory(request.path.parents[2] / "golden" / "tiny_bert")


def grown(model, tokens, rows="pieces"):
    return added_rows.with_tokenizer(model, model.tokenizer.add_words(words_of(tokens)), rows)


def table_and_bias(model):
    return model.params["encoder"]["embeddings"]["token"]["embedding"], model.params["head"]["mlm"]["bias"]


@pytest.mark.parametrize("rows", ["pieces", "mean"])
def test_new_rows_are_means_and_old_ones_stay(tiny, rows):
    """ "notbook" is not + ##b ##o ##o ##k, "<" is unknown; a word of the vocabulary keeps its row."""
    larger = grown(tiny, "notbook,city,<a>", rows)
    size, vocab = tiny.config.vocab_size, tiny.tokenizer.vocab
    assert larger.config == dataclasses.replace(tiny.config, vocab_size=size + 2)
    assert larger.tokenizer.vocab == (*vocab, "notbook", "<a>")
    pieces = {"notbook": ["not", "##b", "##o", "##o", "##k"], "<a>": ["[UNK]", "a", "[UNK]"]}
    for before, after in zip(table_and_bias(tiny), table_and_bias(larger), strict=True):
        np.testing.assert_array_equal(after[:size], before)
        for i, names in enumerate(pieces.values(), start=size):
            ids = [vocab.index(name) for name in names] if rows == "pieces" else range(size)
            np.testing.assert_allclose(after[i], np.mean([before[k] for k in ids], axis=0), atol=1e-6)
    assert larger.tokenizer.encode("NotBooks in a city").ids[:2] == [size, vocab.index("s")]
    assert "2 new tokens" in str(larger.report)
    for name in ("pooler", "next_sentence"):
        assert larger.params["head"][name] == tiny.params["head"][name]


def test_without_new_entries_nothing_grows(tiny):
    """Words of the vocabulary are kept whole from now on; without any, all is as it was."""
    assert grown(tiny, "").params is tiny.params
    same = grown(tiny, "city,[unused0]")
    assert same.params is tiny.params
    assert same.tokenizer.encode("[UNUSED0]").ids == [tiny.tokenizer.vocab.index("[unused0]")]


def test_unused_rows_are_taken_first(tiny):
    """A table with more rows than the vocabulary has entries grows only by what does not fit."""
    table, bias = table_and_bias(tiny)
    one = grown(tiny, "[E1]")
    padded = one._replace(tokenizer=tiny.tokenizer)  # 128 entries, 129 rows
    two = grown(padded, "[E2],[E3]")
    assert two.config.vocab_size == 130
    assert len(table_and_bias(two)[0]) == 130
    np.testing.assert_array_equal(table_and_bias(two)[0][:128], table)
    assert grown(padded, "[E2]").config.vocab_size == 129
    roomy = grown(two._replace(tokenizer=tiny.tokenizer), "[E2]")  # one of two unused rows stays
    assert (roomy.config.vocab_size, len(table_and_bias(roomy)[0])) == (130, 130)
    assert len(bias) == 128


def test_a_grown_model_is_saved_and_says_the_same_of_old_texts(tiny, tmp_path):
    """Tokens, table and settings come back; hidden states of a text without new tokens are what they were."""
    larger = inference.LoadedModel(grown(tiny, "[E1],<URL>"))
    bert.save(larger, tmp_path / "larger")
    again = bert.load(tmp_path / "larger")
    assert again.config.vocab_size == 130
    assert again.tokenizer.fingerprint == larger.tokenizer.fingerprint
    assert (tmp_path / "larger" / "vocab.txt").read_text().splitlines()[-2:] == ["[E1]", "<URL>"]
    small = inference.LoadedModel(tiny)
    text = "the cat sat on the mat"
    np.testing.assert_allclose(again.embed([text]), small.embed([text]), atol=1e-6)
    assert again.tokenizer.encode("mary [e1] read <url>").ids[1] == 128
    assert {token for token, _ in again.fill_mask("the [MASK] sat", top=130)[0]} >= {"[E1]", "<URL>"}


def test_other_ways_to_start_rows_are_refused(tiny):
    with pytest.raises(InputError, match=r"added_rows is 'zeros'; .*pieces, mean"):
        grown(tiny, "[E1]", "zeros")
