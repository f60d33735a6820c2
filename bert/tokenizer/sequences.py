"""Adds special tokens to the token ids of texts and pairs, and truncates them to the model's positions.

Not here: examples for pretraining, which are never truncated (bert/data/).
"""

from collections.abc import Sequence

from absl import logging

from bert.tokenizer.tokenizer import Template, Tokenizer


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


def texts(texts_N: Sequence[tuple[str, ...]], tokenizer: Tokenizer, limit: int) -> list[tuple[list[int], int]]:
    """(token ids, tokens of segment A) of single texts or pairs, cut to ``limit`` tokens: of a pair, the longer text.

    One warning gives the number that was cut.
    """
    first, second = (iter(tokenizer.encode_ids([t[side] for t in texts_N if len(t) > side])) for side in (0, 1))
    pairs = [(next(first), next(second) if len(text) == 2 else None) for text in texts_N]
    template = tokenizer.template
    special = [template.special_tokens(pair=False), template.special_tokens(pair=True)]
    if long := sum(len(a) + len(b or ()) + special[b is not None] > limit for a, b in pairs):
        logging.warning(
            "%d of %d texts are longer than max_length, %d tokens, and were cut; train with a larger max_length (up to "
            "the model's positions), or split the texts",
            *(long, len(pairs), limit),
        )
    return [_joined(a, b, template, limit) for a, b in pairs]


def _joined(a: Sequence[int], b: Sequence[int] | None, template: Template, limit: int) -> tuple[list[int], int]:
    """Token ids within the limit, and how many of them are segment A's."""
    room = limit - template.special_tokens(pair=b is not None)
    if b is None:
        a = a[:room]
    elif len(a) + len(b) > room:
        keep = min(len(a), max(room - len(b), (room + 1) // 2))
        a, b = a[:keep], b[: room - keep]
    return template.join(a, b)
