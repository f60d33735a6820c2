"""What a pretraining run starts from: drawn weights of the sizes that are set, or those of another model."""

import dataclasses
import pathlib
from typing import Any

from ml_collections import ConfigDict

from bert.architectures.bert import SIZES, BertConfig
from bert.errors import InputError
from bert.interop import sources
from bert.store.reader import Store
from bert.tokenizer.differences import differences
from bert.tokenizer.tokenizer import Tokenizer
from bert.training.pretraining import Pretraining
from bert.types import Params
from launch import runtime

_OWN_SIZES = ("num_layers", "hidden_size", "num_heads", "intermediate_size")  # settings that may be unset


def starting_point(config: ConfigDict, store: Store, task: Pretraining) -> tuple[BertConfig, Params | None]:
    """The encoder's configuration, and the parameters of ``config.init_from`` (None where it is empty)."""
    fresh = fresh_parts(config)
    if not config.init_from:
        fields = {name: value for name, value in config.model.items() if name != "size" and value is not None}
        if "hidden_size" in fields:
            fields.setdefault("intermediate_size", 4 * fields["hidden_size"])
        return BertConfig.of_size(config.model.size, vocab_size=store.vocab_size, **fields), None
    # A new next-sentence head without the pooler that it reads is refused below, with the whole list to ask for.
    pooler = ["pooler"] if "next_sentence" in fresh and "pooler" not in fresh else []
    found = sources.read(config.init_from, fresh=[*pooler, *fresh], seed=config.seed)
    check_tokenizer(config, found.tokenizer, store.tokenizer)
    needed = ("mlm", "pooler", "next_sentence") if task.pairs else ("mlm",)
    unasked = [part for part in found.report.fresh if part not in fresh]
    missing = [part for part in needed if part not in found.parts or part in unasked]
    if missing:
        way_out = f"start with new ones by --config.init_fresh={','.join([*fresh, *missing])}, or choose another model"
        raise InputError(f"{config.init_from}: has no {', '.join(missing)}; {way_out}")
    runtime.say(f"weights and sizes from {config.init_from}")
    head = {part: found.params["head"][part] for part in needed}
    changes = computing(config, found.config)
    return dataclasses.replace(found.config, **changes), {"encoder": found.params["encoder"], "head": head}


def check_tokenizer(config: ConfigDict, given: Tokenizer | None, prepared: Tokenizer) -> None:
    """Refuses weights whose token ids are not those of the text."""
    path = pathlib.Path(config.init_from)
    folder = path if path.is_dir() else path.parent  # a checkpoint's prefix is no folder
    if given is None:
        raise InputError(
            f"{config.init_from}: has no vocabulary, so nothing says that its token ids are those of {config.data}; "
            f"put the tokenizer.json or vocab.txt that it was trained with into {folder}"
        )
    if found := differences(given, prepared):
        raise InputError(
            f"{config.init_from}: its tokenizer is not that of {config.data}: {', '.join(found)}; prepare the text "
            f"again with --config.vocab={folder}"
        )


def fresh_parts(config: ConfigDict) -> list[str]:
    parts = [part.strip() for part in config.init_fresh.split(",") if part.strip()]
    if unknown := [part for part in parts if part not in ("mlm", "pooler", "next_sentence")]:
        raise InputError(f"config.init_fresh names {unknown[0]!r}; it may list mlm, pooler and next_sentence")
    if parts and not config.init_from:
        raise InputError("config.init_fresh needs config.init_from, for without weights all is new; leave it out")
    return parts


def computing(config: ConfigDict, given: BertConfig) -> dict[str, Any]:
    """The settings that may differ from a given encoder's: all but its sizes, its activation and how it was drawn."""
    fixed = ("size", *_OWN_SIZES, "max_position_embeddings", "hidden_act", "initializer_range")
    return {name: value for name, value in config.model.items() if name not in fixed}


def adopt(config: ConfigDict, given: BertConfig) -> None:
    """Sets what the weights of ``config.init_from`` decide, and says where that differs from what was asked for."""
    shape = (given.num_layers, given.hidden_size, given.num_heads)
    size = next((name for name, sizes in SIZES.items() if sizes == shape), "x".join(map(str, shape)))
    decided = {"size": size, "hidden_act": given.hidden_act, "max_position_embeddings": given.max_position_embeddings}
    decided |= {name: getattr(given, name) for name in _OWN_SIZES if config.model[name] is not None}
    for name, value in decided.items():
        if config.model[name] != value:
            runtime.say(f"config.model.{name} is {value}, as the weights of {config.init_from} have it")
            config.model[name] = value
