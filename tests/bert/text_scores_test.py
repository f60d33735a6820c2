"""The summary of sentences' scores at its ends; tests/launch/score_test.py has scores of whole texts."""

import math

from bert import text_scores


def test_nothing_has_no_scores_and_the_impossible_a_finite_one():
    assert text_scores.summary([]) == {
        "pseudo_perplexity": None, "pll_per_token": None, "pll_per_sentence": None, "n_sentences": 0, "n_tokens": 0,
    }  # fmt: skip
    found = text_scores.summary([{"pll": -9000.0, "tokens": 2}])
    assert (found["pll_per_token"], found["pseudo_perplexity"]) == (-4500, math.exp(700))
