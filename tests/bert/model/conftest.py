"""A tiny model and batches made by hand, for the tests of bert/model."""

import dataclasses
import functools
import pathlib
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert.architectures.bert import BertConfig
from bert.architectures.bert_encoder import BertEncoder
from bert.model import matmul
from bert.model.losses import ratio
from bert.training.pretraining import Pretraining

Row = Sequence[Sequence[int]]  # the token ids of each example in the row
# What bert.model.matmul asks a backend to choose its forms: (is it a CPU, has that bfloat16 instructions?)
FORMS = {"CPU": (True, False), "CPU with bfloat16": (True, True), "accelerator": (False, False)}


@dataclasses.dataclass(frozen=True)
class TinyModel:
    """A tiny pretraining model with weights large enough that attention is far from uniform.

    The methods compile once for each set of ``changes`` to the configuration.
    """

    config: BertConfig
    params: dict

    def outputs(self, batch: dict, *, key=None, **changes) -> dict:
        """The head's outputs and the encoder's ``hidden`` [B, T, D], with dropout if there is a key."""
        return self._compiled("outputs", **changes)(self.params, batch, key)

    def hidden(self, batch: dict, *, key=None, **changes) -> np.ndarray:
        """Hidden states float32 [B, T, D]."""
        return np.asarray(self.outputs(batch, key=key, **changes)["hidden"], np.float32)

    def loss_and_gradients(self, batch: dict, *, key=None, **changes) -> tuple:
        """Mean masked-word loss plus mean next-sentence loss, in nats, and its gradients."""
        return self._compiled("loss_and_gradients", **changes)(self.params, batch, key)

    def _compiled(self, what: str, **changes) -> Callable:
        return _compiled(what, dataclasses.replace(self.config, **changes))


@functools.cache
def _compiled(what: str, config: BertConfig) -> Callable:
    task = Pretraining()
    model = task.model(config)

    def outputs(params, batch, key):
        given = {"train": key is not None, "rngs": _rngs(key)}
        values = model.apply({"params": params}, batch, **given)
        return values | {"hidden": BertEncoder(config).apply({"params": params["encoder"]}, batch, **given)["tokens"]}

    def loss(params, batch, key):
        values = model.apply({"params": params}, batch, train=key is not None, rngs=_rngs(key))
        sums, counts = task.sums(values, batch), task.counts(batch)
        return sum(ratio(sums[name], counts[name]) for name in counts)

    return jax.jit({"outputs": outputs, "loss_and_gradients": jax.value_and_grad(loss)}[what])


def _rngs(key) -> dict:
    return {} if key is None else {"dropout": key}


@pytest.fixture(scope="session")
def tiny(make_batch) -> TinyModel:
    config = BertConfig(
        vocab_size=64,
        hidden_size=16,
        num_layers=2,
        num_heads=2,
        intermediate_size=32,
        max_position_embeddings=48,
        layer_loop="scan",  # compiles in half the time
    )
    model = Pretraining().model(config)
    params = jax.jit(model.init)(jax.random.key(0), make_batch([[]], 16))["params"]
    rng = np.random.default_rng(1)
    return TinyModel(config, jax.tree.map(lambda x: x + 0.3 * rng.standard_normal(x.shape, np.float32), params))


@pytest.fixture(scope="session")
def make_batch() -> Callable[[Sequence[Row], int], dict]:
    """``make_batch(rows, length)``: the batch that holds these examples, at most three a row, filled up with padding
    (token id 0). Tests keep to few shapes, for each compiles anew.

    In each example the first token is its [CLS], the second half is segment B, positions 1 and -1 are to be predicted,
    and the next-sentence label is the parity of its token ids, so that an example carries its labels wherever it lies.
    """
    return _make_batch


def _make_batch(rows: Sequence[Row], length: int) -> dict:
    B, E = len(rows), 3
    batch = {k: np.zeros((B, length), np.int32) for k in ("token_ids", "type_ids", "position_ids", "example_ids")}
    batch |= {k: np.zeros((B, E), np.int32) for k in ("cls_positions", "next_sentence_labels")}
    batch |= {k: np.zeros((B, 2 * E), np.int32) for k in ("masked_positions", "masked_ids")}
    batch |= {"next_sentence_weights": np.zeros((B, E), np.float32), "masked_weights": np.zeros((B, 2 * E), np.float32)}
    for b, row in enumerate(rows):
        start = 0
        for e, ids in enumerate(row):
            n, at = len(ids), slice(start, start + len(ids))
            batch["token_ids"][b, at] = ids
            batch["type_ids"][b, at] = np.arange(n) >= n // 2
            batch["position_ids"][b, at] = np.arange(n)
            batch["example_ids"][b, at] = e + 1
            batch["cls_positions"][b, e] = start
            batch["next_sentence_labels"][b, e], batch["next_sentence_weights"][b, e] = sum(ids) % 2, 1
            batch["masked_positions"][b, 2 * e : 2 * e + 2] = start + 1, start + n - 1
            batch["masked_ids"][b, 2 * e : 2 * e + 2] = 5 + ids[1] % 40, 5 + ids[-1] % 40
            batch["masked_weights"][b, 2 * e : 2 * e + 2] = 1
            start += n
    return batch


@pytest.fixture(scope="session")
def examples() -> list[list[int]]:
    """Eight examples of 5 to 12 tokens, as token ids between 5 and 63."""
    rng = np.random.default_rng(20)
    return [[2, *rng.integers(5, 64, n - 2).tolist(), 3] for n in (12, 7, 5, 9, 11, 6, 8, 10)]


@pytest.fixture(scope="session")
def golden() -> pathlib.Path:
    """Reference arrays that another implementation computed; tests/golden/README.md describes them."""
    return pathlib.Path(__file__).resolve().parents[2] / "golden"


@pytest.fixture(scope="session")
def assert_trees_close() -> Callable:
    """``assert_trees_close(got, want, atol)``: same names, and each array within the tolerance."""

    def check(got, want, atol: float) -> None:
        jax.tree.map(lambda g, w: jnp.shape(g) == jnp.shape(w), got, want)  # raises where names differ
        for (path, g), w in zip(jax.tree_util.tree_leaves_with_path(got), jax.tree.leaves(want), strict=True):
            np.testing.assert_allclose(g, w, rtol=0, atol=atol, err_msg=jax.tree_util.keystr(path))

    return check


@pytest.fixture
def set_form(monkeypatch) -> Callable[[str], None]:
    """``set_form(name)``: products in the form that such a backend gets (one of `FORMS`), whatever this machine is.

    It is chosen where a function is traced: make a new `jax.jit` after it.
    """

    def choose(form: str) -> None:
        cpu, native = FORMS[form]
        monkeypatch.setattr(matmul, "on_cpu", lambda: cpu)
        monkeypatch.setattr(matmul, "_native_bfloat16", lambda: native)

    return choose


@pytest.fixture(params=FORMS)
def form(request, set_form) -> str:
    """The test runs once in each form."""
    set_form(request.param)
    return request.param
