"""A linear baseline to compare BERT with, fitted in seconds: TF-IDF with logistic or ridge regression.

No metrics and no files here. Features of one text: sublinear TF-IDF of words and pairs of words (Chinese and Japanese
characters count as words). Features of two texts: those of each, their absolute difference, and a few numbers that
measure their similarity, because a linear model cannot compare them otherwise.
Source: scikit-learn; Wang and Manning 2012, "Baselines and bigrams", for why such a baseline is a strong one.
"""

import re
import warnings
from collections.abc import Callable

import numpy as np
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge

_TOKEN = r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+|[^\w\s]"
_WORD = re.compile(_TOKEN)
# Inverse strength of the logistic penalty for one and for two texts a row. A held-out quarter of the training rows
# prefers 1 to 3 and 10 for MRPC and RTE, and 10 for SST-2, whose phrases overlap, so one text gets the middle.
_C = {1: 3.0, 2: 1.0}

Texts = list[tuple[str, ...]]
Predict = Callable[[scipy.sparse.csr_array], np.ndarray]


def fit_baseline(texts: Texts, targets: np.ndarray, kind: str) -> Callable[[Texts], np.ndarray]:
    """predict(texts) -> float32 [N, C]: shares that sum to 1 ("class"), a share per label ("classes"), or numbers.

    The same data gives the same model. A class that has no part in the training targets gets share 0; where one class
    has all of them, or where no text has a word, predictions are constant.

    Args:
      texts: one or two texts a row, the same number in every row.
      targets: [N, C], finite; soft targets count as that share of a row of each class. C is 1 for "number".
    """
    if kind not in ("class", "classes", "number"):
        raise ValueError(f"kind {kind!r} is none of class, classes, number")
    if not texts or targets.ndim != 2 or len(targets) != len(texts) or not np.isfinite(targets).all():
        raise ValueError(f"{len(texts)} texts, targets {targets.shape}: each text needs one row of finite targets")
    targets = targets.astype(np.float64)
    features = _Features(texts)
    matrix = features(texts)
    if kind == "number":
        models = [_fit_numbers(matrix, targets)]
    elif kind == "class":
        models = [_fit_shares(matrix, targets, _C[len(texts[0])])]
    else:
        # one against the rest: each label is a question of its own, with a yes and a no
        pairs = (np.stack([1 - target, target], axis=1) for target in targets.T)
        yes_or_no = [_fit_shares(matrix, pair, _C[len(texts[0])]) for pair in pairs]
        models = list(map(_yes, yes_or_no))

    def predict(texts: Texts) -> np.ndarray:
        if not texts:
            return np.zeros((0, targets.shape[1]), np.float32)
        rows = features(texts)
        return np.concatenate([model(rows) for model in models], axis=1).astype(np.float32)

    return predict


class _Features:
    """texts -> float64 CSR [N, features], with the vocabulary and the weights of the training texts."""

    def __init__(self, texts: Texts) -> None:
        self._width = len(texts[0])
        self._tfidf = TfidfVectorizer(token_pattern=_TOKEN, ngram_range=(1, 2), sublinear_tf=True)
        self._has_words = any(_WORD.search(text) for row in texts for text in row)
        if self._has_words:
            self._tfidf.fit(text for row in texts for text in row)

    def __call__(self, texts: Texts) -> scipy.sparse.csr_array:
        if any(len(row) != self._width for row in texts) or self._width not in (1, 2):
            raise ValueError(f"every row must have {self._width} texts, as the first training row has, and 1 or 2")
        if not self._has_words:
            return scipy.sparse.csr_array((len(texts), 1))
        sides = [scipy.sparse.csr_array(self._tfidf.transform(side)) for side in zip(*texts, strict=True)]
        if self._width == 1:
            return sides[0]
        return scipy.sparse.csr_array(scipy.sparse.hstack([*sides, abs(sides[0] - sides[1]), _likeness(texts, *sides)]))


def _likeness(texts: Texts, a: scipy.sparse.csr_array, b: scipy.sparse.csr_array) -> np.ndarray:
    """[N, 6]: cosine and its square, share of the words of each text in the other, of all in both, ratio of lengths."""
    cosine_N = np.asarray((a * b).sum(axis=1)).ravel()
    words = [tuple(set(_WORD.findall(text.lower())) for text in row) for row in texts]
    counts = np.array([(len(left), len(right), len(left & right)) for left, right in words], np.float64)
    left_N, right_N, both_N = counts.T
    of = (left_N, right_N, left_N + right_N - both_N, np.maximum(left_N, right_N))
    parts = (both_N, both_N, both_N, np.minimum(left_N, right_N))
    ratios = [part / np.maximum(whole, 1) for part, whole in zip(parts, of, strict=True)]
    return np.column_stack([cosine_N, cosine_N**2, *ratios])


def _fit_shares(matrix: scipy.sparse.csr_array, targets_NC: np.ndarray, inverse_penalty: float) -> Predict:
    """Logistic regression; each row once for every class that has a share in it, weighted by the share."""
    classes = np.flatnonzero(targets_NC.sum(axis=0) > 0)
    row_of, class_of = np.nonzero(targets_NC)
    width = targets_NC.shape[1]
    if len(classes) == 1:
        return lambda rows: np.repeat(np.eye(width)[classes], rows.shape[0], axis=0)
    model = LogisticRegression(C=inverse_penalty, max_iter=200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a baseline that is a little short of its optimum will do
        model.fit(matrix[row_of], class_of, sample_weight=targets_NC[row_of, class_of])

    def shares(rows: scipy.sparse.csr_array) -> np.ndarray:
        result = np.zeros((rows.shape[0], width))
        result[:, classes] = model.predict_proba(rows)
        return result

    return shares


def _yes(shares: Predict) -> Predict:
    return lambda rows: shares(rows)[:, 1:]


def _fit_numbers(matrix: scipy.sparse.csr_array, targets_NC: np.ndarray) -> Predict:
    model = Ridge(solver="sparse_cg").fit(matrix, targets_NC[:, 0])
    return lambda rows: model.predict(rows)[:, None]
