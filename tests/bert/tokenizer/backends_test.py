"""Another kind of tokenizer is one class and a line in the registry: byte-level BPE with RoBERTa's special tokens."""

import dataclasses
import functools
import hashlib
import pathlib

import numpy as np
import pytest
import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

from bert.data.batches import Batches
from bert.data.settings import BatchSettings
from bert.errors import InputError
from bert.store.prepare import PrepareSettings, prepare
from bert.store.reader import Store
from bert.tokenizer import backends, sequences
from bert.tokenizer.added_words import words_of
from bert.tokenizer.tokenizer import Template, Tokenizer
from tests.bert.builders import stories

SPECIAL = ["<pad>", "<unk>", "<s>", "</s>", "<mask>"]
BLANK = "\u0120"  # a blank in the alphabet of bytes


@dataclasses.dataclass(frozen=True)
class Settings:
    content: str  # of tokenizer.json


class ByteLevel(Tokenizer):
    model_type = "BPE"
    lower_case = False
    crosses_blanks = True  # a blank is part of the word behind it

    def __init__(self, vocab: tuple[str, ...], settings: Settings, model_max_length: int = 512):
        self.vocab, self.settings, self.model_max_length = vocab, settings, model_max_length
        self.special_ids = tuple(vocab.index(token) for token in SPECIAL)
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = self.special_ids

    @classmethod
    def from_folder(cls, folder, content):
        text = (folder / "tokenizer.json").read_text()
        ids = tokenizers.Tokenizer.from_str(text).get_vocab()
        return cls(tuple(sorted(ids, key=ids.__getitem__)), Settings(text))

    def save(self, directory, *, model_max_length=None):
        (pathlib.Path(directory) / "tokenizer.json").write_text(self.settings.content)

    def build(self, *, split_special):
        backend = tokenizers.Tokenizer.from_str(self.settings.content)
        backend.encode_special_tokens = split_special
        return backend

    @functools.cached_property
    def continues_word_V(self):
        return np.array([not entry.startswith(BLANK) for entry in self.vocab])

    @functools.cached_property
    def replacement_ids(self):
        return np.arange(len(SPECIAL), self.vocab_size, dtype=np.int32)

    @property
    def fingerprint(self):
        return hashlib.sha256(self.settings.content.encode()).hexdigest()

    @property
    def template(self):
        return Template((self.cls_id,), (self.sep_id, self.sep_id), (self.sep_id,), type_of_b=0)

    def piece_text(self, index):
        return self.vocab[index].replace(BLANK, "")

    def summary(self):
        return f"{self.vocab_size} byte-level entries"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a tokenizer of this kind, which is registered."""
    backend = tokenizers.Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator([stories(9)], trainer)
    (tmp_path / "tokenizer").mkdir()
    (tmp_path / "tokenizer" / "tokenizer.json").write_text(backend.to_str())
    monkeypatch.setitem(backends.BACKENDS, "BPE", ByteLevel)
    return tmp_path / "tokenizer"


def test_a_kind_that_is_not_registered_is_refused(folder, monkeypatch):
    monkeypatch.delitem(backends.BACKENDS, "BPE")
    with pytest.raises(InputError, match=r"tokenizer\.json.*'BPE'.*WordPiece"):
        backends.load_tokenizer(folder)


def test_texts_become_ids_with_offsets_and_back(folder):
    tokenizer = backends.load_tokenizer(folder)
    text = "The cat \u00e9 sat"
    encoding = tokenizer.encode(text)
    assert encoding.offsets[-1][1] == len(text)
    assert tokenizer.decode(encoding.ids).strip() == text
    ids, types = sequences.pair([9], [10, 11], tokenizer, 16)
    assert ids == [2, 9, 3, 3, 10, 11, 3]
    assert types == [0] * 7
    assert sequences.texts([("a", "b c"), ("a",)], tokenizer, 4)[0][0][-1] == 3


def test_tokens_are_added_only_where_a_kind_takes_them(folder):
    tokenizer = backends.load_tokenizer(folder)
    assert tokenizer.add_words([]) is tokenizer
    with pytest.raises(InputError, match=r"added tokens: .*BPE"):
        tokenizer.add_words(words_of("[E1]"))


@pytest.mark.parametrize("objective", ["nsp", "none"])
def test_text_is_prepared_and_batched_with_its_template(folder, tmp_path, objective):
    """Pairs have two separators between them and no second segment type; all text of the store is in an epoch."""
    (tmp_path / "a.txt").write_text(stories(40))
    prepare(tmp_path / "out", PrepareSettings(str(tmp_path / "a.txt"), str(folder), validation_share=0))
    store = Store.open(tmp_path / "out")
    assert store.tokenizer.piece_text(store.read([0], [1])[0])
    batches = Batches(store, BatchSettings(batch_size=4, max_length=64, objective=objective, whole_words=True))
    separators, tokens = set(), 0
    for batch in map(batches, range(int(batches.steps_per_epoch))):
        assert not batch["type_ids"].any()
        for row, example_ids in zip(batch["token_ids"], batch["example_ids"], strict=True):
            for number in range(1, example_ids.max() + 1):
                example = row[example_ids == number]
                assert example[0] == 2
                assert example[-1] == 3
                inner = np.flatnonzero(example[:-1] == 3)
                assert np.array_equal(inner, inner[:1] + np.arange(len(inner)))
                separators.add(len(inner))
                tokens += len(example) - 2 - len(inner)
    assert separators <= ({0, 2} if objective == "nsp" else {0})
    assert tokens > 0.8 * store.num_tokens
