"""Reading comprehension by B/I/O tags, from the votes of several annotators; any number of answers per question.

    --config=configs/bio_mrc.py --config.data=questions.json

This config includes the settings in configs/questions.py (files and windows) and in configs/recipe.py (training).
"""

from ml_collections import ConfigDict, config_dict

from bert import config_fields
from bert.prediction.bio_mrc import BioMrcOptions
from configs import questions, recipe
from tasks.votes import VoteSettings


def get_config() -> ConfigDict:
    config = ConfigDict()
    config.task = "bio_mrc"  # the folder in tasks/
    questions.add_to(config)
    config.annotator_weights = ""  # anna=2,ben=0.5: weights of their votes; 1 if not named
    config_fields.add(config, VoteSettings, "votes")
    config.classifier_dropout = config_dict.placeholder(float)  # before the scores; not set: as hidden_dropout
    config.loss_per = "token"  # token: the mean over all tokens with a target; example: the mean of their sums
    config_fields.add(config, BioMrcOptions, "decoding", "min_probability", "max_span")

    config.metrics = ""  # comma-separated names; empty: the usual ones
    config.metric = ""  # chooses the best evaluation; empty: the first of the metrics
    recipe.add_to(config)
    config.batch_size = 16  # windows over all devices
    return config
