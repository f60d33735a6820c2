"""Decides which tokens of a passage are an answer: its first and last token, and its B/I/O tags.

Annotators mark characters. An answer includes every piece that has a marked character (`Pieces.of_span`), so an answer
that begins or ends inside a piece is widened to whole pieces. `answer_of` gives the targets of squad (first and last
token), `mark` those of bio_mrc (tags B, I and O). Nothing else decides this.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bert.prediction.bio_mrc import TAGS
from bert.tokenizer.alignment import Pieces
from tasks.questions.question_rows import Question

NOWHERE = (-1, -1)  # of an answer that holds no piece of its passage, so that it is in no window
_BEGIN, _INSIDE, _OUTSIDE = (TAGS.index(tag) for tag in "BIO")


def answer_of(row: Question, pieces: Pieces) -> tuple[int, int] | None:
    """[first, stop) of the answer that most annotators gave, of equally many the first; None where it is no answer,
    ``NOWHERE`` where it has no position or no piece."""
    if row.untrainable:
        return NOWHERE
    votes = Counter(annotation.spans[:1] for annotation in row.annotations)
    spans = max(votes, key=lambda spans: votes[spans])
    return (pieces.of_span(*spans[0]) or NOWHERE) if spans else None


class SpanTags(NamedTuple):
    """The annotators' spans as tags of pieces.

    tags_N: for each passage (annotator, int [pieces] index in TAGS), ...; without the annotators of whom no span is
      left, for their tags would say that nothing answers the question.
    widened, lost: spans that begin or end inside a piece (and are marked to its border), and those of which no piece is
      left. spans: all of them.
    """

    tags_N: list[list[tuple[str, np.ndarray]]]
    spans: int
    widened: int
    lost: int

    @property
    def report(self) -> str:
        """What became of the spans; empty where each was marked as it stands."""
        parts = []
        if self.widened:
            parts.append(f"{self.widened:,} begin or end inside a piece and were widened to its border")
        if self.lost:
            parts.append(f"{self.lost:,} hold no piece of their own and have no tag")
        return f"{self.spans:,} spans: {'; '.join(parts)}" if parts else ""


def mark(rows: Sequence[Question], pieces_N: Sequence[Pieces]) -> SpanTags:
    """Tags of the pieces: B where a span begins, I where it continues, O elsewhere. Of two spans that share a piece the
    first has it."""
    tags_N, spans, widened, lost = [], 0, 0, 0
    for row, pieces in zip(rows, pieces_N, strict=True):
        here = []
        for annotator, marked in row.annotations:
            tags_K, used = np.full(len(pieces), _OUTSIDE), 0
            for start, end in marked:
                spans += 1
                first, stop = pieces.of_span(start, end) or (0, 0)
                first = max(first, used)
                if first >= stop:
                    lost += 1
                    continue
                widened += pieces.widening(start, end) != (0, 0)
                tags_K[first], tags_K[first + 1 : stop], used = _BEGIN, _INSIDE, stop
            if used or not marked:
                here.append((annotator, tags_K))
        tags_N.append(here)
    return SpanTags(tags_N, spans, widened, lost)
