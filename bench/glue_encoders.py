"""The encoders of `bench.glue_scratch`: equal trunks, and pretraining under one budget.

The trunk is an encoder without its embeddings. Vocabulary and width of the embeddings are the same for all.
"""

import itertools
import math
import pathlib
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from bench import commands
from bert import architectures, inference
from bert.architectures import ModelConfig
from bert.architectures.transformer import SIZED, SIZES
from bert.errors import InputError
from bert.tokenizer.tokenizer import Tokenizer

TOLERANCE = 0.05  # of the trunk's size
TIMED_STEPS = 40
RECURRENT_LAYERS = 2  # of each direction, as in ELMo
# One recipe for all: that of configs/quickstart.py, whose comments give the reasons.
RECIPE = (
    "--config.warmup_share=0.1", "--config.optimizer.learning_rate=1e-3", "--config.optimizer.b2=0.98",
    "--config.optimizer.schedule=linear", "--config.optimizer.clip_norm=0.0", "--config.model.hidden_dropout=0.0",
)  # fmt: skip


class Encoder(NamedTuple):
    """An encoder to pretrain. config: of configs/pretrain.py; model: the settings of its architecture that are set."""

    name: str
    config: str
    model_type: str
    model: Mapping[str, Any]
    scale: int = 1  # size of the trunk in units of the first encoder's

    def configuration(self, vocab_size: int) -> ModelConfig:
        kind = architectures.config_class("model_type", self.model_type)
        configuration: ModelConfig = kind(vocab_size=vocab_size, **self.model)
        return configuration

    def words(self) -> list[str]:
        settings = (f"--config.model.{name}={value}" for name, value in self.model.items())
        return [f"--config=configs/pretrain.py:{self.config}", *settings]


def encoders(size: str, length: int, vocab_size: int) -> tuple[Encoder, ...]:
    """BERT of a released size, a recurrent network with as large a trunk, GPT, and BERT twice as deep."""
    layers, width, heads = SIZES[size]
    shape: dict[str, float] = dict(zip(SIZED, (layers, width, heads, 4 * width), strict=True))
    # 0.02 suits a width of 768; scaled as 1 / sqrt(width) a narrow model learns sooner.
    shape |= {"max_position_embeddings": length, "initializer_range": round(1 / math.sqrt(width), 4)}
    attention = {"attention_dropout": 0.0}
    deep = shape | {"num_layers": 2 * layers}
    bert = Encoder("BERT", size, "bert", shape | attention)
    goal = trunk_size(bert.configuration(vocab_size))

    def recurrent(units: int) -> Encoder:
        sizes = {
            "embedding_size": width,
            "hidden_size": 2 * units,
            "num_layers": RECURRENT_LAYERS,
            "max_length": length,
        }
        return Encoder("bidirectional RNN", "birnn", "birnn", sizes)

    # With J units a side, the trunk has a J^2 + b J parameters; a and b follow from two small ones.
    small, double = (trunk_size(recurrent(units).configuration(vocab_size)) for units in (8, 16))
    a, b = (double - 2 * small) / 128, (4 * small - double) / 16
    units = round((math.sqrt(b**2 + 4 * a * goal) - b) / (2 * a))
    return (
        bert,
        recurrent(units),
        Encoder("GPT", "gpt", "openai-gpt", shape | attention),
        Encoder("BERT, twice as deep", size, "bert", deep | attention, scale=2),
    )


def trunk_size(config: ModelConfig) -> int:
    """The number of an encoder's parameters that are no embeddings: of those with a depth above 0."""
    encoder: Any = architectures.build(config)
    batch = dict.fromkeys(("token_ids", "type_ids", "position_ids", "example_ids"), np.zeros((1, 1), np.int32))
    shapes = jax.eval_shape(encoder.init, jax.random.key(0), batch)["params"]
    return sum(
        math.prod(leaf.shape)
        for path, leaf in jax.tree.leaves_with_path(shapes)
        if encoder.depth_of([key.key for key in path]) != 0
    )


def check_trunks(encoders: Sequence[Encoder], trunks: Mapping[str, int]) -> None:
    """Raises InputError where a trunk is not as large as it should be. ``trunks``: name -> parameters."""
    unit = trunks[encoders[0].name]
    for encoder in encoders:
        size, goal = trunks[encoder.name], encoder.scale * unit
        if abs(size / goal - 1) > TOLERANCE:
            rule = f"{goal:,} within {TOLERANCE:.0%} are wanted, so that the table compares equals"
            raise InputError(f"the trunk of {encoder.name} has {size:,} parameters; {rule}; choose another --size")


def write_untrained(encoder: Encoder, tokenizer: Tokenizer, directory: pathlib.Path) -> None:
    """A model directory with random weights (seed 0)."""
    config = encoder.configuration(tokenizer.vocab_size)
    batch = dict.fromkeys(("token_ids", "type_ids", "position_ids", "example_ids"), np.zeros((1, 1), np.int32))
    params = jax.device_get(jax.jit(architectures.build(config).init)(jax.random.key(0), batch)["params"])
    inference.save(inference.from_params(config, {"encoder": params, "head": {}}, tokenizer), directory)


def seconds_per_step(words: Sequence[str]) -> float:
    """Of the fastest part of a short run, which is then thrown away.

    Other work on the machine only makes parts slower, so the fastest one is that of the quietest moment.
    """
    with tempfile.TemporaryDirectory() as folder:
        every = TIMED_STEPS // 4
        timing = (f"--config.total_steps={TIMED_STEPS}", f"--config.log_every={every}", f"--workdir={folder}/run")
        commands.run("pretrain", *words, *timing)
        return min(row["seconds_per_step"] for row in commands.log_of(f"{folder}/run", "train")[1:])


def pretrain(words: Sequence[str], steps: int, workdir: pathlib.Path) -> dict[str, Any]:
    """Pretrains, or goes on with the run there; minutes of its steps, tokens seen, held-out perplexity."""
    intervals = (f"--config.save_every={max(1, steps // 5)}", f"--config.evaluate_every={steps}")
    commands.run("pretrain", *words, *intervals, f"--config.total_steps={steps}", f"--workdir={workdir}")
    rows = commands.log_of(workdir, "train")
    steps_of = (row["step"] - before["step"] for before, row in itertools.pairwise([{"step": 0}, *rows]))
    seconds = sum(count * (row["seconds_per_step"] or 0.0) for count, row in zip(steps_of, rows, strict=True))
    held_out = (commands.log_of(workdir, "validation") or [{}])[-1]
    losses = {name: value for name, value in held_out.items() if name.endswith("_perplexity")}
    tokens = sum(row["tokens"] for row in rows)
    return {"steps": steps, "minutes": seconds / 60, "tokens": tokens, "held_out": losses}
