"""`make pretrain`: a small BERT on the docs of the installed packages, about five minutes on two CPU cores.

This lists the values that differ from configs/pretrain.py, whose comments explain the settings.
"""

from ml_collections import ConfigDict

from configs import pretrain


def get_config() -> ConfigDict:
    config = pretrain.get_config("tiny")
    config.data = "prepared/installed-docs"
    config.total_steps = 3_900
    config.batch_size = 32  # small batches learn most from few tokens
    config.max_length = 64
    config.model.max_position_embeddings = 128
    config.model.initializer_range = 0.06  # 0.02 suits a width of 768; scaled as 1 / sqrt(width) it learns sooner
    # Five minutes see each token a few times at most: dropout would cost accuracy and a fifth of the speed.
    config.model.hidden_dropout = 0.0
    config.model.attention_dropout = 0.0
    config.optimizer.learning_rate = 1.5e-3
    config.optimizer.warmup_steps = 200
    config.optimizer.b2 = 0.98  # a short run needs a short memory
    config.optimizer.clip_norm = 0.0  # norms stay below 5
    config.log_every = 100
    config.evaluate_every = 1_300
    config.save_every = 650
    config.probes = (
        "the shape of the [MASK] array is returned as a tuple of integers .",
        "raises a value error if the [MASK] is not valid .",
        "this function returns a new [MASK] of the same length .",
    )
    return config
