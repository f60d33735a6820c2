"""Fine-tuning on a table of your own: one or two text columns, a label, names or numbers.

    --config=configs/table.py --config.data=my.csv --config.text=review --config.label=stars

Values only. Lengths are in tokens. This config includes the settings in configs/recipe.py (training).
"""

from ml_collections import ConfigDict, config_dict

from bert import config_fields
from bert.prediction.classification import ClassificationOptions
from configs import recipe
from tasks.files.label_kinds import ColumnSettings
from tasks.files.records import TableSettings


def get_config() -> ConfigDict:
    config = ConfigDict()
    config.task = "classification"  # the folder in tasks/
    config.glue = ""  # a task of GLUE, whose files and columns are known; configs/glue.py sets it

    config.data = config_dict.placeholder(str)  # .csv .tsv .txt .jsonl .json .parquet (text also .gz), saved datasets
    config.validation = ""  # the same for validation; empty: split off from the data
    config.validation_share = 0.1  # of the rows, by seed and class, if no validation is given; 0: none
    config.text = ""  # the text column, or two: sentence1,sentence2
    config.label = ""  # the label column; or one column per class, with votes or probabilities: p_no,p_yes
    config_fields.add(config, ColumnSettings, "kind", "votes", "separator", "normalize")
    config.columns = ""  # names of the columns, for a file without a header
    config_fields.add(config, TableSettings, "delimiter", "quoting", "encoding", "ragged")
    config.class_weights = ""  # no=1,yes=3: the loss is sum(weight * loss) / sum(weight); balanced: by rarity

    config.max_length = 128  # tokens of an example at most, including [CLS] and [SEP]; longer ones are truncated
    config.classifier_dropout = config_dict.placeholder(float)  # before the scores; not set: as hidden_dropout
    config_fields.add(config, ClassificationOptions, "threshold")

    config.metrics = ""  # comma-separated names; empty: the usual ones for the kind
    config.metric = ""  # chooses the best evaluation; empty: the first of the metrics
    config.positive = ""  # the class of f1; empty: GLUE's for MRPC and QQP, otherwise the rarer of two in training
    config.baseline = False  # also fit TF-IDF + logistic regression, to see what BERT adds
    recipe.add_to(config)
    return config
