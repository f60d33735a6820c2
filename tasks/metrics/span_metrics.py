"""Metrics of answer texts: exact match and token F1 (SQuAD), several spans per question (MultiSpanQA).

Pure functions of texts; no files, no model. All scores are in percent, as in the official scripts, and undefined ones
are None. span_metrics_test.py compares this implementation with golden values.

Rules:
  Normal form. Lower case, without ASCII punctuation, without the words a, an, the; runs of white space are one blank.
    No Unicode normalisation: "café" in two encodings differs, and text without blanks is one token.
  Characters as tokens. In languages without blanks between words, F1 would be exact match. In passages of this kind
    (`without_blanks`), each character of such a script is a token, with the marks that follow it. Punctuation is left
    out, and other words stay words, as in MLQA and CMRC 2018. All other passages have the official F1.
  Several gold answers. The best score over them, not the mean. Without gold answers, "" is correct.
  Versions. If an answer has no tokens left, 2.0 gives F1 1 if both have none; 1.1 gives 0, because no token is shared.
    2.0 leaves out gold answers without tokens if there are others; 1.1 does not.
  No answer. The answer is "" if the null odds (no answer minus best span) are above the threshold.
  No prediction. Counts as wrong, as in the script of 1.1; that of 2.0 breaks.

Source: Rajpurkar et al. 2016 (1.1), 2018 (2.0); Li et al. 2022, section 5, and github.com/haonan-li/MultiSpanQA; Lewis
et al. 2020 (MLQA, mlqa_evaluation_v1.py); Cui et al. 2019 (CMRC 2018).
"""

import collections
import difflib
import math
import re
import string
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
from absl import logging

from bert.errors import InputError

VERSIONS = ("1.1", "2.0")
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
# Scripts without blanks between words. The ranges are those of Unicode's blocks.
_WITHOUT_BLANKS = re.compile(
    "["
    "\u0e00-\u0fff"  # Thai, Lao, Tibetan
    "\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f"  # Myanmar
    "\u1780-\u17ff\u1950-\u19ff\u1a20-\u1aaf\uaa80-\uaadf"  # Khmer, Tai
    "\u3005-\u3007\u3040-\u312f\u31a0-\u31bf\u31f0-\u31ff\uff66-\uff9f\U0001aff0-\U0001b16f"  # kana, Bopomofo
    "\u2e80-\u2fdf\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
    "]"
)


def normalize_answer(text: str) -> str:
    """The text in normal form."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def exact_match(prediction: str, answers: Sequence[str]) -> int:
    """1 where the prediction has the normal form of one of the answers, else 0."""
    return int(normalize_answer(prediction) in map(normalize_answer, _golds(answers)))


def token_f1(prediction: str, answers: Sequence[str], version: str = "2.0", *, characters: bool = False) -> float:
    """F1 of the tokens in normal form, each as often as it is there; the largest over the answers.

    ``characters``: whether characters of scripts without blanks are tokens, see `without_blanks`.
    """
    _check_version(version)
    tokens = _tokens(prediction, characters)
    return max(_overlap_f1(tokens, _tokens(answer, characters), version) for answer in _golds(answers))


def question_scores(
    prediction: str, answers: Sequence[str], version: str = "2.0", *, characters: bool = False
) -> tuple[float, float]:
    """Exact match and F1 of one question by the official rules; arguments as above, no answers for "no answer"."""
    golds = _golds(answers)
    if version == "2.0":
        golds = [gold for gold in golds if normalize_answer(gold)] or [""]
    return float(exact_match(prediction, golds)), token_f1(prediction, golds, version, characters=characters)


def without_blanks(passage: str) -> bool:
    """Whether a passage is in a language that puts no blanks between words, such as Chinese, Japanese and Thai.

    It is where characters of such scripts are more than half of characters and other words. Foreign names change
    nothing: they are at most 16 % in a passage of SQuAD's dev parts, and in XQuAD's Chinese the least is 77 %.
    """
    if passage.isascii():
        return False
    rest, count = _WITHOUT_BLANKS.subn(" ", passage)
    return count > len(rest.split())


def by_characters(passages: Mapping[str, str]) -> frozenset[str]:
    """Ids of those passages whose characters are tokens, see `without_blanks`."""
    return frozenset(id for id, passage in passages.items() if without_blanks(passage))


def squad_scores(
    answers: Mapping[str, Sequence[str]],
    predictions: Mapping[str, str],
    null_odds: Mapping[str, float] | None = None,
    threshold: float | None = None,
    version: str = "2.0",
    characters: Collection[str] = (),
) -> dict[str, float | None]:
    """The official scores: exact, f1, total; HasAns_* and NoAns_* apart; best_exact, best_f1 and their *_thresh.

    The best_* are None without null_odds; the official script takes 0 for each question then, and a best score that no
    threshold gives. With equal odds it does so too, for it counts them one by one, and it never tries a threshold
    below all odds; its numbers are given here, and `best_threshold` finds one that gives what it promises.

    Args:
      answers: id -> gold answers; none where the question has no answer.
      predictions: id -> text. Those of other questions are ignored, so a part of a file can be scored. A question
        without one counts as wrong, and a warning says how many do.
      null_odds: id -> how much more likely "no answer" is than the best span, on any scale.
      threshold: above it, the answer is "", and counts as if it stood in predictions (the official script takes it for
        wrong where all golds are empty in normal form); None: the predictions as they are.
      characters: ids of the questions whose characters are tokens, see `by_characters`.

    Raises:
      InputError: a prediction that is no text, odds that are missing or NaN, or given without a prediction, a threshold
        without odds, another version.
    """
    _check_version(version)
    if threshold is not None and null_odds is None:
        raise InputError(f"threshold {threshold} needs the null odds of the questions; give them, or no threshold")
    missing = {id: None for id in answers if predictions.get(id) is None} if null_odds is None else {}
    if missing:
        text = "%d of %d questions have no prediction and count as wrong (first %r)"
        logging.warning(text, len(missing), len(answers), next(iter(missing)))
    raw = {
        id: (0.0, 0.0) if id in missing else _raw_scores(id, golds, predictions, version, id in characters)
        for id, golds in answers.items()
    }
    odds = {} if null_odds is None else _odds_of(answers, null_odds)
    limit = math.inf if threshold is None else threshold
    final = {
        id: question_scores("", answers[id], version) if odds.get(id, -math.inf) > limit else scores
        for id, scores in raw.items()
    }
    answered = [id for id, golds in answers.items() if golds]
    parts = {"": list(answers), "HasAns_": answered, "NoAns_": [id for id, golds in answers.items() if not golds]}
    result: dict[str, float | None] = {}
    for start, ids in parts.items():
        for place, name in enumerate(("exact", "f1")):
            result[start + name] = 100 * sum(final[id][place] for id in ids) / len(ids) if ids else None
        result[start + "total"] = len(ids)
    for place, name in enumerate(("exact", "f1")):
        scores = {id: both[place] for id, both in raw.items()}
        best = _official_best(answers, predictions, scores, odds) if odds else (None, None)
        result[f"best_{name}"], result[f"best_{name}_thresh"] = best
    return result


def best_threshold(
    answers: Mapping[str, Sequence[str]],
    predictions: Mapping[str, str],
    null_odds: Mapping[str, float],
    measure: str = "f1",
    version: str = "2.0",
    characters: Collection[str] = (),
) -> tuple[float, float]:
    """(threshold, score in percent): the best that a threshold gives `squad_scores` for measure "f1" or "exact".

    It lies midway between the odds of two questions, or 1 beyond
    the outermost, so that rounding of the odds does not change an answer; of equally good ones it is the lowest.
    Questions of infinite odds are never, or always, answered by "".
    """
    if measure not in ("f1", "exact"):
        raise InputError(f"measure {measure!r} must be one of f1, exact")
    if not answers:
        raise InputError("there are no questions to choose a threshold by; give at least one")
    place = ("exact", "f1").index(measure)
    scores = [_raw_scores(id, answers[id], predictions, version, id in characters) for id in answers]
    kept_N = np.array([both[place] for both in scores])
    odds = _odds_of(answers, null_odds)
    odds_N = np.array([odds[id] for id in answers])
    order = np.argsort(odds_N, kind="stable")
    null_N = np.array([question_scores("", golds, version)[place] for golds in answers.values()])
    gains = np.concatenate([[0.0], np.cumsum((kept_N - null_N)[order])])
    candidates = _between(np.unique(odds_N[np.isfinite(odds_N)]))
    totals = null_N.sum() + gains[np.searchsorted(odds_N[order], candidates, side="right")]
    best = int(np.argmax(totals > totals.max() - 1e-9))  # sums in another order differ in their last digits
    return float(candidates[best]), float(100 * totals[best] / len(answers))


def multi_span_scores(golds: Sequence[Sequence[str]], predictions: Sequence[Sequence[str]]) -> dict[str, float | None]:
    """exact_precision, exact_recall, exact_f1 and overlap_* over all questions, in percent; None without questions.

    Texts in normal form, equal ones once. exact: a prediction counts where it is one of the golds. overlap: each
    prediction gets the largest share of its characters that it has in one piece with a gold; each gold likewise. A
    side without texts counts as one, which is right where the other has none either. As in the official script, a
    lone "" means "no answer" to overlap, but is a wrong text to exact; say [] for it.
    """
    return scores_of_sums(multi_span_sums(golds, predictions))


def scores_of_sums(sums_N5: np.ndarray) -> dict[str, float | None]:
    """The scores of `multi_span_scores`, of `multi_span_sums`."""
    gold_count, predicted_count, hits, overlap_predicted, overlap_gold = sums_N5.sum(0).tolist()
    result: dict[str, float | None] = {}
    for name, of_predicted, of_gold in (("exact", hits, hits), ("overlap", overlap_predicted, overlap_gold)):
        precision = recall = f1 = None
        if len(sums_N5):
            precision, recall = 100 * of_predicted / predicted_count, 100 * of_gold / gold_count
            f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        result |= {f"{name}_precision": precision, f"{name}_recall": recall, f"{name}_f1": f1}
    return result


def multi_span_sums(golds: Sequence[Sequence[str]], predictions: Sequence[Sequence[str]]) -> np.ndarray:
    """float64 [N, 5], of each question the numbers of golds and of predictions, exact hits, and the overlap of
    predictions and of golds; see `multi_span_scores`."""
    if len(golds) != len(predictions):
        raise InputError(f"{len(predictions):,} predictions for {len(golds):,} questions; give one for each, in order")
    sums_N5 = np.zeros((len(golds), 5))
    for n, (gold_texts, predicted_texts) in enumerate(zip(golds, predictions, strict=True)):
        gold, predicted = _normal_set(gold_texts), _normal_set(predicted_texts)
        hits = len(gold & predicted) if gold or predicted else 1.0
        sums_N5[n] = max(len(gold), 1), max(len(predicted), 1), hits, *_overlaps(gold, predicted)
    return sums_N5


def _check_list(name: str, texts: Iterable[str]) -> None:
    if isinstance(texts, str):  # its letters would be taken for texts
        raise InputError(f"{name} {texts[:40]!r} are one text; give a list of texts")


def _golds(answers: Sequence[str]) -> Sequence[str]:
    _check_list("answers", answers)
    return answers or ("",)


def _check_version(version: str) -> None:
    if version not in VERSIONS:
        raise InputError(f"version {version!r} of the rules must be one of {', '.join(VERSIONS)}")


def _tokens(text: str, characters: bool) -> list[str]:
    words = normalize_answer(text).split()
    return [token for word in words for token in _segments(word)] if characters else words


def _segments(word: str) -> list[str]:
    """Characters of scripts without blanks, each with the marks behind it, and the stretches between them."""
    segments: list[str] = []
    open_stretch = False  # whether another letter belongs to the last stretch
    for character in word:
        kind, alone = unicodedata.category(character)[0], bool(_WITHOUT_BLANKS.match(character))
        if kind == "P":
            continue
        if segments and (kind == "M" or (open_stretch and not alone)):
            segments[-1] += character
        else:
            segments.append(character)
            open_stretch = not alone
    return segments


def _overlap_f1(predicted: list[str], gold: list[str], version: str) -> float:
    if version == "2.0" and not (predicted and gold):
        return float(predicted == gold)
    shared = (collections.Counter(predicted) & collections.Counter(gold)).total()
    return 2 * shared / (len(predicted) + len(gold)) if shared else 0.0


def _raw_scores(
    id: str, answers: Sequence[str], predictions: Mapping[str, str], version: str, characters: bool
) -> tuple[float, float]:
    """Exact match and F1 of a question, whatever the threshold."""
    prediction = predictions.get(id)
    if not isinstance(prediction, str):
        fault = "has no prediction" if prediction is None else f"has the prediction {prediction!r}, which is no text"
        raise InputError(f'question {id!r} {fault}; give a text for each question, "" for no answer')
    return question_scores(prediction, answers, version, characters=characters)


def _odds_of(answers: Mapping[str, Sequence[str]], null_odds: Mapping[str, float]) -> dict[str, float]:
    """Odds of the questions, in the order of null_odds."""
    for id in answers:
        value = null_odds.get(id)
        if value is None or math.isnan(value):
            raise InputError(f"question {id!r} has the null odds {value}; give a number for each question")
    return {id: float(value) for id, value in null_odds.items() if id in answers}


def _official_best(
    answers: Mapping[str, Sequence[str]], predictions: Mapping[str, str], scores: Mapping[str, float],
    odds: Mapping[str, float],
) -> tuple[float, float]:  # fmt: skip
    """Best score in percent and its threshold as the official script finds them: one question after another, of equal
    odds the first in their order."""
    total = best = float(sum(not golds for golds in answers.values()))
    threshold = 0.0
    for id in sorted(odds, key=lambda id: odds[id]):
        total += scores[id] if answers[id] else -float(bool(predictions[id]))
        if total > best:
            best, threshold = total, odds[id]
    return 100 * best / len(scores), threshold


def _between(odds: np.ndarray) -> np.ndarray:
    """Thresholds, ascending: below all these odds, between each two neighbours, above all; the odds are distinct."""
    if not len(odds):
        return np.zeros(1)
    middle = odds[:-1] / 2 + odds[1:] / 2
    middle = np.where(middle < odds[1:], middle, odds[:-1])  # neighbouring floats have nothing between them
    lowest = min(odds[0] - 1, np.nextafter(odds[0], -np.inf))  # far from 0, 1 is less than a rounding error
    return np.concatenate([[lowest], middle, [odds[-1] + 1]])


def _normal_set(texts: Iterable[str]) -> set[str]:
    _check_list("spans", texts)
    return {normalize_answer(text) for text in texts}


def _overlaps(gold: set[str], predicted: set[str]) -> tuple[float, float]:
    """Sum over predictions, and over golds, of the largest share of characters in one piece with the other side."""
    if not gold or not predicted:
        right = float(not gold and predicted <= {""})
        return right, right
    # The matcher's habit of not looking at frequent letters of long texts (autojunk) is part of the official numbers.
    matchers = {(g, p): difflib.SequenceMatcher(None, g, p) for g in gold for p in predicted}
    longest = {pair: matcher.find_longest_match().size for pair, matcher in matchers.items()}
    of_predicted = sum(max(longest[g, p] for g in gold) / max(len(p), 1) for p in predicted)
    of_gold = sum(max(longest[g, p] for p in predicted) / max(len(g), 1) for g in gold)
    return of_predicted, of_gold
