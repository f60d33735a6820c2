"""Pretrains a BERT on a prepared folder: masked words, and next sentence if the settings ask for it.

bert pretrain --config=pretrain:mini --config.data=prepared/mine --workdir=runs/mine
bert pretrain --config=pretrain:base --config.data=prepared/mine --config.init_from=DIR --workdir=runs/further
bert pretrain --config=my.py --config.batch_size=64 --config.micro_batches=8 --workdir=runs/mine

Run the same command again to resume after any stop. SIGTERM and Ctrl-C save first (a second Ctrl-C does not wait) and
exit with 128 + the signal's number; with several processes only SIGTERM saves. A finished run only evaluates again.
"""

import pathlib

from bert.errors import printable
from bert.training import run_directory
from launch import command_line, flags, runtime
from launch.pretraining_job import PretrainingJob
from launch.runs import run_job

OPTIONS = runtime.OPTIONS


def run(argv: list[str]) -> None:
    config, options = flags.parse(argv, __doc__, OPTIONS, ("workdir",), config_file=None)
    flags.check_fields(config, PretrainingJob.config_file)
    flags.keep_one(argv, config, "warmup_share", "optimizer.warmup_steps")
    workdir = pathlib.Path(options.workdir)
    cache, lost_after = workdir / run_directory.CACHE, config.mesh.lost_after
    runtime.start(allocator=config.allocator, cache=cache, options=options, lost_after=lost_after)
    run_job(PretrainingJob(config), workdir, lambda: command_line.show(config, options, workdir / run_directory.CONFIG))
    losses = f"{workdir / run_directory.METRICS} and {workdir / run_directory.BOARD}/"
    runtime.say(printable(f"wrote {workdir / run_directory.MODEL}/ (the model), {losses} (the losses)"))


if __name__ == "__main__":
    flags.main(run)
