"""The class page: attention step by step, of a loaded model or of a few numbers, as one HTML file.

Python puts the numbers into the template as JSON; attention_numbers.js computes all steps from them in the browser, and
attention_page.js draws them.
Arrays are base64 of float32, little-endian. Axes: K layer, N head, T piece, H head width, P mask, V row of the token
table.
"""

import json
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from bert import attention_steps, json_files
from bert.errors import InputError, check_range, short_repr
from bert.inference import LoadedModel
from bert.pages import template

_ROOM_FOR_MASKS = 2_000_000  # of these, for the logits of masks beyond the first


def of_model(model: LoadedModel, text: str, layer: int = 0, head: int = 0, top: int = 5) -> str:
    """The page on a text with at least one mask, with all layers and heads as far as they fit into `template.LIMIT`.

    Args:
      layer, head: shown first; with a long text the file holds only this layer, or this head.
      top: how many of the likeliest words are shown first.

    Raises InputError as `LoadedModel.masks` does, for a layer or head that is not there, and for an encoder that does
    not show its layers.
    """
    check_range("top", top, at_least=1, whole=True)
    attention_steps.check(model.config, layer, head)
    logits_PV, tokenizer, config = model.masks(text).logits_PV, model.vocabulary, model.config
    ids, type_ids = model.join(text, None, special_in_text=True)
    masks = [t for t, piece in enumerate(ids) if piece == tokenizer.mask_id][: len(logits_PV)]
    masks = masks[: max(1, _ROOM_FOR_MASKS * 3 // (16 * logits_PV.shape[1]))]
    T, D, N = len(ids), config.hidden_size, attention_steps.head_count(config)
    sizes = {"vocabulary": len(tokenizer.vocab), "layers": config.num_layers, "hidden size": D, "heads": N}
    data: dict[str, Any] = {
        "model": template.name_of(model.source),
        "text": text,
        "sizes": list((sizes | {"numbers per head": D // N, "maximum length": config.max_length}).items()),
        "layer_count": config.num_layers,
        "hidden_size": D,
        "width": D // N,
        "tokens": [tokenizer.vocab[i] for i in ids],
        "ids": ids,
        "mask_id": tokenizer.mask_id,
        "masks": masks,
        "vocabulary": tokenizer.vocab,
        "logits": template.encoded(logits_PV[: len(masks)]),
        "layer": layer,
        "head": head,
        "top": top,
    }
    room = template.LIMIT - len(_filled(data).encode()) - 50_000
    choices = [(range(config.num_layers), range(N)), ([layer], range(N)), ([layer], [head])]
    sizes_of_choices = [len(layers) * (len(heads) * 16 * T * D // N + 120 * T) for layers, heads in choices]
    layers, heads = next((c for c, size in zip(choices, sizes_of_choices, strict=True) if size <= room), choices[-1])
    steps = attention_steps.of_layers(model.on_device, config, ids, type_ids, layers)
    data |= {name: template.encoded(steps[name][:, list(heads)]) for name in ("q", "k", "v")}
    data |= {"layers": list(layers), "heads": list(heads), "norms": _norms(steps), "hidden": _hidden(steps)}
    return _filled(data)


def of_numbers(path: pathlib.Path | None = None) -> str:
    """The page on numbers of a JSON file: tokens, keys, queries, values, vocabulary, logits, and maybe the true word.

    None: those of the class sheet, class_sheet.json. The page lets them be changed. Raises InputError, naming the
    file, for numbers that do not fit together.
    """
    if path is None:
        return _filled(_numbers(json.loads(template.read(__package__, "class_sheet.json")), "class_sheet.json"))
    try:
        return _filled(_numbers(json_files.read_object(path), str(path)))
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; give a JSON file with tokens, keys, queries and values") from None


def _numbers(values: Mapping[str, Any], source: str) -> dict[str, Any]:
    if len(values) == 1 and isinstance(inner := next(iter(values.values())), dict):
        values = inner  # the sheet inside an object
    names = ("tokens", "keys", "queries", "values", "vocabulary", "logits")
    if missing := [name for name in names if name not in values]:
        raise InputError(f"{source}: {missing[0]} missing; the page needs {', '.join(names)}")
    numbers = {name: values[name] for name in names}
    if isinstance(words := numbers["vocabulary"], dict):  # word -> id
        numbers["vocabulary"] = sorted(words, key=lambda word: str(words[word]).zfill(20))
    for name in ("tokens", "vocabulary"):
        if not _is_list(numbers[name], str) or not numbers[name]:
            raise InputError(f"{source}: {name} is {short_repr(numbers[name])}; it must be a list of texts")
    T, V, widths = len(numbers["tokens"]), len(numbers["vocabulary"]), dict[str, int]()
    for name, length in (("keys", T), ("queries", T), ("values", T), ("logits", V)):
        rows = numbers[name]
        if not isinstance(rows, list) or len(rows) != length:
            raise InputError(f"{source}: {name} must be a list of {length}, as there are tokens, or words for logits")
        for i, row in enumerate([[row] for row in rows] if name == "logits" else rows):
            width = widths.setdefault("keys" if name == "queries" else name, len(row) if isinstance(row, list) else 1)
            if not _is_list(row, int, float) or len(row) != width or not row:
                raise InputError(f"{source}: {name}[{i}] is {short_repr(rows[i])}; it must be {width} numbers")
    word = values.get("word", numbers["vocabulary"][0])
    if word not in numbers["vocabulary"]:
        raise InputError(f"{source}: word is {short_repr(word)}, which is not in the vocabulary; correct one of them")
    return numbers | {"word": word, "top": V}


def _is_list(value: Any, *kinds: type) -> bool:
    return isinstance(value, list) and all(isinstance(x, kinds) and not isinstance(x, bool) for x in value)


def _norms(steps: Mapping[str, np.ndarray]) -> dict[str, list[list[float]]]:
    """Name of a vector -> its Euclidean length at [layer][piece]."""
    norms = {name: np.linalg.norm(steps[name], axis=-1) for name in attention_steps.VECTORS}
    return {name: [[float(f"{x:.8g}") for x in row] for row in norms_KT] for name, norms_KT in norms.items()}


def _hidden(steps: Mapping[str, np.ndarray]) -> list[list[list[int]]]:
    """The keys that the model hides from a query, at [layer][query]."""
    return [[np.flatnonzero(row_S == 0).tolist() for row_S in layer_TS] for layer_TS in steps["allowed"][:, 0]]


def _filled(data: Mapping[str, Any]) -> str:
    """The template with style, script and data."""
    parts = {
        "STYLE": template.read(__package__, "page.css", "attention_page.css"),
        "NUMBERS": template.read(__package__, "elements.js", "attention_numbers.js"),
        "PAGE": template.read(__package__, "attention_page.js"),
        "DATA": template.island(data),
    }
    return template.filled(__package__, "attention_page.html", parts)
