"""Pseudo-log-likelihoods against a loop over the tokens, one run of the model each."""

import pathlib

import numpy as np
import pytest

import bert
from bert.prediction.pseudo_likelihood import log_likelihoods
from tests.bert.refusals import refused

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "golden"
SENTENCES = ["the cat sat on the mat .", "run", "mary read a book in 中", "zzz ?", ""]


@pytest.fixture(scope="module")
def model():
    return bert.load(GOLDEN / "tiny_bert")


def by_hand(model, ids) -> float:
    """sum_t log p(w_t | the others), from the logits of one text at a time, in NumPy."""
    total, tokenizer = 0.0, model.tokenizer
    for place, word in enumerate(ids, start=1):
        row = [tokenizer.cls_id, *ids, tokenizer.sep_id]
        row[place] = tokenizer.mask_id
        logits_V = model.outputs([row])["mlm_logits"][0, place].astype(np.float64)
        total += logits_V[word] - np.logaddexp.reduce(logits_V)
    return total


@pytest.mark.parametrize("batch_size", [1, 7, 64])
def test_each_token_is_masked_in_turn(model, batch_size):
    """[UNK] counts as the token that it is; batches change nothing; an empty sentence has none."""
    ids_N = model.tokenizer.encode_ids(SENTENCES)
    assert model.tokenizer.unk_id in ids_N[2]
    found = log_likelihoods(model.scorer(batch_size=batch_size), ids_N)
    np.testing.assert_allclose(found, [by_hand(model, ids) for ids in ids_N], rtol=1e-5, atol=1e-5)
    assert found[-1] == 0
    np.testing.assert_array_equal(model.pseudo_log_likelihoods(SENTENCES, batch_size=batch_size), found)


@pytest.mark.parametrize("batch_size", [0, -1])
def test_a_batch_has_rows(model, batch_size):
    with refused(f"batch_size is {batch_size}", "at least 1"):
        model.pseudo_log_likelihoods(SENTENCES, batch_size=batch_size)


def test_a_sentence_beyond_the_models_positions_is_scored_in_parts(model):
    """62 of 64 positions are for tokens."""
    ids = model.tokenizer.encode_ids(["the cat sat on the mat and mary ran to paris . " * 6])[0]
    assert len(ids) == 72
    found = log_likelihoods(model.scorer(batch_size=64), [ids])
    assert found[0] == pytest.approx(by_hand(model, ids[:62]) + by_hand(model, ids[62:]), rel=1e-5)
