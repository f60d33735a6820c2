"""Learns a WordPiece vocabulary from texts: which characters it holds, then pieces by the `tokenizers` library."""

import collections
import itertools
from collections.abc import Iterable, Iterator

import numpy as np
from absl import logging
from tokenizers import Tokenizer as LibraryTokenizer
from tokenizers import trainers

from bert import surrogates
from bert.errors import InputError
from bert.tokenizer.vocab_file import SPECIAL_TOKENS
from bert.tokenizer.wordpiece_model import WordPieceSettings, bare

ALPHABET_SHARE = 0.75  # of a learnt vocabulary at most are characters, for pieces must have room, too
COVERED = 0.9995  # share of the text that its characters cover where not all have room (as SentencePiece does)


def learn(texts: Iterable[str], settings: WordPieceSettings, vocab_size: int, source: str) -> list[str]:
    """Entries of a vocabulary for these texts, special tokens first; the same for the same texts in any order.

    The texts are read twice. The trainer of `tokenizers` breaks ties between pairs by the ids of their pieces, and
    numbers the pieces that it finds in the order of a hash table. So all single characters are given to it, each letter
    x as x and as ##x.
    """
    if vocab_size <= len(SPECIAL_TOKENS):
        raise InputError(f"vocab_size {vocab_size} must be above {len(SPECIAL_TOKENS)}, the special tokens")
    special = [token for _, token in settings.special_tokens]
    # Without added tokens: a literal [CLS] in the text must be lower-cased and split as any other word.
    backend = bare({token: index for index, token in enumerate(special)}, settings)
    texts = list(texts) if isinstance(texts, Iterator) else texts
    counts = _count_characters(texts, backend)
    if not counts:
        raise InputError(
            f"{source}: the texts hold no word, so no vocabulary can be learnt from them; name other files"
        )
    size = _alphabet_size(counts, backend, vocab_size, source)
    alphabet = sorted(character for character, _ in counts.most_common(size))
    inner = [settings.prefix + character for character in alphabet if not _is_word(character, backend)]
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocab_size,
        min_frequency=2,  # what stands once in a text is spelling, not a word
        special_tokens=[*special, *alphabet, *inner],
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        show_progress=False,
    )
    backend.train_from_iterator(texts, trainer)
    ids = backend.get_vocab(with_added_tokens=True)
    return sorted(ids, key=ids.__getitem__)


def _count_characters(texts: Iterable[str], backend: LibraryTokenizer) -> collections.Counter[str]:
    """How often each character stands in the texts, after normalization and without white space."""
    counts = np.zeros(0x110000, np.int64)
    held: list[str] = []
    size = 0
    for text in itertools.chain(texts, [None]):
        held.append(text or "")
        size += len(held[-1])
        if size >= 1 << 20 or text is None:  # one count over all code points takes as long as half a million characters
            points = np.frombuffer("".join(held).encode("utf-32-le", "surrogatepass"), "<u4")
            counts += np.bincount(points, minlength=len(counts))
            held, size = [], 0
    normalized: collections.Counter[str] = collections.Counter()
    for point in np.flatnonzero(counts).tolist():
        for character in backend.normalizer.normalize_str(surrogates.replace(chr(point))):
            if not character.isspace():
                normalized[character] += int(counts[point])
    return normalized


def _alphabet_size(counts: collections.Counter[str], backend: LibraryTokenizer, vocab_size: int, source: str) -> int:
    """Characters that a learnt vocabulary may hold; the rarest are left to [UNK].

    All, if they take at most three quarters of the entries: one each for ideographs and punctuation marks, which are
    words, two for all others (x and ##x). Else as many as cover 99.95 % of the text and have room there, but no fewer
    than an eighth of the entries, or in small vocabularies the 256 most frequent ones, or half of what they hold.
    """
    least = max(vocab_size // 8, min(256, (vocab_size - len(SPECIAL_TOKENS)) // 2), 1)
    if len(counts) <= least:
        return least
    ordered = counts.most_common()
    entries = np.cumsum([1 if _is_word(character, backend) else 2 for character, _ in ordered])
    have_room = int(np.searchsorted(entries, ALPHABET_SHARE * (vocab_size - len(SPECIAL_TOKENS)), side="right"))
    if have_room == len(ordered):
        return have_room
    covered = np.cumsum([count for _, count in ordered])
    size = max(least, min(int(np.searchsorted(covered, COVERED * covered[-1])) + 1, have_room))
    lost = 1 - covered[size - 1] / covered[-1]
    if lost > 1 - COVERED:
        enough = int(np.ceil(entries[-1] / ALPHABET_SHARE)) + len(SPECIAL_TOKENS)
        logging.warning(
            "%s: vocab_size %d has room for the %d most frequent of %d characters, and %.2f %% of the text becomes "
            "[UNK]; vocab_size %d has room for all",
            *(source, vocab_size, size, len(ordered), 100 * lost, enough),
        )
    return size


def _is_word(character: str, backend: LibraryTokenizer) -> bool:
    """Whether a character is a word of its own wherever it stands: an ideograph or a punctuation mark."""
    return len(backend.pre_tokenizer.pre_tokenize_str(backend.normalizer.normalize_str(f"a{character}a"))) > 1
