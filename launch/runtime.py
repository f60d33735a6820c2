"""Set-up before JAX computes anything: memory, the compilation cache, several processes."""

import ctypes
import os
import pathlib
import platform
import re
from collections.abc import Mapping
from typing import Any

import jax

from bert.errors import InputError, check_choice, check_range
from launch import console, peers

# For several processes; Slurm and Open MPI need none of them.
PROCESS_OPTIONS = {
    "coordinator": "HOST:PORT of process 0, when several processes train together without Slurm or Open MPI; auto on "
    "Cloud TPUs and Kubernetes, where JAX finds the others",
    "num_processes": "how many processes there are",
    "process_id": "the number of this one, from 0",
}
_COUNTS = ("SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE")  # how many processes srun or mpirun has started
OPTIONS = {"workdir": "folder of the run", **PROCESS_OPTIONS}  # of a command that trains
_M_MMAP_MAX, _M_TRIM_THRESHOLD, _M_ARENA_MAX = -4, -1, -8  # malloc.h of glibc


def start(*, allocator: str, cache: pathlib.Path | None, options: Mapping[str, Any], lost_after: int = 30) -> None:
    """Prepares this process for training.

    Args:
      allocator: see configs/every_run.py.
      cache: folder of compiled programs, see `keep_programs`.
      options: the values of PROCESS_OPTIONS. InputError for impossible ones, or auto where JAX knows no cluster.
      lost_after: seconds, see configs/every_run.py.
    """
    check_choice("config.allocator", allocator, ("keep", "system"))
    if allocator == "keep" and platform.system() == "Linux" and platform.libc_ver()[0] == "glibc":
        # Freed memory stays with the process, in one arena. Otherwise a step on a CPU spends 15 to 20 % of its time on
        # page faults of newly mapped temporaries; the resident set is larger.
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_ARENA_MAX, 1)
        libc.mallopt(_M_MMAP_MAX, 0)
        libc.mallopt(_M_TRIM_THRESHOLD, -1)
    keep_programs(cache)
    check_range("config.mesh.lost_after", lost_after, at_least=1)
    _join_processes(options, lost_after)


def keep_programs(cache: pathlib.Path | None) -> None:
    """Keeps compiled programs for the next start in a folder, unless None; JAX_COMPILATION_CACHE_DIR replaces it."""
    jax_config: Any = jax.config  # untyped
    if cache and not jax_config.jax_compilation_cache_dir:
        jax_config.update("jax_compilation_cache_dir", str(cache.absolute()))
    if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
        # Also the dozen small programs of a start: JAX stores only those that took a second to compile.
        jax_config.update("jax_persistent_cache_min_compile_time_secs", 0)


def user_cache() -> pathlib.Path | None:
    """The folder of compiled programs for commands without a run directory, where other programs keep such files.

    None where it cannot be written, such as in a container with a read-only home.
    """
    folder = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "bert-jax"
    there = next(path for path in (folder, *folder.parents) if os.path.exists(path))
    return folder if there.is_dir() and os.access(there, os.W_OK) else None


def _join_processes(options: Mapping[str, Any], lost_after: int) -> None:
    """Finds the other processes, if there are any; from then on process 0 alone prints, others only their errors."""
    named = {name: options[name] for name in PROCESS_OPTIONS if options.get(name)}
    where: dict[str, Any] = {}
    if named and named != {"coordinator": "auto"}:
        address, count, number = _named_processes(named)
        if number == 0 and count > 1:
            print(f"process 0 of {count}: waiting for the others at {address}", flush=True)
        where = {"coordinator_address": address, "num_processes": count, "process_id": number}
        where["cluster_detection_method"] = "deactivate"
    # Of the step, not of the job: in a batch script without srun there is one process, whatever the job was given.
    elif not named and all(int(os.environ.get(name, 1)) == 1 for name in _COUNTS):
        return
    elif devices := own_devices(os.environ):
        where = {"local_device_ids": devices}
    console.without_native_output()
    try:
        peers.join(where, lost_after)
    except ValueError as error:
        if named != {"coordinator": "auto"}:
            raise
        raise InputError(
            "--coordinator=auto: JAX does not find the other processes as on a cluster that it knows (Cloud TPU, "
            f"Slurm, Open MPI, Kubernetes with its Python package): {str(error).rstrip('.')}; give HOST:PORT of "
            "process 0, --num_processes and --process_id"
        ) from None
    console.of_process(jax.process_index())


def own_devices(environment: Mapping[str, str]) -> list[int]:
    """The GPUs of a process that srun or mpirun has started, where they are its own; none where JAX has to choose.

    By itself JAX takes for process i of a host the i-th GPU that it sees, which is wrong where Slurm shows each task
    other ones (``--gpus-per-task``), and leaves all but the first idle where there is one process a host.
    """
    visible = environment.get("CUDA_VISIBLE_DEVICES", "").strip(",").split(",")
    one_a_host = environment.get("OMPI_COMM_WORLD_LOCAL_SIZE") == "1" or re.fullmatch(
        r"1(\(x\d+\))?", environment.get("SLURM_STEP_TASKS_PER_NODE", "")
    )
    its_own = visible[0] and (len(visible) == 1 or one_a_host or "SLURM_GPUS_PER_TASK" in environment)
    return list(range(len(visible))) if its_own else []


def _named_processes(named: dict[str, str]) -> tuple[str, int, int]:
    """Address of process 0, how many there are, and the number of this one."""
    missing = [name for name in PROCESS_OPTIONS if name not in named]
    if missing and named.get("coordinator") != "auto":
        raise InputError(f"--{missing[0]} is missing; --coordinator, --num_processes and --process_id go together")
    address, (host, _, port) = named["coordinator"], named["coordinator"].rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise InputError(f"--coordinator is {address!r}; it must be HOST:PORT of process 0, or auto alone")
    try:
        count, number = int(named["num_processes"]), int(named["process_id"])
    except ValueError:
        raise InputError("--num_processes and --process_id must be whole numbers") from None
    check_range("--num_processes", count, at_least=1)
    check_range("--process_id", number, at_least=0, at_most=count - 1, hint=f", for {count} processes")
    return address, count, number


def say(text: str) -> None:
    """Prints a line, on process 0 only."""
    if jax.process_index() == 0:
        print(text, flush=True)
