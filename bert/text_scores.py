"""Scores of a pretrained model on text: masked words and next sentences, and its sentences one by one."""

import dataclasses
import functools
import math
import pathlib
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import jax

from bert import worker_pool
from bert.corpus.corpus import Corpus
from bert.corpus.layout import split_sentences
from bert.data.batches import BatchSettings, EvaluationBatches
from bert.inference import LoadedModel
from bert.prediction.pseudo_likelihood import log_likelihoods
from bert.progress import step_progress
from bert.store.prepare import prepare
from bert.store.prepare_settings import PrepareSettings
from bert.store.reader import Store
from bert.training import evaluate, sharding
from bert.training.evaluate import Metrics
from bert.training.pretraining import Pretraining

SENTENCES_AT_ONCE = 512


def masked_scores(model: LoadedModel, text: PrepareSettings, settings: BatchSettings) -> tuple[Metrics, str]:
    """(the metrics of `Pretraining` on a text, a line on the text).

    Of the held-out text of a run, with the run's settings, they are those that the run logged. Shows its progress.
    """
    with tempfile.TemporaryDirectory(prefix="bert-score-") as folder:
        return _scores_through(pathlib.Path(folder), model, text, settings)  # returned: no file is open any more


def _scores_through(
    folder: pathlib.Path, model: LoadedModel, text: PrepareSettings, settings: BatchSettings
) -> tuple[Metrics, str]:
    task = Pretraining(pairs=settings.objective != "none", objective=settings.predicts)
    parts = ("mlm", "pooler", "next_sentence") if task.pairs else ("mlm",)
    head = {part: model.params["head"][part] for part in parts}
    params = jax.device_put({"encoder": model.params["encoder"], "head": head})
    vocabulary = folder / "vocabulary"
    model.vocabulary.save(vocabulary)
    text = dataclasses.replace(text, vocab=str(vocabulary))
    with step_progress() as progress:
        prepared = prepare(folder / "text", text, workers=worker_pool.usable_cores(), progress=progress)
    held = EvaluationBatches(Store.open(prepared.directory), settings)
    mesh = sharding.make_mesh(devices=jax.devices()[:1])
    with jax.set_mesh(mesh):
        batches = functools.partial(held.all, progress=True)
        scores = evaluate.on_batches(task.model(model.config), task, mesh, batches)(params)
    counts = f"{prepared.report.sentences:,} sentences in {prepared.report.kept:,} documents"
    return scores, f"{counts}; {held.report}"


def sentences_of(text: PrepareSettings) -> Iterator[dict[str, Any]]:
    """The sentences of a text as `prepare` splits it: {"place", "text"}."""
    number = 0
    for section in Corpus(text.corpus, text.corpus_settings()).sections():
        number = 0 if section.first else number
        for sentence in split_sentences(section.text, section.layout, text.language):
            number += 1
            yield {"place": f"{section.name}, sentence {number}", "text": sentence}


def score_sentences(
    model: LoadedModel, sentences: list[dict[str, Any]], batch_size: int, done: Callable[[int], None]
) -> list[dict[str, Any]]:
    """The sentences with their number of "tokens" and their pseudo-log-likelihood "pll", in nats.

    Those without a token (of zero-width characters, say) are left out, as in pretraining. ``done`` is called with
    numbers of sentences.
    """
    scorer, scored = model.scorer(batch_size=batch_size), list[dict[str, Any]]()
    for start in range(0, len(sentences), SENTENCES_AT_ONCE):
        block = sentences[start : start + SENTENCES_AT_ONCE]
        ids_N = scorer.tokenizer.encode_ids([row["text"] for row in block])
        rows = zip(block, ids_N, log_likelihoods(scorer, ids_N).tolist(), strict=True)
        scored += [row | {"tokens": len(ids), "pll": pll} for row, ids, pll in rows if ids]
        done(len(block))
    return scored


def summary(scored: list[dict[str, Any]]) -> Metrics:
    """The pseudo-perplexity of the whole text, and the mean PLL of a token and of a sentence."""
    total, tokens = (math.fsum(row[name] for row in scored) for name in ("pll", "tokens"))
    per_token = total / tokens if tokens else None
    return {
        "pseudo_perplexity": None if per_token is None else math.exp(min(-per_token, 700.0)),
        "pll_per_token": per_token,
        "pll_per_sentence": total / len(scored) if scored else None,
        "n_sentences": float(len(scored)),
        "n_tokens": tokens,
    }
