"""One epoch of examples: cuts documents into chunks, and chunks into segments A and B with next-sentence labels.

Every token of the store is in exactly one example of an epoch. A document that fits into an example is one chunk. A
longer one is cut at token positions into as few chunks as possible: full ones and the rest. A small share of chunks is
cut once more (BERT's `short_seq_prob`). The lengths of a document's chunks are shuffled, so the boundaries change in
each epoch, while the lengths of an epoch stay almost the same and fill packed rows well.

A "random" B comes from a swap: two chunks of different documents exchange their B, of equal length if the corpus is
large enough. So no text repeats, nothing is cut off, and the length of an example does not reveal its label. Google's
tool instead draws B from any document and returns the rest (create_pretraining_data.py).

Labels are correct even if texts repeat: a pair that appears anywhere in the corpus (repeats.py) is never labelled
random or swapped. If only one class remains, because of this or of too few documents, `PairCounts.notice` says so.
"""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np

from bert.data import partners
from bert.data.partners import Segments
from bert.data.repeats import follows_elsewhere
from bert.errors import InputError
from bert.store.reader import Shard, Store
from bert.tokenizer.tokenizer import Template

Objective = Literal["nsp", "sop", "none"]
OBJECTIVES = ("nsp", "sop", "none")
# The two classes of a pair, by objective; a name's place is its label. Those of nsp are as in Google's released
# weights and in the manifest of a prepared folder (LABELS in bert/store/reader.py).
CLASS_NAMES = {"nsp": ("is_next", "random"), "sop": ("in_order", "swapped")}
IS_NEXT, RANDOM, NO_LABEL = 0, 1, -1  # named after nsp; the same places with sop
_RARE = 0.05  # share of the rarer class below which the notice is given


@dataclasses.dataclass(frozen=True)
class PairCounts:
    """Counts of a plan; `str()` is the line for the user."""

    objective: Objective
    documents: int
    one_sentence_documents: int
    examples: int
    true_pairs: int
    other_pairs: int  # the second of CLASS_NAMES

    @property
    def without_label(self) -> int:
        return self.examples - self.true_pairs - self.other_pairs

    @property
    def notice(self) -> str:
        """A warning where one class is missing or rare; else empty."""
        rarer, labelled = min(self.true_pairs, self.other_pairs), self.true_pairs + self.other_pairs
        if self.objective == "none" or (rarer and rarer >= _RARE * labelled):
            return ""
        true, other = CLASS_NAMES[self.objective]
        return (
            f"an epoch has {self.true_pairs:,} pairs {true} and {self.other_pairs:,} {other}; one class alone teaches "
            "nothing, whatever the accuracy: prepare more documents of two or more sentences that do not repeat each "
            "other, or set examples.objective to none"
        )

    def __str__(self) -> str:
        examples = f"{self.examples:,} examples of {self.documents:,} documents"
        if self.objective == "none":
            return examples
        labelled = self.true_pairs + self.other_pairs
        share = f" ({self.true_pairs / labelled:.1%} of the pairs)" if labelled else ""
        return (
            f"{examples}: {self.true_pairs:,} true pairs{share}, {self.other_pairs:,} "
            f"{CLASS_NAMES[self.objective][RANDOM]}, {self.without_label:,} without label; "
            f"{self.one_sentence_documents:,} of {self.documents:,} documents unusable for true pairs (one sentence)"
        )


@dataclasses.dataclass(frozen=True)
class ExampleRanges:
    """N examples as ranges of positions in the store."""

    a_start: np.ndarray  # int64 [N]
    a_length: np.ndarray  # int32 [N], at least 1
    b_start: np.ndarray  # int64 [N]
    b_length: np.ndarray  # int32 [N]; 0: one segment
    label: np.ndarray  # int8 [N], a place in CLASS_NAMES, or NO_LABEL
    counts: PairCounts
    template: Template  # special tokens around the segments

    def __len__(self) -> int:
        return len(self.a_start)

    @property
    def tokens(self) -> np.ndarray:
        """int32 [N], tokens of the text in each example."""
        return np.asarray(self.a_length + self.b_length)

    @property
    def lengths(self) -> np.ndarray:
        """int32 [N], tokens with the special ones."""
        return np.asarray(self.tokens + self.template.special_counts(self.b_length))


def plan_epoch(
    store: Store, *, max_length: int, objective: Objective, seed: int, epoch: int, short_probability: float = 0.1
) -> ExampleRanges:
    """The examples of an epoch, in the order of the text.

    Memory: at most 150 bytes an example while planning, 25 afterwards; the tokens themselves stay on disk.

    objective: "nsp" (a random half of the pairs get a foreign B), "sop" (a random half have A and B swapped), or "none"
    (one segment an example, no labels). short_probability: share of the examples that are made shorter.
    """
    template = store.tokenizer.template
    room = max_length - template.special_tokens(pair=objective != "none")
    chunks, documents, one_sentence = [(np.zeros(0, np.int64),) * 3], 0, 0
    for number, shard in enumerate(store.shards):
        rng = np.random.default_rng((seed, epoch, 0, number))
        sentence_ends, document_ends = np.asarray(shard.sentence_ends), np.asarray(shard.document_ends)
        one_sentence += int(np.count_nonzero(_sentences_by_document(shard) == 1))
        chunk_ends_N = cut_documents(document_ends, room, short_probability, rng)
        inner_ends_N = chunk_ends_N if objective == "none" else split_chunks(chunk_ends_N, sentence_ends, rng)
        document_N = np.searchsorted(document_ends, chunk_ends_N) + documents
        chunks.append((chunk_ends_N + shard.token_start, inner_ends_N + shard.token_start, document_N))
        documents += len(document_ends)
    end_N, split_N, document_N = (np.concatenate(arrays) for arrays in zip(*chunks, strict=True))
    del chunks
    start_N = np.concatenate([[0], end_N])[:-1]  # shards follow each other without a gap
    b_length_N = (end_N - split_N).astype(np.int32)
    segments = Segments(start_N, (split_N - start_N).astype(np.int32), split_N, b_length_N)
    label_N = np.where(b_length_N > 0, IS_NEXT, NO_LABEL).astype(np.int8)
    rng = np.random.default_rng((seed, epoch, 1))
    if objective == "nsp":
        segments, label_N = _exchange(store, segments, label_N, document_N, room, rng)
    elif objective == "sop":
        pairs = np.flatnonzero(label_N == IS_NEXT)
        swapped = rng.permutation(pairs)[: _about(len(pairs) / 2, rng)]
        a_start, a_length, b_start, b_length = segments.take(swapped)
        is_random = ~follows_elsewhere(store, b_start + b_length, b_length, a_start, a_length)
        label_N[swapped[is_random]] = RANDOM
        for array, others in zip(segments, (b_start, b_length, a_start, a_length), strict=True):
            array[swapped[is_random]] = others[is_random]
    true, other = (int(np.count_nonzero(label_N == label)) for label in (IS_NEXT, RANDOM))
    counts = PairCounts(objective, documents, one_sentence, len(label_N), true, other)
    return ExampleRanges(*segments, label_N, counts, template)


def _about(x: float, rng: np.random.Generator) -> int:
    """x rounded up or down at random, so that the mean is x."""
    return int(np.floor(x + rng.random()))


def _sentences_by_document(shard: Shard) -> np.ndarray:
    """int64 [documents]"""
    return np.diff(np.searchsorted(shard.sentence_ends, shard.document_ends, side="right"), prepend=0)


def cut_documents(document_ends_D: np.ndarray, room: int, short: float, rng: np.random.Generator) -> np.ndarray:
    """int64 [N] ends of the chunks, ascending; every document end is one, and no chunk is longer than `room` tokens."""
    length_D = np.diff(document_ends_D, prepend=0)
    count_D = -(-length_D // room)
    length_N = np.full(int(count_D.sum()), room, np.int64)
    length_N[np.cumsum(count_D) - 1] = length_D - (count_D - 1) * room
    document_N = np.repeat(np.arange(len(count_D)), count_D)

    # Cutting the share q of the chunks in two makes 2q of 1 + q examples short, here the share `short`.
    cut = np.flatnonzero((rng.random(len(length_N)) < short / (2 - short)) & (length_N > 1))
    part = 1 + np.floor(rng.random(len(cut)) * (length_N[cut] - 1)).astype(np.int64)
    length_N[cut] -= part
    length_N, document_N = np.append(length_N, part), np.append(document_N, document_N[cut])
    return np.cumsum(length_N[np.argsort(document_N + rng.random(len(document_N)), kind="stable")])


def split_chunks(chunk_ends_N: np.ndarray, sentence_ends: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """int64 [N], the end of segment A: a random sentence end inside the chunk, or the chunk's own if there is none."""
    last_N = np.searchsorted(sentence_ends, chunk_ends_N)  # first sentence end at or after the end of the chunk
    # the first sentence end after the start of the chunk, which is the end of the chunk before it
    first_N = np.concatenate([[0], last_N + (sentence_ends[last_N] == chunk_ends_N)])[:-1]
    inner_N = last_N - first_N
    pick_N = first_N + np.floor(rng.random(len(inner_N)) * inner_N).astype(np.int64)
    return np.where(inner_N > 0, sentence_ends[pick_N], chunk_ends_N)


def _exchange(
    store: Store, segments: Segments, label_N: np.ndarray, document_N: np.ndarray, room: int, rng: np.random.Generator
) -> tuple[Segments, np.ndarray]:
    """(segments, labels) with a random half of the B swapped; what no longer fits becomes an example without label."""
    pair_M = np.flatnonzero(label_N == IS_NEXT)
    wanted = _about(len(pair_M) / 4, rng)  # swaps, so that half of the pairs become random
    left, right = partners.find(store, segments.take(pair_M), document_N[pair_M], wanted, room, rng)
    if not len(left):  # one class only teaches nothing
        return segments, np.full_like(label_N, NO_LABEL)
    left, right = pair_M[left], pair_M[right]
    to, source = np.concatenate([left, right]), np.concatenate([right, left])
    start, length = segments.b_start[source], segments.b_length[source]
    fitting = np.minimum(length, room - segments.a_length[to])
    segments.b_start[to], segments.b_length[to], label_N[to] = start, fitting, RANDOM
    rest = np.flatnonzero(length > fitting)
    tail_start, tail_length = (start + fitting)[rest], (length - fitting)[rest]
    tails = (tail_start, tail_length, tail_start + tail_length, np.zeros(len(rest), np.int32))
    segments = Segments(*map(np.concatenate, zip(segments, tails, strict=True)))
    return segments, np.append(label_N, np.full(len(rest), NO_LABEL, np.int8))


def check_documents(store: Store, objective: Objective) -> None:
    """Raises InputError where no epoch of this store can give the labels that the objective needs."""
    if store.num_tokens == 0:
        raise InputError(f"{store.directory}: no tokens; prepare a corpus that has text")
    if objective == "none":
        return
    documents, way_out = store.num_documents, "set examples.objective to none"
    usable = sum(int(np.count_nonzero(_sentences_by_document(shard) > 1)) for shard in store.shards)
    if usable == 0:
        what = f"{documents:,} of {documents:,} documents have one sentence; {objective.upper()} needs two or more"
        way_out = f"remove blank lines between sentences (they separate documents), or {way_out}"
        raise InputError(f"{store.directory}: {what}: {way_out}")
    if objective == "nsp" and usable < 2:
        what = f"{usable} document of {documents:,} has two sentences or more; NSP needs two such documents"
        raise InputError(f"{store.directory}: {what}, for a random B comes from another one: {way_out} or sop")
