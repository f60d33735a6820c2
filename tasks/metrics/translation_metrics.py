"""Metrics of texts that a model writes: what the references cost by it, how many of its texts equal them, and BLEU and
chrF by sacrebleu.

Source: Post 2018, "A call for clarity in reporting BLEU scores"; Popović 2015 (chrF); Koehn 2004, "Statistical
significance tests for machine translation evaluation" (paired bootstrap).
"""

import importlib.util
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from bert.errors import InputError
from tasks.metrics.score import Score
from tasks.target_words import of_words

LOSS = "nll"
USUAL = ("nll", "perplexity", "accuracy")
_BY_SACREBLEU = ("bleu", "bleu_lower", "chrf")
_OF_TEXTS = ("exact", *_BY_SACREBLEU)
NAMES = (*USUAL, *_OF_TEXTS)
LOWER_IS_BETTER = ("nll", "perplexity")
RESAMPLES = 1_000  # of the paired bootstrap
_BUCKETS = ((1, 8), (9, 12), (13, 16), (17, None))  # words of a source, the last included; None: without end
_MISSING = "needs the package sacrebleu: pip install sacrebleu (it is in the extra 'translation')"


def of_texts(names: Collection[str]) -> bool:
    """Whether one of the metrics compares texts, so that the model has to write them."""
    return bool({*_OF_TEXTS} & {*names})


def is_installed() -> bool:
    return importlib.util.find_spec("sacrebleu") is not None


def check_installed(names: Collection[str], setting: str) -> None:
    """Raises InputError where a metric is asked for whose package is missing."""
    if named := [name for name in _BY_SACREBLEU if name in names and not is_installed()]:
        raise InputError(f"{setting} names {named[0]}, which {_MISSING}")


def of_costs(nats_N: np.ndarray, words_N: np.ndarray, correct_N: np.ndarray) -> dict[str, Score]:
    """Those of `target_words.of_words`, and n, the pairs; arguments as of `bert.prediction.translation.costs`."""
    values = of_words(float(nats_N.sum()), float(words_N.sum()), float(correct_N.sum()))
    undefined = None if words_N.sum() else "there is no word"
    return {name: Score(value, undefined) for name, value in values.items()} | {"n": Score(float(len(nats_N)))}


def scores(texts: Sequence[str], references: Sequence[str]) -> dict[str, Score]:
    """exact, the share of texts that equal their reference, blanks apart; bleu (13a tokens, cased), bleu_lower
    (lower-cased) and chrf, 0 to 100, of sacrebleu, with its signatures as remarks."""
    equal = [text.split() == reference.split() for text, reference in zip(texts, references, strict=True)]
    values = {"exact": Score(float(np.mean(equal)) if equal else None)}
    if not is_installed():
        return values | dict.fromkeys(_BY_SACREBLEU, Score(None, _MISSING))
    from sacrebleu.metrics import BLEU, CHRF  # an extra, and slow to import

    # Of tokenized texts sacrebleu warns once here; `force` keeps it from saying so again.
    for name, metric in zip(_BY_SACREBLEU, (BLEU(), BLEU(lowercase=True, force=True), CHRF()), strict=True):
        result = metric.corpus_score(list(texts), [list(references)])
        values[name] = Score(float(result.score), str(metric.get_signature()))
    return values


class LengthRow(NamedTuple):
    """The pairs whose sources have so many words; bleu and nll as of all pairs, None where undefined."""

    words: str
    pairs: int
    bleu: float | None
    nll: float | None


def by_length(
    sources: Sequence[str], texts: Sequence[str], references: Sequence[str], nats_N: np.ndarray, words_N: np.ndarray
) -> list[LengthRow]:
    """A row for each bucket of source lengths, in words between blanks; the other arguments as above."""
    length_N = np.array([len(source.split()) for source in sources])
    rows = []
    for first, last in _BUCKETS:
        chosen = np.flatnonzero((length_N >= first) & (length_N <= (last or length_N.max(initial=0)))).tolist()
        bleu = _bleu([texts[i] for i in chosen], [references[i] for i in chosen]) if chosen and is_installed() else None
        nll = of_words(float(nats_N[chosen].sum()), float(words_N[chosen].sum()), 0.0)["nll"]
        rows.append(LengthRow(f"{first}-{last}" if last else f"{first}+", len(chosen), bleu, nll))
    return rows


def _bleu(texts: Sequence[str], references: Sequence[str]) -> float:
    from sacrebleu.metrics import BLEU

    return float(BLEU(force=True).corpus_score(texts, [references]).score)


class Resampled(NamedTuple):
    """A score, and the 95 % interval of its resamples: their mean and half its width."""

    value: float
    mean: float
    half_width: float


class Compared(NamedTuple):
    """BLEU of the model and of another system, and p, how often chance alone makes a difference as large."""

    model: Resampled
    other: Resampled
    p: float
    signature: str


def compared(texts: Sequence[str], others: Sequence[str], references: Sequence[str]) -> Compared:
    """The paired bootstrap of sacrebleu (`RESAMPLES`; its seed is fixed) of two systems' texts for the same sources."""
    from sacrebleu.metrics import BLEU
    from sacrebleu.significance import PairedTest

    systems: list[tuple[str, Sequence[str]]] = [("other", others), ("model", texts)]
    test = PairedTest(systems, {"bleu": BLEU(force=True)}, [list(references)], test_type="bs", n_samples=RESAMPLES)
    signatures, results = test()
    rows: Any = results["BLEU"]
    other, model = (Resampled(float(row.score), float(row.mean), float(row.ci)) for row in rows)
    # Where no resample differs, sacrebleu gives the least p that there is.
    p = float(rows[1].p_value) if model.value != other.value else 1.0
    return Compared(model, other, p, str(signatures["BLEU"]))
