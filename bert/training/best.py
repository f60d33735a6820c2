"""Which evaluation of a run is the best so far by a named metric, and when to stop waiting for a better one."""

import dataclasses
import math

from bert.errors import InputError
from bert.training.evaluate import Metrics


@dataclasses.dataclass
class Best:
    """The best evaluation so far; checkpoints carry it, so that a run that was killed chooses as if it had not been.

    Attributes:
      step: of the best one; -1 where there was none.
      value: of its metric, None where undefined.
      waited: evaluations since then.
      stopped: waiting was too long, and training has ended.
      loss: of the best one; None where undefined or unknown, as in checkpoints that were written without it.
    """

    step: int = -1
    value: float | None = None
    waited: int = 0
    stopped: bool = False
    loss: float | None = None


@dataclasses.dataclass(frozen=True)
class Choice:
    """The metric that chooses, and how long to wait for a better value.

    Attributes:
      metric: a name among the metrics of the evaluation.
      larger: whether a larger value is better.
      patience: evaluations without a better one after which training stops; 0: never.
      loss: the metric that decides between equal values, the smaller one wins; empty: the earlier evaluation stays.
    """

    metric: str
    larger: bool = True
    patience: int = 0
    loss: str = ""

    def note(self, best: Best, step: int, metrics: Metrics) -> bool:
        """Takes an evaluation into ``best``; True where it is the best so far.

        It is better by a better value, or by a lower loss at the same value. Undefined values and losses (None, NaN,
        infinite) are worse than any other and equal to each other. The first evaluation always counts, so that there is
        something to keep. Patience counts the evaluations that were not better, by value or by loss.

        Raises:
          InputError: there is no such metric.
        """
        if self.metric not in metrics:
            raise InputError(f"metric is {self.metric!r}; it must be one of {', '.join(metrics)}")
        # Logs that were written before have no loss beside some metrics.
        value, loss = _finite(metrics[self.metric]), _finite(metrics.get(self.loss))
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
