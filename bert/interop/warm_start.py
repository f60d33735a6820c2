"""Makes an encoder-decoder of a BERT, whose weights one half, both or none of them begin with.

Source: Rothe et al. 2020, section 3.
"""

import dataclasses
from typing import Any

import jax
import numpy as np

from bert import architectures
from bert.architectures.bert import BertConfig
from bert.architectures.bert2bert import BertToBertConfig
from bert.errors import InputError, check_choice
from bert.interop.model_directory import ModelDirectory
from bert.tokenizer.tokenizer import Tokenizer
from bert.types import Params

# Variant -> whether the encoder, and whether the decoder, begins with the weights. bertshare: both are one.
VARIANTS = {
    "bert2bert": (True, True),
    "bertshare": (True, True),
    "bert2rnd": (True, False),
    "rnd2bert": (False, True),
    "rnd2rnd": (False, False),
}


@dataclasses.dataclass(frozen=True)
class WarmStart:
    """How an encoder-decoder begins."""

    # Which half begins with the weights of init_from: bert2bert, bertshare (both, and they stay one), bert2rnd (the
    # encoder), rnd2bert (the decoder) or rnd2rnd. The rest is random, and so is always what reads the source.
    variant: str = "bert2bert"

    def __post_init__(self) -> None:
        check_choice("config.model.variant", self.variant, tuple(VARIANTS))


def encoder_decoder(model: ModelDirectory, start: WarmStart, seed: int) -> ModelDirectory:
    """An encoder-decoder with the sizes and the vocabulary of a BERT; ``seed``: of what is random.

    The decoder's words are scored as by the BERT's masked-word head, which is random where the BERT has none. Raises
    InputError for another model than a BERT, and for a vocabulary without tokens that begin and end a text.
    """
    source, config, tokenizer = model.report.source, model.config, model.tokenizer
    if not isinstance(config, BertConfig) or config.model_type != "bert" or config.is_decoder:
        kind = "causal BERT" if isinstance(config, BertConfig) and config.is_decoder else repr(config.model_type)
        raise InputError(f"{source}: is a {kind}; {start.variant} is made of a BERT with attention to both sides")
    check_ends(tokenizer, source)
    sizes = {field.name: getattr(config, field.name) for field in dataclasses.fields(BertConfig)}
    ends: dict[str, Any] = {"start_id": tokenizer.cls_id, "end_id": tokenizer.sep_id} if tokenizer else {}
    both = BertToBertConfig(**sizes, **ends, share=start.variant == "bertshare")
    params = drawn(both, seed)
    encoder_kept, decoder_kept = VARIANTS[start.variant]
    theirs = model.params["encoder"]
    if encoder_kept:
        params["source"] = theirs
    decoder, fresh = params["decoder"], ["the attention to the source"]
    if decoder_kept and not both.share:
        decoder |= {"embeddings": theirs["embeddings"], "blocks": decoder["blocks"] | theirs["blocks"]}
    if decoder_kept and "mlm" in model.params["head"]:
        decoder["words"] = model.params["head"]["mlm"]
    elif decoder_kept:
        fresh.append("what scores words")
    fresh += [name for name, kept in (("encoder", encoder_kept), ("decoder", decoder_kept)) if not kept]
    note = f"{start.variant}: random weights in {', '.join(fresh)}"
    report = dataclasses.replace(model.report, notes=[*model.report.notes, note])
    return model._replace(config=both, params={"encoder": params, "head": {}}, parts=("encoder",), report=report)


def drawn(config: BertToBertConfig, seed: int) -> Params:
    """Random parameters of an encoder-decoder, float32 NumPy arrays."""
    ids_BT = np.ones((1, 1), np.int32)
    batch = dict.fromkeys(("token_ids", "type_ids", "position_ids", "example_ids"), ids_BT)
    init: Any = jax.jit(architectures.build(config).init)
    params: Params = jax.tree.map(np.asarray, init(jax.random.key(seed), batch)["params"])
    return params


def check_ends(tokenizer: Tokenizer | None, source: str) -> None:
    """Raises InputError for a vocabulary that has no two tokens between which a text stands."""
    if tokenizer and tokenizer.cls_id == tokenizer.sep_id:
        what = f"{tokenizer.vocab[tokenizer.cls_id]!r} would both begin and end a text"
        raise InputError(f"{source}: {what}; translation needs two tokens for that, such as [CLS] and [SEP]")
