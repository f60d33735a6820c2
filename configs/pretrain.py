"""Pretraining on a prepared folder: masked words and next sentence, with the recipe of the BERT paper.

    --config=configs/pretrain.py:SIZE        SIZE: tiny, mini, small, medium, base (default), large
    --config=configs/pretrain.py:birnn       another architecture: birnn, dilated, strided; gpt, gpt2 (of size mini)

Values only: the other settings are in configs/every_run.py and in the dataclasses below. Lengths are in tokens.
"""

from collections.abc import Callable

from ml_collections import ConfigDict, config_dict

from bert import architectures, config_fields
from bert.architectures.bert import BertConfig
from bert.architectures.transformer import SIZED
from bert.data.settings import BatchSettings
from bert.training.train import LoopSettings
from configs import every_run


def get_config(size: str = "base") -> ConfigDict:
    config = ConfigDict()
    config.data = config_dict.placeholder(str)  # folder written by bert prepare
    # mlm: masked words; blank: each word from all others (birnn, dilated); causal: each word from those before it (GPT)
    config.objective = "mlm"
    config.init_fresh = ""  # parts of the head to initialise if init_from lacks them: mlm, pooler, next_sentence
    config.total_steps = 1_000_000  # optimizer steps; BERT appendix A.2: 1,000,000
    config.batch_size = 256  # rows over all devices; BERT appendix A.2: 256
    config.max_length = 128  # tokens per row, including [CLS] and [SEP]; BERT trains 90 % of its steps at 128
    every_run.add_to(config)

    config.model.model_type = "bert"  # the architecture: bert, openai-gpt, gpt2; birnn, dilated, strided
    config.model.size = size  # a size released by Google; each of the next four overrides its value, if set
    others = ("hidden_act", "max_position_embeddings", "initializer_range")
    config_fields.add(config, BertConfig, *SIZED, *others, section="model", unset=SIZED)
    config_fields.add(config, BatchSettings, section="examples", without=("seed", "predicts"))
    config.examples.objective = config_dict.placeholder(str)

    config.optimizer.learning_rate = 1e-4  # the peak; BERT appendix A.2: 1e-4
    config.optimizer.warmup_steps = 10_000  # steps from rate 0 up to the peak; BERT appendix A.2: 10,000 (1 %)
    config.warmup_share = config_dict.placeholder(float)  # of all steps, instead of optimizer.warmup_steps

    config_fields.add(config, LoopSettings, "evaluate_every", "save_every")
    # Texts with [MASK] whose answers are printed before and after training; causal: to continue; '' = none
    config.probes = ()
    if size in OTHERS:
        OTHERS[size](config)
    return config


def _gpt(config: ConfigDict, model_type: str = "openai-gpt") -> None:
    config.update(objective="causal", model={"model_type": model_type, "size": "mini", "hidden_act": "gelu_new"})
    # Radford et al. 2018, section 4.1
    config.optimizer.update(learning_rate=2.5e-4, schedule="cosine", warmup_steps=2_000)


def _gpt2(config: ConfigDict) -> None:
    _gpt(config, "gpt2")


def _without_attention(config: ConfigDict, model_type: str, objective: str, packed: bool = True) -> None:
    """The fields of another configuration instead of BERT's."""
    config_fields.remove(config, "model")
    config.update(model={"model_type": model_type}, objective=objective, examples={"packed": packed})
    config_fields.add(config, architectures.config_class("config.model.model_type", model_type), section="model")
    config.update(examples={"objective": "none"}, optimizer={"learning_rate": 1e-3})


# Beside the sizes of BERT.
OTHERS: dict[str, Callable[[ConfigDict], None]] = {
    "gpt": _gpt,
    "gpt2": _gpt2,
    "birnn": lambda config: _without_attention(config, "birnn", "blank"),
    "dilated": lambda config: _without_attention(config, "dilated", "blank"),
    "strided": lambda config: _without_attention(config, "strided", "mlm", packed=False),
}
