"""Arrays between our parameter tree and named tensors of others, by the table in names/bert.py.

Tensors come from any mapping name -> array (read when asked for) and go to any writer; files are not opened here.
"""

import difflib
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from bert.architectures.bert import BertConfig
from bert.errors import InputError
from bert.interop.load_report import Report
from bert.interop.names.bert import NEEDS, PARTS, WITH_CLASSES, Column, Weight, axis_sizes

Params = dict[str, Any]  # nested; leaves are arrays

_BLOCK = 128  # rows and columns of a kernel that are turned at a time: such a piece stays in the cache
_LARGEST = 2**31 - 2**22  # bytes of weights in a flatbuffer or protobuf message of 2 GiB; 4 MiB are left for the graph


def to_params(
    tensors: Mapping[str, np.ndarray],
    config: BertConfig,
    parts: Sequence[str],
    report: Report,
    *,
    column: Column = "hugging_face",
    classes: int | None = None,
) -> Params:
    """Our parameter tree, float32 NumPy arrays, from tensors under canonical names.

    Args:
      tensors: name -> array; each is asked for once, so that a lazy mapping keeps memory at one tensor beyond the tree.
      parts: keys of `PARTS` to fill.
      report: names used and missing are added to it.
      classes: C of the classifier among the parts.

    Raises InputError, naming every missing tensor, or the first one of the wrong shape, kind or value.
    """
    weights = [weight for part in parts for weight in PARTS[part]]
    # A configuration may speak of a billion layers: one more than there are tensors is enough to miss some.
    layers = min(config.num_layers, len(tensors) + 1)
    report.missing += [n for w in weights for n in w.outside_names(column, layers) if n not in tensors]
    if report.missing:
        raise InputError(_missing_text(report, tensors))
    params: Params = {"encoder": {}, "head": {}}
    sizes = axis_sizes(config, classes)
    for weight in weights:
        names, transposed = weight.outside_names(column, config.num_layers), weight.outside(column).transposed
        shape, first = tuple(sizes[axis] for axis in weight.axes), tensors[names[0]]
        _check_shape(shape, first, names[0], transposed, report.source)  # before so much memory is asked for
        value = np.empty((len(names), *shape), np.float32)
        for i, name in enumerate(names):
            _fill(value[i], tensors[name] if i else first, name, transposed, report.source)
        put(params, weight.path, value if weight.stacked else value[0])
        report.used += names
    return params


def _check_shape(shape: tuple[int, ...], tensor: np.ndarray, name: str, transposed: bool, source: str) -> None:
    wanted = shape[::-1] if transposed else shape
    if tensor.shape != wanted:
        raise InputError(
            f"{source}: {name} has shape {list(tensor.shape)}, the configuration asks for {list(wanted)}; "
            "weights and configuration belong to different models"
        )


def _fill(ours: np.ndarray, tensor: np.ndarray, name: str, transposed: bool, source: str) -> None:
    """Copies a tensor into a float32 array of our orientation; refuses one that does not fit or is not finite."""
    _check_shape(ours.shape, tensor, name, transposed, source)
    if tensor.dtype.kind != "f" and tensor.dtype.name != "bfloat16":
        raise InputError(f"{source}: {name} holds {tensor.dtype}; a weight must be a float of 16, 32 or 64 bits")
    with np.errstate(over="ignore", invalid="ignore"):  # a float64 beyond float32 becomes infinite, and is refused
        if transposed:
            _transpose(ours, tensor)
        else:
            ours[...] = tensor
    bad = first_not_finite(ours)
    if bad is not None:
        where = list(bad[::-1] if transposed else bad)
        raise InputError(f"{source}: {name} holds {ours[bad]} at {where}; a weight must be finite in float32")


def first_not_finite(array: np.ndarray) -> tuple[int, ...] | None:
    """Where the first NaN or infinity is; None where there is none."""
    with np.errstate(over="ignore", invalid="ignore"):
        # A sum is finite only where every term is; where it is not, it may have run over, so each is looked at.
        if np.isfinite(array.sum()) or np.isfinite(array).all():
            return None
    return tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])


def _transpose(ours: np.ndarray, tensor: np.ndarray) -> None:
    """``ours[...] = tensor.T``, a quarter faster on kernels of base size, for it goes through both in small squares."""
    rows, columns = tensor.shape
    for i in range(0, rows, _BLOCK):
        for j in range(0, columns, _BLOCK):
            ours[j : j + _BLOCK, i : i + _BLOCK] = tensor[i : i + _BLOCK, j : j + _BLOCK].T


def _missing_text(report: Report, tensors: Mapping[str, np.ndarray]) -> str:
    shown = ", ".join(report.missing[:8]) + (f" and {len(report.missing) - 8} more" if len(report.missing) > 8 else "")
    near = difflib.get_close_matches(report.missing[0], list(tensors), n=1, cutoff=0.9)
    hint = f" (the file has {near[0]})" if near else ""
    return f"{report.source}: missing {shown}{hint}; the file is incomplete or written for another model"


def from_params(
    params: Params, config: BertConfig, *, column: Column = "hugging_face"
) -> Iterator[tuple[str, np.ndarray]]:
    """(outside name, contiguous float32 array) for every parameter of the tree.

    Raises InputError for parameters that the table does not have, or not in this shape, and for incomplete parts.
    """
    left = dict(flatten(params))
    check_needs(params)
    if all(f"head/{part}/bias" in left for part in WITH_CLASSES):
        raise InputError(f"the head has both {' and '.join(WITH_CLASSES)}; files have one name for them, so save one")
    for part, weights in PARTS.items():
        if part != "encoder" and not any(weight.path in left for weight in weights):
            continue
        for weight in weights:
            if weight.path not in left:
                raise InputError(f"parameter {weight.path} is missing; {part} needs it")
            yield from _named(weight, np.asarray(left.pop(weight.path), np.float32), params, config, column)
    if left:
        raise InputError(f"parameter {next(iter(left))} has no name outside; known parts: {', '.join(PARTS)}")


def check_needs(params: Params) -> None:
    """Raises InputError for a part of the head without the one that it reads: others would misunderstand the file."""
    head = params.get("head", {})
    for part in head:
        for needed in NEEDS.get(part, ()):
            if needed not in head:
                raise InputError(f"the head has {part} but no {needed}; {part} needs {needed}: keep both, or neither")


def check_shapes(shapes: Mapping[str, Sequence[int]], config: BertConfig, source: str) -> None:
    """Refuses parameters that are not those of a model of this configuration.

    Args:
      shapes: path of a parameter ("encoder/...", "head/...") -> its shape.

    Raises:
      InputError: naming the first that is missing, unknown or of another shape.
    """
    classes = next((shapes[f"head/{part}/bias"][0] for part in WITH_CLASSES if f"head/{part}/bias" in shapes), None)
    sizes, heads = axis_sizes(config, classes), {path.split("/")[1] for path in shapes if path.startswith("head/")}
    weights = {weight.path: weight for part in PARTS if part in ("encoder", *heads) for weight in PARTS[part]}
    for path in sorted(shapes.keys() | weights.keys()):
        if path not in shapes or path not in weights:
            raise InputError(f"{source}: {path} is {'missing' if path in weights else 'no parameter of this model'}")
        wanted = _shape(weights[path], config, sizes)
        if tuple(shapes[path]) != wanted:
            raise InputError(
                f"{source}: {path} has shape {list(shapes[path])}, the configuration asks for {list(wanted)}"
            )


def _shape(weight: Weight, config: BertConfig, sizes: Mapping[str, int]) -> tuple[int, ...]:
    shape = tuple(sizes[axis] for axis in weight.axes)
    return (config.num_layers, *shape) if weight.stacked else shape


def _named(
    weight: Weight, value: np.ndarray, params: Params, config: BertConfig, column: Column
) -> Iterator[tuple[str, np.ndarray]]:
    names = weight.outside_names(column, config.num_layers)
    shape = _shape(weight, config, axis_sizes(config, class_count(params)))
    if value.shape != shape:
        raise InputError(f"parameter {weight.path} has shape {value.shape}, the config asks for {shape}")
    for name, layer in zip(names, value if weight.stacked else [value], strict=True):
        yield name, np.ascontiguousarray(layer.T if weight.outside(column).transposed else layer)


def class_count(params: Params) -> int | None:
    """C of the classifier in a parameter tree; None where it has none."""
    return next((len(params["head"][part]["bias"]) for part in WITH_CLASSES if part in params.get("head", {})), None)


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


def check_size(path: pathlib.Path, params: Params, kind: str) -> None:
    """Raises InputError for weights that one file cannot hold, of a kind that messages call "an ONNX file", say."""
    size = sum(leaf.nbytes for _, leaf in flatten(params))
    if size > _LARGEST:
        raise InputError(
            f"{path}: the weights take {size / 1e9:.1f} GB and {kind} holds at most 2; export safetensors, or a "
            "smaller model"
        )
