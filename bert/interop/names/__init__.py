"""Names of tensors in files, for reading and writing. A new family is a table here and a line in `FAMILIES`."""

from bert.architectures import ModelConfig
from bert.interop.names import bert, default, gpt
from bert.interop.names.table import NameTable

# model_type -> its tables: of model directories in Hugging Face layout first, then of other formats.
FAMILIES: dict[str, tuple[NameTable, ...]] = {
    "bert": (bert.HUGGING_FACE, bert.GOOGLE),
    "openai-gpt": (gpt.OPENAI_GPT,),
    "gpt2": (gpt.GPT2,),
}


def tables(config: ModelConfig) -> tuple[NameTable, ...]:
    """The name tables of the configuration's family; for a family without tables, the table of its parameter paths."""
    return FAMILIES.get(config.model_type) or (default.table(config),)


def table(config: ModelConfig) -> NameTable:
    """The names of the family in model directories."""
    return tables(config)[0]
