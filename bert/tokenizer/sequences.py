"""Adds special tokens to the token ids of texts and pairs, and truncates them to the model's positions.

Not here: examples for pretraining, which are never truncated (bert/data/).
"""

from collections.abc import Sequence

import numpy as np
from absl import logging

from bert.tokenizer.tokenizer import Template, Tokenizer

_PART = 10_000  # texts that are encoded at a time


def singles(pieces_N: Sequence[Sequence[int]], tokenizer: Tokenizer, limit: int) -> list[list[int]]:
    """[CLS] pieces [SEP] for each text, cut to ``limit`` tokens; one warning gives the number that was cut."""
    room = limit - tokenizer.template.special_tokens(pair=False)
    if long := sum(len(ids) > room for ids in pieces_N):
        logging.warning(
            "%d of %d texts are longer than the model's %d positions and were cut; split them to have all of them read",
            *(long, len(pieces_N), limit),
        )
    return [_joined(ids, None, tokenizer.template, limit)[0] for ids in pieces_N]


def pair(a: Sequence[int], b: Sequence[int], tokenizer: Tokenizer, limit: int) -> tuple[list[int], list[int]]:
    """Token ids and segment types of [CLS] a [SEP] b [SEP]; of a pair that is too long, the longer text is cut."""
    if len(a) + len(b) + tokenizer.template.special_tokens(pair=True) > limit:
        logging.warning("1 pair is longer than the model's %d positions and was cut", limit)
    ids, a_length = _joined(a, b, tokenizer.template, limit)
    return ids, [0] * a_length + [1] * (len(ids) - a_length)


def texts(texts_N: Sequence[tuple[str, ...]], tokenizer: Tokenizer, limit: int) -> list[tuple[np.ndarray, int]]:
    """(token ids int32, tokens of segment A) of single texts or pairs, cut to ``limit`` tokens: of a pair, the longer
    text.

    One warning gives the number that was cut.
    """
    template, long, joined = tokenizer.template, 0, list[tuple[np.ndarray, int]]()
    special = [template.special_tokens(pair=False), template.special_tokens(pair=True)]
    # In parts, for what the tokenizer's library makes of a text is twenty times as large as its ids.
    for start in range(0, len(texts_N), _PART):
        part = texts_N[start : start + _PART]
        first, second = (iter(tokenizer.encode_ids([t[side] for t in part if len(t) > side])) for side in (0, 1))
        for text in part:
            a, b = next(first), next(second) if len(text) == 2 else None
            long += len(a) + len(b or ()) + special[b is not None] > limit
            ids, a_length = _joined(a, b, template, limit)
            joined.append((np.array(ids, np.int32), a_length))
    if long:
        logging.warning(
            "%d of %d texts are longer than max_length, %d tokens, and were cut; train with a larger max_length (up to "
            "the model's positions), or split the texts",
            *(long, len(joined), limit),
        )
    return joined


def _joined(a: Sequence[int], b: Sequence[int] | None, template: Template, limit: int) -> tuple[list[int], int]:
    """Token ids within the limit, and how many of them are segment A's."""
    room = limit - template.special_tokens(pair=b is not None)
    if b is None:
        a = a[:room]
    elif len(a) + len(b) > room:
        keep = min(len(a), max(room - len(b), (room + 1) // 2))
        a, b = a[:keep], b[: room - keep]
    return template.join(a, b)
