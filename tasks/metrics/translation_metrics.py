"""Metrics of translations: what the references cost by the model, and BLEU and chrF of its texts by sacrebleu.

Source: Post 2018, "A call for clarity in reporting BLEU scores"; Popović 2015 (chrF).
"""

import importlib.util
from collections.abc import Collection, Sequence

import numpy as np

from bert.errors import InputError
from tasks.metrics.score import Score
from tasks.target_words import of_words

LOSS = "nll"
USUAL = ("nll", "perplexity", "accuracy")
_OF_TEXTS = ("bleu", "chrf")
NAMES = (*USUAL, *_OF_TEXTS, "n")
LOWER_IS_BETTER = ("nll", "perplexity")
_MISSING = "needs the package sacrebleu: pip install sacrebleu (it is in the extra 'translation')"


def of_texts(names: Collection[str]) -> bool:
    """Whether one of the metrics compares texts, so that the model has to write them."""
    return bool({*_OF_TEXTS} & {*names})


def is_installed() -> bool:
    return importlib.util.find_spec("sacrebleu") is not None


def check_installed(names: Collection[str], setting: str) -> None:
    """Raises InputError where a metric is asked for whose package is missing."""
    if of_texts(names) and not is_installed():
        raise InputError(f"{setting} names {'bleu' if 'bleu' in names else 'chrf'}, which {_MISSING}")


def of_costs(nats_N: np.ndarray, words_N: np.ndarray, correct_N: np.ndarray) -> dict[str, Score]:
    """Those of `target_words.of_words`, and n, the pairs; arguments as of `bert.prediction.translation.costs`."""
    values = of_words(float(nats_N.sum()), float(words_N.sum()), float(correct_N.sum()))
    undefined = None if words_N.sum() else "there is no word"
    return {name: Score(value, undefined) for name, value in values.items()} | {"n": Score(float(len(nats_N)))}


def scores(texts: Sequence[str], references: Sequence[str]) -> dict[str, Score]:
    """bleu (13a tokens, cased) and chrf, 0 to 100, of sacrebleu, with its signatures as remarks."""
    if not is_installed():
        return dict.fromkeys(_OF_TEXTS, Score(None, _MISSING))
    from sacrebleu.metrics import BLEU, CHRF  # an extra, and slow to import

    values = {}
    for name, metric in zip(_OF_TEXTS, (BLEU(), CHRF()), strict=True):
        result = metric.corpus_score(list(texts), [list(references)])
        values[name] = Score(float(result.score), str(metric.get_signature()))
    return values
