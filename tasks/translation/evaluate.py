"""Evaluates translation models on pairs of sentences, and writes translations of files."""

import dataclasses
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from bert.data.sequence_pairs import EncodedPairs
from bert.errors import InputError, check_choice, printable
from bert.inference import LoadedModel
from bert.pages import translation_page
from bert.prediction import source_attention, translation
from bert.prediction.translation import TranslationOptions
from tasks import evaluation
from tasks.evaluation import WRITTEN_WORST, Evaluation
from tasks.files import outputs
from tasks.metrics import translation_metrics
from tasks.metrics.score import Score
from tasks.translation import pairs
from tasks.translation.pairs import FILE_SETTINGS, Sourced

SEARCH = {"beams": int, "length_penalty": float, "best": int}  # fields of `TranslationOptions` that commands change
_ADDED = ("predicted", "score")  # columns of the answers, which replace those of an earlier prediction


class TranslationEvaluator(evaluation.Evaluator):
    """See `tasks.evaluation.Evaluator`.

    Formats. txt: a translation a line. csv and tsv: the row's columns (of a text file "source"), then ``predicted`` and
    ``score``; with several candidates (``best``) a row each. jsonl: the row with ``predicted``, an object with the
    translation, its score and the candidates.
    """

    formats = ("txt", "csv", "tsv", "jsonl")
    file_defaults: ClassVar = FILE_SETTINGS | dict.fromkeys((*SEARCH, "attention", "against"), "")
    unit = "pairs"
    written: ClassVar[str] = translation.KEY  # what an answer calls the text
    read_from: ClassVar[str] = "source"  # what files call its source
    options_of: ClassVar[Callable[..., TranslationOptions]] = staticmethod(translation.options_of)

    def __init__(self, model: LoadedModel, changes: Mapping[str, str | None], batch_size: int = 32) -> None:
        super().__init__(model, changes, batch_size)
        self.options = self.options_of(model.extra, model.config)
        for name, kind in SEARCH.items():
            if value := self.settings[name]:
                self.options = dataclasses.replace(self.options, **{name: _number(name, value, kind)})

    def read(self, data: str, *, split: str, labelled: str) -> Sourced:
        del split
        return pairs.read_pairs(data, self.settings, labelled=labelled == "needed")

    def check_metrics(self, names: Sequence[str], examples: Sourced) -> None:
        for name in names:
            check_choice("--metrics", name, translation_metrics.NAMES)
        translation_metrics.check_installed(names, "--metrics")

    def evaluate(self, examples: Sourced, metrics: Sequence[str] = ()) -> Evaluation:
        """Without sacrebleu, BLEU and chrF are undefined, with that as the reason."""
        if against := self.settings.get("against"):
            translation_metrics.check_installed(["bleu"], "--against")
            others = pairs.others(against, examples, self.settings["encoding"])
        scorer, rows, limit = self.scorer, examples.rows, self.scorer.config.max_length
        references = [row.target or "" for row in rows]
        encoded = self._encoded(examples)
        fit = pairs.fitting(examples, encoded.length_N, limit)
        if fit.left_out:
            raise InputError(f"{fit.first}: has more tokens than the model has positions, {limit}; split the sentence")
        nats_N, words_N, correct_N = translation.costs(scorer, encoded)
        candidates_N = self._translated(examples, dataclasses.replace(self.options, best=1))
        texts = [candidates[0].text for candidates in candidates_N]
        scores = translation_metrics.of_costs(nats_N, words_N, correct_N)
        scores |= translation_metrics.scores(texts, references)
        scores |= (more := self._more_scores(examples, texts))
        losses_N = nats_N / words_N

        def row_of(i: int) -> dict[str, Any]:
            row = rows[i]
            known = {"place": row.place, "loss": float(losses_N[i]), "text": [row.source]}
            return known | {"truth": row.target, "predicted": {self.written: texts[i]}}

        result = Evaluation(examples.report)
        result.add_scores(scores, self.unit, metrics=metrics or (*translation_metrics.NAMES, "n", *more))
        self._add_lengths(result, examples, texts, nats_N, words_N)
        if against:
            compared = translation_metrics.compared(texts, others, references)
            result.add(_comparison(compared, against), compared=_as_json(compared, against))
        result.keep_rows(losses_N.tolist(), row_of)
        worst = [row_of(int(i)) for i in np.argsort(-losses_N)[:WRITTEN_WORST]]
        result.add_worst("worst (nats a token):", worst, self._line)
        return result

    def _add_lengths(
        self, result: Evaluation, examples: Sourced, texts: Sequence[str], nats_N: np.ndarray, words_N: np.ndarray
    ) -> None:
        """Adds the scores of short and long sources."""
        sources, references = [row.source for row in examples.rows], [row.target or "" for row in examples.rows]
        by_length = translation_metrics.by_length(sources, texts, references, nats_N, words_N)
        result.add(_length_table(by_length), by_length=[row._asdict() for row in by_length])

    def _more_scores(self, examples: Sourced, texts: Sequence[str]) -> dict[str, Score]:
        """Those of a task alone."""
        return {}

    def _encoded(self, examples: Sourced) -> EncodedPairs:
        sources, targets = [row.source for row in examples.rows], [row.target or "" for row in examples.rows]
        return translation.encode_pairs(self.scorer.tokenizer, sources, targets)

    def _translated(self, examples: Sourced, options: TranslationOptions) -> list[list[translation.Translation]]:
        sources, places = [row.source for row in examples.rows], [row.place for row in examples.rows]
        return translation.translations(self.scorer, sources, options, places)

    def predictions(self, examples: Sourced, *, details: bool, measure: str) -> list[dict[str, Any]]:
        del details
        if measure:
            raise InputError(f"--rank={measure}: a {self.written} has no such measure; leave it out")
        candidates_N = self._translated(examples, self.options)
        return [translation.answer(candidates, self.options, self.written) for candidates in candidates_N]

    def check_writable(self, examples: Sourced, format: str, rank: str) -> None:
        super().check_writable(examples, format, rank)
        if format == "txt" and self.options.best > 1:
            raise InputError(f"--best={self.options.best} needs a place for all: --format=jsonl, csv or tsv")
        there = [name for name in outputs.columns_of(row.cells for row in examples.rows) if name in _ADDED]
        if format in ("csv", "tsv") and len(there) == 1:  # an earlier prediction has both
            rule = f"the answers go into the columns {' and '.join(_ADDED)}, and the file has its own {there[0]!r}"
            raise InputError(f"{examples.report.source}: {rule}; rename it, or write --format=jsonl or txt")
        if self.settings["attention"]:  # a decoder without attention is refused before all is translated
            self._check_attention()

    def _check_attention(self) -> None:
        source_attention.of_texts(self.scorer, [""], [""])

    def contents(
        self, path: pathlib.Path, examples: Sourced, predictions: list[dict[str, Any]], format: str, details: bool
    ) -> dict[pathlib.Path, str]:
        del details
        files = {path: self._table(examples, predictions, format)}
        if page := self.settings["attention"]:
            files[pathlib.Path(page)] = self._page(examples, [row[self.written] for row in predictions])
        return files

    def _page(self, examples: Sourced, texts: list[str]) -> str:
        """How the texts read their sources."""
        return translation_page.of_texts(self.scorer, [row.source for row in examples.rows], texts)

    def _table(self, examples: Sourced, predictions: list[dict[str, Any]], format: str) -> str:
        if format == "txt":
            return "".join(" ".join(row[self.written].split()) + "\n" for row in predictions)
        rows = [dict(row.cells) or {self.read_from: row.source} for row in examples.rows]
        if format == "jsonl":
            return outputs.json_lines(
                row | {"predicted": answer} for row, answer in zip(rows, predictions, strict=True)
            )
        columns = [name for name in outputs.columns_of(rows) if name not in _ADDED]
        delimiter = "," if format == "csv" else "\t"
        lines = [outputs.table_line([*columns, *_ADDED], delimiter)]
        for row, answer in zip(rows, predictions, strict=True):
            cells = [row.get(name, "") for name in columns]
            for candidate in answer.get("candidates") or [{"text": answer[self.written], "score": answer["score"]}]:
                lines.append(outputs.table_line([*cells, candidate["text"], candidate["score"]], delimiter))
        return "".join(lines)

    def _line(self, row: dict[str, Any]) -> str:
        """A row of the report."""
        start, shown = printable(f"{row['loss']:8.3f}  {row['place']}  "), evaluation.cut(row["text"][0], 50)
        texts = [evaluation.cut(str(text), 60) for text in (row["truth"], row["predicted"][self.written])]
        return f"{start}{shown}  reference {texts[0]}, written {texts[1]}"


def _length_table(rows: Sequence[translation_metrics.LengthRow]) -> str:
    lines = [f"{'words of source':16}{'pairs':>9}{'BLEU':>9}{'nll':>9}"]
    for row in rows:
        numbers = (f"{'-' if value is None else format(value, '.4f'):>9}" for value in (row.bleu, row.nll))
        lines.append(f"{row.words:16}{row.pairs:>9,}{''.join(numbers)}")
    return "\n".join(lines)


def _comparison(compared: translation_metrics.Compared, path: str) -> str:
    """BLEU of both with their intervals, and p."""
    lines = [f"paired bootstrap, {translation_metrics.RESAMPLES:,} resamples ({compared.signature})"]
    for name, (bleu, mean, half) in (("the model", compared.model), (path, compared.other)):
        lines.append(printable(f"BLEU {bleu:8.4f}   95 % interval {mean - half:.4f} to {mean + half:.4f}   {name}"))
    return "\n".join([*lines, f"p of no difference: {compared.p:.4f}"])


def _as_json(compared: translation_metrics.Compared, path: str) -> dict[str, Any]:
    systems = {"model": compared.model, "other": compared.other}
    values = {
        name: {"bleu": bleu, "low": mean - half, "high": mean + half} for name, (bleu, mean, half) in systems.items()
    }
    return {"file": path, **values, "p": compared.p, "signature": compared.signature}


def _number(name: str, value: str, kind: type) -> Any:
    try:
        return kind(value)
    except ValueError:
        raise InputError(f"--{name}={value} must be a {'whole ' if kind is int else ''}number") from None


EVALUATOR = TranslationEvaluator
