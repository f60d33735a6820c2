"""The registry of architectures: a configuration and a Linen module for each ``model_type``.

A new architecture is a file here and a line in `REGISTRY`. Importing this package imports no architecture: its
configuration and its module are imported on first use, and only the module needs JAX.
"""

import dataclasses
import importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from bert.errors import InputError, check_choice, listed

if TYPE_CHECKING:
    import flax.linen as nn
    from jax import Array

    from bert.model.reading import Reads, States
    from bert.types import Batch

Config = TypeVar("Config")

# model_type in config.json -> the classes of the configuration and of the module, or "module:class" of them.
REGISTRY: dict[str, tuple[Any, Any]] = {
    "bert": ("bert.architectures.bert:BertConfig", "bert.architectures.bert_encoder:BertEncoder"),
    "bert-merged": (
        "bert.architectures.merged:MergedBertConfig",
        "bert.architectures.merged_encoder:MergedBertEncoder",
    ),
    "birnn": (
        "bert.architectures.recurrent:RecurrentConfig",
        "bert.architectures.recurrent_encoder:RecurrentEncoder",
    ),
    "strided": (
        "bert.architectures.convolution:StridedConfig",
        "bert.architectures.convolution_encoders:StridedEncoder",
    ),
    "dilated": (
        "bert.architectures.convolution:DilatedConfig",
        "bert.architectures.convolution_encoders:DilatedEncoder",
    ),
    "openai-gpt": ("bert.architectures.gpt:GPTConfig", "bert.architectures.gpt_encoder:GPTEncoder"),
    "transformer": (
        "bert.architectures.encoder_decoder:EncoderDecoderConfig",
        "bert.architectures.encoder_decoder_stacks:EncoderDecoder",
    ),
    "convs2s": ("bert.architectures.convs2s:ConvS2SConfig", "bert.architectures.convs2s_stacks:ConvS2S"),
    "rnn-encoder-decoder": (
        "bert.architectures.recurrent_decoder:RecurrentDecoderConfig",
        "bert.architectures.recurrent_decoder_modules:RecurrentEncoderDecoder",
    ),
    "encoder-decoder": (
        "bert.architectures.bert2bert:BertToBertConfig",
        "bert.architectures.bert2bert_stacks:BertToBert",
    ),
    "gpt2": ("bert.architectures.gpt:GPT2Config", "bert.architectures.gpt_encoder:GPT2Encoder"),
    "patches": ("bert.architectures.patches:PicturesConfig", "bert.architectures.patches_encoder:PicturesEncoder"),
    "picture-transformer": (
        "bert.architectures.captions:PictureTransformerConfig",
        "bert.architectures.captions_modules:PictureTransformer",
    ),
    "picture-rnn": (
        "bert.architectures.captions:PictureRecurrentConfig",
        "bert.architectures.captions_modules:PictureRecurrent",
    ),
}

# Fields of configurations that change how an encoder is computed or trained, but not what its weights are.
COMPUTED = ("hidden_dropout", "attention_dropout", "dtype", "layer_loop", "remat", "attention")


class ModelConfig(Protocol):
    """What all parts of the library read of an architecture's configuration, a frozen dataclass."""

    @property
    def model_type(self) -> str: ...  # the key in `REGISTRY` and in config.json
    @property
    def vocab_size(self) -> int: ...  # token ids
    @property
    def type_vocab_size(self) -> int: ...  # segments
    @property
    def max_length(self) -> int: ...  # longest sequence, in tokens
    @property
    def hidden_size(self) -> int: ...
    @property
    def num_layers(self) -> int: ...
    @property
    def hidden_act(self) -> str: ...  # of the masked-word head; one of `blocks.ACTIVATION_FUNCTIONS`
    @property
    def hidden_dropout(self) -> float: ...
    @property
    def initializer_range(self) -> float: ...
    @property
    def layer_norm_eps(self) -> float: ...
    @property
    def dtype(self) -> str: ...  # of matrix products: float32 or bfloat16

    def __hash__(self) -> int: ...  # of a static argument of compiled functions

    def check_training(self) -> None:
        """Raises InputError for a configuration that is for inference only."""

    def matmul_flops_per_token(self, length: int) -> float:
        """Forward pass of one token in a row of that length, 2 per multiply-add, without heads."""
        ...

    def to_json(self) -> dict[str, Any]:
        """The encoder's part of config.json, with ``model_type``."""
        ...

    @classmethod
    def from_json(cls, values: Mapping[str, Any], *, source: str = "config.json") -> "ModelConfig":
        """Raises InputError, naming ``source``, for what it cannot compute."""
        ...

    @classmethod
    def json_notes(cls, values: Mapping[str, Any], *, source: str = "config.json") -> list[str]:
        """One line each for what config.json holds and nothing reads."""
        ...


class Encoder(Protocol):
    """A Linen module with the attribute ``config``: a batch (bert/data/batches.py) -> hidden states.

    To be looked into, it has ``states(batch)`` and ``attention(batch, layer)``, as `stack.StackedEncoder`.
    """

    packing: str  # "exact": a row may hold several examples; "refused": they would change each other
    # How it may be pretrained, of `objectives.OBJECTIVES`; empty: not at all; where it is not there: by masked words.
    objectives: tuple[str, ...]
    # Where an example is read. "first", "last": the state of this token; where attention is causal, the last alone has
    # seen all others. "ends": the left side at the last token, the right side at the first. "top": the last level.
    # Where it is not there: "first".
    read_at: str
    # "bert": a pooler, and words scored through a layer of their own; "bare": neither; "none": no head at all, for it
    # is a `decoders.Decoder`, too. Where it is not there: "bert".
    heads: str

    def __call__(self, batch: "Batch", *, train: bool = False, reads: "Reads") -> "States":
        """The hidden states that are read (bert/model/reading.py); by default those of all tokens."""
        ...

    def token_table(self) -> "Array | None":
        """Token embeddings [V, D], lent to heads; None where there are none of that shape."""
        ...

    def depth_of(self, path: Sequence[str]) -> int | Sequence[int]:
        """Depth of a parameter of the encoder: 0 for embeddings, ``num_layers`` for the layer below the head.

        A sequence where the leading axis is of layers: the depth of each.
        """
        ...


def build(config: ModelConfig) -> "nn.Module":
    """The encoder of a configuration, an `Encoder` without a parent: the module that it is assigned to adopts it."""
    module: nn.Module = _resolved(REGISTRY[config.model_type][1])(config, parent=None)
    return module


def config_from_json(values: Mapping[str, Any], *, source: str = "config.json") -> Any:
    """The configuration that a config.json describes; BERT's where it names no ``model_type``, as Google's files.

    Raises InputError, naming ``source``, for an unknown architecture and as its own `from_json` does.
    """
    return config_class(f"{source}: model_type", values.get("model_type") or "bert").from_json(values, source=source)


def config_class(name: str, model_type: str) -> Any:
    """The configuration of an architecture, a frozen dataclass. InputError for an unknown one; ``name`` is its key."""
    check_choice(name, model_type, tuple(REGISTRY))
    return _resolved(REGISTRY[model_type][0])


def described_class(settings: Mapping[str, Any]) -> Any:
    """The class of configuration that a recipe's ``config.model`` names.

    Raises InputError for an unknown architecture, and for settings that only others have.
    """
    kind = config_class("config.model.model_type", settings["model_type"])
    known = {"model_type", *(field.name for field in dataclasses.fields(kind))}
    known |= {"size"} if hasattr(kind, "of_size") else set()
    if others := [f"config.model.{name}" for name in settings if name not in known]:
        way_out = "take a recipe of that architecture, of which bert pretrain --help has the names"
        raise InputError(f"config.model.model_type is {kind.model_type!r}, which has no {listed(others, 3)}; {way_out}")
    return kind


def described(settings: Mapping[str, Any], **sizes: Any) -> Any:
    """The configuration that a recipe's ``config.model`` describes; ``sizes``: fields that the data decide.

    A Transformer of a named ``size`` is made with what else is set. Raises InputError as `described_class`.
    """
    kind = described_class(settings)
    fields = {name: value for name, value in settings.items() if value is not None and name != "model_type"} | sizes
    if "size" not in fields:
        return kind(**fields)
    if "hidden_size" in fields:
        fields.setdefault("intermediate_size", 4 * fields["hidden_size"])
    return kind.of_size(fields.pop("size"), **fields)


def with_settings(config: Config, settings: Mapping[str, Any]) -> Config:
    """The configuration with the settings that this architecture has; the others do not concern it."""
    known: Any = config
    names = {field.name for field in dataclasses.fields(known)}
    changed: Config = dataclasses.replace(known, **{name: value for name, value in settings.items() if name in names})
    return changed


def table_width(config: ModelConfig) -> int:
    """The width of the encoder's token table: that of the hidden states, unless a configuration names it."""
    return int(getattr(config, "embedding_size", config.hidden_size))


def packs(config: ModelConfig) -> bool:
    """Whether a row may hold several examples."""
    return bool(build(config).packing != "refused")


def inputs_of(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """What an encoder reads beside token ids, types, positions and examples: key of the batch -> shape at a position.

    Where there is any, it reads no texts; see `has_tokenizer`.
    """
    return dict(getattr(config, "token_inputs", {}))


def has_tokenizer(config: ModelConfig) -> bool:
    """Whether a model reads texts, or has a decoder, which writes them."""
    return not inputs_of(config) or is_encoder_decoder(config)


def objectives_of(config: ModelConfig) -> tuple[str, ...]:
    """The objectives by which an encoder may be pretrained."""
    return tuple(getattr(build(config), "objectives", ("mlm",)))


def is_causal(config: ModelConfig) -> bool:
    """Whether no position sees a later one."""
    return "causal" in objectives_of(config)


def read_at(config: ModelConfig) -> str:
    """Where an example is read: "first", "last", "ends" or "top"; see `Encoder`."""
    return str(getattr(build(config), "read_at", "first"))


def heads_of(config: ModelConfig) -> str:
    """The kind of heads: "bert", "bare" or "none"."""
    return str(getattr(build(config), "heads", "bert"))


def is_encoder_decoder(config: ModelConfig) -> bool:
    """Whether an encoder reads a source and a decoder writes a target; such a model has no heads."""
    return heads_of(config) == "none"


def check_objective(config: ModelConfig, objective: str) -> None:
    """Raises InputError where an encoder cannot be pretrained by this objective."""
    if not (offered := objectives_of(config)):
        pairs = ("pictures with captions", "captioning") if inputs_of(config) else ("pairs of texts", "translation")
        raise InputError(f"a {config.model_type!r} is trained on {pairs[0]}; use bert finetune --config={pairs[1]}")
    if objective not in offered:
        rule = f"a {config.model_type!r} encoder like this one is pretrained by {' or '.join(offered)}"
        raise InputError(f"objective is {objective!r}, but {rule}; set objective={offered[0]}")


def check_packing(config: ModelConfig, packed: bool) -> None:
    """Raises InputError where rows are to hold several examples and the architecture refuses that."""
    if packed and not packs(config):
        raise InputError(
            f"packed is True, but a row of a {config.model_type!r} encoder holds one example only; set packed=False"
        )


def _resolved(place: Any) -> Any:
    if not isinstance(place, str):
        return place
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)
