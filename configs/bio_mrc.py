"""Reading comprehension by B/I/O tags, from the votes of several annotators; any number of answers a question.

    --config=configs/bio_mrc.py --config.data=questions.json

Values only. Files and windows are in configs/questions.py, training in configs/recipe.py: their settings are this
config's, too.
"""

from ml_collections import ConfigDict, config_dict

from configs import questions, recipe


def get_config() -> ConfigDict:
    config = ConfigDict()
    config.task = "bio_mrc"  # the file in tasks/
    questions.add_to(config)
    config.annotator_weights = ""  # anna=2,ben=0.5: what a vote counts, 1 where not named
    config.votes = "soft"  # soft: the shares of the votes are the target; majority: the tag with most of them
    config.classifier_dropout = config_dict.placeholder(float)  # before the scores; not set: as hidden_dropout
    config.loss_per = "token"  # token: the mean over all tokens with a target; example: the mean of their sums

    config.decoding = "viterbi"  # the likeliest tags with no I after O; greedy: the likeliest tag of each token
    config.min_probability = 0.0  # spans below it are left out
    config.max_span = 0  # tokens of a span at most; 0: any number

    config.metrics = ""  # names with commas; empty: the usual ones
    config.metric = ""  # chooses the best evaluation; empty: the first of the metrics
    recipe.add_to(config)
    config.batch_size = 16  # windows over all devices
    return config
