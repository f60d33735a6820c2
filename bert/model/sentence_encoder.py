"""`SentenceEncoder`: how hidden states become the vector of a text, as a directory declares it or a caller chooses.

No array is computed here: bert/model/pooling.py does that, bert/sentences/embedder.py batches texts, and
bert/interop/sentence_transformers.py reads and writes the declarations.
"""

import dataclasses
from collections.abc import Mapping, Sequence

from bert.errors import InputError, check_choice, short_repr
from bert.types import Params

# In the order in which files of older versions of sentence_transformers join several of them.
MODES = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")
POOLER = "pooler"  # the output of BERT's pooler, which is no mode of sentence_transformers
NORMALIZE = "normalize"  # a layer that makes vectors one long
ACTIVATIONS = ("identity", "tanh", "relu", "gelu", "silu", "sigmoid")  # of dense layers
SIMILARITIES = ("cosine", "dot", "euclidean", "manhattan")


@dataclasses.dataclass(frozen=True)
class SentenceEncoder:
    """What a text's vector is made of, and how texts are read for it. Raises InputError for an unknown pooling."""

    pooling: tuple[str, ...] = ("mean",)  # of MODES, one after the other; or the pooler alone
    layers: tuple[str, ...] = ()  # behind the pooling: NORMALIZE, or the activation of a dense layer
    dense: tuple[Params, ...] = ()  # of each dense layer in their order: kernel float32 [in, out], bias float32 [out]
    max_length: int | None = None  # longest input in tokens, special ones included; None: the model's positions
    lower_case: bool = False  # texts are lower-cased before the tokenizer reads them
    prompts: Mapping[str, str] = dataclasses.field(default_factory=dict)  # name -> text to put in front
    default_prompt: str | None = None  # the name of the one that is put in front of every text
    include_prompt: bool = True  # whether the prompt's tokens are pooled, too
    similarity: str = "cosine"  # of SIMILARITIES

    def __post_init__(self) -> None:
        for mode in self.pooling:
            check_choice("pooling", mode, MODES if len(self.pooling) > 1 else (*MODES, POOLER))
        if not self.pooling or len(set(self.pooling)) < len(self.pooling):
            raise InputError(f"pooling is {', '.join(self.pooling) or 'empty'}; name one mode, or several once each")

    def width(self, hidden_size: int) -> int:
        """K, the width of the vectors."""
        return int(self.dense[-1]["bias"].shape[0]) if self.dense else hidden_size * len(self.pooling)

    def changed(self, pooling: str | Sequence[str] | None, normalize: bool | None) -> "SentenceEncoder":
        """The same with another pooling, then without the layers behind it, and with vectors made one long, or not.

        None: as it is.
        """
        if normalize is not None and not isinstance(normalize, bool):
            raise InputError(f"normalize is {short_repr(normalize)}; it must be True, False or None, as declared")
        encoder = self
        if pooling is not None:
            several = isinstance(pooling, Sequence) and not isinstance(pooling, str)
            modes = tuple(pooling) if several else (str(pooling),)
            encoder = dataclasses.replace(self, pooling=modes, layers=(), dense=())
        ends = encoder.layers[-1:] == (NORMALIZE,)
        if normalize is True and not ends:
            return dataclasses.replace(encoder, layers=(*encoder.layers, NORMALIZE))
        if normalize is False and ends:
            return dataclasses.replace(encoder, layers=encoder.layers[:-1])
        return encoder

    def prompt(self, name: str | None) -> str:
        """The text to put in front: that of the name, or the default; "" where there is none. Not found: InputError."""
        name = self.default_prompt if name is None else name
        if name is None:
            return ""
        if name not in self.prompts:
            known = f"only {', '.join(self.prompts)}; name one" if self.prompts else "none; leave prompt out"
            raise InputError(f"prompt is {name!r:.100}, but the model declares {known}")
        return self.prompts[name]

    def __str__(self) -> str:
        steps = [" + ".join(self.pooling)]
        widths = iter(self.dense)
        for layer in self.layers:
            if layer == NORMALIZE:
                steps.append("made one long")
            else:
                steps.append("dense {} to {} ({})".format(*next(widths)["kernel"].shape, layer))
        return ", ".join(steps)
