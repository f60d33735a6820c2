"""Writes a prepared folder: shards in bounded memory, then the manifest that finishes it. Format: reader.py."""

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from bert import files
from bert.store.manifest import FORMAT, MANIFEST, sealed, sha256
from bert.store.reader import LABELS, token_dtype
from bert.tokenizer.tokenizer import Tokenizer

WAITING_TOKENS = 1 << 20  # tokens gathered before they are appended to their file


@dataclasses.dataclass
class _OpenShard:
    """The shard that is being written: its arrays that are not on disk yet, and its boundaries so far."""

    name: str
    tokens: list[np.ndarray] = dataclasses.field(default_factory=list)
    continues: list[np.ndarray] = dataclasses.field(default_factory=list)
    sentence_ends: list[np.ndarray] = dataclasses.field(default_factory=list)
    document_ends: list[int] = dataclasses.field(default_factory=list)
    waiting: int = 0  # tokens in the lists
    length: int = 0  # tokens in all
    sentences_in_document: int = 0


class StoreWriter:
    """Writes the shards of one split in bounded memory; `close` gives their names. Holds no open file."""

    def __init__(self, folder: pathlib.Path, split: str, *, vocab_size: int, word_boundaries: bool, shard_tokens: int):
        """`shard_tokens`: a new shard begins with the first document after this many tokens."""
        self.folder, self.split = folder, split
        self.dtype = token_dtype(vocab_size)
        self.word_boundaries, self.shard_tokens = word_boundaries, shard_tokens
        self.shards: list[str] = []
        self.num_documents = self.num_one_sentence = self.num_sentences = self.num_tokens = 0
        self._open: _OpenShard | None = None

    def add(self, tokens: np.ndarray, sentence_lengths: np.ndarray, continues: np.ndarray | None = None) -> None:
        """Appends sentences to the current document. `tokens` [sum of lengths]; no length is 0."""
        if not len(tokens):
            return
        if self._open is None:
            self._open = _OpenShard(f"{self.split}-{len(self.shards):05d}")
        shard = self._open
        shard.tokens.append(tokens.astype(self.dtype))
        if self.word_boundaries:
            assert continues is not None
            shard.continues.append(continues.astype(np.uint8))
        shard.sentence_ends.append(shard.length + np.cumsum(sentence_lengths, dtype="<i8"))
        shard.length += len(tokens)
        shard.waiting += len(tokens)
        shard.sentences_in_document += len(sentence_lengths)
        self.num_sentences += len(sentence_lengths)
        self.num_tokens += len(tokens)
        if shard.waiting >= WAITING_TOKENS:
            self._append(shard)

    def end_document(self) -> None:
        """Closes the current document, if it has any token, and the shard if it is full."""
        shard = self._open
        if shard is None or not shard.sentences_in_document:
            return
        shard.document_ends.append(shard.length)
        self.num_documents += 1
        self.num_one_sentence += shard.sentences_in_document == 1
        shard.sentences_in_document = 0
        if shard.length >= self.shard_tokens:
            self._end_shard(shard)

    def close(self) -> list[str]:
        self.end_document()
        if self._open is not None:
            self._end_shard(self._open)
        return self.shards

    def _append(self, shard: _OpenShard) -> None:
        """Moves what waits to the shard's files; all of them exist from the first time on."""
        ends = np.array(shard.document_ends, "<i8")
        waiting = {"tokens": shard.tokens, "sentences": shard.sentence_ends, "documents": [ends]}
        if self.word_boundaries:
            waiting["words"] = shard.continues
        for ending, arrays in waiting.items():
            with open(self.folder / f"{shard.name}.{ending}", "ab") as handle:
                for array in arrays:
                    handle.write(array.data)
            arrays.clear()
        shard.document_ends.clear()
        shard.waiting = 0

    def _end_shard(self, shard: _OpenShard) -> None:
        self._append(shard)
        self.shards.append(shard.name)
        self._open = None


def finish(
    folder: pathlib.Path, tokenizer: Tokenizer, writers: Mapping[str, StoreWriter],
    *, settings: Mapping[str, Any], report: Mapping[str, Any],
) -> dict[str, Any]:  # fmt: skip
    """Closes the writers, saves the tokenizer, and writes the manifest, which it returns:

    format (int), tokenizer (fingerprint), vocab_size, labels, word_boundaries (bool), settings and report (of prepare),
    splits {name: {documents, sentences, tokens, shards}}, files {name: {bytes, sha256}}, sha256 (of the other fields).
    """
    splits = {}
    for split, writer in writers.items():
        shards = writer.close()
        counts = {"documents": writer.num_documents, "sentences": writer.num_sentences, "tokens": writer.num_tokens}
        splits[split] = {**counts, "shards": shards}
    tokenizer.save(folder)
    written = sorted(path for path in folder.iterdir() if path.name != MANIFEST)
    manifest = {
        "format": FORMAT,
        "tokenizer": tokenizer.fingerprint,
        "vocab_size": tokenizer.vocab_size,
        "labels": LABELS,
        "word_boundaries": any(writer.word_boundaries for writer in writers.values()),
        "settings": dict(settings),
        "report": dict(report),
        "splits": splits,
        "files": {path.name: {"bytes": path.stat().st_size, "sha256": sha256(path)} for path in written},
    }
    manifest = sealed(manifest)
    files.write(folder / MANIFEST, files.json_text(manifest, indent=1))  # the last file to be written
    return manifest
