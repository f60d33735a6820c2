"""Prepares text for pretraining: documents, sentences, token ids on disk.

bert prepare --config.corpus='texts/*.txt' --out=prepared/mine
bert prepare --config.corpus=pages.jsonl --config.text_column=body --config.vocab=DIR --out=prepared/pages
bert prepare --out=prepared/docs    the documentation of the installed packages

Run again with the same settings, it reports the folder as finished; with others, it names the differences.

Several machines make the same folder with --config.engine=ray or dask. In a job array, the same command is run with
--vocabulary (where none is given), then with --shard=1/16 to --shard=16/16 in any order, then with --merge.
"""

import pathlib
import re
import time

from absl import logging

from bert import worker_pool
from bert.errors import InputError, check_choice, printable
from bert.progress import step_progress
from bert.store.engines import ENGINES, prepare_on
from bert.store.manifest import MANIFEST
from bert.store.prepare import PreparedFolder, prepare
from bert.store.prepare_settings import PrepareSettings
from bert.store.shards import JobShard, Part, make_shard, make_vocabulary, merge_shards, shards_folder
from launch import command_line, flags

OPTIONS = {
    "out": "folder to write",
    "vocabulary": "learns the vocabulary alone, for the shards; no value",
    "shard": "makes one shard, such as 3/16",
    "merge": "joins all shards; no value",
}
SWITCHES = ("vocabulary", "merge")


def run(argv: list[str]) -> PreparedFolder | Part:
    config, options = flags.parse(
        argv, __doc__, OPTIONS, ("out",), config_file="configs/prepare.py", switches=SWITCHES
    )  # fmt: skip
    flags.check_fields(config, "configs/prepare.py")
    fields = dict(config)
    workers, overwrite = fields.pop("workers"), fields.pop("overwrite")
    engine, address = fields.pop("engine"), fields.pop("engine_address")
    check_choice("config.engine", engine, ("local", *ENGINES))
    if workers < 0:
        raise InputError(f"config.workers is {workers}; give a number of processes, or 0 for one on each core")
    if address and engine == "local":
        raise InputError(f"config.engine_address is {address!r}, but config.engine is 'local'; set it to ray or dask")
    step = _step(options, engine)
    shard = _shard(options.shard) if step == "shard" else None
    command_line.show(config, options, "" if step in ("vocabulary", "shard") else pathlib.Path(options.out) / MANIFEST)
    cores, settings = workers or worker_pool.usable_cores(), PrepareSettings(**fields)
    started = time.monotonic()
    with step_progress() as progress:
        if step == "vocabulary":
            part = make_vocabulary(options.out, settings, workers=cores, overwrite=overwrite, progress=progress)
        elif shard:
            part = make_shard(options.out, settings, shard, workers=cores, overwrite=overwrite, progress=progress)
        elif step == "merge":
            prepared = merge_shards(options.out, settings, overwrite=overwrite, progress=progress)
        elif engine == "local":
            prepared = prepare(options.out, settings, workers=cores, overwrite=overwrite, progress=progress)
        else:
            how = {"address": address, "workers": workers, "overwrite": overwrite, "progress": progress}
            prepared = prepare_on(engine, options.out, settings, **how)
    seconds = time.monotonic() - started
    if step in ("vocabulary", "shard"):
        before = "finished before with these settings and texts; nothing was done"
        print(before if part.was_finished else f"{seconds:.1f} s, {cores} worker(s)")
        print(printable(f"{step}: {part.directory}"))
        return part
    print(prepared.report.table())
    print(prepared.tokenizer.summary())
    for notice in prepared.report.notices(settings):
        logging.warning("%s", notice)
    if prepared.was_finished:
        print("finished before with these settings and texts; nothing was done")
    else:
        by = {"merge": "joined from shards", "": f"{cores} worker(s)" if engine == "local" else engine}[step]
        print(f"{seconds:.1f} s, {prepared.report.text_bytes / 1e6 / seconds:.2f} MB/s, {by}")
    if step == "merge":
        print(printable(f"no longer needed: {shards_folder(pathlib.Path(options.out))}"))
    print(printable(f"prepared text: {prepared.directory}"))
    return prepared


def _step(options: flags.Options, engine: str) -> str:
    """ "vocabulary", "shard" or "merge", of which one at most is asked for; "" for all at once."""
    steps = [name for name in SWITCHES if options.yes_or_no(name)] + ["shard"] * (options.shard is not None)
    if len(steps) > 1:
        raise InputError(f"--{steps[0]} and --{steps[1]} are two steps; run one after the other")
    if steps and engine != "local":
        raise InputError(f"config.engine is {engine!r}, which makes and joins all shards; leave out --{steps[0]}")
    return steps[0] if steps else ""


def _shard(text: str) -> JobShard:
    numbers = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text)
    if not numbers or not 1 <= int(numbers[1]) <= int(numbers[2]):
        raise InputError(f"--shard={text}: must be a number and how many there are, from 1/16 to 16/16")
    return JobShard(int(numbers[1]), int(numbers[2]))


if __name__ == "__main__":
    flags.main(run)
