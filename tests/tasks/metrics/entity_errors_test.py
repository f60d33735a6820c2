"""Each entity is right, wrong in one way, missed or spurious, once; counts agree with the scores of entities."""

import numpy as np
import pytest

from tasks.metrics import entity_errors, entity_metrics


@pytest.mark.parametrize(
    ("gold", "predicted", "kinds"),
    [
        ("B-A I-A O", "B-A I-A O", ["right"]),
        ("B-A I-A O", "B-B I-B O", ["wrong label"]),
        ("B-A I-A O", "B-A O O", ["wrong borders"]),
        ("B-A I-A O", "O B-B I-B", ["wrong label and borders"]),
        ("B-A O B-B", "O O O", ["missed", "missed"]),
        ("O O O", "B-A O B-B", ["spurious", "spurious"]),
        ("B-A I-A I-A", "B-A B-A I-A", ["wrong borders", "spurious"]),
        ("B-A I-A B-A", "B-A I-A I-A", ["wrong borders", "missed"]),
        ("B-A B-B O", "B-B B-B O", ["wrong label", "right"]),
        ("B-A ? O", "B-A B-B O", ["right"]),  # nobody tagged the second word
        ("? I-A", "B-A I-A", ["right"]),
    ],
)
def test_each_entity_is_in_one_pair(gold, predicted, kinds):
    gold_tags = [None if tag == "?" else tag for tag in gold.split()]
    found = entity_errors.pairs(gold_tags, predicted.split())
    assert [pair.kind for pair in found] == kinds


def test_counts_agree_with_the_scores():
    rng = np.random.default_rng(0)
    labels = ["O", "B-A", "I-A", "B-B", "I-B"]
    gold, predicted = ([[str(tag) for tag in rng.choice(labels, 8)] for _ in range(60)] for _ in range(2))
    pairs_N = list(map(entity_errors.pairs, gold, predicted))
    by_type = entity_metrics.scores_by_type(gold, predicted)
    counts, matrix = entity_errors.counts(pairs_N), entity_errors.confusion(pairs_N)
    hits = sum(scores["recall"].value * scores["support"].value for scores in by_type.values())
    assert counts["right"] == round(hits)
    assert sum(counts.values()) == np.sum(matrix["counts"])
    assert matrix["labels"] == ["A", "B", entity_errors.NONE]
    assert [sum(row) for row in matrix["counts"][:2]] == [by_type[name]["support"].value for name in "AB"]
    columns = np.array(matrix["counts"]).sum(0)[:2]
    assert columns.tolist() == [by_type[name]["predicted"].value for name in "AB"]
    assert matrix["counts"][2][2] == 0
