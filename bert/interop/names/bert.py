"""The table of weight names: a parameter here <-> the tensor elsewhere, read in both directions.

Whose names they are is a column of the table (a name, and whether the tensor lies transposed), a head is a part of it.
Here are only names and axes; parameters.py moves arrays by them, and what reads or writes files is elsewhere
(hugging_face.py, google_tf.py).

Source: google-research/bert ``modeling.py``, ``run_classifier.py`` and ``run_squad.py`` for what exists and Google's
names; transformers ``models/bert`` for the Hugging Face names.
"""

import dataclasses
import re
from collections.abc import Collection, Mapping
from typing import Any, Literal, get_args

from bert.architectures.bert import BertConfig

Column = Literal["hugging_face", "google"]
COLUMNS: tuple[Column, ...] = get_args(Column)


@dataclasses.dataclass(frozen=True)
class Name:
    """A tensor elsewhere; ``{layer}`` in the name stands for the block's number."""

    name: str
    transposed: bool = False  # stored [out, in], where we keep [in, out]


@dataclasses.dataclass(frozen=True)
class Weight:
    """A parameter: its path in our tree, its axes, its name in each column.

    Axes are letters of `axis_sizes`. Where the names hold ``{layer}``, ours has one more axis L in front.
    """

    path: str
    axes: str
    hugging_face: Name
    google: Name

    @property
    def stacked(self) -> bool:
        return "{layer}" in self.hugging_face.name

    def outside(self, column: Column) -> Name:
        return self.hugging_face if column == "hugging_face" else self.google

    def outside_names(self, column: Column, num_layers: int) -> list[str]:
        """The tensors that hold this parameter: one, or one for each block."""
        name = self.outside(column).name
        return [name.format(layer=layer) for layer in range(num_layers)] if self.stacked else [name]


def axis_sizes(config: BertConfig, classes: int | None = None) -> dict[str, int]:
    """Letter -> size: V tokens, P positions, S segment types, D hidden, F feed-forward, C classes, R always two.

    R: the two relations of a pair (follows, random), the two ends of a span. C is 2 where nothing says how many.
    """
    return {
        "V": config.vocab_size,
        "P": config.max_position_embeddings,
        "S": config.type_vocab_size,
        "D": config.hidden_size,
        "F": config.intermediate_size,
        "C": classes or 2,
        "R": 2,
    }


def _dense(path: str, axes: str, hugging_face: str, google: str) -> tuple[Weight, Weight]:
    return (
        Weight(f"{path}/kernel", axes, Name(f"{hugging_face}.weight", transposed=True), Name(f"{google}/kernel")),
        Weight(f"{path}/bias", axes[1], Name(f"{hugging_face}.bias"), Name(f"{google}/bias")),
    )


def _classes(path: str, axes: str, hugging_face: str, google: str) -> tuple[Weight, Weight]:
    """Scores of classes; Google stores the kernel of these, and only of these, [out, in]."""
    kernel = Name(f"{google}output_weights", transposed=True)
    return (
        Weight(f"{path}/kernel", axes, Name(f"{hugging_face}.weight", transposed=True), kernel),
        Weight(f"{path}/bias", axes[1], Name(f"{hugging_face}.bias"), Name(f"{google}output_bias")),
    )


def _norm(path: str, hugging_face: str, google: str) -> tuple[Weight, Weight]:
    return (
        Weight(f"{path}/scale", "D", Name(f"{hugging_face}.LayerNorm.weight"), Name(f"{google}/LayerNorm/gamma")),
        Weight(f"{path}/bias", "D", Name(f"{hugging_face}.LayerNorm.bias"), Name(f"{google}/LayerNorm/beta")),
    )


def _table(name: str, axes: str, outside: str) -> Weight:
    hugging_face, google = Name(f"bert.embeddings.{outside}.weight"), Name(f"bert/embeddings/{outside}")
    return Weight(f"encoder/embeddings/{name}/embedding", axes, hugging_face, google)


def _blocks() -> tuple[Weight, ...]:
    ours, theirs, googles = "encoder/blocks", "bert.encoder.layer.{layer}", "bert/encoder/layer_{layer}"
    attention, own = f"{theirs}.attention.self", f"{googles}/attention/self"
    output, own_output = f"{theirs}.attention.output", f"{googles}/attention/output"
    return (
        *_dense(f"{ours}/attention/query", "DD", f"{attention}.query", f"{own}/query"),
        *_dense(f"{ours}/attention/key", "DD", f"{attention}.key", f"{own}/key"),
        *_dense(f"{ours}/attention/value", "DD", f"{attention}.value", f"{own}/value"),
        *_dense(f"{ours}/attention/output", "DD", f"{output}.dense", f"{own_output}/dense"),
        *_norm(f"{ours}/attention_norm", output, own_output),
        *_dense(f"{ours}/feed_forward/up", "DF", f"{theirs}.intermediate.dense", f"{googles}/intermediate/dense"),
        *_dense(f"{ours}/feed_forward/down", "FD", f"{theirs}.output.dense", f"{googles}/output/dense"),
        *_norm(f"{ours}/feed_forward_norm", f"{theirs}.output", f"{googles}/output"),
    )


_TRANSFORM, _GOOGLE_TRANSFORM = "cls.predictions.transform", "cls/predictions/transform"
# part -> its weights. "encoder" must be there; every other part is a head or a piece of one.
PARTS: dict[str, tuple[Weight, ...]] = {
    "encoder": (
        _table("token", "VD", "word_embeddings"),
        _table("position", "PD", "position_embeddings"),
        _table("type", "SD", "token_type_embeddings"),
        *_norm("encoder/embeddings/norm", "bert.embeddings", "bert/embeddings"),
        *_blocks(),
    ),
    "pooler": _dense("head/pooler", "DD", "bert.pooler.dense", "bert/pooler/dense"),
    "mlm": (
        *_dense("head/mlm/transform", "DD", f"{_TRANSFORM}.dense", f"{_GOOGLE_TRANSFORM}/dense"),
        *_norm("head/mlm/norm", _TRANSFORM, _GOOGLE_TRANSFORM),
        Weight("head/mlm/bias", "V", Name("cls.predictions.bias"), Name("cls/predictions/output_bias")),
    ),
    "next_sentence": _classes("head/next_sentence", "DR", "cls.seq_relationship", "cls/seq_relationship/"),
    # These two have the same names outside: which of them a file holds is told by its config.json.
    "sequence_classifier": _classes("head/sequence_classifier", "DC", "classifier", ""),
    "token_classifier": _classes("head/token_classifier", "DC", "classifier", ""),
    "span": _classes("head/span", "DR", "qa_outputs", "cls/squad/"),
}
WITH_CLASSES = ("sequence_classifier", "token_classifier")  # their number of classes is not the encoder's business
NEEDS = {"next_sentence": ("pooler",), "sequence_classifier": ("pooler",)}  # they read the pooler's output
TOKEN_TABLE = PARTS["encoder"][0]
_STACKED = next(weight for weight in PARTS["encoder"] if weight.stacked)


def parts_present(
    names: Collection[str], column: Column = "hugging_face", *, classifier: str | None = "sequence_classifier"
) -> tuple[str, ...]:
    """The parts of which at least one tensor is among these (canonical) names, and what they need; "encoder" always.

    Args:
      classifier: which of `WITH_CLASSES` a "classifier" is; None: neither.
    """
    others = {"encoder", *WITH_CLASSES} - {classifier}
    found = {part for part, weights in PARTS.items() if any(w.outside(column).name in names for w in weights)} - others
    found |= {needed for part in found for needed in NEEDS.get(part, ())}
    return ("encoder", *(part for part in PARTS if part in found))


def block_of(name: str, column: Column = "hugging_face") -> int | None:
    """The number of the block that a tensor belongs to; None where it belongs to none."""
    before, _, after = _STACKED.outside(column).name.partition("{layer}")
    match = re.match(rf"{re.escape(before)}([0-9]{{1,9}}){re.escape(after[0])}", name)
    return int(match[1]) if match else None


def classes_of(tensors: Mapping[str, Any], parts: Collection[str], column: Column = "hugging_face") -> int | None:
    """C of the classifier among these parts, by its bias; None where there is none, or no bias."""
    biases = [PARTS[part][1].outside(column).name for part in WITH_CLASSES if part in parts]
    return next((len(tensors[name]) for name in biases if name in tensors and tensors[name].ndim == 1), None)


_WRAPPERS = re.compile(r"^(?:(?:module|model|_orig_mod)\.)+")
# Only inside a LayerNorm: a parameter of another kind may well be called gamma.
_NORM_SPELLINGS = re.compile(r"(?<=\bLayerNorm\.)(gamma|beta|scale)$")
_BARE = ("embeddings.", "encoder.", "pooler.")


def canonical(name: str) -> str:
    """The one spelling of a Hugging Face name: no wrappers in front, with "bert.", LayerNorm.weight and .bias."""
    name = _WRAPPERS.sub("", name)
    name = _NORM_SPELLINGS.sub(lambda m: "bias" if m[1] == "beta" else "weight", name)
    return f"bert.{name}" if name.startswith(_BARE) else name
