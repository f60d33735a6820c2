"""Small texts and prepared folders for tests."""

import pathlib
import random
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from bert.store.reader import SPLITS
from bert.store.writer import StoreWriter, finish
from bert.tokenizer.tokenizer import Tokenizer

TEXT = "the keeper climbed stairs and found his lamp where nobody had left it before spring came over rocks"
WORDS = TEXT.split()
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def story(seed, sentences):
    """A document in Google's format: one sentence a line."""
    rng = random.Random(seed)
    return "".join(" ".join(rng.choices(WORDS, k=rng.randint(4, 12))).capitalize() + ".\n" for _ in range(sentences))


def stories(count, sentences=6):
    return "\n".join(story(seed, sentences) for seed in range(count))


def bytes_of(folder):
    return {path.name: path.read_bytes() for path in pathlib.Path(folder).iterdir()}


def write_store(
    folder: str | pathlib.Path,
    tokenizer: Tokenizer,
    splits: Mapping[str, Iterable[Sequence[Sequence[int]]]],
    *,
    continues: Mapping[str, Iterable[Sequence[Sequence[bool]]]] | None = None,
    shard_tokens: int = 1 << 26,
) -> None:
    """Prepared folder of token ids that somebody has already.

    Args:
      folder: new or empty.
      splits: "train" and possibly "validation" -> documents -> sentences -> ids, without [CLS] and [SEP].
      continues: the same, with True where a token continues the word before it; None = the ## pieces do.
      shard_tokens: tokens after which a new shard begins.

    """
    path = pathlib.Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    writers = {}
    for split in SPLITS:
        writer = writers[split] = StoreWriter(
            path,
            split,
            vocab_size=tokenizer.vocab_size,
            word_boundaries=continues is not None,
            shard_tokens=shard_tokens,
        )
        flags = iter(continues.get(split, ())) if continues is not None else None
        for document in splits.get(split, ()):
            ids = np.array([token for sentence in document for token in sentence], np.int64)
            words = np.array([flag for sentence in next(flags) for flag in sentence], bool) if flags else None
            writer.add(ids, np.array([len(sentence) for sentence in document if len(sentence)], np.int64), words)
            writer.end_document()
    finish(path, tokenizer, writers, settings={}, report={})
