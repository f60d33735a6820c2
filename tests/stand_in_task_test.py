"""A task that is written in this file and registered by one line goes through every command: no other file knows it.

It counts the words of a text (regression). This module is put in the places of its files: bert/prediction/word_count.py
and tasks/word_count/{job,evaluate}.py.
"""

import dataclasses
import json
import pathlib
import random
import sys
import types
from typing import NamedTuple

import numpy as np
import pytest

import bert
from bert import prediction
from bert.data import encoded_examples
from bert.data.encoded_examples import TrainingBatches
from bert.errors import InputError, check_choice
from bert.model import losses
from bert.model.heads import Model, SequenceHead
from bert.tokenizer import sequences
from bert.training.best import Choice
from bert.training.task import Task
from launch import evaluate, finetune, predict
from tasks import evaluation
from tasks.files import outputs
from tasks.files.reports import ReadReport
from tasks.job import ExamplesJob, settings_of
from tasks.metrics import classification_metrics
from tests.tasks.metrics.targets import column

# ---- bert/prediction/word_count.py


@dataclasses.dataclass(frozen=True)
class WordCountOptions:
    max_length: int = 32

    def to_json(self):
        return {"word_count": dataclasses.asdict(self)}


def encode(texts, tokenizer, max_length, **of_example):
    return encoded_examples.join(sequences.texts([(text,) for text in texts], tokenizer, max_length), **of_example)


def counts_of(scorer, encoded, options):
    return scorer.of_examples(encoded, options.max_length).astype(np.float64)


def predict_rows(scorer, rows, *, details=False, measure=""):
    options = WordCountOptions(**scorer.extra["word_count"])
    counts_NC = counts_of(scorer, encode(rows, scorer.tokenizer, options.max_length), options)
    return [{"words": float(count)} for (count,) in counts_NC]


# ---- tasks/word_count/job.py


class Lines(NamedTuple):
    rows: list[tuple[str, float]]
    report: ReadReport


def read_lines(path):
    lines = pathlib.Path(path).read_text().splitlines()
    rows = [(text, float(count)) for text, _, count in (line.partition("\t") for line in lines)]
    return Lines(rows, ReadReport(path, len(rows), len(rows)))


class SquaredError(Task):
    def model(self, config):
        return Model(config, SequenceHead(config, 1))

    def counts(self, batch):
        return {"loss": batch["target_weights"].sum()}

    def sums(self, outputs, batch):
        error_BE = losses.squared_error(outputs["sequence_logits"], batch["targets"])
        return {"loss": losses.weighted_sum(error_BE, batch["target_weights"])}

    def metrics(self, totals):
        return {"loss": totals["loss"] / totals["loss_count"]}


def scores_of(counts_NC, rows):
    return classification_metrics.score(("mse", "n"), column([count for _, count in rows]), counts_NC, "number", ())


@dataclasses.dataclass(frozen=True)
class Job(ExamplesJob):
    train: Lines
    validation: Lines
    options: WordCountOptions
    files: dict
    choice: Choice | None = None
    labels: tuple[str, ...] = ("words",)
    fresh: tuple[str, ...] = ("pooler", "sequence_classifier")

    def task(self, config):
        return SquaredError()

    def batches(self, tokenizer, settings):
        targets, ones = column([count for _, count in self.train.rows]), np.ones(len(self.train.rows), np.float32)
        texts = [text for text, _ in self.train.rows]
        encoded = encode(texts, tokenizer, settings.max_length, targets=targets, target_weights=ones)
        return TrainingBatches(encoded, settings)

    def encode(self, part, tokenizer):
        return encode([text for text, _ in part.rows], tokenizer, self.options.max_length)

    def score(self, scorer, part, encoded):
        scores = scores_of(counts_of(scorer, encoded, self.options), part.rows)
        return {name: score.value for name, score in scores.items()}

    def keys_of(self, part):
        return (text for text, _ in part.rows)

    def contents(self, part):
        return part.rows


def read(config, *, equal_apart=False):
    options, choice = settings_of(WordCountOptions, config), Choice("mse", larger=False)
    return Job(read_lines(config.data), read_lines(config.validation), options, {}, choice)


# ---- tasks/word_count/evaluate.py


class WordCountEvaluator(evaluation.Evaluator):
    formats = ("jsonl",)
    file_defaults = types.MappingProxyType({})

    def read(self, data, *, split, labelled):
        return read_lines(data)

    def check_metrics(self, names, examples):
        for name in names:
            check_choice("--metrics", name, ("mse", "n"))

    def evaluate(self, lines, metrics=()):
        counts_NC = np.array([[row["words"]] for row in predict_rows(self.scorer, [text for text, _ in lines.rows])])
        result = evaluation.Evaluation(lines.report)
        result.add_scores(scores_of(counts_NC, lines.rows), self.unit, metrics=metrics)
        return result

    def predictions(self, lines, *, details, measure):
        return predict_rows(self.scorer, [text for text, _ in lines.rows])

    def contents(self, path, lines, predictions, format, details):
        return {path: outputs.json_lines(predictions)}


EVALUATOR = WordCountEvaluator

# ---- configs/word_count.py

SETTINGS = """
from ml_collections import ConfigDict
from configs import recipe

def get_config():
    config = ConfigDict({"task": "word_count", "data": "", "validation": "", "max_length": 32})
    recipe.add_to(config)
    return config
"""

# ---- the test

TINY = pathlib.Path(__file__).parent / "golden" / "tiny_bert"
WORDS = ["the", "movie", "book", "a", "of", "mat", "sat", "learning", "is", "fun", "and", "read", "good"]


@pytest.fixture
def registered(tmp_path, monkeypatch):
    """The line in the registry, and this module in the place of the task's files."""
    monkeypatch.setitem(prediction.TASKS, "word_count", "")
    here = sys.modules[__name__]
    places = ("tasks.word_count", "tasks.word_count.job", "tasks.word_count.evaluate")
    for place in places:
        monkeypatch.setitem(sys.modules, place, here)
    in_library = types.ModuleType("bert.prediction.word_count")
    in_library.predict = predict_rows  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, in_library.__name__, in_library)
    monkeypatch.setattr(here, "CONFIG", str(tmp_path / "word_count.py"), raising=False)
    (tmp_path / "word_count.py").write_text(SETTINGS)


def write_lines(path, count, seed):
    rng = random.Random(seed)
    texts = [" ".join(rng.choices(WORDS, k=rng.randint(1, 8))) for _ in range(count)]
    path.write_text("".join(f"{text}\t{len(text.split())}\n" for text in texts))
    return texts


@pytest.mark.slow
def test_a_task_in_one_file_trains_predicts_and_is_evaluated(registered, tmp_path):
    write_lines(tmp_path / "train.txt", 600, 0)
    texts = write_lines(tmp_path / "held.txt", 40, 1)
    finetune.run([
        "finetune", f"--config={tmp_path / 'word_count.py'}", f"--config.data={tmp_path / 'train.txt'}",
        f"--config.validation={tmp_path / 'held.txt'}", f"--config.init_from={TINY}", "--config.epochs=3",
        "--config.optimizer.learning_rate=5e-3", "--config.allocator=system", "--config.batch_size=8",
        "--config.model.hidden_dropout=0.0", "--config.packed=False", f"--workdir={tmp_path / 'run'}",
    ])  # fmt: skip
    model = bert.load(tmp_path / "run")
    assert (model.task, model.labels) == ("word_count", ("words",))
    counts = [row["words"] for row in model.predict(texts)]
    mse = np.mean([(count - len(text.split())) ** 2 for count, text in zip(counts, texts, strict=True)])
    assert mse < 0.5 * np.var([len(text.split()) for text in texts])  # of the same answer for every text

    files = (f"--model={tmp_path / 'run'}", f"--input={tmp_path / 'held.txt'}", f"--output={tmp_path / 'out.jsonl'}")
    predict.run(["predict", *files])
    written = [json.loads(line)["words"] for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert written == pytest.approx(counts, abs=1e-5)
    files = (f"--model={tmp_path / 'run'}", f"--data={tmp_path / 'held.txt'}", f"--out={tmp_path / 'scores.json'}")
    evaluate.run(["evaluate", *files, "--metrics=mse"])
    scores = json.loads((tmp_path / "scores.json").read_text())["scores"]
    assert scores["mse"]["value"] == pytest.approx(mse, abs=1e-4)
    logged = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    best = min(line["mse"] for line in logged if line["split"] == "validation")
    assert best == pytest.approx(mse, abs=1e-4)


def test_without_its_line_in_the_registry_it_is_unknown(registered, tmp_path, monkeypatch):
    monkeypatch.delitem(prediction.TASKS, "word_count")
    with pytest.raises(InputError, match=r"config\.task is 'word_count'.*classification"):
        finetune.run(["finetune", f"--config={tmp_path / 'word_count.py'}", f"--workdir={tmp_path / 'run'}"])
