"""Reading comprehension by start and end of one answer, or none: SQuAD 1.1 and 2.0, and files in this format.

Files: tasks/questions/ (first and last token of an answer: answer_tokens.py). Scores: squad_scores.py. Prediction:
bert/prediction/squad.py. Axes: B row, T position, E window in a row, W window.

Source: Devlin et al. 2018, sections 4.2 and 4.3; google-research/bert ``run_squad.py``.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from absl import logging
from jax import Array
from ml_collections import ConfigDict

from bert.architectures import ModelConfig
from bert.data.encoded_examples import EncodedExamples, ExampleSettings, TrainingBatches
from bert.data.passages import Passages
from bert.errors import InputError, check_choice
from bert.model import losses
from bert.model.heads import Model, SpanHead
from bert.prediction import questions, squad
from bert.prediction.scores import Scorer
from bert.prediction.squad import SquadOptions
from bert.tokenizer.alignment import Pieces
from bert.tokenizer.tokenizer import Tokenizer
from bert.training.best import Choice
from bert.training.evaluate import Metrics
from bert.training.task import Task
from tasks.job import choice_of, settings_of
from tasks.questions.answer_tokens import NOWHERE, answer_of
from tasks.questions.model_files import QuestionsJob, question_parts
from tasks.questions.question_rows import Question, Questions, QuestionSettings
from tasks.squad import squad_scores
from tasks.squad.squad_scores import METRICS

WITHOUT = ("null", "drop")
NO_ANSWER = ("auto", "yes", "no")
LOSS = "cross_entropy"  # that is trained, per window
CONFIG = "configs/squad.py"


@dataclasses.dataclass(frozen=True)
class StartAndEnd(Task):
    """Head and loss, for the training loop: the mean of two cross-entropies over a window's own positions; a window
    without an answer has its start and end at [CLS]."""

    smoothing: float = 0.0  # of the targets, see `losses.position_cross_entropy`

    def model(self, config: ModelConfig) -> Model:
        return Model(config, SpanHead(config))

    def counts(self, batch: Mapping[str, Any]) -> dict[str, Array]:
        return {"loss": batch["target_weights"].sum()}

    def sums(self, outputs: dict[str, Array], batch: Mapping[str, Any]) -> dict[str, Array]:
        slots = batch["cls_positions"].shape[1]
        own_BET = batch["example_ids"][:, None, :] == jnp.arange(1, slots + 1)[:, None]
        start_BE, end_BE = (
            losses.position_cross_entropy(
                outputs[f"{name}_logits"], own_BET, batch["cls_positions"] + batch[name], self.smoothing
            )
            for name in ("start", "end")
        )
        return {"loss": losses.weighted_sum((start_BE + end_BE) / 2, batch["target_weights"])}

    def metrics(self, totals: dict[str, float]) -> Metrics:
        return {"loss": totals["loss"] / totals["loss_count"] if totals["loss_count"] else None}


@dataclasses.dataclass(frozen=True)
class Job(QuestionsJob):
    """Questions with answers; see `tasks.job.ExamplesJob`."""

    train: Questions
    validation: Questions | None
    options: SquadOptions
    files: QuestionSettings
    without: str  # what becomes of windows without the answer
    choice: Choice | None = None
    smoothing: float = 0.0  # of the targets, in training
    fresh: tuple[str, ...] = ("span",)

    def task(self, config: ModelConfig) -> StartAndEnd:
        return StartAndEnd(self.smoothing)

    def batches(self, tokenizer: Tokenizer, settings: ExampleSettings) -> TrainingBatches:
        cut, pieces_N = self.encode(self.train, tokenizer)
        return TrainingBatches(windows_with_answers(cut, self.train.rows, pieces_N, self.without), settings)

    def encode(self, part: Questions, tokenizer: Tokenizer) -> tuple[Passages, list[Pieces]]:
        return questions.windows_of(part.rows, tokenizer, self.options)

    def score(self, scorer: Scorer, part: Questions, encoded: tuple[Passages, list[Pieces]]) -> Metrics:
        assert self.choice is not None
        (cut, pieces_N), rows = encoded, part.rows
        scores_K2 = scorer.of_tokens(cut.encoded, self.options.max_length)
        candidates = squad.search(scores_K2, cut, self.options)
        predictions = squad.answers(candidates, [row.context for row in rows], pieces_N, self.options)
        measure = self.choice.metric if self.choice.metric in METRICS else METRICS[0]
        values = squad_scores.score(rows, predictions, self.options, measure)
        values[LOSS] = cross_entropy(scores_K2, cut, rows, pieces_N, self.without)
        return values | squad_scores.constant(rows, predictions, values.get("threshold"))

    @property
    def report(self) -> str:
        rows = [row for part in (self.train, self.validation) if part for row in part.rows]
        return "\n".join([super().report, *squad_scores.several_spans(rows)])

    def extra(self, scores: Metrics) -> dict[str, Any]:
        options = dataclasses.replace(self.options, threshold=scores.get("threshold") or 0.0)
        return super().extra(scores) | options.to_json()


def windows_with_answers(
    cut: Passages, rows: Sequence[Question], pieces_N: Sequence[Pieces], without: str
) -> EncodedExamples:
    """The windows with ``start`` and ``end`` int32 [W], counted from [CLS], and ``target_weights``.

    A window that does not hold the whole answer has both at [CLS] ("null"), or is left out ("drop"); those of questions
    that have none are kept. A question whose answer holds no piece of its passage is left out: it has an answer, and
    none that can be learnt. What became of the answers goes to the log.
    """
    pieces_of = [answer_of(row, pieces) for row, pieces in zip(rows, pieces_N, strict=True)]
    start_W, end_W, holds_W, kept_W = _targets(cut, pieces_of, without)
    trained, seen = np.flatnonzero(kept_W).tolist(), set(cut.text_W[holds_W].tolist())
    missing = sum(pieces_of[text] not in (None, NOWHERE) for text in cut.text_W[~holds_W])
    answered = sum(answer is not None for answer in pieces_of)
    if missing:
        became = "trained as without an answer" if without == "null" else "left out"
        logging.info("%d of %d windows do not hold the answer to their question: %s", missing, len(start_W), became)
    if answered > len(seen):
        logging.warning(
            "%d of %d answers are whole in no window, %d of them without a piece of their own, and left out; for the "
            "others raise max_length", answered - len(seen), answered, pieces_of.count(NOWHERE),
        )  # fmt: skip
    if not trained:
        raise InputError("no window holds an answer; raise config.max_length, or set windows_without_answer to null")
    ones = np.ones(len(start_W), np.float32)
    targets = {"start": start_W, "end": end_W, "target_weights": ones}
    return dataclasses.replace(cut.encoded, of_example=targets).take(trained)


def _targets(
    cut: Passages, pieces_of: Sequence[tuple[int, int] | None], without: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(start, end: int32 [W], counted from [CLS]; whether the window holds the answer, and is trained: bool [W])."""
    start_W, end_W = np.zeros(len(cut.text_W), np.int32), np.zeros(len(cut.text_W), np.int32)
    holds_W, kept_W = np.zeros(len(cut.text_W), bool), np.zeros(len(cut.text_W), bool)
    for w, (text, (first, stop)) in enumerate(zip(cut.text_W, cut.bounds_W2, strict=True)):
        answer = pieces_of[text]
        if answer is not None and first <= answer[0] and answer[1] <= stop:
            before = cut.places_W[w] - cut.encoded.starts[w]
            start_W[w], end_W[w] = before + answer[0] - first, before + answer[1] - 1 - first
            holds_W[w] = True
        kept_W[w] = answer is None or holds_W[w] or (without == "null" and answer != NOWHERE)
    return start_W, end_W, holds_W, kept_W


def cross_entropy(
    scores_K2: np.ndarray, cut: Passages, rows: Sequence[Question], pieces_N: Sequence[Pieces], without: str
) -> float | None:
    """The loss of `StartAndEnd` on windows, in nats; None where none of them would be trained.

    Args:
      scores_K2: float [K, 2], scores of being the start and the end, of each token of the windows.
    """
    pieces_of = [answer_of(row, pieces) for row, pieces in zip(rows, pieces_N, strict=True)]
    start_W, end_W, _, kept_W = _targets(cut, pieces_of, without)
    first_W = cut.encoded.starts[: len(start_W)]
    scores_K2 = scores_K2.astype(np.float64)
    log_total_W2 = np.logaddexp.reduceat(scores_K2, first_W, axis=0)
    right_W2 = np.stack([scores_K2[first_W + start_W, 0], scores_K2[first_W + end_W, 1]], axis=1)
    loss_W = (log_total_W2 - right_W2).mean(axis=1)
    return float(loss_W[kept_W].mean()) if kept_W.any() else None


def read(config: ConfigDict, *, equal_apart: bool = False) -> Job:
    """The job that the settings of configs/squad.py describe; ``equal_apart``: see `tasks.job.as_begun`."""
    for name, allowed in (("windows_without_answer", WITHOUT), ("no_answer", NO_ANSWER)):
        check_choice(f"config.{name}", config[name], allowed)
    limits = {name: config[name] for name in ("max_length", "window_step", "max_question", "max_answer", "best")}
    options, files = SquadOptions(**limits), settings_of(QuestionSettings, config)
    train, validation, files = question_parts(config, files, equal_apart)
    unanswered = any(not any(squad_scores.golds(row)) for part in (train, validation) if part for row in part.rows)
    no_answer = unanswered if config.no_answer == "auto" else config.no_answer == "yes"
    options = dataclasses.replace(options, no_answer=no_answer)
    choice = choice_of(config, METRICS, (LOSS,), validation, LOSS)
    return Job(train, validation, options, files, config.windows_without_answer, choice, config.label_smoothing)
