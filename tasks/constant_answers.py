"""Models that give one answer to everything: how an evaluation notes it, and what people are told."""

from collections.abc import Mapping, Sequence

from bert.errors import printable
from bert.training.evaluate import Metrics

NAME = "constant_answer"  # in logs that were written before, the whole name
UNITS = {"classification": "rows", "tagging": "words", "bio_mrc": "questions", "squad": "questions"}
ADVICE = (
    "train again in another --workdir with more epochs (--config.epochs), another learning rate "
    "(--config.optimizer.learning_rate) or another seed (--config.seed, or several with --config.seeds)"
)


def only(answers: Sequence[str]) -> str | None:
    """The one answer that two or more all are; else None."""
    return answers[0] if len(answers) > 1 and all(answer == answers[0] for answer in answers) else None


def noted(answer: str | None, count: int) -> Metrics:
    """``{"constant_answer:ANSWER": count}``: what is noted of an evaluation of so many answers; nothing for None."""
    return {} if answer is None else {f"{NAME}:{answer}": float(count)}


def is_note(name: str) -> bool:
    """Whether a name among the metrics of an evaluation is such a note."""
    return name.partition(":")[0] == NAME


def sentence(scores: Mapping[str, float | None], task: str) -> str:
    """What a model does that gives one answer to everything, for people; "" for any other model.

    Args:
      scores: metrics of an evaluation, among them what `noted` made.
    """
    for name, count in scores.items():
        if name == NAME:
            return "the model gives every row the same answer"
        if is_note(name):
            return f"the model answers {printable(name.partition(':')[2])} for all {count:,.0f} {UNITS[task]}"
    return ""
