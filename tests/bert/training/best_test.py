"""The best evaluation by a metric: the first of equal ones, never an undefined one, and an end to waiting."""

import dataclasses

import pytest

from bert.errors import InputError
from bert.training.best import Best, Choice


def noted(choice, values):
    best = Best()
    return best, [choice.note(best, step, {choice.metric: value}) for step, value in enumerate(values, start=1)]


def test_larger_or_smaller_values_win_and_of_equal_ones_the_first():
    best, kept = noted(Choice("f1"), [0.5, 0.7, 0.7, 0.6])
    assert (best.step, best.value, kept) == (2, 0.7, [True, True, False, False])
    best, kept = noted(Choice("loss", larger=False), [0.5, 0.7, 0.4])
    assert (best.step, best.value, kept) == (3, 0.4, [True, False, True])


def test_an_undefined_value_is_never_the_best_but_the_first_model_is_kept():
    """A correlation of constant predictions is undefined: kept for lack of another, replaced by any value."""
    best, kept = noted(Choice("pearson"), [None, None, -0.2, None])
    assert (best.step, best.value, kept) == (3, -0.2, [True, False, True, False])


def test_waiting_ends_after_so_many_evaluations():
    best, _ = noted(Choice("f1", patience=2), [0.5, 0.4, 0.6, 0.5])
    assert (best.waited, best.stopped) == (1, False)
    best, _ = noted(Choice("f1", patience=2), [0.5, 0.6, 0.5, 0.6])
    assert (best.step, best.stopped) == (2, True)
    best, _ = noted(Choice("f1"), [0.5] * 50)
    assert not best.stopped


def test_it_survives_a_checkpoint():
    """What a run notes before and after a restart is what it notes without one."""
    choice, values = Choice("f1", patience=3), [0.5, 0.4, 0.6, 0.5, 0.6]
    whole, _ = noted(choice, values)
    half, _ = noted(choice, values[:2])
    again = Best(**dataclasses.asdict(half))
    for step, value in enumerate(values[2:], start=3):
        choice.note(again, step, {"f1": value})
    assert again == whole


def test_a_metric_that_there_is_not():
    with pytest.raises(InputError, match="metric is 'f2'; it must be one of f1, loss"):
        Choice("f2").note(Best(), 1, {"f1": 0.5, "loss": 1.0})
