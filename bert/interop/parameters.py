"""Converts our parameter tree to the named tensors of a file, and back, by a `NameTable`.

Tensors are a mapping name -> array, read when indexed; no file is opened here.
"""

import difflib
import itertools
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from bert.architectures import ModelConfig
from bert.errors import InputError, listed
from bert.interop import names
from bert.interop.load_report import LoadReport
from bert.interop.names.table import WITH_CLASSES, NameTable, Weight
from bert.types import Params

Named = Iterator[tuple[str, np.ndarray]]
_BLOCK = 128  # rows and columns of a kernel that are transposed at a time: such a piece stays in the cache
_LARGEST = 2**31 - 2**22  # bytes of weights in a flatbuffer or protobuf message of 2 GiB; 4 MiB are left for the graph


def to_params(
    tensors: Mapping[str, np.ndarray],
    table: NameTable,
    config: ModelConfig,
    parts: Sequence[str],
    report: LoadReport,
    *,
    classes: int | None = None,
) -> Params:
    """Our parameter tree, float32 NumPy arrays, of these parts; ``classes``: C of the classifier among them.

    ``tensors``, under the table's names, are indexed when a parameter is filled, so a lazy mapping holds one at a time.
    Raises InputError, naming every missing tensor, or the first one of the wrong shape, kind or value.
    """
    # A configuration may speak of a billion layers: one more than there are tensors is enough to miss some.
    layers = min(config.num_layers, len(tensors) + 1)
    needed = (name for weight in table.weights(parts) for name in weight.names(layers))
    report.missing += dict.fromkeys(name for name in needed if name not in tensors)
    if missing := report.missing:
        near = difflib.get_close_matches(missing[0], list(tensors), n=1, cutoff=0.9)
        hint = f" (the file has {near[0]})" if near else ""
        shown = f"{listed(missing, 8)}{hint}"
        raise InputError(f"{report.source}: missing {shown}; the file is incomplete or written for another model")
    params: Params = {"encoder": {}, "head": {}}
    sizes = table.axis_sizes(config, classes)
    used: dict[str, None] = {}
    for weight in table.weights(parts):
        layer_names = weight.names(config.num_layers)
        tensor = tensors[layer_names[0]]
        _check_shape(weight, sizes, tensor, layer_names[0], report.source)  # before so much memory is asked for
        value = np.empty((len(layer_names), *weight.shape(sizes)), np.float32)
        for i, name in enumerate(layer_names):
            _fill(value[i, ...], tensors[name] if i else tensor, name, weight, sizes, report.source)
        put(params, weight.path, value if weight.by_layer else value[0, ...])
        used |= dict.fromkeys(layer_names)
    report.used += used
    return with_implied_parts(params, table)


def with_implied_parts(params: Params, table: NameTable) -> Params:
    """The parameters with the parts that have no weights, such as words scored by the token table alone."""
    implied: Params = {part: {} for part, weights in table.parts.items() if not weights}
    return {**params, "head": implied | params.get("head", {})}


def _check_shape(weight: Weight, sizes: Mapping[str, int], tensor: np.ndarray, name: str, source: str) -> None:
    shape = weight.file_shape(sizes)
    if tensor.shape != shape:
        both = f"{name} has shape {list(tensor.shape)}, the configuration asks for {list(shape)}"
        raise InputError(f"{source}: {both}; weights and configuration belong to different models")


def _fill(
    ours: np.ndarray, tensor: np.ndarray, name: str, weight: Weight, sizes: Mapping[str, int], source: str
) -> None:
    """Copies what a tensor holds of a parameter into a float32 array; refuses what does not fit or is not finite."""
    _check_shape(weight, sizes, tensor, name, source)
    if tensor.dtype.kind != "f" and tensor.dtype.name != "bfloat16":
        raise InputError(f"{source}: {name} holds {tensor.dtype}; a weight must be a float of 16, 32 or 64 bits")
    theirs, start = np.swapaxes(tensor, -1, -2) if weight.transposed else tensor, weight.start(sizes)
    if weight.pieces:
        theirs = theirs[..., start : start + ours.shape[-1]]
    with np.errstate(over="ignore", invalid="ignore"):  # a float64 beyond float32 becomes infinite, and is refused
        if weight.transposed and ours.ndim == 2:
            _copy_in_squares(ours, theirs)
        else:
            ours[...] = theirs
    bad = first_not_finite(ours)
    if bad is not None:
        place = [*bad[:-1], *(last + start for last in bad[-1:])]
        place[-2:] = place[-2:][::-1] if weight.transposed else place[-2:]
        raise InputError(f"{source}: {name} holds {ours[bad]} at {place}; a weight must be finite in float32")


def first_not_finite(array: np.ndarray) -> tuple[int, ...] | None:
    """The index of the first NaN or infinity; None where there is none."""
    with np.errstate(over="ignore", invalid="ignore"):
        # A sum is finite only where every term is; an infinite sum may be an overflow, so then each is checked.
        if np.isfinite(array.sum()) or np.isfinite(array).all():
            return None
    return tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])


def _copy_in_squares(ours: np.ndarray, theirs: np.ndarray) -> None:
    """``ours[...] = theirs``, a quarter faster where one of two kernels of base size is a transposed view."""
    rows, columns = ours.shape
    for j in range(0, columns, _BLOCK):
        for i in range(0, rows, _BLOCK):
            ours[i : i + _BLOCK, j : j + _BLOCK] = theirs[i : i + _BLOCK, j : j + _BLOCK]


def from_params(params: Params, config: ModelConfig, table: NameTable | None = None) -> Named:
    """(name in the file, contiguous float32 array) for every tensor; ``table``: the family's own unless given.

    Raises InputError for parameters that the table does not have, or not in this shape, and for incomplete parts.
    """
    table = table or names.table(config)
    left = dict(flatten(params))
    check_needs(params, table)
    if table.one_classifier_name and all(f"head/{part}/bias" in left for part in WITH_CLASSES):
        raise InputError(f"the head has both {' and '.join(WITH_CLASSES)}; files have one name for them, so save one")
    sizes = table.axis_sizes(config, class_count(params))
    for part, weights in table.parts.items():
        if part != "encoder" and not any(weight.path in left for weight in weights):
            continue
        for _, group in itertools.groupby(weights, key=lambda weight: weight.name):
            merged = list(group)
            values = [_checked(weight, left, part, config, sizes) for weight in merged]
            weight, value = merged[0], np.concatenate(values, axis=-1) if values[1:] else values[0]
            layers = value if weight.by_layer else [value]
            for name, tensor in zip(weight.names(config.num_layers), layers, strict=True):
                theirs = np.asarray(np.swapaxes(tensor, -1, -2) if weight.transposed else tensor, order="C")
                yield name, theirs
                if name in table.twins:
                    yield table.twins[name], theirs
    if left:
        raise InputError(f"parameter {next(iter(left))} has no name outside; known parts: {', '.join(table.parts)}")


def _checked(weight: Weight, left: Params, part: str, config: ModelConfig, sizes: Mapping[str, int]) -> np.ndarray:
    """The parameter, taken out of ``left``, float32 and of the table's shape."""
    if weight.path not in left:
        raise InputError(f"parameter {weight.path} is missing; {part} needs it")
    value, shape = np.asarray(left.pop(weight.path), np.float32), _shape(weight, config, sizes)
    if value.shape != shape:
        raise InputError(f"parameter {weight.path} has shape {value.shape}, the config asks for {shape}")
    return value


def _shape(weight: Weight, config: ModelConfig, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """Of the parameter in our tree."""
    return (config.num_layers,) * weight.by_layer + weight.shape(sizes)


def check_needs(params: Params, table: NameTable) -> None:
    """Raises InputError for a part of the head without the one that it reads: others would misunderstand the file."""
    head = params.get("head", {})
    for part in head:
        for needed in table.needs.get(part, ()):
            if needed not in head:
                raise InputError(f"the head has {part} but no {needed}; {part} needs {needed}: keep both, or neither")


def check_shapes(shapes: Mapping[str, Sequence[int]], config: ModelConfig, source: str) -> None:
    """Raises InputError for the first parameter that is missing, unknown or of another shape than the configuration's.

    ``shapes``: path of a parameter ("encoder/...", "head/...") -> its shape.
    """
    table = names.table(config)
    kernels = [f"head/{part}/kernel" for part in WITH_CLASSES]
    classes = next((shapes[kernel][-1] for kernel in kernels if kernel in shapes), None)
    sizes, heads = table.axis_sizes(config, classes), {p.split("/")[1] for p in shapes if p.startswith("head/")}
    weights = {weight.path: weight for weight in table.weights(p for p in table.parts if p in ("encoder", *heads))}
    for path in sorted(shapes.keys() | weights.keys()):
        if path not in shapes or path not in weights:
            raise InputError(f"{source}: {path} is {'missing' if path in weights else 'no parameter of this model'}")
        shape = _shape(weights[path], config, sizes)
        if tuple(shapes[path]) != shape:
            raise InputError(f"{source}: {path} has shape {list(shapes[path])}, the configuration needs {list(shape)}")


def class_count(params: Params) -> int | None:
    """C of the classifier in a parameter tree; None where it has none."""
    head = params.get("head", {})
    return next((head[part]["kernel"].shape[-1] for part in WITH_CLASSES if part in head), None)


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
        weights = f"the weights take {size / 1e9:.1f} GB"
        raise InputError(f"{path}: {weights} and {kind} holds at most 2; export huggingface, or a smaller model")
