"""The registry of tokenizers. Loads one from a folder or a vocabulary file, or trains one on texts."""

import pathlib
from collections.abc import Iterable
from typing import Any

from bert.errors import InputError
from bert.tokenizer.bpe import BPE
from bert.tokenizer.tokenizer import Tokenizer
from bert.tokenizer.tokenizer_files import object_in
from bert.tokenizer.wordpiece import WordPiece
from bert.tokenizer.wordpiece_model import MAX_WORD_CHARS

__all__ = ["BACKENDS", "MAX_WORD_CHARS", "load_tokenizer", "open_vocabulary", "train_tokenizer"]

# A new tokenizer is a file with a subclass of `Tokenizer`, and that class in this line.
BACKENDS: dict[str, type[Tokenizer]] = {backend.model_type: backend for backend in (WordPiece, BPE)}


def load_tokenizer(directory: str | pathlib.Path) -> Tokenizer:
    """Tokenizer of a directory that holds tokenizer.json or vocab.txt, and possibly tokenizer_config.json.

    Where the files disagree, the one counts that counts in transformers, or a line is logged.

    Raises InputError where neither file is there, one is damaged, or a rule cannot be followed.
    """
    folder = pathlib.Path(directory)
    content = object_in(folder / "tokenizer.json")
    model = (content or {}).get("model")
    kind = str(model.get("type")) if isinstance(model, dict) else ""
    # WordPiece reads vocab.txt, too, and refuses types that are not known.
    return BACKENDS.get(kind, WordPiece).from_folder(folder, content)


def open_vocabulary(vocab: str | pathlib.Path, **settings: Any) -> Tokenizer:
    """The tokenizer of a vocabulary file with these settings (lower_case, strip_accents, max_word_chars; None: not
    set), or that of a folder. Raises InputError where there is no vocabulary, or where a folder contradicts a setting.
    """
    path = pathlib.Path(vocab)
    settings = {name: value for name, value in settings.items() if value is not None}
    if not path.is_dir():
        return WordPiece.from_vocab(path, **settings)
    tokenizer = load_tokenizer(path)
    for name, value in settings.items():
        if value != (actual := getattr(tokenizer.settings, name, None)):
            raise InputError(
                f"{name} is {value}, but the tokenizer in {path} has {actual}; leave {name} out, or give a vocab.txt, "
                "for which it can be chosen"
            )
    return tokenizer


def train_tokenizer(texts: Iterable[str], **settings: Any) -> Tokenizer:
    """A tokenizer with pieces learnt from texts; the settings are those of `WordPiece.train`."""
    return WordPiece.train(texts, **settings)
