"""BPE, the tokenizer of GPT (lower-cased words that end in </w>) and GPT-2 (bytes), as a tokenizer.json describes it.

The rules are those of the file, run by the `tokenizers` library; none is repeated here. Files in the older form
(vocab.json and merges.txt) need their tokenizer.json, which transformers writes.

Source: Radford et al. 2018 and 2019; Sennrich et al. 2016.
"""

import dataclasses
import functools
import hashlib
import json
import pathlib
from typing import Any

import numpy as np
import tokenizers

from bert import files
from bert.errors import InputError, short_repr
from bert.json_files import read_object
from bert.tokenizer.tokenizer import Template, Tokenizer, library_errors

_CONFIG = "tokenizer_config.json"
_ROLES = ("pad", "unk", "cls", "sep", "mask")


@dataclasses.dataclass(frozen=True)
class BPESettings:
    """All that decides ids."""

    content: str  # of tokenizer.json
    config: str  # of tokenizer_config.json


class BPE(Tokenizer):
    """Words or bytes joined to the entries of a vocabulary by learnt merges; made by `load_tokenizer`."""

    model_type = "BPE"
    settings: BPESettings
    crosses_blanks = True  # a blank may be part of the word behind it

    def __init__(self, vocab: tuple[str, ...], settings: BPESettings, model_max_length: int = 1024):
        self.vocab, self.settings, self.model_max_length = vocab, settings, model_max_length
        content, config = json.loads(settings.content), json.loads(settings.config)
        ids = {entry: index for index, entry in enumerate(vocab)}
        added = content.get("added_tokens") or []
        named = {role: _text(config.get(f"{role}_token")) for role in (*_ROLES, "eos", "bos")}
        named["unk"] = named["unk"] or content["model"].get("unk_token")
        special = [token["content"] for token in added if token.get("special")]
        self.special_ids = tuple(ids[token] for token in dict.fromkeys([*named.values(), *special]) if token in ids)
        # Roles that the files do not name: the token that ends a text, or the first special one, stands for them.
        usual = next((ids[token] for token in (named["eos"], named["unk"], *special) if token in ids), 0)
        roles = [ids.get(named[role] or "", usual) for role in _ROLES]
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = roles
        self.end_id = ids.get(named["eos"] or "", -1)
        lowered = self._keeping.normalizer.normalize_str("A") if self._keeping.normalizer else "A"
        self.lower_case = lowered == "a"

    @classmethod
    def from_folder(cls, folder: pathlib.Path, content: dict[str, Any] | None) -> "BPE":
        path = folder / "tokenizer.json"
        text = path.read_text(encoding="utf-8")
        with library_errors(f"{path}: no tokenizer that `tokenizers` can read ({{}}); get the file again"):
            ids = tokenizers.Tokenizer.from_str(text).get_vocab(with_added_tokens=True)
        entries = sorted(ids, key=ids.__getitem__)
        if wrong := next((entry for i, entry in enumerate(entries) if ids[entry] != i), None):
            raise InputError(f"{path}: {short_repr(wrong)} has id {ids[wrong]}; ids must have no gap")
        config = folder / _CONFIG
        values = read_object(config) if config.is_file() else {}
        limit = values.pop("model_max_length", None) or 1024
        if isinstance(limit, bool) or not isinstance(limit, int | float) or limit < 1:
            raise InputError(f"{config}: model_max_length is {short_repr(limit)}; it must be a number of at least 1")
        settings = BPESettings(text, json.dumps(values, sort_keys=True))
        return cls(tuple(entries), settings, int(min(limit, 1 << 30)))  # transformers writes 1e30 for "no limit"

    def save(self, directory: str | pathlib.Path, *, model_max_length: int | None = None) -> None:
        config = json.loads(self.settings.config)
        config["model_max_length"] = model_max_length or self.model_max_length
        texts = (self.settings.content, "\n".join(self.vocab) + "\n", files.json_text(config, indent=2))
        for name, text in zip(("tokenizer.json", "vocab.txt", _CONFIG), texts, strict=True):
            files.write(pathlib.Path(directory) / name, text)

    def build(self, *, split_special: bool) -> tokenizers.Tokenizer:
        backend = tokenizers.Tokenizer.from_str(self.settings.content)
        backend.no_padding()
        backend.no_truncation()
        backend.encode_special_tokens = split_special
        return backend

    @property
    def template(self) -> Template:
        """The text alone, and the token that ends it where there is one; nothing tells segments apart."""
        after = (self.end_id,) if self.end_id >= 0 else ()
        return Template((), after, after, type_of_b=0)

    @functools.cached_property
    def continues_word_V(self) -> np.ndarray:
        """Of entries that end words the mark shows where one begins: behind such an entry."""
        return np.array([not entry.startswith("\u0120") for entry in self.vocab])

    @functools.cached_property
    def replacement_ids(self) -> np.ndarray:
        special = set(self.special_ids)
        return np.array([i for i in range(self.vocab_size) if i not in special], np.int32)

    @functools.cached_property
    def fingerprint(self) -> str:
        return hashlib.sha256(json.dumps([self.settings.content, self.template]).encode()).hexdigest()

    def piece_text(self, index: int) -> str:
        return str(self._keeping.decode([index], skip_special_tokens=False)).strip()

    def summary(self) -> str:
        small = "yes" if self.lower_case else "no"
        return f"vocabulary of {self.vocab_size:,} (BPE); lower-case: {small}"


def _text(token: Any) -> str | None:
    """A token of tokenizer_config.json, a text or an object."""
    return token.get("content") if isinstance(token, dict) else token
