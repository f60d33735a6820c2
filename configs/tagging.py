"""A tag for each word: named entities and the like, by one annotator or by the votes of several.

    --config=configs/tagging.py --config.data=train.txt --config.validation=valid.txt

Values only. Lengths are tokens. How it is trained is in configs/recipe.py, whose settings are this config's, too.
"""

from ml_collections import ConfigDict, config_dict

from configs import recipe


def get_config() -> ConfigDict:
    config = ConfigDict()
    config.task = "tagging"  # the file in tasks/

    config.data = config_dict.placeholder(str)  # columns, json lines, or a folder with a folder a worker
    config.validation = ""  # the same for validation; empty: documents, or sentences of a single one, are split off
    config.validation_share = 0.1  # of the sentences, about, by seed, where no validation is given; 0: none
    config.format = "auto"  # columns, lines, workers; auto: by the name
    config.words = "0"  # column with the word, from 0, or from -1 at the end; of json lines the key
    config.tags = "-1"  # column with the tag; 1-: all from there on, a worker's each; of json lines the key
    config.scheme = "auto"  # of the tags: iob1, iob2; plain: any tags; auto: one of the first two
    config.empty = "?"  # a cell that means: this worker gave no tag
    config.delimiter = ""  # between columns; empty: blanks or tabs
    config.annotators = ""  # names with commas, only these; with a - before each, all but these; empty: all
    config.encoding = "utf-8"
    config.annotator_weights = ""  # anna=2,ben=0.5: what a vote counts, 1 where not named
    config.votes = "soft"  # soft: the shares of the votes are the target; majority: the tag with most of them
    config.labelled_pieces = "first"  # of a word, has its tag; all: the others too, B going on as I
    config.classifier_dropout = config_dict.placeholder(float)  # before the scores; not set: as hidden_dropout
    config.loss_per = "token"  # token: the mean over all words with a target; example: the mean of their sums

    config.max_length = 128  # tokens of a window at most, [CLS] and [SEP] among them; longer sentences have several
    config.window_step = 64  # tokens from the start of a window to the start of the next
    config.decoding = "viterbi"  # the likeliest tags with no I-X after another type; greedy: each word's likeliest

    config.metrics = ""  # names with commas; empty: the usual ones for the tags
    config.metric = ""  # chooses the best evaluation; empty: the first of the metrics
    recipe.add_to(config)
    config.optimizer.learning_rate = 5e-5
    return config
