"""Detects models that give the same answer to every row; a note for the logs, and a sentence for the reports."""

from collections.abc import Mapping, Sequence

from bert.errors import printable
from bert.metric_names import CONSTANT_ANSWER, is_note
from bert.training.evaluate import Metrics

ADVICE = (
    "train again in another --workdir with more epochs (--config.epochs), another learning rate "
    "(--config.optimizer.learning_rate) or another seed (--config.seed, or several with --config.seeds)"
)


def only(answers: Sequence[str]) -> str | None:
    """The common value of two or more equal answers; else None."""
    return answers[0] if len(answers) > 1 and all(answer == answers[0] for answer in answers) else None


def noted(answer: str | None, count: int) -> Metrics:
    """The note among an evaluation's metrics, ``{"constant_answer:ANSWER": count}``; empty for None."""
    return {} if answer is None else {f"{CONSTANT_ANSWER}:{answer}": float(count)}


def sentence(scores: Mapping[str, float | None], unit: str) -> str:
    """The sentence about a model that gives one answer to all ``unit`` ("rows"); "" for any other model."""
    for name, count in scores.items():
        if name == CONSTANT_ANSWER:
            return "the model gives every row the same answer"
        if is_note(name):
            return f"the model answers {printable(name.partition(':')[2])} for all {count:,.0f} {unit}"
    return ""
