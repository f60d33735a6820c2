"""Learns a byte-level BPE from texts, by the `tokenizers` library: cased, without unknown characters.

Decoding gives back every text, blank by blank. Source: Sennrich et al. 2016; Radford et al. 2019 (bytes).
"""

import json
from collections.abc import Iterable

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from bert import surrogates
from bert.errors import check_range
from bert.tokenizer.bpe import BPE, BPESettings

PAD, START, END = "<pad>", "<s>", "</s>"
_BYTES = 256


def train(texts: Iterable[str], vocab_size: int) -> BPE:
    """A tokenizer of these texts, with ``<s>`` as `cls_id` and ``</s>`` as `sep_id`, which its template puts behind.

    ``vocab_size``: entries at most, the special tokens and the 256 bytes among them; few texts give fewer.
    """
    special = [PAD, START, END]
    check_range("vocab_size", vocab_size, at_least=len(special) + _BYTES, hint=", the special tokens and all bytes")
    backend = tokenizers.Tokenizer(models.BPE())
    # The first word gets a blank in front, as all others have one, and decoding takes it away.
    backend.normalizer = normalizers.Prepend(" ")
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Strip(" ", 1, 0)])
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=2,  # what stands once in a text is spelling, not a word
        special_tokens=special,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    backend.train_from_iterator(map(surrogates.replace, texts), trainer)
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast", "pad_token": PAD, "cls_token": START, "eos_token": END,
        "clean_up_tokenization_spaces": False,
    }  # fmt: skip
    ids = backend.get_vocab(with_added_tokens=True)
    settings = BPESettings(backend.to_str(), json.dumps(config, sort_keys=True))
    return BPE(tuple(sorted(ids, key=ids.__getitem__)), settings)
