"""The rows that a run leaves for its report: answers in their passages; and how scores depend on the threshold.

Beside the keys of every task (bert/reports/records.py) a row has

  loss       of a wrong answer 100 - F1, plus its probability, so that the surest of the wrong come first; else 0
  question, exact, f1
  truth      the texts of the annotators' answers
  predicted  as of `squad.answers`, without candidates
  passage    of the `DETAILED` rows with the largest losses the text, as strings and, where something is marked,
             [text, marks]; null stands for a stretch that is left out. marks: "g" in an annotator's answer, "p" in the
             predicted one, capitals where it begins.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tasks import excerpts
from tasks.metrics import ratio_intervals, span_metrics
from tasks.metrics.score import Interval
from tasks.questions.question_rows import Question

DETAILED = 200
MOST, AROUND = 1500, 300  # characters of a passage, and beside what is marked in a longer one
POINTS = 200  # of the curve of thresholds


def losses(exact_N: np.ndarray, f1_N: np.ndarray, predictions: Sequence[Mapping[str, Any]]) -> list[float]:
    """Of each row, see above; scores in percent."""
    p_N = np.array([prediction["probability"] for prediction in predictions])
    values: list[float] = np.where(f1_N < 100, 100 - f1_N + p_N, 0.0).tolist()
    return values


def detailed(losses_N: Sequence[float]) -> list[int]:
    """The rows that have their passages."""
    return excerpts.worst(losses_N, each=DETAILED)


def row_maker(
    rows: Sequence[Question],
    predictions: Sequence[Mapping[str, Any]],
    answers: Sequence[Sequence[str]],
    losses_N: Sequence[float],
    exact_N: np.ndarray,
    f1_N: np.ndarray,
) -> Callable[[int], dict[str, Any]]:
    """Makes the row of a number. ``answers``: the texts of the annotators."""
    has_passage = set(detailed(losses_N))

    def row_of(i: int) -> dict[str, Any]:
        row, answer = rows[i], {name: value for name, value in predictions[i].items() if name != "candidates"}
        line: dict[str, Any] = {"place": row.place, "id": row.id, "loss": losses_N[i], "question": row.question}
        line |= {"truth": list(answers[i]), "predicted": answer, "exact": float(exact_N[i]), "f1": float(f1_N[i])}
        if i in has_passage:
            golds = [span for annotation in row.annotations for span in annotation.spans]
            predicted = [] if answer["start"] is None else [(answer["start"], answer["end"])]
            line["passage"] = passage(row.context, golds, predicted)
        return line

    return row_of


def passage(
    context: str, golds: Sequence[tuple[int, int]], predicted: Sequence[tuple[int, int]]
) -> list[str | list[str] | None]:
    """The text as "passage" holds it."""
    marks = [""] * len(context)
    for letter, spans in (("g", golds), ("p", predicted)):
        begins = {start for start, _ in spans}
        for k in sorted({k for start, end in spans for k in range(start, end)}):
            marks[k] += letter.upper() if k in begins else letter
    shown = excerpts.kept(np.array(list(map(bool, marks)), bool), MOST, AROUND)
    parts: list[str | list[str] | None] = []
    pieces = [f"{k}" if mark != mark.lower() else "" for k, mark in enumerate(marks)]  # a span begins a part
    begun = list(itertools.accumulate(pieces, lambda before, here: here or before, initial=""))[1:]
    keys = zip(shown.tolist(), [mark.lower() for mark in marks], begun, strict=True)
    at = 0
    for (is_shown, mark, _), group in itertools.groupby(keys):
        end = at + len(list(group))
        if not is_shown:
            parts += [None] if parts[-1:] != [None] else []
        else:
            parts.append([context[at:end], marks[at]] if mark else context[at:end])
        at = end
    return parts


def threshold_curve(
    answers: Mapping[str, Sequence[str]],
    spans: Mapping[str, str],
    odds: Mapping[str, float],
    characters: frozenset[str],
) -> list[list[float]]:
    """[threshold, exact, F1] in percent: the official scores if just the questions with lower odds of no answer, or the
    same, are answered, at up to `POINTS` of the odds, ascending."""
    both_N2 = np.array([
        span_metrics.question_scores(spans[id], golds, characters=id in characters) for id, golds in answers.items()
    ])  # fmt: skip
    null_N2 = np.array([span_metrics.question_scores("", golds) for golds in answers.values()])
    odds_N = np.array([odds[id] for id in answers])
    finite = np.unique(odds_N[np.isfinite(odds_N)])
    if not len(finite):
        return []
    order = np.argsort(odds_N, kind="stable")
    sums_N2 = np.concatenate([np.zeros((1, 2)), np.cumsum((both_N2 - null_N2)[order], axis=0)])
    chosen = finite[np.unique(np.linspace(0, len(finite) - 1, POINTS).round().astype(int))]
    scores_P2 = null_N2.sum(0) + sums_N2[np.searchsorted(odds_N[order], chosen, side="right")]
    points: list[list[float]] = np.column_stack([chosen, 100 * scores_P2 / len(answers)]).tolist()
    return points


def intervals(answers: Sequence[Sequence[str]], exact_N: np.ndarray, f1_N: np.ndarray) -> dict[str, Interval]:
    """Those of the official scores, over questions."""
    has_N = np.array([bool(texts) for texts in answers], float)
    parts = {"": np.ones(len(has_N)), "HasAns_": has_N, "NoAns_": 1 - has_N}
    return ratio_intervals.intervals({
        f"{part}{name}": [(value_N * in_N, in_N)]
        for part, in_N in parts.items()
        for name, value_N in (("exact", exact_N), ("f1", f1_N))
    })  # fmt: skip


def by_group(
    rows: Sequence[Question], answers: Sequence[Sequence[str]], exact_N: np.ndarray, f1_N: np.ndarray
) -> dict[str, dict[str, dict[str, float]]]:
    """Exact match and F1, and the number of questions, by what questions and answers are like."""
    first = [row.question.split()[0].lower() if row.question.split() else "" for row in rows]
    usual = {word for word, _ in sorted(_counted(first).items(), key=lambda item: -item[1])[:9]}
    keys = {
        "first word of the question": [word if word in usual else "others" for word in first],
        "words of the question": [_length(row.question, (5, 10, 15)) for row in rows],
        "words of the answer": [
            _length(texts[0], (1, 2, 5)) if texts and texts[0] else "no answer" for texts in answers
        ],
    }
    result: dict[str, dict[str, dict[str, float]]] = {}
    for name, key_N in keys.items():
        counts = _counted(key_N)
        order = sorted(counts, key=lambda key: -counts[key]) if name.startswith("first") else sorted(counts, key=_order)
        result[name] = {}
        for key in order:
            here = np.array([other == key for other in key_N])
            result[name][key] = {"n": counts[key], "exact": float(exact_N[here].mean()), "f1": float(f1_N[here].mean())}
    return result


def _counted(keys: Sequence[str]) -> dict[str, int]:
    return {key: keys.count(key) for key in dict.fromkeys(keys)}


def _length(text: str, limits: Sequence[int]) -> str:
    """The range that holds the number of words."""
    count, least = len(text.split()), 0
    for most in limits:
        if count <= most:
            return f"{max(least, 1)} to {most}" if most > max(least, 1) else f"{most}"
        least = most + 1
    return f"{least} or more"


def _order(key: str) -> int:
    return int(key.split()[0]) if key[:1].isdigit() else -1
