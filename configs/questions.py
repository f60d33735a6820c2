"""The settings that both ways of reading comprehension share: files of questions, and windows over passages.

Values only. Lengths are tokens.
"""

from ml_collections import ConfigDict, config_dict


def add_to(config: ConfigDict) -> None:
    """Adds them."""
    config.data = config_dict.placeholder(str)  # a file of questions; docs/reading.md lists the formats
    config.validation = ""  # the same for validation; empty: whole articles are split off from the data
    config.validation_share = 0.1  # of the articles or documents, by seed, where no validation is given; 0: none
    config.format = "auto"  # squad, multispanqa, pico, lines; auto: as the file looks
    config.documents = ""  # pico: folder (or .tar.gz) with a DOCID.txt for each document
    config.question = ""  # what is asked where the file has no question; pico: its key, where this is empty
    config.annotators = ""  # names with commas, only these; with a - before each, all but these; empty: all
    config.encoding = "utf-8"

    config.max_length = 384  # tokens of a window at most: [CLS] question [SEP] passage [SEP]
    config.window_step = 128  # tokens from the start of a window over the passage to the start of the next
    config.max_question = 64  # tokens of a question at most; longer ones are cut
