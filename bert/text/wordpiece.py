"""The rules of WordPiece as objects of the `tokenizers` library, which only this file imports.

Source: google-research/bert, tokenization.py (`BasicTokenizer`, `WordpieceTokenizer`).
"""

import dataclasses
import re
from collections.abc import Iterable, Sequence

from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors, trainers
from tokenizers import Tokenizer as Backend

from bert.text.vocabulary import SPECIAL_TOKENS


@dataclasses.dataclass(frozen=True)
class TokenizerSettings:
    """All that decides the ids of a text, beside the vocabulary."""

    lower_case: bool
    strip_accents: bool
    split_chinese: bool = True
    max_word_chars: int = 100  # characters after lower-casing; tokenizers' default, Google's is 200
    special_tokens: tuple[tuple[str, str], ...] = tuple(SPECIAL_TOKENS.items())
    protected: tuple[str, ...] = ()  # words that are never split


def build(vocab: Sequence[str], settings: TokenizerSettings) -> Backend:
    """The `tokenizers` object of a vocabulary; [CLS] and [SEP] are for others that read the saved file."""
    ids = {entry: index for index, entry in enumerate(vocab)}
    special = dict(settings.special_tokens)
    made = _bare(ids, settings)
    made.decoder = decoders.WordPiece(prefix="##", cleanup=True)
    cls_token, sep_token = special["cls"], special["sep"]
    made.post_processor = processors.TemplateProcessing(
        single=[cls_token, "$A", sep_token],
        pair=[cls_token, "$A", sep_token, "$B:1", f"{sep_token}:1"],
        special_tokens=[(cls_token, ids[cls_token]), (sep_token, ids[sep_token])],
    )
    made.add_special_tokens([AddedToken(special[name], normalized=False, special=True) for name in SPECIAL_TOKENS])
    # single_word: "graft" must not be cut out of "grafting"; marks such as [E1] may touch other text.
    whole = [AddedToken(word, normalized=True, single_word=word.isalnum()) for word in settings.protected]
    made.add_tokens(whole)
    return made


def _bare(ids: dict[str, int], settings: TokenizerSettings) -> Backend:
    """Normalization, words and pieces alone; special tokens mean nothing yet."""
    unknown = dict(settings.special_tokens)["unk"]
    made = Backend(models.WordPiece(ids, unk_token=unknown, max_input_chars_per_word=settings.max_word_chars))
    made.normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=settings.split_chinese,
        strip_accents=settings.strip_accents,
        lowercase=settings.lower_case,
    )
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return made


def learn(texts: Iterable[str], settings: TokenizerSettings, *, vocab_size: int) -> list[str]:
    """Entries of a vocabulary for these texts, special tokens first; only those if the texts hold no word."""
    special = [token for _, token in settings.special_tokens]
    # Without added tokens: a literal [CLS] in the text must be lower-cased and split as any other word.
    made = _bare({token: index for index, token in enumerate(special)}, settings)
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocab_size,
        min_frequency=2,  # what stands once in a text is spelling, not a word
        special_tokens=special,
        limit_alphabet=_alphabet_size(vocab_size),
        show_progress=False,
    )
    made.train_from_iterator(texts, trainer)
    ids = made.get_vocab(with_added_tokens=True)
    return sorted(ids, key=ids.__getitem__)


def _alphabet_size(vocab_size: int) -> int:
    """Characters that a learnt vocabulary may hold; the rarest are left to [UNK].

    A character can take two entries (x and ##x). An eighth of BERT's 30,522 covers Chinese; small vocabularies need
    their 256 most frequent ones, or half of what they hold.
    """
    return max(vocab_size // 8, min(256, (vocab_size - len(SPECIAL_TOKENS)) // 2), 1)


def clean(text: str) -> str:
    """The text with lone surrogates, which are no characters and which Rust refuses, replaced one for one."""
    return text if text.isascii() else re.sub("[\ud800-\udfff]", "\ufffd", text)
