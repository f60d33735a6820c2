"""Optimizers against their definitions; whole runs against references are in step_test.py."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from bert.errors import InputError
from bert.training import optim
from tests.bert.training import tiny


def settings(**changes) -> optim.OptimizerSettings:
    return optim.OptimizerSettings(**({"total_steps": 100, "learning_rate": 1e-4, "warmup_steps": 10} | changes))


@functools.cache
def params() -> dict:
    made = tiny.setup()
    return jax.device_get(jax.jit(made.model.init)(jax.random.key(0), tiny.batch())["params"])


def depth_of(path: tuple[str, ...]) -> int | range | None:
    """Three stacked blocks above the embeddings, and a head."""
    return range(1, 4) if "blocks" in path else 0 if "embeddings" in path else None


def first_update(settings: optim.OptimizerSettings, gradients: dict, params: dict) -> tuple[dict, optax.OptState]:
    """Direction and state (NumPy) after the first update, as one program: one for each array would compile longer."""
    made = optim.transformation(settings, depth_of)
    return jax.device_get(jax.jit(lambda g, p: made.update(g, made.init(p), p))(gradients, params))


def test_weight_decay_reaches_kernels_and_embeddings_only():
    """With zero gradients, rate 0.1 and decay 0.1, one update scales kernels and tables by 0.99 and leaves the rest.

    Also where arrays are stacked over layers (their biases have two axes), in the pooler and in the MLM head.
    """
    start = jax.tree.map(lambda x: x + 1.0, params())
    direction, _ = first_update(settings(weight_decay=0.1), jax.tree.map(np.zeros_like, start), start)
    for path, after in jax.tree_util.tree_leaves_with_path(jax.tree.map(lambda p, d: p - 0.1 * d, start, direction)):
        before = _at(start, path)
        factor = 0.99 if path[-1].key in ("kernel", "embedding") else 1.0
        np.testing.assert_allclose(after, before * factor, rtol=1e-6, err_msg=jax.tree_util.keystr(path))


def _at(tree: dict, path) -> np.ndarray:
    for key in path:
        tree = tree[key.key]
    return tree


def test_lamb_takes_one_trust_ratio_for_each_layer_of_a_stack():
    """Stacked layers of very different size move as they would one by one under optax.lamb."""
    layers = [jax.random.normal(jax.random.key(i), (4, 4)) * 10.0**i for i in range(3)]
    grads = [jax.random.normal(jax.random.key(9 + i), (4, 4)) * 10.0**i for i in range(3)]
    stacked, stacked_grads = ({"blocks": {"kernel": np.stack(x)}} for x in (layers, grads))
    ours, _ = first_update(settings(name="lamb", clip_norm=0.0), stacked_grads, stacked)
    reference = optax.lamb(1.0, weight_decay=0.01)
    theirs, _ = jax.jit(reference.update)(grads, reference.init(layers), layers)
    np.testing.assert_allclose(-ours["blocks"]["kernel"], np.stack(theirs), rtol=1e-5)


def test_adam_corrects_its_bias_and_googles_does_not():
    """A first constant gradient moves a parameter by the rate with correction, by 0.1 / sqrt(0.001) of it without."""
    one = {"bias": jnp.ones(3)}
    rules = [settings(name=name, clip_norm=0.0, eps=1e-12) for name in ("adamw", "google_adamw")]
    moved = [first_update(rule, one, one)[0]["bias"][0] for rule in rules]
    np.testing.assert_allclose(moved, [1.0, 0.1 / 0.001**0.5], rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("name", "adam", "google_adamw"),
        ("schedule", "cosin", "cosine"),
        ("total_steps", 0, "at least 1"),
        ("warmup_steps", 101, "total_steps"),
        ("decay_share", 1.5, "at most 1"),
        ("learning_rate", 0.0, "above 0"),
        ("weight_decay", -0.1, "at least 0"),
        ("b2", 1.0, "below 1"),
        ("layer_decay", 0.0, "above 0"),
        ("layer_decay", 1.5, "at most 1"),
        ("frozen_layers", -2, "at least -1"),
    ],
)
def test_settings_out_of_range_are_refused_by_name_and_value(name, value, rule):
    with pytest.raises(InputError, match=f"{name} is {value!r}; .*{rule}"):
        settings(**{name: value})


def blocks_and_head() -> dict:
    """Three stacked blocks, embeddings and a head, all ones."""
    ones = lambda *shape: np.ones(shape, np.float32)  # noqa: E731
    return {
        "encoder": {"embeddings": {"token": {"embedding": ones(5, 2)}}, "blocks": {"up": {"kernel": ones(3, 2, 2)}}},
        "head": {"pooler": {"kernel": ones(2, 2)}},
    }


def test_each_block_learns_slower_than_the_one_above_it():
    """Head 1, blocks from the top 0.5, 0.25, 0.125, embeddings 0.0625: as shares, and in a step with decay."""
    settings = optim.OptimizerSettings(
        total_steps=10, learning_rate=1.0, layer_decay=0.5, weight_decay=0.1, clip_norm=0.0
    )
    params = blocks_and_head()
    shares = optim.rate_shares(params, settings, depth_of)
    np.testing.assert_allclose(np.ravel(shares["encoder"]["blocks"]["up"]["kernel"]), [0.125, 0.25, 0.5])
    assert float(shares["encoder"]["embeddings"]["token"]["embedding"]) == 0.0625
    assert float(shares["head"]["pooler"]["kernel"]) == 1.0
    plain = optim.OptimizerSettings(total_steps=10, learning_rate=1.0, weight_decay=0.1, clip_norm=0.0)
    grads = jax.tree.map(lambda x: 0.3 * x, params)

    update, plain_update = (first_update(rule, grads, params)[0] for rule in (settings, plain))
    want = jax.tree.map(lambda u, share: u * np.asarray(share), plain_update, shares)
    jax.tree.map(lambda got, wanted: np.testing.assert_allclose(got, wanted, rtol=1e-6), update, want)


@pytest.mark.parametrize(
    ("frozen", "blocks", "embeddings"),
    [(-1, [1, 1, 1], 1), (0, [1, 1, 1], 0), (2, [0, 0, 1], 0), (3, [0, 0, 0], 0), (9, [0, 0, 0], 0)],
)
def test_frozen_layers_stay_and_are_no_part_of_the_norm(frozen, blocks, embeddings):
    """The lowest blocks and the embeddings below them; with clipping, what is left moves as if it were alone."""
    settings = optim.OptimizerSettings(total_steps=10, learning_rate=1.0, frozen_layers=frozen, clip_norm=0.1)
    params = blocks_and_head()
    update, state = first_update(settings, jax.tree.map(np.ones_like, params), params)
    moved = lambda x: int(bool(np.abs(x).max() > 0))  # noqa: E731
    assert [moved(x) for x in update["encoder"]["blocks"]["up"]["kernel"]] == blocks
    assert moved(update["encoder"]["embeddings"]["token"]["embedding"]) == embeddings
    assert moved(update["head"]["pooler"]["kernel"])
    free = 4 + 4 * sum(blocks) + 10 * embeddings
    first_moment = np.asarray(optax.tree.get(state, "mu")["head"]["pooler"]["kernel"])
    np.testing.assert_allclose(first_moment, 0.1 * 0.1 / np.sqrt(free), rtol=1e-5)


def test_the_first_step_of_adamw_is_the_rate_itself():
    """With bias correction a constant gradient moves each entry by the learning rate from the first step on."""
    settings = optim.OptimizerSettings(total_steps=10, learning_rate=1.0, weight_decay=0.0, clip_norm=0.0, eps=1e-12)
    params = blocks_and_head()
    update, _ = first_update(settings, jax.tree.map(lambda x: 1e-3 * x, params), params)
    jax.tree.map(lambda u: np.testing.assert_allclose(u, 1.0, rtol=1e-5), update)


def gradients(number: int, size: float = 1.0) -> dict:
    """Made-up gradients of a tree of two arrays."""
    rng = np.random.default_rng(number)
    return {name: size * rng.standard_normal(shape, np.float32) for name, shape in (("a", (3, 4)), ("b", (5,)))}


def test_adam_equals_that_of_optax():
    """Direction, both moments and count after each of six updates, with gradients of very different sizes."""
    ours, theirs = optim.scale_by_adam(0.9, 0.999, 1e-6, corrected=True), optax.scale_by_adam(0.9, 0.999, 1e-6)
    state, their_state = ours.init(gradients(0)), theirs.init(gradients(0))
    update, their_update = jax.jit(ours.update), jax.jit(theirs.update)
    for number, size in enumerate((1.0, 1e-5, 1e3, 1.0, 0.0, 1.0)):
        direction, state = update(gradients(number, size), state)
        their_direction, their_state = their_update(gradients(number, size), their_state)
        for one, other in zip(
            jax.tree.leaves((direction, state)), jax.tree.leaves((their_direction, their_state)), strict=True
        ):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", optim.OPTIMIZERS)
def test_a_bad_step_leaves_the_state_of_every_optimizer(name):
    """NaN gradients with ``good`` False after a good step: not one bit of moments and count differs."""
    params = blocks_and_head()
    made = optim.transformation(settings(name=name, layer_decay=0.5, frozen_layers=0), depth_of)
    update = jax.jit(made.update)
    good = jax.tree.map(lambda x: 0.1 * x, params)
    _, before = update(good, made.init(params), params, good=jnp.array(True))
    _, after = update(jax.tree.map(lambda x: x * jnp.nan, params), before, params, good=jnp.array(False))
    assert int(optax.tree.get(before, "count")) == 1
    assert max(float(jnp.abs(x).max()) for x in jax.tree.leaves(optax.tree.get(before, "mu"))) > 0
    jax.tree.map(np.testing.assert_array_equal, after, before)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_clipping_equals_that_of_optax(size):
    """Gradients shorter than the limit and longer ones; the direction stays, and the norm is at most the limit."""
    grads = gradients(0, size)
    got, _ = optim.clip_by_global_norm(0.5).update(grads, optax.EmptyState())
    want, _ = optax.clip_by_global_norm(0.5).update(grads, optax.EmptyState())
    jax.tree.map(lambda g, w: np.testing.assert_allclose(g, w, rtol=1e-6), got, want)
    assert float(optax.tree.norm(got)) == pytest.approx(min(0.5, float(optax.tree.norm(grads))), rel=1e-6)


def test_clipping_leaves_a_zero_gradient():
    """Nothing is divided by a norm of 0."""
    zeros = gradients(0, 0.0)
    jax.tree.map(
        np.testing.assert_array_equal, optim.clip_by_global_norm(0.5).update(zeros, optax.EmptyState())[0], zeros
    )
