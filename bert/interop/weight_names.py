"""The table of weight names: a parameter here <-> the tensor elsewhere, read in both directions.

A format is a column of the table (a name, and whether the tensor lies transposed), a head is a part of it. What reads
or writes the tensors of a file is elsewhere (hugging_face.py); here only names, shapes and values meet:
`to_params` takes any mapping name -> array (read when asked for), `from_params` gives one.

Source: google-research/bert ``modeling.py`` for what exists; transformers ``models/bert`` for the Hugging Face names.
"""

import dataclasses
import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from bert.config import BertConfig
from bert.errors import InputError

Params = dict[str, Any]  # nested; leaves are arrays


@dataclasses.dataclass(frozen=True)
class Name:
    """A tensor in another format; ``{layer}`` in the name stands for the block's number."""

    name: str
    transposed: bool = False  # stored [out, in], where we keep [in, out]


@dataclasses.dataclass(frozen=True)
class Weight:
    """A parameter: its path in our tree, its axes, its name in each format.

    Axes are letters of `axis_sizes`. Where the name holds ``{layer}``, ours has one more axis L in front.
    """

    path: str
    axes: str
    hugging_face: Name

    @property
    def stacked(self) -> bool:
        return "{layer}" in self.hugging_face.name


def axis_sizes(config: BertConfig) -> dict[str, int]:
    """Letter -> size: V tokens, P positions, S segment types, D hidden, F feed-forward, R next-sentence classes."""
    return {
        "V": config.vocab_size,
        "P": config.max_position_embeddings,
        "S": config.type_vocab_size,
        "D": config.hidden_size,
        "F": config.intermediate_size,
        "R": 2,
    }


def _dense(path: str, hugging_face: str, axes: str) -> tuple[Weight, Weight]:
    return (
        Weight(f"{path}/kernel", axes, Name(f"{hugging_face}.weight", transposed=True)),
        Weight(f"{path}/bias", axes[1], Name(f"{hugging_face}.bias")),
    )


def _norm(path: str, hugging_face: str) -> tuple[Weight, Weight]:
    return (
        Weight(f"{path}/scale", "D", Name(f"{hugging_face}.LayerNorm.weight")),
        Weight(f"{path}/bias", "D", Name(f"{hugging_face}.LayerNorm.bias")),
    )


def _table(path: str, hugging_face: str, axes: str) -> Weight:
    return Weight(f"{path}/embedding", axes, Name(f"{hugging_face}.weight"))


_BLOCKS, _LAYER = "encoder/blocks", "bert.encoder.layer.{layer}"
# part -> its weights. "encoder" must be there; every other part is a head or a piece of one.
PARTS: dict[str, tuple[Weight, ...]] = {
    "encoder": (
        _table("encoder/embeddings/token", "bert.embeddings.word_embeddings", "VD"),
        _table("encoder/embeddings/position", "bert.embeddings.position_embeddings", "PD"),
        _table("encoder/embeddings/type", "bert.embeddings.token_type_embeddings", "SD"),
        *_norm("encoder/embeddings/norm", "bert.embeddings"),
        *_dense(f"{_BLOCKS}/attention/query", f"{_LAYER}.attention.self.query", "DD"),
        *_dense(f"{_BLOCKS}/attention/key", f"{_LAYER}.attention.self.key", "DD"),
        *_dense(f"{_BLOCKS}/attention/value", f"{_LAYER}.attention.self.value", "DD"),
        *_dense(f"{_BLOCKS}/attention/output", f"{_LAYER}.attention.output.dense", "DD"),
        *_norm(f"{_BLOCKS}/attention_norm", f"{_LAYER}.attention.output"),
        *_dense(f"{_BLOCKS}/feed_forward/up", f"{_LAYER}.intermediate.dense", "DF"),
        *_dense(f"{_BLOCKS}/feed_forward/down", f"{_LAYER}.output.dense", "FD"),
        *_norm(f"{_BLOCKS}/feed_forward_norm", f"{_LAYER}.output"),
    ),
    "pooler": _dense("head/pooler", "bert.pooler.dense", "DD"),
    "mlm": (
        *_dense("head/mlm/transform", "cls.predictions.transform.dense", "DD"),
        *_norm("head/mlm/norm", "cls.predictions.transform"),
        Weight("head/mlm/bias", "V", Name("cls.predictions.bias")),
    ),
    "next_sentence": _dense("head/next_sentence", "cls.seq_relationship", "DR"),
}
TOKEN_TABLE = PARTS["encoder"][0]


@dataclasses.dataclass
class Report:
    """What became of each tensor of a file, by the file's names; nothing is left out."""

    source: str
    used: list[str] = dataclasses.field(default_factory=list)
    ignored: dict[str, str] = dataclasses.field(default_factory=dict)  # name -> why
    fresh: list[str] = dataclasses.field(default_factory=list)  # parts that the file lacks, made new as asked for
    missing: list[str] = dataclasses.field(default_factory=list)  # needed, neither there nor asked for as fresh

    def __str__(self) -> str:
        lines = [
            f"{self.source}: {len(self.used)} tensors used, {len(self.ignored)} ignored, {len(self.missing)} missing"
        ]
        lines += [f"  ignored {name}: {why}" for name, why in self.ignored.items()]
        lines += [f"  {part}: new" for part in self.fresh]
        lines += [f"  missing {name}" for name in self.missing]
        return "\n".join(lines)


def parts_present(names: Mapping[str, Any] | Sequence[str]) -> tuple[str, ...]:
    """The parts of which at least one tensor is among these (canonical) names; "encoder" always."""
    found = [part for part, weights in PARTS.items() if any(w.hugging_face.name in names for w in weights)]
    return ("encoder", *(part for part in found if part != "encoder"))


def _outside_names(weight: Weight, num_layers: int) -> list[str]:
    if not weight.stacked:
        return [weight.hugging_face.name]
    return [weight.hugging_face.name.format(layer=layer) for layer in range(num_layers)]


def to_params(tensors: Mapping[str, np.ndarray], config: BertConfig, parts: Sequence[str], report: Report) -> Params:
    """Our parameter tree, float32 NumPy arrays, from tensors under canonical names.

    Args:
      tensors: name -> array; each is asked for once, so that a lazy mapping keeps memory at one tensor beyond the tree.
      parts: keys of `PARTS` to fill.
      report: names used and missing are added to it.

    Raises:
      InputError: naming every missing tensor, or the first one of the wrong shape, kind or value.
    """
    weights = [weight for part in parts for weight in PARTS[part]]
    report.missing += [n for w in weights for n in _outside_names(w, config.num_layers) if n not in tensors]
    if report.missing:
        raise InputError(_missing_text(report, tensors))
    params: Params = {}
    for weight in weights:
        names = _outside_names(weight, config.num_layers)
        shape = tuple(axis_sizes(config)[axis] for axis in weight.axes)
        value = np.empty((len(names), *shape), np.float32)
        for i, name in enumerate(names):
            value[i] = _checked(tensors[name], name, shape, weight.hugging_face.transposed, report.source)
        put(params, weight.path, value if weight.stacked else value[0])
        report.used += names
    return params


def _checked(tensor: np.ndarray, name: str, shape: tuple[int, ...], transposed: bool, source: str) -> np.ndarray:
    """The tensor as finite float32 in our orientation."""
    wanted = shape[::-1] if transposed else shape
    if tensor.shape != wanted:
        raise InputError(
            f"{source}: {name} has shape {list(tensor.shape)}, config.json asks for {list(wanted)}; "
            "weights and config.json belong to different models"
        )
    if tensor.dtype.kind != "f" and tensor.dtype.name != "bfloat16":
        raise InputError(f"{source}: {name} holds {tensor.dtype}; a weight must be float32, float16 or bfloat16")
    with np.errstate(over="ignore"):  # a float64 beyond float32 becomes infinite, and is refused below
        value = tensor.astype(np.float32)
    if not np.isfinite(value).all():
        bad = tuple(int(i) for i in np.argwhere(~np.isfinite(value))[0])
        raise InputError(f"{source}: {name} holds {value[bad]} at {list(bad)}; a weight must be finite")
    return value.T if transposed else value


def _missing_text(report: Report, tensors: Mapping[str, np.ndarray]) -> str:
    shown = ", ".join(report.missing[:8]) + (f" and {len(report.missing) - 8} more" if len(report.missing) > 8 else "")
    near = difflib.get_close_matches(report.missing[0], list(tensors), n=1, cutoff=0.9)
    hint = f" (the file has {near[0]})" if near else ""
    return f"{report.source}: missing {shown}{hint}; the file is incomplete or written for another model"


def from_params(params: Params, config: BertConfig) -> Iterator[tuple[str, np.ndarray]]:
    """(outside name, contiguous float32 array) for every parameter of the tree.

    Raises:
      InputError: a parameter without a name in the table, or a part that is incomplete or has another shape.
    """
    left = dict(flatten(params))
    for part, weights in PARTS.items():
        if part != "encoder" and not any(weight.path in left for weight in weights):
            continue
        for weight in weights:
            if weight.path not in left:
                raise InputError(f"parameter {weight.path} is missing; {part} needs it")
            value = np.asarray(left.pop(weight.path), np.float32)
            names = _outside_names(weight, config.num_layers)
            shape = tuple(axis_sizes(config)[axis] for axis in weight.axes)
            shape = (len(names), *shape) if weight.stacked else shape
            if value.shape != shape:
                raise InputError(f"parameter {weight.path} has shape {value.shape}, the config asks for {shape}")
            for name, layer in zip(names, value if weight.stacked else [value], strict=True):
                yield name, np.ascontiguousarray(layer.T if weight.hugging_face.transposed else layer)
    if left:
        raise InputError(f"parameter {next(iter(left))} has no name outside; known parts: {', '.join(PARTS)}")


def flatten(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """("a/b/c", leaf) for every leaf of a nested dict."""
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from flatten(value, f"{prefix}{key}/")
        else:
            yield prefix + key, value


def put(tree: Params, path: str, value: Any) -> None:
    """Sets the leaf "a/b/c" of a nested dict."""
    *folders, last = path.split("/")
    for folder in folders:
        tree = tree.setdefault(folder, {})
    tree[last] = value


_WRAPPERS = re.compile(r"^(?:(?:module|model|_orig_mod)\.)+")
# Only inside a LayerNorm: a parameter of another kind may well be called gamma.
_NORM_SPELLINGS = re.compile(r"(?<=\bLayerNorm\.)(gamma|beta|scale)$")
_BARE = ("embeddings.", "encoder.", "pooler.")


def canonical(name: str) -> str:
    """The one spelling of a Hugging Face name: no wrappers in front, with "bert.", LayerNorm.weight and .bias."""
    name = _WRAPPERS.sub("", name)
    name = _NORM_SPELLINGS.sub(lambda m: "bias" if m[1] == "beta" else "weight", name)
    return f"bert.{name}" if name.startswith(_BARE) else name
