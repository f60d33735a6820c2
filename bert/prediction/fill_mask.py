"""Fills masks: finds them in a text, ranks the tokens for each, and returns the text with its masks filled.

Axes: P mask of the text, V row of the model's token table.
"""

import dataclasses

import numpy as np

from bert.data.padding import power_of_two
from bert.errors import InputError, check_range, short_text
from bert.prediction.scores import softmax
from bert.tokenizer.tokenizer import Encoding, Tokenizer


def find_masks(encoding: Encoding, tokenizer: Tokenizer, limit: int) -> list[int]:
    """Indices of the mask token in an encoded text (which has no [CLS] yet).

    Raises InputError where there is none, or where one is beyond the model's positions, ``limit``.
    """
    token = short_text(tokenizer.vocab[tokenizer.mask_id])
    places = [i for i, piece in enumerate(encoding.ids) if piece == tokenizer.mask_id]
    if not places:
        raise InputError(f"the text has no {token}; write {token} where a word is to be filled in")
    # [CLS] is at position 0, and the last position is [SEP]'s.
    beyond = [i + 1 for i in places if i + 1 > limit - 2]
    if beyond:
        raise InputError(f"{token} out of range: mask at {beyond[0]}, limit {limit}; shorten the text before it")
    return places


def rows_with_masks(ids: list[int], places: list[int], *, alone: bool) -> tuple[list[list[int]], np.ndarray]:
    """Rows of token ids with the masks at these places of ``ids``, and int32 [B, P], where they are in each row.

    One row with all masks; ``alone``: one for each mask, without the other masks, which would be read as words. B and P
    are powers of two.
    """
    if not alone:
        places_1P = np.zeros((1, power_of_two(len(places))), np.int32)
        places_1P[0, : len(places)] = places
        return [ids], places_1P
    places_B1 = np.zeros((power_of_two(len(places)), 1), np.int32)
    places_B1[: len(places), 0] = np.array(places) - np.arange(len(places))
    words = {*range(len(ids))} - {*places}
    return [[ids[i] for i in sorted({*words, place})] for place in places], places_B1


@dataclasses.dataclass(frozen=True)
class FilledMasks:
    """The predictions of a model for the masks of a text.

    offsets: start and end of each mask in the text. logits_PV: float32; V may exceed the vocabulary.
    """

    text: str
    offsets: list[tuple[int, int]]
    logits_PV: np.ndarray
    tokenizer: Tokenizer

    def ranked(self, top: int = 5) -> list[list[tuple[str, float]]]:
        """The likeliest tokens for every mask, in order: ``[[(token, probability), ...], ...]``.

        Probabilities are over all rows of the model; rows beyond the vocabulary are never returned.
        """
        check_range("top", top, at_least=1)
        vocab = self.tokenizer.vocab
        shares_PV = softmax(self.logits_PV)[:, : len(vocab)]
        order_PV = np.argsort(-shares_PV, axis=-1, kind="stable")[:, :top]
        return [[(vocab[i], float(row_V[i])) for i in best] for row_V, best in zip(shares_PV, order_PV, strict=True)]

    def filled(self) -> str:
        """The text with every mask replaced by its likeliest piece of text (no special token); all else untouched.

        A piece that continues a word stands without its ``##``; the blanks are the input's.
        """
        allowed = self.tokenizer.replacement_ids
        best_P = allowed[np.argmax(self.logits_PV[:, allowed], axis=-1)]
        done, filled = 0, ""
        for (start, end), best in zip(self.offsets, best_P, strict=True):
            filled += self.text[done:start] + self.tokenizer.piece_text(best)
            done = end
        return filled + self.text[done:]
