"""Prepares text for pretraining: documents, sentences, token ids on disk.

bert prepare --config.corpus='texts/*.txt' --out=prepared/mine
bert prepare --config.corpus=pages.jsonl --config.text_column=body --config.vocab=DIR --out=prepared/pages
bert prepare --out=prepared/docs    the documentation of the installed packages

Run again with the same settings, it reports the folder as finished; with others, it names the differences.
"""

import pathlib
import time

from absl import logging

from bert import worker_pool
from bert.errors import InputError, printable
from bert.progress import step_progress
from bert.store.manifest import MANIFEST
from bert.store.prepare import PreparedFolder, prepare
from bert.store.prepare_settings import PrepareSettings
from launch import command_line, flags

OPTIONS = {"out": "folder to write"}


def run(argv: list[str]) -> PreparedFolder:
    config, options = flags.parse(argv, __doc__, OPTIONS, ("out",), config_file="configs/prepare.py")
    flags.check_fields(config, "configs/prepare.py")
    command_line.show(config, options, pathlib.Path(options.out) / MANIFEST)
    fields = dict(config)
    workers, overwrite = fields.pop("workers") or worker_pool.usable_cores(), fields.pop("overwrite")
    if workers < 0:
        raise InputError(f"config.workers is {workers}; give a number of processes, or 0 for one on each core")
    started = time.monotonic()
    with step_progress() as progress:
        settings = PrepareSettings(**fields)
        prepared = prepare(options.out, settings, workers=workers, overwrite=overwrite, progress=progress)
    print(prepared.report.table())
    print(prepared.tokenizer.summary())
    for notice in prepared.report.notices(settings):
        logging.warning("%s", notice)
    if prepared.was_finished:
        print("finished before with these settings and texts; nothing was done")
    else:
        seconds = time.monotonic() - started
        print(f"{seconds:.1f} s, {prepared.report.text_bytes / 1e6 / seconds:.2f} MB/s, {workers} worker(s)")
    print(printable(f"prepared text: {prepared.directory}"))
    return prepared


if __name__ == "__main__":
    flags.main(run)
