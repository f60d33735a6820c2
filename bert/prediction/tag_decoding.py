"""Viterbi decoding: the most probable sequence of tags that follows the rules of B, I and O (bio_tags.py).

I-X may only follow B-X or I-X. If the model has no tag B-X, as some models of other programs, I-X may be anywhere.
Axes: K token of all texts, one after the other, N text, T position, C tag.

Source: Viterbi 1967.
"""

from collections.abc import Sequence

import numpy as np

from bert.bio_tags import parse

DECODING = ("viterbi", "greedy")
_AT_ONCE = 64  # texts of similar length that are decoded together


def follows(tags: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """bool [C]: which tags may come first; bool [C, C]: whether the column's tag may follow the row's."""
    parsed = [parse(tag) for tag in tags]
    first_C = np.array([prefix != "I" or ("B", kind) not in parsed for prefix, kind in parsed])
    inside_CC = np.array([
        [prefix == "I" and before != "O" and other == kind for prefix, kind in parsed] for before, other in parsed
    ])  # fmt: skip
    return first_C, first_C | inside_CC


def viterbi(scores_KC: np.ndarray, starts: np.ndarray, first_C: np.ndarray, move_CC: np.ndarray) -> np.ndarray:
    """int64 [K]: for each text the tags with the largest sum of scores among those allowed.

    Args:
      scores_KC: float [K, C], log-probabilities.
      starts: int [N + 1], where each text begins in K.
      first_C, move_CC: what is allowed, as `follows` gives it.
    """
    tags_K = np.zeros(len(scores_KC), np.int64)
    length_N = np.diff(starts)
    order = np.argsort(length_N, kind="stable")
    order = order[length_N[order] > 0]
    start_C, step_CC = np.where(first_C, 0.0, -np.inf), np.where(move_CC, 0.0, -np.inf)
    for i in range(0, len(order), _AT_ONCE):
        chosen = order[i : i + _AT_ONCE]
        tags_NT = _together([scores_KC[starts[n] : starts[n + 1]] for n in chosen], start_C, step_CC)
        for n, tags in zip(chosen, tags_NT, strict=True):
            tags_K[starts[n] : starts[n + 1]] = tags[: length_N[n]]
    return tags_K


def _together(scores: Sequence[np.ndarray], start_C: np.ndarray, step_CC: np.ndarray) -> np.ndarray:
    """int64 [N, T] for texts of at least one token, padded to the longest."""
    length_N = np.array([len(scores_TC) for scores_TC in scores])
    padded_TNC = np.zeros((length_N.max(), len(scores), scores[0].shape[1]))
    for n, scores_TC in enumerate(scores):
        padded_TNC[: len(scores_TC), n] = scores_TC
    total_NC = padded_TNC[0] + start_C
    back_TNC = np.zeros(padded_TNC.shape, np.int32)
    for t in range(1, len(padded_TNC)):
        through_NCC = total_NC[:, :, None] + step_CC
        back_TNC[t] = through_NCC.argmax(1)
        alive_N1 = (t < length_N)[:, None]
        total_NC = np.where(alive_N1, through_NCC.max(1) + padded_TNC[t], total_NC)
    tags_NT = np.zeros((len(scores), len(padded_TNC)), np.int64)
    at_N, rows_N = total_NC.argmax(1), np.arange(len(scores))
    for t in range(len(padded_TNC) - 1, -1, -1):
        tags_NT[:, t] = at_N
        at_N = np.where(t < length_N, back_TNC[t, rows_N, at_N], at_N)
    return tags_NT
