"""Refuses weights that are not a plain BERT, by tensor names and shapes: adapters, quantized weights, other models.

bert/architectures/config_keys.py checks config.json. Names of transformers and of Google's code are checked alike.

Source: peft ``tuners/``, adapters, bitsandbytes and torch.ao for what they leave in a file; transformers ``models/``.
"""

import re
from collections.abc import Collection, Iterable

from bert.architectures import config_keys
from bert.errors import InputError, printable
from bert.interop.formats.tensors import Tensors
from bert.interop.load_report import LoadReport
from bert.interop.model_directory import ConfigFile
from bert.interop.names import bert
from bert.interop.names.table import NameTable

MERGE = (
    "merge it into the weights with peft (PeftModel.from_pretrained(model, adapter).merge_and_unload()), save that "
    "model and load it"
)
# Part of a tensor's name -> what it belongs to, with the way out; every output depends on such a tensor.
_BESIDE = {
    r"loras?|(lora|ia3|hada|lokr|vera|oft|boft|randlora|fourierft|vblora)_\w+|base_layer|modules_to_save"
    r"|original_module": f"an adapter that is not merged; {MERGE}",
    r"adapters?|adapter_\w+|prefix_\w+|prompt_\w+|soft_prompts?": (
        "an adapter or a learned prompt, which cannot be merged; load it with the library that wrote it, or take its "
        "tensors out to load the model without it"
    ),
    r"SCB|weight_format|absmax|quant_(map|state)|nested_(absmax|quant_map)|q(weight|zeros)|g_idx|weight_fake_quant"
    r"|(weight|input|output|activation)_(scale|zero_point)\w*|\w*_quantizer|_amax|_packed_params|weight_packed": (
        "quantized weights; dequantize the model with the library that wrote it, and save it again"
    ),
}
_ROBERTA = r"^lm_head\.|^classifier\.(dense|out_proj)\."
_PROFILED = re.compile(r"[./](total_ops|total_params)$")  # counters that a profiler adds to each module


def refuse(tensors: Tensors, table: NameTable, file: ConfigFile, report: LoadReport) -> None:
    """Raises InputError for tensors (under the table's names) of another model, before any is called missing.

    The report gets a note where only the configuration says that they are a BERT's.
    """
    source = report.source
    for pattern, what in _BESIDE.items():
        if name := _first(rf"(^|\.)({pattern})(\.|$)", tensors):
            raise InputError(f"{source}: {printable(name)} belongs to {what}")
    for pattern, what in table.other_models.items():
        if name := _first(pattern, tensors):
            owner = f"{printable(name)} belongs to a model with {what}"
            raise InputError(f"{source}: {owner}; only a plain BERT can be loaded")
    _refuse_other_prefix(tensors, table, source)
    mark = _mark_of_roberta(tensors, file) if table is bert.HUGGING_FACE else None
    if mark and config_keys.says_bert(file.values):
        report.notes.append(f"{printable(mark)}, as in RoBERTa; positions count from 0: {file.path.name} says BERT")
    elif mark:
        raise InputError(
            f"{source}: {printable(mark)}, as in RoBERTa, whose positions count otherwise; if it is a BERT, write "
            f'"model_type": "bert" into {file.path.name}'
        )


def _first(pattern: str, names: Iterable[str]) -> str | None:
    search = re.compile(pattern).search
    return next((name for name in names if search(name.replace("/", "."))), None)


def _refuse_other_prefix(names: Collection[str], table: NameTable, source: str) -> None:
    """Refuses a token table under another prefix ("roberta.", "electra."), which is another model's."""
    tokens = table.token_table
    if tokens is None or tokens.name in names:
        return
    tail = tokens.name.removeprefix(table.prefix)
    if other := next((name for name in names if name.endswith(tail)), None):
        raise InputError(
            f"{source}: the weights are under '{printable(other.removesuffix(tail))}' ({printable(other)}); only "
            f"'{table.prefix}' or no prefix can be loaded: another model needs its own program, another prefix renaming"
        )


def _mark_of_roberta(tensors: Tensors, file: ConfigFile) -> str | None:
    """What shows that the weights are a RoBERTa's, whatever the file calls them."""
    if file.values.get("pad_token_id") == 1:
        return f"pad_token_id in {file.path.name} is 1"
    if name := _first(_ROBERTA, tensors):
        return f"there is {name}"
    table = bert.HUGGING_FACE.parts["encoder"][1].name
    if table not in tensors or (positions_PD := tensors[table]).ndim != 2:
        return None
    rows = len(positions_PD)
    if rows > 8 and (rows - 2).bit_count() == 1:
        return f"there are {rows} positions, two more than a power of two"
    return f"row 1 of {table} is zero" if rows > 2 and not positions_PD[1].any() else None


def refuse_inside(unread: Collection[str], used: Collection[str], table: NameTable, source: str) -> None:
    """Raises InputError for an unread tensor among those that are used: another model computes with it."""
    modules = {re.split(r"[./](?:dense[./])?\w+$", name)[0] for name in used}
    if table.prefix:
        modules |= {f"{table.prefix}{mark}{part}" for mark in "./" for part in ("encoder", "embeddings")}
    inside = re.compile(rf"({'|'.join(map(re.escape, sorted(modules)))})[./]")
    for name in unread:
        # An optimizer's memory of a weight has the weight's name and "/" in front.
        if inside.match(name) and name.rpartition("/")[0] not in used and not _PROFILED.search(name):
            place = f"{source}: {printable(name)} is among the model's weights and none of them"
            raise InputError(f"{place}; another model computes with it: take it out of the file if it is not in use")
