"""Scores a pretrained model on text: masked words, and next sentences where the model has a head for them.

python -m launch.score --model=runs/mine --data='texts/*.txt' [--out=scores.json] [--per_sentence=sentences.jsonl]

The text is read as by launch.prepare, and masked as in pretraining: with the settings of a run directory, else those of
the BERT paper. --per_sentence also masks each token of a sentence in turn (pseudo-log-likelihood, Salazar et al. 2020),
which takes a run of the model for each token.
"""

import dataclasses
import json
import math
import pathlib
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from typing import Any

import jax

import bert
from bert import config_fields, worker_pool
from bert.corpus.corpus import Corpus
from bert.corpus.layout import split_sentences
from bert.data.batches import BatchSettings, EvaluationBatches
from bert.errors import InputError, printable
from bert.inference import LoadedModel
from bert.prediction.pseudo_likelihood import log_likelihoods
from bert.store.prepare import prepare
from bert.store.prepare_settings import PrepareSettings
from bert.store.reader import Store
from bert.training import evaluate, run_directory, sharding
from bert.training.evaluate import Metrics
from bert.training.pretraining import Pretraining
from launch import console, flags
from tasks.evaluation import json_lines, write_whole

OPTIONS = {
    "model": "model directory or run directory, with a head for masked words",
    "data": "text: a folder, files or patterns, as config.corpus of launch.prepare",
    "out": "JSON file to write: the scores, and how the text was masked",
    "per_sentence": "JSON lines to write: place, text, tokens and pseudo-log-likelihood of each sentence",
    "seed": "of the masks (where not given, that of the run, or 0)",
    "max_length": "tokens of a row (where not given, that of the run, or 128)",
    "batch_size": "rows computed at a time (32 where not given)",
}
TEXT_OPTIONS = {
    "text_column": "of tables: the column with the text",
    "encoding": "of the text: a name, such as latin-1, or by pattern",
    "documents": "in .txt: blank_lines, file or auto",
    "sentences": "in .txt: lines, split, wrapped or auto",
    "language": "two letters, for abbreviations where sentences are split",
}
_OF_MASKS = ("objective", "mask_rate", "mask_share", "random_share", "whole_words", "max_length", "seed")
SENTENCES_AT_ONCE = 512
SECONDS_BETWEEN_LINES = 10.0


def run(argv: list[str]) -> None:
    _, options = flags.parse(argv, __doc__, OPTIONS | TEXT_OPTIONS, ("model", "data"))
    batch_size = flags.whole_number(options, "batch_size", 32)
    named = {
        name: flags.whole_number(options, name, 0, least=least)
        for name, least in (("seed", 0), ("max_length", 8))
        if options[name] is not None
    }
    of_text = {name: options[name] for name in TEXT_OPTIONS if options[name] is not None}
    text = PrepareSettings(corpus=options.data, validation_share=0.0, deduplicate=False, **of_text)
    model, stream = bert.load(options.model), console.beside(options.per_sentence or options.out)
    if "mlm" not in model.parts:
        parts = ", ".join(model.parts)
        raise InputError(f"{model.source}: has no mlm head (it holds {parts}); name a pretrained model, or its run")
    settings = batch_settings(model, options.model, batch_size, named)
    scores, report = masked_scores(model, text, settings)
    masks = {name: getattr(settings, name) for name in _OF_MASKS}
    print(f"{report}\nmasked words ({', '.join(f'{name} {value}' for name, value in masks.items())}):", file=stream)
    _show(scores, stream)
    values: dict[str, Any] = {"model": model.source, "data": options.data, "masks": masks, "scores": scores}
    if options.per_sentence:
        sentences = score_sentences(model, text, batch_size)
        write_whole(pathlib.Path(options.per_sentence), json_lines(sentences), "--per_sentence")
        values["pseudo"] = summary(sentences)
        print("each token masked in turn:", file=stream)
        _show(values["pseudo"], stream)
    if options.out:
        write_whole(pathlib.Path(options.out), json.dumps(values, indent=1, ensure_ascii=False) + "\n", "--out")
    if written := [path for path in (options.out, options.per_sentence) if path]:
        print(printable(f"wrote {', '.join(written)}"), file=stream)


def batch_settings(model: LoadedModel, path: str, batch_size: int, named: Mapping[str, int]) -> BatchSettings:
    """How the text is masked: as in the run, but for what is ``named``; of another model by the defaults."""
    has_pairs = {"pooler", "next_sentence"} <= set(model.parts)
    objective = (model.extra.get("pretraining") or {}).get("objective", "nsp") if has_pairs else "none"
    settings: dict[str, Any] = {"max_length": min(128, model.config.max_length), "objective": objective}
    folder = pathlib.Path(path)
    run = run_directory.read(folder) if (folder / run_directory.CONFIG).is_file() else {}
    if "examples.objective" in run:
        settings = {name: run[name] for name in ("max_length", "seed")}
        settings |= {name.removeprefix("examples."): run[name] for name in run if name.startswith("examples.")}
    settings |= {**named, "batch_size": batch_size}
    if settings["max_length"] > model.config.max_length:
        rule = f"{model.source} has {model.config.max_length} positions"
        raise InputError(f"--max_length={settings['max_length']}: {rule}; lower it")
    return config_fields.build(BatchSettings, settings)


def masked_scores(model: LoadedModel, text: PrepareSettings, settings: BatchSettings) -> tuple[Metrics, str]:
    """(the metrics of `Pretraining` on a text, a line on the text). Of the held-out text of a run they are those that
    the run logged."""
    task = Pretraining(pairs=settings.objective != "none")
    parts = ("mlm", "pooler", "next_sentence") if task.pairs else ("mlm",)
    head = {part: model.params["head"][part] for part in parts}
    params = jax.device_put({"encoder": model.params["encoder"], "head": head})
    with tempfile.TemporaryDirectory(prefix="bert-score-") as folder:
        vocabulary = pathlib.Path(folder, "vocabulary")
        model.vocabulary.save(vocabulary)
        text = dataclasses.replace(text, vocab=str(vocabulary))
        prepared = prepare(pathlib.Path(folder, "text"), text, workers=worker_pool.usable_cores())
        held = EvaluationBatches(Store.open(prepared.directory), settings)
        mesh = sharding.make_mesh(devices=jax.devices()[:1])
        with jax.set_mesh(mesh):
            batches = lambda: (held(number) for number in range(len(held)))  # noqa: E731
            scores = evaluate.on_batches(task.model(model.config), task, mesh, batches)(params)
    counts = f"{prepared.report.sentences:,} sentences in {prepared.report.kept:,} documents"
    return scores, f"{counts}; {held.report}"


def score_sentences(model: LoadedModel, text: PrepareSettings, batch_size: int) -> list[dict[str, Any]]:
    """For each sentence its place, text, number of tokens and pseudo-log-likelihood ("pll", nats).

    Sentences without a token (zero-width characters, say) are left out, as in pretraining.
    """
    scorer, shown, scored = model.scorer(batch_size=batch_size), time.monotonic(), list[dict[str, Any]]()
    sentences = list(sentences_of(text))
    for start in range(0, len(sentences), SENTENCES_AT_ONCE):
        block = sentences[start : start + SENTENCES_AT_ONCE]
        ids_N = scorer.tokenizer.encode_ids([row["text"] for row in block])
        pll_N = log_likelihoods(scorer, ids_N).tolist()
        found = zip(block, ids_N, pll_N, strict=True)
        scored += [row | {"tokens": len(ids), "pll": pll} for row, ids, pll in found if ids]
        if time.monotonic() - shown > SECONDS_BETWEEN_LINES:
            shown = time.monotonic()
            print(f"{start + len(block):,} of {len(sentences):,} sentences scored", file=sys.stderr, flush=True)
    return scored


def sentences_of(text: PrepareSettings) -> Iterator[dict[str, Any]]:
    """The sentences of a text as launch.prepare splits it: {"place", "text"}."""
    number = 0
    for section in Corpus(text.corpus, text.corpus_settings()).sections():
        number = 0 if section.first else number
        for sentence in split_sentences(section.text, section.layout, text.language):
            number += 1
            yield {"place": f"{section.name}, sentence {number}", "text": sentence}


def summary(sentences: list[dict[str, Any]]) -> Metrics:
    """Mean PLL of a sentence and of a token, and the pseudo-perplexity of the whole text."""
    total, tokens = (math.fsum(row[name] for row in sentences) for name in ("pll", "tokens"))
    per_token = total / tokens if tokens else None
    return {
        "pseudo_perplexity": None if per_token is None else math.exp(min(-per_token, 700.0)),
        "pll_per_token": per_token,
        "pll_per_sentence": total / len(sentences) if sentences else None,
        "n_sentences": float(len(sentences)),
        "n_tokens": tokens,
    }


def _show(scores: Metrics, stream: Any) -> None:
    width = max(map(len, scores)) + 2
    for name, value in scores.items():
        shown = "undefined" if value is None else f"{value:,.0f}" if name.startswith("n_") else f"{value:.4f}"
        print(f"  {name:<{width}}{shown:>12}", file=stream)


if __name__ == "__main__":
    flags.main(run)
