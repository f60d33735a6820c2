"""Captions of pictures: a model that makes a grid of cells of a picture and attends to it word by word.

    --config=configs/captioning.py                                          scenes that are drawn here
    --config=configs/captioning.py --config.data=captions.csv               columns picture and caption
    --config=configs/captioning.py:features --config.data=features.npz      a grid of features of each picture

KIND: transformer (default), features, attend (Xu et al. 2015) or bilinear, of which the last two are recurrent. Values
only. This config includes the settings in configs/recipe.py (training).
"""

from typing import Any

from ml_collections import ConfigDict

from bert import architectures, config_fields
from bert.errors import check_choice
from bert.prediction.translation import TranslationOptions
from configs import recipe
from tasks.files.records import TableSettings

_TRANSFORMER = {
    "model_type": "picture-transformer", "num_layers": 2, "hidden_size": 128, "num_heads": 4, "intermediate_size": 256,
    "hidden_dropout": 0.1, "initializer_range": 0.09, "norm": "pre",
}  # fmt: skip
# All read 8 x 8 cells of a picture of 64 x 64 pixels.
_RECURRENT = {
    "model_type": "picture-rnn", "embedding_size": 128, "hidden_size": 128, "decoder_size": 256, "output_size": 128,
    "attention_size": 128, "hidden_dropout": 0.1,
}  # fmt: skip
KINDS: dict[str, dict[str, Any]] = {
    "transformer": {"model": _TRANSFORMER},
    "attend": {"model": _RECURRENT | {"cell": "lstm"}},
    "bilinear": {"model": _RECURRENT | {"score": "bilinear", "output": "linear", "reset": "after"}},
    "features": {"model": _TRANSFORMER | {"cells": "linear", "patch_size": 1}, "images": "features"},
}


def get_config(kind: str = "transformer") -> ConfigDict:
    check_choice("the kind of --config=configs/captioning.py:KIND", kind, tuple(KINDS))
    config = ConfigDict()
    config.task = "captioning"  # the folder in tasks/

    # A table with the names of pictures and their captions (csv, tsv, jsonl, parquet); an .npz file; or scenes, which
    # are drawn: scenes:PART:COUNT, with the parts train, validation, test and held-out (colours of shapes that no other
    # part has). emoji:PART:TABLE are people in a table of emoji, with the parts train and held-out (skins of roles).
    config.data = "scenes"
    config.validation = ""  # the same for validation; empty: split off from the data
    config.validation_share = 0.05  # of the pictures, by seed, if no validation is given; 0: none
    config.text = ""  # of a table: the columns PICTURE,CAPTION; empty: the first two
    config.columns = ""  # names of the columns, for a table without a header
    config_fields.add(config, TableSettings, "delimiter", "quoting", "encoding", "ragged")
    config.images = "images"  # of an .npz file: the array with pictures, [N, X, Y, channels], or grids of features
    config.captions = "captions"  # of an .npz file: the array with the captions, [N]

    config.vocab_size = 1_000  # byte-level BPE of the captions of the training part; not read with init_from
    config_fields.add(config, TranslationOptions)
    config.metrics = "nll,exact"  # comma-separated names: nll, perplexity, accuracy, exact, bleu, chrf
    config.metric = ""  # chooses the best evaluation: nll (the default), exact, bleu (of greedy captions), ...

    recipe.add_to(config)
    config_fields.remove(config, "model")
    config.model = ConfigDict()
    config.model.model_type = KINDS[kind]["model"]["model_type"]  # the architecture
    kind_class = architectures.config_class("config.model.model_type", config.model.model_type)
    sizes_of_pictures = ("height", "width", "channels")
    config_fields.add(config, kind_class, section="model", without=("start_id", *sizes_of_pictures))
    config.packed = False  # a row holds one picture
    config.epochs = 10.0
    config.batch_size = 64
    config.optimizer.learning_rate = 1e-3
    config.optimizer.weight_decay = 0.0
    config.update(KINDS[kind])
    return config
