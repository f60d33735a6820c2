"""The rows that a run leaves for its report: passages token by token, with the votes and the model's probabilities.

Beside the keys of every task (bert/reports/records.py) a row has

  question
  truth          annotator -> the texts of his spans
  predicted      the spans, as of `bio_mrc.answers`
  disagreement   "annotators", "model": the probability that two annotators differ about a token of the passage, from
                 the votes and from p (bert/prediction/uncertainty.py); null where nobody, or one, has annotated it
  passage        its text, of the `DETAILED` rows with the largest losses and of as many about which annotators, or the
                 model, are most divided: strings between tokens, and for each token
                 [text, share of votes for B, for I (null without votes), p_B, p_I, marks]; null stands for a stretch
                 that is left out. marks: "g" where most annotators, "p" where the model has a span, capitals where
                 it begins.

Axes: K piece of all passages, T piece of one passage, C tag (B, I, O), N passage.
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert.prediction import bio_mrc, uncertainty
from bert.prediction.bio_mrc import BioMrcOptions, Span
from bert.tokenizer.alignment import Pieces
from tasks import excerpts
from tasks.questions.answer_tokens import SpanTags
from tasks.questions.question_rows import Question

DETAILED = 60
MOST, AROUND = 600, 60  # tokens of a passage, and beside what is marked in a longer one
_DIGITS = 5


@dataclasses.dataclass(frozen=True)
class ScoredPassages:
    """What was scored. share_KC: of the annotators' votes. majority_N, predicted_N: spans of pieces."""

    rows: Sequence[Question]
    pieces_N: Sequence[Pieces]
    marked: SpanTags
    share_KC: np.ndarray
    p_KC: np.ndarray
    starts: np.ndarray
    losses_N: Sequence[float]
    majority_N: Sequence[Sequence[Span]]
    predicted_N: Sequence[Sequence[Span]]
    options: BioMrcOptions

    @functools.cached_property
    def disagreement(self) -> dict[str, list[float | None]]:
        """ "annotators" and "model": that about each passage."""
        observed = _known(uncertainty.of_rows("disagreement", self.share_KC, self.starts))
        several = [len(tags) > 1 for tags in self.marked.tags_N]
        return {
            "annotators": [value if many else None for value, many in zip(observed, several, strict=True)],
            "model": _known(uncertainty.of_rows("disagreement", self.p_KC, self.starts)),
        }

    @property
    def mean_disagreement(self) -> dict[str, float | None]:
        """Of annotators and model, about the passages that several have annotated; None where none is."""
        both = [pair for pair in zip(*self.disagreement.values(), strict=True) if None not in pair]
        return {
            name: float(np.mean([pair[j] for pair in both])) if both else None
            for j, name in enumerate(self.disagreement)
        }

    @functools.cached_property
    def detailed(self) -> list[int]:
        """The rows that have their passages."""
        return excerpts.worst(self.losses_N, *self.disagreement.values(), each=DETAILED)

    def row_of(self, i: int) -> dict[str, Any]:
        """The row of a number."""
        row, here = self.rows[i], slice(self.starts[i], self.starts[i + 1])
        context, pieces, p_TC = row.context, self.pieces_N[i], self.p_KC[here]
        (answer,) = bio_mrc.answers(p_TC, np.array([0, len(p_TC)]), [context], [pieces], self.options)
        line: dict[str, Any] = {"place": row.place, "id": row.id, "loss": self.losses_N[i], "question": row.question}
        line |= {"truth": {name: list(texts) for name, texts in row.golds}, "predicted": answer["spans"]}
        line["disagreement"] = {name: values[i] for name, values in self.disagreement.items()}
        if i in self.detailed:
            marks = _marks(self.majority_N[i], self.predicted_N[i], len(pieces))
            line["passage"] = passage(context, pieces, self.share_KC[here], p_TC, marks)
        return line


def passage(
    context: str, pieces: Pieces, share_TC: np.ndarray, p_TC: np.ndarray, marks: Sequence[str]
) -> list[str | list[Any] | None]:
    """The text as "passage" holds it."""
    shown_T = excerpts.kept(np.array(list(map(bool, marks)), bool), MOST, AROUND)
    parts: list[str | list[Any] | None] = []
    at = 0
    for k, shown in enumerate(shown_T.tolist()):
        start, end = pieces.span_of(k, k + 1)
        if not shown:
            parts += [None] if not parts or parts[-1] is not None else []
        else:
            if start > at and (parts[-1:] != [None]):
                parts.append(context[at:start])
            voted = share_TC[k].any()
            votes = np.round(share_TC[k, :2].astype(float), _DIGITS).tolist() if voted else [None, None]
            text = context[max(start, at) : end]  # several pieces may share a character
            parts.append([text, *votes, *np.round(p_TC[k, :2], _DIGITS).tolist(), marks[k]])
        at = max(at, end)
    if at < len(context) and parts[-1:] != [None]:
        parts.append(context[at:])
    return parts


def _marks(majority: Sequence[Span], predicted: Sequence[Span], count: int) -> list[str]:
    marks = [""] * count
    for letter, spans in (("g", majority), ("p", predicted)):
        for span in spans:
            for k in range(span.first, span.stop):
                marks[k] += letter.upper() if k == span.first else letter
    return marks


def _known(value_N: np.ndarray) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in value_N]
