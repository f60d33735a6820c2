"""Reading comprehension by B/I/O tags, from the votes of several annotators; any number of answers a question.

    --config=configs/bio_mrc.py --config.data=questions.json

Values only. Lengths are tokens. How it is trained is in configs/recipe.py, whose settings are this config's, too.
"""

from ml_collections import ConfigDict, config_dict

from configs import recipe


def get_config() -> ConfigDict:
    config = ConfigDict()
    config.task = "bio_mrc"  # the file in tasks/

    config.data = config_dict.placeholder(str)  # a file of questions; docs/reading.md lists the formats
    config.validation = ""  # the same for validation; empty: whole articles are split off from the data
    config.validation_share = 0.1  # of the articles or documents, by seed, where no validation is given; 0: none
    config.format = "auto"  # squad, multispanqa, pico, lines; auto: as the file looks
    config.documents = ""  # pico: folder (or .tar.gz) with a DOCID.txt for each document
    config.question = ""  # what is asked where the file has no question; pico: its key, where this is empty
    config.annotators = ""  # names with commas, only these; with a - before each, all but these; empty: all
    config.encoding = "utf-8"
    config.annotator_weights = ""  # anna=2,ben=0.5: what a vote counts, 1 where not named
    config.votes = "soft"  # soft: the shares of the votes are the target; majority: the tag with most of them
    config.classifier_dropout = config_dict.placeholder(float)  # before the scores; not set: as hidden_dropout
    config.loss_per = "token"  # token: the mean over all tokens with a target; example: the mean of their sums

    config.max_length = 384  # tokens of a window at most: [CLS] question [SEP] passage [SEP]
    config.window_step = 128  # tokens from the start of a window over the passage to the start of the next
    config.max_question = 64  # tokens of a question at most; longer ones are cut

    config.decoding = "viterbi"  # the likeliest tags with no I after O; greedy: the likeliest tag of each token
    config.min_probability = 0.0  # spans below it are left out
    config.max_span = 0  # tokens of a span at most; 0: any number

    config.metrics = ""  # names with commas; empty: the usual ones
    config.metric = ""  # chooses the best evaluation; empty: the first of the metrics
    recipe.add_to(config)
    config.batch_size = 16  # windows over all devices
    return config
