"""The settings that pretraining and fine-tuning share. Steps are optimizer steps."""

from ml_collections import ConfigDict

from bert import architectures, config_fields
from bert.architectures.bert import BertConfig
from bert.training.optim import OptimizerSettings
from bert.training.train import LoopSettings


def add_to(config: ConfigDict) -> None:
    config.init_from = ""  # model, run or Google checkpoint to start from; empty: random weights, in pretraining
    config.added_rows = "pieces"  # new tokens start as the mean of their pieces' rows; mean: of all rows
    config.seed = 0  # of random weights, dropout, data order, masks and split
    config.micro_batches = 1  # parts of a batch computed one after the other, for less memory

    config_fields.add(config, BertConfig, *architectures.COMPUTED, section="model")
    of_one = ("total_steps", "warmup_steps", "layer_decay", "frozen_layers")  # in pretraining or fine-tuning only
    config_fields.add(config, OptimizerSettings, section="optimizer", without=of_one)
    config.tracker = ""  # also send the metrics to wandb or mlflow, see docs/tracking.md
    config_fields.add(config, LoopSettings, "log_every", "keep_checkpoints", "stop_after_skips")

    config.mesh = ConfigDict()
    # dp: data parallelism; fsdp: with parameters and optimizer state split, too (ZeRO-3); tp: tensor parallelism, which
    # splits attention heads and feed-forward layers; fsdp_tp: both of these.
    config.mesh.mode = "dp"
    # Degree of tensor parallelism, for tp and fsdp_tp; a divisor of the devices of a process and of the heads. All
    # devices divided by it are the degree of data parallelism.
    config.mesh.model_devices = 1
    config.mesh.lost_after = 30  # seconds without a sign of life of one process that end the others
    config.mesh.stuck_after = 1800  # seconds with nothing finished (a batch, a checkpoint) that end several processes
    # keep: freed memory stays with the process, steps on CPUs take up to 15 % less time; system: as glibc does, with a
    # half to a third of the memory.
    config.allocator = "keep"
