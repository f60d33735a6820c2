"""The rows that a run leaves for its report: sentences word by word, with true and predicted tags and the votes.

Beside the keys of every task (bert/reports/records.py) a row has

  loss       L = -sum_i sum_j t_ij log p_ij over the words, in nats, against the shares of the votes
  wrong      how many words have a wrong tag
  truth, predicted   the tags; null where nobody gave one
  errors     (where tags mark entities) those that are not right: [kind, true entity, predicted one], see
             tasks/metrics/entity_errors.py; an entity is [type, text], null where there is none
  sentence   of the `DETAILED` rows with the largest losses and of as many with the most wrong words: for each word
             [word, tag, predicted tag, its probability, share of votes for an entity, votes]; null stands for a stretch
             that is left out. votes: tag -> number, where annotators differ, else null.

Axes: K word of all sentences, C tag, N sentence.
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from tasks import excerpts
from tasks.metrics import entity_errors, ratio_intervals
from tasks.metrics.entity_errors import EntityPair
from tasks.metrics.entity_metrics import Entity
from tasks.metrics.score import Interval
from tasks.tagging.tag_schemes import TaggedSentence

DETAILED = 150
MOST, AROUND = 300, 30  # words of a sentence, and beside what is marked in a longer one
_DIGITS = 5


@dataclasses.dataclass(frozen=True)
class ScoredSentences:
    """What was scored; ``counts_KC``: the votes; ``pairs_N``: the entities, empty where tags mark none."""

    rows: Sequence[TaggedSentence]
    labels: Sequence[str]
    counts_KC: np.ndarray
    p_KC: np.ndarray
    gold_N: Sequence[Sequence[str | None]]
    predicted_N: Sequence[Sequence[str]]
    pairs_N: Sequence[Sequence[EntityPair]]

    @functools.cached_property
    def starts(self) -> np.ndarray:
        """int64 [N + 1]: where each sentence begins in K."""
        return np.concatenate([[0], np.cumsum([len(row.words) for row in self.rows])]).astype(np.int64)

    @functools.cached_property
    def losses_N(self) -> list[float]:
        total_K1 = self.counts_KC.sum(1, keepdims=True)
        share_KC = np.divide(self.counts_KC, total_K1, out=np.zeros_like(self.counts_KC), where=total_K1 > 0)
        loss_K = -(share_KC * np.log(np.maximum(self.p_KC, np.finfo(np.float64).tiny))).sum(1)
        sums_K = np.concatenate([[0.0], np.cumsum(loss_K)])
        values: list[float] = (sums_K[self.starts[1:]] - sums_K[self.starts[:-1]]).tolist()
        return values

    @functools.cached_property
    def wrong_N(self) -> list[int]:
        """How many words of each sentence have a wrong tag."""
        return [
            sum(truth not in (guess, None) for truth, guess in zip(*both, strict=True))
            for both in zip(self.gold_N, self.predicted_N, strict=True)
        ]

    def intervals(self) -> dict[str, Interval]:
        """Over sentences: of accuracy, cross-entropy, and of precision, recall and F1 of entities."""
        voted_K = self.counts_KC.any(1)
        sums_K = np.concatenate([[0], np.cumsum(voted_K)])
        words_N = (sums_K[self.starts[1:]] - sums_K[self.starts[:-1]]).astype(float)
        losses_N, wrong_N = np.array(self.losses_N), np.array(self.wrong_N, float)
        ratios = {"accuracy": [(words_N - wrong_N, words_N)], "cross_entropy": [(losses_N, words_N)]}
        if self.pairs_N:
            hits_N, gold_N, said_N = self._entities(None)
            ratios |= {
                "precision": [(hits_N, said_N)],
                "recall": [(hits_N, gold_N)],
                "f1": [(2 * hits_N, gold_N + said_N)],
            }
            for kind in sorted(
                {entity.type for pairs in self.pairs_N for pair in pairs for entity in pair[1:] if entity}
            ):
                hits_N, gold_N, said_N = self._entities(kind)
                ratios[f"f1:{kind}"] = [(2 * hits_N, gold_N + said_N)]
        return ratio_intervals.intervals(ratios)

    def _entities(self, kind: str | None) -> np.ndarray:
        """float64 [3, N]: right, true and predicted entities of a type, None: of any, in each sentence."""
        counts = [
            [
                (pair.kind == "right" and kind in (None, pair.gold and pair.gold.type),
                 pair.gold is not None and kind in (None, pair.gold.type),
                 pair.predicted is not None and kind in (None, pair.predicted.type))
                for pair in pairs
            ]
            for pairs in self.pairs_N
        ]  # fmt: skip
        return np.array([np.array(each, float).reshape(-1, 3).sum(0) for each in counts]).reshape(-1, 3).T

    @functools.cached_property
    def detailed(self) -> list[int]:
        """The rows that have their words."""
        return excerpts.worst(self.losses_N, self.wrong_N, each=DETAILED)

    def row_of(self, i: int) -> dict[str, Any]:
        """The row of a number."""
        row, gold, predicted = self.rows[i], self.gold_N[i], self.predicted_N[i]
        line: dict[str, Any] = {"place": row.place, **({"id": row.id} if row.id else {})}
        line |= {"loss": self.losses_N[i], "wrong": self.wrong_N[i], "truth": gold, "predicted": predicted}
        if self.pairs_N:
            line["errors"] = [
                [pair.kind, _shown(row, pair.gold), _shown(row, pair.predicted)]
                for pair in self.pairs_N[i]
                if pair.kind != "right"
            ]
        if i in self.detailed:
            line["sentence"] = self._sentence(i)
        return line

    def _sentence(self, i: int) -> list[list[Any] | None]:
        gold, predicted, first = self.gold_N[i], self.predicted_N[i], int(self.starts[i])
        nothing = {"O", None} if "O" in self.labels else {None, *self.labels}
        both = zip(gold, predicted, strict=True)
        marked = np.array([truth not in (guess, None) or bool({truth, guess} - nothing) for truth, guess in both], bool)
        index = {label: c for c, label in enumerate(self.labels)}
        parts: list[list[Any] | None] = []
        for k, shown in enumerate(excerpts.kept(marked, MOST, AROUND).tolist()):
            if not shown:
                parts += [None] if parts[-1:] != [None] else []
                continue
            votes = {label: n for label, n in zip(self.labels, self.counts_KC[first + k].tolist(), strict=True) if n}
            share = round(1 - votes.get("O", 0) / sum(votes.values()), _DIGITS) if votes and "O" in index else None
            p = round(float(self.p_KC[first + k, index[predicted[k]]]), _DIGITS)
            word = self.rows[i].words[k]
            parts.append([word, gold[k], predicted[k], p, share, votes if len(votes) > 1 else None])
        return parts


def _shown(row: TaggedSentence, entity: Entity | None) -> list[str] | None:
    return entity and [entity.type, " ".join(row.words[entity.start : entity.end])]


def values(scored: ScoredSentences) -> dict[str, Any]:
    """ "errors" (of entities) and "confusion", for the report."""
    if scored.pairs_N:
        return {"errors": entity_errors.counts(scored.pairs_N), "confusion": entity_errors.confusion(scored.pairs_N)}
    index = {label: c for c, label in enumerate(scored.labels)}
    counts_CC = np.zeros((len(index), len(index)), np.int64)
    for gold, predicted in zip(scored.gold_N, scored.predicted_N, strict=True):
        for truth, guess in zip(gold, predicted, strict=True):
            if truth is not None:
                counts_CC[index[truth], index[guess]] += 1
    return {"confusion": {"labels": list(scored.labels), "counts": counts_CC.tolist()}}
