"""Reading comprehension by start and end: SQuAD 1.1 and 2.0, and files in the same format.

    --config=configs/squad.py --config.data=train-v1.1.json --config.validation=dev-v1.1.json

This config includes the settings in configs/questions.py (files and windows) and in configs/recipe.py (training).
"""

from ml_collections import ConfigDict

from bert import config_fields
from bert.prediction.squad import SquadOptions
from configs import questions, recipe


def get_config() -> ConfigDict:
    config = ConfigDict()
    config.task = "squad"  # the folder in tasks/
    questions.add_to(config)

    config.windows_without_answer = "null"  # trained as if without an answer (Google's code); drop: left out
    config.no_answer = "auto"  # whether a question may have no answer: yes, no; auto: yes if one in the data has none
    config_fields.add(config, SquadOptions, "max_answer", "best")

    config.metric = ""  # chooses the best evaluation: f1 (the default) or exact
    recipe.add_to(config)
    config.optimizer.learning_rate = 5e-5  # the peak; BERT, section 4.2: 5e-5, 3 epochs, batches of 32
    return config
