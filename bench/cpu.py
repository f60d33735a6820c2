"""Compares our speed on this machine's CPU with other implementations, in turns, and prints a markdown table.

python -m bench.cpu --out=FILE.json [--rows=NAME,NAME,...|all] [--glue=FOLDER --vocab=DIR]

The environments of the others are created in .bench/ on first use (Linux). bench/rows.py lists the rows.
Rows that FILE already holds stay there, unless they are measured again or are from another machine.
"""

import contextlib
import datetime
import pathlib
import statistics
import sys
from collections.abc import Iterator
from typing import Any

import jax

from bench import environments, lengths, report, work
from bench.rows import DEFAULT, OTHERS, ROWS, Row
from bench.turns import Peer
from bert.errors import InputError, RunError
from bert.training import arithmetic
from launch import flags

OPTIONS = {
    "out": "file for all numbers, commands, versions and the machine",
    "rows": f"all, or a comma-separated list of {', '.join(ROWS)} (default: {', '.join(DEFAULT)})",
    "glue": "folder with GLUE's SST-2 and MRPC, to count lengths again (default: the counts in bench/texts.py)",
    "vocab": "model directory with the vocabulary that counts them",
}
BLOCKS, STARTS = 5, 2
# All processes compute on the CPU and reuse programs that an earlier run compiled.
SETTINGS = {
    "JAX_PLATFORMS": "cpu",
    "JAX_COMPILATION_CACHE_DIR": str((environments.FOLDER / "cache").absolute()),
    "TORCHINDUCTOR_CACHE_DIR": str((environments.FOLDER / "inductor").absolute()),
}
# Makes glibc keep freed memory in the other processes, as `runtime.start` does in ours.
KEEP_MEMORY = {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "100000000000"}


def run(argv: list[str]) -> None:
    _, options = flags.parse(argv, doc=__doc__ or "", config_file="", options=OPTIONS, required=("out",))
    rows = chosen(options.rows)
    recounted: dict[str, str] = {}
    if options.glue:
        if not options.vocab:
            raise InputError("--vocab is missing; --glue needs a model directory whose vocabulary counts the pieces")
        files = lengths.count(options.glue, options.vocab, environments.FOLDER / "lengths")
        recounted = {f"--lengths={name}": f"--lengths={file}" for name, file in files.items()}
    for name in sorted({OTHERS[other].environment for row in rows for other in row.goals}):
        environments.python_of(name)
    jax.config.update("jax_platforms", "cpu")  # for the matrix peak
    out = pathlib.Path(options.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    for row in rows:
        print(f"{row.name} ...", file=sys.stderr, flush=True)
        measured = measure(row, commands(row, recounted))
        results = report.merged(out, report.machine(), measured, list(ROWS))
        report.write(out, results)
    print(report.table(results))


def chosen(option: str | None) -> list[Row]:
    """The rows that ``--rows`` names, in the order of the table."""
    names = list(DEFAULT) if not option else list(ROWS) if option == "all" else option.split(",")
    unknown = [name for name in names if name not in ROWS]
    if unknown:
        raise InputError(f"--rows names {unknown[0]!r}; it may be all, or list {', '.join(ROWS)}")
    return [row for name, row in ROWS.items() if name in names]


def commands(row: Row, recounted: dict[str, str]) -> dict[str, list[str]]:
    """The command of each process of a row: ours, and the others it is compared with.

    Args:
      recounted: flag of the row -> flag that replaces it.
    """
    row_flags = [recounted.get(flag, flag) for flag in row.flags]
    processes = {"ours": [sys.executable, "-m", f"bench.{row.module}", *row_flags]}
    for name in row.goals:
        other = OTHERS[name]
        python = environments.python_of(other.environment)
        processes[name] = [python, "-m", f"bench.{other.module}", *row_flags, *other.flags]
    return processes


def measure(row: Row, processes: dict[str, list[str]]) -> dict[str, Any]:
    """The measurements of a row, as the report stores them.

    Args:
      processes: name -> command; our own is called "ours". If another process exits early, its entry holds the error
        instead of seconds, and the others continue.

    Raises:
      RunError: our own process exited early.
    """
    settings = SETTINGS | (KEEP_MEMORY if row.keeps_memory else {})
    timed, peaks = (_turns if row.start is None else _starts)(row, processes, settings)
    if "error" in timed["ours"]:
        raise RunError(f"{row.name}: {timed['ours']['error']}")
    results = {
        name: {"command": " ".join(["python" if name == "ours" else command[0], *command[1:]]), **timed[name]}
        for name, command in processes.items()
    }
    allocator = "kept by all" if row.keeps_memory else "as shipped"
    date = datetime.date.today().isoformat()
    return {
        "row": row.name,
        "date": date,
        "allocator": allocator,
        "processes": results,
        "lines": lines(row, results, peaks),
    }


def _turns(row: Row, processes: dict[str, list[str]], settings: dict[str, str]) -> tuple[dict[str, Any], list[float]]:
    """Seconds per step of each block, with all processes in turn; also the matrix peak, if the row needs it."""
    peers: dict[str, Peer] = {}
    timed: dict[str, dict[str, Any]] = {}
    peaks: list[float] = []
    for name, command in processes.items():
        with _noted(name, timed):
            peers[name] = Peer(name, command, settings)
            peers[name].run(row.steps)  # compiles what the first step has not compiled
            peers[name].seconds.clear()
    for _ in range(BLOCKS):
        if row.share is not None:
            peaks.append(arithmetic.peak_flops(_work(row).dtype) or 0.0)
        for name in processes:
            if name not in timed:
                with _noted(name, timed):
                    peers[name].run(row.steps)
    for name in processes:
        if name not in timed:
            peer = peers[name]
            timed[name] = {
                "seconds": peer.seconds,
                "peak_gib": round(peer.peak_bytes / 2**30, 2),
                "told": peer.versions,
            }
            peer.stop()
    return timed, peaks


def _starts(row: Row, processes: dict[str, list[str]], settings: dict[str, str]) -> tuple[dict[str, Any], list[float]]:
    """Seconds from the start of a process to the end of its first step; the first start fills caches, uncounted."""
    timed: dict[str, dict[str, Any]] = {name: {"seconds": []} for name in processes}
    for attempt in range(1 + STARTS):
        for name, command in processes.items():
            if "error" not in timed[name]:
                with _noted(name, timed):
                    peer = Peer(name, command, settings)
                    peer.stop()
                    timed[name]["told"] = peer.versions
                    timed[name]["seconds"] += [peer.versions["start_s"]] if attempt else []
    return timed, []


@contextlib.contextmanager
def _noted(name: str, timed: dict[str, dict[str, Any]]) -> Iterator[None]:
    """Records the error of a process that exits early."""
    try:
        yield
    except RuntimeError as error:
        timed[name] = {"error": str(error)}


def _work(row: Row) -> work.Work:
    return work.work_of(work.parser("").parse_args(row.flags))


def lines(row: Row, timed: dict[str, dict[str, Any]], peaks: list[float]) -> list[dict[str, Any]]:
    """Lines of the table: against whom, ours, theirs, unit, ratio (above 1: ours is faster), goal.

    Args:
      timed: name -> ``seconds`` of each block, or ``error``. peaks: FLOP/s that the machine reached in matrix products.
    """
    ours = statistics.median(timed["ours"]["seconds"])
    unit, scale = ("s", 1.0) if row.start else ("ms", 1e3)
    comparisons: list[dict[str, Any]] = []
    for name, goal in row.goals.items():
        line: dict[str, Any] = {"against": name, "ours": scale * ours, "unit": unit, "goal": goal}
        if "error" in timed[name]:
            comparisons.append(line | {"error": timed[name]["error"]})
        else:
            theirs = statistics.median(timed[name]["seconds"])
            comparisons.append(line | {"theirs": scale * theirs, "ratio": theirs / ours})
    if row.start:
        comparisons.append(
            {
                "against": "the clock",
                "ours": ours,
                "theirs": row.start,
                "unit": unit,
                "ratio": row.start / ours,
                "goal": 1.0,
            }
        )
    if peaks:
        rate, peak = _work(row).flops / ours, statistics.median(peaks)
        gflops = {"ours": rate / 1e9, "theirs": peak / 1e9, "unit": "GFLOP/s"}
        comparisons.append({"against": "the matrix peak", **gflops, "ratio": rate / peak, "goal": row.share})
    return comparisons


if __name__ == "__main__":
    flags.main(run)
