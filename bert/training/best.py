"""The best evaluation of a run by a named metric, and early stopping."""

import dataclasses
import math

from bert.errors import check_choice
from bert.training.evaluate import Metrics


@dataclasses.dataclass
class Best:
    """The best evaluation so far. Checkpoints hold it, so that a resumed run chooses as one without a stop."""

    step: int = -1  # -1: there was none
    value: float | None = None  # of its metric, None where undefined
    waited: int = 0  # evaluations since then
    stopped: bool = False  # patience is used up, and training has ended
    loss: float | None = None  # None where undefined, and in older checkpoints


@dataclasses.dataclass(frozen=True)
class Choice:
    """The metric that chooses the best evaluation, and the patience."""

    metric: str  # a name among the metrics of the evaluation
    larger: bool = True  # whether a larger value is better
    patience: int = 0  # evaluations without a better one after which training stops; 0: never
    loss: str = ""  # of equal values the one with the smaller loss wins; empty: the earlier one

    def note(self, best: Best, step: int, metrics: Metrics) -> bool:
        """Updates ``best`` with an evaluation; True where it is the best so far.

        Undefined values and losses (None, NaN, infinite) are worse than any other and equal to each other. The first
        evaluation always counts, so that there is a model. InputError names a metric that the evaluation lacks.
        """
        check_choice("metric", self.metric, metrics)
        value, loss = _finite(metrics[self.metric]), _finite(metrics.get(self.loss))  # older logs may lack the loss
        first = best.step < 0
        better = _better(value, best.value, self.larger) or (
            value == best.value and _better(loss, best.loss, larger=False)
        )
        if better or first:
            best.step, best.value, best.loss, best.waited = step, value, loss, 0
        else:
            best.waited += 1
            best.stopped = 0 < self.patience <= best.waited
        return better or first


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value


def _better(value: float | None, than: float | None, larger: bool) -> bool:
    """Whether a value is better; an undefined one (None) never is, and any other is better than it."""
    if value is None or than is None:
        return value is not None
    return value > than if larger else value < than
