"""Clusters that make the shards of a job of `prepare`: Ray and Dask.

An engine is a function that has the machines of a cluster call another function, and a line in `ENGINES`. All machines
see the text and the folder to write under the same paths, and have this package installed.
"""

import contextlib
import logging
import os
import pathlib
import re
import shutil
import socket
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from bert import files, worker_pool
from bert.errors import InputError, RunError, check_choice
from bert.extras import check_installed
from bert.progress import waiting
from bert.store.learnt_vocabulary import Progress
from bert.store.manifest import MANIFEST
from bert.store.prepare import Job, PreparedFolder, finished, no_progress
from bert.store.prepare_settings import PrepareSettings
from bert.store.prepared_folder import is_finished
from bert.store.shards import JobShard, finished_count, make_shard, make_vocabulary, merge_shards, shards_folder

SHARD_BYTES = 1 << 30  # of files, at most; a shard is what is done again when its machine is lost
RETRIES = 3  # of a task whose process was killed

# (function, tasks) -> results in any order, as they come.
Run = Callable[[Callable[[Any], Any], Sequence[Any]], Iterator[Any]]
# (processes: 0 = all cores, address: "" = this machine) -> what runs tasks on the cluster, while it is entered.
Engine = Callable[[int, str], contextlib.AbstractContextManager[Run]]


@contextlib.contextmanager
def on_ray(workers: int, address: str) -> Iterator[Run]:
    """Raises InputError where Ray is not installed or no cluster is at the address; RunError for a lost task."""
    check_installed("ray", "ray", "ray", "engine ray")
    import ray

    local = {} if address else {"num_cpus": workers or None, "include_dashboard": False}
    try:
        if place := re.fullmatch(r"(?:ray://)?([^/:]+):(\d+)", address):  # Ray itself waits for minutes
            socket.create_connection((place[1], int(place[2])), timeout=30).close()
        ray.init(address=address or "local", log_to_driver=False, logging_level="error", **local)
    except Exception as error:  # it raises that very class where it takes too long
        raise _no_cluster("ray", address, error) from None

    def run(function: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[Any]:
        remote = ray.remote(function).options(num_cpus=1, max_retries=RETRIES)
        left = [remote.remote(task) for task in tasks]
        try:
            while left:
                (done,), left = ray.wait(left)
                yield ray.get(done)
        except ray.exceptions.RayError as error:
            raise _lost("ray", error) from None

    try:
        yield run
    finally:
        ray.shutdown()


@contextlib.contextmanager
def on_dask(workers: int, address: str) -> Iterator[Run]:
    """Raises InputError where Dask is not installed or no cluster is at the address; RunError for a lost task."""
    check_installed("distributed", "dask[distributed]", "dask", "engine dask")
    import distributed

    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # its lines of each process that starts or ends
    local = {"n_workers": workers or None, "threads_per_worker": 1, "dashboard_address": None}
    try:
        client = distributed.Client(address, timeout=30) if address else distributed.Client(**local, silence_logs=50)
    except (OSError, ValueError) as error:
        raise _no_cluster("dask", address, error) from None

    def run(function: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[Any]:
        try:
            with waiting("dask: no worker has come"):
                client.wait_for_workers(1)
            for future in distributed.as_completed(client.map(function, tasks, pure=False, retries=RETRIES)):
                yield future.result()
        except (distributed.scheduler.KilledWorker, distributed.CancelledError, OSError) as error:
            raise _lost("dask", error) from None

    with client:
        yield run


ENGINES: dict[str, Engine] = {"ray": on_ray, "dask": on_dask}


def _no_cluster(engine: str, address: str, error: Exception) -> InputError:
    why = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return InputError(f"engine_address {address!r}: no {engine} cluster answers ({why:.200}); correct it, or start one")


def _lost(engine: str, error: Exception) -> RunError:
    why = f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}"
    again = "run the same command again: finished shards are kept"
    return RunError(f"{engine} lost a shard {RETRIES} times, or the cluster ({why:.200}); {again}")


def prepare_on(
    engine: str, out: str | pathlib.Path, settings: PrepareSettings,
    *, address: str = "", workers: int = 0, overwrite: bool = False, progress: Progress = no_progress,
) -> PreparedFolder:  # fmt: skip
    """`prepare` with an engine; the folder is the same.

    Args:
      engine: a name in `ENGINES`.
      address: of a cluster that exists; empty: one is started on this machine.
      workers: processes to start on this machine, and the least number of shards; 0: one for each core, and with an
        address as many shards as the size of the texts asks for.

    The other arguments and the errors are those of `prepare`. After an error the same call goes on, for finished shards
    stay until they are joined, and tell how many there are.
    """
    check_choice("engine", engine, ENGINES)
    job = Job.of(out, settings, 1)
    files.recover_interrupted_replace(job.folder, (MANIFEST,), clear=True)
    if is_finished(job.folder, job.noted, job.tokenizer, overwrite):
        return finished(out, job.folder, True)
    size = sum(source.bytes for source in job.corpus.sources)
    least = workers or (1 if address else worker_pool.usable_cores())
    count = finished_count(job) or max(least, -(-size // SHARD_BYTES))
    tasks = [(os.getcwd(), job.folder, settings, JobShard(number, count), overwrite) for number in range(1, count + 1)]
    with ENGINES[engine](workers, address) as run:
        if not job.tokenizer:
            make_vocabulary(out, settings, overwrite=overwrite, progress=progress)
        for done, (kind, message) in enumerate(run(_make, tasks), 1):
            if kind:
                raise {"InputError": InputError, "RunError": RunError}[kind](message)
            progress("tokens", size * done // count, size)
    merged = merge_shards(out, settings, count=count, overwrite=overwrite, progress=progress)
    for folder in (
        *(JobShard(number, count).folder(job.folder) for number in range(1, count + 1)),
        shards_folder(job.folder) / "vocabulary",
    ):
        shutil.rmtree(folder, ignore_errors=True)
    if not any(shards_folder(job.folder).iterdir()):
        shards_folder(job.folder).rmdir()
    return merged


def _make(task: tuple[str, pathlib.Path, PrepareSettings, JobShard, bool]) -> tuple[str, str]:
    """Makes one shard in a process of a cluster; (class, message) of its error, which need not be pickled.

    The folder that relative paths begin at is that of the whole process: where its threads make shards of jobs in
    different folders, a text of the other job is not found, or the merge refuses the shard.
    """
    folder, out, settings, shard, overwrite = task
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # one core a task
    try:
        os.chdir(folder)
        make_shard(out, settings, shard, overwrite=overwrite)
    except InputError as error:
        return "InputError", str(error)
    except RunError as error:
        return "RunError", str(error)
    except Exception as error:  # of a machine, such as a full disk or a package that is missing there
        return "RunError", f"shard {shard} of {out}: {type(error).__name__}: {error}"
    return "", ""
