"""Translation: an encoder-decoder trained on pairs of sentences, with a vocabulary made of these.

    --config=configs/translation.py:transformer-tiny --config.data=train.en,train.de --config.validation=val.en,val.de

SIZE: transformer-tiny (default), -small, -base or -big; recurrent bahdanau, bilinear, rnn (no attention); convs2s; of
the BERT that config.init_from names: bert2bert, bertshare, bert2rnd, rnd2bert or rnd2rnd. Values only. This config
includes the settings in configs/recipe.py (training).
"""

from typing import Any

from ml_collections import ConfigDict, config_dict

from bert import architectures, config_fields
from bert.errors import check_choice
from bert.interop.warm_start import VARIANTS, WarmStart
from bert.prediction.translation import TranslationOptions
from configs import recipe
from tasks.files.records import TableSettings


def _transformer(layers: int, width: int, heads: int, inner: int) -> dict[str, Any]:
    """Blocks of each side, width, heads, width of the feed-forward part; the recipe of a small one on small data."""
    sizes = {"num_layers": layers, "hidden_size": width, "num_heads": heads, "intermediate_size": inner}
    others = {"hidden_dropout": 0.2, "initializer_range": width**-0.5}
    rate = {"learning_rate": 3e-3, "b2": 0.98, "eps": 1e-9, "clip_norm": 0.0}
    return {"model": {"model_type": "transformer", **sizes, **others}, "optimizer": rate}


def _recurrent(**model: Any) -> dict[str, Any]:
    """A recurrent encoder-decoder for small data."""
    rate = {"learning_rate": 2e-3, "clip_norm": 1.0}
    return {"model": {"model_type": "rnn-encoder-decoder", "hidden_dropout": 0.3, **model}, "optimizer": rate}


def _convs2s(layers: int, width: int, embedded: int) -> dict[str, Any]:
    """Blocks of each side, their width, width of the embeddings; the recipe of a small one on small data."""
    sizes = {"num_layers": layers, "hidden_size": width, "embedding_size": embedded, "hidden_dropout": 0.2}
    rate = {"learning_rate": 2e-3, "b2": 0.98, "eps": 1e-9}
    # A step takes 1.7 times that of the tiny Transformer, so these epochs take as long as its.
    return {"model": {"model_type": "convs2s", **sizes}, "optimizer": rate, "epochs": 24.0}


def _of_bert(variant: str) -> dict[str, Any]:
    """Its sizes are those of config.init_from."""
    rate = {"learning_rate": 1e-4, "weight_decay": 0.01}
    return {"model": {"model_type": "encoder-decoder", "variant": variant}, "optimizer": rate, "epochs": 20.0}


# What a size changes: its architecture, of `bert.architectures.REGISTRY`, with values of its configuration, and the
# settings of training that fit it. Tiny: Wu et al. 2021; base and big: Vaswani et al. 2017, table 3. Small data want
# small models.
SIZES: dict[str, dict[str, Any]] = {
    "transformer-tiny": _transformer(4, 128, 4, 256),
    "transformer-small": _transformer(4, 256, 4, 1024),
    "transformer-base": _transformer(6, 512, 8, 2048),
    "transformer-big": _transformer(6, 1024, 16, 4096),
    "rnn": _recurrent(score="none"),
    "bahdanau": _recurrent(),
    "bilinear": _recurrent(score="bilinear", output="linear", reset="after"),
    "convs2s": _convs2s(4, 256, 256),
    **{variant: _of_bert(variant) for variant in VARIANTS},
}


def get_config(size: str = "transformer-tiny") -> ConfigDict:
    check_choice("the size of --config=configs/translation.py:SIZE", size, tuple(SIZES))
    config = ConfigDict()
    config.task = "translation"  # the folder in tasks/

    # SOURCE,TARGET: two text files, a sentence a line (also .gz); or a table of two columns: csv, tsv, jsonl, parquet
    config.data = config_dict.placeholder(str)
    config.validation = ""  # the same for validation; empty: split off from the data
    config.validation_share = 0.05  # of the pairs, by seed, if no validation is given; 0: none
    config.text = ""  # of a table: the columns SOURCE,TARGET; empty: the first two
    config.columns = ""  # names of the columns, for a table without a header
    config_fields.add(config, TableSettings, "delimiter", "quoting", "encoding", "ragged")

    config.vocab_size = 10_000  # byte-level BPE of both sides of the training part; not read with init_from
    config_fields.add(config, TranslationOptions)
    # Comma-separated names: nll, perplexity, accuracy, exact, bleu, bleu_lower, chrf; empty: the first three.
    config.metrics = ""
    config.metric = ""  # chooses the best evaluation: nll (the default), bleu (of greedy translations), ...

    recipe.add_to(config)
    config_fields.remove(config, "model")
    config.model = ConfigDict()
    config.model.model_type = SIZES[size]["model"]["model_type"]  # the architecture
    kind = architectures.config_class("config.model.model_type", config.model.model_type)
    if "variant" in SIZES[size]["model"]:
        config_fields.add(config, WarmStart, section="model")
        config_fields.add(config, kind, *architectures.COMPUTED, section="model")
    else:
        config_fields.add(config, kind, section="model", without=("start_id",))
    config.epochs = 40.0
    config.batch_size = 128  # pairs; of Multi30k about 1,900 words of the target
    config.label_smoothing = 0.1  # Vaswani et al. 2017, section 5.4
    config.optimizer.update(weight_decay=0.0, ema_decay=0.998)  # averaged: less noise in small models
    config.update(SIZES[size])
    return config
