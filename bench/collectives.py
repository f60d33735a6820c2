"""Counts the collectives of a training step, read off its compiled program, and estimates step times on clusters.

python -m bench.collectives [--sizes=base,large] [--rows=32] [--length=512] [--layouts=dp:8x1,...] [--out=FILE]

The step of eight devices is lowered for GPUs and TPUs, which needs none of them. Then it is compiled for eight virtual
CPU devices, with the products as on GPUs and TPUs, and every collective of that program is counted. Nothing is run. The
tables are in docs/scaling.md, with the arithmetic of the estimates.
"""

import argparse
import collections
import dataclasses
import json
import math
import os
import pathlib
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from unittest import mock

KINDS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")
LAYOUTS = "dp:8x1,fsdp:8x1,fsdp_tp:2x4"
_BYTES = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "s16": 2, "u16": 2, "s64": 8, "u64": 8, "f64": 8}
_SHAPE = re.compile(r"\b([a-z]+\d+|pred)\[([\d,]*)\]")
_COLLECTIVE = re.compile(rf" = (.*?) ({'|'.join(KINDS)})(-start)?\(")
_CALLED = re.compile(r"\b(?:body|condition|to_apply|calls|true_computation|false_computation)=%?([\w.-]+)")
_BRANCHES = re.compile(r"\bbranch_computations=\{([^}]*)\}")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')
_NAME = re.compile(r"(?:ENTRY )?%?([\w.-]+) ")


class Collective(NamedTuple):
    """An operation of a program.

    size: bytes of the whole array: what is reduced, or gathered, or to be scattered. group: devices that take part.
    times: how often a step runs it.
    """

    kind: str
    size: int
    group: int
    times: int

    @property
    def sent(self) -> float:
        """Bytes that each device sends in a step, by ring algorithms."""
        share = (self.group - 1) / self.group
        return self.times * self.size * share * (2 if self.kind == "all-reduce" else 1)


def collectives(program: str, devices: int) -> list[Collective]:
    """All collectives of a compiled program (the text of HLO) on so many devices, those in loops with their number."""
    bodies = _computations(program)
    entry = next(name for name, (is_entry, _) in bodies.items() if is_entry)
    return list(_of(bodies, entry, 1, devices))


def _computations(program: str) -> dict[str, tuple[bool, list[str]]]:
    """Name -> (whether the program begins there, its lines)."""
    bodies: dict[str, tuple[bool, list[str]]] = {}
    lines: list[str] = []
    for line in program.splitlines():
        if line.endswith("{") and not line.startswith((" ", "HloModule")) and (named := _NAME.match(line)):
            bodies[named[1]] = line.startswith("ENTRY"), (lines := [])
        elif line.startswith(" "):
            lines.append(line)
    return bodies


def _of(bodies: dict[str, tuple[bool, list[str]]], name: str, times: int, devices: int) -> Iterator[Collective]:
    for line in bodies[name][1]:
        if collective := _collective(line, devices):
            yield collective._replace(times=times)
            continue
        inner = _CALLED.findall(line)
        for branches in _BRANCHES.findall(line):
            inner += [branch.strip(" %") for branch in branches.split(",")]
        trips = int(found[1]) if " while(" in line and (found := _TRIPS.search(line)) else 1
        for called in inner:
            for one in _of(bodies, called, times * trips, devices):
                if " while(" in line and not _TRIPS.search(line):
                    raise ValueError(f"a loop with a {one.kind} does not say how often it runs: {line.strip()[:100]}")
                yield one


def _collective(line: str, devices: int) -> Collective | None:
    found = _COLLECTIVE.search(line)
    if not found:
        return None
    kind, group, size = found[2], _group(line, devices), sum(_sizes(found[1]))
    if kind == "reduce-scatter":
        size *= group
    elif found[3] and kind != "all-reduce":  # the result of a start has the operand beside it
        size = size * group // (group + 1) if kind == "all-gather" else size // 2
    return Collective(kind, size, group, 1)


def _sizes(shapes: str) -> Iterator[int]:
    for kind, sides in _SHAPE.findall(shapes):
        yield math.prod(int(side) for side in sides.split(",") if side) * _BYTES.get(kind, 4)


def _group(line: str, devices: int) -> int:
    """Devices of a group, in the three forms that HLO has: lists, [groups, size], and axes of a mesh."""
    if found := re.search(r"replica_groups=\{\{([\d,]+)\}", line):
        return len(found[1].split(","))
    if found := re.search(r"replica_groups=\[\d+,(\d+)\]", line):
        return int(found[1])
    if found := re.search(r"replica_groups=mesh\[(.*?)\] \{(.*?)\}", line):
        sides = dict(re.findall(r"'(\w+)'=(\d+)", found[1]))
        parts = re.findall(r"'(\w+)'(?::\(\d+\)(\d+))?", found[2])
        return math.prod(int(part or sides[axis]) for axis, part in parts)
    return devices


def gathered_at_once(program: str, devices: int) -> int:
    """The most bytes of gathered arrays that live at once in a scheduled program, those inside of loops among them.

    An array lives from its all-gather to the last line of the computation that reads it, by another name or not.
    """
    bodies = _computations(program)

    def peak(name: str) -> int:
        lines, last, owner, size_of = bodies[name][1], dict[str, int](), dict[str, set[str]](), dict[str, int]()
        for number, line in enumerate(lines):
            left, _, right = line.strip().removeprefix("ROOT ").partition(" = ")
            read = set().union(*(owner.get(other, ()) for other in re.findall(r"%[\w.-]+", right)))
            for gathered in read:
                last[gathered] = number
            if (found := _collective(line, devices)) and found.kind == "all-gather":
                size_of[left], owner[left], last[left] = found.size, {left}, number
            elif re.search(r" (bitcast|tuple|get-tuple-element|copy|all-gather-done)\(", line):
                owner[left] = read
        first = {left: i for i, line in enumerate(lines) if (left := line.strip().split(" = ")[0]) in size_of}
        highest = 0
        for number, line in enumerate(lines):
            inner = 0 if " fusion(" in line else max(map(peak, _CALLED.findall(line)), default=0)
            alive = sum(size for left, size in size_of.items() if first[left] <= number <= last[left])
            highest = max(highest, alive + inner)
        return highest

    return peak(next(name for name, (is_entry, _) in bodies.items() if is_entry))


def lowered(setup: Any, batch: dict[str, Any], platforms: Sequence[str] = ()) -> Any:
    """The step of a `Setup` for batches of these shapes, lowered for other platforms or for this one."""
    import jax

    from bert.training import sharding
    from bert.training.step import abstract_state, make_train_step

    with jax.set_mesh(setup.mesh):
        target, rows = abstract_state(setup, batch), sharding.batch_sharding(setup.mesh)
        step: Any = make_train_step(setup, target)[0]
        arrays = {name: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=rows) for name, x in batch.items()}
        traced = step.func.trace(*step.args, target, arrays)
        return traced.lower(lowering_platforms=tuple(platforms)) if platforms else traced.lower()


@dataclasses.dataclass(frozen=True)
class Cluster:
    """What the estimates take for given, from data sheets: see docs/scaling.md.

    peak: FLOP/s of a device, dense bfloat16. sent: bytes/s that a device sends in collectives of ``devices`` devices.
    """

    name: str
    devices: int
    peak: float
    sent: float


CLUSTERS = (
    Cluster("H100 SXM, one node", 8, 989e12, 450e9),
    Cluster("H100 SXM, 8 nodes", 64, 989e12, 400e9),
    Cluster("H100 SXM, 64 nodes", 512, 989e12, 400e9),
    Cluster("TPU v5p, 2 x 2 x 2", 8, 459e12, 300e9),
    Cluster("TPU v5p, 8 x 8 x 8", 512, 459e12, 600e9),
    Cluster("TPU v5p, 16 x 16 x 24", 6144, 459e12, 600e9),
)
UTILISATION = 0.4  # of the peak, in computing; assumed


def estimate(cluster: Cluster, flops: float, counted: Sequence[Collective]) -> tuple[float, float]:
    """Seconds of a step that computes and then communicates: (computing, communicating).

    Args:
      flops: of one device. counted: of a program in which all devices are one group, so that only (n - 1) / n changes
        with their number n.
    """
    sent = sum(one._replace(group=cluster.devices).sent for one in counted)
    return flops / (UTILISATION * cluster.peak), sent / cluster.sent


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--sizes", default="base,large")
    flags.add_argument("--rows", type=int, default=32, help="of one device")
    flags.add_argument("--length", type=int, default=512)
    flags.add_argument("--layouts", default=LAYOUTS, help="MODE:DATAxMODEL, with commas")
    flags.add_argument("--out", type=pathlib.Path, help="JSON file for the counts")
    options = flags.parse_args()
    os.environ["JAX_PLATFORMS"] = "cpu"
    # Quick compilation: what the partitioner inserts does not depend on the optimization of kernels.
    quick = "--xla_backend_optimization_level=0"
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count=8 {quick}"
    found: dict[str, list[Collective]] = {}
    for size in options.sizes.split(","):
        for layout in options.layouts.split(","):
            found[f"{size} {layout}"] = counted = count(size, layout, options.rows, options.length)
            print(*lines(f"{size} {layout}", counted), sep="\n", flush=True)
            if options.out:
                options.out.write_text(json.dumps(found, indent=1) + "\n")
    for size in options.sizes.split(","):
        print(*estimates(size, options.rows, options.length, found), sep="\n")


def count(size: str, layout: str, rows: int, length: int) -> list[Collective]:
    """The collectives of a step of pretraining in bfloat16, with so many rows of one device."""
    import jax

    from bench.work import Work
    from bert.model import matmul
    from bert.training import optim, sharding
    from bert.training.pretraining import Pretraining
    from bert.training.step import Setup

    mode, _, sides = layout.partition(":")
    data, model = map(int, sides.split("x"))
    work = Work(size, rows * data * model, length, "bfloat16")
    mesh = sharding.make_mesh(mode, model, jax.devices()[: data * model], heads=work.config.num_heads)
    task, rule = Pretraining(), optim.OptimizerSettings(total_steps=100, learning_rate=1e-4)
    config = dataclasses.replace(work.config, layer_loop="scan")  # as on GPUs and TPUs
    setup, batch = Setup(task.model(config), task, rule, mesh, mode), work.arrays()
    # Products as on GPUs and TPUs, where rows and heads stay two axes.
    with mock.patch.object(matmul, "on_cpu", return_value=False):
        for platform in ("cuda", "tpu"):
            lowered(setup, batch, [platform])
        program = lowered(setup, batch)
    return collectives(program.compile().as_text(), data * model)


def lines(name: str, counted: Sequence[Collective]) -> Iterator[str]:
    """A markdown row for each kind: how many of them a step runs, their bytes, and what a device sends."""
    by_kind = collections.defaultdict(list)
    for one in counted:
        by_kind[one.kind].append(one)
    for kind in KINDS:
        if those := by_kind[kind]:
            whole = sum(one.times * one.size for one in those)
            sent = sum(one.sent for one in those)
            yield f"| {name} | {kind} | {sum(one.times for one in those)} | {whole / 1e6:,.1f} | {sent / 1e6:,.1f} |"


def estimates(size: str, rows: int, length: int, found: dict[str, list[Collective]]) -> Iterator[str]:
    """Markdown rows: step times with so many rows of one device, dp and fsdp, on each cluster."""
    from bench.work import Work

    flops = Work(size, rows, length, "bfloat16").flops
    for mode in ("dp", "fsdp"):
        for cluster in CLUSTERS if f"{size} {mode}:8x1" in found else ():
            computing, sending = estimate(cluster, flops, found[f"{size} {mode}:8x1"])
            step = computing + sending
            rate = cluster.devices * rows * length / step
            yield (
                f"| {size} {mode} | {cluster.name} | {cluster.devices} | {1e3 * computing:.1f} | {1e3 * sending:.1f} | "
                f"{1e3 * step:.1f} | {computing / step:.0%} | {rate / 1e6:,.1f} |"
            )


if __name__ == "__main__":
    main()
