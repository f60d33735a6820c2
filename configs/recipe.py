"""Training settings shared by all fine-tuning: the recipe of the BERT paper (appendix A.3). Values only.

With a few thousand rows or fewer, up to 20 epochs and several seeds help (Mosbach et al. 2021; Zhang et al. 2021).
"""

from ml_collections import ConfigDict, config_dict

from bert import config_fields
from bert.training.optim import OptimizerSettings
from configs import every_run


def add_to(config: ConfigDict) -> None:
    every_run.add_to(config)
    config.add_tokens = ""  # never split: [E1],[E2],<URL>, or @FILE with one a line; rows for them: added_rows
    config.seeds = 1  # runs with seed, seed + 1, ...; their mean, standard deviation and best are printed
    config.epochs = 3.0  # passes over the training rows; BERT appendix A.3: 2 to 4
    config.steps = config_dict.placeholder(int)  # optimizer steps in all, instead of epochs
    config.batch_size = 32  # examples over all devices; BERT appendix A.3: 16 or 32
    config.label_smoothing = 0.0  # e: targets t of the trained loss become (1 - e) t + e / classes; scores do not
    config.packed = True  # several short examples in a row: the same results, less work

    # adamw has bias correction, which small data need (Zhang et al. 2021); google_adamw (without), lamb.
    config.optimizer.name = "adamw"
    config.optimizer.learning_rate = 3e-5  # the peak; BERT appendix A.3: 2e-5, 3e-5 or 5e-5
    config_fields.add(config, OptimizerSettings, "layer_decay", "frozen_layers", section="optimizer")
    config.warmup_share = 0.1  # share of all steps in which the rate rises from 0 to the peak

    config.evaluations_per_epoch = 1  # at equal distances
    # Evaluations without a better value, or a lower loss at an equal one, before training stops; 0: never.
    config.patience = 0
    config.log_every = 20
    config.keep_checkpoints = 1  # the best model is in model/
