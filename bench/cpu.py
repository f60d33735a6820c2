"""Our speed on this machine's CPU beside that of others, in turns; a markdown table goes to standard output.

python -m bench.cpu --out=FILE.json [--rows=NAME,NAME,...|all] [--glue=FOLDER --vocab=DIR]

The environments of the others are made on first use, in .bench/ (Linux). The rows are those of bench/rows.py.
What FILE holds already stays, but for the rows that are measured again and those of another machine.
"""

import contextlib
import datetime
import pathlib
import statistics
import sys
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
    "rows": f"all, or names with commas of {', '.join(ROWS)} (where not given: {', '.join(DEFAULT)})",
    "glue": "folder with GLUE's SST-2 and MRPC, to count lengths anew (where not given: bench/texts.py)",
    "vocab": "model directory with the vocabulary that counts them",
}
BLOCKS, STARTS = 5, 2
# Everything computes on the CPU, and what was compiled in another run is compiled already.
SETTINGS = {
    "JAX_PLATFORMS": "cpu",
    "JAX_COMPILATION_CACHE_DIR": str((environments.FOLDER / "cache").absolute()),
    "TORCHINDUCTOR_CACHE_DIR": str((environments.FOLDER / "inductor").absolute()),
}
# For glibc in others' processes what `runtime.keep_freed_memory` is in ours.
KEPT = {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "100000000000"}


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


def chosen(told: str | None) -> list[Row]:
    """The rows of these names, in the order of the table."""
    names = list(DEFAULT) if not told else list(ROWS) if told == "all" else told.split(",")
    unknown = [name for name in names if name not in ROWS]
    if unknown:
        raise InputError(f"--rows names {unknown[0]!r}; it may be all, or list {', '.join(ROWS)}")
    return [row for name, row in ROWS.items() if name in names]


def commands(row: Row, recounted: dict[str, str]) -> dict[str, list[str]]:
    """The command of each process of a row: ours, and those beside it.

    Args:
      recounted: flags of the row -> flags that take their place.
    """
    given = [recounted.get(flag, flag) for flag in row.flags]
    found = {"ours": [sys.executable, "-m", f"launch.bench.{row.module}", *given]}
    for name in row.goals:
        other = OTHERS[name]
        python = environments.python_of(other.environment)
        found[name] = [python, "-m", f"launch.bench.{other.module}", *given, *other.flags]
    return found


def measure(row: Row, processes: dict[str, list[str]]) -> dict[str, Any]:
    """What the report keeps of a row.

    Args:
      processes: name -> command; ours is called "ours". One that ends before its time has an error in the place of its
        seconds, and the others go on.

    Raises:
      RunError: ours ended before its time.
    """
    settings = SETTINGS | (KEPT if row.kept else {})
    timed, peaks = (_turns if row.start is None else _starts)(row, processes, settings)
    if "error" in timed["ours"]:
        raise RunError(f"{row.name}: {timed['ours']['error']}")
    told = {
        name: {"command": " ".join(["python" if name == "ours" else command[0], *command[1:]]), **timed[name]}
        for name, command in processes.items()
    }
    allocator = "kept by all" if row.kept else "as shipped"
    date = datetime.date.today().isoformat()
    return {"row": row.name, "date": date, "allocator": allocator, "processes": told, "lines": lines(row, told, peaks)}


def _turns(row: Row, processes: dict[str, list[str]], settings: dict[str, str]) -> tuple[dict, list[float]]:
    """Seconds of a step by block, ours and the others in turn; between them the matrix peak where it is wanted."""
    peers: dict[str, Peer] = {}
    timed: dict[str, dict[str, Any]] = {}
    peaks: list[float] = []
    for name, command in processes.items():
        with _noted(name, timed):
            peers[name] = Peer(name, command, settings)
            peers[name].run(row.steps)  # compiles what the first step did not
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
            timed[name] = {"seconds": peer.seconds, "peak_gib": round(peer.peak_bytes / 2**30, 2), "told": peer.told}
            peer.stop()
    return timed, peaks


def _starts(row: Row, processes: dict[str, list[str]], settings: dict[str, str]) -> tuple[dict, list[float]]:
    """Seconds of a process up to the end of its first step. The first start of each fills caches and is not counted."""
    timed: dict[str, dict[str, Any]] = {name: {"seconds": []} for name in processes}
    for attempt in range(1 + STARTS):
        for name, command in processes.items():
            if "error" not in timed[name]:
                with _noted(name, timed):
                    peer = Peer(name, command, settings)
                    peer.stop()
                    timed[name]["told"] = peer.told
                    timed[name]["seconds"] += [peer.told["start_s"]] if attempt else []
    return timed, []


@contextlib.contextmanager
def _noted(name: str, timed: dict[str, dict[str, Any]]):
    """Keeps the error of a process that ended before its time."""
    try:
        yield
    except RuntimeError as error:
        timed[name] = {"error": str(error)}


def _work(row: Row) -> work.Work:
    return work.work_of(work.parser("").parse_args(row.flags))


def lines(row: Row, timed: dict[str, dict[str, Any]], peaks: list[float]) -> list[dict[str, Any]]:
    """The lines of the table: against whom, ours, theirs, their unit, the ratio (above 1: ours is faster), the goal.

    Args:
      timed: name -> ``seconds`` by block, or ``error``. peaks: FLOP/s that the machine reached in matrix products.
    """
    ours = statistics.median(timed["ours"]["seconds"])
    unit, scale = ("s", 1.0) if row.start else ("ms", 1e3)
    found: list[dict[str, Any]] = []
    for name, goal in row.goals.items():
        line: dict[str, Any] = {"against": name, "ours": scale * ours, "unit": unit, "goal": goal}
        if "error" in timed[name]:
            found.append(line | {"error": timed[name]["error"]})
        else:
            theirs = statistics.median(timed[name]["seconds"])
            found.append(line | {"theirs": scale * theirs, "ratio": theirs / ours})
    if row.start:
        found.append(
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
        found.append({"against": "the matrix peak", **gflops, "ratio": rate / peak, "goal": row.share})
    return found


if __name__ == "__main__":
    flags.main(run)
