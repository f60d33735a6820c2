"""Packed rows train as one example a row does: the same loss and gradient, through the real batches and the real step.

The optimizer here has no memory and no clipping, so that the first moment it keeps is the gradient of the step.
"""

import dataclasses

import jax
import numpy as np
import optax
import pytest

from bert.data import encoded_examples
from bert.data.batches import Batches, BatchSettings
from bert.data.encoded_examples import EncodedExamples, ExampleSettings, TrainingBatches
from bert.store.reader import Store
from bert.tokenizer.wordpiece import WordPiece
from bert.training import optim, sharding
from bert.training.pretraining import Pretraining
from bert.training.step import Setup, abstract_state
from bert.training.task import Task
from tasks.classification.job import Classification
from tasks.squad.job import StartAndEnd
from tasks.token_labels import TokenLabels
from tests.bert.builders import write_store
from tests.bert.training import tiny

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCABULARY = [*SPECIALS, *(f"w{n}" for n in range(tiny.VOCAB - len(SPECIALS)))]


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Store:
    """Twenty documents of one to six sentences of 2 to 13 tokens, [UNK] among them."""
    folder, rng = tmp_path_factory.mktemp("prepared"), np.random.default_rng(0)
    sentence = lambda: rng.choice([1, *range(5, tiny.VOCAB)], rng.integers(2, 14)).tolist()  # noqa: E731
    documents = [[sentence() for _ in range(rng.integers(1, 7))] for _ in range(20)]
    write_store(folder, WordPiece.from_vocab(VOCABULARY), {"train": documents})
    return Store.open(folder)


def epoch(store: Store, settings: BatchSettings) -> dict[str, np.ndarray]:
    """All rows of the first epoch as one batch of training."""
    rows = Batches(store, settings).report.rows
    return Batches(store, dataclasses.replace(settings, batch_size=rows))(0)


def step(task: Task, batch: dict[str, np.ndarray]) -> tuple[dict[str, float], dict]:
    """What one training step from the same large random weights tells on the batch, and its gradient."""
    config, rng = tiny.config(num_layers=1), np.random.default_rng(0)
    rule = optim.OptimizerSettings(total_steps=1, learning_rate=1e-3, schedule="constant", b1=0.0, clip_norm=0.0)
    mesh = sharding.make_mesh(devices=jax.devices()[:1])
    made = Setup(task.model(config), task, rule, mesh)
    shapes = abstract_state(made, batch).params
    params = jax.tree.map(lambda x: rng.normal(0, 0.3, x.shape).astype(np.float32), shapes)
    state, (told,) = tiny.run_steps(made, [batch], params)
    return told, optax.tree.get(state.opt_state, "mu")


def assert_trains_alike(task: Task, packed: dict[str, np.ndarray], alone: dict[str, np.ndarray]) -> None:
    """Every value that the step tells and every entry of its gradient: within 1e-5, of the largest where that is
    above 1."""
    assert len(packed["token_ids"]) < 0.7 * len(alone["token_ids"])
    assert packed["example_ids"].max() > 2
    assert alone["example_ids"].max() == 1
    (told, gradient), (wanted, wanted_gradient) = step(task, packed), step(task, alone)
    assert wanted["gradient_norm"] > 0.1
    assert told.keys() == wanted.keys()
    for name, value in wanted.items():
        assert told[name] == pytest.approx(value, abs=1e-5 * max(1.0, abs(value))), name
    for (path, x), y in zip(jax.tree.leaves_with_path(wanted_gradient), jax.tree.leaves(gradient), strict=True):
        tolerance = 1e-5 * max(1.0, np.abs(x).max())
        np.testing.assert_allclose(y, x, rtol=0, atol=tolerance, err_msg=jax.tree_util.keystr(path))


@pytest.mark.slow
def test_pretraining_is_the_same_in_packed_rows(store):
    """An epoch of a prepared text in packed rows, and one example a row: the same masks and pairs, the same loss and
    gradient of masked words and next sentence."""
    settings = BatchSettings(batch_size=1, max_length=64, seed=3)
    packed, alone = (epoch(store, dataclasses.replace(settings, packed=packed)) for packed in (True, False))
    assert_trains_alike(Pretraining(), packed, alone)


def encoded(
    of_example: dict[str, np.ndarray], of_token: dict[str, np.ndarray], length_N: np.ndarray
) -> EncodedExamples:
    rng = np.random.default_rng(1)
    sequences = [([2, *rng.integers(5, tiny.VOCAB, n - 2), 3], int(rng.integers(2, n + 1))) for n in length_N]
    return dataclasses.replace(encoded_examples.join(sequences, **of_example), of_token=of_token)


def classes(rng, length_N):
    """Shares of three classes of an example, and what the example counts."""
    shares, weights = rng.dirichlet(np.ones(3), len(length_N)), rng.uniform(0.5, 2, len(length_N))
    return {"targets": shares.astype(np.float32), "target_weights": weights.astype(np.float32)}, {}


def tags(rng, length_N):
    """Shares of three tags of a token; about a third of the tokens count, and each window is half of a text."""
    tokens = length_N.sum()
    weights = (rng.random(tokens) < 0.3).astype(np.float32)
    of_token = {"targets": rng.dirichlet(np.ones(3), tokens).astype(np.float32), "target_weights": weights}
    return {"example_share": np.full(len(length_N), 0.5, np.float32)}, of_token


def answers(rng, length_N):
    """The first and the last token of an answer; some windows have none, and some do not count."""
    start, end = np.sort(rng.integers(1, length_N[:, None], (len(length_N), 2)), 1).T.astype(np.int32)
    has = rng.random(len(length_N)) < 0.8
    return {"start": start * has, "end": end * has, "target_weights": np.float32(rng.random(len(length_N)) < 0.8)}, {}


@pytest.mark.parametrize(
    ("task", "targets"),
    [
        (Classification("class", 3), classes),
        (TokenLabels(3, per="example"), tags),
        (StartAndEnd(), answers),
    ],
    ids=["classes", "tags", "answers"],
)
def test_fine_tuning_is_the_same_in_packed_rows(task, targets):
    """24 examples of 3 to 20 tokens and one of 60 in packed rows, and one a row: the same loss and gradient
    for sums over examples, over tokens, and over the positions of an example."""
    rng = np.random.default_rng(0)
    length_N = np.append(rng.integers(3, 21, 24), 60)
    made = encoded(*targets(rng, length_N), length_N)  # type: ignore[call-arg]
    packed, alone = (TrainingBatches(made, ExampleSettings(25, 64, packed, seed=2))(0) for packed in (True, False))
    assert_trains_alike(task, packed, alone)
