"""Compares models of one size and one time of training by the words that they put into held-out blanks.

python -m bench.blanks --data=FOLDER --out=FOLDER --calibrate=yes          first, while nothing else runs
python -m bench.blanks --data=FOLDER --out=FOLDER [--minutes=5,15] [--models=birnn,dilated,gpt,bert]

--data is a folder of `bert prepare`. A blank is a word of its held-out part that is one token, in a row of 64 tokens
with no other blank. All models fill the same ones; GPT knows only what stands before them. A minute is a minute of
training steps on a quiet machine: --calibrate takes the fastest part of a short run of each model, and writes the
number of steps in a minute into OUT/rates.json. The runs take that many, so they may share the machine. A run that is
stopped is resumed; one that has ended is not repeated. The tables are printed at the end.
"""

import dataclasses
import functools
import itertools
import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from ml_collections import ConfigDict
from safetensors.numpy import load_file

from bench import commands, glue_encoders
from bert import files
from bert.data.batches import BatchSettings, EvaluationBatches
from bert.errors import InputError, check_choice
from bert.json_files import read_object
from bert.store.reader import Store
from bert.training import evaluate, run_directory, train
from bert.training.evaluate import Metrics
from bert.training.pretraining import baselines
from bert.types import HostBatch
from launch import flags, runtime
from launch.pretraining_job import PretrainingJob
from launch.runs import Start, run_job

LENGTH, POINTS, BLANKS = 64, 5, 2000  # tokens of a row; evaluations of a run, at equal distances; blanks by default
OPTIONS = {
    "data": "folder that bert prepare wrote, with a held-out part",
    "out": "folder for the rates and the runs",
    "calibrate": "yes: measure the steps of each model in a minute, write them into OUT, and end",
    "minutes": "of training, one run each (default: 5,15)",
    "models": "to be compared (default: birnn,dilated,gpt,bert)",
    "blanks": f"number of blanks (default: {BLANKS})",
    "seed": "of blanks, weights and the order of the text (default: 0)",
}
# The recipe of configs/quickstart.py: few tokens, so small batches and no dropout.
RECIPE = (
    "--config.batch_size=32", f"--config.max_length={LENGTH}", "--config.examples.objective=none",
    "--config.model.hidden_dropout=0", "--config.optimizer.b2=0.98", "--config.optimizer.learning_rate=1e-3",
    "--config.warmup_share=0.1", "--config.log_every=50",
)  # fmt: skip
_TRANSFORMER = (
    f"--config.model.max_position_embeddings={LENGTH}", "--config.model.initializer_range=0.05",
    "--config.model.attention_dropout=0",
)  # fmt: skip
_TWO_SIDED = ("--config.model.embedding_size=256", "--config.model.mix=mlp", "--config.model.mix_size=512",
              f"--config.model.max_length={LENGTH}")  # fmt: skip
# With 8,192 tokens, 5.26 to 5.35 million parameters.
MODELS: dict[str, tuple[str, ...]] = {
    "birnn": ("--config=configs/pretrain.py:birnn", *_TWO_SIDED, "--config.model.hidden_size=1056"),
    "dilated": ("--config=configs/pretrain.py:dilated", *_TWO_SIDED, "--config.model.hidden_size=424",
                "--config.model.num_layers=5"),
    "gpt": ("--config=configs/pretrain.py:gpt", *_TRANSFORMER, "--config.optimizer.schedule=linear"),
    "bert": ("--config=configs/pretrain.py:mini", *_TRANSFORMER),
}  # fmt: skip


def run(argv: list[str]) -> None:
    _, options = flags.parse(argv, __doc__ or "", OPTIONS, ("data", "out"))
    out, seed = pathlib.Path(options.out), options.whole_number("seed", 0, least=0)
    names = options.names("models") or tuple(MODELS)
    for name in names:
        check_choice("--models", name, tuple(MODELS))
    minutes = options.names("minutes") or ("5", "15")
    if wrong := [text for text in minutes if not text.isdecimal() or not int(text)]:
        raise InputError(f"--minutes names {wrong[0]!r}; write whole numbers of at least 1, such as 5,15")
    runtime.start(allocator="keep", cache=out / run_directory.CACHE, options={})
    path = out / "rates.json"
    rates = read_object(path) if path.is_file() else {}
    if options.yes_or_no("calibrate"):
        rates |= {name: 60 / glue_encoders.seconds_per_step(words_of(name, options.data, seed)) for name in names}
        files.write(path, json.dumps(rates, indent=1) + "\n")
        print(json.dumps(rates, indent=1))
        return
    if lacking := [name for name in names if not isinstance(rates.get(name), int | float) or rates[name] <= 0]:
        way_out = f"measure it first, by --calibrate=yes --models={','.join(lacking)}"
        raise InputError(f"{path}: has no rate of {', '.join(lacking)}; {way_out}")
    blanks = drawn(Store.open(options.data, "validation"), options.whole_number("blanks", BLANKS), seed)
    finished: list[Finished] = []
    for time_of_run, name in itertools.product(minutes, names):
        steps = POINTS * max(1, round(rates[name] * int(time_of_run) / POINTS))
        workdir, job = out / f"{name}-{time_of_run}", BlanksJob(settings_of(name, options.data, steps, seed), blanks)
        _check_begun(workdir, job)
        held_out = commands.log_of(workdir, "validation") if (workdir / run_directory.METRICS).exists() else []
        if not held_out or held_out[-1]["step"] < steps:
            run_job(job, workdir)
        finished.append(Finished.read(name, time_of_run, workdir))
    guess = frequencies(Store.open(options.data, "train"), blanks["masked_ids"][:, 0])
    print(table(finished, guess, len(blanks["masked_ids"])), curves(finished), sep="\n\n")


def _check_begun(workdir: pathlib.Path, job: "BlanksJob") -> None:
    """Refuses the scores of a run that was begun with other steps, text or blanks."""
    if not (workdir / run_directory.CONFIG).is_file():
        return
    begun, now = run_directory.read(workdir), {name: job.config[name] for name in ("total_steps", "seed")}
    for name, value in {**now, run_directory.DATA: job.fingerprint, "extra": None, **job.recorded()}.items():
        if begun.get(name) != value:
            way_out = "move it away, or take the data, rates, seed and blanks of before"
            raise InputError(
                f"{workdir}: was begun with {name} {begun.get(name)!r}, and it is {value!r} now; {way_out}"
            )


def words_of(name: str, data: str, seed: int) -> list[str]:
    """The settings of a model's run on prepared text, but for its steps."""
    return [*MODELS[name], *RECIPE, f"--config.data={data}", f"--config.seed={seed}"]


def settings_of(name: str, data: str, steps: int, seed: int) -> ConfigDict:
    """All of them; the run is evaluated and saved at equal distances."""
    of_steps = {"total_steps": steps, "evaluate_every": steps // POINTS, "save_every": steps // POINTS}
    words = [*words_of(name, data, seed), *(f"--config.{key}={value}" for key, value in of_steps.items())]
    return flags.parse(["bench", *words], "", {}, config_file=None)[0]


class BlanksJob(PretrainingJob):
    """Pretraining that is evaluated on the blanks."""

    def __init__(self, config: ConfigDict, blanks: HostBatch):
        super().__init__(config)
        self.number, self.blanks = len(blanks["masked_ids"]), parts(blanks, causal=config.objective == "causal")

    def recorded(self) -> dict[str, Any]:
        """Another number of blanks than the usual one."""
        return {} if self.number == BLANKS else {"extra": {"blanks": self.number}}

    def run(self, start: Start, workdir: pathlib.Path) -> train.Run:
        run = super().run(start, workdir)
        scores = evaluate.on_batches(run.setup.model, self.task, run.setup.mesh, lambda: self.blanks)
        return dataclasses.replace(run, evaluate=scores)

    @functools.cached_property
    def baseline(self) -> dict[str, float]:
        return baselines(self.blanks, self.config.objective)


def drawn(store: Store, number: int, seed: int) -> HostBatch:
    """A row for each of ``number`` blanks, whose word is in none of the model's inputs.

    The words are drawn without replacement from those that are one token of letters.
    """
    if not store.num_documents:
        raise InputError(f"{store.directory}: has no held-out part; prepare it with --config.validation_share=0.05")
    settings = BatchSettings(128, LENGTH, objective="none", packed=False, predicts="causal", seed=seed)  # text as it is
    batches, tokenizer = list(EvaluationBatches(store, settings).all()), store.tokenizer
    rows = {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}
    letters_V = np.array([piece.isalpha() for piece in tokenizer.vocab]) & ~tokenizer.continues_word_V
    whole_RT = letters_V[rows["token_ids"]]
    whole_RT[:, :-1] &= ~tokenizer.continues_word_V[rows["token_ids"][:, 1:]]
    row_M, place_M = np.nonzero(whole_RT)
    if number > len(row_M):
        raise InputError(f"{store.directory}: its held-out part has {len(row_M):,} such words; lower --blanks")
    chosen_N = np.sort(np.random.default_rng(seed).choice(len(row_M), number, replace=False))
    blanks = {name: array[row_M[chosen_N]] for name, array in rows.items()}
    place_N1 = place_M[chosen_N, None].astype(np.int32)
    blanks |= {"masked_positions": place_N1, "masked_weights": np.ones((number, 1), np.float32)}
    blanks["masked_ids"] = np.take_along_axis(blanks["token_ids"], place_N1, 1)
    np.put_along_axis(blanks["token_ids"], place_N1, tokenizer.mask_id, 1)
    return blanks


def parts(blanks: HostBatch, *, causal: bool, size: int = 125) -> list[HostBatch]:
    """Batches of the blanks. A causal model is read at the token before the blank."""
    read = blanks | {"masked_positions": blanks["masked_positions"] - int(causal)}
    starts = range(0, len(read["masked_ids"]), size)
    return [{name: array[start : start + size] for name, array in read.items()} for start in starts]


def frequencies(store: Store, words_N: np.ndarray) -> Metrics:
    """Scores of the frequencies of the training text, with 1 added to each, whatever stands around the blank."""
    tokens = np.concatenate([shard.tokens for shard in store.shards])
    counts_V = 1 + np.bincount(tokens, minlength=store.vocab_size)
    letters_V = np.array([piece.isalpha() for piece in store.tokenizer.vocab])
    best = np.where(letters_V, counts_V, 0).argmax()
    nats = float(-np.log(counts_V[words_N] / counts_V.sum()).mean())
    return {"accuracy": float((words_N == best).mean()), "perplexity": float(np.exp(nats))}


class Finished(NamedTuple):
    """A run that has ended. points: accuracy and perplexity of each evaluation."""

    name: str
    minutes: str
    steps: int
    tokens: float
    parameters: int
    points: list[Metrics]

    @classmethod
    def read(cls, name: str, minutes: str, workdir: pathlib.Path) -> "Finished":
        trained, held_out = (commands.log_of(workdir, split) for split in ("train", "validation"))
        # blank_accuracy, mlm_accuracy, ...: without the name of the objective.
        points = [{key.partition("_")[2]: value for key, value in row.items() if "_" in key} for row in held_out]
        weights = load_file(workdir / run_directory.MODEL / "model.safetensors")
        parameters = sum(tensor.size for tensor in weights.values())
        return cls(name, minutes, held_out[-1]["step"], sum(row["tokens"] for row in trained), parameters, points)


def table(finished: Sequence[Finished], guess: Metrics, number: int) -> str:
    """Markdown: a line for each run, with the standard error of its accuracy."""
    lines = ["| model | parameters | minutes | steps | tokens | accuracy | perplexity |", "|" + " --- |" * 7]
    lines.append(f"| frequencies of words | | | | | {_scores(guess, number)} |")
    for run in finished:
        sizes = [f"{size / 1e6:.2f} M" for size in (run.parameters, run.tokens)]
        cells = [run.name, sizes[0], run.minutes, f"{run.steps:,}", sizes[1], _scores(run.points[-1], number)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _scores(scores: Mapping[str, Any], number: int) -> str:
    share = scores["accuracy"]
    return f"{share:.3f} ± {(share * (1 - share) / number) ** 0.5:.3f} | {scores['perplexity']:.1f}"


def curves(finished: Sequence[Finished]) -> str:
    """Markdown: accuracy and perplexity of each run after equal parts of its steps."""
    shares = " | ".join(f"{point / POINTS:.0%}" for point in range(1, POINTS + 1))
    lines = [f"| model, minutes | {shares} |", "|" + " --- |" * (POINTS + 1)]
    for run in finished:
        cells = [f"{point['accuracy']:.3f}; {point['perplexity']:.0f}" for point in run.points]
        lines.append(f"| {run.name}, {run.minutes} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    flags.main(run)
