"""Translation: an encoder-decoder trained on pairs of sentences, with a vocabulary made of these.

    --config=configs/translation.py:transformer-tiny --config.data=train.en,train.de --config.validation=val.en,val.de

SIZE: transformer-tiny (default), -small, -base or -big. Values only. This config includes the settings in
configs/recipe.py (training).
"""

from ml_collections import ConfigDict, config_dict

from bert import config_fields
from bert.architectures.encoder_decoder import EncoderDecoderConfig
from bert.errors import check_choice
from bert.prediction.translation import TranslationOptions
from configs import recipe
from tasks.files.records import TableSettings

# Blocks of each side, width, heads, width of the feed-forward part. Tiny: Wu et al. 2021; base and big: Vaswani et al.
# 2017, table 3. Small data want small models.
SIZES = {
    "transformer-tiny": (4, 128, 4, 256),
    "transformer-small": (4, 256, 4, 1024),
    "transformer-base": (6, 512, 8, 2048),
    "transformer-big": (6, 1024, 16, 4096),
}


def get_config(size: str = "transformer-tiny") -> ConfigDict:
    check_choice("the size of --config=configs/translation.py:SIZE", size, tuple(SIZES))
    layers, width, heads, inner = SIZES[size]
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
    config.metrics = ""  # comma-separated names: nll, perplexity, accuracy, bleu, chrf; empty: the first three
    config.metric = ""  # chooses the best evaluation: nll (the default), bleu (of greedy translations), ...

    recipe.add_to(config)
    config_fields.remove(config, "model")
    config.model = ConfigDict()
    config.model.model_type = "transformer"  # the architecture
    config_fields.add(config, EncoderDecoderConfig, section="model", without=("start_id",))
    config.model.update(num_layers=layers, hidden_size=width, num_heads=heads, intermediate_size=inner)
    config.model.update(hidden_dropout=0.2, initializer_range=width**-0.5)
    config.epochs = 40.0
    config.batch_size = 128  # pairs; of Multi30k about 1,900 words of the target
    config.label_smoothing = 0.1  # Vaswani et al. 2017, section 5.4
    config.optimizer.update(learning_rate=3e-3, weight_decay=0.0, b2=0.98, eps=1e-9, clip_norm=0.0)
    return config
