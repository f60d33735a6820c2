"""One training step, and a few: over micro-batches and devices, with bad gradients."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bench import collectives
from bert.training import optim, sharding
from bert.training import step as step_module
from bert.training.pretraining import Pretraining
from bert.training.step import Setup, TrainState, abstract_state, draw_params, init_state, make_train_step
from tests.bert.training import tiny

BATCHES = [tiny.batch(i, labels=[1, 2, 3, 4, 4, 1, 2, 1]) for i in range(3)]
# Tests that need no rule and layout of their own use one of these, so that each is compiled once for all of them.
PLAIN = {"learning_rate": 1e-3, "num_layers": 1}
DROPOUT = {"learning_rate": 1e-3, "hidden_dropout": 0.1, "attention_dropout": 0.1}
SPLIT = {"devices": 8, "mode": "fsdp", **PLAIN}


@functools.cache
def on_one_device(dropout: bool) -> tuple[TrainState, list[dict]]:
    return tiny.run_steps(tiny.setup(**DROPOUT if dropout else PLAIN), BATCHES)


def assert_same_states(one, other, atol: float) -> None:
    for a, b in zip(jax.tree.leaves(one.params), jax.tree.leaves(other.params), strict=True):
        np.testing.assert_allclose(a, b, atol=atol)


@pytest.mark.long
@pytest.mark.parametrize("parts", [2, *(pytest.param(parts, marks=pytest.mark.slow) for parts in (4, 8))])
def test_accumulation_equals_one_large_batch(parts):
    """Rows with uneven numbers of labels, in 2, 4 or 8 parts: the same loss and parameters after three updates.

    A mean of means over the parts would differ in the second digit.
    """
    whole, told = on_one_device(dropout=False)
    split, told_split = tiny.run_steps(tiny.setup(micro_batches=parts, **PLAIN), BATCHES)
    assert_same_states(whole, split, 1e-6)
    for a, b in zip(told, told_split, strict=True):
        assert a["mlm"] / a["mlm_count"] == pytest.approx(b["mlm"] / b["mlm_count"], abs=1e-5)
        assert a["nsp"] / a["nsp_count"] == pytest.approx(b["nsp"] / b["nsp_count"], abs=1e-5)


@pytest.mark.long
def test_the_loss_of_uneven_micro_batches_is_the_mean_over_labels():
    """One label with loss 4 and nine with loss 1 give 1.3, not the mean of means 2.5."""

    class GivenLosses(Pretraining):
        def sums(self, outputs, batch):
            nats = batch["masked_ids"].astype(jnp.float32)
            return {"mlm": (nats * batch["masked_weights"]).sum() + 0.0 * outputs["mlm_logits"].sum()}

    batch = tiny.batch(rows=2)
    batch["masked_ids"] = np.array([[4] * 9, [1] * 9], np.int32)
    batch["masked_weights"] = np.array([[1] + [0] * 8, [1] * 9], np.float32)
    batch["masked_positions"] = np.zeros((2, 9), np.int32)
    made = tiny.setup(**PLAIN)
    _, (told,) = tiny.run_steps(
        Setup(made.model, GivenLosses(pairs=False), made.optimizer, made.mesh, micro_batches=2), [batch]
    )
    assert told["mlm"] / told["mlm_count"] == pytest.approx(1.3)


@pytest.mark.long
@pytest.mark.parametrize(
    ("layout", "dropout"),
    [
        pytest.param({"devices": 8}, True, marks=pytest.mark.slow),
        pytest.param({"devices": 8, "mode": "fsdp"}, False, marks=pytest.mark.slow),
        pytest.param({"devices": 8, "mode": "tp", "model_devices": 2}, False, marks=pytest.mark.slow),
        ({"devices": 8, "mode": "fsdp_tp", "model_devices": 2}, True),
        pytest.param({"devices": 4, "micro_batches": 2}, False, marks=pytest.mark.slow),
    ],
    ids=["dp", "fsdp", "tp", "fsdp_tp", "dp with accumulation"],
)
def test_eight_devices_equal_one(layout, dropout):
    """Rows with uneven numbers of labels: the same global loss and parameters as on one device.

    Dropout is on, in two blocks, in both ways in which its masks are split: by rows, and by rows and heads.
    """
    alone, told_alone = on_one_device(dropout)
    spread, told = tiny.run_steps(tiny.setup(**layout, **DROPOUT if dropout else PLAIN), BATCHES)
    assert_same_states(alone, spread, 1e-5)
    np.testing.assert_allclose([t["mlm"] for t in told], [t["mlm"] for t in told_alone], rtol=1e-5)


LAYOUTS = {"dp": 1, "fsdp": 1, "tp": 2, "fsdp_tp": 2}  # devices that share rows


@functools.cache
def twenty_losses(mode: str = "dp", model_devices: int = 1, devices: int = 1, parts: int = 1) -> np.ndarray:
    """Nats of a masked word in each of twenty steps of 32 rows, of uneven numbers of labels."""
    batches = [tiny.batch(i, rows=32) for i in range(20)]
    layout = {"mode": mode, "model_devices": model_devices, "devices": devices, "micro_batches": parts}
    _, told = tiny.run_steps(tiny.setup(**layout, learning_rate=1e-3), batches)
    return np.array([t["mlm"] / t["mlm_count"] for t in told])


@pytest.mark.slow
@pytest.mark.parametrize("parts", [1, 4])
@pytest.mark.parametrize("mode", LAYOUTS)
def test_twenty_losses_on_eight_devices_equal_those_on_one(mode, parts):
    wanted = twenty_losses()
    np.testing.assert_allclose(twenty_losses(mode, LAYOUTS[mode], 8, parts), wanted, rtol=0, atol=1e-5)
    assert np.ptp(wanted) > 0.01


@pytest.mark.slow
@pytest.mark.parametrize("parts", [1, 4])
@pytest.mark.parametrize("mode", ["fsdp", "fsdp_tp"])
def test_no_device_gathers_all_layers_at_once(mode, parts):
    """Read off the compiled program of eight blocks: gathered arrays that live at once are those of three at most, with
    the table and the heads. Unrolled, all blocks are gathered, and the same reading says so. There are few rows, for
    gathered activations count, too."""

    def alive(loop: str) -> int:
        sizes = {"num_layers": 8, "hidden_size": 64, "intermediate_size": 256, "layer_loop": loop}
        made = tiny.setup(devices=8, mode=mode, model_devices=LAYOUTS[mode], micro_batches=parts, **sizes)
        return collectives.gathered_at_once(
            collectives.lowered(made, tiny.batch(rows=8 * parts)).compile().as_text(), 8
        )

    block = 4 * (4 * 64 * 64 + 2 * 64 * 256) // LAYOUTS[mode]
    others = 4 * (tiny.VOCAB * 64 + 2 * 64 * 64)
    assert alive("auto") <= 3 * block + others
    if mode == "fsdp" and parts == 4:
        assert alive("unroll") >= 8 * block


@pytest.mark.slow
def test_a_row_without_labels_adds_nothing_on_any_device():
    """Seven rows with labels and one with none on eight devices: finite, and equal to the one-device run."""
    batches = [tiny.batch(i, labels=[1, 2, 3, 4, 4, 1, 2, 0]) for i in range(3)]
    alone, _ = tiny.run_steps(tiny.setup(**DROPOUT), batches)
    spread, told = tiny.run_steps(tiny.setup(devices=8, **DROPOUT), batches)
    assert_same_states(alone, spread, 1e-5)
    assert all(np.isfinite(t["mlm"]) for t in told)


def test_a_batch_without_any_label_has_loss_zero_and_changes_only_by_decay():
    """No masked position and no next-sentence label: loss 0, gradient 0, and each parameter equal or decayed."""
    batch = tiny.batch(labels=[0] * 8)
    batch["next_sentence_weights"][:] = 0
    made = tiny.setup(**PLAIN)
    with jax.set_mesh(made.mesh):
        before = jax.device_get(init_state(made, abstract_state(made, batch), batch).params)
    state, (told,) = tiny.run_steps(made, [batch])
    assert told["mlm"] == told["mlm_count"] == told["gradient_norm"] == 0.0
    for (path, a), b in zip(jax.tree.leaves_with_path(before), jax.tree.leaves(state.params), strict=True):
        if optim.decays(tuple(key.key for key in path)):
            np.testing.assert_allclose(b, a * (1 - 1e-3 * made.optimizer.weight_decay), rtol=1e-6)
        else:
            np.testing.assert_array_equal(a, b)


def test_a_step_with_a_bad_gradient_is_skipped_and_counted():
    """An infinite loss at the second of four updates changes no parameter and no moment; the others go on."""

    class Poisoned(Pretraining):
        def sums(self, outputs, batch):
            sums = super().sums(outputs, batch)
            return sums | {"mlm": sums["mlm"] * jnp.where(batch["token_ids"][0, 0] == 127, jnp.inf, 1.0)}

    made = tiny.setup(ema_decay=0.9, **PLAIN)
    made = Setup(made.model, Poisoned(), made.optimizer, made.mesh)
    batches = [tiny.batch(i) for i in range(4)]
    for batch in batches:
        batch["token_ids"][0, 0] = 5
    clean, _ = tiny.run_steps(made, [batches[0]])
    batches[1]["token_ids"][0, 0] = 127
    after_bad, told = tiny.run_steps(made, batches[:2])
    assert [t["skipped_in_row"] for t in told] == [0, 1]
    for a, b in zip(jax.tree.leaves(clean.params), jax.tree.leaves(after_bad.params), strict=True):
        np.testing.assert_array_equal(a, b)
    for name in ("opt_state", "average"):
        for a, b in zip(*(jax.tree.leaves(getattr(state, name)) for state in (clean, after_bad)), strict=True):
            np.testing.assert_array_equal(a, b)
    last, told = tiny.run_steps(made, batches)
    assert (int(last.skipped), int(last.skipped_in_row), int(last.step)) == (1, 0, 4)
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(last.params))
    assert told[1]["mlm_count"] == 0  # a skipped step is in no average


@pytest.mark.long
def test_an_average_of_the_parameters_follows_them():
    """By hand over three steps, of which the first two have the decays of the beginning, 1 / 10 and 2 / 11; on eight
    devices that split the parameters, and it, the same. The parameters do not change by it."""
    made = tiny.setup(ema_decay=0.2, **PLAIN)
    plain, _ = on_one_device(dropout=False)
    with jax.set_mesh(made.mesh):
        wanted = jax.device_get(jax.jit(lambda: draw_params(made, BATCHES[0]))())
    for count, decay in ((1, 1 / 10), (2, 2 / 11), (3, 0.2)):
        state, _ = tiny.run_steps(made, BATCHES[:count])
        wanted = jax.tree.map(lambda mean, new, d=decay: d * mean + (1 - d) * new, wanted, state.params)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=0, atol=1e-6), state.model_params, wanted)
    assert_same_states(plain, state, 1e-6)
    assert plain.model_params is plain.params
    assert len(jax.tree.leaves(plain)) == len(jax.tree.leaves(state)) - len(jax.tree.leaves(plain.params))
    split = tiny.setup(ema_decay=0.2, **SPLIT)
    target = abstract_state(split, BATCHES[0])
    assert jax.tree.map(lambda x: x.sharding, target.model_params) == jax.tree.map(lambda x: x.sharding, target.params)
    found, _ = tiny.run_steps(split, BATCHES)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=0, atol=1e-5), found.model_params, wanted)


@pytest.mark.long
def test_dropout_differs_between_steps_and_seeds_and_is_a_function_of_both():
    """The same batch and parameters at steps 0 and 1: two losses; the same seed has the same two again, another seed
    two others."""
    made, batch = tiny.setup(**DROPOUT), tiny.batch()
    with jax.set_mesh(made.mesh):
        target = abstract_state(made, batch)
        start = jax.device_get(init_state(made, target, batch))

    def losses(seed: int) -> list[float]:
        with jax.set_mesh(made.mesh):
            step, read = make_train_step(dataclasses.replace(made, seed=seed), target)
            return [read(step(start.replace(step=np.int32(number)), batch)[1])["mlm"] for number in (0, 1)]

    wanted = losses(0)
    assert losses(0) == wanted
    assert len({*wanted, *losses(1)}) == 4


@pytest.mark.long
def test_the_rate_follows_updates_and_not_micro_batches_or_devices():
    """Warm-up of two updates of four, with two micro-batches on four devices: rates of updates 0 to 3."""
    rule = {"schedule": "linear", "warmup_steps": 2, "total_steps": 4, "learning_rate": 1e-2}
    made = tiny.setup(devices=4, micro_batches=2, num_layers=1, **rule)
    _, told = tiny.run_steps(made, [tiny.batch(i) for i in range(4)])
    np.testing.assert_allclose([t["learning_rate"] for t in told], [0, 5e-3, 1e-2, 5e-3], rtol=1e-6)


def test_initial_parameters_do_not_depend_on_the_devices():
    """One device, and eight with parameters split: the same bits."""
    states = []
    for made in (tiny.setup(**PLAIN), tiny.setup(**SPLIT)):
        with jax.set_mesh(made.mesh):
            target = abstract_state(made, tiny.batch())
            states.append(jax.device_get(init_state(made, target, tiny.batch()).params))
    for one, other in zip(*map(jax.tree.leaves, states), strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_model_is_traced_once_for_the_state_and_its_shapes(monkeypatch):
    """Tracing takes a third of a second of each start; a batch of another size does not change the state."""
    traced, draw = [], step_module._draw
    monkeypatch.setattr(step_module, "_draw", lambda *given: traced.append(1) or draw(*given))
    made = tiny.setup()
    with jax.set_mesh(made.mesh):
        init_state(made, abstract_state(made, tiny.batch(rows=4)), tiny.batch())
    assert len(traced) == 1


def test_the_step_compiles_once():
    """Eight batches of one shape: one compiled program, also with the state that comes out put in again."""
    made = tiny.setup(**SPLIT)
    with jax.set_mesh(made.mesh):
        target = abstract_state(made, tiny.batch())
        state, (step, _) = init_state(made, target, tiny.batch()), make_train_step(made, target)
        for i in range(8):
            state, _ = step(state, sharding.place(tiny.batch(i), made.mesh))
        assert step.func._cache_size() == 1  # type: ignore[attr-defined]


def test_the_model_is_traced_once_in_several_parts_and_for_a_set_up_that_is_trained_again():
    traced = []

    class Counting(Pretraining):
        def sums(self, outputs, batch):
            traced.append(batch["token_ids"].shape)
            return super().sums(outputs, batch)

    plain = tiny.setup(num_layers=1, micro_batches=2)
    made = Setup(plain.model, Counting(), plain.optimizer, plain.mesh, micro_batches=2)
    with jax.set_mesh(made.mesh):
        for _ in range(2):
            target = abstract_state(made, tiny.batch())
            step = make_train_step(made, target)[0]
            step.func.lower(*step.args, target, tiny.batch())  # type: ignore[attr-defined]
    assert traced == [(tiny.ROWS // 2, tiny.LENGTH)]


@pytest.mark.slow
def test_another_seed_is_the_same_program(monkeypatch):
    """So that several seeds are compiled once: the seed is an argument, of drawing the weights as well."""
    real, programs = jax.jit, []

    def noted(function, **given):
        if function.__module__ != step_module.__name__ or "out_shardings" not in given:  # not part of a program
            return real(function, **given)

        def call(*args):
            programs.append(real(function, **given).lower(*args).as_text())
            return real(function, **given)(*args)

        return call

    for seed in (0, 1):
        made = dataclasses.replace(tiny.setup(**DROPOUT), seed=seed)
        with jax.set_mesh(made.mesh), monkeypatch.context() as patched:
            target = abstract_state(made, tiny.batch())
            patched.setattr(step_module.jax, "jit", noted)
            state = init_state(made, target, tiny.batch())
            make_train_step(made, target)[0](state, sharding.place(tiny.batch(), made.mesh))
    drawing, training, *others = programs
    assert others == [drawing, training]
    assert drawing != training


@pytest.mark.slow
def test_accumulation_needs_little_more_memory_than_one_part():
    """Eight parts of 4 rows: temporary memory at most that of a batch of 4 rows and 1.1 times the parameters."""

    def temporary_bytes(rows: int, parts: int) -> tuple[int, int]:
        made = tiny.setup(micro_batches=parts, hidden_size=128, intermediate_size=512)
        batch = tiny.batch(rows=rows)
        with jax.set_mesh(made.mesh):
            target = abstract_state(made, batch)
            placed = sharding.place(batch, made.mesh)
            step, _ = make_train_step(made, target)
            compiled = step.func.lower(*step.args, target, placed).compile()  # type: ignore[attr-defined]
        size = sum(int(np.prod(x.shape)) * 4 for x in jax.tree.leaves(target.params))
        return compiled.memory_analysis().temp_size_in_bytes, size

    alone, size = temporary_bytes(4, 1)
    split, _ = temporary_bytes(32, 8)
    assert split <= alone + 1.1 * size
