"""The pretraining job: prepared text, the number of steps, masked sentences to fill before and after training."""

import functools
import os
import pathlib
import sys
from typing import Any

import jax
from ml_collections import ConfigDict

from bert import architectures, config_fields, inference, objectives
from bert.data import masking
from bert.data.batches import Batches, EvaluationBatches
from bert.data.settings import BatchSettings
from bert.errors import InputError, printable
from bert.store.manifest import check_checksums_beside, check_files
from bert.store.prepared_folder import report_of
from bert.store.reader import Store
from bert.training import arithmetic, evaluate, optim, run_directory, sharding, trackers, train
from bert.training.evaluate import Metrics
from bert.training.pretraining import Pretraining, baselines
from bert.training.step import Setup, draw_params
from bert.types import Params
from launch import card_facts, native_signals, run_records, runtime, starting_point
from launch.runs import Start, TrainingJob, check_warmup_share

Answer = list[tuple[str, float]]  # words for a mask and their probabilities, the likeliest first
_BASELINE = "the most frequent token predicted, the more frequent next-sentence class"


class PretrainingJob(TrainingJob):
    """Masked words, and next sentence where the settings ask for it. Raises InputError for data and probes."""

    config_file = "configs/pretrain.py"
    may_change = (  # total_steps moves the schedule
        "data", "total_steps", "log_every", "evaluate_every", "save_every", "keep_checkpoints", "stop_after_skips",
        "probes", "tracker", "allocator", "mesh.", "model.layer_loop", "model.remat", "model.attention",
    )  # fmt: skip

    def __init__(self, config: ConfigDict):
        if not config.data:
            raise InputError("config.data is missing; name the folder that bert prepare wrote")
        trackers.check(config.tracker)
        self.config, self.seed = config, config.seed
        config.examples.objective = objectives.pairs_of(config.objective, config.examples.objective)
        self.store, self.held_out = Store.open(config.data, "train"), Store.open(config.data, "validation")
        tokenizer = self.store.tokenizer
        config.probes = tuple(filter(None, config.probes))  # of a command line, '' is one empty text
        for text in config.probes if config.objective != "causal" else ():
            if tokenizer.mask_id not in tokenizer.encode(text, special_in_text=True).ids:
                mask = tokenizer.vocab[tokenizer.mask_id]
                raise InputError(f"config.probes: {text!r} has no {mask}; write it in the place of a word")
        self.task = Pretraining(pairs=config.examples.objective != "none", objective=config.objective)
        self.fingerprint, self.answers_before = self.store.fingerprint, list[Answer]()

    @property
    def data_report(self) -> str:
        return f"{self.store.directory}\n{report_of(self.store.directory).table()}"

    def start(self, workdir: pathlib.Path) -> Start:
        self.data_check = check_checksums_beside(self.store.directory, self.store.manifest)
        native_signals.on("SIGBUS", self._end_if_cut)
        return starting_point.for_pretraining(self.config, self.store, workdir, pairs=self.task.pairs)

    def _end_if_cut(self) -> None:
        """Ends the process with a line where a file of the prepared text has become shorter while it is mapped."""
        try:
            check_files(self.store.directory, self.store.manifest, checksums=False)
        except InputError as error:
            print(f"error: {printable(str(error))}", file=sys.stderr, flush=True)
            os._exit(2)

    def run(self, start: Start, workdir: pathlib.Path) -> train.Run:
        config = self.config
        architectures.check_objective(start.config, config.objective)
        architectures.check_packing(start.config, config.examples.packed)
        heads = getattr(start.config, "num_heads", 0)
        mesh = sharding.make_mesh(config.mesh.mode, config.mesh.model_devices, heads=heads)
        longest = next(name for name in ("max_position_embeddings", "max_length") if hasattr(start.config, name))
        hint = "" if config.init_from else f", or raise config.model.{longest}"
        starting_point.check_length(config.max_length, start.config, "the model", hint)
        sharding.check_batch_size(config.batch_size, mesh, config.micro_batches)
        of_all = {name: config[name] for name in ("batch_size", "max_length", "seed")}
        of_all["predicts"] = config.objective
        settings = config_fields.build(BatchSettings, config.examples, **of_all)
        steps = {"total_steps": config.total_steps}
        if config.warmup_share is not None:
            check_warmup_share(config)
            steps["warmup_steps"] = round(config.warmup_share * config.total_steps)
        elif config.optimizer.warmup_steps > config.total_steps > 0:
            most = (
                f"it must be at most {config.total_steps}, which is config.total_steps; or set config.warmup_share=0.1"
            )
            raise InputError(f"config.optimizer.warmup_steps is {config.optimizer.warmup_steps}; {most}")
        optimizer = config_fields.build(optim.OptimizerSettings, config.optimizer, **steps)
        timing = config_fields.build(train.LoopSettings, config)
        if settings.whole_words and masking.share_of_split_words(self.store) == 0:
            why = "no word has two pieces, so whole words are single tokens"
            runtime.say(f"notice: {why}; prepare the text with word_boundaries")
        batches, rows = Batches(self.store, settings), sharding.host_rows(config.batch_size)
        self.held_batches = EvaluationBatches(self.held_out, settings) if self.held_out.num_documents else None
        warmup = f"warm-up {optimizer.warmup_steps:,} of {optimizer.total_steps:,} steps"
        runtime.say(f"training: {batches.report}; {batches.steps_per_epoch:,.0f} steps an epoch; {warmup}")
        if self.held_batches:
            runtime.say(f"held out: {self.held_batches.report}")
        for name, part in (("training", batches), ("held out", self.held_batches)):
            if part and part.report.pairs.notice:
                runtime.say(f"notice: {name}: {part.report.pairs.notice}")
        model = self.task.model(start.config)
        setup = Setup(model, self.task, optimizer, mesh, config.mesh.mode, config.micro_batches, self.seed)
        scores = None
        if self.held_batches:
            held = functools.partial(self.held_batches.all, rows, progress=jax.process_index() == 0)
            scores = evaluate.on_batches(model, self.task, mesh, held)
        flops = arithmetic.training_flops_per_token(start.config, config.max_length, settings.masks_in_row)
        if config.probes and not (workdir / run_directory.CONFIG).exists() and jax.process_count() == 1:
            batch = batches(0, rows)
            params = start.params or jax.device_get(jax.jit(lambda: draw_params(setup, batch))())
            self.answers_before = self._answers(start, params)
        train_batch = lambda number: batches(number, rows)  # noqa: E731
        return train.Run(setup, timing, workdir, train_batch, scores, flops, data_check=self.data_check)

    def _answers(self, start: Start, params: Params) -> list[Answer]:
        """For each probe, the five likeliest words of its first mask; of a causal model those that come next."""
        model = inference.from_params(start.config, params, start.tokenizer)
        if self.config.objective == "causal":
            return [model.next_words(text) for text in self.config.probes]
        return [model.fill_mask(text)[0] for text in self.config.probes]

    def model_keys(self, step: int, scores: Metrics) -> dict[str, Any]:
        objective, pairs = self.config.objective, self.config.examples.objective
        return {"pretraining": run_directory.pretraining_keys(step, pairs, objective)}

    @functools.cached_property
    def baseline(self) -> dict[str, float]:
        """Scores of constant answers on the held-out part."""
        return baselines(self.held_batches.all(), self.config.objective) if self.held_batches else {}

    def card(self, scores: Metrics) -> dict[str, Any]:
        data = card_facts.prepared(self.store)
        held_out = f"the held-out part of {data['prepared text']}"
        return {"data": data} | card_facts.scores(held_out, scores, self.baseline, _BASELINE)

    def show(self, start: Start, run: train.Run, outcome: train.Outcome) -> None:
        """Prints the answers to the probes, and the scores of the held-out part beside those of constant answers."""
        if jax.process_index() != 0:
            return
        probes, baseline = list[dict[str, Any]](), self.baseline
        for i, answer in enumerate(self._answers(start, outcome.state.params)):
            before = self.answers_before[i] if self.answers_before else None
            print(f"\n{self.config.probes[i]}" + (f"\n  before  {_shown(before)}" if before else ""))
            print(f"  after   {_shown(answer)}")
            probes.append({"text": self.config.probes[i], "before": before, "after": answer})
        if self.held_batches:
            print(f"\n{'held out':<16}{'model':>10}{'baseline':>10}")
            for name, value in outcome.metrics.items():
                shown = "undefined" if value is None else f"{value:.4f}"
                print(f"{name:<16}{shown:>10}{f'{baseline[name]:.4f}' if name in baseline else '':>10}")
            print(f"baseline: {_BASELINE}\n")
        step, more = int(outcome.state.step), {"baseline_is": _BASELINE, "probes": probes}
        run_records.write_scores(run.workdir, "pretraining", step, outcome.metrics, baseline, **more)
        run_records.write_report(run.workdir)


def _shown(answer: Answer) -> str:
    return printable(", ".join(f"{token} {p:.2f}" for token, p in answer))
