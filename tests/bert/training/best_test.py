"""The best evaluation by a metric, of equal ones that with the lowest loss; and an end to waiting."""

import dataclasses

import pytest

from bert.errors import InputError
from bert.training.best import Best, Choice


def noted(choice, values, losses=None):
    best, losses = Best(), losses or [None] * len(values)
    pairs = enumerate(zip(values, losses, strict=True), start=1)
    return best, [choice.note(best, step, {choice.metric: value, "ce": loss}) for step, (value, loss) in pairs]


def test_larger_or_smaller_values_win_and_of_equal_ones_without_a_loss_the_first():
    best, kept = noted(Choice("f1"), [0.5, 0.7, 0.7, 0.6], [4, 3, 2, 1])
    assert (best.step, best.value, kept) == (2, 0.7, [True, True, False, False])
    best, kept = noted(Choice("loss", larger=False), [0.5, 0.7, 0.4])
    assert (best.step, best.value, kept) == (3, 0.4, [True, False, True])


def test_of_equal_values_the_lowest_loss_wins():
    best, kept = noted(Choice("f1", loss="ce"), [0.7, 0.7, 0.6, 0.7, 0.7], [0.6, 0.2, 0.1, 0.3, 0.2])
    assert (best.step, best.value, best.loss, kept) == (2, 0.7, 0.2, [True, True, False, False, False])
    best, _ = noted(Choice("kl", larger=False, loss="ce"), [0.5, 0.5, 0.6], [3, 2, 1])
    assert best.step == 2


@pytest.mark.parametrize("undefined", [None, float("nan"), float("inf")])
def test_an_undefined_value_or_loss_is_never_the_best_but_some_model_is_kept(undefined):
    """A correlation of constant predictions is undefined: kept for lack of another, replaced by any value."""
    best, kept = noted(Choice("pearson"), [undefined, undefined, -0.2, undefined])
    assert (best.step, best.value, kept) == (3, -0.2, [True, False, True, False])
    best, kept = noted(Choice("pearson", loss="mse"), [undefined] * 3)
    assert (best.step, best.value, kept) == (1, None, [True, False, False])
    best, kept = noted(Choice("f1", loss="ce"), [undefined] * 4, [undefined, 0.4, undefined, 0.3])
    assert (best.step, best.value, best.loss, kept) == (4, None, 0.3, [True, True, False, True])


def test_waiting_ends_after_so_many_evaluations():
    best, _ = noted(Choice("f1", patience=2), [0.5, 0.4, 0.6, 0.5])
    assert (best.waited, best.stopped) == (1, False)
    best, _ = noted(Choice("f1", patience=2), [0.5, 0.6, 0.5, 0.6])
    assert (best.step, best.stopped) == (2, True)
    best, _ = noted(Choice("f1"), [0.5] * 50)
    assert not best.stopped


def test_a_lower_loss_at_the_same_value_is_worth_waiting_for():
    best, _ = noted(Choice("f1", patience=2, loss="ce"), [1.0] * 5, [0.5, 0.4, 0.4, 0.3, 0.3])
    assert (best.step, best.waited, best.stopped) == (4, 1, False)
    best, _ = noted(Choice("f1", patience=2, loss="ce"), [1.0, 0.9, 0.9], [0.5, 0.4, 0.3])
    assert (best.step, best.stopped) == (1, True)


def test_it_survives_a_checkpoint():
    """What a run notes before and after a restart is what it notes without one; also one without a loss in it."""
    choice, values, losses = Choice("f1", patience=3, loss="ce"), [0.5, 0.4, 0.6, 0.5, 0.6], [1, 2, 3, 4, 2.5]
    whole, _ = noted(choice, values, losses)
    half, _ = noted(choice, values[:2], losses[:2])
    written = dataclasses.asdict(half)
    without = {name: value for name, value in written.items() if name != "loss"}
    for again in (Best(**written), Best(**without)):
        for step in (3, 4, 5):
            choice.note(again, step, {"f1": values[step - 1], "ce": losses[step - 1]})
        assert again == whole
        assert again.step == 5


def test_a_metric_that_there_is_not():
    with pytest.raises(InputError, match=r"metric is 'f2'; .*f1, loss"):
        Choice("f2").note(Best(), 1, {"f1": 0.5, "loss": 1.0})
