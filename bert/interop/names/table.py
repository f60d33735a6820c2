"""`NameTable`: maps parameters to the tensor names of a family in one file format, for reading and writing.

Names and axes only: parameters.py converts arrays by a table, and other modules read and write files.
Axis letters: D hidden width, F feed-forward width, V tokens, P positions, S segment types, L layers, C classes, R two.
"""

import dataclasses
import functools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from bert.architectures import ModelConfig

HEAD_PARTS = ("pooler", "mlm", "next_sentence", "sequence_classifier", "token_classifier", "span")
WITH_CLASSES = ("sequence_classifier", "token_classifier")  # the weights alone say how many classes there are
NEEDS = {"next_sentence": ("pooler",), "sequence_classifier": ("pooler",)}  # they read the pooler's output


@dataclasses.dataclass(frozen=True)
class Weight:
    """A parameter, and the tensor of a file that holds it alone or with others.

    path: in our tree, such as "encoder/embeddings/token/embedding".
    axes: letters of `NameTable.axis_sizes`, or sizes. "L" in front: the file has all layers in one tensor.
    name: in the file. One with "{layer}" is a tensor for each layer, whose axes these are; ours has L in front.
    transposed: the file has the last two axes in the other order, [out, in].
    pieces, index: of a merged tensor, the axis of each parameter that it holds along our last axis (the rows of a
      transposed tensor), and which of them this one is: "DDD" and 1 for the keys in Wqkv [3D, D].
    """

    path: str
    axes: str | Sequence[str | int]
    name: str
    transposed: bool = False
    pieces: str = ""
    index: int = 0

    @property
    def by_layer(self) -> bool:
        return "{layer}" in self.name

    def names(self, num_layers: int) -> list[str]:
        """The tensors that hold this parameter: one, or one for each layer."""
        return [self.name.format(layer=layer) for layer in range(num_layers)] if self.by_layer else [self.name]

    def shape(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Of what one tensor holds of this parameter, in our order of axes."""
        return tuple(axis if isinstance(axis, int) else sizes[axis] for axis in self.axes)

    def file_shape(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Of the whole tensor in the file."""
        shape = self.shape(sizes)
        if self.pieces:
            shape = (*shape[:-1], sum(sizes[piece] for piece in self.pieces))
        return (*shape[:-2], shape[-1], shape[-2]) if self.transposed else shape

    def start(self, sizes: Mapping[str, int]) -> int:
        """Where this parameter begins along our last axis of a merged tensor."""
        return sum(sizes[piece] for piece in self.pieces[: self.index])


def merged(name: str, paths: Sequence[str], axes: Sequence[str], *, transposed: bool = False) -> tuple[Weight, ...]:
    """The parameters that one tensor holds one after another, such as queries, keys and values in Wqkv."""
    pieces = "".join(letters[-1] for letters in axes)
    parts = enumerate(zip(paths, axes, strict=True))
    return tuple(Weight(path, letters, name, transposed, pieces, i) for i, (path, letters) in parts)


@dataclasses.dataclass(frozen=True, eq=False)
class NameTable:
    """The names of one family in files of one format.

    parts: part -> its weights. A file must hold "encoder"; every other part is a head or a piece of one.
    sizes: axis letter -> the field of the configuration that holds it.
    needs: part -> the parts that it reads.
    prefix: before the encoder's names; a token table under another prefix is another model's.
    spellings: (pattern, replacement), applied in order to a file's name to get the table's.
    ignored: pattern of a name (in the table's spelling) -> why such a tensor is no weight.
    copies: name of a tensor that files may repeat -> the tensor that is read.
    twins: name of a tensor -> the name under which it is written once more.
    architectures: (the class of transformers that reads a head, the parts that it has), the first that fits.
    decoders: of these classes -> the one of the same parts whose attention is causal.
    other_models: pattern of a name -> the kind of model that has such a tensor.
    """

    parts: Mapping[str, tuple[Weight, ...]]
    sizes: Mapping[str, str]
    needs: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=lambda: NEEDS)
    prefix: str = ""
    spellings: tuple[tuple[str, str], ...] = ()
    ignored: Mapping[str, str] = dataclasses.field(default_factory=dict)
    copies: Mapping[str, str] = dataclasses.field(default_factory=dict)
    twins: Mapping[str, str] = dataclasses.field(default_factory=dict)
    architectures: tuple[tuple[str, frozenset[str]], ...] = ()
    decoders: Mapping[str, str] = dataclasses.field(default_factory=dict)
    other_models: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def weights(self, parts: Iterable[str]) -> Iterator[Weight]:
        return (weight for part in parts for weight in self.parts[part])

    def canonical(self, name: str) -> str:
        """The table's spelling of a file's name."""
        for pattern, replacement in self.spellings:
            name = re.sub(pattern, replacement, name)
        return name

    def why_ignored(self, name: str) -> str | None:
        """Why a tensor that no part holds is no weight; None where the table does not say."""
        return next((why for pattern, why in self.ignored.items() if re.search(pattern, name)), None)

    def axis_sizes(self, config: ModelConfig, classes: int | None = None) -> dict[str, int]:
        """Letter -> size. C: classes, 2 unless given; R: the two ends of a span, the two relations of a pair."""
        of_config = {letter: getattr(config, field) for letter, field in self.sizes.items()}
        return of_config | {"L": config.num_layers, "C": classes or 2, "R": 2}

    @property
    def token_table(self) -> Weight | None:
        return next((weight for weight in self.parts["encoder"] if weight.axes[:1] == "V"), None)

    @property
    def one_classifier_name(self) -> bool:
        """Whether a classifier of sequences and one of tokens have the same name in a file."""
        first, second = ({weight.name for weight in self.parts.get(part, ())} for part in WITH_CLASSES)
        return bool(first & second)

    def parts_present(self, names: Collection[str], classifier: str | None) -> tuple[str, ...]:
        """The parts of which a tensor is among these names, and the parts that they need; "encoder" always.

        ``classifier``: which of `WITH_CLASSES` a tensor is that both have; None: neither.
        """
        # A part without weights is always there.
        present = {part for part, weights in self.parts.items() if not weights or any(w.name in names for w in weights)}
        if self.one_classifier_name:
            present -= {*WITH_CLASSES} - {classifier}
        present |= {needed for part in present for needed in self.needs.get(part, ())} - {"encoder"}
        return ("encoder", *(part for part in self.parts if part in present and part != "encoder"))

    @functools.cached_property
    def _layer_pattern(self) -> re.Pattern[str]:
        split = (weight.name.partition("{layer}") for weight in self.parts["encoder"] if weight.by_layer)
        ends = {(before, after[0]) for before, _, after in split}
        choices = (f"{re.escape(before)}([0-9]{{1,9}}){re.escape(after)}" for before, after in sorted(ends))
        return re.compile("|".join(choices) or r"(?!)")

    def layer_of(self, name: str) -> int | None:
        """The number of the layer that a tensor belongs to; None where it belongs to none."""
        match = self._layer_pattern.match(name)
        return int(match[match.lastindex or 1]) if match else None

    def classes_of(self, tensors: Mapping[str, Any], parts: Collection[str]) -> int | None:
        """C of the classifier among these parts, by its bias or else its kernel; None where there is none."""
        weights = [*self.weights(part for part in WITH_CLASSES if part in parts)][::-1]
        for weight in weights:
            if weight.name in tensors and tensors[weight.name].ndim == len(weight.axes):
                return int(tensors[weight.name].shape[0 if weight.transposed else -1])
        return None

    def architecture(self, parts: Collection[str], *, causal: bool = False) -> str | None:
        """The class of transformers that reads these parts; None where the family has none."""
        name = next((name for name, needed in self.architectures if needed <= {*parts}), None)
        return self.decoders.get(name, name) if name and causal else name
