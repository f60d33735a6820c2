"""Where a run starts: its newest checkpoint, the weights of another model, or random weights."""

import pathlib
from collections.abc import Sequence
from typing import Any

from ml_collections import ConfigDict

from bert import architectures
from bert.architectures import ModelConfig
from bert.architectures.transformer import SIZED, SIZES, TransformerConfig
from bert.errors import InputError, listed, printable
from bert.interop import added_rows, sources
from bert.interop.model_directory import ModelDirectory
from bert.store.reader import Store
from bert.tokenizer.added_words import words_of
from bert.tokenizer.differences import differences
from bert.tokenizer.tokenizer import Tokenizer
from bert.training import run_directory
from launch import runtime
from launch.runs import Start
from tasks.job import ExamplesJob

HEAD_PARTS = ("mlm", "pooler", "next_sentence")  # of pretraining


def for_pretraining(config: ConfigDict, store: Store, workdir: pathlib.Path, *, pairs: bool) -> Start:
    """The encoder, and the parameters of ``config.init_from`` where it names a model and the run has no checkpoint.

    Settings that the weights decide are set to what they are, with a line that says so. ``pairs``: whether the head has
    a next-sentence part.
    """
    if run_directory.has_checkpoints(workdir):  # what the run was started from need not exist any more
        start = Start(_computed(config, sources.run_encoder(workdir)), store.tokenizer, None)
    elif config.init_from:
        start = _from_weights(config, store, HEAD_PARTS if pairs else ("mlm",))
    else:
        _fresh_parts(config)
        _say_that_none_is_new(config)
        encoder = architectures.described(config.model, vocab_size=store.vocab_size)
        return Start(_for_objective(config, encoder), store.tokenizer, None)
    encoder = start.config
    if config.init_from:
        for name, value in _decided(config, encoder).items():
            if config.model[name] != value:
                runtime.say(f"config.model.{name} is {value}, as the weights of {config.init_from} have it")
                config.model[name] = value
    return start


def _decided(config: ConfigDict, encoder: ModelConfig) -> dict[str, Any]:
    """The settings of ``config.model`` that weights decide, as these weights have them."""
    wanted = architectures.described_class(config.model).model_type
    if encoder.model_type != wanted:
        both = f"{config.init_from}: is a {encoder.model_type!r} encoder, config.model that of a {wanted!r}"
        raise InputError(f"{both}; start with the config file of the former, or from other weights")
    if not isinstance(encoder, TransformerConfig):
        names = [name for name in config.model if name not in ("model_type", *architectures.COMPUTED)]
        return {name: getattr(encoder, name) for name in names}
    shape = (encoder.num_layers, encoder.hidden_size, encoder.num_heads)
    size = next((name for name, sizes in SIZES.items() if sizes == shape), "x".join(map(str, shape)))
    names = ["hidden_act", "max_position_embeddings", *(name for name in SIZED if config.model[name] is not None)]
    return {"size": size} | {name: getattr(encoder, name) for name in names}


def for_finetuning(config: ConfigDict, examples: ExamplesJob, workdir: pathlib.Path, *, seed: int) -> Start:
    """The model that ``config.init_from`` names with a head for the examples; of a run with a checkpoint its own."""
    fresh, labels = examples.fresh, examples.labels
    if run_directory.has_checkpoints(workdir):
        saved = run_directory.read(workdir).get("labels", [])
        # Other labels than the run's are refused with its other settings.
        same = tuple(saved) if sorted(saved) == sorted(labels) else tuple(labels)
        encoder = _computed(config, sources.run_encoder(workdir))
        return Start(encoder, run_directory.read_tokenizer(workdir), None, same)
    if not config.init_from:
        if (new := examples.new_model(config)) is None:
            raise InputError("config.init_from is missing; name a model directory, a run, or a Google checkpoint")
        if new[1] is not None:
            check_length(config.max_length, new[0], "config.model")
        return Start(*new, None, labels)
    loaded = sources.read(config.init_from, fresh=fresh, labels=labels, seed=seed)
    if examples.has_tokenizer != architectures.has_tokenizer(loaded.config):
        kind, reads = loaded.config.model_type, "no texts" if examples.has_tokenizer else "texts"
        what = f"{config.init_from} is a {kind!r} encoder, which reads {reads}"
        raise InputError(f"config.task is {config.task!r}, but {what}; start from another model")
    if examples.has_tokenizer:
        loaded = examples.started(config, _for_texts(config, loaded), seed)
    head = {part: value for part, value in loaded.params["head"].items() if part in fresh}
    params = {"encoder": loaded.params["encoder"], "head": head}
    return Start(_computed(config, loaded.config), loaded.tokenizer, params, loaded.labels)


def _for_texts(config: ConfigDict, loaded: ModelDirectory) -> ModelDirectory:
    """The model with the tokens of ``config.add_tokens``. Refuses one without a vocabulary, or too few positions."""
    if loaded.tokenizer is None:
        raise InputError(f"{config.init_from}: has no vocabulary, so it cannot read texts; put its vocab.txt there")
    check_length(config.max_length, loaded.config, config.init_from)
    tokenizer = loaded.tokenizer.add_words(words_of(config.add_tokens))
    if config.optimizer.frozen_layers >= 0 and tokenizer.vocab_size > loaded.tokenizer.vocab_size:
        runtime.say("notice: frozen_layers freezes the embeddings, so the rows of the new tokens are not trained")
    return _with_tokenizer(config, loaded, tokenizer)


def check_length(max_length: int, encoder: ModelConfig, source: str, hint: str = "") -> None:
    """Refuses rows that are longer than the encoder takes."""
    if max_length > encoder.max_length:
        rule = f"{source} has {encoder.max_length} positions; lower it{hint}"
        raise InputError(f"config.max_length is {max_length}, but {rule}")


def _for_objective(config: ConfigDict, encoder: ModelConfig) -> ModelConfig:
    """The encoder; of a BERT for the causal objective the decoder."""
    return architectures.with_settings(encoder, {"is_decoder": True} if config.objective == "causal" else {})


def _from_weights(config: ConfigDict, store: Store, needed: Sequence[str]) -> Start:
    fresh = _fresh_parts(config)
    # A new next-sentence head without the pooler that it reads is refused below, with the whole list to ask for.
    pooler = ["pooler"] if "next_sentence" in fresh and "pooler" not in fresh else []
    loaded = sources.read(config.init_from, fresh=[*pooler, *fresh], seed=config.seed)
    if loaded.tokenizer and store.tokenizer.extends(loaded.tokenizer):
        loaded = _with_tokenizer(config, loaded, store.tokenizer)
    else:
        _say_that_none_is_new(config)
    _check_tokenizer(config, loaded.tokenizer, store.tokenizer)
    drawn = set(loaded.report.fresh) - set(fresh)
    if missing := [part for part in needed if part not in loaded.parts or part in drawn]:
        way_out = f"start with new ones by --config.init_fresh={','.join([*fresh, *missing])}, or choose another model"
        raise InputError(f"{config.init_from}: has no {', '.join(missing)}; {way_out}")
    runtime.say(f"weights and sizes from {config.init_from}")
    head = {part: loaded.params["head"][part] for part in needed if loaded.params["head"][part]}
    params = {"encoder": loaded.params["encoder"], "head": head}
    return Start(_for_objective(config, _computed(config, loaded.config)), store.tokenizer, params)


def _with_tokenizer(config: ConfigDict, loaded: ModelDirectory, tokenizer: Tokenizer) -> ModelDirectory:
    """The model with a tokenizer that has more tokens; a line says which of them are new."""
    before = loaded.tokenizer.vocab_size if loaded.tokenizer else 0
    grown = added_rows.with_tokenizer(loaded, tokenizer, config.added_rows)
    if new := tokenizer.vocab[before:]:
        sizes = f"{before:,} entries become {tokenizer.vocab_size:,}"
        runtime.say(printable(f"{len(new):,} new tokens ({listed(new, 5)}): {sizes}"))
    else:
        _say_that_none_is_new(config)
    return grown


def _say_that_none_is_new(config: ConfigDict) -> None:
    if config.added_rows != added_rows.ROWS[0]:
        runtime.say(f"notice: added_rows is {config.added_rows!r}, which has no effect, for no token is new")


def _check_tokenizer(config: ConfigDict, tokenizer: Tokenizer | None, prepared: Tokenizer) -> None:
    """Refuses weights whose token ids are not those of the text."""
    source, path = config.init_from, pathlib.Path(config.init_from)
    folder = path if path.is_dir() else path.parent  # a checkpoint's prefix is no folder
    if tokenizer is None:
        raise InputError(
            f"{source}: has no vocabulary, so its token ids may not be those of {config.data}; put the tokenizer.json "
            f"or vocab.txt that it was trained with into {folder}"
        )
    if differing := ", ".join(differences(tokenizer, prepared)):
        way_out = f"prepare the text again with --config.vocab={folder}"
        raise InputError(f"{source}: its tokenizer is not that of {config.data}: {differing}; {way_out}")


def _fresh_parts(config: ConfigDict) -> list[str]:
    parts = [part.strip() for part in config.init_fresh.split(",") if part.strip()]
    if unknown := [part for part in parts if part not in HEAD_PARTS]:
        raise InputError(f"config.init_fresh names {unknown[0]!r}; it may list mlm, pooler and next_sentence")
    if parts and not config.init_from:
        raise InputError("config.init_fresh needs config.init_from, for without weights all is new; leave it out")
    return parts


def _computed(config: ConfigDict, encoder: ModelConfig) -> ModelConfig:
    """The encoder with the settings that may differ from weights."""
    changes = {name: config.model[name] for name in architectures.COMPUTED if name in config.model}
    return architectures.with_settings(encoder, changes)
