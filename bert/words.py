"""Cuts a text into words, the same for every tokenizer: what a tagger is trained on is what it predicts.

The rule is that of BERT's first split: words end at blanks; each punctuation mark and each Chinese character is a word
of its own. Combining marks belong to the character before them. Controls and zero-width characters, which tokenizers
remove, join what stands around them; at the ends of a word they are not part of it.

Source: BasicTokenizer in google-research/bert, tokenization.py.
"""

import functools
import string
import unicodedata

_BLANK, _JOINER, _MARK, _LETTER, _SINGLE = range(5)
_CHINESE = ((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
            (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F))  # fmt: skip


def places_of_words(text: str) -> list[tuple[int, int]]:
    """[start, end) of each word in code points, in ascending order; none of a text in which nothing is visible."""
    places: list[tuple[int, int]] = []
    before = _BLANK  # kind of what the character may belong to
    for place, character in enumerate(text):
        kind = _kind(character)
        if kind == _JOINER:
            continue
        if before != _BLANK and (kind == _MARK or kind == before == _LETTER):
            places[-1] = (places[-1][0], place + 1)
            continue
        if kind != _BLANK:
            places.append((place, place + 1))
        before = _LETTER if kind == _MARK else kind
    return places


@functools.cache
def _kind(character: str) -> int:
    category, code = unicodedata.category(character), ord(character)
    if character in " \t\n\r" or category[0] == "Z":
        return _BLANK
    if category[0] == "C" or character == "\ufffd":
        return _JOINER
    if category[0] == "M":
        return _MARK
    is_chinese = any(first <= code <= last for first, last in _CHINESE)
    return _SINGLE if is_chinese or category[0] == "P" or character in string.punctuation else _LETTER
