"""Names of tensors in files, for reading and writing. A new family is a table here and a line in `FAMILIES`."""

from collections.abc import Callable
from typing import Any

from bert.architectures import ModelConfig
from bert.interop.names import bert, default, encoder_decoder, gpt
from bert.interop.names.table import NameTable

# model_type -> its tables: of model directories in Hugging Face layout first, then of other formats. A function makes
# the table of a configuration.
FAMILIES: dict[str, tuple[NameTable, ...] | Callable[[Any], NameTable]] = {
    "bert": (bert.HUGGING_FACE, bert.GOOGLE),
    "openai-gpt": (gpt.OPENAI_GPT,),
    "gpt2": (gpt.GPT2,),
    "encoder-decoder": encoder_decoder.table,
}


def tables(config: ModelConfig) -> tuple[NameTable, ...]:
    """The name tables of the configuration's family; for a family without tables, the table of its parameter paths."""
    family = FAMILIES.get(config.model_type, default.table)
    return (family(config),) if callable(family) else family


def table(config: ModelConfig) -> NameTable:
    """The names of the family in model directories."""
    return tables(config)[0]
