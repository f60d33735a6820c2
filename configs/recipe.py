"""The settings of training that all fine-tuning shares: the recipe of the BERT paper (appendix A.3). Values only.

For a few thousand rows or fewer more epochs help (up to 20: Mosbach et al. 2021, Zhang et al. 2021), with several
seeds.
"""

from ml_collections import ConfigDict


def add_to(config: ConfigDict) -> None:
    """Adds them."""
    config.init_from = ""  # model, run directory or Google checkpoint to start from
    config.seed = 0  # of the new head, dropout, data order and split
    config.seeds = 1  # runs with seed, seed + 1, ...; their mean, standard deviation and best are printed
    config.epochs = 3.0  # passes over the training rows; BERT appendix A.3: 2 to 4
    config.batch_size = 32  # examples over all devices; BERT appendix A.3: 16 or 32
    config.micro_batches = 1  # parts of a batch computed one after the other, for less memory
    config.packed = True  # several short examples in a row: the same results, less work

    config.model = ConfigDict()
    config.model.hidden_dropout = 0.1
    config.model.attention_dropout = 0.1
    config.model.dtype = "float32"  # of matrix products; see configs/pretrain.py
    config.model.layer_loop = "auto"
    config.model.remat = False
    config.model.attention = "core"

    config.optimizer = ConfigDict()
    config.optimizer.name = "adamw"  # with bias correction: small data needs it (Zhang et al. 2021)
    config.optimizer.learning_rate = 3e-5  # the peak; BERT appendix A.3: 2e-5, 3e-5 or 5e-5
    config.optimizer.schedule = "linear"
    config.optimizer.power = 1.0
    config.optimizer.weight_decay = 0.01
    config.optimizer.b1 = 0.9
    config.optimizer.b2 = 0.999
    config.optimizer.eps = 1e-6
    config.optimizer.clip_norm = 1.0
    config.optimizer.layer_decay = 1.0  # each block learns at so many times the rate of the one above it
    config.optimizer.frozen_layers = -1  # lowest blocks that stay as they are, with the embeddings; -1: none
    config.warmup_share = 0.1  # of all steps

    config.evaluations_per_epoch = 1
    config.patience = (
        0  # evaluations without a better value, or a lower loss at an equal one, before it stops; 0: never
    )

    config.mesh = ConfigDict()
    config.mesh.mode = "dp"  # dp, fsdp, tp, fsdp_tp
    config.mesh.model_devices = 1

    config.log_every = 20  # steps
    config.keep_checkpoints = 1  # newest ones; the best model is in model/
    config.stop_after_skips = 20  # non-finite steps in a row
    config.allocator = "keep"  # or system, see configs/pretrain.py
