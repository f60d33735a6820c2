"""Pretrains a BERT on a prepared folder: masked words, and next sentence where the settings ask for it.

    python -m launch.pretrain --config=configs/pretrain.py:base --config.data=prepared/ --workdir=runs/base

Run the same command again to go on after any stop. SIGTERM and Ctrl-C save first (a second Ctrl-C does not wait) and
exit with 128 + the signal's number; with several processes only SIGTERM saves. A finished run only evaluates again.
"""

import dataclasses
import pathlib
import sys
from collections.abc import Iterator

import jax
import numpy as np
from ml_collections import ConfigDict

from bert import config_fields, inference
from bert.architectures.bert import BertConfig
from bert.data import masking
from bert.data.batches import Batches, EvaluationBatches
from bert.data.settings import BatchSettings
from bert.errors import InputError, printable
from bert.interop import export, sources
from bert.model.heads import Model
from bert.store.manifest import check_checksums_beside
from bert.store.reader import Store
from bert.tokenizer.tokenizer import Tokenizer
from bert.training import arithmetic, evaluate, optim, run_directory, sharding, train
from bert.training.pretraining import Pretraining, baselines
from bert.training.step import Setup, draw_params
from bert.types import Params
from launch import flags, runtime
from launch.starting_point import adopt, computing, starting_point

# Settings that do not change what is trained. Of these total_steps moves the schedule, which is told.
MAY_CHANGE = (
    "data", "total_steps", "log_every", "evaluate_every", "save_every", "keep_checkpoints", "stop_after_skips",
    "probes", "allocator", "mesh.", "model.layer_loop", "model.remat", "model.attention",
)  # fmt: skip


def run(argv: list[str]) -> None:
    config, options = flags.parse(
        argv,
        doc=__doc__ or "",
        config_file=None,
        options={"workdir": "folder of the run", **runtime.PROCESS_OPTIONS},
        required=("workdir",),
    )
    flags.check_fields(config, "configs/pretrain.py")
    workdir = pathlib.Path(options.workdir)
    runtime.start(allocator=config.allocator, cache=workdir / run_directory.CACHE, options=options)
    if not config.data:
        raise InputError("config.data is missing; name the folder that launch.prepare wrote")
    with run_directory.locked(workdir):
        pretrain(config, options, workdir)


def pretrain(config: ConfigDict, options: flags.Options, workdir: pathlib.Path) -> None:
    """Checks everything, then trains, exports, and shows what was learned."""
    store, held_out = Store.open(config.data, "train"), Store.open(config.data, "validation")
    check = check_checksums_beside(store.directory, store.manifest)
    check_probes(config.probes, store.tokenizer)
    export.check_replaceable(workdir / run_directory.MODEL)
    task = Pretraining(pairs=config.examples.objective != "none")
    if run_directory.has_checkpoints(workdir):  # what the run was started from need not be there any more
        kept = sources.run_encoder(workdir)
        model_config, init_params = dataclasses.replace(kept, **computing(config, kept)), None
    else:
        model_config, init_params = starting_point(config, store, task)
    if config.init_from:
        adopt(config, model_config)
    settings = config_fields.flatten(config) | {"data_sha256": store.fingerprint, "encoder": model_config.to_json()}
    run_directory.agree(settings)
    goes_on = run_directory.check(workdir, settings, may_change=MAY_CHANGE)
    if jax.process_index() == 0:
        flags.show(config, options)
    planned, held = build(config, task, model_config, store, held_out, workdir)
    train.refuse_beyond(run_directory.newest_step(workdir), config.total_steps)
    run_directory.write(workdir, settings, store.tokenizer)
    before = []
    if config.probes and not goes_on and jax.process_count() == 1:
        setup, batch = planned.setup, planned.train_batch(0)
        init_params = init_params or jax.device_get(jax.jit(lambda: draw_params(setup, batch))())
        before = answers(config, setup.model.config, init_params, store.tokenizer)
    outcome = train.fit(dataclasses.replace(planned, data_check=check), init_params)
    if outcome.stopped_by:
        runtime.say(
            f"stopped at step {outcome.state.step} of {config.total_steps}; run the same command again to go on"
        )
        sys.exit(128 + outcome.stopped_by)
    finish(config, planned, outcome, before, store.tokenizer, held)


def build(
    config: ConfigDict,
    task: Pretraining,
    model_config: BertConfig,
    store: Store,
    held_out: Store,
    workdir: pathlib.Path,
) -> tuple[train.Run, EvaluationBatches | None]:
    """The run that the settings describe, and its held-out batches if there are any."""
    if config.max_length > model_config.max_position_embeddings:
        raise InputError(
            f"config.max_length is {config.max_length}, but the model has {model_config.max_position_embeddings} "
            "positions; lower it" + ("" if config.init_from else ", or raise config.model.max_position_embeddings")
        )
    mesh = sharding.make_mesh(config.mesh.mode, config.mesh.model_devices)
    sharding.check_batch_size(config.batch_size, mesh, config.micro_batches)
    examples = BatchSettings(
        batch_size=config.batch_size, max_length=config.max_length, seed=config.seed, **config.examples
    )
    setup = Setup(
        model=Model(model_config, task.head(model_config)),
        task=task,
        optimizer=optim.OptimizerSettings(total_steps=config.total_steps, **config.optimizer),
        mesh=mesh,
        mode=config.mesh.mode,
        micro_batches=config.micro_batches,
        seed=config.seed,
    )
    timing = {field.name: config[field.name] for field in dataclasses.fields(train.LoopSettings)}
    loop = train.LoopSettings(**timing)
    if examples.whole_words and masking.share_of_split_words(store) == 0:
        runtime.say(
            "notice: no word has two pieces, so whole words are single tokens; prepare the text with word_boundaries"
        )
    batches, rows = Batches(store, examples), sharding.host_rows(config.batch_size)
    runtime.say(f"training: {batches.report}; {batches.steps_per_epoch:,.0f} steps an epoch")
    held = EvaluationBatches(held_out, examples) if held_out.num_documents else None
    if held:
        runtime.say(f"held out: {held.report}")
    for name, part in (("training", batches), ("held out", held)):
        if part and part.report.pairs.notice:
            runtime.say(f"notice: {name}: {part.report.pairs.notice}")
    flops = arithmetic.training_flops_per_token(model_config, config.max_length, examples.masks_in_row)

    def train_batch(number: int) -> dict[str, np.ndarray]:
        return batches(number, rows)

    def evaluation_batches() -> Iterator[dict[str, np.ndarray]]:
        return (held(number, rows) for number in range(len(held)))

    scores = evaluate.on_batches(setup.model, task, mesh, evaluation_batches) if held else None
    return train.Run(setup, loop, workdir, train_batch, scores, flops), held


def check_probes(probes: tuple[str, ...], tokenizer: Tokenizer) -> None:
    """Refuses a probe without a mask before anything is trained."""
    for text in probes:
        if tokenizer.mask_id not in tokenizer.encode(text, special_in_text=True).ids:
            raise InputError(f"config.probes: {text!r} has no {tokenizer.vocab[tokenizer.mask_id]}")


# --- what a person sees -----------------------------------------------------------------------------------------


def finish(
    config: ConfigDict,
    planned: train.Run,
    outcome: train.Outcome,
    before: list[str],
    tokenizer: Tokenizer,
    held: EvaluationBatches | None,
) -> None:
    """Writes ``model/`` and prints answers, scores and paths."""
    params = sharding.on_this_host(outcome.state.params)
    if jax.process_index() != 0:
        return
    model_config, model = planned.setup.model.config, planned.workdir / run_directory.MODEL
    extra = {"pretraining": {"step": int(outcome.state.step), "objective": config.examples.objective}}
    export.save_model_directory(model, model_config, params, tokenizer, extra=extra)
    if config.probes:
        show_answers(config.probes, before, answers(config, model_config, params, tokenizer))
    if held:
        show_scores(outcome.metrics, baselines(held(number) for number in range(len(held))))
    losses = f"{planned.workdir / run_directory.METRICS} and {planned.workdir / run_directory.BOARD}/"
    print(printable(f"wrote {model}/ (the model), {losses} (the losses)"))


def answers(config: ConfigDict, model_config: BertConfig, params: Params, tokenizer: Tokenizer) -> list[str]:
    """For each probe, the five likeliest words of its first mask."""
    model = inference.from_params(model_config, params, tokenizer)
    found = (model.fill_mask(text)[0] for text in config.probes)
    return [printable(", ".join(f"{token} {p:.2f}" for token, p in candidates)) for candidates in found]


def show_answers(probes: tuple[str, ...], before: list[str], after: list[str]) -> None:
    for i, (text, answer) in enumerate(zip(probes, after, strict=False)):
        print(f"\n{text}")
        if before:
            print(f"  before  {before[i]}")
        print(f"  after   {answer}")


def show_scores(metrics: dict[str, float | None], baseline: dict[str, float]) -> None:
    """A table of the held-out part; beside accuracies what answering without looking would score."""
    print(f"\n{'held out':<16}{'model':>10}{'baseline':>10}")
    for name, value in metrics.items():
        shown = "undefined" if value is None else f"{value:.4f}"
        print(f"{name:<16}{shown:>10}{f'{baseline[name]:.4f}' if name in baseline else '':>10}")
    print("baseline: the most frequent masked token, the more frequent next-sentence class\n")


if __name__ == "__main__":
    flags.main(run)
