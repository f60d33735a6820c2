"""Settings shared by configs/bio_mrc.py and configs/squad.py: files of questions, and windows over passages."""

from ml_collections import ConfigDict, config_dict

from bert import config_fields
from bert.prediction.questions import WindowSettings
from tasks.questions.question_rows import QuestionSettings


def add_to(config: ConfigDict) -> None:
    config.data = config_dict.placeholder(str)  # a file of questions; docs/file_formats.md lists the formats
    config.validation = ""  # the same for validation; empty: whole articles are split off from the data
    config.validation_share = 0.1  # of the articles or documents, by seed, if no validation is given; 0: none
    config_fields.add(config, QuestionSettings)
    config_fields.add(config, WindowSettings)
