"""What somebody can choose for `prepare`, and the tokenizer of the vocabulary that the choice names."""

import dataclasses
import pathlib

from bert.corpus.corpus import CorpusSettings
from bert.errors import InputError
from bert.tokenizer.tokenizer import Tokenizer
from bert.tokenizer.wordpiece import MAX_WORD_CHARS


@dataclasses.dataclass(frozen=True)
class PrepareSettings:
    """All that somebody can choose; configs/prepare.py explains each field.

    With the texts, and what `vocab` names, they decide the prepared bytes; not where `vocab` is empty, for learning a
    vocabulary twice does not give the same one.
    """

    corpus: str
    vocab: str = ""
    vocab_size: int = 8192
    vocab_megabytes: int = 100
    lower_case: bool | None = None
    strip_accents: bool | None = None
    max_word_chars: int | None = None  # None: as the folder in `vocab` has it, else 100
    encoding: str = ""
    text_column: str = "text"
    documents: str = "auto"
    sentences: str = "auto"
    language: str = "en"
    word_boundaries: str = ""
    special_tokens_in_text: bool = False
    validation_share: float = 0.01
    deduplicate: bool = True
    seed: int = 0
    shard_tokens: int = 1 << 26

    def __post_init__(self):
        if not 0 <= self.validation_share < 1:
            raise InputError(f"validation_share {self.validation_share} must be from 0 to below 1")
        if self.word_boundaries not in ("", "whitespace"):
            raise InputError(f"word_boundaries {self.word_boundaries!r} must be empty or 'whitespace'")
        for name in ("vocab_size", "vocab_megabytes", "max_word_chars", "shard_tokens"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise InputError(f"{name} {getattr(self, name)} must be at least 1")

    def reading(self) -> CorpusSettings:
        return CorpusSettings(self.encoding, self.text_column, self.documents, self.sentences, self.language)


def given_tokenizer(settings: PrepareSettings) -> Tokenizer:
    """The tokenizer of a vocabulary file, with the settings; or that of a folder, which decides them.

    Raises InputError where there is no vocabulary, or where a folder contradicts a setting.
    """
    path = pathlib.Path(settings.vocab)
    if not path.is_dir():
        return Tokenizer.from_vocab(
            path,
            lower_case=settings.lower_case,
            strip_accents=settings.strip_accents,
            max_word_chars=settings.max_word_chars or MAX_WORD_CHARS,
        )
    tokenizer = Tokenizer.load(path)
    for name in ("lower_case", "strip_accents", "max_word_chars"):
        wanted, has = getattr(settings, name), getattr(tokenizer.settings, name)
        if wanted is not None and wanted != has:
            raise InputError(
                f"{name} is {wanted}, but the tokenizer in {path} has {has}; leave {name} out, or give a vocab.txt, "
                "for which it can be chosen"
            )
    return tokenizer
