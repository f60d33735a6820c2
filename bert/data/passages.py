"""Splits passages into windows (encoded examples), and maps the scores of windows back to passages. NumPy only.

Every piece counts in exactly one window, in training and in prediction: the one that gives it the most context
(windows.py). Axes: N text, W window, K piece of all texts, concatenated.
"""

import dataclasses
import itertools
from collections.abc import Sequence

import numpy as np

from bert.data import windows
from bert.data.encoded_examples import EncodedExamples, join, starts_of


@dataclasses.dataclass(frozen=True)
class Passages:
    """N texts as W windows. Places are in ``encoded.token_ids``."""

    encoded: EncodedExamples  # the windows, an example each: [CLS] pieces [SEP], or [CLS] question [SEP] pieces [SEP]
    text_W: np.ndarray  # int64 [W], which text each window is of
    bounds_W2: np.ndarray  # int64 [W, 2], its pieces in that text, [first, last + 1)
    places_W: np.ndarray  # int64 [W], place of its first piece
    starts: np.ndarray  # int64 [N + 1], the pieces of text n are starts[n] to starts[n + 1] of the K
    place_K: np.ndarray  # int64 [K], place of each piece in the window in which it counts

    def __len__(self) -> int:
        return len(self.starts) - 1

    def with_targets(self, target_KC: np.ndarray, weight_K: np.ndarray) -> EncodedExamples:
        """The windows with ``targets`` and ``target_weights`` a token; weight 0 where no piece counts."""
        tokens = len(self.encoded.token_ids)
        targets = np.zeros((tokens, target_KC.shape[1]), np.float32)
        weights = np.zeros(tokens, np.float32)
        targets[self.place_K], weights[self.place_K] = target_KC, weight_K
        return dataclasses.replace(self.encoded, of_token={"targets": targets, "target_weights": weights})


def cut(
    pieces_N: Sequence[Sequence[int]], before_N: Sequence[Sequence[int]], after: Sequence[int],
    *, max_length: int, step: int, pair: bool,
) -> Passages:  # fmt: skip
    """Windows over the texts; ``pair``: the pieces are segment B.

    Args:
      pieces_N: token ids of each text.
      before_N: tokens before a text's pieces in each of its windows: [CLS], or [CLS] question [SEP].
      after: tokens after the pieces of each window: [SEP].
      max_length, step: tokens of a window at most, with those before and after; see `windows.windows`.
    """
    examples: list[tuple[Sequence[int], int]] = []
    text_W, bounds_W2, places_W, place_K, position = [], [], [], [], 0
    for n, (pieces, before) in enumerate(zip(pieces_N, before_N, strict=True)):
        spans = windows.windows(len(pieces), max_length - len(before) - len(after), step)
        shift_W = []  # from a piece's number in the text to its place
        for first, stop in spans:
            ids = [*before, *pieces[first:stop], *after]
            examples.append((ids, len(before) if pair else len(ids)))
            places_W.append(position + len(before))
            shift_W.append(places_W[-1] - first)
            position += len(ids)
        text_W += [n] * len(spans)
        bounds_W2 += spans
        place_K.append(np.array(shift_W)[windows.owners(len(pieces), spans)] + np.arange(len(pieces)))
    return Passages(
        join(examples),
        np.array(text_W, np.int64),
        np.array(bounds_W2, np.int64).reshape(-1, 2),
        np.array(places_W, np.int64),
        starts_of([len(pieces) for pieces in pieces_N]),
        np.concatenate([np.zeros(0, np.int64), *place_K]).astype(np.int64),
    )


def parts(values_K: np.ndarray, starts: np.ndarray) -> list[np.ndarray]:
    """The values of each text."""
    return [values_K[a:b] for a, b in itertools.pairwise(starts)]
