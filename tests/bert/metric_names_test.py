"""What the name of a metric says."""

import pytest

from bert import metric_names


@pytest.mark.parametrize(
    ("name", "positive", "title"),
    [
        ("f1:spam", None, "f1 of spam"),
        ("recall:a:b", None, "recall of a:b"),
        ("f1", "spam", "f1 of spam"),
        ("accuracy", "spam", "accuracy"),
        ("constant_answer:spam", None, "constant_answer:spam"),
    ],
)
def test_a_title_names_the_class(name, positive, title):
    assert metric_names.title(name, positive) == title


def test_only_whole_numbers_are_counts():
    assert all(map(metric_names.is_count, ["n", "n_gold", "total", "HasAns_total"]))
    assert not any(map(metric_names.is_count, ["f1:total", "f1:n", "nll", "exact"]))
