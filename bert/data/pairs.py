"""One epoch of examples: documents cut into chunks, chunks into segments A and B, next-sentence labels.

Every token of the store is in exactly one example of an epoch. A document that fits the room is one chunk; a longer one
is cut at token positions into as few chunks as can be: full ones and the rest. A small share is cut once more (BERT's
`short_seq_prob`). The chunks of a document have their lengths in random order, so that the boundaries move from epoch
to epoch, while the lengths of an epoch stay almost the same and fill packed rows well.

A "random" B comes from a swap: two chunks of different documents exchange their B, of equal length wherever the corpus
is large enough to offer one. So no text repeats, nothing is cut off, and the length of an example tells nothing about
its label. Google's tool instead draws B from any document and gives the rest back (create_pretraining_data.py).

No label is wrong where texts repeat: a pair that stands somewhere in the corpus as it is (repeats.py) is never called
random, nor swapped. Where this or the number of documents leaves one class alone, `PairCounts.notice` says so.
"""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np

from bert.data.repeats import COMPARED, follows_elsewhere
from bert.errors import InputError
from bert.store.reader import Store
from bert.tokenizer.tokenizer import Template

Objective = Literal["nsp", "sop", "none"]
OBJECTIVES = ("nsp", "sop", "none")
# What the two classes of a pair are called, by objective; a name's place is its label. Those of nsp are as in Google's
# released weights, and what a prepared folder says of itself (LABELS in bert/store/reader.py).
CLASS_NAMES = {"nsp": ("is_next", "random"), "sop": ("in_order", "swapped")}
IS_NEXT, RANDOM, NO_LABEL = 0, 1, -1  # named after nsp; the same places with sop
# A foreign B whose first tokens equal those of the true one may be the true one (copied documents): not used.
_COMPARED_TOKENS = COMPARED[1]
_SEARCHES = 4  # for partners, where some that were found would be true pairs
_RARE = 0.05  # share of the rarer class from which on nobody needs to look


@dataclasses.dataclass(frozen=True)
class PairCounts:
    """What a plan holds; `str()` is the line for the user."""

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
        """What somebody should know before these labels are learnt; empty where both classes are there."""
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
        other = CLASS_NAMES[self.objective][RANDOM]
        return (
            f"{examples}: {self.true_pairs:,} true pairs{share}, {self.other_pairs:,} {other}, {self.without_label:,} "
            f"without label; {self.one_sentence_documents:,} of {self.documents:,} documents unusable for true pairs "
            "(one sentence)"
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
        return self.a_length + self.b_length

    @property
    def lengths(self) -> np.ndarray:
        """int32 [N], tokens with the special ones."""
        return self.tokens + self.template.special_counts(self.b_length)


def plan_epoch(
    store: Store, *, max_length: int, objective: Objective, seed: int, epoch: int, short_probability: float = 0.1
) -> ExampleRanges:
    """The examples of an epoch, in the order of the text; a function of the arguments alone.

    Memory: at most 150 bytes an example while planning, 25 afterwards; the tokens themselves stay on disk.

    Args:
      max_length: tokens in an example with [CLS] and [SEP].
      objective: "nsp" (a random half of the pairs get a foreign B), "sop" (a random half have A and B swapped), or
        "none" (one segment an example, no labels).
      short_probability: share of the examples that are made shorter than the room, BERT's `short_seq_prob`.
    """
    template = store.tokenizer.template
    room = max_length - template.special_tokens(pair=objective != "none")
    chunks, one_sentence = [], 0
    for number, shard in enumerate(store.shards):
        rng = np.random.default_rng((seed, epoch, 0, number))
        sentence_ends, document_ends = np.asarray(shard.sentence_ends), np.asarray(shard.document_ends)
        one_sentence += int(np.count_nonzero(_sentences_by_document(sentence_ends, document_ends) == 1))
        chunk_ends_N = cut_documents(document_ends, room, short_probability, rng)
        inner_ends_N = chunk_ends_N if objective == "none" else split_chunks(chunk_ends_N, sentence_ends, rng)
        document_N = np.searchsorted(document_ends, chunk_ends_N)
        chunks.append((chunk_ends_N, inner_ends_N, document_N, shard.token_start))

    documents = np.cumsum([0] + [len(shard.document_ends) for shard in store.shards])
    end_N = np.concatenate([ends + start for ends, _, _, start in chunks] or [np.zeros(0, np.int64)])
    split_N = np.concatenate([ends + start for _, ends, _, start in chunks] or [np.zeros(0, np.int64)])
    document_N = np.concatenate(
        [doc + first for (_, _, doc, _), first in zip(chunks, documents, strict=False)] or [end_N]
    )
    del chunks
    start_N = np.concatenate([[0], end_N])[:-1]  # shards follow each other without a gap
    parts = [start_N, (split_N - start_N).astype(np.int32), split_N, (end_N - split_N).astype(np.int32)]
    label_N = np.where(parts[3] > 0, IS_NEXT, NO_LABEL).astype(np.int8)
    rng = np.random.default_rng((seed, epoch, 1))
    if objective == "nsp":
        parts, label_N = _exchange(store, parts, label_N, document_N, room, rng)
    elif objective == "sop":
        pairs = np.flatnonzero(label_N == IS_NEXT)
        swapped = rng.permutation(pairs)[: _about(len(pairs) / 2, rng)]
        a_start, a_length, b_start, b_length = (part[swapped] for part in parts)
        swapped = swapped[~follows_elsewhere(store, b_start + b_length, b_length, a_start, a_length)]
        label_N[swapped] = RANDOM
        for of_a, of_b in ((0, 2), (1, 3)):
            parts[of_a][swapped], parts[of_b][swapped] = parts[of_b][swapped], parts[of_a][swapped]
    true, other = (int(np.count_nonzero(label_N == label)) for label in (IS_NEXT, RANDOM))
    counts = PairCounts(objective, int(documents[-1]), one_sentence, len(label_N), true, other)
    a_start, a_length, b_start, b_length = parts
    return ExampleRanges(a_start, a_length, b_start, b_length, label_N, counts, template)


def _about(x: float, rng: np.random.Generator) -> int:
    """x rounded up or down at random, so that the mean is x."""
    return int(np.floor(x + rng.random()))


def _sentences_by_document(sentence_ends: np.ndarray, document_ends: np.ndarray) -> np.ndarray:
    """int64 [documents]"""
    return np.diff(np.searchsorted(sentence_ends, document_ends, side="right"), prepend=0)


def cut_documents(
    document_ends_D: np.ndarray, room: int, short_probability: float, rng: np.random.Generator
) -> np.ndarray:
    """int64 [N] ends of the chunks, ascending; every document end is one, and no chunk is longer than `room` tokens."""
    length_D = np.diff(document_ends_D, prepend=0)
    count_D = -(-length_D // room)
    length_N = np.full(int(count_D.sum()), room, np.int64)
    length_N[np.cumsum(count_D) - 1] = length_D - (count_D - 1) * room
    document_N = np.repeat(np.arange(len(count_D)), count_D)

    # Cutting the share q of the chunks in two makes 2q of 1 + q examples short.
    cut = np.flatnonzero((rng.random(len(length_N)) < short_probability / (2 - short_probability)) & (length_N > 1))
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


def _exchange(store, parts, label_N, document_N, room, rng):
    """(parts, labels) with a random half of the B swapped; what no longer fits becomes an example without label."""
    pair_M = np.flatnonzero(label_N == IS_NEXT)
    _, a_length, b_start, b_length = parts
    left, right = _partners(store, [part[pair_M] for part in parts], document_N[pair_M], room, rng)
    if not len(left):  # one class only teaches nothing
        return parts, np.full_like(label_N, NO_LABEL)
    left, right = pair_M[left], pair_M[right]
    to, source = np.concatenate([left, right]), np.concatenate([right, left])
    start, length = b_start[source], b_length[source]
    kept = np.minimum(length, room - a_length[to])
    b_start[to], b_length[to], label_N[to] = start, kept, RANDOM
    rest = np.flatnonzero(length > kept)
    if not len(rest):
        return parts, label_N
    tail_start, tail_length = (start + kept)[rest], (length - kept)[rest]
    empty = np.zeros(len(rest), np.int32)
    tails = (tail_start, tail_length, tail_start + tail_length, empty)
    parts = [np.concatenate([part, tail]) for part, tail in zip(parts, tails, strict=True)]
    return parts, np.concatenate([label_N, np.full(len(rest), NO_LABEL, np.int8)])


def _partners(store, parts, document_M, room, rng) -> tuple[np.ndarray, np.ndarray]:
    """(left [K], right [K]): pairs to swap, K about M / 4 so that half of the M chunks become random.

    No swap puts a B behind a text that it follows somewhere; other partners are searched for a few times.
    """
    a_start, a_length, b_start, b_length = parts
    wanted = _about(len(b_length) / 4, rng)
    pairs = [(np.zeros(0, np.int64), np.zeros(0, np.int64))]
    is_free = np.ones(len(b_length), bool)
    for _ in range(_SEARCHES):
        free = np.flatnonzero(is_free)
        left, right = _similar(store, a_length, b_start, b_length, document_M, free, wanted, room, rng)
        to, source = np.concatenate([left, right]), np.concatenate([right, left])
        length = np.minimum(b_length[source], room - a_length[to])
        wrong = follows_elsewhere(store, a_start[to] + a_length[to], a_length[to], b_start[source], length)
        good = ~wrong.reshape(2, -1).any(axis=0)
        pairs.append((left[good], right[good]))
        if good.all():
            break
        wanted -= int(np.count_nonzero(good))
        is_free[left[good]] = is_free[right[good]] = False
    return np.concatenate([left for left, _ in pairs]), np.concatenate([right for _, right in pairs])


def _similar(store, a_length, b_start, b_length, document_M, free, wanted, room, rng) -> tuple[np.ndarray, np.ndarray]:
    """(left [K], right [K]): at most `wanted` pairs of the chunks `free` of different documents.

    First among B of equal length, then of nearly equal length, as long as both results fit the room. Only where a small
    corpus offers too few of these may a B be longer than its new place.
    """
    pairs = [(np.zeros(0, np.int64), np.zeros(0, np.int64))]
    key_D = rng.permutation(int(document_M[-1]) + 1) if len(document_M) else document_M
    widths = [1 << power for power in range(room.bit_length() + 1)]
    for may_cut, width in [(False, width) for width in widths] + [(True, width) for width in widths]:
        if wanted <= 0 or len(free) < 2:
            break
        left, right = _pair_up(free, b_length[free] // width, key_D[document_M[free]])
        good = document_M[left] != document_M[right]
        if not may_cut:
            good &= (a_length[left] + b_length[right] <= room) & (a_length[right] + b_length[left] <= room)
        order = rng.permutation(np.flatnonzero(good))
        left, right = _without_copies(store, left[order], right[order], b_start, b_length, wanted)
        pairs.append((left, right))
        wanted -= len(left)
        taken = np.zeros(len(b_length), bool)
        taken[left] = taken[right] = True
        free = free[~taken[free]]
    return np.concatenate([left for left, _ in pairs]), np.concatenate([right for _, right in pairs])


def _pair_up(index_M: np.ndarray, bucket_M: np.ndarray, document_M: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(left [K], right [K]): disjoint pairs inside each bucket.

    Sorted by document, each takes the one half a bucket further on: the same document only where it fills over half.
    """
    key_M = bucket_M.astype(np.int64) * (int(document_M.max()) + 1) + document_M
    order = np.argsort(key_M, kind="stable")
    index_M, bucket_M = index_M[order], bucket_M[order]
    starts = np.flatnonzero(np.diff(bucket_M, prepend=-1))
    sizes = np.diff(np.append(starts, len(bucket_M)))
    nth_M = np.arange(len(bucket_M)) - np.repeat(starts, sizes)
    half_M = np.repeat(sizes // 2, sizes)
    left = np.flatnonzero(nth_M < half_M)
    return index_M[left], index_M[left + half_M[left]]


def _without_copies(store, left, right, b_start, b_length, wanted) -> tuple[np.ndarray, np.ndarray]:
    """The first `wanted` pairs whose B differ in their first tokens."""
    kept_left, kept_right, block = [left[:0]], [right[:0]], 1 << 18
    for start in range(0, len(left), block):
        one, two = left[start : start + block], right[start : start + block]
        ones = np.ones(len(one), np.int64)
        keep = store.read(b_start[one], ones) != store.read(b_start[two], ones)
        same = np.flatnonzero(~keep)  # few: only these are read further
        if len(same):
            length = np.minimum(np.minimum(b_length[one[same]], b_length[two[same]]), _COMPARED_TOKENS)
            differs = store.read(b_start[one[same]], length) != store.read(b_start[two[same]], length)
            keep[same] = np.logical_or.reduceat(differs, np.cumsum(length) - length)
        keep &= np.cumsum(keep) <= wanted
        kept_left.append(one[keep])
        kept_right.append(two[keep])
        wanted -= int(np.count_nonzero(keep))
        if wanted <= 0:
            break
    return np.concatenate(kept_left), np.concatenate(kept_right)


def check_documents(store: Store, objective: Objective) -> None:
    """Raises InputError where no epoch of this store can give the labels that the objective needs."""
    if store.num_tokens == 0:
        raise InputError(f"{store.directory}: no tokens; prepare a corpus that has text")
    if objective == "none":
        return
    name, way_out = objective.upper(), "set examples.objective to none"
    by_document = [_sentences_by_document(shard.sentence_ends, shard.document_ends) for shard in store.shards]
    usable = sum(int(np.count_nonzero(sentences > 1)) for sentences in by_document)
    documents = sum(len(sentences) for sentences in by_document)
    if usable == 0:
        raise InputError(
            f"{store.directory}: {documents:,} of {documents:,} documents have one sentence; {name} needs two "
            f"or more: remove blank lines between sentences (they separate documents), or {way_out}"
        )
    if objective == "nsp" and usable < 2:
        raise InputError(
            f"{store.directory}: {usable} document of {documents:,} has two sentences or more; NSP needs two such "
            f"documents, for a random B comes from another one: {way_out} or sop"
        )
