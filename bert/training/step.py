"""One training step: the state, how it is made, and the compiled function from a batch to the next state.

Everything random is a function of the seed and the step number, so a restart needs only the state.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import flax.linen as nn
import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from jax.sharding import Mesh, Sharding

from bert.model import losses
from bert.training import optim, sharding
from bert.training.task import Task, with_counts
from bert.types import Batch, Params

Row = tuple[tuple[str, tuple[int, ...], Any], ...]  # name, shape and dtype of each array of a batch of one row


@flax.struct.dataclass
class TrainState:
    """All that a step changes. ``step`` counts finished steps, the skipped ones among them."""

    step: Array  # int32
    params: Any  # nested dict, float32
    opt_state: Any
    skipped: Array  # int32: steps whose loss or gradient was not finite; they changed no parameter
    skipped_in_row: Array  # int32: of these, the ones since the last good step

    @property
    def model_params(self) -> Any:
        """What is evaluated, and becomes the model."""
        return self.params


@flax.struct.dataclass
class AveragedState(TrainState):
    """A state with a moving average of the parameters, where the optimizer's settings ask for one."""

    average: Any

    @property
    def model_params(self) -> Any:
        return self.average


@dataclasses.dataclass(frozen=True, eq=False)  # no two are equal: what is made for one is kept by identity
class Setup:
    """What is trained, how, and on which devices. InputError for a configuration that is for inference only."""

    model: nn.Module  # what `Task.model` makes
    task: Task
    optimizer: optim.OptimizerSettings
    mesh: Mesh
    mode: str = "dp"  # a key of `sharding.MODES`
    micro_batches: int = 1  # parts of a batch whose gradients are added before one optimizer step
    seed: int = 0

    def __post_init__(self) -> None:
        self.model.config.check_training()


def abstract_state(setup: Setup, batch: Batch) -> TrainState:
    """The state's shapes, dtypes and shardings, as a tree of ShapeDtypeStruct; no memory is used."""
    shapes = jax.eval_shape(_first_state(setup, _row_shapes(batch)), _seed_words(setup))
    shards = sharding.state_shardings(shapes, setup.mesh, setup.mode)
    struct: Any = jax.ShapeDtypeStruct
    target: TrainState = jax.tree.map(lambda x, s: struct(x.shape, x.dtype, sharding=s), shapes, shards)
    return target


def init_state(setup: Setup, target: TrainState, batch: Batch, params: Params | None = None) -> TrainState:
    """A state at step 0, created with the shardings of ``target`` (from ``abstract_state``).

    Of ``batch`` only the shapes are read. ``params``: to start from; None draws them from the seed.
    """
    shards = jax.tree.map(lambda x: x.sharding, target)
    if params is None:
        return jax.jit(_first_state(setup, _row_shapes(batch)), out_shardings=shards)(_seed_words(setup))
    params = jax.tree.map(jax.device_put, params, shards.params)
    return jax.jit(lambda p: _fresh_state(setup, p), out_shardings=shards)(params)


def draw_params(setup: Setup, batch: Batch) -> Params:
    """Random parameters, a function of the seed alone; of ``batch`` only the shapes of its first row are read."""
    return _draw(setup, _row_shapes(batch), jax.random.key(setup.seed))


def _draw(setup: Setup, row: Row, key: Array) -> Params:
    variables: Any = setup.model.init(key, {name: jnp.zeros(shape, dtype) for name, shape, dtype in row})
    params: Params = {"head": {}} | variables["params"]  # Flax leaves out what has no parameters
    return params


@functools.lru_cache(maxsize=1)
def _first_state(setup: Setup, row: Row) -> Callable[[Array], TrainState]:
    """The same function for the state's shapes and for the state, so that JAX traces it once."""
    return lambda words: _fresh_state(setup, _draw(setup, row, jax.random.wrap_key_data(words)))


def _seed_words(setup: Setup) -> np.ndarray:
    """uint32 [2]: the seed as an argument of compiled programs, which then are the same programs for every seed."""
    return np.asarray(jax.random.key_data(jax.random.key(setup.seed)))


def _row_shapes(batch: Batch) -> Row:
    """(name, shape, dtype) of each array of a batch, cut to one row."""
    return tuple((name, (1, *x.shape[1:]), jax.dtypes.canonicalize_dtype(x.dtype)) for name, x in batch.items())


def _fresh_state(setup: Setup, params: Params) -> TrainState:
    zero, transformation = jnp.zeros((), jnp.int32), optim.transformation(setup.optimizer, setup.model.depth_of)
    fields = (zero, params, transformation.init(params), zero, zero)
    if not setup.optimizer.ema_decay:
        return TrainState(*fields)
    return AveragedState(*fields, jax.tree.map(jnp.copy, params))


Step = Callable[[TrainState, Batch], tuple[TrainState, Array]]
Read = Callable[[Array], dict[str, float]]


def make_train_step(setup: Setup, target: TrainState) -> tuple[Step, Read]:
    """Compiled (state, global batch) -> (next state, values of the step), and what reads the values by name.

    The state's memory is reused. The values (sums and counts, gradient norm, rate, counters) are one float32 array,
    for fetching a dozen scalars one by one would take longer than starting the step.

    The loss of each term is its sum over the whole global batch divided by its count over the whole global batch,
    whatever the number of devices and micro-batches. A step whose loss or gradient is not finite changes nothing but
    the counters. ``target`` (from ``abstract_state``) says where the state lies. Made once for a ``setup``, however
    often its run is started.
    """
    shards, tree = jax.tree.flatten(jax.tree.map(lambda x: x.sharding, target))
    return _train_step(setup, tree, *shards)


@functools.lru_cache(maxsize=1)
def _train_step(setup: Setup, tree: Any, *shards: Sharding) -> tuple[Step, Read]:
    transformation, rate = optim.transformation(setup.optimizer, setup.model.depth_of), setup.optimizer.rate()

    def micro_loss(params: Params, batch: Batch, counts: Batch, key: Array) -> tuple[Array, dict[str, Array]]:
        outputs: Any = setup.model.apply({"params": params}, batch, train=True, rngs={"dropout": key})
        sums = setup.task.sums(outputs, batch)
        return losses.total(sums, counts), sums

    names: list[str] = []  # of the values, in their order; known once the step was traced

    def read(values: Array) -> dict[str, float]:
        return dict(zip(names, np.asarray(values).tolist(), strict=True))

    def step(words: Array, state: TrainState, batch: Batch) -> tuple[TrainState, Array]:
        counts = setup.task.counts(batch)
        root = jax.random.fold_in(jax.random.wrap_key_data(words), 1)  # the plain seed made the parameters
        key = jax.random.fold_in(root, state.step)
        grads, sums = _accumulate(micro_loss, state.params, batch, counts, key, setup.micro_batches)
        loss = losses.total(sums, counts)
        norm = optax.tree.norm(grads)
        good = jnp.isfinite(loss) & jnp.isfinite(norm)
        direction, opt_state = transformation.update(grads, state.opt_state, state.params, good=good)
        used_rate = rate(state.step)
        params = jax.tree.map(lambda p, d: jnp.where(good, p - used_rate * d, p), state.params, direction)
        bad = (~good).astype(jnp.int32)
        if isinstance(state, AveragedState):
            updates, decay = state.step - state.skipped, setup.optimizer.ema_decay
            average = optim.averaged(state.average, params, decay, updates, good)
            state = dataclasses.replace(state, average=average)
        state = dataclasses.replace(
            state,
            step=state.step + 1,
            params=params,
            opt_state=opt_state,
            skipped=state.skipped + bad,
            skipped_in_row=(state.skipped_in_row + 1) * bad,
        )
        # A skipped step is in no average.
        step_sums = {name: jnp.where(good, value, 0.0) for name, value in with_counts(sums, counts).items()}
        values = step_sums | {
            "tokens": setup.task.size(batch),
            "gradient_norm": norm,
            "learning_rate": used_rate,
            "skipped": state.skipped,
            "skipped_in_row": state.skipped_in_row,
        }
        names[:] = values
        return state, jnp.stack([jnp.asarray(value, jnp.float32) for value in values.values()])

    rows, everywhere = sharding.batch_sharding(setup.mesh), sharding.replicated(setup.mesh)
    of_state = jax.tree.unflatten(tree, shards)
    inputs, outputs = (everywhere, of_state, rows), (of_state, everywhere)
    compiled = jax.jit(step, donate_argnums=1, in_shardings=inputs, out_shardings=outputs)
    return functools.partial(compiled, _seed_words(setup)), read


def _accumulate(
    micro_loss: Callable[..., Any], params: Params, batch: Batch, counts: Batch, key: Array, parts: int
) -> tuple[Params, dict[str, Array]]:
    """Gradient and sums of the whole batch, computed in ``parts`` one after the other.

    The memory is that of one part and one gradient buffer. Row r goes to part r % parts, so that each device keeps
    its own rows.
    """
    # Traced once, though it is read for its shapes and in the loop.
    gradient = jax.jit(jax.value_and_grad(micro_loss, has_aux=True), inline=True)
    if parts == 1:
        (_, sums), grads = gradient(params, batch, counts, key)
        return grads, sums
    split = {name: x.reshape(-1, parts, *x.shape[1:]).swapaxes(0, 1) for name, x in batch.items()}

    def add_part(so_far: Any, part: Any) -> tuple[Any, None]:
        number, rows = part
        (_, sums), grads = gradient(params, rows, counts, jax.random.fold_in(key, number))
        return jax.tree.map(jnp.add, so_far, (grads, sums)), None

    first = {name: x[0] for name, x in split.items()}
    shapes = jax.eval_shape(lambda: (params, gradient(params, first, counts, key)[0][1]))
    zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
    (grads, sums), _ = jax.lax.scan(add_part, zeros, (jnp.arange(parts), split))
    return grads, sums
