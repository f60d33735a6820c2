"""Sharding: which axis of each array is split over which mesh axis.

Two mesh axes: ``data`` (rows of the batch; with fsdp also parameters) and ``model`` (heads, feed-forward, vocabulary).
A mode maps logical axes of arrays to mesh axes. The end of a parameter's path gives its logical axes; the same holds
for the optimizer's moments.
"""

import re
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from bert.errors import InputError, check_choice, check_range
from bert.training import watchdog

# Logical axes of the last dimensions, by path ending. The leading layer axis of stacked blocks is never split.
_AXES: tuple[tuple[str, tuple[str | None, ...]], ...] = (
    (r"(token|table)/embedding$", ("vocab", "embed")),
    (r"(position|type|row|column)/embedding$", (None, "embed")),
    (r"attention/(query|key|value|merged)/kernel$", ("embed", "heads")),
    (r"attention/(query|key|value|merged)/bias$", ("heads",)),
    (r"attention/output/kernel$", ("heads", "embed")),
    (r"feed_forward/up/kernel$", ("embed", "mlp")),
    (r"feed_forward/up/bias$", ("mlp",)),
    (r"feed_forward/down/kernel$", ("mlp", "embed")),
    (r"(pooler|transform|input|projection|state|mix|hidden|skip|query|context)/kernel$", ("embed", None)),
    (r"(enter|leave)_\w+/kernel$", ("embed", None)),
    (r"(decoder/(first|word|from_\w+)|attention/vector)/kernel$", ("embed", None)),
    (r"((up|back|convolution)_\d+|convolution)/kernel$", (None, "embed", None)),  # taps first
)
MODES: dict[str, dict[str, str | tuple[str, ...]]] = {
    "dp": {},
    "fsdp": {"vocab": "data", "embed": "data"},
    "tp": {"vocab": "model", "heads": "model", "mlp": "model"},
    "fsdp_tp": {"vocab": ("model", "data"), "embed": "data", "heads": "model", "mlp": "model"},
}


def make_mesh(
    mode: str = "dp", model_devices: int = 1, devices: list[jax.Device] | None = None, *, heads: int = 0
) -> Mesh:
    """A mesh over all devices (or those given), ``model_devices`` of them on the model axis.

    InputError where these do not divide the devices of a process or the attention ``heads`` (0: the model has none), or
    where the mode does not need them.
    """
    devices = jax.devices() if devices is None else devices
    check_choice("mesh.mode", mode, MODES)
    of_process = len(devices) // jax.process_count()
    # Devices that share rows must lie in one process, for each process builds rows of its own.
    possible = [n for n in range(1, of_process + 1) if of_process % n == 0 and heads % n == 0]
    if model_devices not in possible:
        both = f"the {of_process} devices of a process" + (f" and the {heads} attention heads" if heads else "")
        raise InputError(
            f"mesh.model_devices is {model_devices}; it must divide {both}: {_near(model_devices, possible)}"
        )
    splits = "model" in MODES[mode].values()
    if not splits and model_devices > 1:
        what = f"mesh.model_devices is {model_devices}, but mesh.mode is {mode}, which splits no heads"
        raise InputError(f"{what}; set mesh.mode to tp or fsdp_tp, or mesh.model_devices to 1")
    if splits and model_devices == 1 and possible != [1]:
        what = f"mesh.mode is {mode}, but mesh.model_devices is 1, so no heads are split"
        raise InputError(f"{what}; set mesh.model_devices to {_near(2, possible[1:])}, or mesh.mode to dp or fsdp")
    shape = (len(devices) // model_devices, model_devices)
    # Auto axes: under explicit ones a plain lookup in a sharded table raises.
    return jax.make_mesh(shape, ("data", "model"), axis_types=(AxisType.Auto,) * 2, devices=devices)


def _near(number: int, possible: list[int]) -> str:
    """The two numbers nearest to one, such as "4 or 8"."""
    return " or ".join(map(str, sorted(sorted(possible, key=lambda n: abs(n - number))[:2])))


def check_batch_size(rows: int, mesh: Mesh, micro_batches: int = 1) -> None:
    """Refuses a global batch that does not split evenly over devices and micro-batches."""
    check_range("micro_batches", micro_batches, at_least=1)
    unit = mesh.shape["data"] * micro_batches
    if rows < 1 or rows % unit:
        parts = f"{mesh.shape['data']} devices x {micro_batches} micro-batches"
        below = max(unit, rows // unit * unit)
        raise InputError(
            f"batch_size is {rows}; it must be a multiple of {unit} ({parts}): {below}, {below + unit}, ..."
        )


def state_shardings(state: Any, mesh: Mesh, mode: str) -> Any:
    """NamedShardings for a tree of arrays (or their shapes).

    An axis that the devices do not divide stays whole; a token table with such a number of entries is split along its
    width instead, where the mode splits widths.
    """
    rules = MODES[mode]

    def sharding_of(path: Any, x: Any) -> NamedSharding:
        name = jax.tree_util.keystr(path, simple=True, separator="/")
        axes = next((axes for pattern, axes in _AXES if re.search(pattern, name)), ())
        spec: list[Any] = [None] * (x.ndim - len(axes)) + [rules.get(axis) if axis else None for axis in axes]
        spec = [axis if _divides(mesh, axis, size) else None for axis, size in zip(spec, x.shape, strict=False)]
        if axes == ("vocab", "embed") and spec[-2]:
            spec[-1] = None  # a mesh axis splits one axis of an array
        return NamedSharding(mesh, P(*spec))

    return jax.tree_util.tree_map_with_path(sharding_of, state)


def _divides(mesh: Mesh, spec: str | tuple[str, ...] | None, size: int) -> bool:
    names = (spec,) if isinstance(spec, str) else spec or ()
    return size % int(np.prod([mesh.shape[name] for name in names], dtype=int)) == 0


def batch_sharding(mesh: Mesh) -> NamedSharding:
    """Rows over the data axis."""
    return NamedSharding(mesh, P("data"))


def replicated(mesh: Mesh) -> NamedSharding:
    """The whole array on every device."""
    return NamedSharding(mesh, P())


def host_rows(batch_size: int) -> slice:
    """The rows of a global batch that this process builds."""
    share = batch_size // jax.process_count()
    return slice(jax.process_index() * share, (jax.process_index() + 1) * share)


def place(batch: dict[str, np.ndarray], mesh: Mesh) -> dict[str, jax.Array]:
    """This process's rows of a batch -> global arrays on the mesh."""
    watchdog.note()
    sharding, processes = batch_sharding(mesh), jax.process_count()
    return {
        name: jax.make_array_from_process_local_data(sharding, rows, (len(rows) * processes, *rows.shape[1:]))
        for name, rows in batch.items()
    }


def on_this_host(tree: Any) -> Any:
    """A tree of NumPy arrays from one of global arrays; every process must call it, and gets all of it."""
    if jax.process_count() > 1:
        return multihost_utils.process_allgather(tree, tiled=True)
    return jax.device_get(tree)
