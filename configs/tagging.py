"""A tag for each word, such as named entities, from one annotator or from the votes of several.

    --config=configs/tagging.py --config.data=train.txt --config.validation=valid.txt

Values only. Lengths are in tokens. This config includes the settings in configs/recipe.py (training).
"""

from ml_collections import ConfigDict, config_dict

from bert import config_fields
from bert.prediction.tagging import TaggingOptions
from configs import recipe
from tasks.tagging.tag_schemes import TagSettings
from tasks.votes import VoteSettings


def get_config() -> ConfigDict:
    config = ConfigDict()
    config.task = "tagging"  # the folder in tasks/

    # Columns, json lines, a table, a folder with one folder per worker, or an export of doccano, Label Studio, Prodigy
    # or brat; docs/file_formats.md lists the formats.
    config.data = config_dict.placeholder(str)
    config.validation = ""  # the same for validation; empty: documents, or sentences of a single one, are split off
    config.validation_share = 0.1  # approximate share of the sentences, by seed, if no validation is given; 0: none
    config_fields.add(config, TagSettings)
    config.annotator_weights = ""  # anna=2,ben=0.5: weights of their votes; 1 if not named
    config_fields.add(config, VoteSettings, "votes")
    config.labelled_pieces = "first"  # train the first piece of a word; all: the other pieces, too, with I after B
    config.classifier_dropout = config_dict.placeholder(float)  # before the scores; not set: as hidden_dropout
    config.loss_per = "token"  # token: the mean over all words with a target; example: the mean of their sums
    config_fields.add(config, TaggingOptions)

    config.metrics = ""  # comma-separated names; empty: the usual ones for the tags
    config.metric = ""  # chooses the best evaluation; empty: the first of the metrics
    recipe.add_to(config)
    config.optimizer.learning_rate = 5e-5
    return config
