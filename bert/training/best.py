"""Which evaluation of a run is the best so far by a named metric, and when to stop waiting for a better one."""

import dataclasses

from bert.errors import InputError
from bert.training.evaluate import Metrics


@dataclasses.dataclass
class Best:
    """The best evaluation so far; checkpoints carry it, so that a run that was killed chooses as if it had not been.

    Attributes:
      step: of the best one; -1 where every value was undefined.
      waited: evaluations since then.
      stopped: waiting was too long, and training has ended.
    """

    step: int = -1
    value: float | None = None
    waited: int = 0
    stopped: bool = False


@dataclasses.dataclass(frozen=True)
class Choice:
    """The metric that chooses, and how long to wait for a better value.

    Attributes:
      metric: a name among the metrics of the evaluation.
      larger: whether a larger value is better.
      patience: evaluations without a better value after which training stops; 0: never.
    """

    metric: str
    larger: bool = True
    patience: int = 0

    def note(self, best: Best, step: int, metrics: Metrics) -> bool:
        """Takes an evaluation into ``best``; True where it is the best so far. An undefined value never is.

        Of equal values the earlier one stays. The first evaluation counts even where its value is undefined, so that
        there is something to keep.

        Raises:
          InputError: there is no such metric.
        """
        if self.metric not in metrics:
            raise InputError(f"metric is {self.metric!r}; it must be one of {', '.join(metrics)}")
        value, first = metrics[self.metric], best.step < 0
        better = value is not None and (
            best.value is None or (value > best.value if self.larger else value < best.value)
        )
        if better or first:
            best.step, best.value, best.waited = step, value, 0
        else:
            best.waited += 1
            best.stopped = 0 < self.patience <= best.waited
        return better or first
