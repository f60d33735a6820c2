"""Reading comprehension by start and end: SQuAD 1.1 and 2.0 and files of their form.

    --config=configs/squad.py --config.data=train-v1.1.json --config.validation=dev-v1.1.json

Values only. Lengths are tokens. How it is trained is in configs/recipe.py, whose settings are this config's, too.
"""

from ml_collections import ConfigDict, config_dict

from configs import recipe


def get_config() -> ConfigDict:
    config = ConfigDict()
    config.task = "squad"  # the file in tasks/

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
    config.windows_without_answer = "null"  # trained as without an answer (Google's code); drop: left out

    config.no_answer = "auto"  # whether a question may have none: yes, no; auto: where one in the data has none
    config.max_answer = 30  # tokens of an answer at most; run_squad.py
    config.best = 20  # candidates that are told; run_squad.py

    config.metric = ""  # chooses the best evaluation: f1 (also where empty) or exact
    recipe.add_to(config)
    config.optimizer.learning_rate = 5e-5  # BERT, section 4.2: 5e-5, 3 epochs, batches of 32
    return config
