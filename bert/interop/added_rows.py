"""Grows a model for tokens that its vocabulary gains: a row for each wherever a parameter has one for each entry."""

import dataclasses

import numpy as np

from bert import architectures
from bert.architectures import ModelConfig
from bert.errors import check_choice
from bert.interop import names
from bert.interop.model_directory import ModelDirectory
from bert.interop.parameters import class_count, flatten, put
from bert.tokenizer.tokenizer import Tokenizer
from bert.types import Params

ROWS = ("pieces", "mean")  # the default is first


def with_tokenizer(model: ModelDirectory, tokenizer: Tokenizer, rows: str) -> ModelDirectory:
    """The model with a tokenizer that has the entries of its own, and more behind them; the report says how many.

    Args:
      rows: what a new row starts as: "pieces", the mean of the rows of the pieces that the token was cut into; "mean",
        the mean of all rows (Hewitt 2021).
    """
    check_choice("added_rows", rows, ROWS)
    before, count = model.tokenizer, tokenizer.vocab_size
    assert before is not None  # the caller has read texts with it
    new, every_id = tokenizer.vocab[before.vocab_size :], list(range(before.vocab_size))
    if not new:
        return model._replace(tokenizer=tokenizer)
    ids_K = before.encode_ids(new) if rows == "pieces" else [[]] * len(new)
    size = max(count, model.config.vocab_size)  # a table may have had unused rows
    axes, params = _vocabulary_axes(model), Params()
    for path, value in flatten(model.params):
        if path in axes:
            value_V = np.moveaxis(value, axes[path], 0)
            grown_V = np.zeros((size, *value_V.shape[1:]), np.float32)
            grown_V[: len(value_V)] = value_V
            for i, ids in enumerate(ids_K, before.vocab_size):
                grown_V[i] = value_V[ids or every_id].mean(0)
            value = np.moveaxis(grown_V, 0, axes[path])
        put(params, path, value)
    note = (
        f"{len(new)} new tokens; their rows start as the mean of {'their pieces' if rows == 'pieces' else 'all rows'}"
    )
    report = dataclasses.replace(model.report, notes=[*model.report.notes, note])
    config = architectures.with_settings(model.config, {"vocab_size": size})
    return model._replace(config=config, params=params, tokenizer=tokenizer, report=report)


def _vocabulary_axes(model: ModelDirectory) -> dict[str, int]:
    """Path of each parameter with an entry's row -> the axis of the entries."""
    larger = architectures.with_settings(model.config, {"vocab_size": model.config.vocab_size + 1})
    both = zip(_shapes(model, model.config), _shapes(model, larger), strict=True)
    return {
        path: next(axis for axis, pair in enumerate(zip(one, other, strict=True)) if pair[0] != pair[1])
        for (path, one), (_, other) in both
        if one != other
    }


def _shapes(model: ModelDirectory, config: ModelConfig) -> list[tuple[str, tuple[int, ...]]]:
    """(path, shape) of each parameter that the model has, but for the layers."""
    table = names.table(config)
    sizes = table.axis_sizes(config, class_count(model.params))
    return [(weight.path, weight.shape(sizes)) for weight in table.weights(model.parts)]
