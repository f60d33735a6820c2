"""[CLS] text [SEP] and [CLS] a [SEP] b [SEP]: the token ids of texts that a model is to read, cut to its positions.

Not here: examples for pretraining, which are never cut (bert/data/).
"""

from collections.abc import Sequence

from absl import logging

from bert.tokenizer.tokenizer import Tokenizer


def singles(pieces_N: Sequence[Sequence[int]], tokenizer: Tokenizer, limit: int) -> list[list[int]]:
    """[CLS] pieces [SEP] for each text; one warning says how many had to be cut.

    Args:
      pieces_N: token ids of each text, without special tokens.
      limit: the model's positions.
    """
    room = limit - 2
    long = sum(len(ids) > room for ids in pieces_N)
    if long:
        logging.warning(
            "%d of %d texts are longer than the model's %d positions and were cut; split them to have all of them read",
            *(long, len(pieces_N), limit),
        )
    return [[tokenizer.cls_id, *ids[:room], tokenizer.sep_id] for ids in pieces_N]


def pair(a: Sequence[int], b: Sequence[int], tokenizer: Tokenizer, limit: int) -> tuple[list[int], list[int]]:
    """Token ids and segment types of [CLS] a [SEP] b [SEP]; from a pair that is too long the longer text is cut."""
    if len(a) + len(b) + 3 > limit:
        logging.warning("1 pair is longer than the model's %d positions and was cut", limit)
    ids, first = _joined(a, b, tokenizer, limit)
    return ids, [0] * first + [1] * (len(ids) - first)


def texts(texts_N: Sequence[tuple[str, ...]], tokenizer: Tokenizer, limit: int) -> list[tuple[list[int], int]]:
    """(token ids, tokens of segment A) of single texts or pairs, cut to ``limit`` tokens.

    One warning says how many were cut. From a pair that is too long the longer text is cut.
    """
    sides = [tokenizer.encode_ids([text[side] for text in texts_N if len(text) > side]) for side in (0, 1)]
    second = iter(sides[1])
    pairs = [(a, next(second) if len(text) == 2 else None) for text, a in zip(texts_N, sides[0], strict=True)]
    long = sum(len(a) + 2 + (0 if b is None else len(b) + 1) > limit for a, b in pairs)
    if long:
        logging.warning(
            "%d of %d texts are longer than max_length, %d tokens, and were cut; train with a larger max_length (up to "
            "the model's positions), or split the texts",
            *(long, len(pairs), limit),
        )
    return [_joined(a, b, tokenizer, limit) for a, b in pairs]


def _joined(a: Sequence[int], b: Sequence[int] | None, tokenizer: Tokenizer, limit: int) -> tuple[list[int], int]:
    """Token ids within the limit, and how many of them are segment A's."""
    if b is None:
        ids = [tokenizer.cls_id, *a[: limit - 2], tokenizer.sep_id]
        return ids, len(ids)
    room = limit - 3
    if len(a) + len(b) > room:
        keep = min(len(a), max(room - len(b), (room + 1) // 2))
        a, b = a[:keep], b[: room - keep]
    return [tokenizer.cls_id, *a, tokenizer.sep_id, *b, tokenizer.sep_id], len(a) + 2
