"""The rules of WordPiece as objects of the `tokenizers` library, which only this file imports.

Source: google-research/bert, tokenization.py (`BasicTokenizer`, `WordpieceTokenizer`).
"""

import dataclasses
import hashlib
import json
import re
from collections.abc import Iterable, Sequence

from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors, trainers
from tokenizers import Tokenizer as Backend

from bert.errors import InputError
from bert.text.added_words import AddedWord, protected_word, special_word
from bert.text.vocabulary import SPECIAL_TOKENS

MAX_WORD_CHARS = 100  # where nothing is said; tokenizers' default, Google's is 200


@dataclasses.dataclass(frozen=True)
class TokenizerSettings:
    """All that decides the ids of a text, beside the vocabulary."""

    lower_case: bool
    strip_accents: bool
    split_chinese: bool = True
    max_word_chars: int = MAX_WORD_CHARS  # characters after lower-casing
    special_tokens: tuple[tuple[str, str], ...] = tuple(SPECIAL_TOKENS.items())
    protected: tuple[str, ...] = ()  # words that are never split
    added: tuple[AddedWord, ...] = ()  # the same with rules of their own; a special token only if its rules are unusual
    pieces: int | None = None  # entries that words are cut into, the first ones; the rest are only added words

    def added_words(self) -> dict[str, AddedWord]:
        """All that is looked for before words are cut, by its text; special tokens are among them."""
        found = {token: special_word(token) for _, token in self.special_tokens}
        found |= {word: protected_word(word) for word in self.protected}
        return found | {word.content: word for word in self.added}


def build(vocab: Sequence[str], settings: TokenizerSettings, *, split_special: bool = False) -> Backend:
    """The `tokenizers` object of a vocabulary; [CLS] and [SEP] are for others that read the saved file.

    Args:
      split_special: the five special tokens are split like any other text; other added words are kept whole.
    """
    ids = {entry: index for index, entry in enumerate(vocab)}
    special = dict(settings.special_tokens)
    made = _bare({entry: ids[entry] for entry in vocab[: settings.pieces]}, settings)
    made.decoder = decoders.WordPiece(prefix="##", cleanup=True)
    cls_token, sep_token = special["cls"], special["sep"]
    made.post_processor = processors.TemplateProcessing(
        single=[cls_token, "$A", sep_token],
        pair=[cls_token, "$A", sep_token, "$B:1", f"{sep_token}:1"],
        special_tokens=[(cls_token, ids[cls_token]), (sep_token, ids[sep_token])],
    )
    # In the order of their ids, for the library numbers those that are no entries in the order in which they come.
    for word in sorted(settings.added_words().values(), key=lambda word: ids[word.content]):
        fields = dataclasses.asdict(word)
        if split_special:
            fields["special"] = word.content in special.values()
        made.add_tokens([AddedToken(**fields)])
    made.encode_special_tokens = split_special
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


def fingerprint(vocab: Sequence[str], settings: TokenizerSettings) -> str:
    """SHA-256 over all that decides ids."""
    fields = dataclasses.asdict(settings)
    for name in ("added", "pieces"):  # text prepared before there were such settings keeps its fingerprint
        if not fields[name]:
            del fields[name]
    parts = json.dumps([vocab, fields], ensure_ascii=False)
    return hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()


def learn(texts: Iterable[str], settings: TokenizerSettings, vocab_size: int, source: str) -> list[str]:
    """Entries of a vocabulary for these texts, special tokens first.

    Raises:
      InputError: no room beside the special tokens, or no word in the texts, which messages call `source`.
    """
    if vocab_size <= len(SPECIAL_TOKENS):
        raise InputError(f"vocab_size {vocab_size} must be above {len(SPECIAL_TOKENS)}, the special tokens")
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
    if len(ids) == len(special):
        raise InputError(f"{source}: the texts hold no word, so no vocabulary can be learnt from them")
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
