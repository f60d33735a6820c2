"""The training loop: batch, step, log the step before, evaluate, save.

A run is a function of (config, data, seed, step): batches are numbered, and the step determines dropout keys and the
learning rate. So a killed run resumes exactly from its newest checkpoint.
"""

import collections
import concurrent.futures
import contextlib
import dataclasses
import functools
import itertools
import os
import pathlib
import signal
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import jax

from bert.errors import InputError, RunError, cannot_write, check_range
from bert.training import arithmetic, evaluate, run_directory, sharding, tracking, watchdog
from bert.training.best import Best, Choice
from bert.training.evaluate import Metrics
from bert.training.step import Setup, TrainState, abstract_state, init_state, make_train_step
from bert.types import Batch, HostBatch, Params

if TYPE_CHECKING:
    from bert.training.checkpoint import Checkpoints


@dataclasses.dataclass(frozen=True)
class LoopSettings:
    """When to log, evaluate and save, in optimizer steps. InputError names a value below 1."""

    total_steps: int
    log_every: int = 100  # steps from one log line to the next
    evaluate_every: int = 10_000  # steps from one evaluation to the next
    save_every: int = 5_000  # steps from one checkpoint to the next
    keep_checkpoints: int = 2  # the newest ones to keep
    stop_after_skips: int = 20  # end the run after so many skipped steps in a row (non-finite loss or gradient)

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            check_range(field.name, getattr(self, field.name), at_least=1)


@dataclasses.dataclass(frozen=True)
class Run:
    """What is trained on which batches, and where it is written."""

    setup: Setup
    settings: LoopSettings
    workdir: pathlib.Path
    train_batch: Callable[[int], HostBatch]  # number of the batch -> this process's rows of it, a pure function
    evaluate: Callable[[Params], Metrics] | None  # metrics of the held-out part, the same on all processes
    flops_per_token: float  # of a training step
    choose: Choice | None = None  # which evaluation is the best, and when to stop; None: train to the end
    on_best: Callable[[int, Params, Metrics], None] | None = None  # called when an evaluation is the best so far
    title: Callable[[str], str] = str  # how the progress shows a metric; equal titles are shown once
    # Runs in the background; an error in it ends the run, and nothing is saved before it has passed.
    data_check: concurrent.futures.Future[None] | None = None


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How `fit` ended."""

    state: TrainState
    metrics: Metrics  # the last ones of the held-out part
    stopped_by: int | None  # signal that stopped it early
    best: Best


def fit(run: Run, init_params: Params | None = None) -> Outcome:
    """Trains to ``total_steps``, from the newest checkpoint in the run directory if there is one.

    Without a checkpoint it starts from ``init_params`` (NumPy arrays), or from parameters drawn from the seed. Raises
    InputError where the run is beyond ``total_steps`` already, RunError after too many non-finite steps in a row.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(jax.set_mesh(run.setup.mesh))
        loop = _Loop(run, stack)
        state = loop.start(init_params)
        settings, total = run.settings, run.settings.total_steps
        step, evaluated_at = int(state.step), -1
        metrics: Metrics = {}
        stop = stack.enter_context(_signals())
        batches = stack.enter_context(_ahead(lambda i: sharding.place(run.train_batch(i), run.setup.mesh), step, total))
        pending: jax.Array | None = None
        save_due = False
        while step < total and not (loop.best.stopped or stop or loop.preempted(step)):
            loop.check_data(wait=False)
            batch = next(batches)
            state, values = loop.train_step(state, batch)
            if pending is not None:
                loop.log(step, pending)
            pending, step = values, step + 1
            evaluate_now = run.evaluate and (step % settings.evaluate_every == 0 or step == total)
            save_due = save_due or step % settings.save_every == 0 or step == total
            if evaluate_now or save_due or loop.is_first(step):
                loop.log(step, pending)
                pending = None
            if evaluate_now:
                metrics, evaluated_at = loop.evaluate(step, state), step
            # Parameters that led to non-finite steps must not replace those from before: the save waits for a good one.
            if save_due and (not loop.bad_in_row or step == total):
                loop.save(step, state)
                save_due = False
        if pending is not None:
            loop.log(step, pending)
        loop.check_data(wait=True)
        finished = step == total or loop.best.stopped
        if step < total and not loop.bad_in_row:
            loop.save(step, state)
        if finished and run.evaluate and evaluated_at != step:  # a finished run that was started again
            metrics = loop.evaluate(step, state, write=False)
        stopped_by = None if finished else stop[0] if stop else signal.SIGTERM
        return Outcome(state, metrics, stopped_by, loop.best)


class _Loop:
    """The parts of ``fit``: compiled steps, checkpoints and logs of one run."""

    def __init__(self, run: Run, stack: contextlib.ExitStack):
        self.run = run
        self._first_batch = run.train_batch(0)  # for its shapes
        self._target = abstract_state(run.setup, self._first_batch)
        self.train_step, self._read = make_train_step(run.setup, self._target)
        self._stack = stack
        self._totals: dict[str, float] = {}  # sums since the last log line
        self.bad_in_row = 0  # non-finite steps up to the last one that was read
        self._started = time.perf_counter()

    @functools.cached_property
    def checkpoints(self) -> "Checkpoints":
        """Opened on first use: Orbax takes a fifth of a second to import, and no first step has to wait for it."""
        from bert.training.checkpoint import Checkpoints

        directory = self.run.workdir / run_directory.CHECKPOINTS
        try:
            checkpoints = Checkpoints(directory, keep=self.run.settings.keep_checkpoints)
        except OSError as error:
            raise cannot_write(directory, error) from None
        self._stack.callback(checkpoints.close)
        return checkpoints

    def preempted(self, step: int) -> bool:
        return jax.process_count() > 1 and self.checkpoints.preempted(step)

    def is_first(self, step: int) -> bool:
        """Whether it is the first step of this process, whose values are read before the next one is dispatched."""
        return step == self._first_step + 1

    def start(self, init_params: Params | None) -> TrainState:
        workdir, total = self.run.workdir, self.run.settings.total_steps
        begun = run_directory.has_checkpoints(workdir)
        state: TrainState
        meta: dict[str, Any]
        if not begun:
            step, state = 0, init_state(self.run.setup, self._target, self._first_batch, init_params)
            meta = {"totals": {}}
        elif restored := self.checkpoints.restore(self._target):
            step, state, meta = restored
        else:  # a new start would forget what the run was started from
            raise RunError(f"{workdir}: all checkpoints were damaged and set aside; start again in another folder")
        refuse_beyond(step, total)
        self._totals = dict(meta["totals"])
        self.best = Best(**(meta.get("best") or {}))
        self._first_step = self._saved = step
        self.file = tracking.MetricsFile(workdir, step)
        self._stack.callback(self.file.close)
        self.progress = tracking.Progress(total, step, self.run.flops_per_token)
        self._stack.callback(self.progress.close)
        if begun:
            self.progress.report(step, "restored", {"from": str(workdir / run_directory.CHECKPOINTS / str(step))})
        if step < total:
            self.progress.report(step, "compiling", {"devices": self.run.setup.mesh.size})
        return state

    def check_data(self, *, wait: bool) -> None:
        """Raises what the check of the data has found, if it has ended or is waited for."""
        check = self.run.data_check
        if check is not None and (wait or check.done()):
            check.result()

    def log(self, step: int, step_values: jax.Array) -> None:
        """Adds the sums of the step that ``step`` counts; writes a line where one is due."""
        values = self._read(step_values)
        of_step = {name: values.pop(name) for name in ("learning_rate", "gradient_norm")}
        of_step["skipped"], self.bad_in_row = int(values.pop("skipped")), int(values.pop("skipped_in_row"))
        self.progress.advance(values["tokens"])
        watchdog.note(f"step {step}, training")
        evaluate.add(self._totals, values)
        if self.is_first(step):
            self.progress.report(step, "first step", {"after seconds": time.perf_counter() - self._started})
            self.progress.peak = arithmetic.peak_flops(self.run.setup.model.config.dtype)
            self.progress.restart(step)
        if self.bad_in_row >= self.run.settings.stop_after_skips:
            saved = f"; the newest checkpoint, of step {self._saved}, is from before that" if self._saved else ""
            raise RunError(
                f"step {step}: loss or gradient was not finite {self.bad_in_row} times in a row (gradient norm "
                f"{of_step['gradient_norm']}); lower the learning rate, lengthen the warm-up or check the data, and "
                f"start again in another folder{saved}"
            )
        if step % self.run.settings.log_every == 0 or step == self.run.settings.total_steps:
            tokens = self._totals.pop("tokens")
            logged = self.run.setup.task.metrics(self._totals) | of_step
            rates = self.progress.rates(step)
            self.file.write(step, "train", logged | {"tokens": tokens} | rates)
            self.progress.report(step, "train", logged | self.progress.format_rates(step, rates))
            self._totals = {}

    def evaluate(self, step: int, state: TrainState, *, write: bool = True) -> Metrics:
        assert self.run.evaluate is not None
        metrics = self.run.evaluate(state.model_params)
        if write:
            self.check_data(wait=self.run.on_best is not None)
            self.file.write(step, "validation", metrics)
            if self.run.choose and self.run.choose.note(self.best, step, metrics) and self.run.on_best:
                self.run.on_best(step, state.model_params, metrics)
        watchdog.note(f"step {step}, evaluation")
        self.progress.report(step, "validation", {self.run.title(name): value for name, value in metrics.items()})
        self.progress.restart(step)
        return metrics

    def save(self, step: int, state: TrainState) -> None:
        self.check_data(wait=True)
        self._saved = step
        self.checkpoints.save(step, state, {"totals": self._totals, "best": dataclasses.asdict(self.best)})
        watchdog.note(f"step {step}, a checkpoint")
        self.progress.restart(step)


def refuse_beyond(step: int, total_steps: int) -> None:
    """Raises InputError where a run has passed its end."""
    if step > total_steps:
        rule = f"total_steps is {total_steps}, but the run is at step {step} already"
        raise InputError(f"{rule}; give {step} to see its scores, or more to train longer")


@contextlib.contextmanager
def _signals() -> Iterator[list[int]]:
    """A list that SIGTERM and SIGINT append to; a second Ctrl-C ends the process at once, without saving."""
    received: list[int] = []

    def note(number: int, _: object) -> None:
        if number == signal.SIGINT and number in received:
            os._exit(128 + number)  # checkpoints appear under their name when complete, so none is left half-written
        received.append(number)

    # With several processes jax.distributed handles SIGTERM, and all of them stop at the same step.
    numbers = (signal.SIGTERM, signal.SIGINT) if jax.process_count() == 1 else ()
    before = {number: signal.signal(number, note) for number in numbers}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _ahead(make: Callable[[int], Batch], start: int, stop: int, depth: int = 2) -> Iterator[Iterator[Batch]]:
    """Batches ``start`` to ``stop - 1`` in order; a thread prepares up to ``depth`` of them ahead."""
    pool = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="batches")

    def batches() -> Iterator[Batch]:
        numbers = iter(range(start, stop))
        futures = collections.deque(pool.submit(make, i) for i in itertools.islice(numbers, depth))
        while futures:
            batch = futures.popleft().result()
            following = next(numbers, None)
            if following is not None:
                futures.append(pool.submit(make, following))
            yield batch

    try:
        yield batches()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
