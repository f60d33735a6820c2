"""An encoder of this file alone: registered, it trains, resumes, fine-tunes, exports and loads as BERT does."""

import dataclasses
import pathlib
import sys
from collections.abc import Iterator
from typing import Any, ClassVar

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file

import bert
from bert import architectures
from bert.data.batches import Batches
from bert.data.settings import BatchSettings
from bert.errors import InputError
from bert.model.blocks import Dense
from bert.model.dropout import dropout
from bert.model.embeddings import Embedding
from bert.model.pattern import within_examples
from bert.model.reading import TOKENS, of_tokens
from bert.store.reader import Store
from bert.tokenizer.backends import load_tokenizer
from bert.tokenizer.tokenizer import Tokenizer
from bert.training import optim, run_directory, sharding, train
from bert.training.pretraining import Pretraining
from bert.training.step import Setup
from launch import finetune
from launch import pretrain as pretrain_command
from tests.bert.builders import write_store
from tests.launch.review_table import BAD, GOOD, OTHER, TINY, reviews, write


# The whole architecture: a bag of embeddings with one dense layer ------------------------------------------------
@dataclasses.dataclass(frozen=True)
class BagOfWordsConfig:
    model_type: ClassVar[str] = "bag_of_words"
    vocab_size: int
    hidden_size: int = 16
    max_length: int = 32
    hidden_dropout: float = 0.1
    num_layers: int = 1
    type_vocab_size: int = 2
    hidden_act: str = "gelu"
    initializer_range: float = 0.1
    layer_norm_eps: float = 1e-12
    dtype: str = "float32"

    def check_training(self) -> None:
        pass

    def matmul_flops_per_token(self, length: int) -> float:
        return 2.0 * self.hidden_size**2

    def to_json(self) -> dict[str, Any]:
        return {"model_type": self.model_type, **dataclasses.asdict(self)}

    @classmethod
    def from_json(cls, values, *, source: str = "config.json") -> "BagOfWordsConfig":
        names = {field.name for field in dataclasses.fields(cls)}
        return cls(**{name: value for name, value in values.items() if name in names})

    @classmethod
    def json_notes(cls, values, *, source: str = "config.json") -> list[str]:
        return []


class BagOfWords(nn.Module):
    """Each token's embedding and the mean over its example, through one dense layer."""

    config: BagOfWordsConfig
    packing: ClassVar[str] = "exact"

    def setup(self) -> None:
        self.token = Embedding(self.config, self.config.vocab_size)
        self.dense = Dense(self.config, self.config.hidden_size)

    def __call__(self, batch, *, train: bool = False, reads=TOKENS):
        x_BTD = self.token(batch["token_ids"])
        same_BTS = within_examples(batch).allowed()[:, 0].astype(x_BTD.dtype)
        mean_BTD = same_BTS @ x_BTD / jnp.maximum(same_BTS.sum(-1, keepdims=True), 1)
        key = self.make_rng("dropout") if train else None
        hidden_BTD = nn.tanh(self.dense(dropout(x_BTD + mean_BTD, self.config.hidden_dropout, key)))
        return of_tokens(hidden_BTD, batch, reads)

    def token_table(self):
        return self.token.embedding

    def depth_of(self, path) -> int:
        return 0 if path[0] == "token" else 1


ENTRY = (BagOfWordsConfig, BagOfWords)
# The end of the architecture ----------------------------------------------------------------------------------------

STEPS = 12


@pytest.fixture(scope="module", autouse=True)
def registered() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(architectures.REGISTRY, "bag_of_words", ENTRY)
        yield


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return load_tokenizer(TINY)


@pytest.fixture(scope="module")
def store(tokenizer, tmp_path_factory) -> Store:
    """A prepared folder of 30 documents of made-up words."""
    rng = np.random.default_rng(0)
    known = [tokenizer.vocab.index(word) for word in (*GOOD, *BAD, *OTHER)]
    documents = [[rng.choice(known, rng.integers(3, 9)).tolist() for _ in range(6)] for _ in range(30)]
    folder = tmp_path_factory.mktemp("prepared")
    write_store(folder, tokenizer, {"train": documents})
    return Store.open(folder)


class Killed(Exception):
    """Nothing in the loop catches it."""


def pretrain(store: Store, workdir: pathlib.Path, killed_at: int | None = None) -> train.Outcome:
    """A run of 12 steps of masked words and next sentence, saved every fourth."""
    config, task = BagOfWordsConfig(store.vocab_size), Pretraining()
    batches = Batches(store, BatchSettings(batch_size=8, max_length=32, seed=3))

    def train_batch(number: int) -> dict[str, np.ndarray]:
        if number == killed_at:
            raise Killed
        return batches(number)

    optimizer = optim.OptimizerSettings(STEPS, 1e-2, layer_decay=0.5, name="lamb")
    setup = Setup(task.model(config), task, optimizer, sharding.make_mesh(devices=jax.devices()[:1]), seed=1)
    settings = {"encoder": config.to_json(), "examples.objective": "nsp"}
    if not run_directory.check(workdir, settings, may_change=()):
        run_directory.write(workdir, settings, store.tokenizer)
    loop = train.LoopSettings(STEPS, log_every=3, evaluate_every=STEPS, save_every=4)
    return train.fit(train.Run(setup, loop, workdir, train_batch, None, 1.0))


@pytest.fixture(scope="module")
def pretrained(store, tmp_path_factory) -> pathlib.Path:
    workdir = tmp_path_factory.mktemp("run")
    pretrain(store, workdir)
    return workdir


@pytest.fixture(scope="module")
def exported(pretrained, tmp_path_factory) -> pathlib.Path:
    return bert.save(bert.load(pretrained), tmp_path_factory.mktemp("models") / "model")


def test_a_run_that_was_killed_ends_bit_equal(store, pretrained, tmp_path):
    with pytest.raises(Killed):
        pretrain(store, tmp_path, killed_at=7)
    resumed, whole = pretrain(store, tmp_path), pretrain(store, pretrained)
    jax.tree.map(np.testing.assert_array_equal, jax.device_get(resumed.state), jax.device_get(whole.state))
    drawn = whole.state.params["encoder"]["dense"]["kernel"]
    assert np.abs(drawn).max() > 0


def test_the_command_pretrains_what_a_config_file_names_by_its_model_type(store, tmp_path, monkeypatch):
    """The file replaces the settings of BERT; all others are those of configs/pretrain.py."""
    monkeypatch.delitem(sys.modules, "config_config", raising=False)
    (tmp_path / "bag.py").write_text(
        "from ml_collections import ConfigDict\nfrom configs import pretrain\n\ndef get_config():\n"
        "    config = pretrain.get_config()\n"
        "    config.model = ConfigDict({'model_type': 'bag_of_words', 'hidden_size': 8})\n    return config\n"
    )
    words = (f"--config={tmp_path / 'bag.py'}", f"--config.data={store.directory}", f"--workdir={tmp_path / 'run'}")
    small = ("--config.batch_size=8", "--config.max_length=32", "--config.allocator=system")
    steps = ("--config.total_steps=2", "--config.optimizer.warmup_steps=1")
    pretrain_command.run(["pretrain", *words, *small, *steps])
    assert bert.load(tmp_path / "run").config == BagOfWordsConfig(store.vocab_size, hidden_size=8)
    with pytest.raises(InputError, match=r"config.model.model_type is 'bag'; .*bag_of_words"):
        pretrain_command.run(
            ["pretrain", *words[:2], *small, "--config.model.model_type=bag", f"--workdir={tmp_path}/x"]
        )


def test_an_export_loads_back_with_equal_outputs(pretrained, exported):
    """Weights have the names of their parameters; the token table is lent to the masked-word head."""
    model, loaded = bert.load(pretrained), bert.load(exported)
    assert "encoder.dense.kernel" in load_file(exported / "model.safetensors")
    assert loaded.config == model.config == BagOfWordsConfig(model.config.vocab_size)
    outputs = loaded.outputs([[2, 7, 9, 3]])
    assert set(outputs) == {"sequence_output", "pooled_output", "nsp_logits", "mlm_logits"}
    jax.tree.map(np.testing.assert_array_equal, outputs, model.outputs([[2, 7, 9, 3]]))
    assert len(loaded.fill_mask("the [MASK] is great")[0]) == 5
    assert loaded.embed(["great", "a bad book"]).shape == (2, 16)


def test_stablehlo_is_written_and_onnx_refused(exported, tmp_path):
    model = bert.load(exported)
    assert (bert.save(model, tmp_path / "program", format="stablehlo") / "model.stablehlo").stat().st_size > 0
    with pytest.raises(InputError, match="'bag_of_words'"):
        bert.save(model, tmp_path / "graph", format="onnx")


def test_what_needs_layers_of_attention_is_refused_in_a_line(exported):
    model = bert.load(exported)
    inside = (model.attention, model.attention_steps)
    for refused in (
        *(lambda f=f: f("a great book") for f in inside),
        lambda: model.outputs([[2, 3]], look_inside=True),
    ):
        with pytest.raises(InputError, match="'bag_of_words'"):
            refused()


def fine_tune(exported: pathlib.Path, workdir: pathlib.Path, *words: object) -> None:
    fixed = ("--config.max_length=24", "--config.batch_size=16", "--config.allocator=system", "--config.log_every=5")
    rate = "--config.optimizer.learning_rate=3e-2"
    finetune.run(["finetune", *fixed, rate, f"--config.init_from={exported}", f"--workdir={workdir}", *map(str, words)])


@pytest.mark.slow
def test_a_classifier(exported, tmp_path):
    """By the command, on packed rows; its directory predicts."""
    table, workdir = write(tmp_path / "train.csv", reviews(120, 0)), tmp_path / "run"
    words = (f"--config.data={table}", "--config.text=review", "--config.label=liked", "--config.epochs=6")
    fine_tune(exported, workdir, "--config=configs/table.py", *words)
    held = reviews(40, 1)
    answers = bert.load(workdir).predict(held)
    assert np.mean([answer["label"] == row["liked"] for answer, row in zip(answers, held, strict=True)]) > 0.9


def test_a_tagger(exported, tmp_path):
    """By the command, on made-up sentences: good words are X, bad ones Y."""
    tags = {**dict.fromkeys(GOOD, "B-X"), **dict.fromkeys(BAD, "B-Y")}
    rows = [row["review"].split() for row in reviews(160, 0)]
    blocks = ["".join(f"{word} {tags.get(word, 'O')}\n" for word in words) for words in rows]
    (tmp_path / "train.conll").write_text("\n".join(blocks))
    fine_tune(exported, tmp_path / "run", "--config=configs/tagging.py", f"--config.data={tmp_path / 'train.conll'}",
              "--config.epochs=6", "--config.window_step=6", "--config.validation_share=0.2")  # fmt: skip
    (answer,) = bert.load(tmp_path / "run").predict([["a", "great", "movie", "not", "the", "book"]])
    assert answer["tags"] == ["O", "B-X", "O", "B-Y", "O", "O"]


def test_an_encoder_that_refuses_packed_rows(exported, tmp_path, monkeypatch):
    """Training on packed rows is refused before anything is written; prediction uses a row for each example."""
    monkeypatch.setattr(BagOfWords, "packing", "refused")
    table = write(tmp_path / "train.csv", reviews(64, 0))
    words = ("--config=configs/table.py", f"--config.data={table}", "--config.text=review", "--config.label=liked")
    with pytest.raises(InputError, match="packed=False"):
        fine_tune(exported, tmp_path / "packed", *words, "--config.packed=True")
    assert not (tmp_path / "packed" / "config.json").exists()
    fine_tune(exported, tmp_path / "run", *words, "--config.packed=False", "--config.epochs=1")
    assert len(bert.load(tmp_path / "run").predict(reviews(9, 1))) == 9
