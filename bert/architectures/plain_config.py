"""`PlainConfig` and `TwoSidedConfig`: configurations whose config.json only this library reads, by field names."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

from bert.architectures import config_keys
from bert.architectures.transformer import DTYPES
from bert.errors import InputError, check_choice, check_range

Config = TypeVar("Config", bound="PlainConfig")


@dataclasses.dataclass(frozen=True)
class PlainConfig:
    """Sizes and way of computing of a model that is no Transformer. Raises InputError for a value out of range."""

    model_type: ClassVar[str]
    whole: ClassVar[tuple[str, ...]] = ()  # fields of a subclass that are whole numbers, at least 1
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {}  # field of a subclass -> what it may be
    type_vocab_size: ClassVar[int] = 2  # both segments are read alike; [SEP] stands between them
    hidden_act: ClassVar[str] = "gelu"  # of the masked-word head
    layer_norm_eps: ClassVar[float] = 1e-12
    vocab_size: int  # rows of the token table
    embedding_size: int = 128  # width of the token embeddings, which also score words
    hidden_size: int = 512  # width of the hidden states
    num_layers: int = 1
    max_length: int = 512  # longest sequence, in tokens; no parameter depends on it
    hidden_dropout: float = 0.1  # of embeddings and of the outputs of each layer
    initializer_range: float = 0.1  # standard deviation of random embeddings; of kernels it is 1 / sqrt(inputs)
    dtype: str = "float32"  # of matrix products: float32 or bfloat16

    def __post_init__(self) -> None:
        for name in ("vocab_size", "embedding_size", "hidden_size", "num_layers", "max_length", *self.whole):
            check_range(name, getattr(self, name), at_least=1, whole=True)
        check_range("hidden_dropout", self.hidden_dropout, at_least=0, below=1)
        check_range("initializer_range", self.initializer_range, above=0, below=3e38)
        for name, allowed in {"dtype": DTYPES, **self.choices}.items():
            check_choice(name, getattr(self, name), allowed)

    def check_training(self) -> None:
        """Any may be trained."""

    def to_json(self) -> dict[str, Any]:
        """All fields but ``dtype``, which is that of the weights there."""
        values = dataclasses.asdict(self)
        return {"model_type": self.model_type, **{name: values[name] for name in self._keys()}}

    @classmethod
    def from_json(cls: type[Config], values: Mapping[str, Any], *, source: str = "config.json") -> Config:
        if missing := [name for name in cls._keys() if name not in values]:
            raise InputError(f"{source}: {', '.join(missing)} missing; a {cls.model_type!r} configuration names them")
        try:
            return cls(**{name: values[name] for name in cls._keys()})
        except InputError as error:
            raise InputError(f"{source}: {error}") from None

    @classmethod
    def json_notes(cls, values: Mapping[str, Any], *, source: str = "config.json") -> list[str]:
        return config_keys.notes_of_own(values, cls._keys(), source)

    @classmethod
    def _keys(cls) -> list[str]:
        return [field.name for field in dataclasses.fields(cls) if field.name != "dtype"]


@dataclasses.dataclass(frozen=True)
class TwoSidedConfig(PlainConfig):
    """Of an encoder of two sides (bert/model/two_sides.py); ``hidden_size`` is the width of both together."""

    # What joins the two sides of a blank. sum: a linear map, which cannot learn XOR of the neighbours; mlp: a layer
    # with GELU and a linear map, as in context2vec.
    mix: str = "sum"
    mix_size: int = 1024  # hidden width of the mlp

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("mix", self.mix, ("sum", "mlp"))
        check_range("mix_size", self.mix_size, at_least=1, whole=True)
        if self.hidden_size % 2:
            rule = f"hidden_size is {self.hidden_size}; it must be even, for each side has half of it"
            raise InputError(f"{rule}: {self.hidden_size + 1}, say")
