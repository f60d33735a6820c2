"""The fine-tuning job: examples of a task, the number of steps, the evaluation that chooses the model."""

import functools
import math
import pathlib
from typing import Any

from ml_collections import ConfigDict

import tasks
from bert import architectures, config_fields
from bert.data.encoded_examples import ExampleSettings
from bert.errors import InputError
from bert.metric_names import title
from bert.prediction.scores import Devices
from bert.tokenizer.added_words import words_of
from bert.tokenizer.tokenizer import Tokenizer
from bert.training import arithmetic, optim, sharding, train
from bert.training.evaluate import Metrics
from bert.training.step import Setup
from bert.types import HostBatch
from launch import card_facts, runtime, starting_point
from launch.runs import Start, TrainingJob
from tasks.job import ExamplesJob

MUCH_UNKNOWN = 0.1  # of the tokens


class FinetuningJob(TrainingJob):
    """The examples of a task, in a run with one seed."""

    may_change = (  # what `kind` decides is compared by itself (targets, labels, "extra")
        "data", "validation", "kind", "init_from", "log_every", "keep_checkpoints", "stop_after_skips", "allocator",
        "baseline", "tracker", "mesh.", "model.layer_loop", "model.remat", "model.attention",
    )  # fmt: skip

    def __init__(self, config: ConfigDict, examples: ExamplesJob, seed: int):
        self.config, self.examples, self.choice, self.seed = config, examples, examples.choice, seed
        self.config_file = tasks.module_of(config.task, "job").CONFIG

    @property
    def data_report(self) -> str:
        return self.examples.report

    def start(self, workdir: pathlib.Path) -> Start:
        start = starting_point.for_finetuning(self.config, self.examples, workdir, seed=self.seed)
        self.examples = self.examples.with_labels(start.labels)
        self.fingerprint = self.examples.fingerprint
        return start

    def recorded(self) -> dict[str, Any]:
        added = [word.content for word in words_of(self.config.add_tokens)]  # a file of them may change
        recorded = {"labels": list(self.examples.labels), "extra": self.examples.extra({})}
        return recorded | ({"added_tokens": added} if added else {})

    def model_keys(self, step: int, scores: Metrics) -> dict[str, Any]:
        return self.examples.extra(scores) | {"finetuning": {"step": step}}

    def card(self, scores: Metrics) -> dict[str, Any]:
        data = card_facts.read(self.config, self.examples)
        held = data.get("validation file")
        where = held if self.config.validation else f"{self.config.validation_share:g} of {held}, split off"
        count = (
            f"{scores['n']:,.0f} {self.examples.unit}, which chose the model"
            if scores.get("n")
            else "it chose the model"
        )
        shown = functools.partial(title, positive=self.examples.positive)
        return {"data": data} | card_facts.scores(f"{where} ({count})", scores, {}, "", shown)

    def run(self, start: Start, workdir: pathlib.Path) -> train.Run:
        config, encoder = self.config, start.config
        task = self.examples.task(encoder)
        architectures.check_packing(encoder, config.packed)
        heads = getattr(encoder, "num_heads", 0)
        mesh = sharding.make_mesh(config.mesh.mode, config.mesh.model_devices, heads=heads)
        unit = mesh.shape["data"] * config.micro_batches
        max_length = min(config.max_length, encoder.max_length)
        settings = ExampleSettings(config.batch_size, max_length, config.packed, self.seed, unit)
        tokenizer: Any = start.tokenizer  # None where the examples are no texts
        batches = self.examples.batches(tokenizer, settings)
        total = config.steps or math.ceil(config.epochs * batches.steps_per_epoch)
        steps = {"total_steps": total, "warmup_steps": round(config.warmup_share * total)}
        optimizer = config_fields.build(optim.OptimizerSettings, config.optimizer, **steps)
        if optimizer.frozen_layers > encoder.num_layers:
            frozen = f"config.optimizer.frozen_layers is {optimizer.frozen_layers}"
            raise InputError(f"{frozen}, but the model has {encoder.num_layers} layers; lower it")
        every = max(1, batches.steps_per_epoch // config.evaluations_per_epoch)
        intervals = {"evaluate_every": every, "save_every": every}
        timing = config_fields.build(train.LoopSettings, config, total_steps=total, **intervals)
        first = batches(0)
        runtime.say(f"{batches.steps_per_epoch:,} steps an epoch, {total:,} in all; {_fullness(first)}")
        if tokenizer is not None:
            warn_of_unknown(first, tokenizer)
        evaluate = None
        if self.choice is not None:
            devices = Devices(lambda batch: sharding.place(_rows_of_this_process(batch), mesh), sharding.on_this_host)
            evaluate = self.examples.evaluator(tokenizer, encoder, settings, devices)
        flops = arithmetic.training_flops_per_token(encoder, max_length, 0)
        setup = Setup(task.model(encoder), task, optimizer, mesh, config.mesh.mode, config.micro_batches, self.seed)
        shown = functools.partial(title, positive=self.examples.positive)
        rows = lambda number: _rows_of_this_process(batches(number))  # noqa: E731
        return train.Run(setup, timing, workdir, rows, evaluate, flops, title=shown)

    def show(self, start: Start, run: train.Run, outcome: train.Outcome) -> None:
        """Prints what was unusual: skipped steps, an early end, a metric that chose nothing."""
        best, shown, steps = outcome.best, run.title, int(outcome.state.step)
        if self.choice and best.stopped and steps < run.settings.total_steps:
            better = f"no better {shown(self.choice.metric)}, nor a lower {self.choice.loss} at the same"
            runtime.say(f"stopped early: {better}, in {self.choice.patience} evaluations")
        if skipped := int(outcome.state.skipped):
            runtime.say(f"{skipped:,} of {steps:,} steps were skipped, for loss or gradient was not finite")
        if self.choice and best.step >= 0 and best.value is None:
            undefined = f"{shown(self.choice.metric)} was undefined in every evaluation"
            runtime.say(f"{undefined}; model/ is of step {best.step}, the first with the lowest {self.choice.loss}")


def _rows_of_this_process(batch: HostBatch) -> HostBatch:
    return {name: value[sharding.host_rows(len(value))] for name, value in batch.items()}


def _fullness(batch: HostBatch) -> str:
    """How full the rows of a batch are, in words."""
    tokens = int((batch["example_ids"] > 0).sum())
    B, T = batch["example_ids"].shape
    return f"the first batch has {tokens:,} tokens in {B} rows of {T} ({tokens / (B * T):.0%} full)"


def warn_of_unknown(batch: HostBatch, tokenizer: Tokenizer) -> None:
    """Prints a warning where many tokens of the texts in a batch, or of the targets, are unknown."""
    if tokenizer.unk_id in (tokenizer.cls_id, tokenizer.sep_id):  # of GPT-2 they are one
        return
    for side, ids, examples in (("texts", "token_ids", "example_ids"), ("targets", "target_ids", "target_example_ids")):
        share = float((batch[ids][batch[examples] > 0] == tokenizer.unk_id).mean()) if ids in batch else 0.0
        if share > MUCH_UNKNOWN:
            where = f"{share:.0%} of the tokens of the {side} in the first batch are unknown to the model's vocabulary"
            runtime.say(f"warning: {where}; start from a model whose vocabulary has the words of these texts")
