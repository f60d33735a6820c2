"""Reads and writes what a directory of sentence_transformers declares: pooling, layers, longest input, prompts.

modules.json lists the modules: the encoder (in the directory itself, or in 0_Transformer/), Pooling, then any of Dense
and Normalize. What cannot be computed is refused by name: the vectors would be others.

Source: sentence_transformers 6.2, ``base/model.py``, ``base/modules/`` and ``sentence_transformer/modules/``; keys of
earlier versions are read, too, and written where they suffice.
"""

import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from bert import files, json_files
from bert.architectures import ModelConfig
from bert.errors import InputError, check_choice, check_range, listed, printable, short_repr
from bert.interop.formats import safetensors_file, weight_files
from bert.interop.load_report import LoadReport
from bert.interop.model_directory import read_json
from bert.interop.parameters import first_not_finite
from bert.model.sentence_encoder import ACTIVATIONS, MODES, NORMALIZE, SIMILARITIES, SentenceEncoder
from bert.tokenizer.tokenizer import Tokenizer
from bert.types import Params

MODULES, SETTINGS, TEXTS = "modules.json", "config_sentence_transformers.json", "sentence_bert_config.json"
WRITTEN = (MODULES, SETTINGS, TEXTS)
FOLDERS = r"[1-9]\d*_(Pooling|Dense|Normalize)/(config\.json|model\.safetensors)"  # the other files that `write` makes
_CONFIG = "config.json"
_ENCODERS = ("Transformer", "BERT")
_ALONE = f"take {MODULES} away to load the encoder alone"
_OLD_MODES = dict(
    zip(
        ("cls_token", "max_tokens", "mean_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken"),
        MODES,
        strict=True,
    )
)
_TORCH = {
    "identity": "linear.Identity",
    "relu": "activation.ReLU",
    "gelu": "activation.GELU",
    "silu": "activation.SiLU",
    "tanh": "activation.Tanh",
    "sigmoid": "activation.Sigmoid",
}
# Keys of modules that are computed with one value only.
_FIXED = {
    "transformer_task": "feature-extraction",
    "module_input_name": "sentence_embedding",
    "use_residual": False,
}


def encoder_folder(folder: pathlib.Path) -> pathlib.Path:
    """Where the encoder's files are: as modules.json says, or in the folder itself where there is no such file."""
    return _modules(folder)[0][1] if (folder / MODULES).is_file() else folder


def read(
    folder: pathlib.Path, config: ModelConfig, tokenizer: Tokenizer | None, report: LoadReport
) -> SentenceEncoder | None:
    """What the folder declares; None where it has no modules.json, or is a cross-encoder's. The report has a note.

    Raises InputError for a module, a key or a weight that cannot be computed as it says.
    """
    if not (folder / MODULES).is_file():
        if (folder.parent / MODULES).is_file():
            report.notes.append(f"vectors of texts are declared in {folder.parent}; load that directory to have them")
        return None
    settings = _optional(folder / SETTINGS)
    kind = settings.get("model_type", "SentenceTransformer")
    if kind == "CrossEncoder":
        report.notes.append(f"{SETTINGS}: model_type is {kind}, which declares no vectors of texts")
        return None
    check_choice(f"{folder / SETTINGS}: model_type", kind, ("SentenceTransformer",), hint=f"; {_ALONE}")
    (_, inner), *modules = _modules(folder)
    if not modules or modules[0][0] != "Pooling":
        raise InputError(f"{folder / MODULES}: the second module is no Pooling, so no text has a vector; {_ALONE}")
    pooling, include_prompt = _read_pooling(modules[0][1] / _CONFIG, config.hidden_size)
    width, layers, dense = config.hidden_size * len(pooling), list[str](), list[Params]()
    for name, place in modules[1:]:
        if name == "Normalize":
            _check_fixed(_optional(place / _CONFIG), place / _CONFIG)
            layers.append(NORMALIZE)
        elif name == "Dense":
            activation, weights = _read_dense(place, width, report)
            layers.append(activation)
            dense.append(weights)
            width = weights["kernel"].shape[1]
        else:
            raise InputError(f"{folder / MODULES}: a module {name} behind the first one cannot be computed; {_ALONE}")
    encoder = SentenceEncoder(
        pooling,
        tuple(layers),
        tuple(dense),
        include_prompt=include_prompt,
        **_read_texts(inner, config, tokenizer, report),
        **_read_settings(settings, folder / SETTINGS, report),
    )
    report.notes.append(f"vectors of texts, as {MODULES} declares: {encoder}; of at most {encoder.max_length} tokens")
    if named := [name for name, text in encoder.prompts.items() if text]:
        always = f"{encoder.default_prompt} is put in front of every text" if encoder.default_prompt else ""
        report.notes.append(f"{SETTINGS}: prompts {listed(named)}; {always or 'none is put in front unless asked for'}")
    return encoder


def _modules(folder: pathlib.Path) -> list[tuple[str, pathlib.Path]]:
    """(class, folder) of each module, the encoder first."""
    path, modules = folder / MODULES, list[tuple[str, pathlib.Path]]()
    for entry in json_files.read_objects(path):
        kind, place = entry.get("type"), entry.get("path")
        if not isinstance(kind, str) or not isinstance(place, str):
            raise InputError(f"{path}: a module has no type or no path; the file is damaged")
        package, _, name = kind.partition(".")
        if package != "sentence_transformers":
            raise InputError(f"{path}: {printable(kind)} is a program of its own, which is not executed; {_ALONE}")
        if pathlib.PurePath(place).name != place or "\\" in place:  # whoever made the file may name folders inside only
            raise InputError(f"{path}: names the folder {place!r:.100}; modules lie beside the file")
        modules.append((name.rpartition(".")[2], folder / place))
    if not modules or modules[0][0] not in _ENCODERS:
        first = modules[0][0] if modules else "missing"
        raise InputError(f"{path}: the first module is {printable(first)}, no Transformer; only a BERT can be loaded")
    return modules


def _optional(path: pathlib.Path) -> dict[str, Any]:
    return read_json(path) if path.is_file() else {}


def _check_fixed(values: Mapping[str, Any], path: pathlib.Path, output: str = "sentence_embedding") -> None:
    for key, only in {**_FIXED, "module_output_name": output}.items():
        if values.get(key, only) not in (only, None):
            raise InputError(f"{path}: {key} is {short_repr(values[key])}; only {only!r} can be computed; {_ALONE}")


def _read_pooling(path: pathlib.Path, hidden_size: int) -> tuple[tuple[str, ...], bool]:
    """The modes, and whether prompts are pooled."""
    values = read_json(path)
    for key in ("word_embedding_dimension", "embedding_dimension"):
        if values.get(key, hidden_size) != hidden_size:
            what = f"{key} is {short_repr(values[key])}, but the encoder's states have a width of {hidden_size}"
            raise InputError(f"{path}: {what}; the files belong to different models")
    modes = values.get("pooling_mode")
    if modes is None:
        old = {
            key.removeprefix("pooling_mode_") for key, on in values.items() if key.startswith("pooling_mode_") and on
        }
        if unknown := sorted(old - set(_OLD_MODES)):
            raise InputError(f"{path}: pooling_mode_{printable(unknown[0])[:100]} cannot be computed; {_ALONE}")
        modes = [mode for key, mode in _OLD_MODES.items() if key in old] or ["mean"]
    modes = [modes] if isinstance(modes, str) else modes
    for mode in modes if isinstance(modes, list) else [modes]:
        check_choice(f"{path}: pooling_mode", mode, MODES, hint=f"; {_ALONE}")
    return tuple(modes), _flag(values, "include_prompt", True, path)


def _flag(values: Mapping[str, Any], key: str, default: bool, path: pathlib.Path) -> bool:
    value = values.get(key, default)
    if not isinstance(value, bool):
        raise InputError(f"{path}: {key} is {short_repr(value)}; it must be true or false")
    return value


def _read_dense(folder: pathlib.Path, width: int, report: LoadReport) -> tuple[str, Params]:
    """The activation, and ``kernel`` [in, out] and ``bias`` [out] of a dense layer."""
    path, values = folder / _CONFIG, read_json(folder / _CONFIG)
    _check_fixed(values, path)
    named = values.get("activation_function", "torch.nn.modules.activation.Tanh")
    activation = next((ours for ours, theirs in _TORCH.items() if named == f"torch.nn.modules.{theirs}"), None)
    if activation is None:
        known = ", ".join(ACTIVATIONS)
        raise InputError(f"{path}: activation_function is {short_repr(named)}; {known} can be computed; {_ALONE}")
    if values.get("in_features") != width:
        what = f"in_features is {short_repr(values.get('in_features'))}, but {width} numbers come in"
        raise InputError(f"{path}: {what}; the files belong to different models")
    weights = weight_files.find(folder)
    if weights is None:
        raise InputError(f"{folder}: holds neither {weight_files.SAFETENSORS} nor {weight_files.TORCH}; get the file")
    tensors = weight_files.open_weights(weights)
    size: Any = values.get("out_features")
    check_range(f"{path}: out_features", size, at_least=1, whole=True)
    has_bias = _flag(values, "bias", True, path)
    wanted = {"linear.weight": (size, width), **({"linear.bias": (size,)} if has_bias else {})}
    if set(tensors) != set(wanted):
        both = f"holds {printable(listed(sorted(tensors), 4))}, not {' and '.join(wanted)}"
        raise InputError(f"{weights}: {both}; it is another module's file")
    arrays = {name: np.asarray(tensors[name], np.float32) for name in wanted}
    for name, array in arrays.items():
        if array.shape != wanted[name]:
            raise InputError(f"{weights}: {name} has shape {list(array.shape)}, {path.name} says {list(wanted[name])}")
        if (bad := first_not_finite(array)) is not None:
            raise InputError(f"{weights}: {name} holds {array[bad]} at {list(bad)}; a weight must be finite in float32")
        report.used.append(f"{folder.name}/{name}")
    bias_K = arrays.get("linear.bias", np.zeros(size, np.float32))
    return activation, {"kernel": np.ascontiguousarray(arrays["linear.weight"].T), "bias": bias_K}


def _read_texts(
    folder: pathlib.Path, config: ModelConfig, tokenizer: Tokenizer | None, report: LoadReport
) -> dict[str, Any]:
    """Longest input and letter case."""
    path, values = folder / TEXTS, _optional(folder / TEXTS)
    _check_fixed(values, path, "token_embeddings")
    modalities = values.get("modality_config") or {"text": {}}
    text = modalities.get("text") if isinstance(modalities, dict) else None
    if not isinstance(text, dict) or text.get("method_output_name", "last_hidden_state") != "last_hidden_state":
        raise InputError(f"{path}: modality_config is {short_repr(modalities)}, which cannot be computed; {_ALONE}")
    known = {"max_seq_length", "do_lower_case", "modality_config", "module_output_name", "unpad_inputs", *_FIXED}
    _note_unknown(values, known, TEXTS, report)
    longest = values.get("max_seq_length")
    if longest is None:
        longest = tokenizer.model_max_length if tokenizer else config.max_length
    check_range(f"{path}: max_seq_length", longest, at_least=3, whole=True)
    if longest > config.max_length and values.get("max_seq_length"):
        report.notes.append(f"{TEXTS}: max_seq_length {longest} is cut to the model's {config.max_length} positions")
    return {"max_length": min(longest, config.max_length), "lower_case": _flag(values, "do_lower_case", False, path)}


def _read_settings(values: Mapping[str, Any], path: pathlib.Path, report: LoadReport) -> dict[str, Any]:
    """Prompts and similarity."""
    similarity = values.get("similarity_fn_name") or "cosine"
    check_choice(f"{path}: similarity_fn_name", similarity, SIMILARITIES)
    prompts = values.get("prompts") or {}
    if not isinstance(prompts, dict) or not all(isinstance(text, str | None) for text in prompts.values()):
        raise InputError(f"{path}: prompts is {short_repr(prompts)}; it must hold a text for each name")
    default = values.get("default_prompt_name")
    if default not in (None, *prompts):
        raise InputError(f"{path}: default_prompt_name is {short_repr(default)}, none of the prompts; correct one")
    known = {"__version__", "model_type", "prompts", "default_prompt_name", "similarity_fn_name"}
    _note_unknown(values, known, SETTINGS, report)
    named = {name: text or "" for name, text in prompts.items()}
    return {"prompts": named, "default_prompt": default, "similarity": similarity}


def _note_unknown(values: Mapping[str, Any], known: set[str], name: str, report: LoadReport) -> None:
    if unknown := sorted(key for key, value in values.items() if key not in known and value):
        report.notes.append(f"{name}: not known here, so without effect: {listed(unknown, 12)}")


def write(folder: pathlib.Path, encoder: SentenceEncoder, config: ModelConfig) -> None:
    """Writes the declarations beside the files of the encoder; `read` gives an equal one.

    Raises InputError for a pooling that sentence_transformers lacks.
    """
    for mode in encoder.pooling:
        check_choice("pooling", mode, MODES, hint=f"; {', '.join(encoder.pooling)} cannot be declared")
    modules, dense = ["Transformer", "Pooling"], iter(encoder.dense)
    width = config.hidden_size * len(encoder.pooling)
    in_order = tuple(mode for mode in MODES if mode in encoder.pooling) == encoder.pooling
    old_modes = {f"pooling_mode_{key}": mode in encoder.pooling for key, mode in _OLD_MODES.items()}
    contents: dict[str, Any] = {
        SETTINGS: {
            "model_type": "SentenceTransformer",
            "prompts": dict(encoder.prompts),
            "default_prompt_name": encoder.default_prompt,
            "similarity_fn_name": encoder.similarity,
        },
        TEXTS: {"max_seq_length": encoder.max_length or config.max_length, "do_lower_case": encoder.lower_case},
        f"1_Pooling/{_CONFIG}": {
            "word_embedding_dimension": config.hidden_size,
            **(old_modes if in_order else {"pooling_mode": list(encoder.pooling)}),
            "include_prompt": encoder.include_prompt,
        },
    }
    for layer in encoder.layers:
        modules.append("Normalize" if layer == NORMALIZE else "Dense")
        place = f"{len(modules) - 1}_{modules[-1]}"
        (folder / place).mkdir()
        if layer == NORMALIZE:
            contents[f"{place}/{_CONFIG}"] = {"module_input_name": "sentence_embedding"}
            continue
        weights = next(dense)
        named = {"linear.weight": np.ascontiguousarray(weights["kernel"].T), "linear.bias": weights["bias"]}
        safetensors_file.write_safetensors(folder / place / weight_files.SAFETENSORS, named, {})
        size = len(weights["bias"])
        contents[f"{place}/{_CONFIG}"] = {
            "in_features": width,
            "out_features": size,
            "bias": True,
            "activation_function": f"torch.nn.modules.{_TORCH[layer]}",
        }
        width = size
    paths = ["", *(f"{i}_{name}" for i, name in enumerate(modules) if i)]
    contents[MODULES] = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{name}"}
        for i, (name, path) in enumerate(zip(modules, paths, strict=True))
    ]
    (folder / "1_Pooling").mkdir()
    for name, values in contents.items():
        (folder / name).write_text(files.json_text(values, indent=2), encoding="utf-8", newline="\n")
