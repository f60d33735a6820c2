"""Overlapping windows over a text that is longer than a row, and the window in which each token counts.

Token counts only; no text, no ids. A window begins every ``step`` tokens; each token belongs to the window in which it
has the most context, so that every token counts once. Axes: K token, W window.

Source: google-research/bert ``run_squad.py`` (doc_stride, _check_is_max_context).
"""

import numpy as np

from bert.errors import InputError


def windows(count: int, room: int, step: int) -> list[tuple[int, int]]:
    """[start, end) of the windows of at most ``room`` tokens over ``count``; one empty one for a text without tokens.

    step: tokens from the start of a window to the start of the next, 1 to ``room``; ``room - step`` are in both.
    """
    if room < 1:
        raise InputError("windows have no room for tokens of the text; raise max_length")
    if not 1 <= step <= room:
        raise InputError(f"window step {step} must be from 1 to {room}, the tokens of text that a window has room for")
    spans = [(0, min(count, room))]
    while spans[-1][1] < count:
        start = spans[-1][0] + step
        spans.append((start, min(count, start + room)))
    return spans


def owners(count: int, spans: list[tuple[int, int]]) -> np.ndarray:
    """int64 [K]: for each token the first of the `windows` in which the nearer edge is farthest away."""
    bounds_W2 = np.array(spans, np.int64)
    # The next window is better once its left edge is farther away than this one's right edge: t - start > end - 1 - t.
    last_W = bounds_W2[:-1, 1] - 1 + bounds_W2[1:, 0]
    return np.searchsorted(last_W, 2 * np.arange(count), side="left")
