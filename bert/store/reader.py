"""Reads a prepared folder: memory-mapped token ids, and a manifest that is written last.

    manifest.json                    what is here; its keys are listed at `finish` in writer.py
    tokenizer.json, vocab.txt, tokenizer_config.json
    SPLIT-00000.tokens               uint16 (uint32 above 65,536 entries) [tokens]; no [CLS], no [SEP]
    SPLIT-00000.sentences            int64 [sentences]; end of each sentence, counted in tokens of this shard
    SPLIT-00000.documents            int64 [documents]; end of each document; each is the end of a sentence, too
    SPLIT-00000.words                uint8 [tokens]; 1 = continues the word before it (only with word boundaries)

SPLIT is "train" or "validation". No document crosses shards. A folder without a manifest is not finished.
"""

import functools
import hashlib
import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from bert.errors import InputError
from bert.store.manifest import MANIFEST, check_files, damaged, read_manifest
from bert.store.range_positions import range_positions
from bert.tokenizer.backends import load_tokenizer
from bert.tokenizer.tokenizer import Tokenizer

SPLITS = ("train", "validation")
# The released weights label "B follows A" 0 and "B is random" 1 (google-research/bert, create_pretraining_data.py).
LABELS = {"next_sentence": {"0": "is_next", "1": "random"}}


class Shard(NamedTuple):
    """One shard of a split; arrays are memory-mapped and read-only."""

    name: str  # path without ending, for messages
    tokens: np.ndarray  # uint16 or uint32 [tokens]
    sentence_ends: np.ndarray  # int64 [sentences], within the shard
    document_ends: np.ndarray  # int64 [documents], within the shard
    continues: np.ndarray | None  # uint8 [tokens]
    token_start: int  # position of the shard's first token in the split


def token_dtype(vocab_size: int) -> np.dtype:
    return np.dtype("<u2" if vocab_size <= 1 << 16 else "<u4")


class Store:
    """One split of a prepared folder. Opened by `Store.open`; positions count the tokens of the whole split."""

    def __init__(self, directory: pathlib.Path, split: str, manifest: dict[str, Any], shards: list[Shard]):
        self.directory, self.split, self.manifest, self.shards = directory, split, manifest, shards
        self.vocab_size: int = manifest["vocab_size"]
        self.num_tokens = sum(len(shard.tokens) for shard in shards)
        self.num_sentences = sum(len(shard.sentence_ends) for shard in shards)
        self.num_documents = sum(len(shard.document_ends) for shard in shards)
        self._token_starts = np.array([shard.token_start for shard in shards], np.int64)

    @classmethod
    def open(cls, directory: str | pathlib.Path, split: str = "train", *, verify: bool = False) -> "Store":
        """The tokens of a split; a validation part without documents has no shards. InputError for damage, by file.

        verify: read every byte and compare checksums, ids and boundaries; else only the files' sizes are compared.
        """
        folder = pathlib.Path(directory)
        manifest = read_manifest(folder)
        if split not in manifest["splits"]:
            raise InputError(f"{folder}: has no split {split!r}; it has {', '.join(manifest['splits'])}")
        if manifest["labels"] != LABELS:
            raise InputError(
                f"{folder / MANIFEST}: labels {manifest['labels']} differ from {LABELS}; prepare the text again"
            )
        check_files(folder, manifest, checksums=verify)
        shards: list[Shard] = []
        for name in manifest["splits"][split]["shards"]:
            start = shards[-1].token_start + len(shards[-1].tokens) if shards else 0
            shards.append(_open_shard(folder, name, manifest, start))
            _check_ends(shards[-1])
        store = cls(folder, split, manifest, shards)
        for name in ("documents", "sentences", "tokens"):
            count = getattr(store, f"num_{name}")
            if (noted := manifest["splits"][split][name]) != count:
                raise damaged(f"{folder / MANIFEST}: says {noted:,} {name} in {split}, its files hold {count:,}")
        if verify:
            store._check_ids()
        return store

    @functools.cached_property
    def tokenizer(self) -> Tokenizer:
        tokenizer = load_tokenizer(self.directory)
        if tokenizer.fingerprint != self.manifest["tokenizer"] or tokenizer.vocab_size != self.vocab_size:
            raise InputError(
                f"{self.directory}: the tokenizer was changed after the text was prepared with it; prepare it again"
            )
        return tokenizer

    @functools.cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the tokens and boundaries of all splits and the tokenizer: equal where the data are equal."""
        files = self.manifest["files"].items()
        data = sorted(f"{name} {noted['sha256']}" for name, noted in files if "json" not in name)
        text = "\n".join([self.manifest["tokenizer"], *data])
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def has_word_boundaries(self) -> bool:
        """Whether blanks in the text bound the words; else a word is a piece with those after it that continue it."""
        return bool(self.manifest["word_boundaries"])

    def read(self, starts_N: np.ndarray, lengths_N: np.ndarray) -> np.ndarray:
        """int32 [sum of lengths]; the tokens of N ranges, one after the other. A range lies within one shard."""
        tokens = self._gather(starts_N, lengths_N, "tokens", np.int32)
        if tokens.max(initial=0) >= self.vocab_size:
            positions = range_positions(np.asarray(starts_N, np.int64), np.asarray(lengths_N, np.int64))
            raise self._bad_id(int(positions[tokens >= self.vocab_size][0]))
        return tokens

    def read_continues(self, starts_N: np.ndarray, lengths_N: np.ndarray) -> np.ndarray:
        """bool [sum of lengths]; True where a token continues the word before it."""
        if self.has_word_boundaries:
            return self._gather(starts_N, lengths_N, "continues", bool)
        return self.tokenizer.continues_word_V.take(self.read(starts_N, lengths_N))

    def _gather(self, starts_N: np.ndarray, lengths_N: np.ndarray, array: str, dtype: type) -> np.ndarray:
        starts_N, lengths_N = np.asarray(starts_N, np.int64), np.asarray(lengths_N, np.int64)
        if len(self.shards) == 1:  # six times as fast as placing the tokens
            return np.asarray(getattr(self.shards[0], array)[range_positions(starts_N, lengths_N)], dtype)
        out: np.ndarray = np.empty(int(lengths_N.sum()), dtype)
        place_N = np.cumsum(lengths_N) - lengths_N
        shard_N = np.searchsorted(self._token_starts, starts_N, side="right") - 1
        for index in np.unique(shard_N[lengths_N > 0]):
            here_N = shard_N == index
            local = range_positions(starts_N[here_N] - self._token_starts[index], lengths_N[here_N])
            out[range_positions(place_N[here_N], lengths_N[here_N])] = getattr(self.shards[index], array)[local]
        return out

    def _check_ids(self) -> None:
        block = 1 << 22  # tokens compared together; bounds memory
        for shard in self.shards:
            for begin in range(0, len(shard.tokens), block):
                for place in np.flatnonzero(shard.tokens[begin : begin + block] >= self.vocab_size)[:1]:
                    raise self._bad_id(shard.token_start + begin + int(place))

    def _bad_id(self, position: int) -> InputError:
        shard = self.shards[int(np.searchsorted(self._token_starts, position, side="right")) - 1]
        local = position - shard.token_start
        document = int(np.searchsorted(shard.document_ends, local, side="right"))
        where = f"{shard.name}.tokens, document {document}, token {local}"
        return damaged(f"{where}: id {shard.tokens[local]} is not below the vocabulary's size {self.vocab_size}")


def _open_shard(folder: pathlib.Path, name: str, manifest: Mapping[str, Any], start: int) -> Shard:
    kinds = {"tokens": token_dtype(manifest["vocab_size"]), "sentences": np.dtype("<i8"), "documents": np.dtype("<i8")}
    if manifest["word_boundaries"]:
        kinds["words"] = np.dtype(np.uint8)
    arrays = {}
    for ending, dtype in kinds.items():
        noted = manifest["files"].get(f"{name}.{ending}")
        if noted is None or noted["bytes"] % dtype.itemsize:  # the files that are listed were compared with it
            what = f"lists no file {name}.{ending} of whole records of {dtype.itemsize} bytes"
            raise damaged(f"{folder / MANIFEST}: {what}")
        empty = not noted["bytes"]  # np.memmap refuses such files
        arrays[ending] = np.zeros(0, dtype) if empty else np.memmap(folder / f"{name}.{ending}", dtype, "r")
    path = str(folder / name)
    return Shard(path, arrays["tokens"], arrays["sentences"], arrays["documents"], arrays.get("words"), start)


def _check_ends(shard: Shard) -> None:
    """Raises InputError where the ends of sentences or documents are impossible."""
    for kind, ends in (("sentences", shard.sentence_ends), ("documents", shard.document_ends)):
        last = int(ends[-1]) if len(ends) else 0
        if last != len(shard.tokens):
            raise damaged(f"{shard.name}.{kind}, record {len(ends)}: ends at token {last} of {len(shard.tokens)}")
        for record in np.flatnonzero(np.diff(ends, prepend=0) <= 0)[:1]:
            what = f"ends at token {ends[record]}, not after the record before it"
            raise damaged(f"{shard.name}.{kind}, record {record}: {what}")
    at = np.searchsorted(shard.sentence_ends, shard.document_ends)
    for record in np.flatnonzero(shard.sentence_ends[at] != shard.document_ends)[:1]:
        raise damaged(f"{shard.name}.documents, record {record}: ends inside a sentence")
