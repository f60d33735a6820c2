"""[CLS] text [SEP] and [CLS] a [SEP] b [SEP]: the token ids of texts that a model is to read, cut to its positions.

Not here: examples for training, which are never cut (bert/data/).
"""

from collections.abc import Sequence

from absl import logging

from bert.text.tokenizer import Tokenizer


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
            "%d of %d texts are longer than the model's %d positions and were cut", long, len(pieces_N), limit
        )
    return [[tokenizer.cls_id, *ids[:room], tokenizer.sep_id] for ids in pieces_N]


def pair(a: Sequence[int], b: Sequence[int], tokenizer: Tokenizer, limit: int) -> tuple[list[int], list[int]]:
    """Token ids and segment types of [CLS] a [SEP] b [SEP]; from a pair that is too long the longer text is cut."""
    room = limit - 3
    if len(a) + len(b) > room:
        logging.warning("1 pair is longer than the model's %d positions and was cut", limit)
        keep = min(len(a), max(room - len(b), (room + 1) // 2))
        a, b = a[:keep], b[: room - keep]
    ids = [tokenizer.cls_id, *a, tokenizer.sep_id, *b, tokenizer.sep_id]
    return ids, [0] * (len(a) + 2) + [1] * (len(b) + 1)
